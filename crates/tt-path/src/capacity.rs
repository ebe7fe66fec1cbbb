//! How much the kernel's tables hold.

/// Sizes of the tables, fixed when the program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Paths: two for each bound channel. A path takes about 260 bytes (IPv4) while it is open, and its tally 32.
    pub paths: u32,
    /// Meters.
    pub meters: u32,
}
