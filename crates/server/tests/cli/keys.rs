//! Keys from the command line: the first in a folder, the others from the server, and what each may do.

use std::process::Stdio;

use crate::program::{Server, command, read_until, run};

#[test]
fn a_server_that_others_reach_starts_only_with_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let said = run(&["serve", "--listen", "0.0.0.0:0", "--data", data]).with(2);
    assert!(said.err.contains("can be reached by other machines, and there are no API keys"), "{said:#?}");
    assert!(said.err.contains(&format!("punctual key add --data {data} --scope admin")), "{said:#?}");
    let said = run(&["key", "add", "--data", data, "--scope", "read"]).with(1);
    assert!(said.err.contains("the first key must have the scope `admin`"), "{said:#?}");
    let key = run(&["key", "add", "--data", data, "--scope", "admin", "--name", "me"]).line();
    assert!(key.starts_with("punctual_"), "{key}");
    let mut process =
        command(&["serve", "--listen", "0.0.0.0:0", "--data", data]).stdout(Stdio::piped()).spawn().unwrap();
    let said = read_until(process.stdout.take().unwrap(), "stop ");
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(said.contains("without TLS, keys and payloads can be read on their way"), "{said}");
    assert!(said.contains("Authorization: Bearer $PUNCTUAL_KEY"), "{said}");
    assert!(!said.contains("any port of this machine"), "others must not make it call itself: {said}");
}

#[test]
fn keys_are_made_listed_rotated_and_revoked() {
    let server = Server::start();
    let said = server.run(&["key", "list"]).with(0);
    assert!(said.out.contains("There are no keys"), "{said:#?}");
    let said = run(&["key", "list", "--data", &server.data()]).with(8);
    assert!(said.err.contains("leave --data out"), "{said:#?}");
    let admin = server.run(&["key", "add", "--scope", "admin", "--name", "operator"]).line();
    let said = server.run(&["task", "list"]).with(1);
    assert!(said.err.contains("Authorization: Bearer"), "{said:#?}");
    let with = |key: &str, args: &[&str]| {
        let mut command = server.command(args);
        command.env("PUNCTUAL_KEY", key);
        crate::program::said(command)
    };
    let shop =
        with(&admin, &["key", "add", "--namespace", "shop", "--scope", "read,write", "--expires", "in 90d"]);
    let said = shop.err.clone();
    let shop = shop.line();
    assert!(said.contains("of namespace shop is made"), "{said}");
    with(&shop, &["task", "add", "mail", "--at", "in 1h"]).with(0);
    assert!(with(&admin, &["task", "list"]).with(0).out.contains("No task"), "other namespaces are apart");
    let said = with(&shop, &["worker", "--queue", "mail", "--", "true"]);
    assert!(said.err.contains("`work`"), "{said:#?}");
    let id = shop.split('_').nth(1).unwrap();
    let listed = with(&admin, &["key", "list"]).with(0).out;
    assert!(listed.contains(id) && listed.contains("read write") && listed.contains("in 90d"), "{listed}");
    let rotated = with(&admin, &["key", "rotate", id]).line();
    for key in [&shop, &rotated] {
        with(key, &["task", "list"]).with(0);
    }
    with(&admin, &["key", "revoke", id]).with(0);
    for key in [&shop, &rotated] {
        assert!(with(key, &["task", "list"]).with(1).err.contains("revoked"));
    }
    assert!(!with(&admin, &["key", "list"]).out.contains(id));
    assert!(with(&admin, &["key", "list", "--all"]).out.contains("revoked"));
    let operator = admin.split('_').nth(1).unwrap();
    assert!(with(&admin, &["key", "revoke", operator]).with(1).err.contains("the last key"));
    with(&admin, &["key", "revoke", "nobody"]).with(4);
    let said = with(&admin, &["key", "add", "--scope", "raed"]).with(2);
    assert!(said.err.contains("did you mean \"read\"?"), "{said:#?}");
}
