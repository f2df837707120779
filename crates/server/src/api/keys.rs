//! Keys: making, listing, rotating and revoking them, for whoever may manage them.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use punctual_client::wire::{self, Scope};

use super::ask::{self, Name, Query};
use super::draft::{moment_of, optional_moment};
use super::failure::Failure;
use super::named::Named;
use super::reply::json;
use super::verbs::{KEY_VERBS, KeyVerb, name_and_verb};
use crate::app::App;
use crate::keys::{KeyTrouble, Known, NewKey, Secret};

/// What a key may do if nothing is said: everything that tasks need, and nothing of other namespaces.
const SCOPES: [Scope; 4] = [Scope::Read, Scope::Payloads, Scope::Write, Scope::Work];
/// How long a secret that was rotated is good if nothing is said: a day is enough to tell everybody.
const OVERLAP: Duration = Duration::from_secs(24 * 3600);

/// `GET /v1/keys`
pub async fn list(State(app): State<App>, Query(query): Query<wire::PageQuery>) -> Result<Response, Failure> {
    let all = app.access().keys.all();
    let (page, next) = Named::Keys.page(&all, |known| &known.key.id, &query)?;
    Ok(json(StatusCode::OK, &wire::KeyPage { keys: page.iter().map(shown).collect(), next }))
}

/// `POST /v1/keys`
pub async fn add(State(app): State<App>, ask::Body(bytes): ask::Body) -> Result<Response, Failure> {
    let new = key_of(ask::body(&bytes)?)?;
    Ok(made(StatusCode::CREATED, &app.access().keys.add(new).await?))
}

/// A key to be made, as the wire has it, understood.
pub fn key_of(new: wire::NewKey) -> Result<NewKey, Failure> {
    Ok(NewKey {
        name: new.name,
        namespace: new.namespace.unwrap_or_else(|| "default".to_owned()),
        scopes: new.scopes.unwrap_or_else(|| SCOPES.to_vec()).into_iter().collect(),
        expires_at: optional_moment("expires_at", new.expires_at.as_ref(), None)?,
        requests_per_second: new.requests_per_second,
    })
}

/// `DELETE /v1/keys/{id}`
pub async fn revoke(State(app): State<App>, Name(id): Name) -> Result<Response, Failure> {
    Ok(json(StatusCode::OK, &shown(&app.access().keys.revoke(&id).await?)))
}

/// `POST /v1/keys/{id}:rotate`
pub async fn act(
    State(app): State<App>,
    Name(path): Name,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let (id, KeyVerb::Rotate) = name_and_verb(&path, KEY_VERBS)?;
    let wire::RotateKey { overlap } = ask::body(&bytes)?;
    let overlap = overlap.map_or(OVERLAP, Into::into);
    Ok(made(StatusCode::OK, &app.access().keys.rotate(id, overlap).await?))
}

/// A key and its secret, as they are answered to whoever made it.
pub fn with_secret((known, secret): &(Known, Secret)) -> wire::MadeKey {
    wire::MadeKey { key: shown(known), secret: secret.reveal().to_owned() }
}

fn made(status: StatusCode, made: &(Known, Secret)) -> Response {
    let mut response = json(status, &with_secret(made));
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/keys/{}", made.0.key.id)) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    // No proxy on the way may keep a secret.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A key as it is answered, to whomever.
pub fn shown(known: &Known) -> wire::Key {
    let key = &known.key;
    let overlap_until = key.former.iter().map(|(_, until)| *until).max();
    wire::Key {
        id: key.id.to_string(),
        name: key.name.as_deref().map(str::to_owned),
        namespace: key.namespace.to_string(),
        scopes: key.scopes.each().collect(),
        created_at: moment_of(key.created_at),
        expires_at: key.expires_at.map(moment_of),
        overlap_until: overlap_until.map(moment_of),
        revoked_at: key.revoked_at.map(moment_of),
        last_used_at: known.last_used_at().map(moment_of),
        requests_per_second: key.requests_per_second,
    }
}

impl From<KeyTrouble> for Failure {
    fn from(trouble: KeyTrouble) -> Failure {
        match trouble {
            KeyTrouble::NotFound => Failure::new("key_not_found", trouble.to_string()),
            KeyTrouble::Needed | KeyTrouble::LastLasting => Failure::new("key_needed", trouble.to_string()),
            KeyTrouble::Field(field, detail) => Failure::field(field, detail),
            KeyTrouble::Store(error) => error.into(),
        }
    }
}
