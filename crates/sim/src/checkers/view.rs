//! The history, sorted by task: what several checkers need.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::{Change, Created, EndState, LaneId, Priority, Spec, Target, TaskId, Timestamp, Token};

use super::Log;
use crate::history::{Amending, Happening, Moment, Process};

/// The history, sorted by task.
#[derive(Default)]
pub struct View {
    /// Tasks whose creation was answered.
    pub tasks: BTreeMap<TaskId, TaskView>,
    /// Attempts, in order of their start.
    pub attempts: Vec<AttemptView>,
    /// When each process could not be heard of.
    pub silenced: Vec<(Moment, Process)>,
}

/// One task, from outside.
pub struct TaskView {
    pub spec: Arc<Spec>,
    pub priority: Priority,
    pub called: Moment,
    pub answered: Moment,
    /// Requests about it, whatever came of them.
    pub amendings: Vec<Amending>,
    /// Another request took its place.
    pub replaced: bool,
    /// How it ended, as the store says when all is over, or when it is dropped.
    pub end: Option<EndState>,
}

/// One attempt, from outside.
pub struct AttemptView {
    pub token: Token,
    pub process: Process,
    pub lane: Option<LaneId>,
    /// A worker has it, which goes on when the process that gave it away has died.
    pub is_worker: bool,
    pub started: Moment,
    /// Whoever runs it has it until then.
    pub until: Timestamp,
    /// That it runs, and for how long, is on record.
    pub leased: Option<Moment>,
    pub stopped: Option<Moment>,
}

impl View {
    pub fn of(log: &Log) -> View {
        let mut view = View::default();
        let (mut calls, mut leases) = (BTreeMap::new(), BTreeMap::new());
        for (moment, happening) in log {
            match happening {
                Happening::CreateCalled { no, spec, priority, .. } => {
                    calls.insert(*no, (*moment, spec.clone(), *priority));
                }
                Happening::CreateAnswered { no, created } => {
                    view.created(*moment, &calls[no], created.as_ref())
                }
                Happening::AmendCalled { id, what, .. } => {
                    if let Some(task) = view.tasks.get_mut(id) {
                        task.amendings.push(*what);
                    }
                }
                Happening::Started { process, token, spec, timeout, .. } => view.attempts.push(AttemptView {
                    token: *token,
                    process: *process,
                    lane: spec.lane_id(token.id.queue),
                    is_worker: spec.target == Target::Worker,
                    started: *moment,
                    until: moment.at + *timeout,
                    leased: leases.get(token).copied(),
                    stopped: None,
                }),
                Happening::Prolonged { token, until } => {
                    view.attempt(*token).into_iter().for_each(|attempt| attempt.until = *until);
                }
                Happening::Written { changes, .. } => {
                    for token in changes.iter().filter_map(leased) {
                        leases.entry(token).or_insert(*moment);
                        view.attempt(token)
                            .into_iter()
                            .for_each(|attempt| _ = attempt.leased.get_or_insert(*moment));
                    }
                }
                Happening::Stopped { token, .. } => view.stopped(*moment, *token),
                Happening::Silenced(process) => view.silenced.push((*moment, *process)),
                Happening::Dropped { id, end: (state, _) } | Happening::Final { id, end: Some(state) } => {
                    if let Some(task) = view.tasks.get_mut(id) {
                        task.end = Some(*state);
                    }
                }
                _ => {}
            }
        }
        view
    }

    fn created(&mut self, moment: Moment, call: &(Moment, Arc<Spec>, Priority), created: Option<&Created>) {
        match created {
            Some(Created::New(id)) => {
                let task = TaskView {
                    spec: call.1.clone(),
                    priority: call.2,
                    called: call.0,
                    answered: moment,
                    amendings: Vec::new(),
                    replaced: false,
                    end: None,
                };
                self.tasks.insert(*id, task);
            }
            Some(Created::Replaced(id)) => {
                if let Some(task) = self.tasks.get_mut(id) {
                    task.replaced = true;
                }
            }
            _ => {}
        }
    }

    fn stopped(&mut self, moment: Moment, token: Token) {
        if let Some(attempt) = self.attempt(token) {
            attempt.stopped.get_or_insert(moment);
        }
    }

    fn attempt(&mut self, token: Token) -> Option<&mut AttemptView> {
        self.attempts.iter_mut().rev().find(|attempt| attempt.token == token)
    }
}

/// The attempt that is on record with a lease from now on.
pub fn leased(change: &Change) -> Option<Token> {
    match change {
        Change::Began { id, attempts, begun, .. } if begun.lease.is_some() => {
            Some(Token { id: *id, epoch: begun.epoch, attempt: *attempts })
        }
        _ => None,
    }
}
