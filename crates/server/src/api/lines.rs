//! Tasks as a stream, one in each line: read as they come, made in batches, and answered in order while more come.
//!
//! Memory is bounded whatever comes: by the longest line, a batch, and the answers that nobody has fetched yet. When
//! those are too many, reading waits: whoever sends very much must read what is answered meanwhile.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::response::Response;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{FutureExt, StreamExt};
use http::{HeaderValue, header};
use punctual_client::wire;
use tokio::sync::mpsc;

use super::ask::{Asker, refuse_coded};
use super::create::{Wishes, failed, schedule_many};
use super::draft::Drafter;
use super::failure::Failure;
use super::reply::push_line;
use crate::access::Asked;
use crate::units::{KIB, MIB};

/// The longest line. The largest payload fits, however its JSON is written.
const LINE_MAX: usize = 8 * MIB;
/// So many tasks are made at once.
const BATCH: usize = 1_000;
/// So many batches of answers wait for whoever sends everything before it reads anything.
const ANSWERS_KEPT: usize = 64;

/// Makes a task of each line, and answers with a line for each.
pub async fn create(
    asked: Arc<Asked>,
    asker: Asker,
    wishes: Wishes,
    request: Request,
) -> Result<Response, Failure> {
    refuse_coded(request.headers())?;
    let body = request.into_body();
    let stream = Stream { asked, asker, wishes };
    // What is wrong with the queue is wrong with every line.
    stream.drafter().await?;
    let (answers, answered) = mpsc::channel(ANSWERS_KEPT);
    tokio::spawn(stream.make_all(body.into_data_stream(), answers));
    let answered = futures_util::stream::unfold(answered, |mut answered| async {
        let lines: Answers = answered.recv().await?;
        Some((lines, answered))
    });
    let mut response = Response::new(Body::from_stream(answered));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(response)
}

struct Stream {
    asked: Arc<Asked>,
    asker: Asker,
    wishes: Wishes,
}

