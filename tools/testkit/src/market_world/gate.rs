//! What a venue counts by the address of its clients, from its documentation, and what it does to who exceeds it.

use std::collections::VecDeque;

use sim::Venue;
use tt_model::Nanos;

const MINUTE: Nanos = Nanos::from_secs(60);
/// What Deribit takes for a request to subscribe, gives to who has used nothing, and gives back (docs.deribit.com, "Rate
/// limits").
const CREDITS_PER_REQUEST: u64 = 3_000;
const CREDITS_MAX: u64 = 30_000;
const CREDITS_PER_MS: u64 = 10;

/// At most so many in any time of this length.
#[derive(Clone, Copy, Debug)]
struct Window {
    most: usize,
    length: Nanos,
}

/// The weights of REST requests in a minute of the venue's clock, and that of a snapshot of 1,000 levels.
#[derive(Clone, Copy, Debug)]
struct Weights {
    most: u32,
    snapshot: u32,
    /// From here on a client waits for the next minute: the rest is for other programs.
    wary: u32,
}

/// New connections of an address.
const fn connects(venue: Venue) -> Option<Window> {
    let (most, seconds) = match venue {
        // "300 connections per attempt every 5 minutes per IP".
        Venue::BinanceSpot | Venue::BinanceUsdm => (300, 300),
        // "3 requests per second (based on IP)".
        Venue::Okx => (3, 1),
        // "500 connections within a 5-minute window".
        Venue::Bybit => (500, 300),
        // "approximately 150 connections per rolling 10 minutes per IP".
        Venue::Kraken => (150, 600),
        // Counts open ones.
        Venue::Deribit => return None,
    };
    Some(Window { most, length: Nanos::from_secs(seconds) })
}

/// Requests of a connection.
const fn requests(venue: Venue) -> Option<Window> {
    let (most, seconds) = match venue {
        // "5 incoming messages per second"; "10" for futures.
        Venue::BinanceSpot => (5, 1),
        Venue::BinanceUsdm => (10, 1),
        // "480 times per hour".
        Venue::Okx => (480, 3_600),
        // Not documented, or counted in credits.
        Venue::Bybit | Venue::Kraken | Venue::Deribit => return None,
    };
    Some(Window { most, length: Nanos::from_secs(seconds) })
}

const fn weights(venue: Venue) -> Option<Weights> {
    match venue {
        Venue::BinanceSpot => Some(Weights { most: 6_000, snapshot: 50, wary: 3_000 }),
        // With COIN-M together.
        Venue::BinanceUsdm => Some(Weights { most: 2_400, snapshot: 20, wary: 1_800 }),
        Venue::Okx | Venue::Bybit | Venue::Kraken | Venue::Deribit => None,
    }
}

/// Times of the last events.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(VecDeque<Nanos>);

impl Times {
    /// Notes one more; how many too many there are.
    fn note(&mut self, window: Option<Window>, now: Nanos) -> Option<String> {
        let window = window?;
        while self.0.front().is_some_and(|first| now.0 - first.0 >= window.length.0) {
            self.0.pop_front();
        }
        self.0.push_back(now);
        let (len, seconds) = (self.0.len(), window.length.0 / Nanos::PER_SECOND);
        (len > window.most).then(|| format!("{len} in {seconds} s, {} are allowed", window.most))
    }
}

/// A REST answer of the venue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    /// 200 with a snapshot, and the weight that is used in this minute.
    Snapshot(String, u32),
    /// 429 or 418: nothing before so many seconds.
    Later(u64),
}

/// A venue's counters of one address, and what its clients have been asked to wait for.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) venue: Venue,
    connects: Times,
    /// The credits that are missing, and since when.
    spent: (u64, Nanos),
    minute: u64,
    used: u32,
    banned_until: Nanos,
    /// The venue has asked for no request before.
    pub(super) hold_until: Nanos,
}

impl Gate {
    pub(super) fn new(venue: Venue) -> Self {
        let (connects, spent) = (Times::default(), (0, Nanos(0)));
        Self { venue, connects, spent, minute: 0, used: 0, banned_until: Nanos(0), hold_until: Nanos(0) }
    }

