//! Every example is registered, runs to its end by itself, and says something.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn crate_folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo, which says where the crate is").into()
}

/// The names of the files in `examples/`.
fn examples() -> BTreeSet<String> {
    let folder = crate_folder().join("../../examples");
    let files = std::fs::read_dir(folder).expect("the examples are there");
    let paths = files.map(|file| file.expect("it can be read").path());
    paths.filter_map(|path| Some(path.file_name()?.to_str()?.strip_suffix(".rs")?.to_string())).collect()
}

#[test]
fn every_example_is_registered() {
    let manifest = std::fs::read_to_string(crate_folder().join("Cargo.toml")).expect("the manifest is there");
    for example in examples() {
        let path = format!("path = \"../../examples/{example}.rs\"");
        assert!(manifest.contains(&path), "add [[example]] {example} to the manifest of this crate");
    }
}

#[test]
fn every_example_runs_to_its_end() {
    // Cargo builds the examples before it runs any test, in a folder beside that of the tests.
    let test = std::env::current_exe().expect("this test has a path");
    let folder = test.parent().and_then(Path::parent).expect("tests lie in `deps`").join("examples");
    // What they make lies where they are run.
    let place = tempfile::tempdir().expect("a folder");
    for example in examples() {
        let output = Command::new(folder.join(&example))
            .current_dir(place.path())
            .output()
            .expect("`cargo test -p punctual` builds the examples");
        assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{example} says nothing");
    }
}
