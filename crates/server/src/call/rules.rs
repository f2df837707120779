//! What an answer means: done, try again, or give up.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};

use super::sign::Secret;

/// A target may not put us off for longer.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// What a queue says about its calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueRules {
    /// The queue's name, which the called server is told.
    pub queue: Arc<str>,
    /// Which answers mean what.
    pub success: Success,
    /// What calls are signed with, the newest first.
    pub secrets: Vec<Secret>,
}

/// Which answers mean what. This is the queue's field `success`, in JSON as here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Success {
    /// It is done. These win where others name the same code.
    pub codes: Codes,
    /// It will never be done.
    pub give_up: Codes,
    /// When 409 means that it was done before.
    pub conflict: Conflict,
}

impl Default for Success {
    fn default() -> Success {
        Success {
            codes: Codes(vec![Code { first: 200, last: 299 }]),
            give_up: Codes(vec![Code { first: 410, last: 410 }]),
            conflict: Conflict::default(),
        }
    }
}

/// When 409 means that it was done before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conflict {
    /// When it may have been called before.
    #[default]
    Repeated,
    /// Always.
    Always,
    /// Never: 409 is an answer like any other.
    Never,
}

/// A set of status codes, written as `"204"` or `"2xx"`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Codes(Vec<Code>);

/// One code, or a hundred of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Code {
    first: u16,
    last: u16,
}

/// The text is not a status code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadCode(String);

impl fmt::Display for BadCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a status code: write it like 204, or like 2xx for all from 200 to 299", self.0)
    }
}

impl std::error::Error for BadCode {}

impl Codes {
    /// Whether this code is among them.
    pub fn contain(&self, code: u16) -> bool {
        self.0.iter().any(|codes| (codes.first..=codes.last).contains(&code))
    }

    /// The set of these codes.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Codes, BadCode> {
        let parse = |text: &T| parse_code(text.as_ref()).ok_or_else(|| BadCode(text.as_ref().to_string()));
        Ok(Codes(texts.iter().map(parse).collect::<Result<_, _>>()?))
    }
}

fn parse_code(text: &str) -> Option<Code> {
    let (digits, width) = match text.strip_suffix("xx") {
        Some(digits) => (digits, 100),
        None => (text, 1),
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && text.len() == 3;
    let first = is_plain.then(|| digits.parse::<u16>().ok()).flatten()? * width;
    (100..=599).contains(&first).then_some(Code { first, last: first + width - 1 })
}

impl TryFrom<Vec<String>> for Codes {
    type Error = BadCode;

    fn try_from(texts: Vec<String>) -> Result<Codes, BadCode> {
        Codes::parse(&texts)
    }
}

impl From<Codes> for Vec<String> {
    fn from(codes: Codes) -> Vec<String> {
        let text = |code: Code| match code.first == code.last {
            true => code.first.to_string(),
            false => format!("{}xx", code.first / 100),
        };
        codes.0.into_iter().map(text).collect()
    }
}

/// What an answer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is done.
    Done,
    /// Try again, but not before that long.
    Retry(Option<Duration>),
    /// Never try again.
    GiveUp,
}

impl Success {
    /// What this answer means. `repeated`: it may have been called before, because this is not the first attempt, or
    /// because it was due before this process began, and that one may have died in the middle of it.
    pub fn judge(&self, status: StatusCode, headers: &HeaderMap, repeated: bool, now: SystemTime) -> Verdict {
        let code = status.as_u16();
        let done_before = match self.conflict {
            Conflict::Repeated => repeated,
            Conflict::Always => true,
            Conflict::Never => false,
        };
        if self.codes.contain(code) || (status == StatusCode::CONFLICT && done_before) {
            Verdict::Done
        } else if self.give_up.contain(code) {
            Verdict::GiveUp
        } else if status.is_redirection() {
            // What it says about waiting is about the place it points to, where we do not go.
            Verdict::Retry(None)
        } else {
            Verdict::Retry(retry_after(headers, now))
        }
    }
}

