//! Many tasks: listing them a page at a time, and changing all that a filter finds.

use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use http::StatusCode;
use punctual::{EndState, Error, Filter, Found, PageKey, TaskId, TaskState, TaskView, Timestamp};
use punctual_client::wire;
use punctual_core::{PartitionId, Seq};

use super::ask::{self, Asker, Query};
use super::draft::{check_zone, due, optional_moment};
use super::failure::Failure;
use super::reply::json;
use super::view;
use crate::app::Scheduler;

const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;
/// So many reasons are told of why tasks were not changed.
const PROBLEMS_MAX: usize = 100;
/// A page that shows what its tasks carry ends after so many bytes of it. Tasks are read so many at a time at least,
/// which bounds how much more it can be.
pub const FULL_BYTES: usize = 8 * 1024 * 1024;
const FULL_PIECE: usize = 16;

/// Where a page begins: among those that have not ended, or among those that have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cursor {
    ended: bool,
    /// Where all tasks are moved to, from the first page on: `delay` counts from one moment, and those that were moved
    /// can be told from those that were not.
    moved_to: Option<Timestamp>,
    key: Option<PageKey>,
}

/// What is answered to a cursor that is none of this list.
pub fn cursor_invalid() -> Failure {
    Failure::new("cursor_invalid", "send `next` of the page before, as it was")
}

const ENDED: u8 = 1;
const MOVED: u8 = 2;

impl Cursor {
    /// The cursor that a request names, if it does.
    fn given(text: Option<&str>) -> Result<Option<Cursor>, Failure> {
        let Some(text) = text else { return Ok(None) };
        Cursor::read(text).map(Some).ok_or_else(cursor_invalid)
    }

    fn text(self) -> String {
        let mut bytes = vec![u8::from(self.ended) * ENDED + u8::from(self.moved_to.is_some()) * MOVED];
        if let Some(at) = self.moved_to {
            bytes.extend(at.as_micros().to_be_bytes());
        }
        if let Some(PageKey { at, partition, seq }) = self.key {
            bytes.extend(at.as_micros().to_be_bytes());
            bytes.extend(partition.0.to_be_bytes());
            bytes.extend(seq.0.to_be_bytes());
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn read(text: &str) -> Option<Cursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (kind, mut rest) = bytes.split_first()?;
        if *kind > ENDED + MOVED {
            return None;
        }
        let time = |bytes: &[u8]| Some(Timestamp::from_micros(i64::from_be_bytes(bytes.try_into().ok()?)));
        let (ended, mut moved_to) = (kind & ENDED > 0, None);
        if kind & MOVED > 0 {
            moved_to = Some(time(rest.get(..8)?)?);
            rest = &rest[8..];
        }
        if rest.is_empty() {
            return Some(Cursor { ended, moved_to, key: None });
        }
        let at = time(rest.get(..8)?)?;
        let partition = PartitionId(u16::from_be_bytes(rest.get(8..10)?.try_into().ok()?));
        let seq = Seq(u64::from_be_bytes(rest.get(10..)?.try_into().ok()?));
        Some(Cursor { ended, moved_to, key: Some(PageKey { at, partition, seq }) })
    }
}

/// How many items a page has.
pub fn page_limit(limit: Option<u32>) -> Result<usize, Failure> {
    match limit.unwrap_or(PAGE) {
        limit @ 1..=PAGE_MAX => Ok(limit as usize),
        _ => Err(Failure::new("query_invalid", "limit: must be 1 to 1,000")),
    }
}

/// What is listed: a filter of the wire, understood.
struct Listing {
    live: Option<Filter>,
    ended: Option<Filter>,
    state: Option<wire::State>,
}

impl Listing {
    fn of(filter: &wire::Filter) -> Result<Listing, Failure> {
        let from = optional_moment("from", filter.from.as_ref(), None)?;
        let to = optional_moment("to", filter.to.as_ref(), None)?;
        let narrow = |mut narrowed: Filter| {
            if let Some(queue) = &filter.queue {
                narrowed = narrowed.queue(queue);
            }
            if let Some(lane) = &filter.lane {
                narrowed = narrowed.lane(lane);
            }
            if let Some(name) = &filter.name {
                narrowed = narrowed.name(name);
            }
            if let Some(from) = from {
                narrowed = narrowed.from(from);
            }
            match to {
                Some(to) => narrowed.until(to),
                None => narrowed,
            }
        };
        let state = filter.state;
        let live = state.is_none_or(|state| !state.has_ended()).then(|| narrow(Filter::live()));
        let ended = match state {
            None => Some(narrow(Filter::ended())),
            Some(state) => end_state(state).map(|state| narrow(Filter::ended().state(state))),
        };
        Ok(Listing { live, ended, state })
    }

