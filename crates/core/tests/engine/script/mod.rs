//! Scripts in, transcripts out: what happens to a node, line by line, and what it does about it.
//!
//! ```text
//! queue mail running_max=2 rate=10/1 retry=10,20 attempts=3 paused exclusive pinned dead_letter run_now
//! limits window_max=16 …     receivers h g     nodes 2     partitions 2
//! show loads|parks|holds|accepts|marks|begins       watch rent job*       auto succeed job* after=0.5
//! 0  accept rent bill [queue=] [lane=] [due=] [step=] [key=] [name=] [priority=] [start_by=] [expires=] [conflict=]
//!                     [timeout=] [retry=10,20|none] [attempts=] [handler=|destination=|worker] [partition=]
//! 0  accept job*1000 lane=l*                       (job1 … job1000, with l1 … l1000 as their lanes)
//! 0  succeed|fail|give_up|interrupt|no_receiver rent [#1] [retry_after=]     touch rent for=30
//! 0  cancel|move|change|run|retry|expire rent [to=] [payload=] [if_revision=] [via=node]     reserve mail 3
//! 0  pause|resume mail      tick      step_clock -60      trust until=10      tear after=3
//! 0  hand_over [to=b]       take_over [by=b]      reload      crash      [partition=]
//! 0  fill_store|empty_store
//! 0  hold_store|hold_answers|let_store [loads|parked|finds|records]…
//! 0  assert loaded|started|ended|running|wakes|loads|finds|records|deferrals|panics <= 40
//! ```
//!
//! Only this module knows the API. Times are seconds since the script began; between two lines the node is woken
//! whenever it asks to be. Every run is also held to the promises in `promises.rs`, whatever its transcript says.

mod accept;
mod chance;
mod ownership;
mod promises;
mod settings;
mod shell;
mod transcript;
mod verbs;
mod words;
mod world;

pub use world::World;

/// Runs a script, and compares its transcript with what is expected.
pub fn check(script: &str, expected: &str) {
    let got = World::run(script).transcript();
    let expected = tidy(expected);
    assert!(got == expected, "\n=== expected\n{expected}=== got\n{got}");
}

fn tidy(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}
