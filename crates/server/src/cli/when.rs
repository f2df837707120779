//! A time that was typed: understood, said back, and sent.

use punctual_client::wire::{Span, Time};

use super::human_time::{self, When};
use super::trouble::Trouble;
use super::words::{self, Here};

/// A time that was understood.
pub struct Chosen {
    when: When,
}

impl Chosen {
    /// What the text after a flag means.
    pub fn understand(flag: &str, text: &str, here: &Here) -> Result<Chosen, Trouble> {
        match human_time::understand(text, here.now, &here.zone) {
            Ok(when) => Ok(Chosen { when }),
            Err(error) => Err(Trouble::usage(format!("{flag} {error}"))),
        }
    }

    /// Says on stderr what was understood, so that a mistake is seen before it is late.
    pub fn echo(&self, here: &Here) {
        let When { at, zone, note, .. } = &self.when;
        let mut said = words::local_with_day(*at, zone);
        let there = words::local_with_day(*at, &here.zone);
        if said != there {
            said = format!("{said} = {there} here");
        }
        let utc = words::utc(*at);
        eprintln!("due {said} = {utc}, {}", words::distance(here.now, *at));
        if let Some(note) = note {
            eprintln!("note: {note}");
        }
    }

    /// The time to send, unless it was said as a length from now.
    pub fn at(&self) -> Option<Time> {
        self.when.after.is_none().then(|| self.when.at.into())
    }

    /// The length to send: the server's clock counts, not ours.
    pub fn delay(&self) -> Option<Span> {
        self.when.after.map(Into::into)
    }

    /// The moment, whichever way it was said.
    pub fn moment(&self) -> Time {
        self.when.at.into()
    }
}
