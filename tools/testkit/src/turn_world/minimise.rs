//! The fewest actions that still break the same invariant.

use super::planted::Planted;
use super::script::Script;
use super::world::{Telling, play};
use crate::minimal::minimal;

/// Strikes out actions of `script` as long as `invariant` stays broken, in at most `plays_max` runs.
#[must_use]
pub fn minimise(script: &Script, planted: Option<Planted>, invariant: u8, plays_max: usize) -> Script {
    // A crowd takes long to play.
    let plays_max = plays_max.min(3_000_000 / script.actions.len().max(1)).max(20);
    let kept = minimal(&script.actions, plays_max, |actions| {
        let outcome = play(&script.with(actions.to_vec()), planted, Telling::Hash);
        outcome.failure.is_some_and(|failure| failure.invariant == invariant)
    });
    script.with(kept)
}
