//! The numbers that a venue gives to the updates of one book.

use std::collections::VecDeque;

/// Numbers that are remembered with the update id of the script that they stand for.
const HISTORY: usize = 1 << 14;

/// How a venue numbers the updates of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// One more for each update that is sent (Bybit's `u`).
    Counted,
    /// The update id of the script, with holes (OKX's `seqId`, Deribit's `change_id`).
    Script,
}

/// The chain of one book.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    numbering: Numbering,
    /// What is taken off the script's update id since the last reset.
    offset: u64,
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
        let mut chain = Self { numbering, offset: 0, last: update_id, history: VecDeque::new() };
        chain.remember(update_id);
        chain
    }

    /// The number of the book as it stands.
    pub(crate) const fn id(&self) -> u64 {
        self.last
    }

    /// The number of the update that leads to the script's book at `update_id`.
    pub(crate) fn advance(&mut self, update_id: u64) -> Link {
        let previous = self.last;
        self.last = match self.numbering {
            Numbering::Counted => previous + 1,
            Numbering::Script => update_id - self.offset,
        };
        self.remember(update_id);
        Link { previous, id: self.last }
    }

    /// The venue starts its service anew: the book at `update_id` has the number 1. Where numbers chain and the book
    /// before had that number, it is 2: a number that follows itself would say that nothing has happened.
    pub(crate) fn reset(&mut self, update_id: u64) {
        self.last = if self.numbering == Numbering::Script && self.last == 1 { 2 } else { 1 };
        self.offset = update_id - self.last;
        self.history.clear();
        self.remember(update_id);
    }

    fn remember(&mut self, update_id: u64) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((self.last, update_id));
    }

    /// The script's update id that the venue's number `id` stands for, of the last few thousand.
    pub(crate) fn update_id(&self, id: u64) -> Option<u64> {
        let found = self.history.binary_search_by_key(&id, |&(number, _)| number).ok()?;
        Some(self.history[found].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_venue_numbers_in_its_own_way_and_begins_anew_with_one() {
        let mut counted = Chain::new(Numbering::Counted, 1000);
        assert_eq!(counted.advance(1007), Link { previous: 1000, id: 1001 });
        assert_eq!(counted.update_id(1001), Some(1007));
        counted.reset(1007);
        assert_eq!(counted.advance(1020), Link { previous: 1, id: 2 });
        assert_eq!(counted.update_id(2), Some(1020));
        let mut script = Chain::new(Numbering::Script, 1000);
        assert_eq!(script.advance(1007), Link { previous: 1000, id: 1007 });
        script.reset(1007);
        assert_eq!(script.advance(1010), Link { previous: 1, id: 4 });
        assert_eq!((script.update_id(4), script.update_id(3)), (Some(1010), None));
        script.reset(1010);
        script.reset(1014);
        assert_eq!((script.id(), script.update_id(2)), (2, Some(1014)), "another number than the one before");
        assert_eq!(script.advance(1020), Link { previous: 2, id: 8 });
    }
}
