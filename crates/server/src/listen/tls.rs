//! TLS: a certificate and its key from two files, read again when the server is told to.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

/// Where the certificate and its key are, both in PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate first, then those that vouch for it.
    pub certificate: PathBuf,
    /// The key, which nobody else should be able to read.
    pub key: PathBuf,
}

/// Why the files do not make a server that can be trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTls {
    /// The file at fault.
    pub file: PathBuf,
    /// What is wrong with it, and what to do.
    pub what: String,
}

impl fmt::Display for BadTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.what)
    }
}

impl std::error::Error for BadTls {}

/// What a server proves its name with. Clones are the same.
#[derive(Clone)]
pub struct Tls {
    files: Arc<TlsFiles>,
    present: Arc<Present>,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Reads the files.
    pub fn open(files: TlsFiles) -> Result<Tls, BadTls> {
        let provider = Arc::new(ring::default_provider());
        let present = Arc::new(Present(RwLock::new(Arc::new(read(&files, &provider)?))));
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| bad(&files.certificate, error.to_string()))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(present.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { files: Arc::new(files), present, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Reads the files again. If they are wrong, what was read before stays.
    pub fn reload(&self) -> Result<(), BadTls> {
        let read = Arc::new(read(&self.files, &ring::default_provider())?);
        *self.present.0.write().expect("nothing panics while it is held") = read;
        Ok(())
    }

    /// Makes connections secure.
    pub fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

/// The certificate that new connections are shown.
struct Present(RwLock<Arc<CertifiedKey>>);

impl fmt::Debug for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Present(…)")
    }
}

impl ResolvesServerCert for Present {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().expect("nothing panics while it is held").clone())
    }
}

fn read(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, BadTls> {
    let pem = content(&files.certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|error| bad(&files.certificate, format!("is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(bad(
            &files.certificate,
            "has no certificate: it begins with -----BEGIN CERTIFICATE-----",
        ));
    }
    let pem = content(&files.key)?;
    let key = PrivateKeyDer::from_pem_slice(&pem);
    let key =
        key.map_err(|_| bad(&files.key, "has no private key: it begins with -----BEGIN PRIVATE KEY-----"))?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        bad(&files.key, format!("is not the key of {}: {error}", files.certificate.display()))
    })
}

fn content(file: &Path) -> Result<Vec<u8>, BadTls> {
    std::fs::read(file).map_err(|error| bad(file, format!("cannot be read: {error}")))
}

fn bad(file: &Path, what: impl Into<String>) -> BadTls {
    BadTls { file: file.to_owned(), what: what.into() }
}
