//! Opens connections, and only to addresses that the guard lets pass, or through a proxy.
//!
//! A name is resolved once, every address it has is judged, and the connection goes to one that was judged: between
//! the look and the leap nobody asks the name again, so that a name that changes its answer gains nothing.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;
use url::Host;

use super::guard::{Blocked, Guard};
use super::proxy::Proxy;
use super::stream::Stream;

/// Names looked up at once. A look-up that hangs holds a thread until the system gives it up.
const LOOK_UPS_MAX: usize = 64;
/// Of a host with many addresses so many are tried.
const ADDRESSES_MAX: usize = 4;

/// A look-up under way.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of this name, the best first.
    fn resolve(&self, name: &str) -> Resolved;
}

/// Asks the system, as every other program on this machine does.
pub struct SystemResolver {
    permits: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> SystemResolver {
        SystemResolver { permits: Arc::new(Semaphore::new(LOOK_UPS_MAX)) }
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> Resolved {
        let (permits, name) = (self.permits.clone(), name.to_string());
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let look_up = move || {
                // Held by the thread, not by whoever waits for it, who may have lost patience.
                let _permit = permit;
                (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
            };
            tokio::task::spawn_blocking(look_up).await.map_err(io::Error::other)?
        })
    }
}

/// Why there is no connection. The text is for people, and whole.
#[derive(Debug)]
pub(super) enum ConnectError {
    NotResolved { host: String, why: String },
    Blocked { host: Option<String>, blocked: Blocked },
    NotConnected { place: String, why: String },
    NoTls { place: String, why: String },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NotResolved { host, why } => {
                write!(f, "could not find the address of {host}: {why}")
            }
            ConnectError::Blocked { host: Some(host), blocked } => {
                write!(f, "{blocked} (it is where {host} is)")
            }
            ConnectError::Blocked { host: None, blocked } => write!(f, "{blocked}"),
            ConnectError::NotConnected { place, why } => write!(f, "could not connect to {place}: {why}"),
            ConnectError::NoTls { place, why } => write!(f, "could not agree on TLS with {place}: {why}"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector(Arc<Parts>);

/// What a connector is made of.
pub(super) struct Parts {
    pub guard: Guard,
    pub proxy: Option<Proxy>,
    pub resolver: Arc<dyn Resolve>,
    pub tls: TlsConnector,
    pub resolve_timeout: Duration,
    /// For all addresses together, and again for TLS.
    pub connect_timeout: Duration,
}

impl Connector {
    pub fn new(parts: Parts) -> Connector {
        Connector(Arc::new(parts))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Stream>, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let parts = self.0.clone();
        Box::pin(async move { parts.connect(&uri).await.map(TokioIo::new) })
    }
}

impl Parts {
    async fn connect(&self, uri: &Uri) -> Result<Stream, ConnectError> {
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let text = uri.host().unwrap_or_default();
        let not_resolved = |why: String| ConnectError::NotResolved { host: text.to_string(), why };
        let host = Host::parse(text).map_err(|error| not_resolved(error.to_string()))?;
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let name = match &host {
            Host::Domain(name) => Some(name.as_str()),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        };
        let blocked = |blocked| ConnectError::Blocked { host: name.map(str::to_string), blocked };
        let addresses = match (self.addresses(&host).await, &self.proxy, name) {
            (Ok(found), ..) => judged(&self.guard, &found, port).map_err(blocked)?,
            // Where there is a proxy, there are often no names but of our own networks: it knows the others.
            (Err(_), Some(_), Some(name)) => {
                self.guard.check_name(name, port).map_err(blocked)?;
                Vec::new()
            }
            (Err(why), ..) => return Err(not_resolved(why)),
        };
        let place = format!("{host}:{port}");
        let not_connected = |why| ConnectError::NotConnected { place: place.clone(), why };
        let is_ours = !addresses.is_empty() && addresses.iter().all(|it| self.guard.is_ours(it.ip()));
        if let Some(proxy) = self.proxy.as_ref().filter(|_| !is_ours) {
            let needs_tunnel = proxy.needs_tunnel(is_tls);
            let through = self.connect_through(proxy, needs_tunnel.then_some(&*place)).await;
            let tcp = through.map_err(not_connected)?;
            return match (is_tls, needs_tunnel) {
                (true, _) => self.agree_at(&host, tcp, place).await,
                (false, true) => Ok(Stream::Plain(tcp)),
                (false, false) => Ok(Stream::Proxied(tcp)),
            };
        }
        let tcp = self.connect_to_one(&addresses).await.map_err(not_connected)?;
        let came_home = match (tcp.local_addr(), tcp.peer_addr()) {
            (Ok(local), Ok(peer)) => self.guard.check_connected(local, peer),
            _ => Ok(()), // It is gone already, which the request will find out.
        };
        came_home.map_err(blocked)?;
        if !is_tls {
            return Ok(Stream::Plain(tcp));
        }
        self.agree_at(&host, tcp, place).await
    }

    /// The addresses of a host, or why there are none.
    async fn addresses(&self, host: &Host<String>) -> Result<Vec<IpAddr>, String> {
        match host {
            Host::Domain(name) => self.resolve(name).await,
            Host::Ipv4(ip) => Ok(vec![IpAddr::V4(*ip)]),
            Host::Ipv6(ip) => Ok(vec![IpAddr::V6(*ip)]),
        }
    }

    /// To the proxy, and through it to this place if there is to be a tunnel. The proxy itself may be anywhere: whoever
    /// runs the server named it.
    async fn connect_through(&self, proxy: &Proxy, tunnel_to: Option<&str>) -> Result<TcpStream, String> {
        let not_there = |why: String| format!("the proxy {proxy} is not there: {why}");
        let mut addresses = Vec::new();
        for ip in self.addresses(&proxy.host).await.map_err(not_there)? {
            addresses.push(SocketAddr::new(ip, proxy.port));
        }
        let tcp = self.connect_to_one(&in_turn(addresses)).await.map_err(not_there)?;
        let Some(place) = tunnel_to else { return Ok(tcp) };
        match timeout(self.connect_timeout, proxy.open_tunnel(tcp, place)).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("no tunnel from the proxy {proxy} within {:?}", self.connect_timeout)),
        }
    }

