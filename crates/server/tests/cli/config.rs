//! Settings: flags before variables before the file, and what is wrong is told where it stands.

use std::path::Path;

use crate::program::{Said, command, run, said};

/// What `check` says of a file with this content.
fn checked(content: &str) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("punctual.toml");
    std::fs::write(&file, content).unwrap();
    let mut said = run(&["check", "--config", file.to_str().unwrap()]);
    said.err = said.err.replace(folder.path().to_str().unwrap(), "~");
    said
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_that_cannot_tell_spans_says_so() {
    let said = checked("otlp_endpoint = \"http://127.0.0.1:4318\"\n").with(2);
    assert!(said.err.contains("otlp_endpoint: this was built without spans: build it with"), "{}", said.err);
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_line_and_what_to_do() {
    for (content, told) in [
        (
            "# mine\nlisten = \"localhost\"\n",
            "~/punctual.toml:2:10: listen: \"localhost\": must be an address and a port, such as 127.0.0.1:8700 or [::1]:8700",
        ),
        ("data = \"\"\n", "~/punctual.toml:1:8: data: \"\": is empty: name a file or a folder"),
        ("drain = \"90\"\n", "~/punctual.toml:1:9: drain: \"90\" has no unit: write 90s"),
        ("drain = \"2d\"\n", "must be a length of time from 0s to 1d"),
        ("drain = 90\n", "~/punctual.toml:1:9: drain: \"90\" has no unit: write 90s"),
        ("limits = 3\n", "~/punctual.toml:1:10: limits: invalid type: integer `3`, expected a table"),
        (
            "[limits]\nbody_mx = \"1MiB\"\n",
            "~/punctual.toml:2:1: unknown key \"body_mx\", did you mean \"body_max\"?",
        ),
        ("lisen = \"127.0.0.1:1\"\n", "~/punctual.toml:1:1: unknown key \"lisen\", did you mean \"listen\"?"),
        ("[limit]\n", "~/punctual.toml:1:2: unknown key \"limit\", did you mean \"limits\"?"),
        (
            "[limits]\n\nbody_max = \"32MB\"\n",
            "~/punctual.toml:3:12: body_max: \"32MB\": must be a size from 1KiB to 1GiB, such as 512KiB or 32MiB",
        ),
        ("[limits]\nbody_max = 33554432\n", "must be a size from 1KiB to 1GiB"),
        ("[limits]\nconnections_max = 0\n", "connections_max: 0: must be a number from 1 to 1000000"),
        ("[limits]\nrequests_per_second = -1\n", "must be a number from 1 to 1000000"),
        ("[limits]\nbody_max = \"1GiB\"\n", "body_max"),
        (
            "[calls]\nallow_net = [\n  \"10.0.0.0/8\",\n  \"ten\",\n]\n",
            "~/punctual.toml:2:13: allow_net: \"ten\": must be a network",
        ),
        ("[calls]\nallow_port = [0]\n", "a port is a number from 1 to 65535, or `any`"),
        (
            "[calls]\nproxy = \"proxy:3128\"\n",
            "must be a URL without a path, such as http://proxy.internal:3128",
        ),
        ("otlp_endpoint = \"localhost\"\n", "must be a URL, such as http://127.0.0.1:4318"),
        ("[tls]\ncertificate = \"c.pem\"\n", "there is a certificate, and no key: name it with tls.key"),
        ("[tls]\ncertificate = \"missing.pem\"\nkey = \"k.pem\"\n", "missing.pem: cannot be read"),
        ("listen = \n", "~/punctual.toml:1:10: "),
        ("listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n", "~/punctual.toml:2:1: "),
        (
            "listen = true\n",
            "~/punctual.toml:1:10: listen: invalid type: boolean `true`, expected text or a number",
        ),
    ] {
        let said = checked(content).with(2);
        assert!(said.err.contains(told), "{content:?}: {}", said.err);
        assert!(said.out.contains("NOT OK"), "{}", said.out);
    }
    let said = checked("").with(0);
    assert!(said.out.contains("can be used"), "{}", said.out);
    let said = run(&["check", "--config", "/nowhere/punctual.toml"]).with(2);
    assert!(said.err.contains("/nowhere/punctual.toml: the configuration cannot be read"), "{}", said.err);
}

#[test]
fn a_flag_goes_before_a_variable_and_a_variable_before_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("punctual.toml");
    // Each of them is wrong in its own way, so that what is said tells which one was asked.
    std::fs::write(&file, "[tls]\ncertificate = \"of-the-file.pem\"\nkey = \"k.pem\"\n").unwrap();
    let serve = |args: &[&str], variable: Option<&str>| {
        let data = folder.path().join("data");
        let mut command = command(&["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        command.args(args).env("PUNCTUAL_CONFIG", &file);
        if let Some(variable) = variable {
            command.env("PUNCTUAL_TLS_CERTIFICATE", variable);
        }
        said(command).with(2).err
    };
    assert!(serve(&[], None).contains("of-the-file.pem: cannot be read"));
    assert!(serve(&[], Some("of-the-variable.pem")).contains("of-the-variable.pem: cannot be read"));
    let flag = serve(&["--tls-certificate", "of-the-flag.pem"], Some("of-the-variable.pem"));
    assert!(flag.contains("of-the-flag.pem: cannot be read"), "{flag}");
    let said = serve(&["--body-max", "32MB"], None);
    assert!(said.contains("--body-max") && said.contains("such as 512KiB or 32MiB"), "{said}");
    let said = serve(&["--body-max", "1GiB", "--tls-certificate", "x"], None);
    assert!(said.contains("in_flight_max"), "{said}");
}

#[test]
fn a_server_is_started_with_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("punctual.toml");
    let data = folder.path().join("kept here");
    let content = format!(
        "data = {:?}\nlisten = \"127.0.0.1:0\"\ndrain = \"2m\"\n[calls]\nallow_net = [\"10.0.0.0/8\"]\nallow_port = [\"any\"]\n",
        data.to_str().unwrap()
    );
    std::fs::write(&file, content).unwrap();
    let mut server = crate::program::Server::start_with(&["--config", file.to_str().unwrap()]);
    let said = server.announcement.clone();
    assert!(said.contains("kept here") && said.contains("may go on for 2m"), "{said}");
    assert!(said.contains("10.0.0.0/8 (any port)"), "{said}");
    assert!(Path::new(&data).is_dir());
    assert_eq!(server.stop(), 0);
}

#[test]
fn an_audit_that_cannot_be_written_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let said = run(&[&serve[..], &["--audit", "/nowhere/audit.jsonl"]].concat()).with(1);
    assert!(said.err.contains("the audit cannot be written to /nowhere/audit.jsonl"), "{}", said.err);
}

/// It was found good, and no server could be started with it.
#[test]
fn an_audit_that_cannot_be_written_is_found_by_looking_at_the_file() {
    let said = checked("audit = \"/nowhere/audit.jsonl\"\n").with(2);
    assert!(said.err.contains("the audit cannot be written to /nowhere/audit.jsonl"), "{}", said.err);
    let folder = tempfile::tempdir().unwrap();
    let told = |path: &Path| checked(&format!("audit = {path:?}\n"));
    assert!(told(folder.path()).with(2).err.contains("the audit cannot be written"), "it is a folder");
    let odd = tempfile::tempdir().unwrap();
    let (pipe, link) = (odd.path().join("pipe"), odd.path().join("link"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink(odd.path().join("nowhere/audit"), &link).unwrap();
    assert!(told(&pipe).with(2).err.contains("it is no file"), "nobody would ever read it");
    assert!(told(&link).with(2).err.contains("the audit cannot be written"), "it leads nowhere");
    let file = folder.path().join("audit.jsonl");
    told(&file).with(0);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "looking does not begin it");
    std::fs::write(&file, "{}\n").unwrap();
    told(&file).with(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}\n");
}
