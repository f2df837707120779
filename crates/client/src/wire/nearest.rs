//! Says what may have been meant by a word that does not exist.

use std::fmt;

/// A word longer than this is nobody's slip of the finger, and comparing takes time.
const WORD_MAX: usize = 64;

/// The known word that is most like the unknown one, if one is like it at all.
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if unknown.len() > WORD_MAX {
        return None;
    }
    let unknown = unknown.to_lowercase();
    // A third of the letters may be wrong; a swap of two neighbours is one mistake.
    let mistakes_max = unknown.chars().count().max(3) / 3;
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&unknown, &word.to_lowercase()), word))
        .filter(|(mistakes, _)| *mistakes <= mistakes_max)
        .min_by_key(|(mistakes, _)| *mistakes)
        .map(|(_, word)| word)
}

/// A field that nobody knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownField {
    /// Its name, as it was written.
    pub field: String,
    /// The field that may have been meant.
    pub nearest: Option<String>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field: String = self.field.chars().take(WORD_MAX).collect();
        write!(f, "unknown field {field:?}")?;
        match &self.nearest {
            Some(nearest) => write!(f, ", did you mean {nearest:?}?"),
            None => Ok(()),
        }
    }
}

/// The field, if an error of serde complains about one that it does not know.
///
/// Serde has no other way to tell than its message: ``unknown field `dealy`, expected one of `at`, `delay` ``.
pub fn unknown_field(error: &impl fmt::Display) -> Option<UnknownField> {
    let message = error.to_string();
    let (_, rest) = message.split_once("unknown field `")?;
    // The last such words are serde's own: the name before them may hold anything.
    let (field, expected) = match rest.rsplit_once("`, expected ") {
        Some(parts) => parts,
        None => (rest.rsplit_once("`, there are no fields")?.0, ""),
    };
    let known = expected.split('`').skip(1).step_by(2);
    Some(UnknownField { field: field.to_owned(), nearest: nearest(field, known).map(str::to_owned) })
}
