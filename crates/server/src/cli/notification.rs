//! `punctual notification`: who is told, by webhook, when a task dies, a lane is blocked, or tasks start late.

use clap::{Args, Subcommand, ValueEnum};
use punctual_client::wire::{
    EventKind, NewNotification, Notification as Wire, NotificationPage, PageQuery, Span,
};

use super::Outcome;
use super::ask::{Remote, print};
use super::named::named;
use super::table::{Rows, maybe};
use super::words;

/// Who is told when a task dies, a lane is blocked, or tasks start late.
#[derive(Subcommand)]
pub enum Notification {
    /// Tells a URL from now on; a notification of that name is replaced
    Set(Set),
    /// Shows one
    Get {
        /// Its name
        #[arg(value_parser = named)]
        name: String,
    },
    /// Shows all
    List,
    /// Tells it no more; what was on its way is not sent
    Delete {
        /// Its name
        #[arg(value_parser = named)]
        name: String,
    },
}

/// What a notification says.
#[derive(Args)]
pub struct Set {
    /// Its name
    #[arg(value_parser = named)]
    name: String,
    /// Where it is sent
    #[arg(long, value_name = "URL")]
    url: String,
    /// Of what; may be repeated
    #[arg(long = "event", value_name = "EVENT", required = true, value_delimiter = ',')]
    events: Vec<Kind>,
    /// Only of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// With lateness: how late is too late
    #[arg(long, value_name = "DURATION")]
    lateness_over: Option<Span>,
    /// What it is signed with (whsec_… or whsk_…); never shown again
    #[arg(long, value_name = "SECRET", env = "PUNCTUAL_NOTIFICATION_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// A task was given up
    #[value(name = "task.dead")]
    TaskDead,
    /// The head of a lane waits for a person
    #[value(name = "lane.blocked")]
    LaneBlocked,
    /// Tasks start late, and do so no more
    #[value(name = "lateness")]
    Lateness,
}

impl From<Kind> for EventKind {
    fn from(kind: Kind) -> EventKind {
        match kind {
            Kind::TaskDead => EventKind::TaskDead,
            Kind::LaneBlocked => EventKind::LaneBlocked,
            Kind::Lateness => EventKind::Lateness,
        }
    }
}

impl Notification {
    /// Does it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let client = remote.client()?;
        match self {
            Notification::Set(set) => {
                let Set { name, url, events, queue, lateness_over, secret } = set;
                let events = events.into_iter().map(Into::into).collect();
                let new = NewNotification { url, events, queue, lateness_over, secret };
                let made = remote.heard(client.put_notification(&name, &new).await)?;
                remote.show(&made, shown)
            }
            Notification::Get { name } => {
                let found = remote.heard(client.notification(&name).await)?;
                remote.show(&found, shown)
            }
            Notification::List => list(remote).await,
            Notification::Delete { name } => {
                remote.heard(client.delete_notification(&name).await)?;
                if remote.json { Ok(()) } else { print(&format!("{name} is told no more.")) }
            }
        }
    }
}

fn shown(notification: &Wire) -> String {
    table(std::slice::from_ref(notification))
}

fn table(notifications: &[Wire]) -> String {
    let mut rows = Rows::new(["NAME", "URL", "EVENTS", "QUEUE", "LATENESS OVER", "SIGNED"]);
    for one in notifications {
        let events: Vec<&str> = one.events.iter().map(|kind| kind.as_str()).collect();
        let lateness = one.lateness_over.map(|over| words::length(over.into()));
        rows.push([
            one.name.as_str().into(),
            one.url.as_str().into(),
            events.join(" ").into(),
            maybe(one.queue.as_ref()),
            maybe(lateness),
            if one.signed { "yes" } else { "no" }.into(),
        ]);
    }
    rows.shown("Nobody is notified.")
}

async fn list(remote: &Remote) -> Outcome {
    let client = remote.client()?;
    let mut all = NotificationPage::default();
    let mut query = PageQuery { limit: Some(1000), cursor: None };
    loop {
        let page = remote.heard(client.notifications(&query).await)?;
        all.notifications.extend(page.notifications);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return remote.show(&all, |all| table(&all.notifications));
        }
    }
}
