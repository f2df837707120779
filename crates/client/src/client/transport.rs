//! How a request gets to the server: a pool of connections, over whatever makes them.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::error::Error;

/// What a request carries.
pub(crate) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// How long a connection that nobody uses is kept. Servers close theirs after a minute or more.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Something that takes requests to the server.
pub(crate) trait Transport: Send + Sync {
    fn request(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Incoming>, legacy::Error>>;
}

impl<C> Transport for Pool<C, Body>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    fn request(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Incoming>, legacy::Error>> {
        Box::pin(Pool::request(self, request))
    }
}

pub(crate) fn pool<C>(connector: C, idle_connections_max: usize) -> Pool<C, Body>
where
    C: Connect + Clone,
{
    Pool::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        .pool_max_idle_per_host(idle_connections_max)
        .build(connector)
}

fn tcp(connect_timeout: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    connector
}

/// What makes the connections.
#[cfg(not(feature = "tls"))]
pub(crate) fn connector(connect_timeout: Duration) -> Result<HttpConnector, Error> {
    Ok(tcp(connect_timeout))
}

/// What makes the connections. The certificates that the system trusts are trusted. Where there are none, as in an empty
/// container, plain HTTP is spoken all the same, and nobody is trusted over TLS.
#[cfg(feature = "tls")]
pub(crate) fn connector(
    connect_timeout: Duration,
) -> Result<hyper_rustls::HttpsConnector<HttpConnector>, Error> {
    let mut tcp = tcp(connect_timeout);
    tcp.enforce_http(false);
    let provider = rustls::crypto::ring::default_provider();
    let builder = hyper_rustls::HttpsConnectorBuilder::new();
    let builder = match builder.with_provider_and_native_roots(provider.clone()) {
        Ok(builder) => builder,
        Err(_) => {
            let config = rustls::ClientConfig::builder_with_provider(provider.into())
                .with_safe_default_protocol_versions()
                .map_err(|error| Error::Impossible(Box::new(error)))?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config)
        }
    };
    let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
    Ok(connector)
}
