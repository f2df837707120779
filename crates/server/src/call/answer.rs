//! What is kept of an answer: so much and no more, and in words if it went wrong.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Serialize;

/// What is kept of an error, in bytes.
const ERROR_MAX: usize = 64 * 1024;
/// What is shown of where a redirect points to.
const LOCATION_MAX: usize = 200;

/// An answer, as far as it was read.
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Vec<u8>,
    truncated: bool,
}

/// What a task keeps of an answer that means success.
#[derive(Serialize)]
struct Kept<'a> {
    status: u16,
    content_type: Option<&'a str>,
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Answer {
    /// Reads up to `body_max` bytes. If there is more, the connection is dropped with it: reading to the end of what
    /// nobody wants may take for ever.
    pub async fn read(response: Response<Incoming>, body_max: usize) -> Result<Answer, hyper::Error> {
        let (parts, mut incoming) = response.into_parts();
        let (mut body, mut truncated) = (Vec::new(), false);
        while let Some(frame) = incoming.frame().await {
            let Ok(piece) = frame?.into_data() else { continue };
            let room = body_max - body.len();
            truncated = piece.len() > room;
            body.extend_from_slice(&piece[..piece.len().min(room)]);
            if truncated {
                break;
            }
        }
        Ok(Answer { status: parts.status, headers: parts.headers, body, truncated })
    }

    /// What the task keeps. If that is more than `result_max`, the body is left out: a success must not become a
    /// failure because somebody said too much.
    pub fn result(&self, result_max: usize) -> Bytes {
        let content_type = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let text = self.text().filter(|text| !text.is_empty());
        // A text of control characters is six times as long in JSON; as bytes it is not.
        let text = text.filter(|text| escapes(text) <= self.body.len() / 4 + 64);
        let body_base64 = (text.is_none() && !self.body.is_empty()).then(|| STANDARD.encode(&self.body));
        let status = self.status.as_u16();
        let kept = Kept { status, content_type, body: text, body_base64, truncated: self.truncated };
        let written = json(&kept);
        if written.len() <= result_max {
            return written;
        }
        json(&Kept { content_type: None, body: None, body_base64: None, truncated: true, ..kept })
    }

    /// What went wrong, for people.
    pub fn error(&self, host: impl std::fmt::Display) -> String {
        let mut text = format!("HTTP {} from {host}", self.status.as_u16());
        let location = self.headers.get(header::LOCATION).filter(|_| self.status.is_redirection());
        if let Some(location) = location {
            let location = String::from_utf8_lossy(location.as_bytes());
            let shown = &location[..location.floor_char_boundary(LOCATION_MAX)];
            text.push_str(&format!(": it points to {shown}, and redirects are not followed"));
        } else if !self.body.is_empty() {
            text.push_str(": ");
            match self.text() {
                Some(body) => text.extend(body.trim().chars().filter(is_readable)),
                None => text.push_str(&format!("({} bytes that are not text)", self.body.len())),
            }
        }
        text.truncate(text.floor_char_boundary(ERROR_MAX));
        text
    }

    /// The body, if it is text. A character that was cut in two is no reason to think it is not.
    fn text(&self) -> Option<&str> {
        match std::str::from_utf8(&self.body) {
            Ok(text) => Some(text),
            Err(error) if self.truncated && error.error_len().is_none() => {
                std::str::from_utf8(&self.body[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        }
    }
}

fn is_readable(letter: &char) -> bool {
    !letter.is_control() || *letter == '\n' || *letter == '\t'
}

/// How many letters JSON would have to escape at length.
fn escapes(text: &str) -> usize {
    text.bytes().filter(|byte| *byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t')).count()
}

fn json(kept: &Kept<'_>) -> Bytes {
    serde_json::to_vec(kept).expect("plain fields can always be written").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, body: &[u8]) -> Answer {
        let status = StatusCode::from_u16(code).unwrap();
        Answer { status, headers: HeaderMap::new(), body: body.to_vec(), truncated: false }
    }

    fn result(answer: &Answer) -> String {
        String::from_utf8(answer.result(1_000_000).to_vec()).unwrap()
    }

    #[test]
    fn text_is_kept_as_text_and_bytes_as_base64() {
        let mut text = answer(200, b"{\"ok\": true}");
        text.headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        let kept = r#"{"status":200,"content_type":"application/json","body":"{\"ok\": true}"}"#;
        assert_eq!(result(&text), kept);
        assert_eq!(result(&answer(204, b"")), r#"{"status":204,"content_type":null,"body":null}"#);
        let bytes = r#"{"status":200,"content_type":null,"body":null,"body_base64":"/wA="}"#;
        assert_eq!(result(&answer(200, b"\xff\0")), bytes);
    }

    #[test]
    fn a_cut_body_says_so_and_ends_with_a_whole_letter() {
        let cut = Answer { truncated: true, ..answer(200, &"aé".as_bytes()[..2]) };
        let kept = r#"{"status":200,"content_type":null,"body":"a","truncated":true}"#;
        assert_eq!(result(&cut), kept);
    }

    #[test]
    fn a_result_is_never_larger_than_may_be_kept() {
        for body in [vec![0u8; 65_536], vec![b'"'; 65_536], vec![0xff; 65_536], vec![b'x'; 65_536]] {
            assert!(answer(200, &body).result(256 * 1024).len() < 140 * 1024);
        }
        let short = answer(200, &[b'x'; 65_536]).result(1_000);
        assert_eq!(short, r#"{"status":200,"content_type":null,"body":null,"truncated":true}"#);
    }

    #[test]
    fn an_error_reads_well() {
        assert_eq!(answer(500, b"").error("a.example"), "HTTP 500 from a.example");
        assert_eq!(
            answer(500, b" no\x1b[31m room\n").error("a.example"),
            "HTTP 500 from a.example: no[31m room"
        );
        assert_eq!(
            answer(400, b"\xff\xfe").error("a.example"),
            "HTTP 400 from a.example: (2 bytes that are not text)"
        );
        let mut redirect = answer(302, b"<html>");
        redirect.headers.insert(header::LOCATION, "https://b.example/".parse().unwrap());
        assert_eq!(
            redirect.error("a.example"),
            "HTTP 302 from a.example: it points to https://b.example/, and redirects are not followed"
        );
        assert!(answer(500, "é".repeat(40_000).as_bytes()).error("a").len() <= ERROR_MAX);
    }
}
