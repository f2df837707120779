//! API keys: who may ask this server, for what, and until when.
//!
//! They lie in the store's map, so that they are made and revoked while the server runs, and come along in a backup.
//! Decision record: `docs/decisions/0013-keys-in-the-store.md`.

mod rate;
mod secret;
mod stored;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use bytes::Bytes;
use punctual::clock::Clock;
use punctual::{Error, Store, Timestamp};
use punctual_client::wire::Scope;
use punctual_store::Swap;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::app::ServerStore;
pub(crate) use rate::Bucket;
use secret::{Digest, new_id};

pub use secret::{Secret, id_of};
pub use stored::{Key, Scopes};

/// What the entries of keys begin with.
const PREFIX: &str = "key/";
const PAGE: usize = 1_000;
/// More are nobody's keys but a mistake in a loop.
const KEYS_MAX: usize = 100_000;
const NAME_MAX: usize = 200;
/// A secret that was rotated is good for no longer than this.
const OVERLAP_MAX: Duration = Duration::from_secs(90 * 24 * 3600);
/// So many secrets of one key can be good at once, besides the newest.
const FORMER_MAX: usize = 3;

/// A key to be made.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    /// Who it is for, in words.
    pub name: Option<String>,
    /// Whose tasks it is for.
    pub namespace: String,
    /// What it may do.
    pub scopes: Scopes,
    /// Until when it is good.
    pub expires_at: Option<Timestamp>,
    /// How many requests it may make in a second, if not as many as the server says.
    pub requests_per_second: Option<u32>,
}

/// Why a key was not made or changed.
#[derive(Debug)]
pub enum KeyTrouble {
    /// There is none of that id, or it is not good any more.
    NotFound,
    /// A field is wrong, and why.
    Field(&'static str, String),
    /// Without this key nobody could manage keys.
    Needed,
    /// Without this key nobody could manage keys as soon as the others with that scope have expired.
    LastLasting,
    /// The store did not do as asked.
    Store(Error),
}

impl fmt::Display for KeyTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyTrouble::NotFound => f.write_str("no key that is still good has this id"),
            KeyTrouble::Field(field, detail) => write!(f, "{field}: {detail}"),
            KeyTrouble::Needed => f.write_str(
                "this is the last key with the scope `admin`: make another first, or nobody could manage keys",
            ),
            KeyTrouble::LastLasting => f.write_str(
                "this is the last key with the scope `admin` that does not expire: make another that does not first, or \
                 nobody could manage keys before long",
            ),
            KeyTrouble::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KeyTrouble {}

impl<E: Into<Error>> From<E> for KeyTrouble {
    fn from(error: E) -> KeyTrouble {
        KeyTrouble::Store(error.into())
    }
}

/// Why a text does not open the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotOpened {
    /// Nobody made it.
    Unknown,
    /// It was good until then.
    Expired,
    /// Somebody has revoked it.
    Revoked,
}

/// A key, and how much it was used since this process began.
#[derive(Clone)]
pub struct Known {
    /// The key.
    pub key: Arc<Key>,
    uses: Arc<Uses>,
    version: u64,
}

struct Uses {
    /// In microseconds; 0 for never.
    last_at: AtomicI64,
    bucket: Bucket,
}

impl Known {
    /// When it was used last, if it was since this process began.
    pub fn last_used_at(&self) -> Option<Timestamp> {
        let micros = self.uses.last_at.load(Ordering::Relaxed);
        (micros != 0).then(|| Timestamp::from_micros(micros))
    }

    /// Whether it may make one more request now, if it may make so many in a second and so many at once.
    pub fn may_ask(&self, clock: &Clock, per_second: u32, burst: u32) -> bool {
        self.uses.bucket.take(clock.now().boot, per_second, burst)
    }
}

/// A key that somebody has shown, and which of its secrets that was.
#[derive(Clone)]
pub struct Shown {
    /// The key as it was then.
    pub known: Known,
    digest: Digest,
}

/// All keys of a server. Clones are the same.
#[derive(Clone)]
pub struct Keys(Arc<Shared>);

struct Shared {
    store: Arc<ServerStore>,
    clock: Clock,
    known: RwLock<FxHashMap<Box<str>, Known>>,
    /// Held by whoever revokes a key.
    revoking: tokio::sync::Mutex<()>,
    /// Told of every key that is made or changed.
    changes: watch::Sender<()>,
    /// Whether there are any: from the first one on, nobody gets in without.
    are_needed: AtomicBool,
}

