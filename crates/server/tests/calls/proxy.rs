//! Calls through a proxy: a tunnel for TLS, whole URLs for the rest, and what may be called is still judged here.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get as route;
use http::HeaderMap;
use punctual_server::call::{Caller, CallerOptions, Guard, Resolve, Resolved};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::servers::*;
use crate::tls::serve_tls;

/// A proxy that finds every name at one address, and notes what it was asked: the head of each request.
struct Proxied {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxied {
    async fn to(target: SocketAddr) -> Proxied {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let noted = heads.clone();
        let served = serve_raw(move |connection| pass_on(connection, target, noted.clone())).await;
        Proxied { address: served.address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn pass_on(mut from: TcpStream, target: SocketAddr, heads: Arc<Mutex<Vec<String>>>) {
    let head = read_head(&mut from).await;
    heads.lock().unwrap().push(head.clone());
    let (line, rest) = head.split_once("\r\n").unwrap();
    let (method, to) = (line.split(' ').next().unwrap(), line.split(' ').nth(1).unwrap());
    if to.starts_with("refused.test") {
        return from.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
    }
    let mut to_target = TcpStream::connect(target).await.unwrap();
    if method == "CONNECT" {
        from.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    } else {
        let path = to.strip_prefix("http://").and_then(|to| to.find('/').map(|at| &to[at..]));
        let path = path.unwrap_or_else(|| panic!("it is no whole URL: {line}"));
        to_target.write_all(format!("{method} {path} HTTP/1.1\r\n{rest}").as_bytes()).await.unwrap();
    }
    copy_bidirectional(&mut from, &mut to_target).await.ok();
}

/// Says what it was asked, and by whom.
async fn target() -> Served {
    let hello = async |headers: HeaderMap| {
        let host = headers["host"].to_str().unwrap().to_owned();
        format!("{host} {}", headers.contains_key("proxy-authorization"))
    };
    serve(Router::new().route("/x", route(hello))).await
}

/// Calls through this proxy; names are where the resolver says, which the proxy does not ask.
fn through(proxy: &Proxied, credentials: &str, resolver: Arc<dyn Resolve>) -> CallerOptions {
    let proxy = format!("http://{credentials}{}", proxy.address).parse().unwrap();
    CallerOptions { proxy: Some(proxy), resolver, ..options() }
}

fn public() -> Arc<Scripted> {
    Scripted::new(&[&["9.9.9.9"]])
}

#[tokio::test]
async fn a_plain_call_is_a_whole_url_and_keeps_its_host() {
    let proxy = Proxied::to(target().await.address).await;
    let caller = Caller::new(through(&proxy, "", public()));
    let got = result(outcome(&caller, attempt(), get("http://target.test/x")).await);
    assert_eq!(got["body"], "target.test false");
    assert!(proxy.heads()[0].starts_with("GET http://target.test/x HTTP/1.1\r\n"), "{:?}", proxy.heads());
}

#[tokio::test]
async fn tls_goes_through_a_tunnel_and_the_proxy_sees_nothing_of_it() {
    let (address, certificate) = serve_tls(|_| {}).await;
    let proxy = Proxied::to(address).await;
    let options =
        CallerOptions { extra_roots: vec![certificate], ..through(&proxy, "ana:secret@", public()) };
    let got = outcome(&Caller::new(options), attempt(), get("https://secure.test/path")).await;
    assert_eq!(result(got)["body"], "secret");
    let expected = "CONNECT secure.test:443 HTTP/1.1\r\nhost: secure.test:443\r\n\
                    proxy-authorization: Basic YW5hOnNlY3JldA==\r\n\r\n";
    assert_eq!(proxy.heads(), [expected]);
}

#[tokio::test]
async fn credentials_are_for_the_proxy_and_reach_nobody_else() {
    let proxy = Proxied::to(target().await.address).await;
    let caller = Caller::new(through(&proxy, "ana:secret@", public()));
    let got = result(outcome(&caller, attempt(), get("http://target.test/x")).await);
    assert_eq!(got["body"], "target.test false");
    assert!(proxy.heads()[0].starts_with("CONNECT target.test:80 "), "{:?}", proxy.heads());
}

#[tokio::test]
async fn what_may_not_be_called_is_not_called_through_a_proxy_either() {
    let proxy = Proxied::to(target().await.address).await;
    let guarded = |resolver: Arc<dyn Resolve>| {
        Caller::new(CallerOptions { guard: Guard::default(), ..through(&proxy, "", resolver) })
    };
    for (url, at, why) in [
        ("http://10.0.0.1/x", "9.9.9.9", "10.0.0.1 is a private address"),
        ("http://inside.test/x", "169.254.169.254", "it is where inside.test is"),
        ("http://target.test:6379/x", "9.9.9.9", "port 6379 is not one of"),
    ] {
        let text = error(outcome(&guarded(Scripted::new(&[&[at]])), attempt(), get(url)).await);
        assert!(text.contains(why), "{url}: {text}");
    }
    assert!(proxy.heads().is_empty(), "{:?}", proxy.heads());
}

#[tokio::test]
async fn our_own_networks_are_called_without_it_and_unknown_names_are_left_to_it() {
    struct Unknown;
    impl Resolve for Unknown {
        fn resolve(&self, _: &str) -> Resolved {
            Box::pin(async { Err(std::io::Error::other("no such name")) })
        }
    }
    let target = target().await;
    let proxy = Proxied::to(target.address).await;
    let caller = Caller::new(through(&proxy, "", public()));
    result(outcome(&caller, attempt(), get(target.url("/x"))).await);
    assert!(proxy.heads().is_empty(), "this machine is called straight: {:?}", proxy.heads());
    let caller = Caller::new(through(&proxy, "", Arc::new(Unknown)));
    result(outcome(&caller, attempt(), get("http://only.the.proxy.knows/x")).await);
    assert_eq!(proxy.heads().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_refuses_hangs_or_is_gone_is_a_clear_failure() {
    let proxy = Proxied::to(target().await.address).await;
    let caller = Caller::new(through(&proxy, "", public()));
    let refused = error(outcome(&caller, attempt(), get("https://refused.test/")).await);
    let expected =
        format!("could not connect to refused.test:443: the proxy {} refuses it (403)", proxy.address);
    assert_eq!(refused, expected);

    let silent = serve_raw(async |mut connection: TcpStream| {
        let mut sink = Vec::new();
        connection.read_to_end(&mut sink).await.ok();
    });
    let silent = Proxied { address: silent.await.address, heads: Arc::default() };
    let options = CallerOptions { connect_timeout: SHORT, ..through(&silent, "", public()) };
    let text = error(outcome(&Caller::new(options), attempt(), get("https://target.test/")).await);
    assert!(text.contains("no tunnel from the proxy"), "{text}");

    let gone = Proxied { address: ([127, 0, 0, 1], 1).into(), heads: Arc::default() };
    let caller = Caller::new(through(&gone, "", public()));
    let text = error(outcome(&caller, attempt(), get("http://target.test/x")).await);
    assert!(text.contains("the proxy 127.0.0.1:1 is not there: connection refused"), "{text}");
}
