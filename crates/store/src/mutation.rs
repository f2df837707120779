//! Bytes that were right and are so no longer: where tests of decoders begin, because random bytes do not get far.

use crate::dice::Dice;

/// So many rounds, or as many times that as `PUNCTUAL_FUZZ_TIMES` says; each with chances of its own.
pub fn rounds(rounds: u64) -> impl Iterator<Item = Dice> {
    let times = std::env::var("PUNCTUAL_FUZZ_TIMES").map_or(1, |times| times.parse().expect("a number"));
    (0..rounds * times).map(|seed| Dice::new(seed << 8))
}

/// Spoils bytes in one to three places, in one of the ways in which disks and programs do. `other` is what else lies
/// about.
pub fn spoil(dice: &mut Dice, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut spoiled = bytes.to_vec();
    for _ in 0..=dice.below(3) {
        spoil_once(dice, &mut spoiled, other);
    }
    spoiled
}

fn spoil_once(dice: &mut Dice, bytes: &mut Vec<u8>, other: &[u8]) {
    let some = |dice: &mut Dice, length: usize| dice.below(length as u64 + 1) as usize;
    let at = some(dice, bytes.len().saturating_sub(1));
    let until = (at + some(dice, 16)).min(bytes.len());
    let piece = some(dice, other.len())..;
    match dice.below(7) {
        0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
        // Values at which lengths and numbers turn over.
        2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][dice.below(6) as usize],
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..until)),
        5 => {
            let repeated = bytes[at..until].to_vec();
            bytes.splice(at..at, repeated);
        }
        _ => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[piece]);
        }
    }
}
