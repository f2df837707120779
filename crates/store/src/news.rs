//! Which facts are old news: drivers share the rule, so that all of them shrug at the same repeats.

use punctual_core::Task;

/// Whether the row does not know yet that attempt number `attempts` began. A row that names the same number
/// and no attempt that runs has seen it end; one that runs may be told again, with a lease.
pub(crate) fn attempt_is_news(row: &Task, attempts: u32) -> bool {
    attempts > row.attempts || (attempts == row.attempts && row.begun.is_some())
}
