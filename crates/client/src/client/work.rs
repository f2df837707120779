//! What workers ask for and report. Most will want [`crate::Worker`], which does all of this for them.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use super::error::Error;
use super::request::{Items, segment};
use crate::wire::{
    Ack, AckItem, Bury, BuryItem, Kick, KickItem, Nack, NackItem, PeekQuery, Progress, Release, ReleaseItem,
    ReportResult, Reserve, Reserved, ReservedTask, Results, Task, TaskPage, Touch, TouchItem, Touched,
};

impl Client {
    /// Takes tasks from a queue. Their time to run begins.
    pub async fn reserve(&self, queue: &str, reserve: &Reserve) -> Result<Vec<ReservedTask>, Error> {
        let wait = reserve.wait.map_or(Duration::ZERO, Duration::from);
        let asking = self.post(format!("/v1/queues/{}/reserve", segment(queue)));
        asking.json(reserve).wait(wait).read::<Reserved>().await.map(|reserved| reserved.tasks)
    }

    /// Looks at what is next in a queue.
    pub async fn peek(&self, queue: &str, limit: u32) -> Result<Vec<Task>, Error> {
        let asking = self.get_path(format!("/v1/queues/{}/peek", segment(queue)));
        let page: TaskPage = asking.query(&PeekQuery { limit: Some(limit) }).read().await?;
        Ok(page.tasks)
    }

    async fn report<T: DeserializeOwned>(
        &self,
        id: &str,
        verb: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.post(format!("/v1/tasks/{}/{verb}", segment(id))).json(body).read().await
    }

    async fn report_many<T: Serialize>(
        &self,
        queue: &str,
        verb: &str,
        tasks: &[T],
    ) -> Result<Vec<ReportResult>, Error> {
        let asking = self.post(format!("/v1/queues/{}/{verb}", segment(queue)));
        asking.json(&Items { tasks }).read::<Results<_>>().await.map(|results| results.results)
    }

    /// It is done.
    pub async fn ack(&self, id: &str, ack: &Ack) -> Result<Progress, Error> {
        self.report(id, "ack", ack).await
    }

    /// It failed.
    pub async fn nack(&self, id: &str, nack: &Nack) -> Result<Progress, Error> {
        self.report(id, "nack", nack).await
    }

    /// It needs more time.
    pub async fn touch(&self, id: &str, touch: &Touch) -> Result<Touched, Error> {
        self.report(id, "touch", touch).await
    }

    /// Back to where it was. It was not an attempt.
    pub async fn release(&self, id: &str, release: &Release) -> Result<Progress, Error> {
        self.report(id, "release", release).await
    }

    /// It is given up.
    pub async fn bury(&self, id: &str, bury: &Bury) -> Result<Progress, Error> {
        self.report(id, "bury", bury).await
    }

    /// It is dead or blocked, and is tried again.
    pub async fn kick(&self, id: &str) -> Result<Progress, Error> {
        self.report(id, "kick", &Kick::default()).await
    }

    /// These are done. Each has a result of its own, in order.
    pub async fn ack_many(&self, queue: &str, tasks: &[AckItem]) -> Result<Vec<ReportResult>, Error> {
        self.report_many(queue, "ack", tasks).await
    }

    /// These failed. Each has a result of its own, in order.
    pub async fn nack_many(&self, queue: &str, tasks: &[NackItem]) -> Result<Vec<ReportResult>, Error> {
        self.report_many(queue, "nack", tasks).await
    }

    /// These need more time. Each has a result of its own, in order.
    pub async fn touch_many(&self, queue: &str, tasks: &[TouchItem]) -> Result<Vec<ReportResult>, Error> {
        self.report_many(queue, "touch", tasks).await
    }

    /// These go back to where they were. Each has a result of its own, in order.
    pub async fn release_many(&self, queue: &str, tasks: &[ReleaseItem]) -> Result<Vec<ReportResult>, Error> {
        self.report_many(queue, "release", tasks).await
    }

    /// These are given up. Each has a result of its own, in order.
    pub async fn bury_many(&self, queue: &str, tasks: &[BuryItem]) -> Result<Vec<ReportResult>, Error> {
        self.report_many(queue, "bury", tasks).await
    }

    /// These are dead or blocked, and are tried again. Each has a result of its own, in order.
    pub async fn kick_many(&self, queue: &str, tasks: &[KickItem]) -> Result<Vec<ReportResult>, Error> {
        self.report_many(queue, "kick", tasks).await
    }
}
