//! When entries of the coordination map that expired are removed for good.

use std::time::Duration;

/// Clocks of nodes differ: an entry is swept only when it is past for every one of them.
pub(crate) const SWEEP_AFTER: Duration = Duration::from_secs(3600);
/// How many expired entries one write sweeps: more than it adds, so that the map does not grow for ever.
pub(crate) const SWEPT_MAX: usize = 2;
