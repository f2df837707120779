//! Queues: their settings, and what is done to all of their tasks.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use punctual::{
    Error, Filter, Found, OnExhausted, Past, Priority, QueueSettings, QueueView, Rate, Refusal, RetryPolicy,
    TaskView, Timestamp,
};
use punctual_client::wire::{self, Change};
use punctual_core::QueueId;

use super::ask::{self, Asker, Name, Query, refuse_dots};
use super::draft::{moment_of, retry_policy};
use super::expected::{Expected, Unless};
use super::failure::Failure;
use super::list::purge;
use super::named::Named;
use super::notifications;
use super::reply::{json, tagged, unchanged};
use super::verbs::{QUEUE_VERBS, QueueVerb, name_and_verb};
use super::view;
use crate::app::{App, Scheduler};
use crate::call::{Codes, Conflict, Secret};
use crate::counts::{ByState, Flow, QueueCounts};
use crate::extras::Extras;

/// So often a queue is tried to be removed that others change meanwhile.
const REMOVALS_MAX: usize = 8;

/// To find the next task that nobody works on, so many are read at once (each may carry a quarter of a megabyte), and
/// so often.
const PIECE_MAX: usize = 16;
const PIECES_MAX: usize = 64;

/// `GET /v1/queues/{queue}`
pub async fn get(asker: Asker, Name(name): Name, headers: HeaderMap) -> Result<Response, Failure> {
    let unless = Unless::read(&headers)?;
    let queue = asker.scheduler.find_queue(&name).await?.ok_or(Error::QueueNotFound)?;
    match unless.names(Some(queue.version)) {
        true => Ok(unchanged(queue.version)),
        false => Ok(answered(&queue)),
    }
}

fn answered(queue: &QueueView) -> Response {
    tagged(StatusCode::OK, queue.version, &shown(queue))
}

/// `GET /v1/queues`
pub async fn list(asker: Asker, Query(query): Query<wire::PageQuery>) -> Result<Response, Failure> {
    let queues = asker.scheduler.queues().await?;
    let (page, next) = Named::Queues.page(&queues, |queue| &queue.name, &query)?;
    Ok(json(StatusCode::OK, &wire::QueuePage { queues: page.iter().map(shown).collect(), next }))
}

/// `PUT /v1/queues/{queue}`: all settings; what is left out is the default.
pub async fn put(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    headers: HeaderMap,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    write(&app, asker, &name, &headers, &bytes, true).await
}

/// `PATCH /v1/queues/{queue}`: some settings; the others stay.
pub async fn patch(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    headers: HeaderMap,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    write(&app, asker, &name, &headers, &bytes, false).await
}

async fn write(
    app: &App,
    asker: Asker,
    name: &str,
    headers: &HeaderMap,
    bytes: &Bytes,
    whole: bool,
) -> Result<Response, Failure> {
    refuse_dots(name)?;
    let wished: wire::QueueSettings = ask::body(bytes)?;
    let (expected, unless) = (Expected::read(headers, "queue_changed")?, Unless::read(headers)?);
    // Checked against the defaults first: what is wrong is told in the words of the wire.
    change(app, &wished, &QueueSettings::default(), Extras::default())?;
    let is_expected = |version: Option<u64>| expected.allows(version) && !unless.names(version);
    let written = asker.scheduler.write_queue(name, is_expected, |settings, extras| {
        let (before, extras) = match whole {
            // Whether it is paused is no setting.
            true => {
                (QueueSettings { paused: settings.paused, ..QueueSettings::default() }, Extras::default())
            }
            false => (settings.clone(), Extras::decode(extras)),
        };
        let changed = change(app, &wished, &before, extras);
        let (settings, extras) = changed.map_err(|_| Refusal::BadSetting {
            what: "a setting",
            hint: "does not go with the others: send all of them with PUT",
        })?;
        Ok((settings, extras.encode()))
    });
    match written.await {
        Err(Error::QueueChanged) if expected == Expected::Anything => {
            let detail = "the queue is there, and If-None-Match says that it must not be";
            Err(Failure::new("queue_exists", detail))
        }
        written => Ok(answered(&written?)),
    }
}

