//! Pages of what is listed by its name: queues, keys, notifications.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use punctual_client::wire;

use super::failure::Failure;
use super::list::{cursor_invalid, page_limit};

/// What is listed: the cursor of one list means nothing in another. No cursor of a list of tasks begins like one of these.
#[derive(Clone, Copy)]
pub enum Named {
    Queues = b'q' as isize,
    Keys = b'k' as isize,
    Notifications = b'n' as isize,
}

impl Named {
    /// One page of all there are, which are sorted by name, and the cursor of the next page.
    pub fn page<'a, T>(
        self,
        all: &'a [T],
        name: impl Fn(&T) -> &str,
        query: &wire::PageQuery,
    ) -> Result<(&'a [T], Option<String>), Failure> {
        let limit = page_limit(query.limit)?;
        let from = match &query.cursor {
            None => 0,
            Some(cursor) => {
                let last = self.read(cursor).ok_or_else(cursor_invalid)?;
                all.partition_point(|one| *name(one) <= *last)
            }
        };
        let until = all.len().min(from + limit);
        let next = (until < all.len()).then(|| self.cursor(name(&all[until - 1])));
        Ok((&all[from..until], next))
    }

    /// After the one of this name.
    fn cursor(self, name: &str) -> String {
        URL_SAFE_NO_PAD.encode([&[self as u8], name.as_bytes()].concat())
    }

    fn read(self, cursor: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let name = bytes.strip_prefix(&[self as u8])?;
        String::from_utf8(name.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(limit: u32, cursor: Option<String>) -> wire::PageQuery {
        wire::PageQuery { limit: Some(limit), cursor }
    }

    #[test]
    fn pages_follow_each_other_whatever_comes_and_goes() {
        let all: Vec<String> = ["a", "b", "ä b", "ü"].map(String::from).into();
        let (first, next) = Named::Queues.page(&all, |name| name, &query(3, None)).unwrap();
        assert_eq!(first, &all[..3]);
        let (second, none) = Named::Queues.page(&all, |name| name, &query(1, next.clone())).unwrap();
        assert_eq!((second, none), (&all[3..], None));
        let fewer: Vec<String> = ["a", "ü"].map(String::from).into();
        let (second, none) = Named::Queues.page(&fewer, |name| name, &query(3, next)).unwrap();
        assert_eq!((second, none), (&fewer[1..], None));
        assert_eq!(Named::Queues.page(&[], |name: &String| name, &query(1, None)).unwrap(), (&[][..], None));
    }

    #[test]
    fn the_cursor_of_another_list_is_refused() {
        let all: Vec<String> = ["a", "b"].map(String::from).into();
        let (_, next) = Named::Keys.page(&all, |name| name, &query(1, None)).unwrap();
        for cursor in [next.unwrap(), "a".into(), String::new(), "AA".into()] {
            let refused = Named::Queues.page(&all, |name| name, &query(1, Some(cursor))).unwrap_err();
            assert_eq!(refused.0.code, "cursor_invalid");
        }
    }
}
