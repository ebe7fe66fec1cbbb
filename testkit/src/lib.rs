//! Test support that several crates share. Shipped code never depends on it.

#![forbid(unsafe_code)]

pub mod captures;
pub mod turn_world;
