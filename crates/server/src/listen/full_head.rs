//! hyper answers a head that does not fit into its buffer by itself, with the status and nothing to read. What it writes
//! then is replaced by an answer that says why.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::turned_away::last_answer;
use crate::api::head_too_large;

/// What hyper's own answer begins with, and what it has that no other of this status has.
const STATUS: &[u8] = b"HTTP/1.1 431 ";
const NOTHING: &[u8] = b"content-length: 0\r\n";

/// Whether this is hyper's own answer to a head that does not fit.
pub fn is_bare(bytes: &[u8]) -> bool {
    bytes.starts_with(STATUS) && bytes.windows(NOTHING.len()).any(|part| part == NOTHING)
}

/// What is said in its place, and how much of it was.
pub struct Instead {
    answer: String,
    written: usize,
}

impl Instead {
    /// Nothing is said yet.
    pub fn new(head_max: usize) -> Instead {
        let status = "431 Request Header Fields Too Large";
        Instead { answer: last_answer(status, head_too_large(head_max)), written: 0 }
    }

    /// Says the rest.
    pub fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = self.answer.as_bytes().get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => self.written += more,
            }
        }
        Poll::Ready(Ok(()))
    }
}
