//! Random bytes of the operating system.

use ring::rand::{SystemRandom, generate};

/// Bytes that cannot be guessed; `None` if the system gives none.
pub(super) fn bytes<const N: usize>() -> Option<[u8; N]> {
    generate(&SystemRandom::new()).ok().map(|random| random.expose())
}

/// A share between 0 and 1; 1 if the system gives no randomness.
pub(super) fn share() -> f64 {
    f64::from(bytes().map_or(u32::MAX, u32::from_ne_bytes)) / f64::from(u32::MAX)
}