    /// A page, and where the next one begins.
    async fn page(
        &self,
        scheduler: &Scheduler,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<TaskView>, Option<Cursor>), Failure> {
        let first = Cursor { ended: self.live.is_none(), moved_to: None, key: None };
        let cursor = cursor.unwrap_or(first);
        let (mut views, mut next) = self.part(scheduler, cursor, limit).await?;
        // Whoever looks for a task that has just ended must not find an empty page.
        if let Some(ended) = next.filter(|next| next.ended && !cursor.ended && views.len() < limit) {
            let (more, after) = self.part(scheduler, ended, limit - views.len()).await?;
            views.extend(more);
            next = after;
        }
        Ok((views, next))
    }

    /// A page to be shown, with what its tasks carry or without.
    async fn shown_page(
        &self,
        scheduler: &Scheduler,
        cursor: Option<Cursor>,
        limit: usize,
        full: bool,
    ) -> Result<(Vec<TaskView>, Option<Cursor>), Failure> {
        match full {
            true => self.page_of_bytes(scheduler, cursor, limit).await,
            false => self.page(scheduler, cursor, limit).await,
        }
    }

    /// A page that is shown with what its tasks carry, which may be a megabyte each: it ends when there is enough of it.
    async fn page_of_bytes(
        &self,
        scheduler: &Scheduler,
        mut cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<TaskView>, Option<Cursor>), Failure> {
        let (mut views, mut bytes, mut left, mut piece) = (Vec::new(), 0, limit, FULL_PIECE.min(limit));
        loop {
            let (more, next) = self.page(scheduler, cursor, piece).await?;
            bytes += more.iter().map(carried).sum::<usize>();
            views.extend(more);
            left -= piece;
            if next.is_none() || left == 0 || bytes >= FULL_BYTES {
                return Ok((views, next));
            }
            // As many as there is room for, if they are like those before.
            let alike = (FULL_BYTES - bytes) * views.len().max(1) / bytes.max(1);
            (cursor, piece) = (next, alike.max(FULL_PIECE).min(left));
        }
    }

