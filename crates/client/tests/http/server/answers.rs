//! Which request gets which answer. Bodies are read as strictly as the true server reads them.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::StreamExt;
use http::StatusCode;
use punctual_client::wire::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tasks::now;
use super::{Asked, World, json, problem};

type Answer = Result<Response, Problem>;

pub async fn answer(world: &World, asked: &Asked, stream: Option<Body>) -> Response {
    let answer = route(world, asked, stream).await.unwrap_or_else(problem);
    world.has_changed();
    answer
}

async fn route(world: &World, asked: &Asked, stream: Option<Body>) -> Answer {
    let (method, uri) = asked.line.split_once(' ').unwrap_or_default();
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match (method, &parts[..]) {
        ("GET", ["readyz"]) => Ok(Response::new(Body::empty())),
        ("POST", ["v1", "queues", queue, "tasks"]) => match stream {
            Some(stream) => Ok(create_lines(world, queue, stream).await),
            None => create(world, queue, asked),
        },
        ("POST", ["v1", "queues", queue, "reserve"]) => reserve(world, queue, body(asked)?).await,
        ("GET", ["v1", "queues", queue, "peek"]) => {
            let PeekQuery { limit } = read_query(query)?;
            let wanted = TaskQuery { queue: Some((*queue).to_owned()), limit, ..TaskQuery::default() };
            ok(&world.tasks().list(&wanted))
        }
        ("POST", ["v1", "queues", _, verb]) => report_many(world, verb, asked),
        ("GET", ["v1", "events"]) => events(read_query(query)?),
        (_, ["v1", "queues", ..] | ["v1", "lanes" | "lanes:release" | "lanes:skip"]) => {
            queues(method, &parts[1..], query, asked)
        }
        (_, ["v1", "notifications", ..]) => notifications(method, parts.get(2).copied(), asked),
        ("POST", ["schedule"]) => {
            let call: CallAt = body(asked)?;
            Ok(json(StatusCode::CREATED, &scheduled(&call)?))
        }
        (_, ["v1", ..]) => tasks(world, method, &parts[1..], query, asked).await,
        _ => Err(Problem::new(404, "not_found", "Nothing here", asked.line.clone())),
    }
}

async fn tasks(world: &World, method: &str, parts: &[&str], query: &str, asked: &Asked) -> Answer {
    match (method, parts) {
        ("GET", ["tasks"]) => ok(&world.tasks().list(&read_query(query)?)),
        ("POST", ["tasks:move"]) => {
            let MoveByFilter { filter, dry_run, .. } = body(asked)?;
            ok(&changed(world, filter, dry_run, State::Scheduled))
        }
        ("POST", ["tasks:cancel" | "tasks:retry" | "tasks:run"]) => {
            let ByFilter { filter, dry_run, .. } = body(asked)?;
            let is_cancel = parts[0] == "tasks:cancel";
            let state = if is_cancel { State::Cancelled } else { State::Scheduled };
            ok(&changed(world, filter, dry_run, state))
        }
        ("GET", ["tasks", id, "result"]) => result(world, id, read_query(query)?).await,
        ("POST", ["tasks", id, verb]) => report(world, id, verb, asked),
        ("POST", ["tasks", id_and_verb]) => {
            let (id, _) = id_and_verb.split_once(':').unwrap_or_default();
            let mut tasks = world.tasks();
            let task = tasks.get(id)?;
            task.state = State::Scheduled;
            ok(task)
        }
        ("GET", ["tasks", id]) => {
            let ViewQuery { view } = read_query(query)?;
            let mut task = world.tasks().get(id)?.clone();
            if view != Some(View::Full) {
                (task.payload, task.http) = (None, None);
            }
            ok(&task)
        }
        ("PATCH", ["tasks", id]) => {
            let revision = asked.headers.get("if-match").and_then(|value| value.to_str().ok());
            ok(&world.tasks().patch(id, revision, body(asked)?)?)
        }
        ("DELETE", ["tasks", id]) => ok(&world.tasks().cancel(id)?),
        _ => Err(Problem::new(404, "not_found", "Nothing here", asked.line.clone())),
    }
}

fn ok(value: &impl Serialize) -> Answer {
    Ok(json(StatusCode::OK, value))
}

fn body<T: DeserializeOwned>(asked: &Asked) -> Result<T, Problem> {
    read(&asked.body).map_err(|fault| refused(&fault))
}

