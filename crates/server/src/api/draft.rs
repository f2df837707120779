//! From a task as it is asked for over the wire to one that the scheduler takes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual::{NewTask, OnConflict, RetryPolicy, Spec, Target, Timestamp, Waits};
use punctual_client::wire::{self, Retry, RetryPreset, Time, TimeProblem};

use super::failure::Failure;
use super::view;
use crate::call::{Call, Guard, method_of};
use crate::delivery::Delivery;
use crate::extras::Extras;
use crate::spans::CreateSpan;
use crate::trace::Trace;

/// What a request says besides its tasks.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// The trace that it is part of, as W3C Trace Context writes it.
    pub traceparent: Option<String>,
    /// What others keep with that trace.
    pub tracestate: Option<String>,
}

impl Surroundings {
    /// The trace, if it is written as it should be.
    fn trace(&self) -> Option<Trace> {
        Trace::read(self.traceparent.as_deref()?, self.tracestate.as_deref())
    }
}

/// Makes tasks of one request: for one queue, at one moment.
pub struct Drafter<'a> {
    /// The queue.
    pub queue: &'a str,
    /// And whose it is.
    pub namespace: &'a str,
    /// What the queue says about its tasks' delivery.
    pub extras: Arc<Extras>,
    /// What may be called.
    pub guard: &'a Guard,
    /// What time it is.
    pub now: Timestamp,
    /// The priority that its tasks have when they name none.
    pub priority: u8,
    /// How much of its tasks is shown.
    pub shown: Shown,
    /// What the request says besides.
    pub surroundings: Surroundings,
    /// Goes on until the tasks are made.
    pub span: CreateSpan,
}

/// A task that is ready to be scheduled, and what it will look like.
pub struct Drafted {
    /// For the scheduler.
    pub task: NewTask,
    /// For whoever asked, once it has its id. `None` if nothing but the id is wanted.
    pub preview: Option<Box<wire::Task>>,
}

/// How much of its tasks a request is answered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Their ids.
    Id,
    /// All but what they carry.
    Basic,
    /// All.
    Full,
}

