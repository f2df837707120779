//! What the process says, a line each time.

use std::fmt;
use std::io::Write;

use punctual::Timestamp;

/// One line of output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A task that the store holds, as it is opened: its number and what else is known of it.
    Held { n: u64, id: String, is_as_planned: bool },
    /// Everything that the store holds was said. From now on things happen.
    Opened,
    /// So many tasks, from this number on, are about to be scheduled.
    Sent { first: u64, count: u64, at: Timestamp },
    /// A task is acknowledged.
    Accepted { n: u64, id: String, at: Timestamp },
    /// A task with a unique key was scheduled again, and stands for this one.
    Again { n: u64, id: String },
    /// A task is about to be cancelled.
    Cancelling { n: u64 },
    /// A task is cancelled.
    Cancelled { n: u64 },
    /// A handler begins.
    Begun { n: u64, id: String },
    /// A handler is about to return.
    Done { n: u64 },
    /// The scheduler was told that an end is on record.
    Ended { id: String },
    /// Whoever waited for a result has it.
    Result { n: u64 },
    /// A task in the history, and whether it succeeded or was cancelled.
    Past { n: u64, state: String },
    /// Everything that is in the history was said, and the scheduler has stopped.
    Stopped,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Held { n, id, is_as_planned } => write!(f, "held {n} {id} {is_as_planned}"),
            Line::Opened => write!(f, "opened"),
            Line::Sent { first, count, at } => write!(f, "sent {first} {count} {}", at.as_micros()),
            Line::Accepted { n, id, at } => write!(f, "accepted {n} {id} {}", at.as_micros()),
            Line::Again { n, id } => write!(f, "again {n} {id}"),
            Line::Cancelling { n } => write!(f, "cancelling {n}"),
            Line::Cancelled { n } => write!(f, "cancelled {n}"),
            Line::Begun { n, id } => write!(f, "begun {n} {id}"),
            Line::Done { n } => write!(f, "done {n}"),
            Line::Ended { id } => write!(f, "ended {id}"),
            Line::Result { n } => write!(f, "result {n}"),
            Line::Past { n, state } => write!(f, "past {n} {state}"),
            Line::Stopped => write!(f, "stopped"),
        }
    }
}

impl Line {
    /// The line of this text. One that the kill cut off never gets here: it has no end.
    pub fn parse(text: &str) -> Line {
        Line::try_parse(text).unwrap_or_else(|| panic!("no line of ours: {text}"))
    }

    fn try_parse(text: &str) -> Option<Line> {
        let words: Vec<&str> = text.split(' ').collect();
        let n = || words.get(1)?.parse().ok();
        let word = |nth: usize| words.get(nth).map(ToString::to_string);
        let time = || Some(Timestamp::from_micros(words.get(3)?.parse().ok()?));
        Some(match words[0] {
            "held" => Line::Held { n: n()?, id: word(2)?, is_as_planned: words.get(3)? == &"true" },
            "opened" => Line::Opened,
            "sent" => Line::Sent { first: n()?, count: word(2)?.parse().ok()?, at: time()? },
            "accepted" => Line::Accepted { n: n()?, id: word(2)?, at: time()? },
            "again" => Line::Again { n: n()?, id: word(2)? },
            "cancelling" => Line::Cancelling { n: n()? },
            "cancelled" => Line::Cancelled { n: n()? },
            "begun" => Line::Begun { n: n()?, id: word(2)? },
            "done" => Line::Done { n: n()? },
            "ended" => Line::Ended { id: word(1)? },
            "result" => Line::Result { n: n()? },
            "past" => Line::Past { n: n()?, state: word(2)? },
            "stopped" => Line::Stopped,
            _ => return None,
        })
    }
}

/// Says it, at once: when this returns, no kill can take it back.
pub fn say(line: &Line) {
    say_all(std::slice::from_ref(line));
}

/// Says several lines, with nothing in between.
pub fn say_all(lines: &[Line]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("the parent listens");
}
