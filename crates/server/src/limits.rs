//! How much a server takes: everything that comes from outside has a bound, and all of them are here.

use std::time::Duration;

use crate::units::{KIB, MIB};

/// What a server takes from those who ask it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many connections are open at once. More are answered with 503, and closed.
    pub connections_max: u32,
    /// How long a connection may be open without a request, or without taking anything of its answer.
    pub idle_max: Duration,
    /// How long the head of a request may take, from its first byte; a TLS handshake too.
    pub head_timeout: Duration,
    /// How large the head of a request may be, in bytes.
    pub head_max: usize,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How large a body may be, in bytes.
    pub body_max: usize,
    /// How many bytes of bodies are held at once, over all requests. What comes then is refused with 429.
    pub in_flight_max: usize,
    /// How many requests a key may make in a second, if the key itself does not say; `None` for any number.
    pub requests_per_second: Option<u32>,
    /// How many of them may come at once after a rest; as many as in a second if nothing is said.
    pub requests_burst: Option<u32>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 16_384,
            // Clients keep theirs for less than this, so that the server does not hang up on a request under way.
            idle_max: Duration::from_secs(75),
            head_timeout: Duration::from_secs(10),
            head_max: 32 * KIB,
            body_timeout: Duration::from_secs(60),
            // A batch of ten thousand tasks fits, with payloads of a few KiB each.
            body_max: 32 * MIB,
            in_flight_max: 256 * MIB,
            requests_per_second: None,
            requests_burst: None,
        }
    }
}
