//! What a venue counts by the address of its clients: one budget for all feeds that share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tt_model::Nanos;
use tt_venue::rules::AddressLimits;

use super::settings::FeedConfig;

mod budget;

pub use budget::{AddressBudget, Fetching, Pace};

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
        let new = || Address::new(feed.venue.rules().address);
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
    weight_header: Option<&'static str>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    began: Instant,
    budget: AddressBudget,
}

impl State {
    fn new(limits: AddressLimits) -> Self {
        Self { began: Instant::now(), budget: AddressBudget::new(limits) }
    }

    fn since_begin(&self, at: Instant) -> Nanos {
        nanos(at.saturating_duration_since(self.began))
    }

    fn now(&self) -> Nanos {
        self.since_begin(Instant::now())
    }

    fn instant(&self, at: Nanos) -> Instant {
        self.began + Duration::from_nanos(at.0)
    }
}

impl Address {
    fn new(limits: AddressLimits) -> Self {
        let weight_header = limits.weight.map(|limit| limit.header);
        Self { weight_header, state: Arc::new(Mutex::new(State::new(limits))) }
    }

    /// When the next connection may be opened; it counts.
    pub(super) fn connect(&self) -> Instant {
        let state = &mut *lock(&self.state);
        let at = state.budget.connect(state.now());
        state.instant(at)
    }

    /// When the next message may be sent, not before `at`; it counts.
    pub(super) fn send(&self, at: Instant) -> Instant {
        let state = &mut *lock(&self.state);
        let sent_at = state.budget.send(state.since_begin(at), state.now());
        state.instant(sent_at).max(at)
    }

    /// When the next snapshot may be asked for, at least `gap` after the one before; it counts.
    pub(super) fn fetch(&self, gap: Duration) -> Instant {
        let state = &mut *lock(&self.state);
        let at = state.budget.fetch(nanos(gap), state.now());
        state.instant(at)
    }

    /// A moment that [`fetch`](Self::fetch) reserved.
    pub(super) fn place(&self, at: Instant, gap: Duration) -> Place {
        Place { address: self.clone(), at, gap, is_used: false }
    }

    /// No REST request before `wait` has passed.
    pub(super) fn leave_alone(&self, wait: Duration) {
        let state = &mut *lock(&self.state);
        state.budget.leave_alone(nanos(wait), state.now());
    }

    /// Whether the venue wants no REST request at `at`.
    pub(super) fn is_held(&self, at: Instant) -> bool {
        let state = lock(&self.state);
        state.budget.is_held(state.since_begin(at))
    }

    /// Takes the weight that the venue says is used in the minute of its clock, and waits for the next one where that is
    /// too much.
    pub(super) fn note_weight(&self, used: u32, unix_now: Nanos) {
        let state = &mut *lock(&self.state);
        state.budget.note_weight(used, unix_now, state.now());
    }

    /// The header with the weight that is used.
    pub(super) const fn weight_header(&self) -> Option<&'static str> {
        self.weight_header
    }
}

/// A reserved moment for a snapshot. If it is dropped before, another one has it.
#[derive(Debug)]
pub(super) struct Place {
    address: Address,
    at: Instant,
    gap: Duration,
    is_used: bool,
}

impl Place {
    /// Waits for the moment, and for the end of a ban that comes first.
    pub(super) async fn wait(mut self) {
        loop {
            tokio::time::sleep_until(self.at.into()).await;
            match self.postponed() {
                Some(at) => self.at = at,
                None => break,
            }
        }
        self.is_used = true;
    }

    fn postponed(&self) -> Option<Instant> {
        let state = &mut *lock(&self.address.state);
        let at = state.budget.postponed(state.since_begin(self.at), nanos(self.gap), state.now())?;
        Some(state.instant(at))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_used {
            let state = &mut *lock(&self.address.state);
            state.budget.give_back(state.since_begin(self.at), nanos(self.gap), state.now());
        }
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
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
