//! Tells those who want to know when the tasks of a queue begin to start late, and when they do no more.
//!
//! A queue is late when a first attempt began later than the limit after its time, or when the next task that could
//! start has been due for longer than that. One word goes out when it begins and one when it is over: when nothing was
//! late for ten seconds. That a queue is late is kept in the store, so that a restart neither repeats nor forgets it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use punctual::{Attempt, Error, Store, Timestamp};
use punctual_client::wire::{Event, EventData, EventKind};
use punctual_core::QueueId;
use punctual_store::Swap;
use rustc_hash::FxHashMap;

use crate::api::moment_of;
use crate::app::App;
use crate::debts;
use crate::letter;
use crate::notifications::{self, Notification};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// It is over when nothing was late at so many looks.
const CALM_LOOKS: u32 = 10;
/// What the keys in the store's map begin with.
const KEYS: &str = "late/";
const PAGE: usize = 1_000;

/// The latest starts since somebody last looked.
#[derive(Default)]
pub struct LateStarts(Mutex<FxHashMap<QueueId, Duration>>);

impl LateStarts {
    /// An attempt began so long after its task's time.
    pub fn add(&self, attempt: &Attempt, lateness: Duration) {
        let mut worst = self.0.lock().expect("nothing panics while it is held");
        let worst = worst.entry(attempt.token.id.queue).or_default();
        *worst = lateness.max(*worst);
    }

    fn take(&self) -> FxHashMap<QueueId, Duration> {
        std::mem::take(&mut self.0.lock().expect("nothing panics while it is held"))
    }
}

/// A queue that is late, for one who wants to know: namespace, notification and queue.
type Whom = (String, String, String);

/// How it stands with one of them.
struct Late {
    since: Timestamp,
    worst: Duration,
    calm_looks: u32,
}

/// Looks as long as somebody wants to know, until the scheduler stops.
pub async fn watch_lateness(app: App) {
    let Ok(mut late) = read(&app).await else { return };
    loop {
        app.notifications().lateness_wanted().await;
        wait().await;
        if let Err(Error::Stopped) = look(&app, &mut late).await {
            return;
        }
    }
}

async fn look(app: &App, late: &mut BTreeMap<Whom, Late>) -> Result<(), Error> {
    let mut lateness = app.watch().late_starts().take();
    let now = app.scheduler().now();
    for (queue, since) in app.scheduler().waiting().await? {
        let worst = lateness.entry(queue).or_default();
        *worst = now.since(since).max(*worst);
    }
    late.values_mut().for_each(|late| late.calm_looks += 1);
    for (queue, lateness) in lateness {
        let Some((namespace, queue)) = app.scheduler().place_of(queue) else { continue };
        if notifications::is_queue(&queue) {
            continue;
        }
        for whom in app.notifications().wanting(&namespace, &queue, EventKind::Lateness) {
            if whom.lateness_over.is_some_and(|limit| lateness > limit) {
                is_late(app, late, &whom, &queue, lateness).await?;
            }
        }
    }
    let over = late.iter().filter(|(_, late)| late.calm_looks >= CALM_LOOKS).map(|(whom, _)| whom.clone());
    for whom in over.collect::<Vec<_>>() {
        is_over(app, late, whom).await?;
    }
    Ok(())
}

async fn is_late(
    app: &App,
    late: &mut BTreeMap<Whom, Late>,
    whom: &Notification,
    queue: &str,
    lateness: Duration,
) -> Result<(), Error> {
    let key = (whom.namespace.clone(), whom.name.clone(), queue.to_owned());
    if let Some(late) = late.get_mut(&key) {
        late.worst = late.worst.max(lateness);
        late.calm_looks = 0;
        return Ok(());
    }
    let begun = Late { since: app.scheduler().now(), worst: lateness, calm_looks: 0 };
    tell(app, whom, queue, &begun, true).await?;
    note(app, &key, Some(begun.since)).await?;
    late.insert(key, begun);
    Ok(())
}

async fn is_over(app: &App, late: &mut BTreeMap<Whom, Late>, key: Whom) -> Result<(), Error> {
    let (namespace, name, queue) = &key;
    let wanting = app.notifications().wanting(namespace, queue, EventKind::Lateness);
    // It may have been deleted meanwhile: then nobody is told.
    if let (Some(whom), Some(late)) = (wanting.iter().find(|whom| whom.name == *name), late.get(&key)) {
        tell(app, whom, queue, late, false).await?;
    }
    note(app, &key, None).await?;
    late.remove(&key);
    Ok(())
}

async fn tell(app: &App, whom: &Notification, queue: &str, late: &Late, begins: bool) -> Result<(), Error> {
    let now = app.scheduler().now();
    let word = if begins { "begins" } else { "over" };
    let unique = format!("{queue}.lateness.{}.{word}", late.since.as_micros());
    let data = EventData {
        queue: Some(queue.to_owned()),
        lateness: Some(late.worst.into()),
        late: Some(begins),
        ..EventData::default()
    };
    let event = Event {
        specversion: "1.0".to_owned(),
        id: unique.clone(),
        source: "/".to_owned(),
        kind: EventKind::Lateness,
        subject: None,
        time: moment_of(now),
        data,
    };
    let Some(letter) = letter::notification(whom, &event, &unique, now) else {
        return Ok(());
    };
    debts::send(app, &whom.namespace, letter).await.map_err(|_| Error::Stopped)
}

fn key_of((namespace, name, queue): &Whom) -> String {
    format!("{KEYS}{namespace}/{name}/{queue}")
}

async fn note(app: &App, whom: &Whom, since: Option<Timestamp>) -> Result<(), Error> {
    let (store, key, now) = (app.scheduler().store(), key_of(whom), app.scheduler().now());
    let value = since.map(|since| Bytes::copy_from_slice(&since.as_micros().to_be_bytes()));
    loop {
        let there = store.get(now, &key).await?.map(|entry| entry.version);
        if there.is_none() && value.is_none() {
            return Ok(());
        }
        if let Swap::Done(_) = store.compare_and_set(now, &key, there, value.clone(), None).await? {
            return Ok(());
        }
    }
}

/// Which queues were late when the last process ended.
async fn read(app: &App) -> Result<BTreeMap<Whom, Late>, Error> {
    let (mut all, mut after) = (BTreeMap::new(), None::<Box<str>>);
    loop {
        let page =
            app.scheduler().store().entries(app.scheduler().now(), KEYS, after.as_deref(), PAGE).await?;
        for (key, entry) in &page {
            let mut parts = key[KEYS.len()..].splitn(3, '/').map(str::to_owned);
            let whom = (parts.next(), parts.next(), parts.next());
            if let ((Some(namespace), Some(name), Some(queue)), Ok(micros)) =
                (whom, entry.value[..].try_into())
            {
                let since = Timestamp::from_micros(i64::from_be_bytes(micros));
                all.insert((namespace, name, queue), Late { since, worst: Duration::ZERO, calm_looks: 0 });
            }
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE => after = Some(key.clone()),
            _ => return Ok(all),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how long tasks have waited changes with time alone")]
async fn wait() {
    tokio::time::sleep(LOOK_EVERY).await;
}
