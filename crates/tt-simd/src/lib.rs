//! Functions that use SIMD instructions if the CPU has them, each with a scalar fallback that gives the same result.
//!
//! The CPU's features are detected once, at run time.
//!
//! ```
//! let message = [7; 100];
//! tt_simd::prefetch(&message[64]); // starts to load the second cache line
//! assert_eq!(tt_simd::crc32(b"123456789"), 0xCBF4_3926);
//! assert_ne!(tt_simd::crc32(&message), tt_simd::crc32(&message[1..]));
//! ```

#![no_std]

#[cfg(test)]
extern crate std;

mod crc;
mod prefetch;
mod wide;

pub use crc::{crc32, crc32c, is_crc32_vectorised};
pub use prefetch::{prefetch, prefetch_lines};
pub use wide::{Wide, widest};
