//! Two feeds of one venue, each with an engine of its own: what either tells first counts, and they must tell the same.

use crate::{Depth, Proof, TopOfBook};
use alloc::boxed::Box;
use tt_model::InstrumentId;
use tt_venue::Venue;
use tt_venue::rules::Numbering;

/// Updates of each line that the other one is held against. A line that is further behind is not compared.
const UPDATES_KEPT: usize = 64;

/// One of the two feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Feed {
    /// The first.
    #[default]
    A = 0,
    /// The second.
    B = 1,
}

impl Feed {
    const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// What a feed's update was beside the other feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitrated {
    /// Nobody has told of it before: it is what counts now.
    First,
    /// The other feed told of it, and the same.
    Second,
    /// The other feed told of an update of the same number, and of other levels: one of the books is wrong.
    Diverged,
    /// It is older than what counts, and there is nothing to hold it against.
    Behind,
    /// The feed's book has no proof. If it was the one that counts, the other has taken its place, proved or not.
    Unproved,
}

/// What became of the updates; their sum is the number of [`Arbiter::note`]s of known instruments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArbiterCounters {
    /// [`Arbitrated::First`], by feed.
    pub first: [u64; 2],
    /// [`Arbitrated::Second`].
    pub second: u64,
    /// [`Arbitrated::Diverged`].
    pub diverged: u64,
    /// [`Arbitrated::Behind`].
    pub behind: u64,
    /// [`Arbitrated::Unproved`].
    pub unproved: u64,
}

/// What a feed told last.
#[derive(Clone, Copy, Debug)]
struct Told {
    top: TopOfBook,
    /// Numbers of its last updates, and a digest of the levels after each.
    updates: [(u64, u64); UPDATES_KEPT],
    next: usize,
    len: usize,
}

impl Told {
    fn digest_at(&self, update_id: u64) -> Option<u64> {
        self.updates[..self.len].iter().find(|(told, _)| *told == update_id).map(|(_, digest)| *digest)
    }

    fn keep(&mut self, update_id: u64, digest: u64) {
        self.updates[self.next] = (update_id, digest);
        self.next = (self.next + 1) % UPDATES_KEPT;
        self.len = (self.len + 1).min(UPDATES_KEPT);
    }
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    told: [Told; 2],
    counts: Feed,
    is_diverged: bool,
}

/// Follows the books of two feeds of one venue, whose instruments have the same numbers in both engines.
///
/// It allocates in [`new`](Self::new) alone.
#[derive(Debug)]
pub struct Arbiter {
    pairs: Box<[Pair]>,
    counters: ArbiterCounters,
}

impl Arbiter {
    /// For `instruments` in each feed.
    #[must_use]
    pub fn new(instruments: usize) -> Self {
        let none = Told { top: TopOfBook::default(), updates: [(0, 0); UPDATES_KEPT], next: 0, len: 0 };
        let pair = Pair { told: [none; 2], counts: Feed::A, is_diverged: false };
        Self { pairs: alloc::vec![pair; instruments].into_boxed_slice(), counters: ArbiterCounters::default() }
    }

    /// Whether the venue numbers its updates, and the same on every connection: elsewhere two feeds cannot be compared.
    #[must_use]
    pub const fn suits(venue: Venue) -> bool {
        match venue.rules().numbering {
            Numbering::Range | Numbering::RangeFromOne | Numbering::Previous | Numbering::Chain => true,
            Numbering::None | Numbering::Times | Numbering::Connection => false,
        }
    }

    /// Takes in what `feed`'s board shows of `instrument` after a frame that concerned its book, or after its state
    /// changed. `None` for an instrument beyond the capacity.
    pub fn note(&mut self, feed: Feed, instrument: InstrumentId, top: &TopOfBook, depth: &Depth) -> Option<Arbitrated> {
        let pair = self.pairs.get_mut(instrument.0 as usize)?;
        let arbitrated = pair.note(feed, top, depth);
        match arbitrated {
            Arbitrated::First => self.counters.first[feed as usize] += 1,
            Arbitrated::Second => self.counters.second += 1,
            Arbitrated::Diverged => self.counters.diverged += 1,
            Arbitrated::Behind => self.counters.behind += 1,
            Arbitrated::Unproved => self.counters.unproved += 1,
        }
        Some(arbitrated)
    }

    /// What counts of the instrument now. While the feeds differ it is `Unverified`, whatever each of them says.
    #[must_use]
    pub fn top_of_book(&self, instrument: InstrumentId) -> Option<TopOfBook> {
        let pair = self.pairs.get(instrument.0 as usize)?;
        let mut top = pair.told[pair.counts as usize].top;
        if pair.is_diverged && top.standing.proof.is_verified() {
            top.standing.proof = Proof::Unverified;
        }
        Some(top)
    }

    /// Which feed's book counts.
    #[must_use]
    pub fn counts(&self, instrument: InstrumentId) -> Option<Feed> {
        self.pairs.get(instrument.0 as usize).map(|pair| pair.counts)
    }

    /// The alarm: the last update that both feeds told of was not the same. It ends with one that is.
    #[must_use]
    pub fn is_diverged(&self, instrument: InstrumentId) -> bool {
        self.pairs.get(instrument.0 as usize).is_some_and(|pair| pair.is_diverged)
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &ArbiterCounters {
        &self.counters
    }
}

impl Pair {
    fn note(&mut self, feed: Feed, top: &TopOfBook, depth: &Depth) -> Arbitrated {
        let [own, other] = [feed as usize, feed.other() as usize];
        let counted = self.told[self.counts as usize].top;
        let before = core::mem::replace(&mut self.told[own].top, *top);
        if !top.standing.proof.is_verified() {
            if self.counts == feed && self.told[other].top.standing.proof.is_verified() {
                self.counts = feed.other();
            }
            return Arbitrated::Unproved;
        }
        if top.update_id < before.update_id {
            // The venue has begun anew, or the book has been fetched again: old numbers mean something else.
            self.told[own].len = 0;
            self.told[own].next = 0;
        }
        let digest = digest(depth);
        if self.told[own].digest_at(top.update_id).is_none() {
            self.told[own].keep(top.update_id, digest);
        }
        let compared = self.told[other].digest_at(top.update_id).map(|told| told == digest);
        if let Some(is_alike) = compared {
            self.is_diverged = !is_alike;
        }
        let is_newer = top.update_id > counted.update_id || !counted.standing.proof.is_verified();
        if self.counts == feed || is_newer {
            self.counts = feed;
        }
        match compared {
            Some(true) => Arbitrated::Second,
            Some(false) => Arbitrated::Diverged,
            None if self.counts == feed => Arbitrated::First,
            None => Arbitrated::Behind,
        }
    }
}

/// A number for the best levels: FNV-1a by words.
fn digest(depth: &Depth) -> u64 {
    let words = [depth.bids(), depth.asks()].into_iter().flat_map(|side| {
        let levels = side.iter().flat_map(|level| [level.px.0.cast_unsigned(), level.qty.0.cast_unsigned()]);
        levels.chain([side.len() as u64])
    });
    words
        .fold(0xcbf2_9ce4_8422_2325, |digest, word| (digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29))
}
