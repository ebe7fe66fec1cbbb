//! What a group of venues still allows an address, at the caller's times.

use tt_model::{InstrumentId, Nanos};
use tt_venue::rules::{AddressLimits, Rate};

/// What is left of a rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// When a whole burst is allowed again, since the beginning.
    whole_at: Nanos,
}

impl Pace {
    /// Returns the next time from `now` on that `rate` allows; it counts.
    pub fn take(&mut self, rate: Rate, now: Nanos) -> Nanos {
        let at = rate.next_at(self.whole_at, now);
        self.whole_at = self.whole_at.max(now).saturating_add(rate.gap);
        at
    }

    /// Allows nothing before `until`.
    fn hold(&mut self, until: Nanos) {
        self.whole_at = self.whole_at.max(until);
    }
}

/// A moment that was reserved for a snapshot and is needed no longer.
#[derive(Clone, Copy, Debug)]
struct Free {
    at: Nanos,
    /// The time up to the next one.
    gap: Nanos,
}

/// What one group of venues still allows an address. All times count from the beginning of the budget.
#[derive(Clone, Debug)]
pub struct AddressBudget {
    limits: AddressLimits,
    connects: Pace,
    messages: Pace,
    snapshots: Pace,
    free: Vec<Free>,
    /// The venue wants no REST request before.
    rest_not_before: Nanos,
}

impl AddressBudget {
    /// A budget of which nothing is used.
    #[must_use]
    pub fn new(limits: AddressLimits) -> Self {
        let (connects, messages, snapshots) = (Pace::default(), Pace::default(), Pace::default());
        Self { limits, connects, messages, snapshots, free: Vec::new(), rest_not_before: Nanos(0) }
    }

    /// Returns when the next connection may be opened; it counts.
    pub fn connect(&mut self, now: Nanos) -> Nanos {
        self.connects.take(self.limits.connects, now)
    }

    /// Returns when the next message may be sent, not before `at`; it counts.
    pub fn send(&mut self, at: Nanos, now: Nanos) -> Nanos {
        let Some(rate) = self.limits.messages else { return at };
        self.messages.take(rate, now).max(at)
    }

    /// Reserves a moment for a snapshot, after which there is none for `gap`.
    pub fn fetch(&mut self, gap: Nanos, now: Nanos) -> Nanos {
        self.free.retain(|free| free.at >= now && free.at >= self.rest_not_before);
        let fitting = self.free.iter().enumerate().filter(|(_, free)| free.gap >= gap);
        if let Some((index, free)) = fitting.min_by_key(|(_, free)| free.at) {
            let at = free.at;
            self.free.swap_remove(index);
            return at;
        }
        self.snapshots.take(Rate { burst: 1, gap }, now)
    }

    /// Gives a reserved moment to whoever needs one next: its snapshot is not asked for.
    pub fn give_back(&mut self, at: Nanos, gap: Nanos, now: Nanos) {
        if at >= now {
            self.free.push(Free { at, gap });
        }
    }

    /// Returns the moment instead of a reserved one that has come, where a ban came first: it holds for what had been put
    /// off, too.
    pub fn postponed(&mut self, at: Nanos, gap: Nanos, now: Nanos) -> Option<Nanos> {
        self.is_held(at).then(|| self.fetch(gap, now))
    }

    /// Allows no REST request before `wait` has passed.
    pub fn leave_alone(&mut self, wait: Nanos, now: Nanos) {
        self.rest_not_before = self.rest_not_before.max(now.saturating_add(wait));
        // What waits goes out one after the other then, not all at once.
        self.snapshots.hold(self.rest_not_before);
    }

    /// Whether the venue wants no REST request at `at`.
    #[must_use]
    pub fn is_held(&self, at: Nanos) -> bool {
        self.rest_not_before > at
    }

    /// Takes the weight that the venue says is used in the minute of its clock, and waits for the next one where that is
    /// too much.
    pub fn note_weight(&mut self, used: u32, unix_now: Nanos, now: Nanos) {
        if self.limits.weight.is_some_and(|limit| used >= limit.most) {
            let minute = 60 * Nanos::PER_SECOND;
            self.leave_alone(Nanos(minute - unix_now.0 % minute), now);
        }
    }
}

/// The books whose snapshots a connection has asked for, or waits to ask for.
#[derive(Clone, Debug, Default)]
pub struct Fetching {
    books: Vec<InstrumentId>,
}

