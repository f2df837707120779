//! The body of an answer, as it goes out: its request is being answered until all of it was handed on.
//!
//! Whoever listens to what happens, or sends a task in each line while the answers come, is not idle, and what they send
//! is no head.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::patience::Progress;

/// A body.
pub struct Answering {
    body: Body,
    progress: Progress,
}

impl Answering {
    /// That body. When it goes, its request is answered.
    pub fn new(body: Body, progress: Progress) -> Answering {
        Answering { body, progress }
    }
}

impl hyper::body::Body for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.progress.end();
    }
}
