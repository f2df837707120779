//! Whether a call can be made at all: told when the task is made, not when it is due.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Method, Uri};
use url::{Host, Url};

use super::{Call, Guard, plain};
use crate::access::NAMESPACE;

const URL_MAX: usize = 2_048;
const HEADERS_MAX: usize = 32;
const HEADER_BYTES_MAX: usize = 8 * 1_024;
const METHOD_MAX: usize = 32;
/// An attempt holds a slot and a connection for so long at most.
const TIMEOUT_MAX: Duration = Duration::from_secs(30 * 60);

/// They belong to one connection, or are made from the body and the URL: who could set them could make two requests
/// of one.
const OF_THE_CONNECTION: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// A called server must be able to believe them.
const OURS: [&str; 3] = ["idempotency-key", "traceparent", "tracestate"];
const OURS_BEGIN_WITH: [&str; 2] = ["punctual-", "webhook-"];

/// Why a call cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadCall {
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it.
    pub detail: String,
}

impl fmt::Display for BadCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}

impl std::error::Error for BadCall {}

fn bad(field: &'static str, detail: impl Into<String>) -> BadCall {
    BadCall { field, detail: detail.into() }
}

impl Call {
    /// Whether it can be made, as far as that can be said without resolving its name.
    pub fn check(&self, guard: &Guard) -> Result<(), BadCall> {
        let place = Place::of(&self.url)?;
        place.check(guard)?;
        parse_method(&self.method)?;
        check_headers(&self.headers)?;
        match self.timeout {
            Some(Duration::ZERO) => Err(bad("timeout", "must not be zero")),
            Some(timeout) if timeout > TIMEOUT_MAX => Err(bad("timeout", "must not be above 30 minutes")),
            _ => Ok(()),
        }
    }

    /// The name under which limits and breakers are kept: host and port, in small letters. What cannot be called goes
    /// to `nowhere`. Each namespace has its own, so that nobody's failures keep others from a host that is well.
    pub fn destination(&self, namespace: &str) -> String {
        let place = Place::of(&self.url).map_or_else(|_| "nowhere".to_string(), |place| place.to_string());
        if namespace == NAMESPACE { place } else { format!("{namespace}/{place}") }
    }
}

/// Where a call goes, from its URL.
pub(super) struct Place {
    pub uri: Uri,
    pub host: Host<String>,
    pub port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Place {
    /// The place that this URL names.
    pub fn of(text: &str) -> Result<Place, BadCall> {
        let refuse = |detail: &str| Err(bad("url", detail));
        if text.len() > URL_MAX {
            return refuse(&format!("has {} bytes, and {URL_MAX} is the most", text.len()));
        }
        if let Some((uri, host, port)) = plain::place(text) {
            return Ok(Place { uri, host, port });
        }
        // What browsers forgive is refused: a URL must not mean one thing here and another to whoever reads it.
        if text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ' || byte == b'\\') {
            return refuse("must not hold spaces, backslashes or control characters");
        }
        let Some(rest) = without_scheme(text) else {
            return refuse("must begin with http:// or https://");
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return refuse("has no host");
        }
        if authority.contains('@') {
            return refuse("must not hold a user or a password: send them in a header");
        }
        if text.contains('#') {
            return refuse("must not have a fragment: it would never be sent");
        }
        let url = Url::parse(text).map_err(|error| bad("url", format!("is not a URL: {error}")))?;
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return refuse("has no host");
        };
        if port == 0 {
            return refuse("must not have the port 0");
        }
        let host = match host.to_owned() {
            Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_string()),
            address => address,
        };
        let uri =
            Uri::try_from(url.as_str()).map_err(|error| bad("url", format!("is not a URL: {error}")))?;
        Ok(Place { uri, host, port })
    }

    /// Host and port, for people: without a port that goes without saying. Written only when somebody is told.
    pub fn name(&self) -> impl fmt::Display {
        let usual = if self.uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        fmt::from_fn(move |f| match self.port == usual {
            true => write!(f, "{}", self.host),
            false => write!(f, "{self}"),
        })
    }

    fn check(&self, guard: &Guard) -> Result<(), BadCall> {
        let allowed = match &self.host {
            Host::Domain(name) => guard.check_name(name, self.port),
            Host::Ipv4(ip) => guard.check(SocketAddr::from((*ip, self.port))).map(drop),
            Host::Ipv6(ip) => guard.check(SocketAddr::from((*ip, self.port))).map(drop),
        };
        allowed.map_err(|blocked| bad("url", blocked.to_string()))
    }
}

