//! `punctual key`: who may ask a server, asked of the server itself or written into a data folder that no server uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use punctual::EmbeddedStore;
use punctual_client::wire::{Key as WireKey, KeyPage, MadeKey, NewKey, PageQuery, RotateKey, Scope, Span};
use punctual_client::{Client, Error};
use punctual_server::api::{Failure, key_of, made_key, shown_key};
use punctual_server::keys::Keys;

use super::Outcome;
use super::ask::Remote;
use super::folder::stopped_first;
use super::named::named;
use super::table::{Rows, maybe};
use super::trouble::Trouble;
use super::when::Chosen;
use super::words::{self, Here};

/// API keys: from the first one on, nobody gets into a server without one.
#[derive(Args)]
pub struct Key {
    /// Look into this data folder, that no server uses, in place of asking a server
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    #[command(subcommand)]
    deed: Deed,
}

#[derive(Subcommand)]
enum Deed {
    /// Makes a key, and prints it: this once
    Add(Add),
    /// Lists keys, of all namespaces
    List {
        /// Also those that are not good any more
        #[arg(long)]
        all: bool,
    },
    /// Gives a key a new secret, and prints it; the old one stays good for a while
    Rotate {
        /// The key's id
        #[arg(value_parser = named)]
        id: String,
        /// How long the old secret stays good
        #[arg(long, value_name = "DURATION", default_value = "24h")]
        overlap: Span,
    },
    /// Makes a key good for nothing, at once
    Revoke {
        /// The key's id
        #[arg(value_parser = named)]
        id: String,
    },
}

/// Makes a key, and prints it: this once.
#[derive(Args)]
#[command(after_help = "Scopes:
  read      look at tasks, results, queues, lanes, notifications and events
  payloads  see what tasks carry (with `read`)
  write     make, change and cancel tasks, queues, lanes and notifications
  work      reserve tasks, and report on them
  metrics   read /metrics, which counts over all namespaces
  admin     everything, and keys of all namespaces besides; the first key must have it, and not expire

Example:
  export PUNCTUAL_KEY=$(punctual key add --name robot --scope work)")]
struct Add {
    /// Who it is for, in words
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Whose tasks it is for
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// What it may do; may be repeated [default: read, payloads, write, work]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<Scope>,
    /// Until when it is good: `in 90d`, `2027-01-01` [default: for ever]
    #[arg(long, visible_alias = "expires-at", value_name = "WHEN")]
    expires: Option<String>,
    /// How many requests it may make in a second [default: as the server says]
    #[arg(long, value_name = "N")]
    requests_per_second: Option<u32>,
}

impl Key {
    /// Does it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let place = Place::open(self.data.as_deref(), &self.deed, remote).await?;
        match self.deed {
            Deed::Add(add) => {
                let made = place.add(&add.wished()?).await?;
                tell(remote, &made, "is made; this is shown only now:")
            }
            Deed::List { all } => list(remote, &place, all).await,
            Deed::Rotate { id, overlap } => {
                let made = place.rotate(&id, overlap).await?;
                tell(remote, &made, "has a new secret; this is shown only now:")
            }
            Deed::Revoke { id } => {
                let key = place.revoke(&id).await?;
                remote.show(&key, |key| format!("{}  is good for nothing any more", key.id))
            }
        }
    }
}

impl Add {
    fn wished(self) -> Result<NewKey, Trouble> {
        let here = Here::system();
        let expires = self.expires.as_deref().map(|text| Chosen::understand("--expires", text, &here));
        Ok(NewKey {
            name: self.name,
            namespace: Some(self.namespace),
            scopes: Some(self.scopes).filter(|scopes| !scopes.is_empty()),
            expires_at: expires.transpose()?.map(|chosen| chosen.moment()),
            requests_per_second: self.requests_per_second,
        })
    }
}

/// The secret goes to stdout, for a variable or a file; the rest is for people.
fn tell(remote: &Remote, made: &MadeKey, what: &str) -> Outcome {
    if !remote.json {
        let key = &made.key;
        eprintln!("key {} of namespace {} {what}", key.id, key.namespace);
    }
    remote.show(made, |made| made.secret.clone())
}

