//! What left on the wire, for each limit of traffic: the IP and UDP headers and what follows them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;
use tt_turn::DropReason;

use super::{Claim, Expected, Flow, Model, ledger::network};
use crate::turn_world::limits::Rates;

/// Rounding of the engine's clock.
const SLACK: u128 = 1_000;
const SECOND: u128 = Nanos::PER_SECOND as u128;

/// A bucket that leaks: what it holds, in units and nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    at: Nanos,
    held: u128,
}

impl Level {
    fn at(&self, now: Nanos, rate: u64) -> u128 {
        self.held.saturating_sub(u128::from(rate) * u128::from(now.saturating_sub(self.at).0))
    }

    /// Whether so many units pass: a second's worth at once, and any number where nothing is held.
    fn takes(&self, now: Nanos, rate: u64, units: u64, rest: u128) -> bool {
        let (held, slack) = (self.at(now, rate), u128::from(rate) * SLACK);
        held <= slack || held + u128::from(units) * SECOND <= u128::from(rate) * SECOND - rest + slack
    }

    /// Whether it may have been too full for so many units.
    fn may_reject(&self, now: Nanos, rate: u64, units: u64, rest: u128) -> bool {
        let (held, slack) = (self.at(now, rate), u128::from(rate) * SLACK);
        held > 0 && held + u128::from(units) * SECOND + slack > u128::from(rate) * SECOND - rest
    }

    fn add(&mut self, now: Nanos, rate: u64, units: u64) {
        *self = Self { at: now, held: self.at(now, rate) + u128::from(units) * SECOND };
    }

    fn fill(&mut self, now: Nanos, rate: u64) {
        *self = Self { at: now, held: self.at(now, rate).max(u128::from(rate) * SECOND) };
    }
}

/// Whose a limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    UserBytes(usize),
    UserPackets(usize),
    SourceBytes(IpAddr),
    SourcePackets(IpAddr),
    Allocation(u64),
    Total,
    /// Attempts of a user, by the rate below which little of the total is sent.
    Little(usize),
    /// As if all sources shared one bucket, which two of them may.
    AllSourceBytes,
    AllSourcePackets,
}

/// A datagram that leaves, or was to leave, for an allocation.
#[derive(Clone, Copy, Debug)]
pub(in crate::turn_world) struct Leaving {
    pub(in crate::turn_world) user: usize,
    serial: u64,
    source: IpAddr,
    to: SocketAddr,
    bytes: u64,
}

impl Leaving {
    /// The same with a message of so many bytes.
    pub(in crate::turn_world) fn with_message(self, len: usize) -> Self {
        Self { bytes: on_the_wire(self.to, len), ..self }
    }
}

/// RFC 791, RFC 8200 and RFC 768: the bytes of a datagram to an address.
fn on_the_wire(to: SocketAddr, len: usize) -> u64 {
    let header = if to.ip().to_canonical().is_ipv4() { 20 } else { 40 };
    header + 8 + len as u64
}

/// What the limits have let pass: surely, and at most.
pub(in crate::turn_world) struct Meter {
    rates: Rates,
    percent: u8,
    sure: BTreeMap<Whose, Level>,
    most: BTreeMap<Whose, Level>,
}

impl Meter {
    pub(super) fn new(rates: Rates, percent: u8) -> Self {
        Self { rates, percent, sure: BTreeMap::new(), most: BTreeMap::new() }
    }

    fn is_unlimited(&self) -> bool {
        self.rates == Rates::NONE
    }

    fn rate(&self, whose: Whose) -> u64 {
        match whose {
            Whose::UserBytes(_) => self.rates.user_bytes,
            Whose::UserPackets(_) => self.rates.user_packets,
            Whose::SourceBytes(_) | Whose::AllSourceBytes => self.rates.source_bytes,
            Whose::SourcePackets(_) | Whose::AllSourcePackets => self.rates.source_packets,
            Whose::Allocation(_) => self.rates.allocation_bytes,
            Whose::Total => self.rates.total_bytes,
            Whose::Little(_) => self.rates.total_bytes / 100 * u64::from(100 - self.percent),
        }
    }

    /// An allocation was made: it starts with an empty bucket, and so does a user who had nothing before.
    pub(super) fn begin(&mut self, now: Nanos, user: usize, serial: u64, is_users_first: bool) {
        for whose in [Whose::UserBytes(user), Whose::UserPackets(user), Whose::Little(user), Whose::Allocation(serial)]
        {
            let rate = self.rate(whose);
            if rate == u64::MAX {
                continue;
            }
            self.most.entry(whose).or_default().fill(now, rate);
            if is_users_first || whose == Whose::Allocation(serial) {
                self.sure.entry(whose).or_default().fill(now, rate);
            }
        }
    }

    pub(super) fn end(&mut self, serial: u64) {
        self.sure.remove(&Whose::Allocation(serial));
        self.most.remove(&Whose::Allocation(serial));
    }

