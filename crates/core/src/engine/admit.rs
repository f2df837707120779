//! New tasks are told apart from those that are there already, numbered, and written.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::deferred::Awaited;
use super::entry::Phase;
use super::reads::{Pending, ReadClock};
use super::{After, Engine};
use crate::change::Change;
use crate::facts::{Found, Query};
use crate::id::TaskId;
use crate::message::{Answer, Ask, AskNo, Created, Draft, Effect};
use crate::queue::{OnConflict, Past};
use crate::task::{EndState, EndedTask, Identity, Spec, Task, WaitState, WindowId};
use crate::time::{Now, Timestamp};

/// A create that is being recorded.
#[derive(Default)]
pub struct Creation {
    pub created: Vec<Created>,
    /// The new tasks, in order of number.
    pub tasks: Vec<Task>,
    identities: Vec<Identity>,
    /// What was there already, and is written anew.
    replaced: Vec<TaskId>,
}

impl Engine {
    /// Somebody wants new tasks. Those with a unique key are looked up first.
    pub(super) fn create(&mut self, now: Now, no: AskNo, drafts: Vec<Draft>, out: &mut Vec<Effect>) {
        let identities = identities_of(&drafts);
        if let Some(taken) = identities.iter().find(|identity| self.identities.contains(identity)) {
            return self.deferred.wait(Awaited::Identity(*taken), no, Ask::Create(drafts));
        }
        if identities.is_empty() {
            return self.number(now, no, drafts, FxHashMap::default(), out);
        }
        self.identities.extend(identities.iter().copied());
        let queries = identities.into_iter().map(Query::Identity).collect();
        let find = self.reads.find(|clock| Pending::Create(no, drafts, clock));
        out.push(Effect::FindTasks(find, queries));
    }

    #[expect(clippy::too_many_arguments, reason = "a look-up's question and its answer")]
    pub(super) fn identities_found(
        &mut self,
        now: Now,
        no: AskNo,
        drafts: Vec<Draft>,
        clock: ReadClock,
        found: Vec<Option<Found>>,
        out: &mut Vec<Effect>,
    ) {
        let identities = identities_of(&drafts);
        let outdated = found.iter().flatten().any(|found| self.reads.missed(clock, found.id().seq));
        self.reads.end(clock);
        // Something is happening to one of them: look again when it has happened.
        let mut seqs = found.iter().flatten().map(|found| found.id().seq);
        if let Some(settling) = seqs.find(|seq| self.is_settling(*seq)) {
            return self.deferred.wait(Awaited::Task(settling), no, Ask::Create(drafts));
        }
        if outdated {
            for identity in &identities {
                self.identities.remove(identity);
            }
            return self.create(now, no, drafts, out);
        }
        let known =
            identities.into_iter().zip(found).filter_map(|(identity, found)| Some((identity, found?)));
        self.number(now, no, drafts, known.collect(), out);
    }

    /// Gives each draft its number and its row, or its answer.
    fn number(
        &mut self,
        now: Now,
        no: AskNo,
        drafts: Vec<Draft>,
        mut known: FxHashMap<Identity, Found>,
        out: &mut Vec<Effect>,
    ) {
        let (created, tasks) = (Vec::with_capacity(drafts.len()), Vec::with_capacity(drafts.len()));
        let mut creation = Creation { created, tasks, ..Creation::default() };
        for draft in drafts {
            let identity = draft.spec.identity(draft.queue);
            creation.identities.extend(identity);
            let created = match identity.and_then(|identity| known.get(&identity)) {
                Some(found) => {
                    let found = found.clone();
                    self.meet(now, draft, found, &mut creation, out)
                }
                None => self.number_one(now, draft, &mut creation),
            };
            if let (Some(identity), Created::New(_)) = (identity, &created) {
                let task = creation.tasks.last().expect("a new task was just added").clone();
                known.insert(identity, Found::Live(task));
            }
            creation.created.push(created);
        }
        for task in &creation.tasks {
            self.changes.push(Change::Accepted(task.clone()));
        }
        self.after.push(After::Accept(no, creation));
    }

    fn number_one(&mut self, now: Now, draft: Draft, creation: &mut Creation) -> Created {
        let too_old = draft.spec.at + self.settings.limits.past_grace < now.wall;
        if too_old && self.settings.queues.get(draft.queue).past == Past::Reject {
            return Created::Past;
        }
        let Draft { route, queue, priority, spec, .. } = draft;
        let birth = spec.at.max(self.windows.low_water(WindowId { queue, priority }));
        let id = TaskId { route, queue, priority, birth, seq: self.next_seq };
        self.next_seq = self.next_seq.next();
        creation.tasks.push(Task::born(id, spec));
        Created::New(id)
    }

