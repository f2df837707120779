//! How spans get to the collector: over the HTTP client that everything else here uses.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::units::KIB;

/// A collector that takes longer misses these spans.
const SEND_MAX: Duration = Duration::from_secs(10);
/// It has little to say.
const ANSWER_MAX: usize = 64 * KIB;

/// Sends requests to the collector.
pub struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Spans are sent by a thread of their own, which cannot wait for a socket.
    runtime: Handle,
}

impl Collector {
    /// Whoever this machine trusts is trusted. Where it has no certificates, as in an empty container, a collector can be
    /// told over plain HTTP all the same.
    pub fn new(over_tls: bool) -> std::io::Result<Collector> {
        let builder = HttpsConnectorBuilder::new();
        let builder = match over_tls {
            true => builder.with_provider_and_native_roots(rustls::crypto::ring::default_provider())?,
            false => builder.with_tls_config(trusting_nobody()?),
        };
        let connector = builder.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Collector { client, runtime: Handle::current() })
    }
}

fn trusting_nobody() -> std::io::Result<rustls::ClientConfig> {
    let provider = rustls::crypto::ring::default_provider();
    let config = rustls::ClientConfig::builder_with_provider(provider.into());
    let config = config.with_safe_default_protocol_versions().map_err(std::io::Error::other)?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collector")
    }
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // Within the runtime, because a timeout needs one as soon as it is made.
        self.runtime.spawn(async { timeout(SEND_MAX, sent).await }).await??
    }
}
