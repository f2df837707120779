//! TLS from the command line: both ends are the binary, and a new certificate is used after SIGHUP.

use std::path::Path;

use rcgen::{CertificateParams, KeyPair};

use crate::program::{Said, Server, said};

/// Writes a certificate for 127.0.0.1 that signs itself, and its key.
fn write_certificate(folder: &Path) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("certificate.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

#[test]
fn a_server_proves_its_name_and_takes_a_new_certificate_when_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write_certificate(folder.path());
    std::fs::copy(path("certificate.pem"), path("old.pem")).unwrap();
    let (data, certificate, key) = (path("data"), path("certificate.pem"), path("key.pem"));
    let tls = ["--tls-certificate", &certificate, "--tls-key", &key];
    let server = Server::start_with(&[&["--listen", "127.0.0.1:0", "--data", &data], &tls[..]].concat());
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.announcement);
    let list = |trusted: &str| -> Said {
        let mut command = server.command(&["task", "list"]);
        command.env("SSL_CERT_FILE", path(trusted));
        said(command)
    };
    assert!(list("certificate.pem").with(0).out.contains("No task"));
    write_certificate(folder.path());
    list("certificate.pem").with(3);
    server.tell("HUP");
    // It is read again in a moment.
    while list("certificate.pem").code != 0 {}
    // It was said that there is no server, and how to start one.
    let refused = list("old.pem").with(3);
    let told = format!("the certificate of {} is not trusted", server.url);
    assert!(refused.err.contains(&told) && refused.err.contains("SSL_CERT_FILE"), "{refused:#?}");
    assert!(!refused.err.contains("punctual serve"), "{refused:#?}");
    let mut check = server.command(&["check"]);
    check.env("SSL_CERT_FILE", path("old.pem"));
    assert!(said(check).with(3).out.contains(&told));
    let other_name = server.url.replace("127.0.0.1", "localhost");
    let mut list = server.command(&["task", "list", "--server", &other_name]);
    list.env("SSL_CERT_FILE", path("certificate.pem"));
    assert!(said(list).with(3).err.contains("by a name that stands in its certificate"));
}
