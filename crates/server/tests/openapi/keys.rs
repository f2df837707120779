//! What can be asked about API keys.

use punctual_client::wire;

use super::operation::Operation;

pub fn all() -> Vec<Operation> {
    let operations = [add(), list(), rotate(), revoke()];
    operations.into_iter().map(|operation| operation.tag("keys")).collect()
}

fn add() -> Operation {
    let about = "The first key must have the scope `admin`, and must not expire; from then on nobody gets in without one.";
    Operation::new("post", "/v1/keys", "addKey", "Make a key", about)
        .body::<wire::NewKey>(false)
        .answers::<wire::MadeKey>(201, "The key, and its secret: it is not shown again.")
        .says(&[201], "Location", "The path of the key.")
        .refuses(&["store_full", "time_out_of_range"])
}

fn list() -> Operation {
    Operation::new("get", "/v1/keys", "listKeys", "List keys", "Of all namespaces, without their secrets.")
        .query::<wire::PageQuery>()
        .refuses(&["cursor_invalid"])
        .answers::<wire::KeyPage>(200, "A page of keys.")
}

fn rotate() -> Operation {
    let about = "Gives a key another secret; the one of today stays good for as long as `overlap` says.";
    Operation::new("post", "/v1/keys/{id}:rotate", "rotateKey", "Rotate a key", about)
        .body::<wire::RotateKey>(false)
        .answers::<wire::MadeKey>(200, "The key, and its new secret: it is not shown again.")
        .refuses(&["store_full"])
}

fn revoke() -> Operation {
    Operation::new("delete", "/v1/keys/{id}", "revokeKey", "Revoke a key", "At once.")
        .answers::<wire::Key>(200, "The key.")
        .refuses(&["key_needed", "store_full"])
}
