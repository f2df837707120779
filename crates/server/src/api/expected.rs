//! `If-Match`: which version of something a request is meant for.

use http::{HeaderMap, header};

use super::failure::Failure;

/// What is expected of what is to be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Nothing.
    Anything,
    /// That it is there.
    Something,
    /// That it is of one of these versions.
    OneOf(Vec<u64>),
}

impl Expected {
    /// What a request says. `code` is that of whoever expects another version.
    pub fn read(headers: &HeaderMap, code: &'static str) -> Result<Expected, Failure> {
        let lines = headers.get_all(header::IF_MATCH).iter().map(|line| line.to_str().unwrap_or_default());
        let lines: Vec<&str> = lines.collect();
        if lines.is_empty() {
            return Ok(Expected::Anything);
        }
        let tags = || lines.iter().flat_map(|line| line.split(',')).map(str::trim);
        if tags().any(|tag| tag == "*") {
            return Ok(Expected::Something);
        }
        let versions: Vec<u64> = tags().filter_map(version).collect();
        if versions.is_empty() {
            let detail =
                format!("If-Match {}: is no ETag of ours: send the one you were given", lines.join(", "));
            return Err(Failure::new(code, detail));
        }
        Ok(Expected::OneOf(versions))
    }

    /// Whether something of this version may be changed; none is that of what is not there.
    pub fn allows(&self, version: Option<u64>) -> bool {
        match self {
            Expected::Anything => true,
            Expected::Something => version.is_some(),
            Expected::OneOf(versions) => version.is_some_and(|version| versions.contains(&version)),
        }
    }

    /// The revisions of a task that it may have, if not every one will do.
    pub fn revisions(&self) -> Option<Vec<u32>> {
        match self {
            Expected::Anything | Expected::Something => None,
            Expected::OneOf(versions) => {
                Some(versions.iter().filter_map(|version| u32::try_from(*version).ok()).collect())
            }
        }
    }
}

/// The version that a tag names. A weak one (`W/`) names none: what it stands for need not be the same.
fn version(tag: &str) -> Option<u64> {
    let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Expected, u16> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_MATCH, line.parse().expect("it can be sent"));
        }
        Expected::read(&headers, "task_changed").map_err(|failure| failure.0.status)
    }

    #[test]
    fn every_way_to_write_it_is_understood() {
        assert_eq!(read(&[]), Ok(Expected::Anything));
        for any in ["*", " * ", "\"1\", *"] {
            assert_eq!(read(&[any]), Ok(Expected::Something), "{any}");
        }
        for (lines, versions) in [
            (&["\"1\""][..], &[1][..]),
            (&["1"], &[1]),
            (&["\"1\",\"2\" , \"other\""], &[1, 2]),
            (&["\"1\"", "\"2\""], &[1, 2]),
            (&["W/\"1\", \"3\""], &[3]),
        ] {
            assert_eq!(read(lines), Ok(Expected::OneOf(versions.to_vec())), "{lines:?}");
        }
        for none in ["", "\"\"", "W/\"1\"", "\"x\"", "-1", "+1", "99999999999999999999"] {
            assert_eq!(read(&[none]), Err(412), "{none}");
        }
    }

    #[test]
    fn what_is_not_there_is_only_for_those_who_expect_nothing() {
        assert!(Expected::Anything.allows(None));
        assert!(!Expected::Something.allows(None) && Expected::Something.allows(Some(9)));
        let one_of = Expected::OneOf(vec![1, 2]);
        assert!(one_of.allows(Some(2)) && !one_of.allows(Some(3)) && !one_of.allows(None));
    }
}
