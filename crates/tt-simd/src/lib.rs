//! What wide instructions do better than plain code, chosen at run time by what the processor has. Each function has a
//! scalar twin that gives the same answer everywhere.

#![no_std]

#[cfg(test)]
extern crate std;

mod crc;
mod prefetch;

pub use crc::crc32;
pub use prefetch::prefetch;
