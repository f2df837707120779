//! `punctual clock`: what time it is for a server, and setting it forward if it was started with a virtual clock.

use clap::Subcommand;
use punctual_client::wire::{AdvanceClock, ClockKind};

use super::Outcome;
use super::ask::Remote;
use super::when::Chosen;
use super::words::{self, Here};

/// The server's clock.
#[derive(Subcommand)]
pub enum Clock {
    /// Says what time it is for the server
    Show,
    /// Sets a virtual clock forward; everything that is due until then is done before this returns
    Advance {
        /// How far, such as 1h or 90s, or until when, such as "tomorrow 9:00"
        #[arg(value_name = "TIME")]
        until: String,
    },
}

impl Clock {
    /// Does it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let client = remote.client()?;
        let clock = remote.heard(client.clock().await)?;
        match self {
            Clock::Show => remote.show(&clock, |clock| {
                let kind = match clock.clock {
                    ClockKind::Real => "real",
                    ClockKind::Virtual => "virtual",
                };
                format!("{}  {kind}", words::utc(clock.now))
            }),
            Clock::Advance { until } => {
                // What is meant is meant on the server's clock.
                let there = Here { now: clock.now, ..Here::system() };
                let chosen = Chosen::understand("advance", &until, &there)?;
                let advance = AdvanceClock { to: chosen.at(), timezone: None, by: chosen.delay() };
                let advanced = remote.heard(client.advance_clock(&advance).await)?;
                remote.show(&advanced, |advanced| {
                    let started = words::count(advanced.started, "attempt");
                    format!("{}  {started} started", words::utc(advanced.now))
                })
            }
        }
    }
}
