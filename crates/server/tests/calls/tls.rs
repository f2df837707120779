//! Calls over TLS go only to who can prove the name.

use std::net::SocketAddr;
use std::sync::Arc;

use punctual_server::call::{Call, Caller};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::servers::*;

/// A server with a certificate that it signed itself, and that certificate.
pub async fn serve_tls(change: impl FnOnce(&mut CertificateParams)) -> (SocketAddr, CertificateDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["secure.test".to_string()]).unwrap();
    change(&mut params);
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            // Whoever does not trust us hangs up.
            let Ok(mut tls) = acceptor.accept(connection).await else { continue };
            let mut request = [0; 4096];
            if tls.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {
                let _ = tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret").await;
            }
        }
    });
    (address, certificate)
}

async fn call(
    address: SocketAddr,
    host: &str,
    trusted: Option<CertificateDer<'static>>,
) -> punctual_core::Outcome {
    let mut options = options();
    options.resolver = Scripted::new(&[&["127.0.0.1"]]);
    options.extra_roots = trusted.into_iter().collect();
    let url = format!("https://{host}:{}/", address.port());
    outcome(&Caller::new(options), attempt(), Call::post(url)).await
}

#[tokio::test]
async fn a_trusted_certificate_is_accepted() {
    let (address, certificate) = serve_tls(|_| {}).await;
    assert_eq!(result(call(address, "secure.test", Some(certificate)).await)["body"], "secret");
}

#[tokio::test]
async fn an_unknown_certificate_is_refused() {
    let (address, _) = serve_tls(|_| {}).await;
    let text = error(call(address, "secure.test", None).await);
    let expected = format!("could not agree on TLS with secure.test:{}: ", address.port());
    assert!(text.starts_with(&expected) && text.contains("certificate"), "{text}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (address, certificate) = serve_tls(|_| {}).await;
    for host in ["other.test", "127.0.0.1"] {
        let text = error(call(address, host, Some(certificate.clone())).await);
        assert!(text.contains("certificate not valid for name"), "{host}: {text}");
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let (address, certificate) =
        serve_tls(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)).await;
    let text = error(call(address, "secure.test", Some(certificate)).await);
    assert!(text.contains("expired"), "{text}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let server = serve(axum::Router::new()).await;
    let text = error(call(server.address, "secure.test", None).await);
    assert!(text.starts_with("could not agree on TLS with secure.test"), "{text}");
}

#[tokio::test]
async fn trusted_authorities_are_counted() {
    let mut options = options();
    assert_eq!(Caller::new(options).trusted_roots(), 0);
    let (_, certificate) = serve_tls(|_| {}).await;
    options = crate::servers::options();
    options.extra_roots = vec![certificate];
    assert_eq!(Caller::new(options).trusted_roots(), 1);
}
