//! TLS: a real client over real https, certificates that are wrong, and new ones while the server runs.

use std::path::Path;
use std::sync::Arc;

use hyper_util::client::legacy::connect::HttpConnector;
use punctual_client::Client;
use punctual_client::wire::NewTask;
use punctual_server::{Server, TlsFiles, Trouble};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::world::{World, options};

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") }
}

/// Writes a certificate for 127.0.0.1 that signs itself, and its key.
fn write_certificate(folder: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().expect("a key can be made");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("it is an address");
    let certificate = params.self_signed(&key).expect("it can sign itself");
    let files = files(folder);
    std::fs::write(files.certificate, certificate.pem()).expect("it can be written");
    std::fs::write(files.key, key.serialize_pem()).expect("it can be written");
    certificate.der().clone()
}

/// A client that trusts only this certificate.
fn client(world: &World, certificate: CertificateDer<'static>) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("it is a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config);
    let connector = connector.https_only().enable_http1().wrap_connector(tcp);
    let client = Client::builder(&format!("https://{}", world.address)).build_over(connector);
    client.expect("it is an address")
}

#[tokio::test]
async fn tasks_come_in_over_https_and_a_new_certificate_is_used_when_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_certificate(folder.path());
    let data = tempfile::tempdir().unwrap();
    let world = World::with(data, |options| options.tls = Some(files(folder.path()))).await;
    let trusting = client(&world, first.clone());
    let made = trusting.create("mail", &NewTask::new().name("secure")).await.unwrap().task;
    assert_eq!(trusting.task(&made.id).await.unwrap().name.as_deref(), Some("secure"));
    let second = write_certificate(folder.path());
    let told = client(&world, second.clone());
    told.create("mail", &NewTask::new()).await.unwrap_err();
    world.reload.reload().await.unwrap();
    told.create("mail", &NewTask::new()).await.unwrap();
    client(&world, first).create("mail", &NewTask::new()).await.unwrap_err();
    // A mistake leaves the last good one.
    std::fs::write(files(folder.path()).key, "no key").unwrap();
    let bad = world.reload.reload().await.unwrap_err();
    assert!(bad.to_string().contains("key.pem: has no private key"), "{bad}");
    client(&world, second).create("mail", &NewTask::new()).await.unwrap();
}

#[tokio::test]
async fn plain_http_gets_no_answer_from_a_server_with_tls() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = write_certificate(folder.path());
    let data = tempfile::tempdir().unwrap();
    let world = World::with(data, |options| options.tls = Some(files(folder.path()))).await;
    world.client.create("mail", &NewTask::new()).await.unwrap_err();
    client(&world, certificate).create("mail", &NewTask::new()).await.unwrap();
}

#[tokio::test]
async fn files_that_do_not_make_a_certificate_are_named() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_certificate(folder.path());
    write_certificate(other.path());
    let (good, foreign) = (files(folder.path()), files(other.path()));
    let missing = folder.path().join("missing.pem");
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for (certificate, key, said) in [
        (&missing, &good.key, "missing.pem: cannot be read"),
        (&empty, &good.key, "empty.pem: has no certificate"),
        (&good.certificate, &empty, "empty.pem: has no private key"),
        (&good.certificate, &foreign.key, "key.pem: is not the key of"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let mut options = options(data.path());
        options.tls = Some(TlsFiles { certificate: certificate.clone(), key: key.clone() });
        let trouble = Server::start(options).await.err().expect("it must not start");
        assert!(matches!(trouble, Trouble::Tls(_)) && trouble.to_string().contains(said), "{trouble}");
    }
}
