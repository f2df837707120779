//! Which tasks are meant: by id, or by what is true of them.

use clap::Args;
use punctual_client::wire::{Filter, State, TaskQuery, Time};

use crate::cli::human_time;
use crate::cli::named::named;
use crate::cli::trouble::Trouble;
use crate::cli::words::Here;

/// What must be true of the tasks.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Which tasks")]
pub struct Filters {
    /// Of this queue
    #[arg(long, value_name = "QUEUE", value_parser = named)]
    queue: Option<String>,
    /// Of this lane
    #[arg(long, value_name = "LANE", value_parser = named)]
    lane: Option<String>,
    /// Of this name
    #[arg(long, value_name = "NAME", value_parser = named)]
    name: Option<String>,
    /// In this state
    #[arg(long, value_name = "STATE", value_parser = clap::builder::PossibleValuesParser::new(State::ALL.map(State::as_str)))]
    state: Option<String>,
    /// Not due before this, such as "1h ago" or "tomorrow 9:00"
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Due before this
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl Filters {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        let Filters { queue, lane, name, state, from, to } = self;
        [queue, lane, name, state, from, to].iter().all(|filter| filter.is_none())
    }

    /// As the server is asked.
    pub fn query(&self, here: &Here) -> Result<TaskQuery, Trouble> {
        let state = self.state.as_deref().map(str::parse).transpose().map_err(Trouble::usage)?;
        Ok(TaskQuery::from(Filter {
            queue: self.queue.clone(),
            lane: self.lane.clone(),
            name: self.name.clone(),
            state,
            from: moment("--from", self.from.as_deref(), here)?,
            to: moment("--to", self.to.as_deref(), here)?,
        }))
    }
}

/// A time of a filter, as people write it.
fn moment(flag: &str, text: Option<&str>, here: &Here) -> Result<Option<Time>, Trouble> {
    let Some(text) = text else { return Ok(None) };
    let when = human_time::understand(text, here.now, &here.zone);
    when.map(|when| Some(when.at.into())).map_err(|error| Trouble::usage(format!("{flag} {error}")))
}
