//! The gate world: the gate with its journal, its file of modes and its sender in virtual time, between strategies, a
//! simulated venue, a feed of prices, operators and a disk, all of it decided by one seed.
//!
//! A seed writes a [`Script`]: limits, traffic, and what goes wrong when. [`play`] plays it and checks the invariants of
//! [`Failure`] after each event against an oracle that shares no code with the gate. [`minimise`] strikes actions out of a
//! script that fails.

mod cancels;
mod disk;
mod failure;
mod healing;
mod host;
mod invariants;
mod link;
mod operators;
mod recovery;
mod script;
mod setup;
mod snapshots;
mod strategies;
mod tally;
mod threads;
mod venue;
mod wire;
mod world;

use crate::minimal::minimal;

pub use failure::Failure;
pub use script::{Action, Script};
pub use tally::Tally;
pub use world::{Outcome, play};

/// Strikes out actions of `script` as long as `invariant` stays broken, in at most `plays_max` plays.
#[must_use]
pub fn minimise(script: &Script, invariant: u8, plays_max: usize) -> Script {
    let kept = minimal(&script.actions, plays_max, |actions| {
        let outcome = play(&script.with(actions.to_vec()), false);
        outcome.failure.is_some_and(|failure| failure.invariant == invariant)
    });
    script.with(kept)
}