    /// A client opens a connection.
    ///
    /// # Errors
    /// One too many.
    pub(super) fn connect(&mut self, now: Nanos) -> Result<(), String> {
        match self.connects.note(connects(self.venue), now) {
            Some(what) => Err(format!("connections: {what}")),
            None => Ok(()),
        }
    }

    /// A client makes a request on a connection with these `times`.
    ///
    /// # Errors
    /// One too many.
    pub(super) fn request(&mut self, times: &mut Times, now: Nanos) -> Result<(), String> {
        if let Some(what) = times.note(requests(self.venue), now) {
            return Err(format!("requests: {what}"));
        }
        if self.venue == Venue::Deribit {
            let (spent, since) = self.spent;
            let back = (now.0 - since.0) / 1_000_000 * CREDITS_PER_MS;
            let spent = spent.saturating_sub(back) + CREDITS_PER_REQUEST;
            self.spent = (spent, now);
            if spent > CREDITS_MAX {
                return Err(format!("{spent} credits are used, {CREDITS_MAX} are there"));
            }
        }
        Ok(())
    }

    /// A client sends a request by REST.
    ///
    /// # Errors
    /// The venue has asked it to wait.
    pub(super) fn send(&self, now: Nanos) -> Result<(), String> {
        let until = self.hold_until;
        if now < until {
            return Err(format!("a request at {} although the venue asked to wait until {}", now.0, until.0));
        }
        Ok(())
    }

    /// A request for a snapshot arrives. The seconds to wait, where the address is banned; else the weight that is used.
    ///
    /// # Errors
    /// More weight than the venue allows.
    pub(super) fn arrive(&mut self, unix: Nanos, now: Nanos) -> Result<Result<u32, u64>, String> {
        let Some(weights) = weights(self.venue) else { return Ok(Ok(0)) };
        if now < self.banned_until {
            return Ok(Err((self.banned_until.0 - now.0).div_ceil(Nanos::PER_SECOND)));
        }
        self.turn(unix);
        self.used += weights.snapshot;
        if self.used > weights.most {
            return Err(format!("a weight of {} in a minute, {} is allowed", self.used, weights.most));
        }
        Ok(Ok(self.used))
    }

    fn turn(&mut self, unix: Nanos) {
        let minute = unix.0 / MINUTE.0;
        if minute != self.minute {
            (self.minute, self.used) = (minute, 0);
        }
    }

    /// Another program at the address uses some of the weight; it leaves a fifth.
    pub(super) fn spend(&mut self, weight: u32, unix: Nanos) {
        let Some(weights) = weights(self.venue) else { return };
        self.turn(unix);
        let most = weights.most / 5 * 4;
        self.used = self.used.max((self.used + weight).min(most));
    }

    /// Another program at the address has exceeded the limits.
    pub(super) fn ban(&mut self, pause: Nanos, now: Nanos) {
        self.banned_until = self.banned_until.max(Nanos(now.0 + pause.0));
    }

    /// An answer arrives: from now on the clients know.
    pub(super) fn learn(&mut self, answer: &Answer, unix: Nanos, now: Nanos) {
        let until = match answer {
            Answer::Later(seconds) => now.0 + seconds * Nanos::PER_SECOND,
            Answer::Snapshot(_, used) if weights(self.venue).is_some_and(|weights| *used >= weights.wary) => {
                now.0 + MINUTE.0 - unix.0 % MINUTE.0
            }
            Answer::Snapshot(..) => return,
        };
        self.hold_until = self.hold_until.max(Nanos(until));
    }

    /// The latest time at which a snapshot leaves that is asked for at `asked`, where `books` books share the address:
    /// half of the venue's budget is enough for one after the other.
    pub(super) fn fetch_max(&self, asked: Nanos, books: u64) -> Nanos {
        let gap = weights(self.venue)
            .map_or(0, |weights| MINUTE.0 * u64::from(2 * weights.snapshot) / u64::from(weights.most));
        Nanos(asked.max(self.hold_until).0 + gap * (books + 1))
    }
}
