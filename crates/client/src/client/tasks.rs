//! Looking at tasks and changing them.

use std::time::Duration;

use futures_util::{Stream, TryStreamExt, stream};
use http::Method;

use super::Client;
use super::error::Error;
use super::request::segment;
use crate::wire::{
    ByFilter, CallAt, Cancelled, Changed, MoveByFilter, Patch, ResultQuery, ScheduledCall, Task, TaskPage,
    TaskQuery, TaskResult, View, ViewQuery,
};

fn path(id: &str) -> String {
    format!("/v1/tasks/{}", segment(id))
}

impl Client {
    /// Looks at a task.
    pub async fn task(&self, id: &str) -> Result<Task, Error> {
        self.get_path(path(id)).read().await
    }

    /// Looks at a task, with what it carries.
    pub async fn full_task(&self, id: &str) -> Result<Task, Error> {
        self.get_path(path(id)).query(&ViewQuery { view: Some(View::Full) }).read().await
    }

    /// Moves or changes a task, while no attempt is live.
    pub async fn patch(&self, id: &str, patch: &Patch) -> Result<Task, Error> {
        self.asking(Method::PATCH, path(id)).json(patch).read().await
    }

    /// Moves or changes a task, if its revision is still this.
    pub async fn patch_if(&self, id: &str, revision: u32, patch: &Patch) -> Result<Task, Error> {
        self.asking(Method::PATCH, path(id)).if_revision(revision).json(patch).read().await
    }

    /// Cancels a task, while no attempt is live.
    pub async fn cancel(&self, id: &str) -> Result<(), Error> {
        self.asking(Method::DELETE, path(id)).read::<Cancelled>().await.map(|_| ())
    }

    /// Makes a task due now.
    pub async fn run(&self, id: &str) -> Result<Task, Error> {
        self.post(format!("{}:run", path(id))).read().await
    }

    /// Tries a dead or blocked task again, with a fresh count of attempts.
    pub async fn retry(&self, id: &str) -> Result<Task, Error> {
        self.post(format!("{}:retry", path(id))).read().await
    }

    /// How a task ended, after waiting for its end so long at most. If it has not, there is only its state.
    pub async fn result(&self, id: &str, wait: Duration) -> Result<TaskResult, Error> {
        let query = ResultQuery { wait: (!wait.is_zero()).then_some(wait.into()) };
        self.get_path(format!("{}/result", path(id))).query(&query).wait(wait).read().await
    }

    /// A page of tasks.
    pub async fn list(&self, query: &TaskQuery) -> Result<TaskPage, Error> {
        self.get_path("/v1/tasks".to_owned()).query(query).read().await
    }

    /// All tasks, page by page, as they are wanted.
    pub fn tasks(&self, query: TaskQuery) -> impl Stream<Item = Result<Task, Error>> + Send + 'static {
        let client = self.clone();
        let pages = stream::try_unfold(Some(query), move |query| {
            let client = client.clone();
            async move {
                let Some(query) = query else { return Ok(None) };
                let page = client.list(&query).await?;
                let next = page.next.map(|cursor| TaskQuery { cursor: Some(cursor), ..query });
                Ok(Some((stream::iter(page.tasks.into_iter().map(Ok)), next)))
            }
        });
        Box::pin(pages.try_flatten())
    }

    /// Cancels what a filter finds. Ask again while there is a `next`.
    pub async fn cancel_by_filter(&self, tasks: &ByFilter) -> Result<Changed, Error> {
        self.post("/v1/tasks:cancel".to_owned()).json(tasks).read().await
    }

    /// Tries what a filter finds again. Ask again while there is a `next`.
    pub async fn retry_by_filter(&self, tasks: &ByFilter) -> Result<Changed, Error> {
        self.post("/v1/tasks:retry".to_owned()).json(tasks).read().await
    }

    /// Makes what a filter finds due now. Ask again while there is a `next`.
    pub async fn run_by_filter(&self, tasks: &ByFilter) -> Result<Changed, Error> {
        self.post("/v1/tasks:run".to_owned()).json(tasks).read().await
    }

    /// Moves what a filter finds to another time. Ask again while there is a `next`.
    pub async fn move_by_filter(&self, tasks: &MoveByFilter) -> Result<Changed, Error> {
        self.post("/v1/tasks:move".to_owned()).json(tasks).read().await
    }

    /// Has a URL called at a given time.
    pub async fn schedule_call(&self, call: &CallAt) -> Result<ScheduledCall, Error> {
        self.post("/schedule".to_owned()).json(call).read().await
    }

    /// Looks at a call.
    pub async fn scheduled_call(&self, id: &str) -> Result<ScheduledCall, Error> {
        self.get_path(format!("/schedule/{}", segment(id))).read().await
    }
}
