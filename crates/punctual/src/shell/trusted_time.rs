//! The time that was last trusted on a store is kept in it, so that a process that starts with a wrong date is noticed.
//!
//! It is written rarely: when partitions are taken over, at most every few minutes while other things are written
//! anyway, and at a graceful stop. An idle node writes nothing. A write that fails is repeated with the next of these.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{BootTime, Now, Timestamp};
use punctual_store::{Cause, MapEntry, Store, StoreError};

use super::{Done, Shell};
use crate::clock::Clock;
use crate::observer::{Note, Observer};

/// Where it lies in the store's map.
const KEY: &str = "trusted-wall-time";
/// It is written at most so often.
const EVERY: Duration = Duration::from_secs(300);
/// A stop waits no longer for it.
const AT_THE_END_MAX: Duration = Duration::from_secs(1);

/// When the time was last written.
pub(super) struct TrustedTime {
    begun: BootTime,
    noted: Option<BootTime>,
    /// A write is under way.
    noting: bool,
}

impl TrustedTime {
    /// A write is over.
    pub(super) fn noted(&mut self, done: bool) {
        self.noting = false;
        self.noted = self.noted.filter(|_| done);
    }

    /// A clock that began behind may be put right soon: only what stays replaces a later time.
    fn may_fall(&self, now: Now) -> bool {
        now.boot.since(self.begun) >= EVERY
    }
}

/// Compares the clock with the time that was last trusted, before anything is decided by it. A store that nobody has
/// used before trusts whatever the clock says.
pub(super) async fn compare<S: Store>(
    store: &S,
    clock: &Clock,
    observer: &dyn Observer,
) -> Result<TrustedTime, StoreError> {
    let now = clock.now();
    let trusted = store.get(now.wall, KEY).await?.as_ref().map(read).transpose()?;
    if let Some(odd) = trusted.and_then(|trusted| clock.begin_after(trusted)) {
        observer.observe(Note::OddStart(odd));
    }
    Ok(TrustedTime { begun: now.boot, noted: None, noting: false })
}

impl<S: Store> Shell<S> {
    /// Writes the time that is trusted, if that was not done for a while.
    pub(super) fn note_time_now_and_then(&mut self, now: Now) {
        let time = &mut self.trusted_time;
        if time.noting || time.noted.is_some_and(|noted| now.boot.since(noted) < EVERY) {
            return;
        }
        time.noting = true;
        time.noted = Some(now.boot);
        let may_fall = time.may_fall(now);
        let (store, observer) = (self.store.clone(), self.observer.clone());
        self.calls.push(Box::pin(async move {
            Done::TimeNoted(note(&store, now.wall, may_fall, &*observer).await)
        }));
    }

    /// Writes it once more before the process goes, if it was at work at all.
    pub(super) async fn note_time_at_the_end(&mut self) {
        if self.trusted_time.noted.is_some() {
            let now = self.read_clock();
            let may_fall = self.trusted_time.may_fall(now);
            let note = note(&self.store, now.wall, may_fall, &*self.observer);
            tokio::select! {
                _ = note => {}
                () = super::sleep(AT_THE_END_MAX) => {}
            }
        }
    }
}

async fn note<S: Store>(store: &Arc<S>, wall: Timestamp, may_fall: bool, observer: &dyn Observer) -> bool {
    let noted = try_note(&**store, wall, may_fall).await;
    if let Err(error) = &noted {
        observer.observe(Note::StoreTrouble(&error.to_string()));
    }
    noted.is_ok()
}

async fn try_note<S: Store>(store: &S, wall: Timestamp, may_fall: bool) -> Result<(), StoreError> {
    let entry = store.get(wall, KEY).await?;
    let before = entry.as_ref().map(read).transpose()?;
    if before.is_some_and(|before| before == wall || (before > wall && !may_fall)) {
        return Ok(());
    }
    let value = Bytes::copy_from_slice(&wall.as_micros().to_be_bytes());
    // Whoever was quicker has written about the same time.
    store.compare_and_set(wall, KEY, entry.map(|entry| entry.version), Some(value), None).await?;
    Ok(())
}

fn read(entry: &MapEntry) -> Result<Timestamp, StoreError> {
    let bytes = entry.value[..].try_into();
    let bytes = bytes.map_err(|_| StoreError::Corrupt(Cause::from("the trusted wall time is no time")))?;
    Ok(Timestamp::from_micros(i64::from_be_bytes(bytes)))
}
