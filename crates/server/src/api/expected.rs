//! `If-Match` and `If-None-Match`: which version of something a request is meant for, and which it is not.

use http::{HeaderMap, HeaderName, header};

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
        let Some(tags) = tags(headers, header::IF_MATCH)? else { return Ok(Expected::Anything) };
        // What a weak one stands for need not be the same.
        let expected = Expected::of(tags.iter().filter(|tag| !tag.is_weak));
        if expected == Expected::OneOf(Vec::new()) {
            return Err(Failure::new(code, "If-Match has no ETag of ours: send the one you were given"));
        }
        Ok(expected)
    }

    fn of<'a>(tags: impl Iterator<Item = &'a Tag> + Clone) -> Expected {
        if tags.clone().any(|tag| tag.text.is_none()) {
            return Expected::Something;
        }
        Expected::OneOf(tags.filter_map(Tag::version).collect())
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

/// `If-None-Match`: what a request is not meant for.
pub struct Unless(Option<Expected>);

impl Unless {
    /// What a request says. Here a weak tag is as good as another.
    pub fn read(headers: &HeaderMap) -> Result<Unless, Failure> {
        let tags = tags(headers, header::IF_NONE_MATCH)?;
        Ok(Unless(tags.map(|tags| Expected::of(tags.iter()))))
    }

    /// Whether something of this version is named; none is that of what is not there.
    pub fn names(&self, version: Option<u64>) -> bool {
        self.0.as_ref().is_some_and(|named| named.allows(version))
    }
}

/// A tag as it was sent.
struct Tag {
    /// What stands between the quotes; nothing if it is `*`.
    text: Option<String>,
    is_weak: bool,
}

impl Tag {
    /// The version that it names, if it is one of ours.
    fn version(&self) -> Option<u64> {
        let text = self.text.as_deref()?;
        text.parse().ok().filter(|version: &u64| version.to_string() == text)
    }
}

/// The tags of all such headers, in order.
fn tags(headers: &HeaderMap, name: HeaderName) -> Result<Option<Vec<Tag>>, Failure> {
    let mut tags = Vec::new();
    for line in headers.get_all(&name) {
        let read = line.to_str().ok().and_then(tags_of).filter(|tags| !tags.is_empty());
        tags.extend(read.ok_or_else(|| {
            let detail = format!("{name}: an entity tag stands in quotes, as in \"1\", or is *");
            Failure::new("etag_invalid", detail)
        })?);
    }
    Ok((!tags.is_empty()).then_some(tags))
}

/// `"1", W/"2"`, or `*`.
fn tags_of(line: &str) -> Option<Vec<Tag>> {
    let mut tags = Vec::new();
    let mut rest = line.trim_start_matches(BETWEEN);
    while !rest.is_empty() {
        let (tag, after) = match rest.strip_prefix('*') {
            Some(after) => (Tag { text: None, is_weak: false }, after),
            None => quoted(rest)?,
        };
        tags.push(tag);
        let after = after.trim_start();
        if !after.is_empty() && !after.starts_with(',') {
            return None;
        }
        rest = after.trim_start_matches(BETWEEN);
    }
    Some(tags)
}

/// What may stand between two tags. Of commas there must be one, and there may be more.
const BETWEEN: [char; 3] = [',', ' ', '\t'];

/// The first tag, and what follows it.
fn quoted(text: &str) -> Option<(Tag, &str)> {
    let (is_weak, text) = match text.strip_prefix("W/") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (text, rest) = text.strip_prefix('"')?.split_once('"')?;
    if text.contains([' ', '\t']) {
        return None;
    }
    Some((Tag { text: Some(text.to_owned()), is_weak }, rest))
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

    fn names(lines: &[&str], version: Option<u64>) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_NONE_MATCH, line.parse().expect("it can be sent"));
        }
        Unless::read(&headers).expect("these are tags").names(version)
    }

    #[test]
    fn every_way_to_write_it_is_understood() {
        assert_eq!(read(&[]), Ok(Expected::Anything));
        for any in ["*", " * ", "\"1\", *"] {
            assert_eq!(read(&[any]), Ok(Expected::Something), "{any}");
        }
        for (lines, versions) in [
            (&["\"1\""][..], &[1][..]),
            (&["\"1\",\"2\" , \"other\""], &[1, 2]),
            (&[", \"a,b\",, \"2\""], &[2]),
            (&["\"1\"", "\"2\""], &[1, 2]),
            (&["W/\"1\", \"3\""], &[3]),
        ] {
            assert_eq!(read(lines), Ok(Expected::OneOf(versions.to_vec())), "{lines:?}");
        }
        for none in ["\"\"", "\"*\"", "W/\"1\"", "\"x\"", "\"+1\"", "\"01\"", "\"99999999999999999999\""] {
            assert_eq!(read(&[none]), Err(412), "{none}");
        }
        for wrong in
            ["", "1", "-1", "\"1", "1\"", "\"1\" \"2\"", "\"1\"2", "w/\"1\"", "\"1\", 2", "\"a b\"", "**"]
        {
            assert_eq!(read(&[wrong]), Err(400), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_meant_is_named_by_any_of_its_tags() {
        for (lines, is_named) in [
            (&[][..], false),
            (&["\"1\""], true),
            (&["W/\"1\""], true),
            (&["\"2\", \"1\""], true),
            (&["\"2\"", "\"1\""], true),
            (&["*"], true),
            (&["\"2\", \"x\""], false),
        ] {
            assert_eq!(names(lines, Some(1)), is_named, "{lines:?}");
            assert!(!names(lines, None), "{lines:?}: it is not there");
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
