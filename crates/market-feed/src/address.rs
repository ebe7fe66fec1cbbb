//! What a venue counts by the address of its clients: one budget for all feeds that share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tt_model::Nanos;
use tt_venue::rules::{AddressLimits, Rate};

use super::settings::FeedConfig;

/// Budgets of all venues that a process speaks to.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Arc<Mutex<HashMap<Shared, Address>>>);

/// The clients that share a budget: those of a group of venues at one host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shared {
    group: &'static str,
    /// Empty at the venues' own hosts.
    host: String,
}

impl Shared {
    fn of(feed: &FeedConfig) -> Self {
        let host = if feed.is_at_venue() { "" } else { feed.streams.host().unwrap_or_default() };
        Self { group: feed.venue.rules().address.group, host: host.to_owned() }
    }
}

impl Addresses {
    /// The budget of a feed.
    pub(super) fn of(&self, feed: &FeedConfig) -> Address {
        let new = || Address { limits: feed.venue.rules().address, state: Arc::new(Mutex::new(State::new())) };
        lock(&self.0).entry(Shared::of(feed)).or_insert_with(new).clone()
    }

    /// Checks that `feeds` need no more connections and topics than their venues allow one address.
    ///
    /// # Errors
    /// The first limit that they exceed.
    pub(super) fn check(feeds: &[FeedConfig]) -> anyhow::Result<()> {
        let mut needs: HashMap<Shared, (usize, usize)> = HashMap::new();
        for feed in feeds {
            let (limits, name) = (feed.venue.rules().address, feed.venue.name());
            let (connections, topics) = needs.entry(Shared::of(feed)).or_default();
            *connections += feed.links().len() + usize::from(feed.account.is_some());
            *topics += feed.symbols.len() * feed.topics().count();
            anyhow::ensure!(
                *connections <= limits.connections_max as usize,
                "market: {name} allows {} connections of one address, and the feeds need {connections}",
                limits.connections_max
            );
            let most = limits.topics_max.unwrap_or(u32::MAX);
            anyhow::ensure!(
                *topics <= most as usize,
                "market: {name} allows {most} topics of one address, and the feeds need {topics}"
            );
        }
        Ok(())
    }
}

/// What one group of venues still allows this address.
#[derive(Clone, Debug)]
pub(super) struct Address {
    limits: AddressLimits,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    began: Instant,
    connects: Pace,
    messages: Pace,
    snapshots: Pace,
    /// The venue wants no REST request before.
    rest_not_before: Instant,
}

impl State {
    fn new() -> Self {
        let now = Instant::now();
        let (connects, messages, snapshots) = (Pace::default(), Pace::default(), Pace::default());
        Self { began: now, connects, messages, snapshots, rest_not_before: now }
    }
}

impl Address {
    /// When the next connection may be opened; it counts.
    pub(super) fn connect(&self) -> Instant {
        let state = &mut *lock(&self.state);
        state.connects.take(self.limits.connects, state.began)
    }

    /// When the next message may be sent, not before `at`; it counts.
    pub(super) fn send(&self, at: Instant) -> Instant {
        let Some(rate) = self.limits.messages else { return at };
        let state = &mut *lock(&self.state);
        state.messages.take(rate, state.began).max(at)
    }

    /// When the next snapshot may be asked for, at least `gap` after the one before; it counts.
    pub(super) fn fetch(&self, gap: Duration) -> Instant {
        let state = &mut *lock(&self.state);
        let rate = Rate { burst: 1, gap: Nanos(u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX)) };
        state.snapshots.take(rate, state.began)
    }

    /// No REST request before `wait` has passed.
    pub(super) fn leave_alone(&self, wait: Duration) {
        let state = &mut *lock(&self.state);
        state.rest_not_before = state.rest_not_before.max(Instant::now() + wait);
        // What waits goes out one after the other then, not all at once.
        state.snapshots.hold(state.began, state.rest_not_before);
    }

    /// Whether the venue wants no REST request at `at`.
    pub(super) fn is_held(&self, at: Instant) -> bool {
        lock(&self.state).rest_not_before > at
    }

    /// Takes the weight that the venue says is used in the minute of its clock, and waits for the next one where that is
    /// too much.
    pub(super) fn note_weight(&self, used: u32, unix_now: Nanos) {
        if self.limits.weight.is_some_and(|limit| used >= limit.most) {
            let minute = 60 * Nanos::PER_SECOND;
            self.leave_alone(Duration::from_nanos(minute - unix_now.0 % minute));
        }
    }

    /// The header with the weight that is used.
    pub(super) fn weight_header(&self) -> Option<&'static str> {
        self.limits.weight.map(|limit| limit.header)
    }
}

/// What is left of a rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// When a whole burst is allowed again, since the beginning.
    whole_at: Nanos,
}

impl Pace {
    /// The next time that `rate` allows; it counts. Times are since `began`.
    pub(super) fn take(&mut self, rate: Rate, began: Instant) -> Instant {
        let now = Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        began + Duration::from_nanos(self.next(rate, now).0)
    }

    /// Allows nothing before `until`.
    fn hold(&mut self, began: Instant, until: Instant) {
        let until = until.saturating_duration_since(began).as_nanos();
        self.whole_at = self.whole_at.max(Nanos(u64::try_from(until).unwrap_or(u64::MAX)));
    }

