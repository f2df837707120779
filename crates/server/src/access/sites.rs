//! While there are no keys, only programs of this machine are let in, and no web page of somebody else.
//!
//! A page could have the browser of whoever looks at it ask us, in two ways. It asks across sites: the browser says so in
//! `Origin` and `Sec-Fetch-Site`. Or it has its own name lead to this machine once it is loaded (DNS rebinding): to the
//! browser that is one site, but its name stands in `Host`, where ours are the loopback addresses and `localhost`.

use std::net::IpAddr;

use axum::extract::Request;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, header};

use crate::api::Failure;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses what a page of another site asks, and what is asked under another name than this machine's.
pub fn refuse_others(request: &Request) -> Result<(), Failure> {
    let headers = request.headers();
    // HTTP/1.0 need not say whom it asks; a browser always does.
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    if let Some(host) =
        request.uri().authority().map(Authority::as_str).into_iter().chain(hosts).find(|host| !is_ours(host))
    {
        let detail = format!(
            "{host:?} is not this machine: while there are no keys, ask 127.0.0.1, [::1] or localhost"
        );
        return Err(Failure::new("host_foreign", detail));
    }
    refuse_other_sites(headers)
}

fn is_ours(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // The colons of a bare address in brackets are its own.
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = || bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    port.bytes().all(|byte| byte.is_ascii_digit())
        && (name.eq_ignore_ascii_case("localhost") || is_loopback())
}

fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Failure> {
    let all = |name: HeaderName| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_other = |origin: &&str| origin.split_once("://").is_none_or(|(_, site)| Some(site) != host);
    let other = all(header::ORIGIN).find(is_other);
    let is_cross_site = all(FETCH_SITE).any(|site| site.eq_ignore_ascii_case("cross-site") || site == "?");
    if other.is_none() && !is_cross_site {
        return Ok(());
    }
    let from = other.map_or_else(|| "another site".to_owned(), |origin| format!("{origin:?}"));
    let detail = format!("a page of {from} asks: other sites are not let in while there are no keys");
    Err(Failure::new("origin_foreign", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_few_names() {
        for ours in [
            "localhost",
            "LOCALHOST:8700",
            "127.0.0.1",
            "127.8.9.10:1",
            "[::1]",
            "[::1]:8700",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        let names = [
            "",
            "evil.example",
            "evil.example:8700",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
        ];
        for other in names.into_iter().chain([
            "[::2]",
            "0.0.0.0",
            "evil@localhost:x",
            "evil@localhost",
            "localhost,evil.example",
        ]) {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn what_a_browser_says_of_a_site_counts_in_whatever_way_it_is_said() {
        let refused = |pairs: &[(HeaderName, &[u8])]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, http::HeaderValue::from_static("localhost:8700"));
            for (name, value) in pairs {
                headers.append(name, http::HeaderValue::from_bytes(value).unwrap());
            }
            refuse_other_sites(&headers).is_err()
        };
        let (own, other): (&[u8], &[u8]) = (b"http://localhost:8700", b"http://evil.example");
        assert!(!refused(&[]) && !refused(&[(header::ORIGIN, own)]) && refused(&[(header::ORIGIN, other)]));
        assert!(refused(&[(header::ORIGIN, own), (header::ORIGIN, other)]), "the second one counts too");
        assert!(refused(&[(header::ORIGIN, b"\xff")]) && refused(&[(header::ORIGIN, b"null")]));
        assert!(!refused(&[(FETCH_SITE, b"same-origin")]) && refused(&[(FETCH_SITE, b"cross-site")]));
        assert!(
            refused(&[(FETCH_SITE, b"none"), (FETCH_SITE, b"Cross-Site")])
                && refused(&[(FETCH_SITE, b"\xff")])
        );
    }
}
