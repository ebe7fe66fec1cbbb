//! The instruments that are followed. Their steps may become finer while others read them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use tt_model::{Decimal, InstrumentId};
use tt_venue::Venue;
use tt_venue::listing::{ContractUnit, Terms};

/// How often steps may become finer before a new start is needed. Each time costs a list, kept for who still reads it.
const LISTS: usize = 64;

/// One instrument that is followed.
#[derive(Clone, Debug)]
pub struct Instrument {
    /// Its number across all feeds: the index in [`Reader::instruments`](super::Reader::instruments).
    pub id: InstrumentId,
    /// The venue.
    pub venue: Venue,
    /// The venue's symbol.
    pub symbol: String,
    /// The normalised symbol: `BTC/USDT`, `BTC/USDT:USDT`, `BTC/USD:BTC-20270326-50000-C`.
    pub name: String,
    /// The price step.
    pub tick_size: Decimal,
    /// The quantity step.
    pub lot_size: Decimal,
    /// The size of one unit of quantity.
    pub unit: ContractUnit,
    /// Kind, expiry, strike, and its status when the feed started.
    pub terms: Terms,
    pub(super) feed: usize,
    pub(super) local: InstrumentId,
}

/// The instruments of all feeds.
#[derive(Debug)]
pub(super) struct Instruments {
    lists: [OnceLock<Vec<Instrument>>; LISTS],
    newest: AtomicUsize,
    /// Those that are followed no longer, by their ids.
    ended: OnceLock<Vec<AtomicBool>>,
    /// Odd while steps change.
    changes: AtomicU64,
    changing: Mutex<()>,
}

/// The instruments of a feed that share another one's book: its number in the feed, and theirs across all feeds. They are
/// behind all others of the feed.
pub(super) fn sharing(instruments: &[Instrument], feed: usize) -> Vec<(InstrumentId, InstrumentId)> {
    let own = || instruments.iter().filter(move |listed| listed.feed == feed);
    let is_first =
        |listed: &Instrument| own().find(|known| known.local == listed.local).map(|known| known.id) == Some(listed.id);
    own().filter(|listed| !is_first(listed)).map(|listed| (listed.local, listed.id)).collect()
}

/// Steps change until it is dropped.
struct Changing<'a>(&'a AtomicU64);

impl<'a> Changing<'a> {
    fn new(changes: &'a AtomicU64) -> Self {
        changes.fetch_add(1, Relaxed);
        fence(Release);
        Self(changes)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Release);
    }
}

impl Instruments {
    pub(super) const fn new() -> Self {
        Self {
            lists: [const { OnceLock::new() }; LISTS],
            newest: AtomicUsize::new(0),
            ended: OnceLock::new(),
            changes: AtomicU64::new(0),
            changing: Mutex::new(()),
        }
    }

    /// The first list, before anybody reads.
    pub(super) fn begin(&self, list: Vec<Instrument>) {
        // A second one would be passed over.
        let _ = self.ended.set(list.iter().map(|_| AtomicBool::new(false)).collect());
        let _ = self.lists[0].set(list);
    }

    /// Whether an instrument is followed.
    pub(super) fn is_followed(&self, id: InstrumentId) -> bool {
        let ended = self.ended.get().and_then(|ended| ended.get(id.0 as usize));
        ended.is_some_and(|ended| !ended.load(Acquire))
    }

    /// An instrument ends, or is followed again.
    pub(super) fn set_followed(&self, id: InstrumentId, is_followed: bool) {
        if let Some(ended) = self.ended.get().and_then(|ended| ended.get(id.0 as usize)) {
            ended.store(!is_followed, Release);
        }
    }

    /// The ids of the instruments with a feed's own number that are followed: several where they share a book.
    pub(super) fn followed_of(&self, feed: usize, local: InstrumentId) -> Vec<InstrumentId> {
        let ids = self.newest().iter().filter(|known| known.feed == feed && known.local == local).map(|known| known.id);
        ids.filter(|id| self.is_followed(*id)).collect()
    }

    /// All of them, in the order of their ids, as they are now.
    pub(super) fn newest(&self) -> &[Instrument] {
        self.lists[self.newest.load(Acquire)].get().map_or(&[], Vec::as_slice)
    }

    /// Has `change` change the steps in the list and in an engine, which no reader sees by halves; `false`, and nothing is
    /// done, where there is no room for another list.
    pub(super) fn change(&self, change: impl FnOnce(&mut [Instrument])) -> bool {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.newest.load(Relaxed) + 1;
        let Some(place) = self.lists.get(next) else { return false };
        let mut list = self.newest().to_vec();
        let changing = Changing::new(&self.changes);
        change(&mut list);
        let is_placed = place.set(list).is_ok();
        if is_placed {
            self.newest.store(next, Release);
        }
        drop(changing);
        is_placed
    }

    /// What `look` sees of the instruments and their boards while no steps change; it looks again where they did.
    pub(super) fn consistent<T>(&self, mut look: impl FnMut(&[Instrument]) -> T) -> T {
        loop {
            let before = self.changes.load(Acquire);
            if before.is_multiple_of(2) {
                let seen = look(self.newest());
                fence(Acquire);
                if self.changes.load(Relaxed) == before {
                    return seen;
                }
            }
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Instruments {
        let instruments = Instruments::new();
        instruments.begin(vec![Instrument {
            id: InstrumentId(0),
            venue: Venue::Kraken,
            symbol: "BTC/USD".to_owned(),
            name: "BTC/USD".to_owned(),
            tick_size: Decimal::new(1, 0),
            lot_size: Decimal::new(1, 8),
            unit: ContractUnit::Base,
            terms: Terms::default(),
            feed: 0,
            local: InstrumentId(0),
        }]);
        instruments
    }

    #[test]
    fn steps_and_prices_are_never_seen_of_two_times() {
        let (instruments, px, done) = (one(), AtomicU64::new(1), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let finer = |list: &mut [Instrument]| {
                    list[0].tick_size = Decimal::new(1, list[0].tick_size.decimals + 1);
                    thread::yield_now();
                    // As a board in another's hands: its own store says nothing of the list.
                    px.store(px.load(Relaxed) * 10, Relaxed);
                };
                for _ in 0..15 {
                    assert!(instruments.change(finer));
                    thread::yield_now();
                }
                done.store(true, Release);
            });
            while !done.load(Acquire) {
                let (step, px) = instruments.consistent(|list| (list[0].tick_size, px.load(Relaxed)));
                assert_eq!(px, 10_u64.pow(u32::from(step.decimals)));
            }
        });
    }

    #[test]
    fn steps_that_change_for_ever_end_at_the_last_list() {
        let instruments = one();
        let first = instruments.newest();
        let changes = (0..200).filter(|_| instruments.change(|list| list[0].lot_size = Decimal::new(1, 9))).count();
        assert_eq!((changes, first[0].lot_size.decimals), (LISTS - 1, 8), "who holds a list keeps it");
        assert_eq!(instruments.newest()[0].lot_size.decimals, 9);
    }
}
