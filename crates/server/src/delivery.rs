//! What a task says about how it is delivered, as it lies in the task: the call to be made, who is sent the result, and
//! the trace that a worker goes on with.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::trace::Trace;

const VERSION: u8 = 1;

/// How a task is delivered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// The call to be made.
    pub call: Option<Call>,
    /// A URL that is sent the result.
    pub callback: Option<String>,
    /// The trace that it was made in. A call has its own.
    pub trace: Option<Trace>,
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    call: Option<&'a [u8]>,
    callback: Option<&'a str>,
}

/// Lies behind the rest, if there is one: a program that does not know of it overlooks it.
#[derive(Serialize, Deserialize)]
struct StoredTrace<'a> {
    parent: &'a str,
    state: Option<&'a str>,
}

impl Delivery {
    /// As bytes. Nothing said is no bytes at all.
    pub fn encode(&self) -> Bytes {
        if *self == Delivery::default() {
            return Bytes::new();
        }
        let call = self.call.as_ref().map(Call::encode);
        let stored = Stored { call: call.as_deref(), callback: self.callback.as_deref() };
        let mut bytes =
            postcard::to_extend(&stored, vec![VERSION]).expect("plain fields can always be written");
        if let Some(Trace { parent, state }) = &self.trace {
            let trace = StoredTrace { parent, state: state.as_deref() };
            bytes = postcard::to_extend(&trace, bytes).expect("plain fields can always be written");
        }
        bytes.into()
    }

    /// Who is sent the result, without looking at the rest.
    pub fn callback_of(bytes: &[u8]) -> Option<&str> {
        read(bytes)?.0.callback
    }

    /// The trace that it was made in, without looking at the rest.
    pub fn trace_of(bytes: &[u8]) -> Option<Trace> {
        let StoredTrace { parent, state } = read(bytes)?.1?;
        Trace::read(parent, state)
    }

    /// What bytes say; `None` if they are not a delivery that this program knows.
    pub fn decode(bytes: &Bytes) -> Option<Delivery> {
        if bytes.is_empty() {
            return Some(Delivery::default());
        }
        let (stored, trace) = read(bytes)?;
        let call = match stored.call {
            Some(call) => Some(Call::decode(&Bytes::copy_from_slice(call)).ok()?),
            None => None,
        };
        let trace = trace.and_then(|trace| Trace::read(trace.parent, trace.state));
        Some(Delivery { call, callback: stored.callback.map(str::to_owned), trace })
    }
}

fn read(bytes: &[u8]) -> Option<(Stored<'_>, Option<StoredTrace<'_>>)> {
    let (_, rest) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
    let (stored, rest) = postcard::take_from_bytes(rest).ok()?;
    let trace = if rest.is_empty() { None } else { Some(postcard::from_bytes(rest).ok()?) };
    Some((stored, trace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_survives_being_stored() {
        let call = Some(Call::post("https://api.example.com/in"));
        let callback = Some("https://api.example.com/out".to_owned());
        let trace = Trace::read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Some("a=b"));
        assert!(trace.is_some());
        for delivery in [
            Delivery::default(),
            Delivery { call: call.clone(), ..Delivery::default() },
            Delivery { callback: callback.clone(), ..Delivery::default() },
            Delivery { trace: trace.clone(), ..Delivery::default() },
            Delivery { call, callback, trace },
        ] {
            assert_eq!(Delivery::callback_of(&delivery.encode()), delivery.callback.as_deref());
            assert_eq!(Delivery::trace_of(&delivery.encode()), delivery.trace);
            assert_eq!(Delivery::decode(&delivery.encode()), Some(delivery));
        }
        assert_eq!(Delivery::decode(&Bytes::from_static(&[7, 1, 2])), None);
    }

    #[test]
    fn deliveries_from_before_there_were_traces_stay_readable() {
        let stored: &[u8] = b"\x01\x00\x01\x08http://a";
        let expected = Delivery { callback: Some("http://a".to_owned()), ..Delivery::default() };
        assert_eq!(expected.encode(), stored);
        assert_eq!(Delivery::decode(&Bytes::from_static(stored)), Some(expected));
    }
}
