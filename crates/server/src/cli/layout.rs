//! JSON laid out for people, token by token: it is never read and written again, so that no number loses a digit, no
//! field its place, and nothing that is kept is too odd to be shown.

use punctual_client::wire::Json;

/// What is nested more deeply stays on its line: indenting it would fill the screen with blanks, and then the memory.
const INDENTED_MAX: usize = 32;

/// On many lines, as people write it.
pub fn indented(json: &Json) -> String {
    laid_out(json.text(), INDENTED_MAX)
}

/// On one line; a text without its quotes, if it is one that can be written down.
pub fn on_one_line(json: &Json) -> String {
    json.read::<String>().unwrap_or_else(|_| laid_out(json.text(), 0))
}

/// JSON without its blanks, and with new ones down to that depth. It must be JSON.
fn laid_out(json: &str, depth_max: usize) -> String {
    let (mut out, mut depth) = (String::with_capacity(json.len()), 0);
    let mut rest = json.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(token_bytes(rest));
        rest = after.trim_start();
        let is_indented = (1..=depth_max).contains(&depth);
        match first {
            '{' | '[' => {
                out.push_str(token);
                depth += 1;
                if !rest.starts_with(['}', ']']) && depth <= depth_max {
                    begin_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                if is_indented && !out.ends_with(['{', '[']) {
                    begin_line(&mut out, depth);
                }
                out.push_str(token);
            }
            ',' if is_indented => {
                out.push_str(token);
                begin_line(&mut out, depth);
            }
            ':' if is_indented => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    out
}

/// How many bytes the first token has: a bracket, a comma, a colon, a text, or a word such as a number.
fn token_bytes(json: &str) -> usize {
    let mut is_escaped = false;
    let ends_text = |letter: char| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    };
    let ends_word = |letter: char| letter.is_ascii_whitespace() || "{}[],:\"".contains(letter);
    match json.as_bytes() {
        [b'"', ..] => json[1..].find(ends_text).map_or(json.len(), |end| end + 2),
        [b'{' | b'}' | b'[' | b']' | b',' | b':', ..] => 1,
        _ => json.find(ends_word).unwrap_or(json.len()),
    }
}

fn begin_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::from_text(text).unwrap()
    }

    #[test]
    fn what_serde_can_read_looks_as_serde_writes_it() {
        for text in [
            r#"{"a":[1,2,{"b":null}],"c":{},"d":[],"e":"x, y: {\"z\\\"} []"}"#,
            "[[],[[]],{\"a\":{}}]",
            " { \"a\" : [ ] , \"b\" : [ 1 , -2.5 ] } ",
            "\"é\\\\\"",
            "true",
            "[{},{}]",
        ] {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(indented(&json(text)), serde_json::to_string_pretty(&value).unwrap());
            if !value.is_string() {
                assert_eq!(on_one_line(&json(text)), value.to_string());
            }
        }
    }

    #[test]
    fn nothing_is_lost() {
        for text in ["1e999", "12345678901234567890123", r#"{"a":1,"a":2}"#, r#""\ud800""#, r#"["\ud800"]"#] {
            assert_eq!(on_one_line(&json(text)), text);
            assert_eq!(indented(&json(text)).replace(['\n', ' '], ""), text);
        }
        assert_eq!(on_one_line(&json(r#""a\n\u00e9""#)), "a\né");
    }

    #[test]
    fn what_is_deep_does_not_grow() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(on_one_line(&json(&deep)), deep);
        let shown = indented(&json(&deep));
        assert_eq!(shown.replace(['\n', ' '], ""), deep);
        assert!(shown.len() < deep.len() + 4_000, "{}", shown.len());
    }
}
