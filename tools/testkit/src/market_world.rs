//! The market world: the real engine in virtual time, between venues with a scripted true book, a layer of faults and
//! readers, all of it decided by one seed. Budgets of addresses and streams to readers are those of the shipped feeds
//! ([`market_feed::offline`]).
//!
//! A seed writes a [`Script`], which venues there are and what goes wrong when; [`play`] plays it and checks the nine
//! invariants of [`Failure`] after each frame. What is true comes from the simulator's script, never from the engine.
//! [`minimise`] strikes actions out of a script that fails.

mod addresses;
mod books;
mod client;
mod deeds;
mod failure;
mod faults;
mod gate;
mod judging;
mod planted;
mod publishing;
mod reader;
mod reading;
mod requests;
mod script;
mod succession;
mod symbols;
mod tally;
mod tape;
mod truth;
mod words;
mod world;

use crate::minimal::minimal;

pub use failure::Failure;
pub use planted::Planted;
pub use script::{Action, Script};
pub use tally::Tally;
pub use world::{Outcome, play};

/// Strikes out actions of `script` as long as `invariant` stays broken, in at most `plays_max` plays.
#[must_use]
pub fn minimise(script: &Script, planted: Option<Planted>, invariant: u8, plays_max: usize) -> Script {
    let kept = minimal(&script.actions, plays_max, |actions| {
        let outcome = play(&script.with(actions.to_vec()), planted, false);
        outcome.failure.is_some_and(|failure| failure.invariant == invariant)
    });
    script.with(kept)
}
