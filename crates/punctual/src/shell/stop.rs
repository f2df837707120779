//! A graceful stop: nothing new, what runs may finish, the rest is interrupted, and everything is given up.

use std::time::Duration;

use punctual_core::{BootTime, Event, Fence, Now, Outcome, Wake};
use punctual_store::Store;
use tokio::sync::oneshot;

use super::Shell;

/// How far a stop has come.
pub(super) struct Stopping {
    drain_until: BootTime,
    handing_over: bool,
    replies: Vec<oneshot::Sender<()>>,
}

impl Stopping {
    pub(super) fn wake(&self) -> Wake {
        Wake { wall: None, boot: (!self.handing_over).then_some(self.drain_until) }
    }
}

impl<S: Store> Shell<S> {
    pub(super) fn stop(&mut self, now: Now, drain: Duration, reply: oneshot::Sender<()>) {
        self.node.close_gate();
        self.dismiss_workers();
        let drain_until = now.boot + drain;
        let stopping = self.stopping.get_or_insert_with(|| Stopping {
            drain_until,
            handing_over: false,
            replies: Vec::new(),
        });
        stopping.drain_until = stopping.drain_until.min(drain_until);
        stopping.replies.push(reply);
        self.continue_stopping(now);
    }

    /// Nobody holds this scheduler any more: there is nobody to wait for it either.
    pub(super) fn stop_when_deserted(&mut self, now: Now) {
        self.deserted = true;
        if self.stopping.is_none() {
            let (reply, _) = oneshot::channel();
            self.stop(now, Duration::ZERO, reply);
        }
        self.continue_stopping(now);
    }

    pub(super) fn continue_stopping(&mut self, now: Now) {
        let Some(stopping) = &mut self.stopping else { return };
        // What workers hold is put on record with its lease: they report to whoever has the partition then.
        let mut live = self.node.live_tokens();
        live.retain(|token| !self.workers.have(*token));
        if !stopping.handing_over && (live.is_empty() || now.boot >= stopping.drain_until) {
            stopping.handing_over = true;
            // An interruption is not an attempt: the task starts again elsewhere, uncounted.
            for token in live {
                self.stop_attempt(now, token);
                self.node.report(now, token, Outcome::Interrupted, &mut self.effects);
            }
            let fences: Vec<Fence> = self.node.fences().collect();
            for fence in fences {
                self.node.handle(now, fence, Event::HandOverRequested, &mut self.effects);
            }
        }
    }

    /// Whether everything is being given up already.
    pub(super) fn is_handing_over(&self) -> bool {
        self.stopping.as_ref().is_some_and(|stopping| stopping.handing_over)
    }

    /// A partition that is still being taken over is not waited for: whoever claims it next raises its epoch.
    pub(super) fn has_stopped(&mut self) -> bool {
        let owns_nothing = self.node.fences().next().is_none();
        match &mut self.stopping {
            Some(stopping) if stopping.handing_over && owns_nothing => {
                for reply in stopping.replies.drain(..) {
                    reply.send(()).ok();
                }
                true
            }
            _ => false,
        }
    }
}
