//! URLs that mean what they say, letter by letter. Most are such, and need not be taken apart by the rules of browsers,
//! which is a tenth of the work of a call.
//!
//! A URL is plain if those rules would leave it as it is. What is not plain for certain goes the long way, and a property
//! test holds that the two agree: what may be called is decided by what they answer.

use std::net::Ipv4Addr;

use http::Uri;
use url::Host;

/// Where a plain URL leads; `None` if it is not plain.
pub fn place(text: &str) -> Option<(Uri, Host<String>, u16)> {
    let (rest, usual) = match text.strip_prefix("http://") {
        Some(rest) => (rest, 80),
        None => (text.strip_prefix("https://")?, 443),
    };
    let (authority, path) = rest.split_at(rest.find('/')?);
    if !is_plain_path(path) {
        return None;
    }
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => (name, plain_port(port).filter(|port| *port != usual)?),
        None => (authority, usual),
    };
    Some((Uri::try_from(text).ok()?, plain_host(name)?, port))
}

/// Digits without a zero before them.
fn plain_port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

/// A name in small letters, of which the last part is a word; or an address of four numbers.
fn plain_host(name: &str) -> Option<Host<String>> {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-');
    // Two dashes may stand for letters of another script.
    if !name.bytes().all(is_plain) || name.contains("--") {
        return None;
    }
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Some(Host::Ipv4(address));
    }
    let last = name.rsplit('.').next()?;
    // Whatever ends with a number is taken for an address, in ways that few expect.
    let is_word = last.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_name = is_word && name.split('.').all(|part| !part.is_empty());
    is_name.then(|| Host::Domain(name.to_owned()))
}

/// Nothing that would be written in another way, and no part that leads back.
fn is_plain_path(path: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'=' | b'&' | b'.');
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    path.bytes().chain(query.bytes()).all(plain) && !path.contains("/.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::*;

    /// The long way.
    fn by_the_rules(text: &str) -> Option<(Uri, Host<String>, u16)> {
        let url = Url::parse(text).ok()?;
        let host = url.host()?.to_owned();
        Some((Uri::try_from(url.as_str()).ok()?, host, url.port_or_known_default()?))
    }

    #[test]
    fn most_urls_are_plain() {
        for text in [
            "http://127.0.0.1:8000/hello.txt",
            "https://api.example.com/v1/orders/7?notify=yes&by=mail",
            "https://my-hooks.example.com:8443/a-b_c",
        ] {
            assert_eq!(place(text), by_the_rules(text), "{text}");
            assert!(place(text).is_some(), "{text}");
        }
    }

    #[test]
    fn what_may_mean_something_else_is_not_plain() {
        for text in [
            "HTTP://a.example/",
            "http://a.example",
            "http://A.example/",
            "http://a.example:80/",
            "http://a.example:080/",
            "http://a.example:/",
            "http://a.example:+8/",
            "http://user@a.example/",
            "http://a.example./",
            "http://.a.example/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://1.2.3.4.5/",
            "http://a.0x1/",
            "http://[::1]/",
            "http://xn--bcher-kva.example/",
            "http://a.example/../b",
            "http://a.example/%2e%2e/b",
            "http://a.example/a b",
            "http://a.example/#f",
            "http://a.example\\@b.example/",
        ] {
            assert_eq!(place(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn the_short_way_and_the_long_one_lead_to_the_same_place(
            scheme in "https?://",
            host in "[a-z0-9.:@x\\[\\]%-]{0,12}|[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}(:[0-9]{0,6})?|[a-z]{1,5}\\.[a-z]{2}",
            path in "|/[a-z./?&=%#~-]{0,10}|/\\PC{0,6}",
        ) {
            let text = format!("{scheme}{host}{path}");
            if let Some(plain) = place(&text) {
                prop_assert_eq!(Some(plain), by_the_rules(&text));
            }
        }
    }
}
