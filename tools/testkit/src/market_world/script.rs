//! Scripts: the venues, their pace, and the faults of a seed.

use std::fmt;
use std::time::Duration;

use sim::Venue;
use tt_model::Nanos;

use crate::draw::{Draw, mix};

/// One deed at one time; `draw` decides its particulars, so that they stay when other actions are struck out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub(super) at: Nanos,
    pub(super) venue: usize,
    pub(super) deed: Deed,
    pub(super) draw: u64,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A book's next frame suffers it on the way.
    Frame(Ill),
    /// The venue restarts the book's numbering.
    Reset,
    /// The venue's connections stay open, and nothing passes through them.
    HalfOpen,
    /// The venue says nothing, for so many seconds.
    Silence(u64),
    /// The venue closes all connections.
    Disconnect,
    /// The client closes its connection and opens another.
    Reconnect,
    /// The client does not read, for so many milliseconds.
    SlowConsumer(u64),
    /// The next snapshot by REST is an old one.
    StaleSnapshot,
    /// The next snapshot by REST is cut in half.
    PartialSnapshot,
    /// The next snapshots by REST are refused.
    Refusals,
    /// Snapshots by REST take so many milliseconds from now on.
    SlowRest(u64),
    /// The client no longer follows one symbol, for so many milliseconds; its others go on.
    Unfollow(u64),
    /// The client opens another connection, lets it take the books over, and closes the first.
    Replace,
    /// The venue announces the end of its connections where it does that, and closes them after so many milliseconds.
    PlannedEnd(u64),
    /// The venue sends nothing of one book for so many milliseconds; its others go on.
    SilentTopic(u64),
    /// The venue's clock is off by so many seconds from now on, forwards.
    Skew(u64),
    /// Another program at the address is banned for so many seconds, and so are the feeds.
    Ban(u64),
    /// Another program at the address uses so much of the weight.
    Spend(u64),
    /// A reader does not read, for so many milliseconds.
    SlowReader(u64),
    /// The thread between the feeds and the readers does not run, for so many milliseconds.
    SlowPublisher(u64),
}

/// Faults of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ill {
    /// It is lost.
    Drop,
    /// It comes twice.
    Duplicate,
    /// It comes after the next one of its book.
    Swap,
    /// It is cut in half.
    Truncate,
    /// A digit of it is another one (where the venue sends checksums).
    FlipDigit,
    /// Its checksum is another one (where the venue sends any).
    Checksum,
    /// A byte of it is no text.
    Garbage,
    /// The next best quote of its book has another quantity (where a quote names the book's update).
    Misquote,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} s  venue {}: {:?}  ({:016x})", self.at.0 as f64 / 1e9, self.venue, self.deed, self.draw)
    }
}

/// One venue of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Market {
    pub(super) venue: Venue,
    pub(super) instruments: u32,
    /// The time between two steps of one instrument.
    pub(super) step: Nanos,
    /// From the venue to the client.
    pub(super) latency: Nanos,
}

/// A reader of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReaderScript {
    pub(super) begins: Nanos,
    /// How often it reads, and so many messages at a time.
    pub(super) reads_every: Nanos,
    pub(super) reads: usize,
    /// Messages that wait for it.
    pub(super) messages_max: usize,
    /// Whether it wants the best levels only.
    pub(super) depth: Option<()>,
    /// It wants at most one message of a book in this time.
    pub(super) every: Option<Duration>,
}

/// A seed's venues and what goes wrong with them.
#[derive(Clone, Debug)]
pub struct Script {
    /// The seed.
    pub seed: u64,
    pub(super) markets: Vec<Market>,
    /// The feeds from this number on have an engine each, as every feed of a process; they share the first one's address.
    pub(super) alone_from: usize,
    pub(super) readers: Vec<ReaderScript>,
    /// Slots of the ring between an engine and the streams.
    pub(super) ring_slots: usize,
    /// How long faults go on.
    pub(super) faulty: Nanos,
    /// By time.
    pub actions: Vec<Action>,
}

const KINDS: usize = 19;

