//! What the API calls a field is a flag here: whoever is refused hears of what was typed.

/// Fields of the API, and the flags that set them.
const FLAGS: &[(&str, &str)] = &[
    ("at", "--at"),
    ("callback", "--callback"),
    ("concurrency", "--concurrency"),
    ("delay", "--delay"),
    ("events", "--event"),
    ("exclusive", "--exclusive"),
    ("expires_at", "--expires-at"),
    ("handler", "--handler"),
    ("http", "--url"),
    ("http.body", "--body"),
    ("http.headers", "--header"),
    ("http.method", "--method"),
    ("http.url", "--url"),
    ("idempotency_key", "--idempotency-key"),
    ("lane", "--lane"),
    ("lateness_over", "--lateness-over"),
    ("name", "--name"),
    ("namespace", "--namespace"),
    ("on_conflict", "--on-conflict"),
    ("on_exhausted", "--on-exhausted"),
    ("overlap", "--overlap"),
    ("past", "--past"),
    ("payload", "--payload"),
    ("pinned", "--pinned"),
    ("priority", "--priority"),
    ("rate.burst", "--burst"),
    ("rate.per", "--rate"),
    ("rate.starts", "--rate"),
    ("requests_per_second", "--requests-per-second"),
    ("retention.bytes", "--keep-bytes"),
    ("retention.dead", "--keep-dead"),
    ("retention.identities", "--keep-keys"),
    ("retention.succeeded", "--keep-ended"),
    ("retry", "--retry"),
    ("scopes", "--scope"),
    ("secret", "--secret"),
    ("secrets", "--secret"),
    ("start_by", "--start-by"),
    ("success.codes", "--success"),
    ("success.give_up", "--give-up"),
    ("target.http", "--target"),
    ("timeout", "--timeout"),
    ("unique_key", "--unique-key"),
    ("url", "--url"),
];

/// What the API's texts tell others to do, and how it is done here.
const DEEDS: &[(&str, &str)] =
    &[("`:run`", "`punctual task run`"), ("`past = run_now`", "`punctual queue set QUEUE --past run_now`")];

/// The flag that sets a field, or the field if there is none.
pub fn flag_of(field: &str) -> &str {
    // One of many, as in `scopes[1]`, is set by the same flag.
    let name = field.split('[').next().unwrap_or(field);
    FLAGS.iter().find(|(known, _)| *known == name).map_or(field, |(_, flag)| flag)
}

/// A text of the API as it is said here.
pub fn said_here(text: &str) -> String {
    let field = text.split([' ', ':']).next().unwrap_or_default();
    // A text that begins with a name is not always about a field of that name.
    let is_about = text[field.len()..].starts_with(": ") || text[field.len()..].starts_with(" must");
    let text = match is_about {
        true => format!("{}{}", flag_of(field), &text[field.len()..]),
        false => text.to_owned(),
    };
    DEEDS.iter().fold(text, |text, (there, here)| text.replace(there, here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_what_was_typed() {
        for (there, here) in [
            ("concurrency must not be zero", "--concurrency must not be zero"),
            ("scopes[1]: unknown", "--scope: unknown"),
            ("to make it due now, use `:run`", "to make it due now, use `punctual task run`"),
            ("name of nobody", "name of nobody"),
            ("token: is none of ours", "token: is none of ours"),
            ("", ""),
        ] {
            assert_eq!(said_here(there), here);
        }
    }
}
