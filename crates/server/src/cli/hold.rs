//! `punctual hold`: what is on hold since the data folder was restored, and letting it go.

use clap::Subcommand;
use punctual_client::wire;

use super::Outcome;
use super::ask::Remote;
use super::words;

/// What is on hold since the data folder was restored.
#[derive(Subcommand)]
pub enum Hold {
    /// Says which queues are on hold
    Show,
    /// Lets all of them go; `punctual queue resume` lets one go
    Release,
}

impl Hold {
    /// Does it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let client = remote.client()?;
        match self {
            Hold::Show => {
                let hold = remote.heard(client.hold().await)?;
                remote.show(&hold, |hold| said(hold, "on hold"))
            }
            Hold::Release => {
                let hold = remote.heard(client.release_hold().await)?;
                remote.show(&hold, |hold| said(hold, "released"))
            }
        }
    }
}

fn said(hold: &wire::Hold, what: &str) -> String {
    if hold.queues.is_empty() {
        return "Nothing is on hold.".to_owned();
    }
    let names: Vec<String> = hold.queues.iter().map(|held| format!("\n  {}", held.queue)).collect();
    format!("{} {what}:{}", words::count(hold.queues.len() as u64, "queue"), names.concat())
}
