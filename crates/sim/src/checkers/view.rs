//! The history, sorted by task: what several checkers need.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::{Created, EndState, LaneId, Priority, Spec, TaskId, Token};

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
    pub started: Moment,
    pub stopped: Option<Moment>,
}

impl View {
    pub fn of(log: &Log) -> View {
        let mut view = View::default();
        let mut calls = BTreeMap::new();
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
                Happening::Started { process, token, spec, .. } => view.attempts.push(AttemptView {
                    token: *token,
                    process: *process,
                    lane: spec.lane_id(token.id.queue),
                    started: *moment,
                    stopped: None,
                }),
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
        let attempt = self.attempts.iter_mut().rev().find(|attempt| attempt.token == token);
        if let Some(attempt) = attempt {
            attempt.stopped.get_or_insert(moment);
        }
    }
}
