//! The server's clock, and setting it forward if it is made for tests.

use std::time::Duration;

use super::Client;
use super::error::Error;
use crate::wire::{AdvanceClock, Advanced, Clock};

/// Everything that is due has its turn before the answer comes, and calls take what they take.
const ADVANCE_MAX: Duration = Duration::from_secs(600);

impl Client {
    /// What time it is for the server.
    pub async fn clock(&self) -> Result<Clock, Error> {
        self.get_path("/v1/clock".to_owned()).read().await
    }

    /// Sets the clock of a server forward that was started with a virtual one. Answers when everything that is due until
    /// then has had its turn.
    pub async fn advance_clock(&self, advance: &AdvanceClock) -> Result<Advanced, Error> {
        self.post("/v1/clock:advance".to_owned()).json(advance).wait(ADVANCE_MAX).read().await
    }
}
