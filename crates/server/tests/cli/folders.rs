//! Data folders: verified, copied and put back while no server uses them.

use crate::program::{Server, run};

#[test]
fn a_folder_is_verified_copied_and_restored() {
    let mut server = Server::start();
    for delay in ["0s", "1h"] {
        server.run(&["task", "add", "q", "--delay", delay]).with(0);
    }
    let (data, copy, back) = (server.data(), server.path("copy"), server.path("back"));
    let said = run(&["backup", &data, &copy]).with(8);
    assert!(said.err.contains("cannot copy its folder while it runs yet"), "{said:#?}");
    assert_eq!(server.stop(), 0);
    assert_eq!(run(&["verify", &data, "--json"]).with(0).json()["live"], 2);
    run(&["backup", &data, &copy]).with(0);
    run(&["backup", &data, &copy]).with(2);
    let restored = run(&["restore", &copy, &back, "--json"]).with(0).json();
    assert_eq!((&restored["waiting"], &restored["due"]), (&2.into(), &1.into()));
    assert_eq!(restored["first"].as_array().unwrap().len(), 1);
    let said = run(&["verify", &back]).with(0);
    assert!(said.out.contains("All is well."), "{said:#?}");
}

#[test]
fn what_is_no_folder_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    run(&["verify", &path("none")]).with(4);
    run(&["backup", &path("none"), &path("copy")]).with(4);
    assert!(!folder.path().join("none").exists(), "looking must not make it");
    run(&["restore", &path("none"), &path("copy")]).with(4);
}
