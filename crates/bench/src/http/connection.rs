//! The generator: requests as bytes over connections that stay open. It does as little as it can, because it shares the
//! machine with what it measures.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that one request after the other goes over.
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

/// What came back.
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

/// The bytes of a request, which can be sent again and again.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, read: Vec::new() })
    }

    /// Sends a request and waits for all of its answer.
    pub async fn ask(&mut self, request: &[u8]) -> Answer<'_> {
        self.stream.write_all(request).await.expect("the server reads");
        self.read.clear();
        let (status, from, length) = loop {
            self.read_more().await;
            if let Some(head) = head(&self.read) {
                break head;
            }
        };
        while self.read.len() < from + length {
            self.read_more().await;
        }
        Answer { status, body: &self.read[from..from + length] }
    }

    /// The same, for a request that must succeed.
    pub async fn ask_well(&mut self, request: &[u8]) -> &[u8] {
        let Answer { status, body } = self.ask(request).await;
        assert!(status < 300, "{status} {}", String::from_utf8_lossy(body));
        body
    }

    async fn read_more(&mut self) {
        let count = self.stream.read_buf(&mut self.read).await.expect("the server answers");
        assert!(count > 0, "the server closed the connection");
    }
}

/// Status, where the body begins, and how long it is, once the head is there.
fn head(bytes: &[u8]) -> Option<(u16, usize, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(from) = response.parse(bytes).expect("the server speaks HTTP") else {
        return None;
    };
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or("0", |header| str::from_utf8(header.value).expect("a length is text"));
    Some((response.code.unwrap_or(0), from, length.parse().expect("a length is a number")))
}
