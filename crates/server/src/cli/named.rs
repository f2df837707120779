//! Ids and names as they are typed: an empty one is a shell's variable that is not set, and finds something else than what
//! was meant, or nothing.

/// An id or a name that is not empty.
pub fn named(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("it is empty: is a variable of your shell not set?"),
        name => Ok(name.to_owned()),
    }
}