/// What settings become by what was wished.
fn change(
    app: &App,
    wished: &wire::QueueSettings,
    before: &QueueSettings,
    mut extras: Extras,
) -> Result<(QueueSettings, Extras), Failure> {
    let default = QueueSettings::default();
    let mut settings = before.clone();
    let wished = wished.clone();
    settings.retry = match wished.retry {
        Change::Keep => settings.retry,
        Change::Clear => RetryPolicy::DEFAULT,
        Change::Set(retry) => retry_policy(&retry)?,
    };
    settings.on_exhausted =
        set(wished.on_exhausted, settings.on_exhausted, default.on_exhausted, |it| match it {
            wire::OnExhausted::Block => OnExhausted::Block,
            wire::OnExhausted::DeadLetter => OnExhausted::DeadLetter,
        });
    settings.priority = match wished.priority {
        Change::Keep => settings.priority,
        Change::Clear => default.priority,
        Change::Set(level) => {
            Priority::new(level).ok_or_else(|| Failure::field("priority", "must be 0 to 9"))?
        }
    };
    settings.pinned = wished.pinned.apply(settings.pinned, || default.pinned);
    settings.running_max = wished.concurrency.apply_to(settings.running_max);
    settings.rate = set(wished.rate, settings.rate, None, |rate| {
        Some(Rate { starts: rate.starts, per: rate.per.into(), burst: rate.burst.unwrap_or(rate.starts) })
    });
    settings.timeout = set(wished.timeout, settings.timeout, default.timeout, Into::into);
    settings.exclusive = wished.exclusive.apply(settings.exclusive, || default.exclusive);
    settings.past = set(wished.past, settings.past, default.past, |it| match it {
        wire::Past::Reject => Past::Reject,
        wire::Past::RunNow => Past::RunNow,
    });
    retain(&mut settings, wished.retention, &default);
    extras.target = wished.target.apply(extras.target, Default::default);
    if let Some(call) = extras.call() {
        call.check(app.guard()).map_err(|error| {
            Failure::new("call_invalid", error.to_string()).at("target.http", error.to_string())
        })?;
    }
    if let Change::Clear | Change::Set(_) = wished.secrets {
        extras.secrets = secrets(wished.secrets.set().unwrap_or_default())?;
    }
    extras.success = match wished.success {
        Change::Keep => extras.success,
        Change::Clear => Default::default(),
        Change::Set(success) => succeed(extras.success, success)?,
    };
    Ok((settings, extras))
}

fn set<W, T>(wished: Change<W>, before: T, default: T, make: impl FnOnce(W) -> T) -> T {
    match wished {
        Change::Keep => before,
        Change::Clear => default,
        Change::Set(wished) => make(wished),
    }
}

fn retain(settings: &mut QueueSettings, wished: Change<wire::Retention>, default: &QueueSettings) {
    let wished = match wished {
        Change::Keep => return,
        Change::Clear => {
            settings.keep_succeeded = default.keep_succeeded;
            settings.keep_dead = default.keep_dead;
            settings.keep_identities = default.keep_identities;
            settings.keep_bytes = default.keep_bytes;
            return;
        }
        Change::Set(wished) => wished,
    };
    settings.keep_succeeded = wished.succeeded.map_or(settings.keep_succeeded, Into::into);
    settings.keep_dead = wished.dead.map_or(settings.keep_dead, Into::into);
    settings.keep_identities = wished.identities.map_or(settings.keep_identities, Into::into);
    settings.keep_bytes = wished.bytes.or(settings.keep_bytes);
}

fn secrets(texts: Vec<String>) -> Result<Vec<Secret>, Failure> {
    let read =
        |text: &String| Secret::parse(text).map_err(|error| Failure::field("secrets", error.to_string()));
    texts.iter().map(read).collect()
}

fn succeed(
    mut success: crate::call::Success,
    wished: wire::Success,
) -> Result<crate::call::Success, Failure> {
    let codes = |field: &str, texts: &[String]| {
        Codes::parse(texts).map_err(|error| Failure::field(field, error.to_string()))
    };
    if let Some(texts) = wished.codes {
        if texts.is_empty() {
            return Err(Failure::field("success.codes", "without any code no call could ever succeed"));
        }
        success.codes = codes("success.codes", &texts)?;
    }
    if let Some(texts) = wished.give_up {
        success.give_up = codes("success.give_up", &texts)?;
    }
    success.conflict = match wished.conflict {
        Some(wire::Conflict::Repeated) => Conflict::Repeated,
        Some(wire::Conflict::Always) => Conflict::Always,
        Some(wire::Conflict::Never) => Conflict::Never,
        None => success.conflict,
    };
    Ok(success)
}

/// A queue as it is answered.
fn shown(queue: &QueueView) -> wire::Queue {
    let (settings, extras) = (&queue.settings, Extras::decode(&queue.extras));
    wire::Queue {
        name: queue.name.to_string(),
        paused: settings.paused,
        target: extras.target,
        retry: view::retry(&settings.retry),
        on_exhausted: match settings.on_exhausted {
            OnExhausted::Block => wire::OnExhausted::Block,
            OnExhausted::DeadLetter => wire::OnExhausted::DeadLetter,
        },
        priority: settings.priority.level(),
        pinned: settings.pinned,
        concurrency: settings.running_max,
        rate: settings.rate.map(|rate| wire::Rate {
            starts: rate.starts,
            per: rate.per.into(),
            burst: Some(rate.burst),
        }),
        timeout: settings.timeout.into(),
        exclusive: settings.exclusive,
        past: match settings.past {
            Past::Reject => wire::Past::Reject,
            Past::RunNow => wire::Past::RunNow,
        },
        retention: wire::Retention {
            succeeded: Some(settings.keep_succeeded.into()),
            dead: Some(settings.keep_dead.into()),
            identities: Some(settings.keep_identities.into()),
            bytes: settings.keep_bytes,
        },
        secrets: extras.secrets.len(),
        public_keys: extras.secrets.iter().filter_map(Secret::public_key).collect(),
        success: wire::Success {
            codes: Some(extras.success.codes.into()),
            give_up: Some(extras.success.give_up.into()),
            conflict: Some(match extras.success.conflict {
                Conflict::Repeated => wire::Conflict::Repeated,
                Conflict::Always => wire::Conflict::Always,
                Conflict::Never => wire::Conflict::Never,
            }),
        },
    }
}

