//! How a call lies at rest in its task. The first byte is the version of this format; older ones stay readable.
//!
//! The body comes last and as it is, so that reading a call copies everything but the body.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Call;

const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct Head {
    url: String,
    method: String,
    headers: Vec<(String, String)>,
    has_body: bool,
    timeout: Option<Duration>,
    traceparent: Option<String>,
    tracestate: Option<String>,
}

/// The bytes are not a call, or one of a later version than this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotACall;

impl fmt::Display for NotACall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is stored is not a call, or was written by a later version of Punctual")
    }
}

impl std::error::Error for NotACall {}

impl Call {
    /// The bytes of a call.
    pub fn encode(&self) -> Bytes {
        let head = Head {
            url: self.url.clone(),
            method: self.method.clone(),
            headers: self.headers.clone(),
            has_body: self.body.is_some(),
            timeout: self.timeout,
            traceparent: self.traceparent.clone(),
            tracestate: self.tracestate.clone(),
        };
        let mut bytes =
            postcard::to_extend(&head, vec![VERSION]).expect("plain fields can always be written");
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes.into()
    }

    /// The call behind bytes.
    pub fn decode(bytes: &Bytes) -> Result<Call, NotACall> {
        let Some((&VERSION, stored)) = bytes.split_first() else { return Err(NotACall) };
        let (head, body) = postcard::take_from_bytes::<Head>(stored).map_err(|_| NotACall)?;
        if !head.has_body && !body.is_empty() {
            return Err(NotACall);
        }
        Ok(Call {
            url: head.url,
            method: head.method,
            headers: head.headers,
            body: head.has_body.then(|| bytes.slice_ref(body)),
            timeout: head.timeout,
            traceparent: head.traceparent,
            tracestate: head.tracestate,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call() -> Call {
        Call {
            headers: vec![("x-a".into(), "1".into()), ("x-a".into(), "2".into())],
            body: Some(Bytes::from_static(b"hello")),
            timeout: Some(Duration::from_millis(1_500)),
            traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
            tracestate: Some("a=b".into()),
            ..Call::post("https://api.example.com/hooks?x=1")
        }
    }

    #[test]
    fn a_call_survives_its_rest() {
        let none = Call { body: None, ..call() };
        let empty = Call { body: Some(Bytes::new()), ..call() };
        for call in [call(), none, empty, Call::post("http://a")] {
            assert_eq!(Call::decode(&call.encode()).as_ref(), Ok(&call));
        }
    }

    #[test]
    fn calls_of_version_1_stay_readable() {
        let stored: &[u8] = b"\x01\x08http://a\x04POST\x01\x03x-a\x011\x01\x01\x02\x00\x00\x00hi";
        let expected = Call {
            headers: vec![("x-a".into(), "1".into())],
            body: Some(Bytes::from_static(b"hi")),
            timeout: Some(Duration::from_secs(2)),
            ..Call::post("http://a")
        };
        assert_eq!(expected.encode(), stored);
        assert_eq!(Call::decode(&Bytes::from_static(stored)), Ok(expected));
    }

    #[test]
    fn the_body_is_not_copied() {
        let bytes = call().encode();
        let body = Call::decode(&bytes).unwrap().body.unwrap();
        assert!(bytes.as_ptr_range().contains(&body.as_ptr()));
    }

    #[test]
    fn what_is_cut_short_or_of_another_version_is_refused() {
        let bytes = Call { body: None, ..call() }.encode();
        for end in 0..bytes.len() {
            assert_eq!(Call::decode(&bytes.slice(..end)), Err(NotACall), "{end}");
        }
        let mut later = bytes.to_vec();
        later[0] = 2;
        assert_eq!(Call::decode(&later.into()), Err(NotACall));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() { *first = VERSION; }
            let _ = Call::decode(&bytes.into());
        }
    }
}