fn refused(fault: &BodyFault) -> Problem {
    let problem = Problem::new(422, "body_invalid", "It cannot be understood", fault.to_string());
    let errors = fault.field_error().into_iter().collect();
    Problem { errors, ..problem }
}

fn read_query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    serde_urlencoded::from_str(query)
        .map_err(|error| Problem::new(422, "query_invalid", "It cannot be understood", error.to_string()))
}

fn create(world: &World, queue: &str, asked: &Asked) -> Answer {
    let is_minimal = asked.headers.get("prefer").is_some_and(|value| value == "return=minimal");
    match Creation::read(&asked.body).map_err(|fault| refused(&fault))? {
        Creation::One(task) => {
            let task = world.tasks().create(queue, &task)?;
            match is_minimal {
                true => Ok(json(StatusCode::CREATED, &TaskId { id: task.id })),
                false => Ok(json(StatusCode::CREATED, &task)),
            }
        }
        Creation::Many(tasks) => {
            let results = tasks.each().map(|task| task.map_err(|(fault, _)| fault));
            let results = results.map(|task| create_item(world, queue, task, is_minimal)).collect();
            ok(&Results { results })
        }
    }
}

fn create_item(
    world: &World,
    queue: &str,
    task: Result<NewTask, BodyFault>,
    is_minimal: bool,
) -> CreateResult {
    let made = task.map_err(|fault| refused(&fault)).and_then(|new| world.tasks().create(queue, &new));
    match made {
        Ok(task) if is_minimal => CreateResult { status: 201, id: Some(task.id), ..CreateResult::default() },
        Ok(task) => CreateResult { status: 201, task: Some(task), ..CreateResult::default() },
        Err(problem) => {
            CreateResult { status: problem.status, problem: Some(problem), ..CreateResult::default() }
        }
    }
}

/// Answers each line as it comes. A line may come in pieces.
async fn create_lines(world: &World, queue: &str, stream: Body) -> Response {
    let mut lines = Vec::new();
    let mut pieces = stream.into_data_stream();
    while let Some(Ok(piece)) = pieces.next().await {
        lines.extend_from_slice(&piece);
        world.has_changed();
    }
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let results = lines.map(|line| {
        let result = create_item(world, queue, read(line), true);
        // In two pieces, to see that they are put together.
        let mut text = serde_json::to_vec(&result).expect("it can be written");
        text.push(b'\n');
        let end = text.split_off(text.len() / 2);
        [Ok::<_, std::io::Error>(Bytes::from(text)), Ok(Bytes::from(end))]
    });
    let results: Vec<_> = results.flatten().collect();
    Response::new(Body::from_stream(futures_util::stream::iter(results)))
}

fn changed(world: &World, filter: Filter, dry_run: bool, state: State) -> Changed {
    let mut tasks = world.tasks();
    let found = tasks.list(&filter.into()).tasks;
    let matched = found.len() as u64;
    if dry_run {
        return Changed { matched, ..Changed::default() };
    }
    for task in found {
        tasks.get(&task.id).expect("it was found").state = state;
    }
    Changed { matched, changed: matched, ..Changed::default() }
}

/// Answers when the task has ended, or the wait is over.
async fn result(world: &World, id: &str, query: ResultQuery) -> Answer {
    let mut news = world.changed.subscribe();
    let ended = async {
        loop {
            let task = world.tasks().get(id).cloned();
            match task {
                Ok(task) if !task.state.has_ended() => {}
                ended => return ended,
            }
            news.changed().await.expect("the world is there");
        }
    };
    let wait = query.wait.map_or(Duration::ZERO, Duration::from);
    match tokio::time::timeout(wait, ended).await {
        Ok(task) => {
            let Task { state, result, last_error: error, .. } = task?;
            ok(&TaskResult { state, result, error })
        }
        Err(_) => {
            let state = world.tasks().get(id)?.state;
            Ok(json(StatusCode::ACCEPTED, &TaskResult { state, result: None, error: None }))
        }
    }
}

/// Answers when there are tasks, or the wait is over.
async fn reserve(world: &World, queue: &str, reserve: Reserve) -> Answer {
    let mut news = world.changed.subscribe();
    let found = async {
        loop {
            let tasks = world.tasks().reserve(queue, reserve.max.unwrap_or(1) as usize);
            if !tasks.is_empty() {
                return tasks;
            }
            news.changed().await.expect("the world is there");
        }
    };
    let wait = reserve.wait.map_or(Duration::ZERO, Duration::from);
    let tasks = tokio::time::timeout(wait, found).await.unwrap_or_default();
    ok(&Reserved { tasks })
}