async fn list(remote: &Remote, place: &Place<'_>, all: bool) -> Outcome {
    let here = Here::system();
    let is_good = |key: &WireKey| {
        key.revoked_at.is_none()
            && key.expires_at.is_none_or(|at| at.since(here.now) > std::time::Duration::ZERO)
    };
    let mut page = place.list().await?;
    page.keys.retain(|key| all || is_good(key));
    remote.show(&page, |page| {
        let mut rows = Rows::new(["ID", "NAME", "NAMESPACE", "SCOPES", "GOOD UNTIL", "USED", "RATE"]);
        for key in &page.keys {
            let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
            let until = match (key.revoked_at, key.expires_at) {
                (Some(_), _) => "revoked".to_owned(),
                (None, Some(at)) => here.shown(at),
                (None, None) => "for ever".to_owned(),
            };
            rows.push([
                key.id.as_str().into(),
                maybe(key.name.as_ref()),
                key.namespace.as_str().into(),
                scopes.join(" ").into(),
                until.into(),
                maybe(key.last_used_at.map(|at| words::distance(here.now, at))),
                maybe(key.requests_per_second.map(|rate| format!("{rate}/s"))),
            ]);
        }
        rows.shown("There are no keys: whoever reaches the server may do everything.")
    })
}

/// Where the keys are.
enum Place<'a> {
    Server(Client, &'a Remote),
    Folder(Keys),
}

impl<'a> Place<'a> {
    async fn open(data: Option<&Path>, deed: &Deed, remote: &'a Remote) -> Result<Place<'a>, Trouble> {
        let Some(data) = data else { return Ok(Place::Server(remote.client()?, remote)) };
        let (store, source) = match deed {
            // A server that others reach needs a key before it starts for the first time.
            Deed::Add(_) => (EmbeddedStore::open(data).await, None),
            Deed::List { .. } | Deed::Rotate { .. } | Deed::Revoke { .. } => {
                (EmbeddedStore::open_existing(data).await, Some(data))
            }
        };
        let store = store.map_err(|error| {
            stopped_first(&error, source, "ask the server that uses it: leave --data out")
        })?;
        Keys::open(Arc::new(store)).await.map(Place::Folder).map_err(refused)
    }

    async fn add(&self, key: &NewKey) -> Result<MadeKey, Trouble> {
        match self {
            Place::Server(client, remote) => remote.heard(client.add_key(key).await),
            Place::Folder(keys) => {
                let made = keys.add(key_of(key.clone()).map_err(refused)?).await.map_err(refused)?;
                Ok(made_key(&made))
            }
        }
    }

    async fn list(&self) -> Result<KeyPage, Trouble> {
        let (client, remote) = match self {
            Place::Server(client, remote) => (client, remote),
            Place::Folder(keys) => {
                return Ok(KeyPage { keys: keys.all().iter().map(shown_key).collect(), next: None });
            }
        };
        let mut all = KeyPage::default();
        let mut query = PageQuery { limit: Some(1000), cursor: None };
        loop {
            let page = remote.heard(client.keys(&query).await)?;
            all.keys.extend(page.keys);
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(all);
            }
        }
    }

    async fn rotate(&self, id: &str, overlap: Span) -> Result<MadeKey, Trouble> {
        match self {
            Place::Server(client, remote) => {
                remote.heard(client.rotate_key(id, &RotateKey { overlap: Some(overlap) }).await)
            }
            Place::Folder(keys) => {
                keys.rotate(id, overlap.into()).await.map(|made| made_key(&made)).map_err(refused)
            }
        }
    }

    async fn revoke(&self, id: &str) -> Result<WireKey, Trouble> {
        match self {
            Place::Server(client, remote) => remote.heard(client.revoke_key(id).await),
            Place::Folder(keys) => keys.revoke(id).await.map(|known| shown_key(&known)).map_err(refused),
        }
    }
}

/// As a server would have said it.
fn refused(failure: impl Into<Failure>) -> Trouble {
    let Failure(problem) = failure.into();
    Trouble::of(Error::Refused(Box::new(problem)), "")
}
