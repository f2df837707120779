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
    /// Whoever this machine trusts is trusted.
    pub fn new() -> std::io::Result<Collector> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Collector { client, runtime: Handle::current() })
    }
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
