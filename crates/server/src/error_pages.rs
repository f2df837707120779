//! A page for each code: what it means, and what to do.

/// The page of a code.
pub fn of(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

macro_rules! pages {
    ($($code:literal),* $(,)?) => {
        &[$(($code, include_str!(concat!("../../../docs/errors/", $code, ".md")))),*]
    };
}

const PAGES: &[(&str, &str)] = pages![
    "backup_failed",
    "body_invalid",
    "body_too_large",
    "body_too_slow",
    "call_invalid",
    "clock_not_virtual",
    "connections_full",
    "cursor_invalid",
    "etag_invalid",
    "expires_before_due",
    "field_invalid",
    "head_too_large",
    "host_foreign",
    "idempotency_key_in_use",
    "idempotency_key_invalid",
    "idempotency_key_reused",
    "key_invalid",
    "key_missing",
    "key_needed",
    "key_not_found",
    "lane_not_blocked",
    "media_type_unknown",
    "method_not_allowed",
    "name_empty",
    "name_too_long",
    "namespace_invalid",
    "not_found",
    "not_owner",
    "not_ready",
    "notification_not_found",
    "origin_foreign",
    "outcome_unknown",
    "overloaded",
    "payload_invalid",
    "payload_too_large",
    "priority_with_lane",
    "query_invalid",
    "queue_changed",
    "queue_exists",
    "queue_in_use",
    "queue_name_invalid",
    "queue_not_empty",
    "queue_not_found",
    "rate_limited",
    "scope_missing",
    "setting_invalid",
    "stopped",
    "store_failed",
    "store_full",
    "task_changed",
    "task_due_in_past",
    "task_ended",
    "task_exists",
    "task_id_invalid",
    "task_not_failed",
    "task_not_found",
    "task_running",
    "time_out_of_range",
    "token_late",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let codes: Vec<&str> = crate::api::codes().collect();
        let pages: Vec<&str> = PAGES.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, pages);
        for (code, page) in PAGES {
            assert!(page.contains(&format!("`{code}`")), "the page of {code} names it");
        }
    }
}
