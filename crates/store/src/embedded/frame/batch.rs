//! Records one after the other, each behind its length.

const PREFIX: usize = 4;

/// Records that are written together: all of them, in order, or none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    records: u32,
}

impl Batch {
    /// An empty batch with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Batch {
        Batch { bytes: Vec::with_capacity(bytes), records: 0 }
    }

    /// A batch of one.
    pub fn of(record: &[u8]) -> Batch {
        let mut batch = Batch::with_capacity(PREFIX + record.len());
        batch.push(record);
        batch
    }

    /// Adds a record.
    pub fn push(&mut self, record: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(record));
    }

    /// Adds a record that is encoded in place. Bytes are to be appended only.
    pub fn push_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; PREFIX]);
        encode(&mut self.bytes);
        let length = self.bytes.len().checked_sub(at + PREFIX).expect("a record is appended");
        let length = u32::try_from(length).expect("a record is smaller than 4 GiB");
        self.bytes[at..at + PREFIX].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
    }

    /// Makes it empty, and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records = 0;
    }

    /// How many records there are.
    pub fn len(&self) -> u32 {
        self.records
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The records with their lengths, as they are written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The records of a frame, in order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Records<'a> {
    /// Nothing unless so many records fill these bytes exactly.
    pub(super) fn new(bytes: &'a [u8], records: u32) -> Option<Records<'a>> {
        let mut rest = bytes;
        for _ in 0..records {
            (_, rest) = split(rest)?;
        }
        rest.is_empty().then_some(Records { rest: bytes, left: records })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (record, rest) = split(self.rest)?;
        self.rest = rest;
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Records<'_> {}

/// The first record, and what follows it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX>()?;
    rest.split_at_checked(u32::from_le_bytes(*prefix) as usize)
}