impl Drafter<'_> {
    /// No more tasks come: what is left are those that are being made.
    pub fn into_span(self) -> CreateSpan {
        self.span
    }

    /// Checks what needs no scheduler to be checked.
    pub fn draft(&self, mut task: wire::NewTask) -> Result<Drafted, Failure> {
        let zone = task.timezone.as_deref();
        check_zone(zone)?;
        let at = due(self.now, task.at.as_ref(), task.delay.map(Into::into), zone)?.unwrap_or(self.now);
        let start_by = optional_moment("start_by", task.start_by.as_ref(), zone)?;
        let expires_at = optional_moment("expires_at", task.expires_at.as_ref(), zone)?;
        let retry = task.retry.as_ref().map(retry_policy).transpose()?;
        let (target, payload, delivery) = self.target(&mut task)?;
        let timeout = task.timeout.or_else(|| task.http.as_ref().and_then(|http| http.timeout));
        let kind = kind(&target);
        let all = (self.shown == Shown::Full)
            .then(|| (target.clone(), payload.clone(), delivery.clone(), retry.clone()));
        let spec = Spec {
            lane: task.lane.as_deref().map(Into::into),
            unique_key: task.unique_key.as_deref().map(Into::into),
            name: task.name.as_deref().map(Into::into),
            payload,
            delivery: delivery.encode(),
            retry,
            start_by,
            expires_at,
            timeout: timeout.map(Duration::from),
            ..Spec::new(target, at)
        };
        let mut new = NewTask::of(self.queue, spec);
        if let Some(priority) = task.priority {
            new = new.priority(priority);
        }
        if let Some(conflict) = task.on_conflict {
            new = new.on_conflict(on_conflict(conflict));
        }
        if self.shown == Shown::Id {
            return Ok(Drafted { task: new, preview: None });
        }
        let preview = wire::Task {
            id: String::new(),
            queue: self.queue.to_owned(),
            state: wire::State::Scheduled,
            at: moment_of(at),
            next_at: Some(moment_of(at)),
            lane: task.lane,
            unique_key: task.unique_key,
            name: task.name,
            priority: task.priority.unwrap_or(self.priority),
            attempts: 0,
            target: kind,
            start_by: start_by.map(moment_of),
            expires_at: expires_at.map(moment_of),
            timeout,
            last_error: None,
            ended_at: None,
            revision: 1,
            warnings: Vec::new(),
            payload: None,
            payload_base64: None,
            http: None,
            handler: None,
            callback: None,
            result: None,
            retry: None,
        };
        let preview = match all {
            Some((target, payload, delivery, retry)) => {
                view::with_all(preview, &target, &payload, delivery, retry.as_ref())
            }
            None => preview,
        };
        Ok(Drafted { task: new, preview: Some(Box::new(preview)) })
    }

    /// Who does it, what it carries, and how it is delivered.
    fn target(&self, task: &mut wire::NewTask) -> Result<(Target, Bytes, Delivery), Failure> {
        let mut payload = payload(task.payload.take(), task.payload_base64.take())?;
        let callback = task.callback.take();
        if let Some(callback) = &callback {
            self.check_call("callback", &Call::post(callback.clone()))?;
        }
        let call = match (&mut task.http, &task.handler) {
            (Some(_), Some(_)) => {
                return Err(Failure::field("handler", "give `http` or `handler`, not both"));
            }
            (Some(http), None) => {
                payload = body(http, payload)?;
                Some(call_of(http))
            }
            (None, Some(_)) => None,
            (None, None) => self.extras.call(),
        };
        let Some(mut call) = call else {
            let target = match (&task.handler, &self.extras.target) {
                (Some(handler), _) | (None, wire::QueueTarget::Handler(handler)) => {
                    Target::Handler(handler.as_str().into())
                }
                _ => Target::Worker,
            };
            let trace = self.surroundings.trace().filter(|_| target == Target::Worker);
            return Ok((target, payload.unwrap_or_default(), Delivery { call: None, callback, trace }));
        };
        self.check_call("http", &call)?;
        call.traceparent.clone_from(&self.surroundings.traceparent);
        call.tracestate.clone_from(&self.surroundings.tracestate);
        let target = Target::Destination(call.destination(self.namespace).into());
        Ok((target, payload.unwrap_or_default(), Delivery { call: Some(call), callback, trace: None }))
    }

    fn check_call(&self, field: &str, call: &Call) -> Result<(), Failure> {
        call.check(self.guard)
            .map_err(|error| Failure::new("call_invalid", error.to_string()).at(field, error.to_string()))
    }
}

/// The call that a task asks for. What it sends is the task's payload.
pub fn call_of(http: &wire::Http) -> Call {
    Call {
        method: http.method.as_deref().map_or_else(|| "POST".to_owned(), method_of),
        headers: http.headers.clone().into_iter().collect(),
        timeout: http.timeout.map(Into::into),
        ..Call::post(http.url.clone())
    }
}

/// What a call sends: its body, or else the payload.
pub fn body(http: &mut wire::Http, payload: Option<Bytes>) -> Result<Option<Bytes>, Failure> {
    let body = match (http.body.take(), http.body_base64.take()) {
        (Some(_), Some(_)) => {
            return Err(Failure::field("http.body", "give `body` or `body_base64`, not both"));
        }
        (Some(body), None) => Some(text_or_json(&body)),
        (None, body) => body.map(|body| body.0.into()),
    };
    match (body, payload) {
        (Some(_), Some(_)) => Err(Failure::field(
            "http.body",
            "the payload is what is sent: give `http.body` or `payload`, not both",
        )),
        (body, payload) => Ok(body.or(payload)),
    }
}

/// A string is sent as its text, everything else as it was written.
pub fn text_or_json(json: &wire::Json) -> Bytes {
    match json.read::<String>() {
        Ok(text) => text.into(),
        Err(_) => json.text().to_owned().into(),
    }
}

/// What a task carries.
pub fn payload(json: Option<wire::Json>, bytes: Option<wire::Base64>) -> Result<Option<Bytes>, Failure> {
    match (json, bytes) {
        (Some(_), Some(_)) => {
            Err(Failure::field("payload_base64", "give `payload` or `payload_base64`, not both"))
        }
        (json, bytes) => Ok(json.map(|json| json.into_bytes().into()).or(bytes.map(|bytes| bytes.0.into()))),
    }
}

