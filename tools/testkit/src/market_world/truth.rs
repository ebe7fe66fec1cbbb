//! The true book at each step: its best ten levels, under the number of the step and the venue's update id.

use sim::TrueBook;

/// Levels of each side that are compared.
pub(super) const LEVELS: usize = 10;

/// One side's best levels, best first, as (price, quantity) in whole steps.
pub(super) type Levels = Vec<(i64, i64)>;

#[derive(Clone, Debug)]
struct Step {
    update_id: u64,
    sides: [Levels; 2],
}

/// All steps of one instrument.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    steps: Vec<Step>,
}

impl Truth {
    pub(super) fn note(&mut self, update_id: u64, book: &TrueBook) {
        let level = |(&px, &qty): (&i64, &i64)| (px, qty);
        let sides = [book.bids().take(LEVELS).map(level).collect(), book.asks().take(LEVELS).map(level).collect()];
        self.steps.push(Step { update_id, sides });
    }

    /// The book at an update id of the script.
    pub(super) fn at_id(&self, update_id: u64) -> Option<&[Levels; 2]> {
        let found = self.steps.binary_search_by_key(&update_id, |step| step.update_id).ok()?;
        Some(&self.steps[found].sides)
    }

    /// How many steps there were.
    pub(super) const fn len(&self) -> usize {
        self.steps.len()
    }

    /// The book after the first `steps` steps.
    pub(super) fn after(&self, steps: usize) -> Option<&[Levels; 2]> {
        Some(&self.steps.get(steps.checked_sub(1)?)?.sides)
    }

    /// The book now.
    pub(super) fn last(&self) -> Option<&[Levels; 2]> {
        self.steps.last().map(|step| &step.sides)
    }
}
