//! Scripts: the venues, their pace, and the faults of a seed.

use std::fmt;

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

/// A seed's venues and what goes wrong with them.
#[derive(Clone, Debug)]
pub struct Script {
    /// The seed.
    pub seed: u64,
    pub(super) markets: Vec<Market>,
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
        let markets: Vec<Market> = (0..count)
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
        actions.sort_by_key(|action| action.at);
        Self { seed, markets, faulty, actions }
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
        format!("{}; {} faults in {} s", markets.join(", "), self.actions.len(), self.faulty.0 / 1_000_000_000)
    }
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