fn without_scheme(text: &str) -> Option<&str> {
    let strip = |scheme: &str| {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    strip("http://").or_else(|| strip("https://"))
}

/// A method as HTTP knows it: those of the standard are in capitals, however they are written; others are as they are.
pub fn method_of(text: &str) -> String {
    let capitals = text.to_ascii_uppercase();
    let standard = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    if standard.contains(&capitals.as_str()) { capitals } else { text.to_owned() }
}

pub(super) fn parse_method(text: &str) -> Result<Method, BadCall> {
    if text.len() > METHOD_MAX {
        return Err(bad("method", format!("must not be longer than {METHOD_MAX} letters")));
    }
    let method = Method::from_bytes(text.as_bytes())
        .map_err(|_| bad("method", "must be a word like GET, POST or PURGE, without spaces"))?;
    // It would make a tunnel of the connection, past everything that is checked here.
    if text.eq_ignore_ascii_case("CONNECT") {
        return Err(bad("method", "CONNECT cannot be called"));
    }
    Ok(method)
}

fn check_headers(headers: &[(String, String)]) -> Result<(), BadCall> {
    if headers.len() > HEADERS_MAX {
        return Err(bad("headers", format!("there are {}, and {HEADERS_MAX} is the most", headers.len())));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > HEADER_BYTES_MAX {
        return Err(bad("headers", format!("they have {bytes} bytes, and {HEADER_BYTES_MAX} is the most")));
    }
    headers.iter().try_for_each(|(name, value)| parse_header(name, value).map(drop))
}

pub(super) fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), BadCall> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| bad("headers", format!("`{}` is not the name of a header", name.escape_debug())))?;
    if OF_THE_CONNECTION.contains(&parsed.as_str()) {
        return Err(bad("headers", format!("`{parsed}` belongs to the connection, and cannot be set")));
    }
    let ours = OURS_BEGIN_WITH.iter().any(|start| parsed.as_str().starts_with(start));
    if ours || OURS.contains(&parsed.as_str()) {
        return Err(bad("headers", format!("`{parsed}` is set by Punctual, and cannot be set")));
    }
    // The value may be a secret, so that the error does not repeat it.
    let value = HeaderValue::from_str(value).map_err(|_| {
        bad("headers", format!("the value of `{parsed}` must be printable ASCII, in one line"))
    })?;
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(call: &Call) -> String {
        call.check(&Guard::default()).expect_err("it should have been refused").to_string()
    }

    fn refused_url(url: &str) -> String {
        refusal(&Call::post(url))
    }

    fn with_header(name: &str, value: &str) -> Call {
        Call { headers: vec![(name.into(), value.into())], ..Call::post("https://a.example") }
    }

    #[test]
    fn good_calls_are_good() {
        let guard = Guard::default();
        for url in [
            "http://a.example",
            "HTTPS://API.example.com:8443/x?y={z}|w",
            "https://bücher.example/ä?ö",
            "https://9.9.9.9/",
            "https://[2620:fe::fe]:443/",
            "https://a.example/a@b",
        ] {
            assert_eq!(Call::post(url).check(&guard), Ok(()), "{url}");
        }
        for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "X-own"] {
            let call = Call { method: method.into(), ..Call::post("https://a.example") };
            assert_eq!(call.check(&guard), Ok(()), "{method}");
        }
        assert_eq!(with_header("Authorization", "Bearer x").check(&guard), Ok(()));
    }

    #[test]
    fn a_bad_url_is_refused_with_a_reason() {
        for (url, reason) in [
            ("ftp://a.example/", "http:// or https://"),
            ("a.example/", "http:// or https://"),
            ("http:a.example", "http:// or https://"),
            ("http:///a.example", "no host"),
            ("http://", "no host"),
            ("http://?x", "no host"),
            ("http://user@a.example/", "user"),
            ("http://user:pass@a.example/", "user"),
            ("http://@a.example/", "user"),
            ("http://a.example/#top", "fragment"),
            ("http://a.example\\@b.example/", "backslashes"),
            ("http://a.example/\r\nx: y", "control"),
            ("http://a.example:25/", "port 25"),
            ("http://a.example:0/", "port 0"),
            ("http://a.example:99999/", "not a URL"),
            ("http://[fe80::1%25eth0]/", "not a URL"),
            ("http://localhost/", "loopback"),
        ] {
            let error = refused_url(url);
            assert!(error.starts_with("url: ") && error.contains(reason), "{url}: {error}");
        }
        let long = format!("http://a.example/{}", "x".repeat(URL_MAX));
        assert!(refused_url(&long).contains("2048 is the most"));
    }

    #[test]
    fn an_address_is_seen_through_however_it_is_written() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://%31%32%37.0.0.1/",
            "http://１２７.0.0.1/",
            "http://127.0.0.1./",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:127.0.0.1]/",
            "http://0/",
            "http://[::]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[fd00:ec2::254]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
        ] {
            assert!(refused_url(url).starts_with("url: blocked: "), "{url}");
        }
    }

    #[test]
    fn headers_of_the_connection_and_our_own_are_refused() {
        let own = ["Idempotency-Key", "traceparent", "Webhook-Id", "webhook-signature", "PUNCTUAL-fence"];
        for name in own {
            assert!(refusal(&with_header(name, "x")).contains("set by Punctual"), "{name}");
        }
        for name in ["Host", "Content-Length", "Transfer-Encoding", "Connection", "TE", "Upgrade", "Expect"] {
            assert!(refusal(&with_header(name, "x")).contains("belongs to the connection"), "{name}");
        }
    }

    #[test]
    fn headers_have_their_form_and_their_limits() {
        assert!(refusal(&with_header("a b", "x")).contains("not the name"));
        assert!(refusal(&with_header("", "x")).contains("not the name"));
        let error = refusal(&with_header("x-key", "secret\r\nx-other: y"));
        assert!(error.contains("x-key") && !error.contains("secret"), "{error}");
        let header = |value: &str| ("x-a".to_string(), value.to_string());
        let many = Call { headers: vec![header("1"); 33], ..Call::post("https://a.example") };
        assert!(refusal(&many).contains("32 is the most"));
        let large = Call { headers: vec![header(&"x".repeat(4_096)); 2], ..Call::post("https://a.example") };
        assert!(refusal(&large).contains("8192 is the most"));
    }

    #[test]
    fn methods_of_the_standard_are_written_as_it_writes_them() {
        let written = ["get", "Post", "PATCH", "purge", "X-own"].map(method_of);
        assert_eq!(written, ["GET", "POST", "PATCH", "purge", "X-own"]);
    }

    #[test]
    fn methods_and_timeouts_have_their_limits() {
        for method in ["", "GE T", "CONNECT", "connect", &"A".repeat(33)] {
            let call = Call { method: method.into(), ..Call::post("https://a.example") };
            assert!(refusal(&call).starts_with("method: "), "{method}");
        }
        for timeout in [Duration::ZERO, TIMEOUT_MAX + Duration::from_millis(1)] {
            let call = Call { timeout: Some(timeout), ..Call::post("https://a.example") };
            assert!(refusal(&call).starts_with("timeout: "), "{timeout:?}");
        }
    }

    #[test]
    fn limits_are_kept_by_host_and_port_however_they_are_written() {
        for (url, destination) in [
            ("https://API.Example.com/x", "api.example.com:443"),
            ("http://api.example.com.:8080", "api.example.com:8080"),
            ("http://bücher.example", "xn--bcher-kva.example:80"),
            ("http://0x7f.1", "127.0.0.1:80"),
            ("http://[0::1]:81/", "[::1]:81"),
        ] {
            assert_eq!(Call::post(url).destination("default"), destination, "{url}");
            assert_eq!(Call::post(url).destination("acme"), format!("acme/{destination}"), "{url}");
        }
    }

    #[test]
    fn what_is_logged_holds_no_secrets() {
        let mut call = with_header("authorization", "Bearer abc123");
        call.url = "https://a.example/hooks/abc123".into();
        call.body = Some("abc123".into());
        let logged = format!("{call:?}");
        assert!(!logged.contains("abc123") && logged.contains("a.example:443"), "{logged}");
    }
}