    /// A page of those that have not ended, or of those that have.
    async fn part(
        &self,
        scheduler: &Scheduler,
        cursor: Cursor,
        limit: usize,
    ) -> Result<(Vec<TaskView>, Option<Cursor>), Failure> {
        let filter = if cursor.ended { &self.ended } else { &self.live };
        let Some(filter) = filter else { return Ok((Vec::new(), None)) };
        let page = scheduler.list(filter, cursor.key, limit).await?;
        let mut views = scheduler.views(page.tasks).await?;
        // What ended in a queue that was deleted is kept for a while, and nobody can ask for it.
        views.retain(|view| scheduler.queue_of(view.found.id()).is_some());
        if let Some(state) = self.state {
            views.retain(|found| view::state(found.state()) == state);
        }
        let next = match page.next {
            Some(key) => Some(Cursor { key: Some(key), ..cursor }),
            None if !cursor.ended && self.ended.is_some() => {
                Some(Cursor { ended: true, key: None, ..cursor })
            }
            None => None,
        };
        Ok((views, next))
    }
}

/// How many bytes of a task are shown when all of it is.
fn carried(view: &TaskView) -> usize {
    match &view.found {
        Found::Live(task) => task.spec.payload.len(),
        Found::Ended(ended) => ended.task.spec.payload.len() + ended.end.result.len(),
        Found::Forgotten { .. } => 0,
    }
}

fn end_state(state: wire::State) -> Option<EndState> {
    match state {
        wire::State::Succeeded => Some(EndState::Succeeded),
        wire::State::Dead => Some(EndState::Dead),
        wire::State::Cancelled => Some(EndState::Cancelled),
        wire::State::Expired => Some(EndState::Expired),
        _ => None,
    }
}

/// `GET /v1/tasks`
pub async fn list(asker: Asker, Query(query): Query<wire::TaskQuery>) -> Result<Response, Failure> {
    let (limit, full) = (page_limit(query.limit)?, query.view == Some(wire::View::Full));
    let cursor = Cursor::given(query.cursor.as_deref())?;
    let listing = Listing::of(&query.into_filter())?;
    let (views, next) = listing.shown_page(&asker.scheduler, cursor, limit, full).await?;
    let next = next.map(Cursor::text);
    let tasks = views.iter().filter_map(|found| shown(&asker.scheduler, found, full)).collect();
    Ok(json(StatusCode::OK, &wire::TaskPage { tasks, next }))
}

fn shown(scheduler: &Scheduler, found: &TaskView, full: bool) -> Option<wire::Task> {
    view::task(found, &scheduler.queue_of(found.found.id())?, full)
}

/// The next tasks of a queue, with all that they carry.
pub async fn next_of(scheduler: &Scheduler, queue: &str, limit: usize) -> Result<Vec<wire::Task>, Failure> {
    let listing = Listing { live: Some(Filter::live().queue(queue)), ended: None, state: None };
    let (views, _) = listing.shown_page(scheduler, None, limit, true).await?;
    Ok(views.iter().filter_map(|found| view::task(found, queue, true)).collect())
}

/// A page of the lanes whose head waits for a person.
pub async fn blocked_heads(
    scheduler: &Scheduler,
    queue: Option<String>,
    cursor: Option<&str>,
    limit: usize,
    full: bool,
) -> Result<(Vec<wire::Task>, Option<String>), Failure> {
    let state = Some(wire::State::Blocked);
    let listing = Listing::of(&wire::Filter { queue, state, ..wire::Filter::default() })?;
    let (views, next) = listing.shown_page(scheduler, Cursor::given(cursor)?, limit, full).await?;
    let tasks = views.iter().filter_map(|found| shown(scheduler, found, full)).collect();
    Ok((tasks, next.map(Cursor::text)))
}

/// What is done to each task that a filter finds.
#[derive(Clone, Copy)]
enum Deed {
    Cancel,
    Retry,
    Run,
    Move(Timestamp),
}

impl Deed {
    /// Whether there is anything to do to a task that was found.
    fn is_for(self, found: &TaskView) -> bool {
        let state = found.state();
        let has_failed = matches!(state, TaskState::Retrying | TaskState::Blocked | TaskState::Dead);
        match self {
            // What only waits for its time must not start before it, and what ended well has no need to.
            Deed::Retry => has_failed,
            // Those that earlier pages have moved are met again, where they are now.
            Deed::Move(to) => has_failed || !matches!(&found.found, Found::Live(task) if task.spec.at == to),
            Deed::Cancel | Deed::Run => true,
        }
    }

