//! Signatures of Standard Webhooks 1.0: proof to a called server that the call is ours, and fresh.
//!
//! With `whsec_…` both sides know the same secret (`v1`). With `whsk_…` (`v1a`) the called server knows only the public
//! half, `whpk_…`, and can forge nothing.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair};

const SHARED: &str = "whsec_";
const PRIVATE: &str = "whsk_";
const PUBLIC: &str = "whpk_";
/// A shared secret has so many bytes.
const BYTES_MIN: usize = 24;
const BYTES_MAX: usize = 64;
/// A private key is a seed, or a seed and the public key that follows from it.
const SEED_BYTES: usize = 32;
const PAIR_BYTES: usize = 64;

/// What a queue's calls are signed with.
#[derive(Clone)]
pub struct Secret {
    text: Box<str>,
    key: Key,
}

#[derive(Clone)]
enum Key {
    Shared(hmac::Key),
    Private(Arc<Ed25519KeyPair>),
}

/// Why a text is not a secret. It never repeats the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadSecret {
    /// Without the prefix.
    NoPrefix,
    /// It is the key that the called server gets.
    Public,
    /// What follows is not base64.
    NotBase64,
    /// Too short or too long.
    Length(usize),
    /// A private key is neither a seed nor a seed and a public key.
    KeyLength(usize),
    /// The public key in it is that of another seed.
    OtherPublic,
}

impl fmt::Display for BadSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSecret::NoPrefix => {
                write!(f, "a secret begins with {SHARED}, or with {PRIVATE} if it is an ed25519 key")
            }
            BadSecret::Public => {
                write!(
                    f,
                    "{PUBLIC} is the public key, for whoever is called: what signs begins with {PRIVATE}"
                )
            }
            BadSecret::NotBase64 => f.write_str(
                "what follows the prefix must be base64 with its padding, in the alphabet with + and /",
            ),
            BadSecret::Length(bytes) => {
                write!(
                    f,
                    "a secret has {BYTES_MIN} to {BYTES_MAX} bytes behind its base64, and this has {bytes}"
                )
            }
            BadSecret::KeyLength(bytes) => {
                write!(
                    f,
                    "an ed25519 key has {SEED_BYTES} bytes behind its base64 (the seed), or {PAIR_BYTES} with the \
                     public key, and this has {bytes}"
                )
            }
            BadSecret::OtherPublic => f.write_str("the public key in it does not belong to its seed"),
        }
    }
}

impl std::error::Error for BadSecret {}

impl Secret {
    /// The secret behind `whsec_…` or `whsk_…`.
    pub fn parse(text: &str) -> Result<Secret, BadSecret> {
        let decode = |encoded: &str| STANDARD.decode(encoded).map_err(|_| BadSecret::NotBase64);
        let key = if let Some(encoded) = text.strip_prefix(SHARED) {
            shared(&decode(encoded)?)?
        } else if let Some(encoded) = text.strip_prefix(PRIVATE) {
            private(&decode(encoded)?)?
        } else if text.starts_with(PUBLIC) {
            return Err(BadSecret::Public);
        } else {
            return Err(BadSecret::NoPrefix);
        };
        Ok(Secret { text: text.into(), key })
    }

    /// The secret as text, for keeping it. Never for an answer or a log.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// What the called server checks signatures with, if that is not the secret itself.
    pub fn public_key(&self) -> Option<String> {
        match &self.key {
            Key::Shared(_) => None,
            Key::Private(pair) => Some(format!("{PUBLIC}{}", STANDARD.encode(pair.public_key()))),
        }
    }

    fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let head = format!("{id}.{timestamp}.");
        match &self.key {
            Key::Shared(key) => {
                let mut context = hmac::Context::with_key(key);
                context.update(head.as_bytes());
                context.update(body);
                format!("v1,{}", STANDARD.encode(context.sign()))
            }
            Key::Private(pair) => {
                let signed = [head.as_bytes(), body].concat();
                format!("v1a,{}", STANDARD.encode(pair.sign(&signed)))
            }
        }
    }
}

fn shared(bytes: &[u8]) -> Result<Key, BadSecret> {
    match bytes.len() {
        BYTES_MIN..=BYTES_MAX => Ok(Key::Shared(hmac::Key::new(hmac::HMAC_SHA256, bytes))),
        other => Err(BadSecret::Length(other)),
    }
}

fn private(bytes: &[u8]) -> Result<Key, BadSecret> {
    let pair = match bytes.len() {
        SEED_BYTES => Ed25519KeyPair::from_seed_unchecked(bytes),
        PAIR_BYTES => {
            let (seed, public) = bytes.split_at(SEED_BYTES);
            Ed25519KeyPair::from_seed_and_public_key(seed, public)
        }
        other => return Err(BadSecret::KeyLength(other)),
    };
    pair.map(|pair| Key::Private(Arc::new(pair))).map_err(|_| BadSecret::OtherPublic)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.key {
            Key::Shared(_) => "whsec_…",
            Key::Private(_) => "whsk_…",
        })
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.text == other.text
    }
}

