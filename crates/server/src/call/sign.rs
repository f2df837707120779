//! Signatures of Standard Webhooks 1.0: proof to a called server that the call is ours, and fresh.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

const PREFIX: &str = "whsec_";
const BYTES_MIN: usize = 24;
const BYTES_MAX: usize = 64;

/// What a queue's calls are signed with.
#[derive(Clone)]
pub struct Secret {
    text: Box<str>,
    key: hmac::Key,
}

/// Why a text is not a secret. It never repeats the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadSecret {
    /// Without the prefix.
    NoPrefix,
    /// What follows is not base64.
    NotBase64,
    /// Too short or too long.
    Length(usize),
}

impl fmt::Display for BadSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSecret::NoPrefix => write!(f, "a secret begins with {PREFIX}"),
            BadSecret::NotBase64 => {
                write!(
                    f,
                    "what follows {PREFIX} must be base64 with its padding, in the alphabet with + and /"
                )
            }
            BadSecret::Length(bytes) => {
                write!(
                    f,
                    "a secret has {BYTES_MIN} to {BYTES_MAX} bytes behind its base64, and this has {bytes}"
                )
            }
        }
    }
}

impl std::error::Error for BadSecret {}

impl Secret {
    /// The secret behind `whsec_…`.
    pub fn parse(text: &str) -> Result<Secret, BadSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(BadSecret::NoPrefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| BadSecret::NotBase64)?;
        if !(BYTES_MIN..=BYTES_MAX).contains(&bytes.len()) {
            return Err(BadSecret::Length(bytes.len()));
        }
        Ok(Secret { text: text.into(), key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }

    /// The secret as text, for keeping it. Never for an answer or a log.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}…")
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
    use super::*;

    const ONE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

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
    fn without_a_secret_nothing_is_signed() {
        assert_eq!(signature(&[], "id", 1, b""), None);
    }

    #[test]
    fn a_bad_secret_is_refused_with_a_reason_that_does_not_repeat_it() {
        let of = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes]));
        assert_eq!(Secret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Err(BadSecret::NoPrefix));
        assert_eq!(Secret::parse("whsec_not base64"), Err(BadSecret::NotBase64));
        assert_eq!(Secret::parse(&of(23)), Err(BadSecret::Length(23)));
        assert_eq!(Secret::parse(&of(65)), Err(BadSecret::Length(65)));
        assert!(Secret::parse(&of(24)).is_ok() && Secret::parse(&of(64)).is_ok());
        assert_eq!(format!("{:?}", Secret::parse(ONE).unwrap()), "whsec_…");
    }
}
