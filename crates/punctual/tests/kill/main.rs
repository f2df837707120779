//! `kill -9` of a real process in a loop: what it acknowledged, ran and ended is checked from outside.
//!
//! ```text
//!   parent ── starts ──▶ child: opens the folder, schedules, cancels, runs handlers
//!      ▲                   │
//!      └──── one line each time something was sent, acknowledged, begun or ended
//!      └── SIGKILL after so many lines and a little more; `verify`; the next child
//! ```
//!
//! Fifty rounds, or as many as `PUNCTUAL_KILL_ROUNDS` says; every fifty begin with a new folder. A failure prints its
//! seed, and `PUNCTUAL_KILL_SEED` repeats its plan: which tasks, and after which line of output the kill comes. What the
//! machine does between two lines is its own affair.

mod checker;
mod child;
mod dice;
mod lines;
mod plan;
mod rounds;

/// Said to the process that is to be killed.
const CHILD: &str = "be-killed";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [CHILD, folder, life, seed] => child::live(folder.as_ref(), number(life), number(seed)),
        [CHILD, folder] => child::finish(folder.as_ref()),
        // Cargo hands its filters to every test.
        ref filters if !filters.is_empty() && !filters.iter().any(|filter| "kill".contains(filter)) => {}
        _ => rounds::run(setting("PUNCTUAL_KILL_ROUNDS", 50), setting("PUNCTUAL_KILL_SEED", 1)),
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| number(&text))
}
