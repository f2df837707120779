//! Answers that flow: lines as they come, and the events in them.

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::header::ACCEPT;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;

use super::Client;
use super::error::Error;
use crate::wire::{Event, EventKind, EventQuery};

/// An event has a task without what it carries.
const LINE_BYTES_MAX: usize = 1024 * 1024;

impl Client {
    /// Listens to what happens, from now on, until the connection ends.
    ///
    /// What happened in between connections is not told again: look at the tasks themselves. The same goes for whoever
    /// is too slow: `EventKind::EventsMissed` stands where some are missing. Kinds of events that this crate does not know
    /// are left out.
    pub async fn events(
        &self,
        query: &EventQuery,
    ) -> Result<impl Stream<Item = Result<Event, Error>> + Send + 'static, Error> {
        let asking = self.get_path("/v1/events".to_owned()).query(query);
        let answer = asking.header(ACCEPT, "text/event-stream").open().await?;
        Ok(Box::pin(events_of(lines_of(answer, LINE_BYTES_MAX))))
    }
}

/// The lines of an answer, without what ends them.
pub(crate) fn lines_of(
    answer: Incoming,
    line_bytes_max: usize,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let start = Lines { answer: Some(answer), unread: BytesMut::new(), searched: 0, line_bytes_max };
    stream::unfold(start, async |mut lines| lines.next().await.map(|line| (line, lines)))
}

struct Lines {
    /// Nothing once it has ended.
    answer: Option<Incoming>,
    unread: BytesMut,
    /// Up to here there is no end of a line in what is unread.
    searched: usize,
    line_bytes_max: usize,
}

impl Lines {
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        loop {
            if let Some(at) = self.unread[self.searched..].iter().position(|byte| *byte == b'\n') {
                let mut line = self.unread.split_to(self.searched + at);
                self.unread.advance(1);
                self.searched = 0;
                if line.last() == Some(&b'\r') {
                    line.truncate(line.len() - 1);
                }
                return Some(Ok(line.freeze()));
            }
            self.searched = self.unread.len();
            if self.searched > self.line_bytes_max {
                self.answer = None;
                self.unread.clear();
                self.searched = 0;
                return Some(Err(Error::Unreadable("a line of the answer has no end".into())));
            }
            match self.answer.as_mut()?.frame().await {
                Some(Ok(frame)) => self.unread.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
                Some(Err(error)) => {
                    self.answer = None;
                    return Some(Err(Error::Unknown(Box::new(error))));
                }
                None => {
                    self.answer = None;
                    self.searched = 0;
                    let rest = self.unread.split().freeze();
                    return if rest.is_empty() { None } else { Some(Ok(rest)) };
                }
            }
        }
    }
}

/// The events in a stream of lines, as the HTML standard has them: fields, ended by an empty line.
fn events_of(
    lines: impl Stream<Item = Result<Bytes, Error>> + Send,
) -> impl Stream<Item = Result<Event, Error>> + Send {
    let mut data = BytesMut::new();
    lines.filter_map(move |line| {
        let event = match line {
            Err(error) => Some(Err(error)),
            Ok(line) if line.is_empty() => event_of(&std::mem::take(&mut data)),
            Ok(line) => {
                if let Some(text) = line.strip_prefix(b"data:") {
                    data.extend_from_slice(text.strip_prefix(b" ").unwrap_or(text));
                    data.extend_from_slice(b"\n");
                }
                // A line that is too long is refused before it comes here, and so are too many of them.
                (data.len() > LINE_BYTES_MAX).then(|| {
                    data.clear();
                    Err(Error::Unreadable("an event is too long".into()))
                })
            }
        };
        std::future::ready(event)
    })
}

fn event_of(data: &[u8]) -> Option<Result<Event, Error>> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    if data.is_empty() {
        return None;
    }
    match serde_json::from_slice::<Kind>(data) {
        Ok(Kind { kind }) if EventKind::ALL.iter().all(|known| known.as_str() != kind) => None,
        _ => Some(serde_json::from_slice(data).map_err(|error| Error::Unreadable(Box::new(error)))),
    }
}