fn report(world: &World, id: &str, verb: &str, asked: &Asked) -> Answer {
    let progress = match verb {
        "ack" => do_ack(world, body::<Ack>(asked)?.of(id)),
        "nack" => do_nack(world, body::<Nack>(asked)?.of(id)),
        "touch" => {
            do_touch(world, body::<Touch>(asked)?.of(id))?;
            return ok(&Touched { ttr_until: now(), ttr: world.tasks().ttr });
        }
        "release" => do_release(world, body::<Release>(asked)?.of(id)),
        "bury" => do_bury(world, body::<Bury>(asked)?.of(id)),
        "kick" => do_kick(world, body::<Kick>(asked)?.of(id)),
        _ => Err(Problem::new(404, "not_found", "Nothing here", "")),
    };
    ok(&progress?)
}

fn report_many(world: &World, verb: &str, asked: &Asked) -> Answer {
    fn each<T: DeserializeOwned>(
        world: &World,
        asked: &Asked,
        id_of: impl Fn(&T) -> &String,
        act: impl Fn(&World, T) -> Result<Progress, Problem>,
    ) -> Answer {
        let Batch::<T> { tasks } = body(asked)?;
        let results = tasks.into_iter().map(|item| {
            let id = id_of(&item).clone();
            match act(world, item) {
                Ok(progress) => ReportResult {
                    status: 200,
                    id,
                    state: Some(progress.state),
                    ttr: world.tasks().ttr,
                    ..ReportResult::default()
                },
                Err(problem) => ReportResult {
                    status: problem.status,
                    id,
                    problem: Some(problem),
                    ..ReportResult::default()
                },
            }
        });
        ok(&Results { results: results.collect() })
    }
    match verb {
        "ack" => each(world, asked, |item: &AckItem| &item.id, do_ack),
        "nack" => each(world, asked, |item: &NackItem| &item.id, do_nack),
        "touch" => each(world, asked, |item: &TouchItem| &item.id, do_touch),
        "release" => each(world, asked, |item: &ReleaseItem| &item.id, do_release),
        "bury" => each(world, asked, |item: &BuryItem| &item.id, do_bury),
        "kick" => each(world, asked, |item: &KickItem| &item.id, do_kick),
        _ => queues("POST", &asked.line.split('/').skip(2).collect::<Vec<_>>(), "", asked),
    }
}

fn do_ack(world: &World, item: AckItem) -> Result<Progress, Problem> {
    world.tasks().report(&item.id, Some(&item.token), |task| {
        task.state = State::Succeeded;
        task.result = item.result;
    })
}

fn do_nack(world: &World, item: NackItem) -> Result<Progress, Problem> {
    world.tasks().report(&item.id, Some(&item.token), |task| {
        // A second failure is the last, so that tests end.
        task.state = if task.attempts < 2 { State::Retrying } else { State::Dead };
        task.last_error = item.error;
    })
}

fn do_touch(world: &World, item: TouchItem) -> Result<Progress, Problem> {
    world.tasks().report(&item.id, Some(&item.token), |_| {})
}

fn do_release(world: &World, item: ReleaseItem) -> Result<Progress, Problem> {
    world.tasks().report(&item.id, Some(&item.token), |task| {
        task.state = State::Scheduled;
        task.attempts -= 1;
    })
}

fn do_bury(world: &World, item: BuryItem) -> Result<Progress, Problem> {
    world.tasks().report(&item.id, Some(&item.token), |task| {
        task.state = State::Dead;
        task.last_error = item.error;
    })
}

fn do_kick(world: &World, item: KickItem) -> Result<Progress, Problem> {
    world.tasks().report(&item.id, None, |task| task.state = State::Scheduled)
}

fn scheduled(call: &CallAt) -> Result<ScheduledCall, Problem> {
    let at = call.execution_date_time.resolve(call.timezone.as_deref());
    Ok(ScheduledCall {
        id: "1".to_owned(),
        url: call.url.clone(),
        verb: call.verb.clone().unwrap_or("POST".to_owned()),
        execution_date_time: at
            .map_err(|wrong| Problem::new(422, "time_invalid", "Bad time", wrong.to_string()))?,
        status: CallStatus::ToDo,
    })
}