    /// A datagram left, surely or perhaps; the limit that it surely breaks, if there is one.
    pub(in crate::turn_world) fn left(&mut self, now: Nanos, leaving: &Leaving, is_sure: bool) -> Option<String> {
        if self.is_unlimited() {
            return None;
        }
        let Leaving { user, serial, source, bytes, .. } = *leaving;
        let source = network(source);
        let parts = [
            (Whose::UserBytes(user), bytes),
            (Whose::UserPackets(user), 1),
            (Whose::SourceBytes(source), bytes),
            (Whose::SourcePackets(source), 1),
            (Whose::AllSourceBytes, bytes),
            (Whose::AllSourcePackets, 1),
            (Whose::Allocation(serial), bytes),
            (Whose::Total, bytes),
            (Whose::Little(user), bytes),
        ];
        let mut broken = None;
        for (whose, units) in parts {
            let rate = self.rate(whose);
            if rate == u64::MAX {
                continue;
            }
            self.most.entry(whose).or_default().add(now, rate, units);
            if matches!(whose, Whose::AllSourceBytes | Whose::AllSourcePackets) || !is_sure {
                continue;
            }
            let rest = if whose == Whose::Total { self.rest_of(now, user, bytes) } else { 0 };
            let level = self.sure.entry(whose).or_default();
            if !matches!(whose, Whose::Little(_)) && !level.takes(now, rate, units, rest) {
                broken = Some(format!("{units} of {whose:?} beyond {rate} a second: {level:?}"));
            }
            level.add(now, rate, units);
            if matches!(whose, Whose::Little(_)) {
                // Who has sent much does so for two seconds at most.
                level.held = level.held.min(2 * SECOND * u128::from(rate));
            }
        }
        broken
    }

    /// What a user who surely sends much has to leave of the total.
    fn rest_of(&self, now: Nanos, user: usize, bytes: u64) -> u128 {
        let (whose, slack) = (Whose::Little(user), 2 * SLACK * u128::from(self.rates.total_bytes));
        let (rate, level) = (self.rate(whose), self.sure.get(&whose));
        let held = level.map_or(0, |level| level.at(now, rate)) + u128::from(bytes) * SECOND;
        if held > u128::from(rate) * SECOND + slack { self.rest_of_total() } else { 0 }
    }

    fn rest_of_total(&self) -> u128 {
        u128::from(self.rates.total_bytes) * SECOND / 100 * u128::from(100 - self.percent)
    }

    /// Whether the datagram may have been dropped for a limit.
    pub(in crate::turn_world) fn may_drop(&mut self, now: Nanos, leaving: &Leaving, reason: DropReason) -> bool {
        let Leaving { user, serial, source, bytes, .. } = *leaving;
        let source = network(source);
        let full = |whose: Whose, units: u64, rest: u128| {
            let (rate, level) = (self.rate(whose), self.most.get(&whose));
            rate != u64::MAX && level.is_some_and(|level| level.may_reject(now, rate, units, rest))
        };
        let whose: &[(Whose, u64)] = if reason == DropReason::UserBandwidth {
            &[(Whose::UserBytes(user), bytes)]
        } else if reason == DropReason::UserPackets {
            &[(Whose::UserPackets(user), 1)]
        } else if reason == DropReason::SourceBandwidth {
            &[(Whose::SourceBytes(source), bytes), (Whose::AllSourceBytes, bytes)]
        } else if reason == DropReason::SourcePackets {
            &[(Whose::SourcePackets(source), 1), (Whose::AllSourcePackets, 1)]
        } else if reason == DropReason::AllocationBandwidth {
            &[(Whose::Allocation(serial), bytes)]
        } else {
            // Who sends little has what others leave.
            let (rate, level) = (self.rate(Whose::Little(user)), self.most.get(&Whose::Little(user)));
            let held = level.map_or(0, |level| level.at(now, rate)) + u128::from(bytes) * SECOND;
            let sends_little = held + SLACK * u128::from(rate) <= u128::from(rate) * SECOND;
            let rest = self.rest_of_total();
            let may = full(Whose::Total, bytes, if sends_little { 0 } else { rest });
            if self.rates.total_bytes != u64::MAX {
                // What is dropped for the total was an attempt too.
                let little = Whose::Little(user);
                let rate = self.rate(little);
                self.most.entry(little).or_default().add(now, rate, bytes);
            }
            return may && (reason == DropReason::TotalBandwidth || !sends_little);
        };
        whose.iter().any(|(whose, units)| full(*whose, *units, 0))
    }
}

/// A Data indication is longer than its payload by so much, padding included.
const INDICATION_MAX: usize = 56;

impl Model {
    /// What leaves where the datagram goes on as expected, with a payload of `len` bytes unless it says so itself. To a
    /// client, it has at most as many bytes.
    pub(in crate::turn_world) fn leaving(&self, expected: &Expected<'_>, len: usize) -> Option<Leaving> {
        let of = |flow: &Flow, claim: &Claim, to: SocketAddr, len: usize| Leaving {
            user: claim.user,
            serial: claim.serial,
            source: flow.client.ip(),
            to,
            bytes: on_the_wire(to, len),
        };
        match expected {
            Expected::ToPeer { relay, peer, payload, .. } => {
                let flow = self.by_relay.get(relay)?;
                Some(of(flow, self.claims.get(flow)?, *peer, payload.len()))
            }
            Expected::ToClient { flow, .. } => {
                Some(of(flow, self.claims.get(flow)?, flow.client, len + INDICATION_MAX))
            }
            Expected::Silence | Expected::Answer(_) => None,
        }
    }
}
