//! Values that have bounds: the same for a file, an environment variable and a flag, so that each is checked where it
//! was written.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use punctual_client::wire::Span;
use punctual_server::units::{GIB, KIB, MIB};
use serde::de::{Deserializer, Error, Visitor};

/// A whole number within bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> FromStr for Count<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.replace('_', "").parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Count).ok_or_else(|| format!("must be a number from {MIN} to {MAX}"))
    }
}

/// A size in bytes, with its unit, within bounds that are given in KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size<const MIN_KIB: usize, const MAX_KIB: usize>(pub usize);

const SIZES: [(&str, usize); 4] = [("KiB", KIB), ("MiB", MIB), ("GiB", GIB), ("B", 1)];

impl<const MIN_KIB: usize, const MAX_KIB: usize> FromStr for Size<MIN_KIB, MAX_KIB> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let bytes = SIZES.iter().find_map(|(unit, bytes)| {
            let number = text.strip_suffix(unit)?.trim().replace('_', "");
            number.parse::<usize>().ok()?.checked_mul(*bytes)
        });
        let bytes = bytes.filter(|bytes| (MIN_KIB * KIB..=MAX_KIB * KIB).contains(bytes));
        let (min, max) = (written(MIN_KIB * KIB), written(MAX_KIB * KIB));
        bytes.map(Size).ok_or_else(|| format!("must be a size from {min} to {max}, such as 512KiB or 32MiB"))
    }
}

/// A size as people write it.
pub fn written(bytes: usize) -> String {
    let fitting = SIZES[..3].iter().rev().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fitting.map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// A length of time, with its unit, within bounds that are given in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Length<const MIN_MS: u64, const MAX_MS: u64>(pub Duration);

impl<const MIN_MS: u64, const MAX_MS: u64> FromStr for Length<MIN_MS, MAX_MS> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration: Duration = text.parse::<Span>().map_err(|problem| problem.to_string())?.into();
        let (min, max) = (Duration::from_millis(MIN_MS), Duration::from_millis(MAX_MS));
        if !(min..=max).contains(&duration) {
            let (min, max) = (super::words::length(min), super::words::length(max));
            return Err(format!("must be a length of time from {min} to {max}"));
        }
        Ok(Length(duration))
    }
}

/// Where a server listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address(pub SocketAddr);

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, &'static str> {
        let said = "must be an address and a port, such as 127.0.0.1:8700 or [::1]:8700";
        text.parse().map(Address).map_err(|_| said)
    }
}

/// Where a collector of spans listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint(pub String);

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Endpoint, &'static str> {
        let is_good = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.query().is_none();
        let url = text.parse::<url::Url>().ok().filter(is_good);
        url.map(|_| Endpoint(text.into())).ok_or("must be a URL, such as http://127.0.0.1:4318")
    }
}

/// A network that may be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network(pub IpNet);

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Network, &'static str> {
        text.parse().map(Network).map_err(|_| "must be a network, such as 10.0.0.0/8 or fd00::/8")
    }
}

/// A port that may be called, or any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortRule {
    One(u16),
    Any,
}

impl FromStr for PortRule {
    type Err = String;

    fn from_str(text: &str) -> Result<PortRule, String> {
        match (text, text.parse()) {
            ("any", _) => Ok(PortRule::Any),
            (_, Ok(port)) if port > 0 => Ok(PortRule::One(port)),
            _ => Err("a port is a number from 1 to 65535, or `any`".into()),
        }
    }
}

/// Text or a number of a file, read as the same text of a flag would be.
pub fn value<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let Word(word) = serde::Deserialize::deserialize(deserializer)?;
    word.parse().map(Some).map_err(D::Error::custom)
}

/// Several of them.
pub fn values<'de, T, D>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let words: Vec<Parsed<T>> = serde::Deserialize::deserialize(deserializer)?;
    Ok(Some(words.into_iter().map(|Parsed(value)| value).collect()))
}

/// A path that is not empty.
pub fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path: PathBuf = serde::Deserialize::deserialize(deserializer)?;
    if path.as_os_str().is_empty() {
        return Err(D::Error::custom("is empty: name a file or a folder"));
    }
    Ok(Some(path))
}

struct Parsed<T>(T);

impl<'de, T: FromStr<Err: fmt::Display>> serde::Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Word(word) = Word::deserialize(deserializer)?;
        word.parse().map(Parsed).map_err(|error| D::Error::custom(format!("{word:?}: {error}")))
    }
}

/// Text, or a number as text.
struct Word(String);

impl<'de> serde::Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        deserializer.deserialize_any(WordVisitor)
    }
}

struct WordVisitor;

impl Visitor<'_> for WordVisitor {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word, E> {
        Ok(Word(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Word, E> {
        Ok(Word(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Word, E> {
        Ok(Word(number.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_bounds() {
        type Any = Size<1, 1_048_576>;
        for (text, bytes) in [("1KiB", 1024), ("2048B", 2048), ("32 MiB", 32 << 20), ("1GiB", 1 << 30)] {
            assert_eq!(text.parse(), Ok(Size::<1, 1_048_576>(bytes)));
        }
        for text in ["", "32", "32MB", "0KiB", "2GiB", "-1KiB", "99999999999999999999GiB", "KiB"] {
            let error = text.parse::<Any>().unwrap_err();
            assert_eq!(error, "must be a size from 1KiB to 1GiB, such as 512KiB or 32MiB", "{text}");
        }
        assert_eq!((written(1500), written(1536 * 1024)), ("1500B".into(), "1536KiB".into()));
    }

    #[test]
    fn counts_and_lengths_have_bounds() {
        assert_eq!("1_000".parse(), Ok(Count::<1, 1_000>(1_000)));
        assert_eq!("1001".parse::<Count<1, 1_000>>().unwrap_err(), "must be a number from 1 to 1000");
        assert_eq!("2s".parse(), Ok(Length::<1_000, 60_000>(Duration::from_secs(2))));
        let error = "2h".parse::<Length<1_000, 60_000>>().unwrap_err();
        assert_eq!(error, "must be a length of time from 1s to 1m");
        assert!("2".parse::<Length<1_000, 60_000>>().is_err(), "a number without a unit could be anything");
    }
}