impl Keys {
    /// Reads the keys of a store.
    pub async fn open(store: Arc<ServerStore>) -> Result<Keys, KeyTrouble> {
        let keys = Keys(Arc::new(Shared {
            store,
            clock: Clock::system(),
            known: RwLock::default(),
            revoking: Default::default(),
            changes: watch::Sender::new(()),
            are_needed: AtomicBool::new(false),
        }));
        let mut after = None::<Box<str>>;
        loop {
            let page = keys.0.store.entries(keys.now(), PREFIX, after.as_deref(), PAGE).await?;
            for (name, entry) in &page {
                let key = Key::decode(&name[PREFIX.len()..], &entry.value).ok_or_else(|| unreadable(name))?;
                keys.remember(key, entry.version);
            }
            match page.last() {
                Some((name, _)) if page.len() == PAGE => after = Some(name.clone()),
                _ => return Ok(keys),
            }
        }
    }

    /// The time that keys go by: the machine's, whatever time tasks go by.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now().wall
    }

    /// The clock that keys go by.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Whether nobody gets in without a key. So it is from the first key on, also when all of them are revoked.
    pub fn are_needed(&self) -> bool {
        self.0.are_needed.load(Ordering::Relaxed)
    }

    /// The key that this text is the secret of.
    pub fn opened_by(&self, text: &str) -> Result<Shown, NotOpened> {
        let now = self.now();
        let digest = Digest::of(text);
        let id = id_of(text).ok_or(NotOpened::Unknown)?;
        let known = self.get(id).ok_or(NotOpened::Unknown)?;
        if !known.key.knows(now, &digest) {
            return Err(NotOpened::Unknown);
        }
        if known.key.revoked_at.is_some() {
            return Err(NotOpened::Revoked);
        }
        if !known.key.is_good(now) {
            return Err(NotOpened::Expired);
        }
        known.uses.last_at.store(now.as_micros(), Ordering::Relaxed);
        Ok(Shown { known, digest })
    }

    /// Whether what somebody has shown would still open the server.
    pub fn still_opened_by(&self, shown: &Shown) -> bool {
        let now = self.now();
        let known = self.get(&shown.known.key.id);
        known.is_some_and(|known| known.key.is_good(now) && known.key.knows(now, &shown.digest))
    }

    /// How long it will, if that is settled.
    pub fn opened_for(&self, shown: &Shown) -> Option<Duration> {
        let shuts_at = self.get(&shown.known.key.id)?.key.shuts_at(&shown.digest)?;
        Some(shuts_at.since(self.now()))
    }

    /// What is told of every key that is made or changed from now on.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// A key by its id.
    pub fn get(&self, id: &str) -> Option<Known> {
        self.0.known.read().expect("nothing panics while it is held").get(id).cloned()
    }

    /// All keys, in order of their ids.
    pub fn all(&self) -> Vec<Known> {
        let known = self.0.known.read().expect("nothing panics while it is held");
        let mut all: Vec<Known> = known.values().cloned().collect();
        all.sort_unstable_by(|one, other| one.key.id.cmp(&other.key.id));
        all
    }

    /// Makes a key.
    pub async fn add(&self, new: NewKey) -> Result<(Known, Secret), KeyTrouble> {
        let now = self.now();
        self.check(now, &new)?;
        let id = new_id();
        let secret = Secret::new(&id);
        let key = Key {
            id: id.into(),
            name: new.name.map(Into::into),
            namespace: new.namespace.into(),
            scopes: new.scopes,
            requests_per_second: new.requests_per_second,
            created_at: now,
            expires_at: new.expires_at,
            revoked_at: None,
            digest: secret.digest(),
            former: Vec::new(),
        };
        match self.swap(&key, None).await? {
            Some(known) => Ok((known, secret)),
            // Of 2^60 ids the same came twice.
            None => Err(KeyTrouble::Store(Error::Unknown)),
        }
    }

    /// A key opens nothing any more. What was revoked before stays as it was.
    pub async fn revoke(&self, id: &str) -> Result<Known, KeyTrouble> {
        // Two who revoke each other's key at once must not both find the other still good.
        let _one_at_a_time = self.0.revoking.lock().await;
        self.change(id, |now, key| {
            if key.revoked_at.is_some() {
                return Ok(());
            }
            let is_admin = |key: &Key| key.is_good(now) && key.scopes.has(Scope::Admin);
            let others = self.all().into_iter().map(|known| known.key);
            let others: Vec<_> = others.filter(|other| other.id != key.id && is_admin(other)).collect();
            // One that will expire is no successor of one that never does.
            let has_successor = match key.expires_at {
                None => others.iter().any(|other| other.expires_at.is_none()),
                Some(_) => !others.is_empty(),
            };
            if is_admin(key) && !has_successor {
                return Err(if others.is_empty() { KeyTrouble::Needed } else { KeyTrouble::LastLasting });
            }
            key.revoked_at = Some(now);
            Ok(())
        })
        .await
    }

    /// Gives a key a new secret. Those of today are good for as long as `overlap` too, and no longer.
    pub async fn rotate(&self, id: &str, overlap: Duration) -> Result<(Known, Secret), KeyTrouble> {
        if overlap > OVERLAP_MAX {
            return Err(KeyTrouble::Field("overlap", "90 days is the most".to_owned()));
        }
        let secret = Secret::new(id);
        let rotated = self.change(id, |now, key| {
            if !key.is_good(now) {
                return Err(KeyTrouble::NotFound);
            }
            key.former.insert(0, (key.digest, now + overlap));
            key.former.iter_mut().for_each(|(_, until)| *until = (*until).min(now + overlap));
            key.former.retain(|(_, until)| now < *until);
            key.former.truncate(FORMER_MAX);
            key.digest = secret.digest();
            Ok(())
        });
        Ok((rotated.await?, secret))
    }

    fn check(&self, now: Timestamp, new: &NewKey) -> Result<(), KeyTrouble> {
        let field = |field, detail: &str| Err(KeyTrouble::Field(field, detail.to_owned()));
        punctual_core::check::namespace(&new.namespace)
            .map_err(|refusal| KeyTrouble::Field("namespace", refusal.to_string()))?;
        if new.name.as_ref().is_some_and(|name| name.is_empty() || name.len() > NAME_MAX) {
            return field("name", "must have 1 to 200 bytes");
        }
        if new.scopes == Scopes::default() {
            return field("scopes", "a key without any could do nothing");
        }
        if new.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return field("expires_at", "lies in the past");
        }
        if new.requests_per_second == Some(0) {
            return field("requests_per_second", "must be at least 1");
        }
        let keys = self.all();
        if keys.len() >= KEYS_MAX {
            return field("id", "there are 100,000 keys, which is the most");
        }
        let is_admin = |key: &Key| key.is_good(now) && key.scopes.has(Scope::Admin);
        if keys.iter().any(|known| is_admin(&known.key)) {
            return Ok(());
        }
        if !new.scopes.has(Scope::Admin) {
            return field(
                "scopes",
                "the first key must have the scope `admin`: from then on nobody gets in without a key, and nobody \
                 could make another",
            );
        }
        match new.expires_at {
            None => Ok(()),
            Some(_) => field(
                "expires_at",
                "the first key must not expire: nobody could make another then. Make one that does not, keep it safe, \
                 and with it one that does",
            ),
        }
    }

    async fn change(
        &self,
        id: &str,
        change: impl Fn(Timestamp, &mut Key) -> Result<(), KeyTrouble>,
    ) -> Result<Known, KeyTrouble> {
        loop {
            let known = self.get(id).ok_or(KeyTrouble::NotFound)?;
            let mut key = Key::clone(&known.key);
            change(self.now(), &mut key)?;
            if let Some(known) = self.swap(&key, Some(known.version)).await? {
                return Ok(known);
            }
            self.read_again(id).await?;
        }
    }

    /// Writes a key down; `None` if somebody else has meanwhile.
    async fn swap(&self, key: &Key, expected: Option<u64>) -> Result<Option<Known>, KeyTrouble> {
        let (name, value) = (format!("{PREFIX}{}", key.id), Bytes::from(key.encode()));
        let swap = self.0.store.compare_and_set(self.now(), &name, expected, Some(value), None).await?;
        match swap {
            Swap::Done(version) => Ok(Some(self.remember(key.clone(), version.unwrap_or_default()))),
            Swap::Conflict(_) => Ok(None),
        }
    }

    async fn read_again(&self, id: &str) -> Result<(), KeyTrouble> {
        let name = format!("{PREFIX}{id}");
        let entry = self.0.store.get(self.now(), &name).await?.ok_or(KeyTrouble::NotFound)?;
        let key = Key::decode(id, &entry.value).ok_or_else(|| unreadable(&name))?;
        self.remember(key, entry.version);
        Ok(())
    }

    fn remember(&self, key: Key, version: u64) -> Known {
        let mut known = self.0.known.write().expect("nothing panics while it is held");
        let uses = known.get(&key.id).map(|before| before.uses.clone());
        let uses =
            uses.unwrap_or_else(|| Arc::new(Uses { last_at: AtomicI64::new(0), bucket: Bucket::default() }));
        let now = Known { key: Arc::new(key), uses, version };
        let there = known.entry(now.key.id.clone()).or_insert_with(|| now.clone());
        // Two may be on their way: the higher version is the present one.
        if there.version <= version {
            *there = now;
        }
        self.0.are_needed.store(true, Ordering::Relaxed);
        let there = there.clone();
        drop(known);
        self.0.changes.send_replace(());
        there
    }
}

fn unreadable(name: &str) -> KeyTrouble {
    let cause = format!("{name} cannot be read: it was written by a newer version, or is damaged");
    punctual::StoreError::Corrupt(cause.into()).into()
}