impl Script {
    /// Returns the script of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw::new(mix(seed, 0x6d61_726b_6574));
        let count = 1 + draw.weighted(&[3, 1]);
        let first = draw.below(Venue::COUNT as u64) as usize;
        let mut markets: Vec<Market> = (0..count)
            .map(|number| Market {
                venue: Venue::ALL[(first + number) % Venue::COUNT],
                instruments: draw.between(1, 3) as u32,
                step: Nanos::from_millis(draw.between(5, 60)),
                latency: Nanos(draw.between(50_000, 80_000_000)),
            })
            .collect();
        let faulty = Nanos::from_secs(draw.between(5, 30));
        // About half of the kinds, each seed its own.
        let kinds: Vec<usize> = (0..KINDS).filter(|_| draw.chance(1, 2)).collect();
        let mut actions = Vec::new();
        if !kinds.is_empty() {
            for _ in 0..draw.between(3, 40) {
                let kind = draw.pick(&kinds);
                let deed = deed(kind, &mut draw);
                let at = Nanos(draw.between(500_000_000, faulty.0));
                let venue = draw.below(count as u64) as usize;
                actions.push(Action { at, venue, deed, draw: draw.next() });
            }
        }
        // Drawn apart, so that the rest of a seed stays as it was before there were any.
        let mut draw = Draw::new(mix(seed, 0x7379_6d62_6f6c));
        if draw.chance(1, 2) {
            for _ in 0..draw.between(1, 6) {
                let deed = Deed::Unfollow(draw.between(10, 5_000));
                let at = Nanos(draw.between(500_000_000, faulty.0));
                let venue = draw.below(count as u64) as usize;
                actions.push(Action { at, venue, deed, draw: draw.next() });
            }
        }
        let mut draw = Draw::new(mix(seed, 0x706c_616e_6e65));
        let kinds: Vec<usize> = (0..3).filter(|_| draw.chance(1, 3)).collect();
        if !kinds.is_empty() {
            for _ in 0..draw.between(1, 6) {
                let deed = match draw.pick(&kinds) {
                    0 => Deed::Replace,
                    1 => Deed::PlannedEnd(draw.between(50, 15_000)),
                    _ => Deed::SilentTopic(draw.between(10, 15_000)),
                };
                let at = Nanos(draw.between(500_000_000, faulty.0));
                let venue = draw.below(count as u64) as usize;
                actions.push(Action { at, venue, deed, draw: draw.next() });
            }
        }
        share_address(seed, &mut markets, faulty, &mut actions);
        let (readers, ring_slots) = readers(seed, count, faulty, &mut actions);
        actions.sort_by_key(|action| action.at);
        Self { seed, markets, alone_from: count, readers, ring_slots, faulty, actions }
    }

    /// The engine of a feed.
    pub(super) const fn engine_of(&self, feed: usize) -> usize {
        if feed < self.alone_from { 0 } else { 1 + feed - self.alone_from }
    }

    /// How many engines there are.
    pub(super) const fn engines(&self) -> usize {
        1 + self.markets.len() - self.alone_from
    }

    /// The same with other actions.
    #[must_use]
    pub fn with(&self, actions: Vec<Action>) -> Self {
        Self { actions, ..self.clone() }
    }

    /// The venues and how much is done, in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let markets: Vec<String> = self
            .markets
            .iter()
            .map(|market| format!("{:?} x{} every {} ms", market.venue, market.instruments, market.step.0 / 1_000_000))
            .collect();
        let (sharing, readers) = (self.markets.len() - self.alone_from, self.readers.len());
        format!(
            "{}; {sharing} share an address; {readers} readers; {} faults in {} s",
            markets.join(", "),
            self.actions.len(),
            self.faulty.0 / 1_000_000_000
        )
    }
}

