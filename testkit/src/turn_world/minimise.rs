//! Delta debugging: the fewest actions that still break the same invariant.

use super::planted::Planted;
use super::script::{Action, Script};
use super::world::{Telling, play};

/// Strikes out actions of `script` as long as `invariant` stays broken, in at most `plays_max` runs.
#[must_use]
pub fn minimise(script: &Script, planted: Option<Planted>, invariant: u8, plays_max: usize) -> Script {
    let mut kept = script.actions.clone();
    // A crowd takes long to play.
    let plays_max = plays_max.min(3_000_000 / kept.len().max(1)).max(20);
    let mut plays = 0;
    let mut breaks = |actions: &[Action]| {
        plays += 1;
        let outcome = play(&script.with(actions.to_vec()), planted, Telling::Hash);
        (outcome.failure.is_some_and(|failure| failure.invariant == invariant), plays < plays_max)
    };
    let mut length = kept.len().div_ceil(2).max(1);
    loop {
        let (mut at, mut struck) = (0, false);
        while at < kept.len() {
            let end = (at + length).min(kept.len());
            let rest = [&kept[..at], &kept[end..]].concat();
            let (is_broken, may_go_on) = breaks(&rest);
            if is_broken {
                kept = rest;
                struck = true;
            } else {
                at = end;
            }
            if !may_go_on {
                return script.with(kept);
            }
        }
        if length == 1 && !struck {
            return script.with(kept);
        }
        if !struck {
            length = length.div_ceil(2);
        }
        length = length.clamp(1, kept.len().max(1));
    }
}
