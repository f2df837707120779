//! Counts the rows a write may touch before it is cut, so that the simulator can cut it anywhere.

/// How many more rows may be written before the write is cut.
pub(super) struct Ops(pub usize);

/// The write was cut here.
pub(super) struct Cut;

impl Ops {
    /// One more row is about to be written or removed.
    pub fn spend(&mut self) -> Result<(), Cut> {
        self.0 = self.0.checked_sub(1).ok_or(Cut)?;
        Ok(())
    }
}