    async fn agree_at(
        &self,
        host: &Host<String>,
        tcp: TcpStream,
        place: String,
    ) -> Result<Stream, ConnectError> {
        let tls = self.agree(server_name(host), tcp).await;
        tls.map_err(|why| ConnectError::NoTls { place, why })
    }

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        match timeout(self.resolve_timeout, self.resolver.resolve(name)).await {
            Ok(Ok(found)) if found.is_empty() => Err("it has none".to_string()),
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {:?}", self.resolve_timeout)),
        }
    }

    /// One after the other, each with its share of the time, so that a dead first address leaves time for the second.
    async fn connect_to_one(&self, addresses: &[SocketAddr]) -> Result<TcpStream, String> {
        let share = self.connect_timeout / addresses.len() as u32;
        let mut why = String::new();
        for address in addresses {
            why = match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => {
                    // A request is one small piece: waiting for more to send along only costs time.
                    let _ = tcp.set_nodelay(true);
                    return Ok(tcp);
                }
                Ok(Err(error)) => io_text(&error),
                Err(_) => format!("no answer within {share:?}"),
            };
        }
        Err(why)
    }

    async fn agree(
        &self,
        name: Result<ServerName<'static>, String>,
        tcp: TcpStream,
    ) -> Result<Stream, String> {
        match timeout(self.connect_timeout, self.tls.connect(name?, tcp)).await {
            Ok(Ok(tls)) => Ok(Stream::Tls(Box::new(tls))),
            Ok(Err(error)) => Err(io_text(&error)),
            Err(_) => Err(format!("no answer within {:?}", self.connect_timeout)),
        }
    }
}

fn server_name(host: &Host<String>) -> Result<ServerName<'static>, String> {
    match host {
        Host::Domain(name) => {
            ServerName::try_from(name.trim_end_matches('.').to_string()).map_err(|error| error.to_string())
        }
        Host::Ipv4(ip) => Ok(ServerName::from(IpAddr::V4(*ip))),
        Host::Ipv6(ip) => Ok(ServerName::from(IpAddr::V6(*ip))),
    }
}

/// Those of the addresses that may be called, in the order to try them. If none may, why the first may not.
fn judged(guard: &Guard, found: &[IpAddr], port: u16) -> Result<Vec<SocketAddr>, Blocked> {
    let mut refused = None;
    let mut addresses = Vec::new();
    for ip in found {
        match guard.check(SocketAddr::new(*ip, port)) {
            Ok(address) => addresses.push(address),
            Err(blocked) => refused = refused.or(Some(blocked)),
        }
    }
    match refused {
        Some(blocked) if addresses.is_empty() => Err(blocked),
        _ => Ok(in_turn(addresses)),
    }
}

/// Both families in turn: where one of them leads nowhere, all of its addresses do.
fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (like_first, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first_is_v4);
    let mut other = other.into_iter();
    let mut ordered: Vec<SocketAddr> =
        like_first.into_iter().flat_map(|address| [Some(address), other.next()]).flatten().collect();
    ordered.extend(other);
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

/// An error of the system without its number, which only programmers can read.
pub(super) fn io_text(error: &io::Error) -> String {
    let kind = error.kind().to_string();
    let is_plain = error.raw_os_error().is_some() && kind != "uncategorized error";
    if is_plain { kind } else { error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn only_addresses_that_pass_are_tried_and_both_families_in_turn() {
        let found =
            ips(&["10.0.0.1", "2620:fe::1", "2620:fe::2", "::1", "9.9.9.9", "::ffff:9.9.9.10", "9.9.9.11"]);
        let addresses = judged(&Guard::default(), &found, 443).unwrap();
        let ordered: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
        assert_eq!(ordered, ["2620:fe::1", "9.9.9.9", "2620:fe::2", "9.9.9.10"]);
    }

    #[test]
    fn when_no_address_passes_the_first_reason_is_given() {
        let blocked = judged(&Guard::default(), &ips(&["10.0.0.1", "::1"]), 443).unwrap_err();
        assert!(blocked.to_string().contains("10.0.0.1 is a private address"), "{blocked}");
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = SystemResolver::default().resolve("localhost").await.unwrap();
        assert!(found.iter().any(IpAddr::is_loopback), "{found:?}");
    }
}
