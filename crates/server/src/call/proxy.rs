//! The way out through a proxy: a tunnel for TLS, whole URLs for the rest.
//!
//! A proxy is told names, not addresses, because names are what its rules are about. What may be called is judged here
//! all the same, as far as can be: ports, addresses in URLs, and the addresses that a name has here. What the proxy
//! makes of a name is out of our hands. So it must keep callers out of networks that are nobody's business, as every
//! proxy that is made for this does.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::{Host, Url};

use super::connector::io_text;

/// The head of a proxy's answer may have so many bytes.
const HEAD_MAX: usize = 8 * 1024;

/// A proxy, and what it is asked with.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    pub(super) host: Host<String>,
    pub(super) port: u16,
    /// What is said in `Proxy-Authorization`, if anything.
    credentials: Option<String>,
}

/// What is wrong with a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadProxy;

impl fmt::Display for BadProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be a URL without a path, such as http://proxy.internal:3128 or http://user:password@10.0.0.1:3128")
    }
}

impl std::error::Error for BadProxy {}

impl FromStr for Proxy {
    type Err = BadProxy;

    fn from_str(text: &str) -> Result<Proxy, BadProxy> {
        let url: Url = text.parse().map_err(|_| BadProxy)?;
        let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let host = url.host().filter(|_| is_plain && url.scheme() == "http").ok_or(BadProxy)?.to_owned();
        // They are written in a URL as one writes there, and sent as they are meant.
        let plain = |text: &str| url_decoded(text).ok_or(BadProxy);
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                let pair = format!("{}:{}", plain(user)?, plain(password.unwrap_or_default())?);
                Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
            }
        };
        Ok(Proxy { host, port: url.port_or_known_default().ok_or(BadProxy)?, credentials })
    }
}

fn url_decoded(text: &str) -> Option<String> {
    // `+` is a plus where this is written.
    let pair = format!("x={}", text.replace('+', "%2B"));
    let (_, value) = url::form_urlencoded::parse(pair.as_bytes()).next()?;
    Some(value.into_owned()).filter(|value| !value.contains(char::is_control))
}

/// Without what it is asked with.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl Proxy {
    /// Whether it is asked for a tunnel. For TLS it must be; and if it wants credentials they are said there, so that no
    /// request has them that could reach somebody else.
    pub(super) fn needs_tunnel(&self, is_tls: bool) -> bool {
        is_tls || self.credentials.is_some()
    }

    /// Asks for a tunnel. What comes after this is between us and whoever is called.
    pub(super) async fn open_tunnel(&self, mut tcp: TcpStream, place: &str) -> Result<TcpStream, String> {
        let mut request = format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n");
        if let Some(credentials) = &self.credentials {
            request += &format!("proxy-authorization: {credentials}\r\n");
        }
        request += "\r\n";
        let asked = tcp.write_all(request.as_bytes()).await;
        asked.map_err(|error| format!("the proxy {self} does not listen: {}", io_text(&error)))?;
        let head = self.read_head(&mut tcp).await?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        match status.filter(|_| head.starts_with("HTTP/1.")) {
            Some(200..=299) => Ok(tcp),
            Some(407) => Err(format!("the proxy {self} wants other credentials (407)")),
            Some(status) => Err(format!("the proxy {self} refuses it ({status})")),
            None => Err(format!("what the proxy {self} answered is not HTTP")),
        }
    }

    /// Byte by byte: what follows the head is not ours to read.
    async fn read_head(&self, tcp: &mut TcpStream) -> Result<String, String> {
        let mut head = Vec::with_capacity(256);
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == HEAD_MAX {
                return Err(format!("the proxy {self} says too much"));
            }
            match tcp.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(error) => return Err(format!("the proxy {self} broke off: {}", io_text(&error))),
            }
        }
        Ok(String::from_utf8_lossy(&head).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_plain_url_and_never_shows_its_credentials() {
        let proxy: Proxy = "http://ana:p%40ss+word@proxy.internal:3128".parse().unwrap();
        assert_eq!(proxy.credentials.as_deref(), Some("Basic YW5hOnBAc3Mrd29yZA=="));
        assert_eq!(format!("{proxy} {proxy:?}"), "proxy.internal:3128 Proxy(proxy.internal:3128)");
        assert_eq!("http://[::1]:80/".parse::<Proxy>().unwrap().to_string(), "[::1]:80");
        for bad in
            ["proxy:3128", "https://proxy", "http://proxy/path", "http://", "http://a?b", "http://a%0d:b@c"]
        {
            assert_eq!(bad.parse::<Proxy>(), Err(BadProxy), "{bad}");
        }
    }
}
