//! What a queue says about how its tasks are delivered, as it lies beside the queue's settings.

use bytes::Bytes;
use punctual_client::wire;
use serde::{Deserialize, Serialize};

use crate::call::{Call, Codes, Conflict, Secret, Success};

const VERSION: u8 = 1;

/// What a queue says about how its tasks are delivered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extras {
    /// Who does its tasks.
    pub target: wire::QueueTarget,
    /// What calls are signed with, the newest first.
    pub secrets: Vec<Secret>,
    /// Which answers of a called server mean what.
    pub success: Success,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    target: StoredTarget,
    secrets: Vec<String>,
    codes: Vec<String>,
    give_up: Vec<String>,
    conflict: StoredConflict,
}

#[derive(Serialize, Deserialize)]
enum StoredTarget {
    Worker,
    Http { url: String, method: Option<String>, headers: Vec<(String, String)> },
    Handler(String),
}

#[derive(Serialize, Deserialize)]
enum StoredConflict {
    Repeated,
    Always,
    Never,
}

impl Extras {
    /// As bytes. Defaults are no bytes at all.
    pub fn encode(&self) -> Bytes {
        if *self == Extras::default() {
            return Bytes::new();
        }
        let stored = Stored {
            target: stored_target(&self.target),
            secrets: self.secrets.iter().map(|secret| secret.reveal().to_owned()).collect(),
            codes: self.success.codes.clone().into(),
            give_up: self.success.give_up.clone().into(),
            conflict: match self.success.conflict {
                Conflict::Repeated => StoredConflict::Repeated,
                Conflict::Always => StoredConflict::Always,
                Conflict::Never => StoredConflict::Never,
            },
        };
        postcard::to_extend(&stored, vec![VERSION]).expect("plain fields can always be written").into()
    }

    /// What bytes say. What a newer or another program wrote is not understood, and counts as nothing said.
    pub fn decode(bytes: &Bytes) -> Extras {
        let stored = bytes.split_first().filter(|(version, _)| **version == VERSION);
        let stored = stored.and_then(|(_, rest)| postcard::from_bytes::<Stored>(rest).ok());
        stored.and_then(from_stored).unwrap_or_default()
    }

    /// The call that the queue's tasks make, if they make one.
    pub fn call(&self) -> Option<Call> {
        let wire::QueueTarget::Http(http) = &self.target else { return None };
        Some(Call {
            method: http.method.clone().unwrap_or_else(|| "POST".to_owned()),
            headers: http.headers.clone().into_iter().collect(),
            ..Call::post(http.url.clone())
        })
    }
}

fn stored_target(target: &wire::QueueTarget) -> StoredTarget {
    match target {
        wire::QueueTarget::Worker => StoredTarget::Worker,
        wire::QueueTarget::Http(http) => StoredTarget::Http {
            url: http.url.clone(),
            method: http.method.clone(),
            headers: http.headers.clone().into_iter().collect(),
        },
        wire::QueueTarget::Handler(name) => StoredTarget::Handler(name.clone()),
    }
}

fn from_stored(stored: Stored) -> Option<Extras> {
    let target = match stored.target {
        StoredTarget::Worker => wire::QueueTarget::Worker,
        StoredTarget::Http { url, method, headers } => {
            wire::QueueTarget::Http(wire::HttpTarget { url, method, headers: headers.into_iter().collect() })
        }
        StoredTarget::Handler(name) => wire::QueueTarget::Handler(name),
    };
    let secrets = stored.secrets.iter().map(|secret| Secret::parse(secret).ok()).collect::<Option<_>>()?;
    let conflict = match stored.conflict {
        StoredConflict::Repeated => Conflict::Repeated,
        StoredConflict::Always => Conflict::Always,
        StoredConflict::Never => Conflict::Never,
    };
    let (codes, give_up) = (Codes::parse(&stored.codes).ok()?, Codes::parse(&stored.give_up).ok()?);
    Some(Extras { target, secrets, success: Success { codes, give_up, conflict } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extras_survive_being_stored() {
        let http = wire::HttpTarget {
            url: "https://api.example.com/in".to_owned(),
            method: Some("PUT".to_owned()),
            headers: [("x-a".to_owned(), "1".to_owned())].into(),
        };
        let odd = Extras {
            target: wire::QueueTarget::Http(http),
            secrets: vec![Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("it is a secret")],
            success: Success {
                codes: Codes::parse(&["200", "3xx"]).expect("these are codes"),
                give_up: Codes::parse(&["404"]).expect("these are codes"),
                conflict: Conflict::Always,
            },
        };
        for extras in [Extras::default(), odd] {
            assert_eq!(Extras::decode(&extras.encode()), extras);
        }
        assert_eq!(Extras::decode(&Bytes::from_static(&[9, 9])), Extras::default());
    }
}