/// More feeds of the first venue, and what goes wrong with their address.
fn share_address(seed: u64, markets: &mut Vec<Market>, faulty: Nanos, actions: &mut Vec<Action>) {
    let mut draw = Draw::new(mix(seed, 0x6164_6472_6573));
    if !draw.chance(1, 4) {
        return;
    }
    let Market { venue, step, .. } = markets[0];
    let first = markets.len();
    for _ in 0..draw.between(1, 3) {
        let instruments = draw.between(1, 3) as u32;
        let step = Nanos(step.0 + draw.between(20, 100) * 1_000_000);
        markets.push(Market { venue, instruments, step, latency: Nanos(draw.between(50_000, 80_000_000)) });
    }
    let kinds: Vec<usize> = (0..7).filter(|_| draw.chance(1, 2)).collect();
    if kinds.is_empty() {
        return;
    }
    for _ in 0..draw.between(1, 20) {
        let deed = match draw.pick(&kinds) {
            0 => Deed::Ban(draw.between(10, 150)),
            1 => Deed::Spend(draw.between(100, 5_000)),
            2 => Deed::Disconnect,
            3 => Deed::Reconnect,
            4 => Deed::Refusals,
            5 => Deed::SlowRest(draw.between(1, 8_000)),
            _ => Deed::Frame(Ill::Drop),
        };
        let at = Nanos(draw.between(500_000_000, faulty.0));
        let sharing: Vec<usize> = std::iter::once(0).chain(first..markets.len()).collect();
        let venue = draw.pick(&sharing);
        // A venue that restarts ends the connections of all.
        let is_all = deed == Deed::Disconnect && draw.chance(1, 2);
        for venue in sharing.into_iter().filter(|known| is_all || *known == venue) {
            actions.push(Action { at, venue, deed, draw: draw.next() });
        }
    }
}

/// Readers of the streams, what makes them slow, and the slots of the ring before the streams.
fn readers(seed: u64, count: usize, faulty: Nanos, actions: &mut Vec<Action>) -> (Vec<ReaderScript>, usize) {
    let mut draw = Draw::new(mix(seed, 0x7265_6164_6572));
    if !draw.chance(1, 2) {
        return (Vec::new(), 0);
    }
    // All levels of a book take about 220.
    let ring_slots = draw.pick(&[512, 1 << 12, 1 << 16]);
    let readers = (0..draw.between(1, 3)).map(|_| ReaderScript {
        begins: Nanos(if draw.chance(1, 2) { 0 } else { draw.below(faulty.0) }),
        reads_every: Nanos(draw.between(1_000_000, 150_000_000)),
        reads: draw.between(1, 200) as usize,
        messages_max: draw.pick(&[8, 32, 256, 1_024]),
        depth: draw.chance(1, 3).then_some(()),
        every: draw.chance(1, 3).then(|| Duration::from_millis(draw.between(10, 500))),
    });
    let readers: Vec<ReaderScript> = readers.collect();
    let kinds: Vec<usize> = (0..2).filter(|_| draw.chance(1, 2)).collect();
    if !kinds.is_empty() {
        for _ in 0..draw.between(1, 6) {
            let deed = match draw.pick(&kinds) {
                0 => Deed::SlowReader(draw.between(10, 8_000)),
                _ => Deed::SlowPublisher(draw.between(10, 4_000)),
            };
            let at = Nanos(draw.between(500_000_000, faulty.0));
            actions.push(Action { at, venue: draw.below(count as u64) as usize, deed, draw: draw.next() });
        }
    }
    (readers, ring_slots)
}

fn deed(kind: usize, draw: &mut Draw) -> Deed {
    match kind {
        0 => Deed::Frame(Ill::Drop),
        1 => Deed::Frame(Ill::Duplicate),
        2 => Deed::Frame(Ill::Swap),
        3 => Deed::Frame(Ill::Truncate),
        4 => Deed::Frame(Ill::FlipDigit),
        5 => Deed::Frame(Ill::Checksum),
        6 => Deed::Frame(Ill::Garbage),
        7 => Deed::Reset,
        8 => Deed::HalfOpen,
        9 => Deed::Silence(draw.between(1, 20)),
        10 => Deed::Disconnect,
        11 => Deed::SlowConsumer(draw.between(10, 5_000)),
        12 => Deed::StaleSnapshot,
        13 => Deed::PartialSnapshot,
        14 => Deed::Refusals,
        15 => Deed::SlowRest(draw.between(1, 8_000)),
        16 => Deed::Skew(draw.between(1, 7_200)),
        17 => Deed::Frame(Ill::Misquote),
        _ => Deed::Reconnect,
    }
}
