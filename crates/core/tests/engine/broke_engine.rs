//! What a reviewer broke.

use crate::script::World;

fn show(script: &str) -> String {
    let got = World::run(script).transcript();
    println!("{got}");
    got
}

#[test]
fn t3_a_task_that_was_only_looked_at_is_not_forgotten() {
    let got = show(
        "
        auto succeed *
        0   accept x due=400
        1   hold_answers loads
        260 accept y due=500
        261 change y payload=z if_revision=7
        262 let_store
        1000 tick
        ",
    );
    assert!(got.contains("start y #1"));
}
