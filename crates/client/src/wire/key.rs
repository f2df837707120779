//! API keys: who may ask, for what, and until when.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::nearest::nearest;
use super::span::Span;
use super::time::{Moment, Time};

/// Declares the scopes with their names.
macro_rules! scopes {
    ( $( $(#[$about:meta])* $scope:ident = $name:literal, )* ) => {
        /// What a key may do.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        pub enum Scope {
            $( $(#[$about])* #[serde(rename = $name)] $scope, )*
        }

        impl Scope {
            /// All of them.
            pub const ALL: &[Scope] = &[$( Scope::$scope ),*];

            /// Its name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Scope::$scope => $name, )*
                }
            }
        }
    };
}

scopes! {
    /// Looks at tasks, results, queues, lanes, notifications and events.
    Read = "read",
    /// Sees what tasks carry, besides `read`: `?view=full` and `peek`.
    Payloads = "payloads",
    /// Makes, changes and cancels tasks, queues, lanes and notifications.
    Write = "write",
    /// Does tasks: reserves them and reports on them.
    Work = "work",
    /// Reads `/metrics`, which counts over all namespaces.
    Metrics = "metrics",
    /// Everything, and keys of all namespaces besides.
    Admin = "admin",
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A scope that there is not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownScope(String);

impl fmt::Display for UnknownScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        match nearest(&self.0, names.iter().copied()) {
            Some(nearest) => write!(f, "no scope is called {:?}, did you mean {nearest:?}?", self.0),
            None => write!(f, "no scope is called {:?}: there are {}", self.0, names.join(", ")),
        }
    }
}

impl std::error::Error for UnknownScope {}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Scope, UnknownScope> {
        let found = Scope::ALL.iter().find(|scope| scope.as_str() == text);
        found.copied().ok_or_else(|| UnknownScope(text.chars().take(64).collect()))
    }
}

/// A key to be made: `POST /v1/keys`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewKey {
    /// Who it is for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whose tasks it is for; `default` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What it may do; `read`, `payloads`, `write` and `work` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Scope>>,
    /// Until when it is good; for ever if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// How many requests it may make in a second; as many as the server says if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
}

/// A key, without its secret: that is shown once, when the key is made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Key {
    /// What it is called in logs and in the audit.
    pub id: String,
    /// Who it is for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whose tasks it is for.
    pub namespace: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Moment,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Moment>,
    /// Until when the secret before the last rotation is good too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_until: Option<Moment>,
    /// Since when it is not good any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Moment>,
    /// When it was used last, if that was since the server began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Moment>,
    /// How many requests it may make in a second, if not as many as the server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
}

/// A key that was made or rotated, and its secret, which nobody can show again.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MadeKey {
    /// The key.
    pub key: Key,
    /// What is sent as `Authorization: Bearer …`.
    pub secret: String,
}

impl fmt::Debug for MadeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeKey").field("key", &self.key).finish_non_exhaustive()
    }
}

/// `POST /v1/keys/{id}:rotate`
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateKey {
    /// How long the secret of today stays good; a day if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Span>,
}

/// A page of keys.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyPage {
    /// The keys, in order of their ids.
    pub keys: Vec<Key>,
    /// The cursor of the next page.
    pub next: Option<String>,
}
