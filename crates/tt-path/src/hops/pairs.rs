//! Pairs of addresses in use, each with its slot, and which of them must be asked again.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use tt_model::IpFamily;

use super::facts::Prefix;
use super::refusal::Refusal;

/// Most pairs in use.
const PAIRS_MAX: usize = 262_144;

/// Source and destination of packets that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddressPair {
    /// Address of the relay.
    pub source: IpAddr,
    /// Address of the client or the peer.
    pub destination: IpAddr,
}

/// How certain the route of a pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The kernel's last answer is that of the slot.
    Verified,
    /// Something has changed; the kernel is asked again.
    Doubted,
    /// The answer is another one: the pair waits for its users to go.
    Changed,
}

#[derive(Debug)]
struct Pair {
    slot: u16,
    users: u32,
    certainty: Certainty,
    is_queued: bool,
}

/// A change of the kernel's routing, as far as it concerns pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A route to these addresses.
    Route(Prefix),
    /// Rules or addresses of a family.
    Family(IpFamily),
    /// Anything.
    All,
}

impl Change {
    fn concerns(self, pair: &AddressPair) -> bool {
        match self {
            Self::Route(prefix) => prefix.contains(pair.destination) || prefix.contains(pair.source),
            Self::Family(family) => IpFamily::of(pair.destination) == family,
            Self::All => true,
        }
    }
}

/// All pairs in use.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pairs: HashMap<AddressPair, Pair>,
    queue: VecDeque<AddressPair>,
}

impl Pairs {
    /// Slot and certainty of a pair in use.
    pub(crate) fn get(&self, pair: &AddressPair) -> Option<(u16, Certainty)> {
        self.pairs.get(pair).map(|pair| (pair.slot, pair.certainty))
    }

    pub(crate) fn has_room(&self) -> Result<(), Refusal> {
        if self.pairs.len() < PAIRS_MAX { Ok(()) } else { Err(Refusal::PairsFull) }
    }

    pub(crate) fn insert(&mut self, pair: AddressPair, slot: u16) {
        self.pairs.insert(pair, Pair { slot, users: 1, certainty: Certainty::Verified, is_queued: false });
    }

    pub(crate) fn add_user(&mut self, pair: &AddressPair) {
        if let Some(pair) = self.pairs.get_mut(pair) {
            pair.users += 1;
        }
    }

    /// Takes a user away; returns slot and certainty if it was the last.
    pub(crate) fn release(&mut self, pair: AddressPair) -> Option<(u16, Certainty)> {
        let Entry::Occupied(mut entry) = self.pairs.entry(pair) else { return None };
        entry.get_mut().users -= 1;
        if entry.get().users > 0 {
            return None;
        }
        let pair = entry.remove();
        Some((pair.slot, pair.certainty))
    }

    /// Doubts every verified pair that one of the changes concerns, and calls `doubted` with its slot.
    pub(crate) fn doubt(&mut self, changes: &[Change], mut doubted: impl FnMut(u16)) {
        for (addresses, pair) in &mut self.pairs {
            if pair.certainty == Certainty::Verified && changes.iter().any(|change| change.concerns(addresses)) {
                pair.certainty = Certainty::Doubted;
                doubted(pair.slot);
                if !std::mem::replace(&mut pair.is_queued, true) {
                    self.queue.push_back(*addresses);
                }
            }
        }
    }

    /// Queues every verified pair without doubting it.
    pub(crate) fn queue_all(&mut self) {
        for (addresses, pair) in &mut self.pairs {
            if pair.certainty == Certainty::Verified && !std::mem::replace(&mut pair.is_queued, true) {
                self.queue.push_back(*addresses);
            }
        }
    }

    pub(crate) fn is_queue_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the next pair to be asked, with its slot and certainty.
    pub(crate) fn next_queued(&mut self) -> Option<(AddressPair, u16, Certainty)> {
        while let Some(addresses) = self.queue.pop_front() {
            if let Some(pair) = self.pairs.get_mut(&addresses).filter(|pair| pair.is_queued) {
                pair.is_queued = false;
                if pair.certainty != Certainty::Changed {
                    return Some((addresses, pair.slot, pair.certainty));
                }
            }
        }
        None
    }

    pub(crate) fn set_certainty(&mut self, pair: &AddressPair, certainty: Certainty) {
        if let Some(pair) = self.pairs.get_mut(pair) {
            pair.certainty = certainty;
        }
    }
}

#[cfg(test)]
mod tests;