/// What `Retry-After` asks for: seconds, or a date. What cannot be read, or has passed, asks for nothing.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only too many digits are left to fail, and they mean for ever.
        text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).ok()?
    };
    Some(wait.min(RETRY_AFTER_MAX)).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-16T08:00:00Z.
    const NOW: Duration = Duration::from_secs(1_794_816_000);

    fn judge(success: &Success, code: u16, repeated: bool) -> Verdict {
        let status = StatusCode::from_u16(code).unwrap();
        success.judge(status, &HeaderMap::new(), repeated, SystemTime::UNIX_EPOCH + NOW)
    }

    fn told(code: u16, wait: &str) -> Verdict {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, wait.parse().unwrap());
        let status = StatusCode::from_u16(code).unwrap();
        Success::default().judge(status, &headers, false, SystemTime::UNIX_EPOCH + NOW)
    }

    #[test]
    fn every_code_has_one_meaning() {
        let success = Success::default();
        for code in 100..=999 {
            let expected = match code {
                200..=299 => Verdict::Done,
                410 => Verdict::GiveUp,
                _ => Verdict::Retry(None),
            };
            assert_eq!(judge(&success, code, false), expected, "{code}");
        }
    }

    #[test]
    fn a_conflict_means_done_when_it_may_have_been_called_before() {
        let judged = |conflict| {
            let success = Success { conflict, ..Success::default() };
            [false, true].map(|repeated| judge(&success, 409, repeated))
        };
        assert_eq!(judged(Conflict::Repeated), [Verdict::Retry(None), Verdict::Done]);
        assert_eq!(judged(Conflict::Always), [Verdict::Done, Verdict::Done]);
        assert_eq!(judged(Conflict::Never), [Verdict::Retry(None), Verdict::Retry(None)]);
    }

    #[test]
    fn a_queue_can_say_which_codes_mean_what() {
        let json = r#"{"codes": ["200", "3xx"], "give_up": ["4xx"], "conflict": "never"}"#;
        let success: Success = serde_json::from_str(json).unwrap();
        assert_eq!(judge(&success, 200, false), Verdict::Done);
        assert_eq!(judge(&success, 204, false), Verdict::Retry(None));
        assert_eq!(judge(&success, 302, false), Verdict::Done);
        assert_eq!(judge(&success, 409, true), Verdict::GiveUp);
        assert_eq!(judge(&success, 500, true), Verdict::Retry(None));
        let again: Success = serde_json::from_str(&serde_json::to_string(&success).unwrap()).unwrap();
        assert_eq!(again, success);
        let partial: Success = serde_json::from_str(r#"{"give_up": ["400"]}"#).unwrap();
        assert_eq!(partial.codes, Success::default().codes);
    }

    #[test]
    fn what_is_not_a_code_is_refused_by_name() {
        for bad in ["", "2", "20x", "xx", "0xx", "6xx", "099", "600", "+20", "2xxx", "12xx", "2XX", "é0"] {
            let error = Codes::parse(&[bad]).unwrap_err();
            assert!(error.to_string().contains(&format!("`{bad}`")), "{bad}: {error}");
        }
    }

    #[test]
    fn a_wait_is_obeyed_for_a_day_at_most() {
        let minute = Verdict::Retry(Some(Duration::from_secs(60)));
        assert_eq!(told(429, "60"), minute);
        assert_eq!(told(503, " 60 "), minute);
        assert_eq!(told(503, "Mon, 16 Nov 2026 08:01:00 GMT"), minute);
        assert_eq!(told(503, "Monday, 16-Nov-26 08:01:00 GMT"), minute);
        assert_eq!(told(503, "Mon Nov 16 08:01:00 2026"), minute);
        let day = Verdict::Retry(Some(RETRY_AFTER_MAX));
        for long in ["86400", "86401", "99999999999999999999999999", "Mon, 16 Nov 2099 08:01:00 GMT"] {
            assert_eq!(told(429, long), day, "{long}");
        }
    }

    #[test]
    fn a_wait_that_says_nothing_is_no_wait() {
        for nothing in ["", "0", "-5", "+5", "1.5", "soon", "Mon, 16 Nov 2026 07:59:00 GMT", "60, 120"] {
            assert_eq!(told(429, nothing), Verdict::Retry(None), "{nothing}");
        }
        assert_eq!(told(302, "60"), Verdict::Retry(None));
        assert_eq!(told(410, "60"), Verdict::GiveUp);
        assert_eq!(told(200, "60"), Verdict::Done);
    }
}
