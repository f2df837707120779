//! The body of a request, as it comes: it tells whether it was read to its end.
//!
//! Many send all of a body before they read anything. If the connection were closed while some of it is still on its
//! way, they would hear of a broken connection in place of the answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::patience::Progress;

/// A body.
pub struct Watched {
    body: Incoming,
    progress: Progress,
    has_ended: bool,
}

impl Watched {
    /// That body. If it is not read to its end, its connection is told.
    pub fn new(body: Incoming, progress: Progress) -> Watched {
        let has_ended = body.is_end_stream();
        Watched { body, progress, has_ended }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.has_ended |= frame.is_none() || self.body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.has_ended {
            self.progress.leave_unread();
        }
    }
}