impl Stream {
    async fn drafter(&self) -> Result<Drafter<'_>, Failure> {
        self.wishes.drafter(&self.asked.app, &self.asker.scheduler, &self.asked.name).await
    }

    /// Ends with the body, or when nobody reads the answers any more. If it ends before that, the answer breaks off:
    /// whoever counts the lines must not take it for the end.
    async fn make_all(self, body: BodyDataStream, answers: mpsc::Sender<Answers>) {
        if let Err(why) = self.make_each(body, &answers).await {
            answers.send(Err(std::io::Error::other(why))).await.ok();
        }
    }

    async fn make_each(
        &self,
        mut body: BodyDataStream,
        answers: &mpsc::Sender<Answers>,
    ) -> Result<(), &'static str> {
        let app = &self.asked.app;
        let access = app.access();
        let mut lines = Lines::new(access.limits.body_max.min(LINE_MAX));
        let mut stopping = std::pin::pin!(app.stopping());
        while !lines.finished {
            let more = tokio::select! {
                more = tokio::time::timeout(access.limits.body_timeout, body.next()) => more,
                () = &mut stopping => return Err("the server is stopping"),
            };
            lines.come(more.map_err(|_| "nothing came for too long")?);
            // What has come meanwhile goes into the same batch.
            while !lines.finished && lines.ready.len() < BATCH {
                let Some(more) = body.next().now_or_never() else { break };
                lines.come(more);
            }
            if !access.still_lets(&self.asker.who) {
                return Err("the key is not good any more");
            }
            if !self.asked.held.hold(&access.room, lines.bytes()) {
                lines.refuse("the server holds as much of others' requests as it may: try again in a moment");
            }
            while !lines.ready.is_empty() {
                let rest = lines.ready.split_off(lines.ready.len().min(BATCH));
                let batch = std::mem::replace(&mut lines.ready, rest);
                let answer = self.make(batch).await;
                if answers.send(Ok(answer)).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn make(&self, lines: Vec<Line>) -> Bytes {
        let results = match self.drafter().await {
            Ok(drafter) => {
                let drafted = lines.into_iter().map(|line| drafter.draft(wire::read(&line?)?));
                schedule_many(&self.asker.scheduler, drafted.collect(), self.wishes.shown).await
            }
            Err(Failure(problem)) => lines.iter().map(|_| failed(Failure(problem.clone()))).collect(),
        };
        let mut written = Vec::with_capacity(64 * results.len());
        for result in results {
            push_line(&mut written, &result);
        }
        written.into()
    }
}

/// The answers to a batch.
type Answers = Result<Bytes, std::io::Error>;

type Line = Result<Bytes, Failure>;

/// Cuts what comes into lines. Empty ones are left out.
struct Lines {
    line_max: usize,
    ready: Vec<Line>,
    begun: BytesMut,
    /// The line that has begun is too long: the rest of it is thrown away.
    is_too_long: bool,
    finished: bool,
}

impl Lines {
    fn new(line_max: usize) -> Lines {
        Lines { line_max, ready: Vec::new(), begun: BytesMut::new(), is_too_long: false, finished: false }
    }

    /// How much is held.
    fn bytes(&self) -> usize {
        let ready = self.ready.iter().map(|line| line.as_ref().map_or(0, Bytes::len));
        self.begun.len() + ready.sum::<usize>()
    }

    /// There is no room for what has come.
    fn refuse(&mut self, why: &'static str) {
        self.ready.iter_mut().for_each(|line| *line = Err(Failure::new("overloaded", why)));
    }

    /// What the body says next. If it breaks off, what is left is half a line.
    fn come<E>(&mut self, more: Option<Result<Bytes, E>>) {
        match more {
            Some(Ok(bytes)) => self.push(bytes),
            Some(Err(_)) => self.finished = true,
            None => self.finish(),
        }
    }

    fn push(&mut self, mut bytes: Bytes) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line = bytes.split_to(end);
            bytes.advance(1);
            // Most lines come in one piece, and are not copied.
            match self.begun.is_empty() && !self.is_too_long {
                true => self.take(line),
                false => {
                    self.go_on(&line);
                    self.end();
                }
            }
        }
        self.go_on(&bytes);
    }

    fn go_on(&mut self, part: &[u8]) {
        if self.begun.len() + part.len() > self.line_max {
            self.is_too_long = true;
            self.begun.clear();
        }
        if !self.is_too_long {
            self.begun.extend_from_slice(part);
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_too_long) {
            let detail = format!("a line has {} KiB at most", self.line_max / KIB);
            return self.ready.push(Err(Failure::new("body_too_large", detail)));
        }
        let line = self.begun.split().freeze();
        self.take(line);
    }

    fn take(&mut self, line: Bytes) {
        if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            self.ready.push(Ok(line));
        }
    }

    /// The last line need not end.
    fn finish(&mut self) {
        self.end();
        self.finished = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: &[&[u8]]) -> Vec<Result<String, u16>> {
        let mut lines = Lines::new(LINE_MAX);
        parts.iter().for_each(|part| lines.push(Bytes::copy_from_slice(part)));
        lines.finish();
        let text = |line: Line| match line {
            Ok(line) => Ok(String::from_utf8_lossy(&line).into_owned()),
            Err(Failure(problem)) => Err(problem.status),
        };
        lines.ready.into_iter().map(text).collect()
    }

    #[test]
    fn lines_are_cut_wherever_the_pieces_end() {
        let text = b"one\n\ntwo\r\n  \nthree";
        let whole = cut(&[text]);
        assert_eq!(whole, [Ok("one".into()), Ok("two\r".into()), Ok("three".into())]);
        for place in 0..text.len() {
            assert_eq!(cut(&[&text[..place], &text[place..]]), whole, "cut at {place}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_spoils_no_other_and_is_not_kept() {
        let long = vec![b'x'; LINE_MAX / 2 + 1];
        let mut lines = Lines::new(LINE_MAX);
        lines.push(Bytes::from_static(b"one\n"));
        for _ in 0..10 {
            lines.push(long.clone().into());
            assert!(lines.begun.len() <= LINE_MAX);
        }
        lines.push(Bytes::from_static(b"x\ntwo\n"));
        lines.finish();
        let statuses: Vec<Option<u16>> =
            lines.ready.iter().map(|line| line.as_ref().err().map(|it| it.0.status)).collect();
        assert_eq!(statuses, [None, Some(413), None]);
    }
}
