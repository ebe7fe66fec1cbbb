//! Test support that several crates share. Shipped code never depends on it.

#![forbid(unsafe_code)]

mod cpu_time;
#[cfg(feature = "worlds")]
mod draw;
#[cfg(feature = "gate-oracle")]
pub mod gate_oracle;
#[cfg(feature = "worlds")]
pub mod gate_world;
#[cfg(feature = "worlds")]
pub mod market_world;
mod measured;
#[cfg(feature = "worlds")]
mod minimal;
mod partial;
mod patience;
#[cfg(feature = "worlds")]
mod playing;
mod process_memory;
mod program;
mod requirement;
#[cfg(feature = "worlds")]
mod tally;
#[cfg(feature = "worlds")]
mod trace;
#[cfg(feature = "turn-client")]
pub mod turn_client;
#[cfg(feature = "worlds")]
pub mod turn_world;
pub mod tutorial;

pub use cpu_time::cpu_time;
pub use measured::measured;
pub use partial::partial;
pub use patience::{pause, wait_until};
#[cfg(feature = "worlds")]
pub use playing::Playing;
pub use process_memory::memory_bytes;
pub use program::program;
pub use requirement::{Requirement, find_browser, find_program, require, require_captures, two_cpus};