/// When something is due: `at`, or `delay` from now.
pub fn due(
    now: Timestamp,
    at: Option<&Time>,
    delay: Option<Duration>,
    zone: Option<&str>,
) -> Result<Option<Timestamp>, Failure> {
    match (at, delay) {
        (Some(_), Some(_)) => Err(Failure::field("delay", "give `at` or `delay`, not both")),
        (Some(at), None) => moment("at", at, zone).map(Some),
        (None, Some(delay)) => after("delay", now, delay).map(Some),
        (None, None) => Ok(None),
    }
}

/// The moment that a time of the wire means.
pub fn moment(field: &str, time: &Time, zone: Option<&str>) -> Result<Timestamp, Failure> {
    let moment = time.resolve(zone).map_err(|problem| match problem {
        TimeProblem::OutOfRange => out_of_range(field),
        _ => Failure::field(field, problem.to_string()),
    })?;
    Ok(Timestamp::from_micros(moment.as_micros()))
}

/// So long after `now`. `now + by` would stop at the end of time, where nothing can be written any more.
pub fn after(field: &str, now: Timestamp, by: Duration) -> Result<Timestamp, Failure> {
    let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    match now.as_micros().saturating_add(by) {
        micros if micros <= wire::Moment::MAX.as_micros() => Ok(Timestamp::from_micros(micros)),
        _ => Err(out_of_range(field)),
    }
}

fn out_of_range(field: &str) -> Failure {
    let detail = TimeProblem::OutOfRange.to_string();
    Failure::new("time_out_of_range", format!("{field}: {detail}")).at(field, detail)
}

/// A zone that is named must be there, also if no time needs it.
pub fn check_zone(zone: Option<&str>) -> Result<(), Failure> {
    let found = zone.map_or(Ok(()), wire::check_zone);
    found.map_err(|problem| Failure::field("timezone", problem.to_string()))
}

/// The moment that a time of the wire means, if there is one.
pub fn optional_moment(
    field: &str,
    time: Option<&Time>,
    zone: Option<&str>,
) -> Result<Option<Timestamp>, Failure> {
    time.map(|time| moment(field, time, zone)).transpose()
}

/// A moment, as the wire has it.
pub fn moment_of(at: Timestamp) -> wire::Moment {
    wire::Moment::from_micros(at.as_micros())
}

/// Who does a task, in one word.
pub fn kind(target: &Target) -> wire::TargetKind {
    match target {
        Target::Handler(_) => wire::TargetKind::Handler,
        Target::Destination(_) => wire::TargetKind::Http,
        Target::Worker => wire::TargetKind::Worker,
    }
}

fn on_conflict(wire: wire::OnConflict) -> OnConflict {
    match wire {
        wire::OnConflict::Replace => OnConflict::Replace,
        wire::OnConflict::Keep => OnConflict::Keep,
        wire::OnConflict::Error => OnConflict::Error,
    }
}

/// How a failed task is tried again. What a rule leaves out is as in `default`.
pub fn retry_policy(retry: &Retry) -> Result<RetryPolicy, Failure> {
    let rule = match retry {
        Retry::Preset(RetryPreset::Default) => return Ok(RetryPolicy::DEFAULT),
        Retry::Preset(RetryPreset::Webhooks) => return Ok(RetryPolicy::WEBHOOKS),
        Retry::Preset(RetryPreset::Pagerduty) => return Ok(RetryPolicy::PAGERDUTY),
        Retry::Preset(RetryPreset::Schedule) => return Ok(RetryPolicy::SCHEDULE),
        Retry::Rule(rule) => rule,
    };
    let default = RetryPolicy::DEFAULT;
    let Waits::Growing { min, max, factor_percent, jitter_percent } = default.waits else {
        return Err(Failure::field("retry", "a rule cannot be made of a list of waits"));
    };
    let factor_percent = match rule.factor {
        Some(factor) if !(1.0..=100.0).contains(&factor) => {
            return Err(Failure::field("retry.factor", "must be 1 to 100"));
        }
        Some(factor) => (factor * 100.0).round() as u32,
        None => factor_percent,
    };
    let min = rule.min.map_or(min, Into::into);
    let max = rule.max.map_or(max.max(min), Into::into);
    Ok(RetryPolicy {
        waits: Waits::Growing { min, max, factor_percent, jitter_percent },
        attempts_max: rule.attempts.unwrap_or(default.attempts_max),
        age_max: rule.max_age.map(Into::into).or(default.age_max),
    })
}