impl Fetching {
    /// Notes that a snapshot is needed; `false` if one is on its way already. The engine asks again after a while, and a
    /// venue's limits or a ban may take longer.
    pub fn begin(&mut self, book: InstrumentId) -> bool {
        let is_new = !self.books.contains(&book);
        if is_new {
            self.books.push(book);
        }
        is_new
    }

    /// Notes that a snapshot has come, or comes no more.
    pub fn end(&mut self, book: InstrumentId) {
        self.books.retain(|known| *known != book);
    }
}

#[cfg(test)]
mod tests {
    use tt_venue::Venue;

    use super::*;

    const GAP: Nanos = Nanos(10);

    fn budget() -> AddressBudget {
        AddressBudget::new(Venue::BinanceSpot.rules().address)
    }

    #[test]
    fn a_burst_goes_out_at_once_and_the_rest_one_at_a_time() {
        let rate = Rate { burst: 3, gap: Nanos(100) };
        let mut pace = Pace::default();
        let times: [u64; 6] = [0, 0, 0, 0, 10, 1000].map(|now| pace.take(rate, Nanos(now)).0);
        assert_eq!(times, [0, 0, 0, 100, 200, 1000]);
    }

    /// "480 times per hour" for each connection (www.okx.com/docs-v5/en, "WebSocket: overview").
    #[test]
    fn requests_to_okx_are_at_most_480_in_any_hour() {
        let (rate, mut pace) = (Venue::Okx.rules().requests, Pace::default());
        let sent: Vec<Nanos> = (0..2_000).map(|_| pace.take(rate, Nanos(0))).collect();
        assert!(sent.windows(481).all(|window| window[480].0 - window[0].0 >= Nanos::from_secs(3_600).0));
    }

    /// "5 incoming messages per second" (developers.binance.com, "WebSocket Streams"), a pong among them.
    #[test]
    fn requests_to_binance_are_at_most_four_in_any_second() {
        let (rate, mut pace) = (Venue::BinanceSpot.rules().requests, Pace::default());
        let mut sent: Vec<Nanos> = (0..20).map(|_| pace.take(rate, Nanos(0))).collect();
        // After a pause there is a burst again.
        sent.extend((0..20).map(|_| pace.take(rate, Nanos::from_secs(60))));
        assert!(sent.windows(5).all(|window| window[4].0 - window[0].0 >= Nanos::from_secs(1).0), "{sent:?}");
        assert_eq!((sent[1], sent[21]), (Nanos(0), Nanos::from_secs(60)), "two at once");
    }

    #[test]
    fn the_moments_of_a_connection_that_ended_are_used_by_the_next_one() {
        let mut budget = budget();
        let reserved: Vec<Nanos> = (0..5).map(|_| budget.fetch(GAP, Nanos(0))).collect();
        assert_eq!(reserved, [0, 10, 20, 30, 40].map(Nanos));
        // The first is sent, the second belongs to another feed.
        for at in &reserved[2..] {
            budget.give_back(*at, GAP, Nanos(5));
        }
        budget.give_back(reserved[0], GAP, Nanos(5));
        let next: Vec<Nanos> = (0..4).map(|_| budget.fetch(GAP, Nanos(5))).collect();
        assert_eq!(next, [20, 30, 40, 50].map(Nanos));
    }

    #[test]
    fn a_moment_that_was_given_back_is_too_short_for_a_larger_gap_and_holds_in_no_ban() {
        let mut budget = budget();
        let at = budget.fetch(GAP, Nanos(5));
        budget.give_back(at, GAP, Nanos(5));
        assert_eq!(budget.fetch(Nanos(20), Nanos(5)), Nanos(15));
        budget.leave_alone(Nanos(100), Nanos(5));
        assert_eq!(budget.fetch(GAP, Nanos(5)), Nanos(105));
    }

    #[test]
    fn a_ban_postpones_what_had_its_moment_before_the_end() {
        let mut budget = budget();
        let reserved: Vec<Nanos> = (0..3).map(|_| budget.fetch(GAP, Nanos(0))).collect();
        budget.leave_alone(Nanos(15), Nanos(0));
        assert_eq!(budget.postponed(reserved[1], GAP, reserved[1]), Some(Nanos(30)));
        assert_eq!(budget.postponed(reserved[2], GAP, reserved[2]), None);
    }

    #[test]
    fn a_book_is_asked_for_once_until_its_snapshot_comes() {
        let (mut fetching, book) = (Fetching::default(), InstrumentId(3));
        assert!(fetching.begin(book) && fetching.begin(InstrumentId(4)));
        assert!(!fetching.begin(book));
        fetching.end(book);
        assert!(fetching.begin(book) && !fetching.begin(InstrumentId(4)));
    }
}