impl Eq for Secret {}

/// The value of `webhook-signature`: one signature for each secret, so that a receiver can change from one to the
/// other when it likes. `None` when there is no secret. `timestamp` is in seconds.
pub fn signature(secrets: &[Secret], id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, timestamp, body)).collect();
    (!signatures.is_empty()).then(|| signatures.join(" "))
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    const ONE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    /// The seed and the public key of the first test of RFC 8032.
    const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    const SEEDS_PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|place| u8::from_str_radix(&hex[place..place + 2], 16).unwrap())
            .collect()
    }

    fn private(bytes: &[u8]) -> String {
        format!("{PRIVATE}{}", STANDARD.encode(bytes))
    }

    #[test]
    fn the_vector_of_the_specification() {
        // From the reference libraries of Standard Webhooks.
        let secrets = [Secret::parse(ONE).unwrap()];
        let signed =
            signature(&secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the published verifier compares with the system's clock")]
    fn the_published_verifier_accepts_either_secret_and_no_other_body() {
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
        let secrets = [Secret::parse(ONE).unwrap(), Secret::parse(OTHER).unwrap()];
        let body = br#"{"paid": true}"#;
        let mut headers = http::HeaderMap::new();
        headers.insert("webhook-id", "000abc".parse().unwrap());
        headers.insert("webhook-timestamp", now.into());
        headers
            .insert("webhook-signature", signature(&secrets, "000abc", now, body).unwrap().parse().unwrap());
        for secret in [ONE, OTHER] {
            let verifier = standardwebhooks::Webhook::new(secret).unwrap();
            verifier.verify(body, &headers).unwrap();
            verifier.verify(b"{}", &headers).unwrap_err();
        }
        let stranger = standardwebhooks::Webhook::new("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
        stranger.verify(body, &headers).unwrap_err();
    }

    #[test]
    fn whoever_has_the_public_key_can_check_and_secrets_of_both_kinds_mix() {
        let pair = [bytes(SEED), bytes(SEEDS_PUBLIC)].concat();
        for text in [private(&bytes(SEED)), private(&pair)] {
            let secrets = [Secret::parse(&text).unwrap(), Secret::parse(ONE).unwrap()];
            let public = secrets[0].public_key().unwrap();
            assert_eq!(public, format!("{PUBLIC}{}", STANDARD.encode(bytes(SEEDS_PUBLIC))));
            assert_eq!(secrets[1].public_key(), None);
            let signed = signature(&secrets, "000abc", 1_614_265_330, b"{}").unwrap();
            let (own, shared) = signed.split_once(' ').unwrap();
            assert!(shared.starts_with("v1,"), "{signed}");
            let own = STANDARD.decode(own.strip_prefix("v1a,").unwrap()).unwrap();
            let verifier = UnparsedPublicKey::new(&ED25519, bytes(SEEDS_PUBLIC));
            verifier.verify(b"000abc.1614265330.{}", &own).unwrap();
            verifier.verify(b"000abc.1614265330.[]", &own).unwrap_err();
        }
    }

    #[test]
    fn without_a_secret_nothing_is_signed() {
        assert_eq!(signature(&[], "id", 1, b""), None);
    }

    #[test]
    fn a_bad_secret_is_refused_with_a_reason_that_does_not_repeat_it() {
        let of = |bytes: usize| format!("{SHARED}{}", STANDARD.encode(vec![7; bytes]));
        assert_eq!(Secret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Err(BadSecret::NoPrefix));
        assert_eq!(Secret::parse("whsec_not base64"), Err(BadSecret::NotBase64));
        assert_eq!(Secret::parse(&of(23)), Err(BadSecret::Length(23)));
        assert_eq!(Secret::parse(&of(65)), Err(BadSecret::Length(65)));
        assert!(Secret::parse(&of(24)).is_ok() && Secret::parse(&of(64)).is_ok());
        assert_eq!(format!("{:?}", Secret::parse(ONE).unwrap()), "whsec_…");
        assert_eq!(Secret::parse("whsk_?"), Err(BadSecret::NotBase64));
        for length in [0, 31, 33, 63, 65] {
            assert_eq!(Secret::parse(&private(&vec![7; length])), Err(BadSecret::KeyLength(length)));
        }
        assert_eq!(Secret::parse(&private(&[7; 64])), Err(BadSecret::OtherPublic));
        assert_eq!(Secret::parse("whpk_11qYAYKxCrfVS/7TyWQHOg=="), Err(BadSecret::Public));
        assert_eq!(format!("{:?}", Secret::parse(&private(&[7; 32])).unwrap()), "whsk_…");
    }
}
