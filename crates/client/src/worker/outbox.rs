//! What is to be reported. While a request of one kind is under way, others of that kind gather for the next.

use futures_util::future::BoxFuture;

use crate::client::{Client, Error};
use crate::wire::{Ack, BATCH_MAX, Bury, Json, Nack, Release, ReportResult, ReservedTask, Span, Touch};

/// An attempt that this worker was given.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Attempt {
    pub id: String,
    pub token: String,
}

impl Attempt {
    pub fn of(task: &ReservedTask) -> Attempt {
        Attempt { id: task.id.clone(), token: task.token.clone() }
    }
}

/// Something to be said about an attempt.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub attempt: Attempt,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Done(Option<Json>),
    Failed { error: String, delay: Option<Span> },
    GivenUp { error: String },
    Released,
    MoreTime(Option<Span>),
}

/// The request that a report goes into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Ack,
    Nack,
    Bury,
    Release,
    Touch,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Touch, Kind::Ack, Kind::Nack, Kind::Bury, Kind::Release];
}

impl Report {
    pub fn kind(&self) -> Kind {
        match self.what {
            What::Done(_) => Kind::Ack,
            What::Failed { .. } => Kind::Nack,
            What::GivenUp { .. } => Kind::Bury,
            What::Released => Kind::Release,
            What::MoreTime(_) => Kind::Touch,
        }
    }
}

/// Reports that were sent, and what came back.
pub(super) struct Sent {
    pub kind: Kind,
    pub reports: Vec<Report>,
    pub answer: Result<Vec<ReportResult>, Error>,
}

#[derive(Default)]
pub(super) struct Outbox {
    waiting: Vec<Report>,
    under_way: Vec<Kind>,
}

impl Outbox {
    pub fn push(&mut self, report: Report) {
        self.waiting.push(report);
    }

    /// What waits, and has not been sent.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Leaves only what is still worth saying.
    pub fn retain(&mut self, is_wanted: impl FnMut(&Report) -> bool) {
        self.waiting.retain(is_wanted);
    }

    /// The requests that can be sent now: one of each kind.
    pub fn requests(&mut self, client: &Client, queue: &str) -> Vec<BoxFuture<'static, Sent>> {
        let mut requests = Vec::new();
        for kind in Kind::ALL {
            if self.under_way.contains(&kind) {
                continue;
            }
            let mut left = BATCH_MAX;
            let reports: Vec<Report> = self
                .waiting
                .extract_if(.., |report| {
                    let is_next = report.kind() == kind && left > 0;
                    left -= usize::from(is_next);
                    is_next
                })
                .collect();
            if !reports.is_empty() {
                self.under_way.push(kind);
                requests.push(send(client.clone(), queue.to_owned(), kind, reports));
            }
        }
        requests
    }

    /// A request of that kind has come back.
    pub fn has_returned(&mut self, kind: Kind) {
        self.under_way.retain(|other| *other != kind);
    }
}

fn send(client: Client, queue: String, kind: Kind, reports: Vec<Report>) -> BoxFuture<'static, Sent> {
    Box::pin(async move {
        let answer = match kind {
            Kind::Ack => client.ack_many(&queue, &items(&reports, ack)).await,
            Kind::Nack => client.nack_many(&queue, &items(&reports, nack)).await,
            Kind::Bury => client.bury_many(&queue, &items(&reports, bury)).await,
            Kind::Release => client.release_many(&queue, &items(&reports, release)).await,
            Kind::Touch => client.touch_many(&queue, &items(&reports, touch)).await,
        };
        Sent { kind, reports, answer }
    })
}

/// The reports as items of a batch. All of them are of one kind.
fn items<T>(reports: &[Report], item: impl Fn(String, String, &What) -> Option<T>) -> Vec<T> {
    let parts = reports.iter().map(|report| (report.attempt.clone(), &report.what));
    parts.filter_map(|(attempt, what)| item(attempt.id, attempt.token, what)).collect()
}

fn ack(id: String, token: String, what: &What) -> Option<crate::wire::AckItem> {
    let What::Done(result) = what else { return None };
    Some(Ack { token, result: result.clone() }.of(id))
}

fn nack(id: String, token: String, what: &What) -> Option<crate::wire::NackItem> {
    let What::Failed { error, delay } = what else { return None };
    Some(Nack { token, error: Some(error.clone()), delay: *delay }.of(id))
}

fn bury(id: String, token: String, what: &What) -> Option<crate::wire::BuryItem> {
    let What::GivenUp { error } = what else { return None };
    Some(Bury { token, error: Some(error.clone()) }.of(id))
}

fn release(id: String, token: String, what: &What) -> Option<crate::wire::ReleaseItem> {
    let What::Released = what else { return None };
    Some(Release { token }.of(id))
}

fn touch(id: String, token: String, what: &What) -> Option<crate::wire::TouchItem> {
    let What::MoreTime(ttr) = what else { return None };
    Some(Touch { token, ttr: *ttr }.of(id))
}
