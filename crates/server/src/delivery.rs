//! What a task says about how it is delivered, as it lies in the task: the call to be made, and who is sent the result.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::call::Call;

const VERSION: u8 = 1;

/// How a task is delivered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// The call to be made.
    pub call: Option<Call>,
    /// A URL that is sent the result.
    pub callback: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    call: Option<&'a [u8]>,
    callback: Option<&'a str>,
}

impl Delivery {
    /// As bytes. Nothing said is no bytes at all.
    pub fn encode(&self) -> Bytes {
        if *self == Delivery::default() {
            return Bytes::new();
        }
        let call = self.call.as_ref().map(Call::encode);
        let stored = Stored { call: call.as_deref(), callback: self.callback.as_deref() };
        postcard::to_extend(&stored, vec![VERSION]).expect("plain fields can always be written").into()
    }

    /// Who is sent the result, without looking at the rest.
    pub fn callback_of(bytes: &[u8]) -> Option<&str> {
        let (_, rest) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
        postcard::from_bytes::<Stored<'_>>(rest).ok()?.callback
    }

    /// What bytes say; `None` if they are not a delivery that this program knows.
    pub fn decode(bytes: &Bytes) -> Option<Delivery> {
        if bytes.is_empty() {
            return Some(Delivery::default());
        }
        let (_, rest) = bytes.split_first().filter(|(version, _)| **version == VERSION)?;
        let stored: Stored<'_> = postcard::from_bytes(rest).ok()?;
        let call = match stored.call {
            Some(call) => Some(Call::decode(&Bytes::copy_from_slice(call)).ok()?),
            None => None,
        };
        Some(Delivery { call, callback: stored.callback.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_survives_being_stored() {
        let call = Some(Call::post("https://api.example.com/in"));
        let callback = Some("https://api.example.com/out".to_owned());
        for delivery in [
            Delivery::default(),
            Delivery { call: call.clone(), callback: None },
            Delivery { call: None, callback: callback.clone() },
            Delivery { call, callback },
        ] {
            assert_eq!(Delivery::callback_of(&delivery.encode()), delivery.callback.as_deref());
            assert_eq!(Delivery::decode(&delivery.encode()), Some(delivery));
        }
        assert_eq!(Delivery::decode(&Bytes::from_static(&[7, 1, 2])), None);
    }
}
