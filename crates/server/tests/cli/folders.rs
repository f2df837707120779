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
    assert!(said.err.contains("asks the server for a copy while it runs"), "{said:#?}");
    assert_eq!(server.stop(), 0);
    assert_eq!(run(&["verify", &data, "--json"]).with(0).json()["live"], 2);
    run(&["backup", &data, &copy]).with(0);
    run(&["backup", &data, &copy]).with(2);
    let restored = run(&["restore", &copy, &back, "--json"]).with(0).json();
    assert_eq!((&restored["waiting"], &restored["due"]), (&2.into(), &1.into()));
    assert_eq!(restored["first"].as_array().unwrap().len(), 1);
    assert_eq!(restored["queues"][0]["queue"], "q");
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

#[test]
fn an_empty_folder_is_no_data_folder_and_looking_does_not_make_it_one() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let (path, copy) = (empty.to_str().unwrap(), folder.path().join("copy"));
    let to = copy.to_str().unwrap();
    for args in [
        &["backup", path, to][..],
        &["verify", path],
        &["restore", path, to],
        &["key", "list", "--data", path],
        &["key", "rotate", "k", "--data", path],
        &["key", "revoke", "k", "--data", path],
    ] {
        let said = run(args).with(4);
        assert!(said.err.contains(&format!("there is no data folder at {path}")), "{args:?}: {said:#?}");
        assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "{args:?} leaves it empty");
        assert!(!copy.exists(), "{args:?}");
    }
    let said = run(&["check", "--data", path, "--server", "http://127.0.0.1:9"]).with(3);
    assert!(said.out.contains(&format!("there is no data folder at {path}")), "{said:#?}");
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}

/// Whoever looked into something else was told to name an empty folder, which is of no use to look into.
#[test]
fn something_else_is_no_data_folder_and_no_backup_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (other, to) = (path("other"), path("to"));
    std::fs::create_dir(&other).unwrap();
    std::fs::write(path("other/letter"), "mine").unwrap();
    let told = format!("{other} is no data folder of Punctual, and no backup of one: it holds `letter`");
    for args in [
        &["verify", &other][..],
        &["restore", &other, &to],
        &["backup", &other, &to],
        &["key", "list", "--data", &other],
    ] {
        let said = run(args).with(2);
        assert!(said.err.contains(&told) && !said.err.contains("name one"), "{args:?}: {said:#?}");
    }
    let said = run(&["check", "--data", &other, "--server", "http://127.0.0.1:9"]).with(3);
    assert!(said.out.contains(&told), "{said:#?}");
    // Where one is to be made, that is the way out.
    for args in
        [&["serve", "--listen", "127.0.0.1:0", "--data", &other][..], &["key", "add", "--data", &other]]
    {
        let said = run(args).with(2);
        assert!(said.err.contains("name one that is empty or not there yet"), "{args:?}: {said:#?}");
    }
}

/// A file was told as a disk that failed.
#[test]
fn a_file_is_no_folder() {
    let server = Server::start();
    let (file, within, to) = (server.path("file"), server.path("file/data"), server.path("to"));
    std::fs::write(&file, "mine").unwrap();
    for path in [&file, &within] {
        for args in [
            &["verify", path][..],
            &["serve", "--listen", "127.0.0.1:0", "--data", path],
            &["restore", path, &to],
            &["backup", path, &to],
            &["backup", path],
            &["key", "add", "--data", path],
        ] {
            let said = server.run(args).with(2);
            assert!(said.err.contains(&format!("{file} is a file")), "{args:?}: {said:#?}");
            assert!(!said.err.contains("disk"), "{args:?}: {said:#?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_server_is_copied_while_it_runs_and_the_copy_starts_on_hold() {
    let mut server = Server::start();
    server.run(&["task", "add", "q", "--delay", "0s", "--text", "due"]).with(0);
    server.run(&["task", "add", "later", "--delay", "1h"]).with(0);
    server.run(&["queue", "pause", "later"]).with(0);
    let (copy, back) = (server.path("copy"), server.path("back"));
    server.run(&["backup", &copy]).with(0);
    let again = server.run(&["backup", &copy]).with(2);
    assert!(again.err.contains("is not empty"), "{again:#?}");
    // What comes after the copy is not in it.
    server.run(&["task", "add", "q", "--delay", "0s"]).with(0);
    assert_eq!(server.stop(), 0);
    assert!(run(&["verify", &copy]).with(0).out.contains("2 tasks live"));
    let said = run(&["restore", &copy, &back]).with(0);
    assert!(said.out.contains("1 of them is due") && said.out.contains("on hold"), "{said:#?}");
    let server = Server::on(server.folder.clone(), "back", &[]);
    assert!(server.announcement.contains("hold   2 queues"), "{}", server.announcement);
    assert_eq!(server.run(&["queue", "get", "q", "--json"]).with(0).json()["paused"], true);
    let released = server.run(&["hold", "release"]).with(0);
    assert!(released.out.contains("2 queues released"), "{released:#?}");
    assert_eq!(
        server.run(&["queue", "get", "later", "--json"]).with(0).json()["paused"],
        true,
        "as it was before"
    );
    assert_eq!(server.run(&["queue", "get", "q", "--json"]).with(0).json()["paused"], false);
    assert_eq!(server.run(&["hold", "show"]).line(), "Nothing is on hold.");
}
