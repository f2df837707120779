//! Whoever is told that a task was moved, changed, run or tried again finds it so: the answer shows it, and the next
//! attempt gets what was asked for, whoever starts it. Whoever is refused is told the truth, and nothing was changed.
//!
//! While a request is not answered, and after one that nobody could answer, nothing is known of its task until the
//! next answer. Tasks of a key that was asked for twice may have been replaced, and are left out. Cancels have a
//! checker of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use punctual_core::{Answer, Change, Created, EndState, Identity, Spec, Task, TaskId, Timestamp};

use super::Log;
use super::clocks::{Clocks, shifted};
use super::never_early::repeated;
use crate::coverage::Coverage;
use crate::history::{Amending, Happening, Moment};
use crate::targets::mark_of;

pub fn check(log: &Log, coverage: &Coverage) -> Vec<String> {
    let mut judge = Judge {
        clocks: Clocks::of(log),
        replaceable: repeated(log),
        creates: BTreeMap::new(),
        tasks: BTreeMap::new(),
        amends: BTreeMap::new(),
        ends: BTreeMap::new(),
        dropped: BTreeSet::new(),
        coverage,
        found: Vec::new(),
    };
    for (moment, happening) in log {
        judge.note(*moment, happening);
    }
    judge.found
}

struct Judge<'a> {
    clocks: Clocks,
    replaceable: BTreeSet<Identity>,
    creates: BTreeMap<u64, Arc<Spec>>,
    tasks: BTreeMap<TaskId, Asked>,
    amends: BTreeMap<u64, Call>,
    /// What the store has as ended, and since when.
    ends: BTreeMap<TaskId, (Moment, EndState)>,
    dropped: BTreeSet<TaskId>,
    coverage: &'a Coverage,
    found: Vec<String>,
}

/// What a task is to do.
struct Asked {
    spec: Arc<Spec>,
    /// Whether it is certain.
    is_known: bool,
    unanswered: u32,
    was_changed: bool,
}

struct Call {
    id: TaskId,
    what: Amending,
    called: Moment,
}

impl Judge<'_> {
    fn note(&mut self, now: Moment, happening: &Happening) {
        match happening {
            Happening::CreateCalled { no, queue, spec, .. } => {
                let is_replaceable = spec.identity(*queue).is_some_and(|key| self.replaceable.contains(&key));
                if !is_replaceable {
                    self.creates.insert(*no, spec.clone());
                }
            }
            Happening::CreateAnswered { no, created: Some(Created::New(id)) } => {
                if let Some(spec) = self.creates.get(no).cloned() {
                    let asked = Asked { spec, is_known: true, unanswered: 0, was_changed: false };
                    self.tasks.insert(*id, asked);
                }
            }
            Happening::AmendCalled { no, id, what } => {
                self.amends.insert(*no, Call { id: *id, what: *what, called: now });
                if let Some(asked) = self.tasks.get_mut(id) {
                    asked.unanswered += 1;
                }
            }
            Happening::AmendAnswered { no, answer } => self.answered(now, *no, answer.as_ref()),
            Happening::Started { token, spec, .. } => self.started(token.id, spec),
            Happening::Written { changes, .. } => {
                for change in changes {
                    match change {
                        Change::Ended { task, end, .. } => _ = self.ends.insert(task.id, (now, end.state)),
                        Change::Revived(task) => _ = self.ends.remove(&task.id),
                        _ => {}
                    }
                }
            }
            Happening::Dropped { id, .. } => _ = self.dropped.insert(*id),
            _ => {}
        }
    }

    fn started(&mut self, id: TaskId, spec: &Arc<Spec>) {
        let Some(asked) = self.tasks.get(&id).filter(|asked| asked.is_known && asked.unanswered == 0) else {
            return;
        };
        if asked.was_changed {
            self.coverage.starts_after_a_change.count();
        }
        if asked.spec != *spec {
            self.found.push(format!("task {id} was to do {:?}, and was given {spec:?}", asked.spec));
        }
    }

    fn answered(&mut self, now: Moment, no: u64, answer: Option<&Answer>) {
        let Some(call) = self.amends.remove(&no) else { return };
        let id = call.id;
        if let Some(answer) = answer {
            let wrong = self.refused(&call, answer).or_else(|| self.done(now, &call, answer));
            self.found.extend(wrong.map(|wrong| format!("{:?} of task {id}: {wrong}", call.what)));
        }
        let Some(asked) = self.tasks.get_mut(&id) else { return };
        asked.unanswered -= 1;
        match answer {
            Some(Answer::Amended(task)) => {
                asked.is_known = asked.unanswered == 0;
                asked.spec = task.spec.clone();
                asked.was_changed |= matches!(call.what, Amending::Change(_) | Amending::Move(_));
            }
            None | Some(Answer::Unknown) => asked.is_known = false,
            // Nothing was changed.
            Some(_) => {}
        }
    }

    /// What is wrong with a refusal.
    fn refused(&self, call: &Call, answer: &Answer) -> Option<String> {
        let end = self.ends.get(&call.id);
        let ended_before = end.filter(|(at, _)| *at < call.called);
        match answer {
            Answer::Running { attempt } => {
                let (at, state) = ended_before?;
                Some(format!("attempt {attempt} was said to run, but it was {state:?} at {:?}", at.at))
            }
            Answer::Ended(state) => {
                let (_, recorded) = end.filter(|(_, recorded)| recorded != state)?;
                Some(format!("it was said to be {state:?}, and is {recorded:?}"))
            }
            Answer::NotFound if !self.dropped.contains(&call.id) => {
                Some("it was said to be unknown, and was never dropped".to_owned())
            }
            Answer::Amended(_) | Answer::Cancelled => {
                let revives = call.what == Amending::Retry;
                let (at, state) = ended_before.filter(|(_, state)| !revives || *state != EndState::Dead)?;
                Some(format!("it was done, though it was {state:?} at {:?}", at.at))
            }
            _ => None,
        }
    }

    /// What is wrong with the task as the answer shows it.
    fn done(&self, now: Moment, call: &Call, answer: &Answer) -> Option<String> {
        let Answer::Amended(task) = answer else { return None };
        let is_so = match call.what {
            Amending::Move(to) => task.spec.at == to && self.is_otherwise_the_same(task),
            Amending::Change(mark) => mark_of(&task.spec.payload) == Some(mark),
            Amending::Run => task.wake_at <= self.latest(now.at),
            Amending::Retry => task.wake_at <= self.latest(now.at) && task.counted_attempts() == 0,
            Amending::Cancel => false,
        };
        (!is_so).then(|| format!("it was answered with {task:?}"))
    }

    /// Whether a task that was moved is to do what it was to do before.
    fn is_otherwise_the_same(&self, task: &Task) -> bool {
        let known = self.tasks.get(&task.id).filter(|asked| asked.is_known && asked.unanswered == 1);
        known.is_none_or(|asked| {
            Spec { at: asked.spec.at, first_at: asked.spec.first_at, ..(*task.spec).clone() } == *asked.spec
        })
    }

    /// The latest time that a clock has shown: what was due by then may be past a low-water mark, and after a clock is
    /// set back nothing is filed below one.
    fn latest(&self, now: Timestamp) -> Timestamp {
        self.clocks.errors(Timestamp::MIN, now).map_or(Timestamp::MAX, |errors| shifted(now, errors.greatest))
    }
}
