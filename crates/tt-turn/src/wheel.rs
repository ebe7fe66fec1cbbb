//! Expiry times: a timer wheel of seconds.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use tt_model::Nanos;

/// Seconds of one turn: more than an hour, the longest lifetime of RFC 8656.
const SECONDS: u64 = 4_096;
const NONE: u32 = u32::MAX;

/// Indices sorted by the second in which they are due. Setting, clearing and taking need constant time. An index
/// further ahead than one turn is due early; its owner checks the exact time and sets it again.
#[derive(Debug)]
pub(crate) struct Wheel {
    heads: Box<[u32]>,
    /// Of the indices that were set; memory of the others is not touched.
    links: Vec<Link>,
    occupied: [u64; SECONDS as usize / 64],
    len: usize,
    /// No entry is before this second.
    cursor_s: u64,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
    /// Position on the wheel, or `NONE`.
    place: u32,
}

const UNSET: Link = Link { next: NONE, previous: NONE, place: NONE };

impl Wheel {
    /// Creates a wheel for the indices below `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            heads: vec![NONE; SECONDS as usize].into_boxed_slice(),
            links: Vec::with_capacity(capacity),
            occupied: [0; SECONDS as usize / 64],
            len: 0,
            cursor_s: 0,
        }
    }

    /// Sets `index` to be due at `at` or up to a second later; moves it if it is set.
    pub(crate) fn set(&mut self, index: u32, now: Nanos, at: Nanos) {
        match self.links.get(index as usize) {
            Some(link) if link.place != NONE => self.clear(index),
            Some(_) | None => {}
        }
        if self.len == 0 {
            self.cursor_s = now.0 / Nanos::PER_SECOND;
        }
        let second = at.0.div_ceil(Nanos::PER_SECOND).clamp(self.cursor_s, self.cursor_s + SECONDS - 1);
        let place = (second % SECONDS) as usize;
        let head = self.heads[place];
        if let Some(link) = self.links.get_mut(head as usize) {
            link.previous = index;
        }
        while self.links.len() <= index as usize {
            self.links.push(UNSET);
        }
        self.links[index as usize] = Link { next: head, previous: NONE, place: place as u32 };
        self.heads[place] = index;
        self.occupied[place / 64] |= 1 << (place % 64);
        self.len += 1;
    }

    /// Removes `index` from the wheel.
    pub(crate) fn clear(&mut self, index: u32) {
        let Some(&Link { next, previous, place }) = self.links.get(index as usize) else { return };
        if place == NONE {
            return;
        }
        let place = place as usize;
        if let Some(link) = self.links.get_mut(next as usize) {
            link.previous = previous;
        }
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => self.heads[place] = next,
        }
        if self.heads[place] == NONE {
            self.occupied[place / 64] &= !(1 << (place % 64));
        }
        self.links[index as usize].place = NONE;
        self.len -= 1;
    }

    /// Takes one index that is due at `now`.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<u32> {
        let now_s = now.0 / Nanos::PER_SECOND;
        let second = self.next_second()?;
        if second > now_s {
            self.cursor_s = now_s.max(self.cursor_s);
            return None;
        }
        self.cursor_s = second;
        let index = self.heads[(second % SECONDS) as usize];
        self.clear(index);
        Some(index)
    }

    /// Returns when the next index is due.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.next_second().map(Nanos::from_secs)
    }

    fn next_second(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let start = (self.cursor_s % SECONDS) as usize;
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            }
            if bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (place + SECONDS as usize - start) % SECONDS as usize;
                return Some(self.cursor_s + ahead as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Wheel;
    use proptest::prelude::*;
    use tt_model::Nanos;

    #[test]
    fn far_entries_come_early_and_nothing_is_lost() {
        let mut wheel = Wheel::new(1);
        wheel.set(0, Nanos(0), Nanos::from_secs(10_000));
        assert_eq!(wheel.next_at(), Some(Nanos::from_secs(4_095)));
        assert_eq!(wheel.take_due(Nanos::from_secs(20_000)), Some(0));
        assert_eq!(wheel.next_at(), None);
    }

    proptest! {
        #[test]
        fn takes_what_is_due_and_nothing_else(
            start_s in 0u64..1_000_000,
            steps in prop::collection::vec((0u32..16, 0u64..3_600_000, 0u64..200_000, any::<bool>()), 1..300),
        ) {
            let mut wheel = Wheel::new(16);
            let mut model: [Option<u64>; 16] = [None; 16];
            let mut now = start_s * 1_000_000_000;
            for (index, ahead_ms, wait_ms, set) in steps {
                if set {
                    let at = now + ahead_ms * 1_000_000;
                    wheel.set(index, Nanos(now), Nanos(at));
                    model[index as usize] = Some(at);
                } else {
                    wheel.clear(index);
                    model[index as usize] = None;
                }
                let earliest = model.iter().flatten().min().map(|at| Nanos::from_secs(at.div_ceil(1_000_000_000)));
                prop_assert_eq!(wheel.next_at(), earliest);
                now += wait_ms * 1_000_000;
                while let Some(due) = wheel.take_due(Nanos(now)) {
                    let at = model[due as usize].take();
                    prop_assert!(at.is_some_and(|at| at <= now));
                }
                let now_s = now / 1_000_000_000;
                prop_assert!(model.iter().flatten().all(|at| at.div_ceil(1_000_000_000) > now_s));
            }
        }
    }
}
