//! Making tasks: one, many, or a stream of them.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::header::HeaderName;
use http::{Method, StatusCode};
use hyper::body::Frame;

use super::Client;
use super::error::Error;
use super::events::lines_of;
use super::request::{Asking, Items, segment};
use crate::wire::{CreateResult, NewTask, Results, Task, TaskId};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const PREFER: HeaderName = HeaderName::from_static("prefer");
/// So many tasks of a stream are written in one piece, if they are there.
const LINES_PER_PIECE: usize = 256;
/// A result has a task without what it carries.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// A request that makes tasks, to be told more.
#[derive(Clone, Debug)]
pub struct Creating {
    client: Client,
    queue: String,
    key: Option<String>,
    is_minimal: bool,
}

/// What became of a task that was to be made.
#[derive(Clone, PartialEq, Debug)]
pub struct Created {
    /// Whether it is new. If not, a task of the same identity was there.
    pub is_new: bool,
    /// The task that stands for the request.
    pub task: Task,
}

impl Client {
    /// A request that makes tasks in that queue.
    pub fn creating(&self, queue: &str) -> Creating {
        Creating { client: self.clone(), queue: queue.to_owned(), key: None, is_minimal: false }
    }

    /// Makes a task.
    pub async fn create(&self, queue: &str, task: &NewTask) -> Result<Created, Error> {
        self.creating(queue).one(task).await
    }

    /// Makes up to 10,000 tasks. Each has a result of its own, in order.
    pub async fn create_many(&self, queue: &str, tasks: &[NewTask]) -> Result<Vec<CreateResult>, Error> {
        self.creating(queue).many(tasks).await
    }
}

impl Creating {
    /// The same key with the same tasks within 24 hours gets the first answer again, and makes nothing new.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Creating {
        self.key = Some(key.into());
        self
    }

    /// Results of many have only the ids of tasks.
    pub fn minimal(mut self) -> Creating {
        self.is_minimal = true;
        self
    }

    /// Makes a task.
    pub async fn one(&self, task: &NewTask) -> Result<Created, Error> {
        let (status, task) = self.asking(false).json(task).read_with_status().await?;
        Ok(Created { is_new: status == StatusCode::CREATED, task })
    }

    /// Makes a task, and answers only with its id.
    pub async fn one_id(&self, task: &NewTask) -> Result<String, Error> {
        self.asking(true).json(task).read::<TaskId>().await.map(|task| task.id)
    }

    /// Makes up to 10,000 tasks. Each has a result of its own, in order.
    pub async fn many(&self, tasks: &[NewTask]) -> Result<Vec<CreateResult>, Error> {
        let results: Results<CreateResult> =
            self.asking(self.is_minimal).json(&Items { tasks }).read().await?;
        Ok(results.results)
    }

    /// Makes the tasks of a stream while it flows. The results come in order.
    pub async fn stream<S>(
        &self,
        tasks: S,
    ) -> Result<impl Stream<Item = Result<CreateResult, Error>> + Send + 'static, Error>
    where
        S: Stream<Item = NewTask> + Send + 'static,
    {
        let pieces = tasks.ready_chunks(LINES_PER_PIECE).map(|tasks| {
            let mut piece = Vec::with_capacity(tasks.len() * 128);
            for task in &tasks {
                serde_json::to_writer(&mut piece, task)?;
                piece.push(b'\n');
            }
            Ok(Frame::data(Bytes::from(piece)))
        });
        self.results_of(pieces).await
    }

    /// Makes a task of each line that comes, in pieces that may end anywhere. They are JSON already, and are not looked
    /// into. The results come in order, one for each line that is not empty.
    pub async fn lines<S>(
        &self,
        pieces: S,
    ) -> Result<impl Stream<Item = Result<CreateResult, Error>> + Send + 'static, Error>
    where
        S: Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
    {
        self.results_of(pieces.map(|piece| piece.map(Frame::data))).await
    }

    async fn results_of<S>(
        &self,
        pieces: S,
    ) -> Result<impl Stream<Item = Result<CreateResult, Error>> + Send + 'static, Error>
    where
        S: Stream<Item = Result<Frame<Bytes>, std::io::Error>> + Send + 'static,
    {
        let answer = self.asking(self.is_minimal).lines(pieces).open().await?;
        let results = lines_of(answer, LINE_BYTES_MAX).filter_map(async |line| match line {
            Ok(line) if line.trim_ascii().is_empty() => None,
            Ok(line) => {
                Some(serde_json::from_slice(&line).map_err(|error| Error::Unreadable(Box::new(error))))
            }
            Err(error) => Some(Err(error)),
        });
        Ok(Box::pin(results))
    }

    fn asking(&self, is_minimal: bool) -> Asking {
        let path = format!("/v1/queues/{}/tasks", segment(&self.queue));
        let mut asking = self.client.asking(Method::POST, path);
        if let Some(key) = &self.key {
            asking = asking.header(IDEMPOTENCY_KEY, key);
        }
        if is_minimal { asking.header(PREFER, "return=minimal") } else { asking }
    }
}
