//! The text that opens a server: 256 random bits that are shown once, and the digest that is kept of them.
//!
//! A key cannot be guessed, so a plain SHA-256 keeps it as well as a slow hash would, and costs nothing per request.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

/// What every key begins with, so that people and programs that look for lost secrets know it.
const PREFIX: &str = "punctual_";
const SECRET_BYTES: usize = 32;
const ID_CHARS: usize = 12;
/// Thirty-two letters and digits that are not mistaken for one another: five bits each, evenly.
const ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// No key is longer.
const TEXT_MAX: usize = 256;

/// The whole text of a key. It is shown to whoever made it, and kept by nobody here.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one for this key.
    pub fn new(id: &str) -> Secret {
        Secret(format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(random::<SECRET_BYTES>())))
    }

    /// The text, for whoever made it. Never for a log.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A name for a new key.
pub fn new_id() -> String {
    random::<ID_CHARS>().map(|byte| char::from(ID_ALPHABET[usize::from(byte % 32)])).iter().collect()
}

/// The id within the text of a key, if it looks like one.
pub fn id_of(text: &str) -> Option<&str> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    (text.len() <= TEXT_MAX && !id.is_empty() && !secret.is_empty()).then_some(id)
}

/// What is kept of a key: enough to know it again, and not enough to use it.
#[derive(Clone, Copy)]
pub struct Digest(pub [u8; SHA256_OUTPUT_LEN]);

impl Digest {
    /// The digest of a text.
    pub fn of(text: &str) -> Digest {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Digest(bytes)
    }

    /// Whether it is the same. How long this takes tells nothing.
    pub fn is(&self, other: &Digest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("a machine without randomness cannot keep secrets");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_names_its_key_and_is_known_again_by_its_digest() {
        let id = new_id();
        let (one, other) = (Secret::new(&id), Secret::new(&id));
        assert_eq!(id_of(one.reveal()), Some(id.as_str()));
        assert!(one.digest().is(&Digest::of(one.reveal())));
        assert!(!one.digest().is(&other.digest()), "each is new");
        // 256 bits are 43 characters of base64.
        assert_eq!(one.reveal().len(), PREFIX.len() + ID_CHARS + 1 + 43);
        assert!(!format!("{one:?}").contains(&one.reveal()[PREFIX.len()..]), "it is not shown by mistake");
    }

    #[test]
    fn what_does_not_look_like_a_key_is_none() {
        let long = format!("{PREFIX}a_{}", "x".repeat(TEXT_MAX));
        for text in ["", "punctual_", "punctual_abc", "punctual__x", "punctual_abc_", "other_abc_x", &long] {
            assert_eq!(id_of(text), None, "{text}");
        }
    }
}
