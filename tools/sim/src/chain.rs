//! The numbers that a venue gives to the updates of one book.

use std::collections::VecDeque;

/// Numbers that are remembered with the update id of the script that they stand for.
const HISTORY: usize = 1 << 14;

/// Numbers of a chain leave this rest after as many resets as it is: no number comes twice, which would look like a copy.
const STRIDE: u64 = 64;

/// How a venue numbers the updates of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// One more for each update that is sent (Bybit's `u`).
    Counted,
    /// The update id of the script, with holes (OKX's `seqId`, Deribit's `change_id`); after a reset [`STRIDE`] times
    /// what it has grown by.
    Script,
}

/// The chain of one book.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    numbering: Numbering,
    /// The script's update id at the last reset.
    base: u64,
    resets: u64,
    last: u64,
    /// The venue's number and the script's update id, oldest first.
    history: VecDeque<(u64, u64)>,
}

/// The number of an update and of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) previous: u64,
    pub(crate) id: u64,
}

impl Chain {
    /// A chain whose first book is the script's at `update_id`.
    pub(crate) fn new(numbering: Numbering, update_id: u64) -> Self {
        let mut chain = Self { numbering, base: 0, resets: 0, last: update_id, history: VecDeque::new() };
        chain.remember(update_id);
        chain
    }

    /// Returns the number of the current book.
    pub(crate) const fn id(&self) -> u64 {
        self.last
    }

    /// The number of the update that leads to the script's book at `update_id`.
    pub(crate) fn advance(&mut self, update_id: u64) -> Link {
        let previous = self.last;
        self.last = match self.numbering {
            Numbering::Counted => previous + 1,
            Numbering::Script if self.resets == 0 => update_id,
            Numbering::Script => (update_id - self.base) * STRIDE + self.resets % STRIDE,
        };
        self.remember(update_id);
        Link { previous, id: self.last }
    }

    /// Restarts the numbering: the book at `update_id` has the number 1 or, if numbers chain, one that no book had before
    /// (1, then 2).
    pub(crate) fn reset(&mut self, update_id: u64) {
        self.base = update_id;
        self.resets += 1;
        self.last = match self.numbering {
            Numbering::Counted => 1,
            Numbering::Script => self.resets % STRIDE,
        };
        self.history.clear();
        self.remember(update_id);
    }

    fn remember(&mut self, update_id: u64) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((self.last, update_id));
    }

    /// Returns the script's update id of the venue's number `id`, of the last few thousand.
    pub(crate) fn update_id(&self, id: u64) -> Option<u64> {
        let found = self.history.binary_search_by_key(&id, |&(number, _)| number).ok()?;
        Some(self.history[found].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_venue_numbers_in_its_own_way_and_restarts_with_one() {
        let mut counted = Chain::new(Numbering::Counted, 1000);
        assert_eq!(counted.advance(1007), Link { previous: 1000, id: 1001 });
        assert_eq!(counted.update_id(1001), Some(1007));
        counted.reset(1007);
        assert_eq!(counted.advance(1020), Link { previous: 1, id: 2 });
        assert_eq!(counted.update_id(2), Some(1020));
        let mut script = Chain::new(Numbering::Script, 1000);
        assert_eq!(script.advance(1007), Link { previous: 1000, id: 1007 });
        script.reset(1007);
        assert_eq!(script.advance(1010), Link { previous: 1, id: 193 });
        assert_eq!((script.update_id(193), script.update_id(192)), (Some(1010), None));
        script.reset(1014);
        assert_eq!((script.id(), script.update_id(2)), (2, Some(1014)), "a number that no book had before");
        assert_eq!(script.advance(1020), Link { previous: 2, id: 386 });
    }
}