    fn next(&mut self, rate: Rate, now: Nanos) -> Nanos {
        let at = rate.next_at(self.whole_at, now);
        self.whole_at = self.whole_at.max(now).saturating_add(rate.gap);
        at
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tt_venue::Venue;

    use super::*;

    fn of(venue: Venue, symbols: usize) -> FeedConfig {
        FeedConfig::public(venue, (0..symbols).map(|number| format!("S{number}")).collect())
    }

    #[test]
    fn a_burst_goes_out_at_once_and_the_rest_one_at_a_time() {
        let rate = Rate { burst: 3, gap: Nanos(100) };
        let mut pace = Pace::default();
        let times: [u64; 6] = [0, 0, 0, 0, 10, 1000].map(|now| pace.next(rate, Nanos(now)).0);
        assert_eq!(times, [0, 0, 0, 100, 200, 1000]);
    }

    /// "480 times per hour" for each connection (www.okx.com/docs-v5/en, "WebSocket: overview").
    #[test]
    fn requests_to_okx_are_at_most_480_in_any_hour() {
        let (rate, mut pace) = (Venue::Okx.rules().requests, Pace::default());
        let sent: Vec<Nanos> = (0..2_000).map(|_| pace.next(rate, Nanos(0))).collect();
        assert!(sent.windows(481).all(|window| window[480].0 - window[0].0 >= Nanos::from_secs(3_600).0));
    }

    /// "5 incoming messages per second" (developers.binance.com, "WebSocket Streams"), a pong among them.
    #[test]
    fn requests_to_binance_are_at_most_four_in_any_second() {
        let (rate, mut pace) = (Venue::BinanceSpot.rules().requests, Pace::default());
        let mut sent: Vec<Nanos> = (0..20).map(|_| pace.next(rate, Nanos(0))).collect();
        // After a pause there is a burst again.
        sent.extend((0..20).map(|_| pace.next(rate, Nanos::from_secs(60))));
        assert!(sent.windows(5).all(|window| window[4].0 - window[0].0 >= Nanos::from_secs(1).0), "{sent:?}");
        assert_eq!((sent[1], sent[21]), (Nanos(0), Nanos::from_secs(60)), "two at once");
    }

    #[test]
    fn usdm_and_coinm_share_a_budget_and_spot_has_another() {
        let addresses = Addresses::default();
        let gap = Duration::from_secs(100);
        let now = Instant::now();
        let fetch = |venue: Venue| addresses.of(&of(venue, 1)).fetch(gap).saturating_duration_since(now);
        assert!(fetch(Venue::BinanceUsdm) < gap / 2);
        assert!(fetch(Venue::BinanceCoinm) > gap / 2, "the second of the group waits");
        assert!(fetch(Venue::BinanceSpot) < gap / 2, "spot is counted apart");
        let elsewhere = FeedConfig::at(Venue::BinanceCoinm, "ws://127.0.0.1:7/stream".parse().unwrap(), Vec::new());
        assert!(addresses.of(&elsewhere).fetch(gap).saturating_duration_since(now) < gap / 2, "another host");
        // Half of the 2,400 of a minute are for snapshots of weight 20.
        let rules = Venue::BinanceCoinm.rules();
        assert_eq!((rules.address.group, rules.snapshot_gap), ("binance futures", Nanos::from_secs(1)));
    }

    #[test]
    fn a_ban_and_a_spent_weight_hold_for_every_feed_of_the_group() {
        let addresses = Addresses::default();
        let (usdm, coinm) = (addresses.of(&of(Venue::BinanceUsdm, 1)), addresses.of(&of(Venue::BinanceCoinm, 1)));
        let now = Instant::now();
        usdm.note_weight(1799, Nanos::from_secs(90));
        assert!(coinm.fetch(Duration::ZERO) < now + Duration::from_secs(1));
        usdm.note_weight(1800, Nanos::from_secs(90));
        let wait = coinm.fetch(Duration::ZERO) - now;
        assert!((29..=31).contains(&wait.as_secs()), "until the next minute of the clock: {wait:?}");
        usdm.leave_alone(Duration::from_secs(259_200));
        assert!(coinm.fetch(Duration::ZERO) - now >= Duration::from_secs(259_200), "three days");
    }

    #[test]
    fn rejects_feeds_that_need_more_than_an_address_may_have() {
        let said = |feeds: &[FeedConfig]| Addresses::check(feeds).map_err(|error| error.to_string());
        assert_eq!(said(&[of(Venue::Hyperliquid, 125), of(Venue::Hyperliquid, 125)]), Ok(()));
        let most = "market: hyperliquid allows 1000 topics of one address, and the feeds need 1004";
        assert_eq!(said(&[of(Venue::Hyperliquid, 125), of(Venue::Hyperliquid, 126)]), Err(most.to_owned()));
        let most = "market: hyperliquid allows 10 connections of one address, and the feeds need 11";
        assert_eq!(said(&vec![of(Venue::Hyperliquid, 1); 11]), Err(most.to_owned()));
        assert_eq!(said(&vec![of(Venue::BinanceUsdm, 1); 100]), Ok(()));
    }
}
