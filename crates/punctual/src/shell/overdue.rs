//! Tasks that somebody waits for and that can expire: they are asked for when their deadline has come.
//!
//! An engine watches the deadlines of what it holds in memory. What is parked, or lies in a paused queue, ends when it
//! is next asked for, and whoever waits for its end does not ask: so the loop does it for them.

use std::collections::BTreeSet;
use std::time::Duration;

use punctual_core::{Amend, Amendment, Answer, Ask, Now, Task, TaskId, Timestamp, Wake};
use punctual_store::Store;
use tokio::sync::oneshot;

use super::{Done, Entries, Shell, WAITERS_MIN};

/// How long to wait before asking again when nobody could answer.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Tasks to ask for, by when.
#[derive(Default)]
pub(super) struct Overdue {
    by_deadline: BTreeSet<(Timestamp, TaskId)>,
    /// When there are so many, those that nobody waits for any more are forgotten.
    len_max: usize,
}

impl Overdue {
    pub(super) fn wake(&self) -> Wake {
        Wake { wall: self.by_deadline.first().map(|(at, _)| *at), boot: None }
    }

    fn take_due(&mut self, now: Timestamp) -> Option<TaskId> {
        let due = self.by_deadline.first().copied().filter(|(at, _)| *at <= now)?;
        self.by_deadline.remove(&due);
        Some(due.1)
    }
}

impl<S: Store> Shell<S> {
    /// Somebody waits for the end of this task, which has not ended.
    pub(super) fn note_deadline(&mut self, task: &Task) {
        if let Some(expires_at) = task.spec.expires_at {
            self.ask_about(task.id, expires_at);
        }
    }

    fn ask_about(&mut self, id: TaskId, at: Timestamp) {
        if !self.waiters.contains_key(&id) {
            return;
        }
        let overdue = &mut self.overdue;
        if overdue.by_deadline.len() >= overdue.len_max {
            overdue.by_deadline.retain(|(_, id)| self.waiters.contains_key(id));
            overdue.len_max = WAITERS_MIN.max(2 * overdue.by_deadline.len());
        }
        overdue.by_deadline.insert((at, id));
    }

    /// Asks for tasks that are waited for and whose deadline has come.
    pub(super) fn ask_about_overdue(&mut self, now: Now) {
        while let Some(id) = self.overdue.take_due(now.wall) {
            if !self.waiters.contains_key(&id) {
                continue;
            }
            let (reply, answer) = oneshot::channel();
            let partition = id.partition(self.meta.partitions);
            self.ask(
                now,
                partition,
                Ask::Amend(Amend::any(id, Amendment::Expire)),
                (reply, Entries::default()),
            );
            self.calls.push(Box::pin(async move { Done::Overdue(id, answer.await.ok()) }));
        }
    }

    /// If it has ended, those who wait hear of it when that is recorded. If it runs, its engine decides when it is over.
    pub(super) fn overdue_answered(&mut self, now: Now, id: TaskId, answer: Option<Answer>) {
        match answer {
            // It was given more time.
            Some(Answer::Amended(task)) => self.note_deadline(&task),
            Some(Answer::Overloaded | Answer::NotOwner | Answer::Unknown) | None => {
                self.ask_about(id, now.wall + ASK_AGAIN);
            }
            Some(_) => {}
        }
    }
}