    /// A draft meets a task of its own identity.
    fn meet(
        &mut self,
        now: Now,
        draft: Draft,
        found: Found,
        creation: &mut Creation,
        out: &mut Vec<Effect>,
    ) -> Created {
        let on_conflict = draft.on_conflict;
        let ended = |id, state| match on_conflict {
            OnConflict::Replace | OnConflict::Keep => Created::Ended(id, state),
            OnConflict::Error => Created::Conflict(id),
        };
        let task = match found {
            Found::Ended(EndedTask { task, end }) => return ended(task.id, end.state),
            Found::Forgotten { id, state } => return ended(id, state),
            Found::Live(task) => task,
        };
        let is_new = creation.tasks.iter().any(|new| new.id == task.id);
        if !is_new && self.expire_found(now, &task, out) {
            return ended(task.id, EndState::Expired);
        }
        match on_conflict {
            OnConflict::Keep => Created::Kept(task.id, task.state),
            OnConflict::Error => Created::Conflict(task.id),
            OnConflict::Replace => match creation.tasks.iter_mut().find(|new| new.id == task.id) {
                Some(new) => {
                    new.spec = draft.spec;
                    Created::Replaced(task.id)
                }
                None if creation.replaced.contains(&task.id) => self.replace_again(draft.spec, task.id),
                None => {
                    let created = self.replace(now, draft.spec, task, out);
                    if let Created::Replaced(id) = created {
                        creation.replaced.push(id);
                    }
                    created
                }
            },
        }
    }

    /// The draft takes the place of a task that waits: the same id, a fresh start.
    fn replace(&mut self, now: Now, spec: Arc<Spec>, task: Task, out: &mut Vec<Effect>) -> Created {
        let id = task.id;
        let slot = match self.entries.find(id.seq) {
            Some(slot) => slot,
            None => self.bring_in(task),
        };
        if let Phase::Running(_) | Phase::Settling(_) = self.entries[slot].phase {
            return Created::Conflict(id);
        }
        self.detach(slot, out);
        self.retries_as_head.remove(&id.seq);
        let task = &mut self.entries[slot].task;
        let wake_at = spec.at;
        task.spec = spec;
        task.start_afresh();
        self.waits_as(slot, WaitState::Scheduled);
        self.refile_elsewhere(now, slot, wake_at, out);
        Created::Replaced(id)
    }

    /// Another draft of the same request takes its place: of what is about to be written, only the last counts.
    fn replace_again(&mut self, spec: Arc<Spec>, id: TaskId) -> Created {
        let slot = self.entries.find(id.seq).expect("what is being recorded is in memory");
        let rows = self.changes.iter_mut().rev().filter_map(|change| match change {
            Change::Refiled { task, .. } if task.id == id => Some(task),
            _ => None,
        });
        for task in rows.take(1) {
            task.spec = spec.clone();
        }
        self.entries[slot].task.spec = spec;
        Created::Replaced(id)
    }

    /// The new tasks exist: they wait for their time, and their creator is told.
    pub(super) fn created(&mut self, now: Now, no: AskNo, creation: Creation, out: &mut Vec<Effect>) {
        let Creation { created, tasks, identities, .. } = creation;
        for identity in identities {
            self.identities.remove(&identity);
            self.deferred.settle(Awaited::Identity(identity));
        }
        out.push(Effect::Answer(no, Answer::Created(created)));
        for task in tasks {
            self.accept(now, task, out);
        }
    }

    /// The earliest time among tasks of a window that are numbered but not recorded.
    pub(super) fn first_unrecorded(&self, window: WindowId) -> Option<Timestamp> {
        let waiting = self.in_flight.iter().flatten().chain(&self.after);
        let tasks = waiting.filter_map(|after| match after {
            After::Accept(_, creation) => Some(&creation.tasks),
            _ => None,
        });
        tasks.flatten().filter(|task| task.window() == window).map(|task| task.wake_at).min()
    }
}

/// The identities among drafts, in order.
pub fn identities_of(drafts: &[Draft]) -> Vec<Identity> {
    let mut identities: Vec<Identity> =
        drafts.iter().filter_map(|draft| draft.spec.identity(draft.queue)).collect();
    identities.sort_unstable();
    identities.dedup();
    identities
}
