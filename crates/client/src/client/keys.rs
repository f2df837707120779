//! API keys: for whoever may manage them.

use http::Method;

use super::Client;
use super::error::Error;
use super::request::segment;
use crate::wire::{Key, KeyPage, MadeKey, NewKey, PageQuery, RotateKey};

impl Client {
    /// Makes a key. Its secret is in the answer, and nowhere else.
    pub async fn add_key(&self, key: &NewKey) -> Result<MadeKey, Error> {
        self.post("/v1/keys".to_owned()).json(key).read().await
    }

    /// A page of keys, of all namespaces.
    pub async fn keys(&self, query: &PageQuery) -> Result<KeyPage, Error> {
        self.get_path("/v1/keys".to_owned()).query(query).read().await
    }

    /// A key is not good any more, from now on.
    pub async fn revoke_key(&self, id: &str) -> Result<Key, Error> {
        self.asking(Method::DELETE, format!("/v1/keys/{}", segment(id))).read().await
    }

    /// Gives a key a new secret; that of today stays good for a while.
    pub async fn rotate_key(&self, id: &str, rotate: &RotateKey) -> Result<MadeKey, Error> {
        self.post(format!("/v1/keys/{}:rotate", segment(id))).json(rotate).read().await
    }
}
