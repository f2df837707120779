//! The scheduler's hand for calls: finds what a task is to call and how its queue wants it called, and has it done.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use punctual::{Attempt, Executor, Outcome, Running};
use tokio::sync::Notify;

use crate::app::App;
use crate::call::{Caller, QueueRules};
use crate::delivery::Delivery;

/// Makes the calls of tasks. Clones are the same.
#[derive(Clone)]
pub struct Calls(Arc<Shared>);

struct Shared {
    caller: Caller,
    app: OnceLock<App>,
    /// There is an app: calls that came before it waited for this.
    begun: Notify,
}

impl Calls {
    /// Makes calls with this caller, once it [knows](Calls::begin) the app.
    pub fn new(caller: Caller) -> Calls {
        Calls(Arc::new(Shared { caller, app: OnceLock::new(), begun: Notify::new() }))
    }

    /// The scheduler runs: this is how queues are looked up.
    pub fn begin(&self, app: App) {
        self.0.app.set(app).ok();
        self.0.begun.notify_waiters();
    }
}

impl Executor for Calls {
    fn run(&self, attempt: Attempt) -> Running {
        let shared = self.0.clone();
        Box::pin(async move {
            let app = shared.app().await;
            let Some(call) = Delivery::decode(&attempt.spec.delivery).and_then(|delivery| delivery.call)
            else {
                return Outcome::GaveUp("the task does not say what is to be called".into());
            };
            let rules = rules(app, &attempt).await;
            let span = app.spans().attempt(&attempt, &call, &rules.queue);
            let outcome = shared.caller.run(attempt, call, rules).await;
            span.end(&outcome);
            outcome
        })
    }

    fn receivers(&self) -> Vec<Box<str>> {
        Vec::new()
    }
}

impl Shared {
    async fn app(&self) -> &App {
        loop {
            let begun = self.begun.notified();
            if let Some(app) = self.app.get() {
                return app;
            }
            begun.await;
        }
    }
}

async fn rules(app: &App, attempt: &Attempt) -> Arc<QueueRules> {
    let number = attempt.token.id.queue;
    let (queue, bytes) = app.scheduler().delivery_of(number).unwrap_or_else(|| ("".into(), Bytes::new()));
    let extras = app.extras(number, &bytes);
    Arc::new(QueueRules { queue, success: extras.success.clone(), secrets: extras.secrets.clone() })
}
