//! Sizes in bytes.

/// 1,024 bytes.
pub const KIB: usize = 1024;
/// 1,024 KiB.
pub const MIB: usize = 1024 * KIB;
/// 1,024 MiB.
pub const GIB: usize = 1024 * MIB;
