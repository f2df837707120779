//! A key as it lies in the store's map: everything but its secret.

use std::sync::Arc;

use punctual::Timestamp;
use punctual_client::wire::Scope;
use serde::{Deserialize, Serialize};

use super::secret::Digest;

const VERSION: u8 = 1;

/// What a key may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scopes(u16);

impl Scopes {
    /// Every one of them.
    pub const ALL: Scopes = Scopes(u16::MAX);

    /// Whether it is among them. Who may manage keys may do everything: they could give themselves what they lack.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (bit(scope) | bit(Scope::Admin)) != 0
    }

    /// Each of them, in order.
    pub fn each(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.0 & bit(*scope) != 0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Scopes {
        Scopes(scopes.into_iter().fold(0, |bits, scope| bits | bit(scope)))
    }
}

/// At rest: never another number for the same scope.
fn bit(scope: Scope) -> u16 {
    match scope {
        Scope::Read => 1,
        Scope::Payloads => 2,
        Scope::Write => 4,
        Scope::Work => 8,
        Scope::Metrics => 16,
        Scope::Admin => 32,
    }
}

/// A key. Its secret is known to whoever made it, and to nobody here.
#[derive(Clone)]
pub struct Key {
    /// What it is called in logs and in the audit.
    pub id: Box<str>,
    /// Who it is for, in words.
    pub name: Option<Box<str>>,
    /// Whose tasks it is for.
    pub namespace: Arc<str>,
    /// What it may do.
    pub scopes: Scopes,
    /// How many requests it may make in a second, if not as many as the server says.
    pub requests_per_second: Option<u32>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it is good.
    pub expires_at: Option<Timestamp>,
    /// Since when it is not good any more.
    pub revoked_at: Option<Timestamp>,
    /// How its secret is known again.
    pub digest: Digest,
    /// Secrets before the last rotation, and until when each is good too.
    pub former: Vec<(Digest, Timestamp)>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    name: Option<Box<str>>,
    namespace: Box<str>,
    scopes: u16,
    requests_per_second: Option<u32>,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
    digest: [u8; 32],
    former: Vec<([u8; 32], i64)>,
}

impl Key {
    /// Whether it opens anything at this time.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Whether this is its secret, or one that is still good too.
    pub fn knows(&self, now: Timestamp, digest: &Digest) -> bool {
        let former = self.former.iter().filter(|(_, until)| now < *until);
        self.digest.is(digest) || former.fold(false, |known, (former, _)| known | former.is(digest))
    }

    /// When this secret of it opens nothing any more, if that is settled.
    pub fn shuts_at(&self, digest: &Digest) -> Option<Timestamp> {
        let replaced = self.former.iter().filter(|(former, _)| former.is(digest)).map(|(_, until)| *until);
        self.expires_at.into_iter().chain(replaced).min()
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let stored = Stored {
            name: self.name.clone(),
            namespace: self.namespace.as_ref().into(),
            scopes: self.scopes.0,
            requests_per_second: self.requests_per_second,
            created_at: self.created_at.as_micros(),
            expires_at: self.expires_at.map(Timestamp::as_micros),
            revoked_at: self.revoked_at.map(Timestamp::as_micros),
            digest: self.digest.0,
            former: self.former.iter().map(|(digest, until)| (digest.0, until.as_micros())).collect(),
        };
        postcard::to_extend(&stored, vec![VERSION]).expect("plain fields can always be written")
    }

    /// The key of that id, as bytes have it; `None` if they are not a key that this program knows.
    pub fn decode(id: &str, bytes: &[u8]) -> Option<Key> {
        let (_, rest) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
        let stored: Stored = postcard::from_bytes(rest).ok()?;
        let former = stored.former.into_iter();
        Some(Key {
            id: id.into(),
            name: stored.name,
            namespace: stored.namespace.into(),
            scopes: Scopes(stored.scopes),
            requests_per_second: stored.requests_per_second,
            created_at: Timestamp::from_micros(stored.created_at),
            expires_at: stored.expires_at.map(Timestamp::from_micros),
            revoked_at: stored.revoked_at.map(Timestamp::from_micros),
            digest: Digest(stored.digest),
            former: former.map(|(digest, until)| (Digest(digest), Timestamp::from_micros(until))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn a_key_survives_being_stored() {
        let key = Key {
            id: "k1".into(),
            name: Some("robot".into()),
            namespace: "shop".into(),
            scopes: [Scope::Read, Scope::Work].into_iter().collect(),
            requests_per_second: Some(7),
            created_at: at(1),
            expires_at: Some(at(9)),
            revoked_at: None,
            digest: Digest::of("now"),
            former: vec![(Digest::of("before"), at(5))],
        };
        let again = Key::decode("k1", &key.encode()).expect("it is one of ours");
        assert_eq!(again.encode(), key.encode());
        assert!(
            again.is_good(at(8)) && !again.is_good(at(9)),
            "it is not good any more when its time has come"
        );
        assert!(again.knows(at(4), &Digest::of("before")) && !again.knows(at(5), &Digest::of("before")));
        assert!(again.knows(at(5), &Digest::of("now")) && !again.knows(at(0), &Digest::of("later")));
        let shuts_at = |text| again.shuts_at(&Digest::of(text));
        assert_eq!((shuts_at("now"), shuts_at("before")), (Some(at(9)), Some(at(5))));
        assert!(Key::decode("k1", b"\x09").is_none());
    }

    #[test]
    fn who_manages_keys_may_do_everything_and_others_what_they_have() {
        let admin: Scopes = [Scope::Admin].into_iter().collect();
        let worker: Scopes = [Scope::Work].into_iter().collect();
        assert!(Scope::ALL.iter().all(|scope| admin.has(*scope)));
        let held: Vec<Scope> = Scope::ALL.iter().copied().filter(|scope| worker.has(*scope)).collect();
        assert_eq!(held, [Scope::Work]);
        assert_eq!(worker.each().collect::<Vec<_>>(), [Scope::Work]);
        assert!(Scope::ALL.iter().all(|scope| Scopes::ALL.has(*scope)));
    }
}
