//! The body of a request, as it comes: it tells whether it was read to its end.
//!
//! Many send all of a body before they read anything. If the connection were closed while some of it is still on its
//! way, they would hear of a broken connection in place of the answer. And if it is going to be closed, the answer says
//! so: whoever sent another request on it could not tell whether it was carried out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::patience::Progress;
use crate::units::KIB;

/// So much of a body that nobody wants is read all the same, and waited for: it costs less than another connection.
const LITTLE: u64 = 16 * KIB as u64;
const LITTLE_WAIT_MAX: Duration = Duration::from_millis(100);

/// A body.
pub struct Watched {
    /// Nothing once it was handed over.
    body: Option<Incoming>,
    progress: Progress,
    has_ended: bool,
    /// Whoever sends it waits to be told so: reading it would tell them.
    is_kept_back: bool,
}

impl Watched {
    /// That body. If it is not read to its end, its connection is told.
    pub fn new(body: Incoming, is_kept_back: bool, progress: Progress) -> Watched {
        let has_ended = body.is_end_stream();
        Watched { body: Some(body), progress, has_ended, is_kept_back }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        let has_ended = frame.is_none() || body.is_end_stream();
        self.has_ended |= has_ended;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        match self.body.take() {
            _ if self.has_ended => {}
            Some(rest) if !self.is_kept_back && is_little(&rest) => self.progress.leave_rest(rest),
            _ => self.progress.leave_unread(),
        }
    }
}

fn is_little(rest: &Incoming) -> bool {
    rest.size_hint().upper().is_some_and(|bytes| bytes <= LITTLE)
}

/// Whether the connection can go on: all of the body was read, or so little was left that it could be read now.
pub async fn goes_on(progress: &Progress) -> bool {
    if let Some(rest) = progress.take_rest()
        // Boxed, because it is seldom: every request would carry the room for it.
        && Box::pin(is_read(rest)).await
    {
        progress.leave_nothing();
    }
    !progress.is_unread()
}

async fn is_read(mut rest: Incoming) -> bool {
    let reading = async { while let Some(Ok(_)) = rest.frame().await {} };
    tokio::time::timeout(LITTLE_WAIT_MAX, reading).await.is_ok() && rest.is_end_stream()
}