/// `GET /v1/queues/{queue}/stats`
pub async fn stats(State(app): State<App>, asker: Asker, Name(name): Name) -> Result<Response, Failure> {
    let scheduler = &asker.scheduler;
    let queue = scheduler.find_queue(&name).await?.ok_or(Error::QueueNotFound)?;
    let (counts, waiting) = app.watch().counts().of(QueueId(queue.number));
    let due_at = next_due(scheduler, &queue, counts.running + counts.reserved).await?;
    let lateness = due_at.map(|due_at| scheduler.now().since(due_at)).filter(|late| !late.is_zero());
    let stats = wire::QueueStats {
        queue: name,
        paused: queue.settings.paused,
        waiting: waiting.map(|waiting| waiting.sum()),
        tasks: tasks_by_state(&counts, waiting),
        flow: flow(&counts.flow),
        next_at: due_at.map(moment_of),
        lateness: lateness.map(Into::into),
    };
    Ok(json(StatusCode::OK, &stats))
}

/// When the next task is due that nobody works on yet. Those that somebody works on come first; behind too many of them
/// it is the next that could start, which is known without looking.
async fn next_due(
    scheduler: &Scheduler,
    queue: &QueueView,
    in_hand: u64,
) -> Result<Option<Timestamp>, Failure> {
    let filter = Filter::live().queue(&queue.name);
    let piece = usize::try_from(in_hand + 1).map_or(PIECE_MAX, |tasks| tasks.min(PIECE_MAX));
    let mut from = None;
    for _ in 0..PIECES_MAX {
        let page = scheduler.list(&filter, from, piece).await?;
        let views = scheduler.views(page.tasks).await?;
        let next = views.into_iter().find(|view| view.running.is_none());
        if let Some(TaskView { found: Found::Live(task), .. }) = next {
            return Ok(Some(task.due_at()));
        }
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok(None),
        }
    }
    let waiting = scheduler.waiting().await?;
    Ok(waiting.into_iter().find(|(number, _)| number.0 == queue.number).map(|(_, due_at)| due_at))
}

fn tasks_by_state(counts: &QueueCounts, waiting: Option<ByState<u64>>) -> BTreeMap<wire::State, u64> {
    let running = [(wire::State::Running, counts.running), (wire::State::Reserved, counts.reserved)];
    let waiting = waiting.map(|ByState { scheduled, retrying, blocked }| {
        [
            (wire::State::Scheduled, scheduled),
            (wire::State::Retrying, retrying),
            (wire::State::Blocked, blocked),
        ]
    });
    running.into_iter().chain(waiting.into_iter().flatten()).collect()
}

fn flow(flow: &Flow) -> wire::Flow {
    let Flow { created, succeeded, dead, cancelled, expired } = *flow;
    wire::Flow { created, succeeded, dead, cancelled, expired }
}

/// `DELETE /v1/queues/{queue}`
pub async fn delete(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let expected = Expected::read(&headers, "queue_changed")?;
    if let Some(notification) = notifications::of_queue(&app, &asker.scheduler, &name) {
        let detail = format!(
            "the notification {notification} is signed and sent by it: delete that, and its queue goes too"
        );
        return Err(Failure::new("queue_in_use", detail));
    }
    let remove = || asker.scheduler.remove_queue(&name, |version| expected.allows(Some(version)));
    let mut removed = remove().await;
    // It may have changed from one version that is expected to another: who names none expects all of them.
    for _ in 0..REMOVALS_MAX {
        match removed {
            Err(Error::QueueChanged) => removed = remove().await,
            _ => break,
        }
    }
    removed?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// `POST /v1/queues/{queue}:pause`, `:resume` and `:purge`
pub async fn act(
    asker: Asker,
    Name(path): Name,
    headers: HeaderMap,
    ask::Nothing: ask::Nothing,
) -> Result<Response, Failure> {
    let scheduler = &asker.scheduler;
    let (name, verb) = name_and_verb(&path, QUEUE_VERBS)?;
    let expected = Expected::read(&headers, "queue_changed")?;
    // A name that is mistyped must not become a queue.
    let queue = scheduler.find_queue(name).await?.ok_or(Error::QueueNotFound)?;
    let paused = match verb {
        QueueVerb::Pause => true,
        QueueVerb::Resume => false,
        QueueVerb::Purge if expected.allows(Some(queue.version)) => {
            return Ok(json(StatusCode::OK, &purge(scheduler, name).await?));
        }
        QueueVerb::Purge => return Err(Error::QueueChanged.into()),
    };
    let is_expected = |version: Option<u64>| version.is_some() && expected.allows(version);
    let written = scheduler.write_queue(name, is_expected, |settings, extras| {
        Ok((QueueSettings { paused, ..settings.clone() }, extras.clone()))
    });
    Ok(answered(&written.await?))
}
