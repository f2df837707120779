//! `punctual lane`: lanes that wait for a person.

use clap::Subcommand;
use punctual_client::wire::{LaneName, LanePage, LaneQuery, Progress};

use super::Outcome;
use super::ask::Remote;
use super::named::named;
use super::table::{Rows, maybe, state};
use super::words::{Here, shortened};

/// What an error may take of a line.
const ERROR_CHARS: usize = 80;

/// Lanes that wait for a person.
#[derive(Subcommand)]
pub enum Lane {
    /// Lists lanes whose head has no attempts left
    List {
        /// Only of this queue
        #[arg(long, value_name = "QUEUE", value_parser = named)]
        queue: Option<String>,
    },
    /// Tries the head of a lane again
    Release {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
        /// The lane
        #[arg(value_parser = named)]
        lane: String,
    },
    /// Cancels the head of a lane, so that the next task has its turn
    Skip {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
        /// The lane
        #[arg(value_parser = named)]
        lane: String,
    },
}

impl Lane {
    /// Does it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let client = remote.client()?;
        match self {
            Lane::List { queue } => list(remote, queue).await,
            Lane::Release { queue, lane } => {
                let head = remote.heard(client.release_lane(&LaneName { queue, lane }).await)?;
                remote.show(&head, |head| said(head, "is tried again"))
            }
            Lane::Skip { queue, lane } => {
                let head = remote.heard(client.skip_lane(&LaneName { queue, lane }).await)?;
                remote.show(&head, |head| said(head, "is cancelled; the lane goes on"))
            }
        }
    }
}

fn said(head: &Progress, what: &str) -> String {
    format!("{}  {what}", head.id)
}

async fn list(remote: &Remote, queue: Option<String>) -> Outcome {
    let client = remote.client()?;
    let mut all = LanePage::default();
    let mut query = LaneQuery { queue, blocked: Some(true), limit: Some(1000), ..LaneQuery::default() };
    loop {
        let page = remote.heard(client.lanes(&query).await)?;
        all.lanes.extend(page.lanes);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let here = Here::system();
    remote.show(&all, |all| {
        let mut rows = Rows::new(["QUEUE", "LANE", "HEAD", "STATE", "DUE", "ATTEMPTS", "LAST ERROR"]);
        for lane in &all.lanes {
            let head = lane.head.as_ref();
            let error = head.and_then(|head| head.last_error.as_deref());
            rows.push([
                lane.queue.as_str().into(),
                lane.lane.as_str().into(),
                maybe(head.map(|head| &head.id)),
                head.map_or_else(|| "".into(), |head| state(head.state)),
                maybe(head.map(|head| here.shown(head.at))),
                maybe(head.map(|head| head.attempts)),
                maybe(error.map(|error| shortened(error, ERROR_CHARS))),
            ]);
        }
        rows.shown("No lane is blocked.")
    })
}
