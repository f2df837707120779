//! What a connection too many is told before it is closed.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::api::Failure;

/// So many are told at once; who comes then is closed without a word, so that saying no costs little.
const TOLD_MAX: usize = 64;
/// How long one may take to listen.
const LISTENS_MAX: Duration = Duration::from_secs(1);

static TOLD: Semaphore = Semaphore::const_new(TOLD_MAX);
static ANSWER: LazyLock<String> = LazyLock::new(answer);

fn answer() -> String {
    let detail =
        "as many connections are open as this server takes: close those that you do not need, and try again";
    last_answer("503 Service Unavailable\r\nretry-after: 1", Failure::new("connections_full", detail))
}

/// The last thing that is said on a connection, as it goes over the wire: a status, with more headers if there are, and
/// why.
pub fn last_answer(status: &str, Failure(problem): Failure) -> String {
    let body = serde_json::to_string(&problem).unwrap_or_default();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Says why, and hangs up. Over TLS nothing can be said without a handshake, which is what there is no room for.
pub fn turn_away(mut stream: TcpStream, is_tls: bool) {
    let Ok(told) = TOLD.try_acquire() else { return };
    if is_tls {
        return;
    }
    tokio::spawn(async move {
        let _told = told;
        let telling = async {
            stream.write_all(ANSWER.as_bytes()).await?;
            stream.shutdown().await?;
            // Closed while something unread is there, the answer could be lost on its way.
            let mut unread = [0; 1024];
            while stream.read(&mut unread).await? > 0 {}
            std::io::Result::Ok(())
        };
        tokio::time::timeout(LISTENS_MAX, telling).await.ok();
    });
}