    async fn to(self, scheduler: &Scheduler, id: TaskId) -> Result<(), Error> {
        match self {
            Deed::Cancel => scheduler.cancel(id).await,
            Deed::Retry => scheduler.retry(id).await.map(|_| ()),
            Deed::Run => scheduler.run_now(id).await.map(|_| ()),
            Deed::Move(at) => scheduler.move_to(id, at).await.map(|_| ()),
        }
    }
}

/// `POST /v1/tasks:cancel`, `:retry` and `:run`
pub async fn by_filter(asker: Asker, verb: Verb, ask::Body(bytes): ask::Body) -> Result<Response, Failure> {
    let request: wire::ByFilter = ask::body(&bytes)?;
    let deed = match verb {
        Verb::Cancel => Deed::Cancel,
        Verb::Retry => Deed::Retry,
        Verb::Run => Deed::Run,
    };
    let done = do_to_all(&asker.scheduler, deed, request).await?;
    Ok(json(StatusCode::OK, &done))
}

/// Which of the three.
#[derive(Clone, Copy)]
pub enum Verb {
    /// Cancel them.
    Cancel,
    /// Try them again from the beginning.
    Retry,
    /// Make them due now.
    Run,
}

/// `POST /v1/tasks:move`
pub async fn move_by_filter(asker: Asker, ask::Body(bytes): ask::Body) -> Result<Response, Failure> {
    let request: wire::MoveByFilter = ask::body(&bytes)?;
    let wire::MoveByFilter { filter, dry_run, limit, cursor, at, timezone, delay } = request;
    let now = asker.scheduler.now();
    check_zone(timezone.as_deref())?;
    let wished = due(now, at.as_ref(), delay.map(Into::into), timezone.as_deref())?;
    let wished = wished.ok_or_else(|| Failure::field("at", "say when they are due: `at` or `delay`"))?;
    let begun = Cursor::given(cursor.as_deref())?.and_then(|cursor| cursor.moved_to);
    if at.is_some() && begun.is_some_and(|begun| begun != wished) {
        return Err(Failure::new("cursor_invalid", "the page before moved its tasks to another time"));
    }
    let at = begun.unwrap_or(wished);
    let request = wire::ByFilter { filter, dry_run, limit, cursor };
    Ok(json(StatusCode::OK, &do_to_all(&asker.scheduler, Deed::Move(at), request).await?))
}

async fn do_to_all(
    scheduler: &Scheduler,
    deed: Deed,
    request: wire::ByFilter,
) -> Result<wire::Changed, Failure> {
    let limit = page_limit(request.limit.or(Some(PAGE_MAX)))?;
    let mut listing = Listing::of(&request.filter)?;
    // What has ended can only be tried again; what has not can be anything else.
    match deed {
        Deed::Retry => {}
        Deed::Cancel | Deed::Run | Deed::Move(_) => listing.ended = None,
    }
    let cursor = Cursor::given(request.cursor.as_deref())?;
    let (mut views, mut next) = listing.page(scheduler, cursor, limit).await?;
    views.retain(|found| deed.is_for(found));
    if let (Deed::Move(at), Some(next)) = (deed, &mut next) {
        next.moved_to = Some(at);
    }
    let next = next.map(Cursor::text);
    let ids: Vec<TaskId> = views.iter().map(|found| found.found.id()).collect();
    let mut changed = wire::Changed { matched: ids.len() as u64, next, ..wire::Changed::default() };
    if request.dry_run {
        return Ok(changed);
    }
    let deeds = ids.into_iter().map(|id| async move { (id, deed.to(scheduler, id).await) });
    for (id, done) in join_all(deeds).await {
        match done {
            Ok(()) => changed.changed += 1,
            Err(error) if changed.problems.len() < PROBLEMS_MAX => {
                let problem = Failure::from(error).into();
                changed.problems.push(wire::TaskProblem { id: id.to_string(), problem });
            }
            Err(_) => {}
        }
    }
    Ok(changed)
}

/// `POST /v1/queues/{queue}:purge`: cancels what waits.
pub async fn purge(scheduler: &Scheduler, queue: &str) -> Result<wire::Changed, Failure> {
    let filter = wire::Filter { queue: Some(queue.to_owned()), ..wire::Filter::default() };
    let mut all = wire::Changed::default();
    loop {
        let request =
            wire::ByFilter { filter: filter.clone(), cursor: all.next.take(), ..Default::default() };
        let done = do_to_all(scheduler, Deed::Cancel, request).await?;
        all.matched += done.matched;
        all.changed += done.changed;
        let room = PROBLEMS_MAX.saturating_sub(all.problems.len());
        all.problems.extend(done.problems.into_iter().take(room));
        all.next = done.next;
        if all.next.is_none() {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_survive_being_text_and_others_are_refused() {
        let key = PageKey { at: Timestamp::from_secs(7), partition: PartitionId(3), seq: Seq(9) };
        for ended in [false, true] {
            for (key, moved_to) in [(None, None), (Some(key), None), (Some(key), Some(key.at))] {
                let cursor = Cursor { ended, moved_to, key };
                assert_eq!(Cursor::read(&cursor.text()), Some(cursor));
            }
        }
        for bad in ["", "x", "Ag", "BA", "!!!", "AAAA"] {
            assert_eq!(Cursor::read(bad), None, "{bad:?}");
        }
    }
}
