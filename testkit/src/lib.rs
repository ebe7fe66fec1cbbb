//! Test support that several crates share. Shipped code never depends on it.

#![forbid(unsafe_code)]

pub mod captures;
mod draw;
pub mod market_world;
mod minimal;
mod trace;
pub mod turn_world;