fn queues(method: &str, parts: &[&str], query: &str, asked: &Asked) -> Answer {
    match (method, parts) {
        ("GET", ["queues"]) => {
            read_query::<PageQuery>(query)?;
            ok(&QueuePage { queues: vec![queue("mail", QueueSettings::default())], next: None })
        }
        ("PUT" | "PATCH", ["queues", name]) => ok(&queue(name, body(asked)?)),
        ("GET", ["queues", name]) => ok(&queue(name, QueueSettings::default())),
        ("DELETE", ["queues", "full"]) => {
            Err(Problem::new(409, code::QUEUE_NOT_EMPTY, "Tasks wait", "cancel them first"))
        }
        ("DELETE", ["queues", _]) => Ok(no_content()),
        ("GET", ["queues", name, "stats"]) => {
            ok(&QueueStats { queue: (*name).to_owned(), ..QueueStats::default() })
        }
        ("POST", ["queues", verb]) if verb.ends_with(":purge") => {
            assert!(asked.body.is_empty(), "a verb has nothing to say");
            ok(&Changed { matched: 3, changed: 3, ..Changed::default() })
        }
        ("POST", ["queues", verb]) => {
            let (name, verb) = verb.split_once(':').unwrap_or_default();
            ok(&Queue { paused: verb == "pause", ..queue(name, QueueSettings::default()) })
        }
        ("GET", ["lanes"]) => {
            let LaneQuery { queue, blocked, .. } = read_query(query)?;
            let lane = Lane {
                queue: queue.unwrap_or_default(),
                lane: "a".to_owned(),
                blocked: blocked.unwrap_or_default(),
                head: None,
            };
            ok(&LanePage { lanes: vec![lane], next: None })
        }
        ("POST", [verb]) => {
            let LaneName { lane, .. } = body(asked)?;
            let state = if *verb == "lanes:skip" { State::Cancelled } else { State::Scheduled };
            ok(&Progress { id: lane, state, next_at: None })
        }
        _ => Err(Problem::new(404, "not_found", "Nothing here", asked.line.clone())),
    }
}

fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn queue(name: &str, settings: QueueSettings) -> Queue {
    Queue {
        name: name.to_owned(),
        paused: false,
        target: settings.target.set().unwrap_or_default(),
        retry: settings.retry.set().unwrap_or(RetryPreset::Default.into()),
        on_exhausted: settings.on_exhausted.set().unwrap_or_default(),
        priority: settings.priority.set().unwrap_or(5),
        pinned: settings.pinned.set().unwrap_or_default(),
        concurrency: settings.concurrency.set(),
        rate: settings.rate.set(),
        timeout: settings.timeout.set().unwrap_or(Span::from_secs(30)),
        exclusive: settings.exclusive.set().unwrap_or_default(),
        past: settings.past.set().unwrap_or_default(),
        retention: settings.retention.set().unwrap_or_default(),
        secrets: settings.secrets.set().unwrap_or_default().len(),
        public_keys: Vec::new(),
        success: settings.success.set().unwrap_or_default(),
    }
}

fn notifications(method: &str, name: Option<&str>, asked: &Asked) -> Answer {
    let shown = |name: &str, new: NewNotification| Notification {
        name: name.to_owned(),
        url: new.url,
        events: new.events,
        queue: new.queue,
        lateness_over: new.lateness_over,
        signed: new.secret.is_some(),
    };
    match (method, name) {
        ("PUT", Some(name)) => ok(&shown(name, body(asked)?)),
        ("GET", Some(name)) => ok(&shown(name, NewNotification::default())),
        ("GET", None) => ok(&NotificationPage::default()),
        _ => Ok(no_content()),
    }
}

/// Three events, one of a kind that nobody knows yet, in pieces that end anywhere.
fn events(query: EventQuery) -> Answer {
    let event = |id: &str, kind: &str| {
        format!(
            "event: {kind}\r\nid: {id}\r\ndata: {{\"specversion\": \"1.0\", \"id\": \"{id}\", \"source\": \"/\",\r\ndata: \
             \"type\": \"{kind}\", \"time\": \"{}\", \"data\": {{\"queue\": \"{}\"}}}}\r\n\r\n",
            now(),
            query.queue.clone().unwrap_or_default()
        )
    };
    let kind = query.kind.unwrap_or(EventKind::TaskCreated).as_str();
    let text = format!(": hello\n\n{}{}{}", event("1", kind), event("2", "task.dreamt"), event("3", kind));
    let pieces: Vec<_> = text
        .as_bytes()
        .chunks(7)
        .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)))
        .collect();
    Ok(Response::new(Body::from_stream(futures_util::stream::iter(pieces))))
}
