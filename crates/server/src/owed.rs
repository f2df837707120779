//! What is owed to others because something happened to a task: its result to whoever asked for it, and a word to those
//! who are notified. It is written beside the change itself (`docs/decisions/0015-debts-beside-the-change.md`).

use bytes::Bytes;
use punctual::{Change, EndState, EndedTask, Found, PartitionId, Task, TaskId, WaitState};
use punctual_client::wire::{self, EventKind};
use serde::{Deserialize, Serialize};

use crate::api::{ended_task, live_task, moment_of, result_of, state_of};
use crate::delivery::Delivery;

/// A debt as it is recorded.
#[derive(Clone, Debug)]
pub struct Debt {
    /// Where its row lies.
    pub partition: PartitionId,
    /// What its row is called.
    pub name: Box<str>,
    /// The row.
    pub row: Bytes,
}

/// What is owed.
#[derive(Serialize, Deserialize)]
pub struct Owed {
    /// When it happened, in microseconds.
    pub at: i64,
    /// A task that lives, of a lower revision than this, shows that it did not happen after all.
    in_effect_from: u32,
    /// The result, for whoever asked for it.
    pub callback: Option<Callback>,
    /// What happened, for those who are notified.
    pub event: Option<Told>,
}

/// A result that is to be sent.
#[derive(Serialize, Deserialize)]
pub struct Callback {
    /// Where.
    pub url: String,
    /// What.
    pub sent: Sent,
}

/// A result, as it is sent.
#[derive(Serialize, Deserialize)]
pub struct Sent {
    /// The task.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// How it ended.
    pub state: wire::State,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it ended.
    pub ended_at: wire::Moment,
    /// What it brought forth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<wire::Json>,
    /// The result is too large to be sent: ask for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_omitted: bool,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Something that happened.
#[derive(Serialize, Deserialize)]
pub struct Told {
    /// What.
    pub kind: EventKind,
    /// To which task, as it stands after it.
    pub task: wire::Task,
}

/// Of what somebody wants to be notified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Of tasks that are given up.
    pub dead: bool,
    /// Of lanes that are blocked.
    pub blocked: bool,
    /// Of tasks that start late.
    pub lateness: bool,
}

impl Owed {
    /// What is owed because of this change, and what its row is called.
    pub fn because_of(change: &Change, wanted: Wanted) -> Option<(Box<str>, Bytes)> {
        let (id, suffix, owed) = match change {
            Change::Ended { task, end, .. } => {
                let url = Delivery::callback_of(&task.spec.delivery);
                let told = (wanted.dead && end.state == EndState::Dead).then_some(EventKind::TaskDead);
                if url.is_none() && told.is_none() {
                    return None;
                }
                let ended = EndedTask { task: task.clone(), end: end.clone() };
                (task.id, format!("end.{}", end.at.as_micros()), of_end(&ended, url, told))
            }
            Change::Refiled { task, .. } if wanted.blocked && task.state == WaitState::Blocked => {
                (task.id, format!("blocked.{}", task.attempts), of_blocked(task))
            }
            _ => return None,
        };
        let row = serde_json::to_vec(&owed).ok()?;
        Some((format!("{}{id}/{suffix}", Change::OWED).into(), row.into()))
    }

    /// What a row says; `None` if another program wrote it.
    pub fn read(row: &[u8]) -> Option<Owed> {
        serde_json::from_slice(row).ok()
    }

    /// Whose row this is.
    pub fn task_of(name: &str) -> Option<TaskId> {
        name.strip_prefix(Change::OWED)?.split('/').next()?.parse().ok()
    }

    /// Whether it happened, as far as the task tells. A write that was cut can leave a debt without its change: if the
    /// change never comes, there is nothing to settle.
    pub fn standing(&self, found: Option<&Found>) -> Standing {
        match found {
            Some(Found::Live(task)) if task.revision < self.in_effect_from => Standing::NotYet,
            Some(Found::Ended(ended)) if self.is_end() && ended.end.at.as_micros() != self.at => {
                Standing::Void
            }
            _ => Standing::Owed,
        }
    }

    fn is_end(&self) -> bool {
        self.event.as_ref().is_none_or(|told| told.kind != EventKind::LaneBlocked)
    }
}

/// How a debt stands that was found in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is to be settled.
    Owed,
    /// What it is for has not happened.
    NotYet,
    /// It happened otherwise.
    Void,
}

fn of_end(ended: &EndedTask, url: Option<&str>, told: Option<EventKind>) -> Owed {
    let EndedTask { task, end } = ended;
    let state = state_of(end.state.into());
    let callback = url.map(|url| Callback {
        url: url.to_owned(),
        sent: Sent {
            id: task.id.to_string(),
            queue: String::new(),
            state,
            name: task.spec.name.as_deref().map(str::to_owned),
            ended_at: moment_of(end.at),
            result: result_of(&end.result),
            result_omitted: false,
            error: end.error.as_deref().map(str::to_owned),
        },
    });
    let event = told.map(|kind| Told { kind, task: ended_task(ended, state, "", false) });
    // The end itself does not count as a revision; being tried again does.
    Owed { at: end.at.as_micros(), in_effect_from: task.revision + 1, callback, event }
}

fn of_blocked(task: &Task) -> Owed {
    let event = Told { kind: EventKind::LaneBlocked, task: live_task(task, wire::State::Blocked, "", false) };
    let at = task.spec.at.as_micros();
    Owed { at, in_effect_from: task.revision, callback: None, event: Some(event) }
}
