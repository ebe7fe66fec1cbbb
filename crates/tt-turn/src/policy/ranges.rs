//! Rules by range: of all that contain an address, the most specific one counts.

use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cidr::Cidr;
use super::{PeerDecision, RuleIndex};

/// What decides between two rules of the same range: the operator before the built-in list, a denial before an
/// allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    BuiltIn,
    Allowed,
    Denied,
}

/// A rule that applies to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) rule: RuleIndex,
    pub(super) decision: PeerDecision,
    prefix_bits: u8,
    precedence: Precedence,
}

impl Match {
    fn is_before(&self, other: &Self) -> bool {
        (self.prefix_bits, self.precedence) > (other.prefix_bits, other.precedence)
    }
}

/// Addresses from `first` to the next segment, and the rule that counts for them.
#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u128,
    found: Option<Match>,
}

/// Ranges of both families, cut into segments in which one rule counts. A look-up is a binary search.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    v4: Vec<Segment>,
    v6: Vec<Segment>,
}

impl Default for Ranges {
    fn default() -> Self {
        let whole = Segment { first: 0, found: None };
        Self { v4: vec![whole], v6: vec![whole] }
    }
}

impl Ranges {
    pub(super) fn push(&mut self, range: Cidr, decision: PeerDecision, precedence: Precedence, rule: RuleIndex) {
        let prefix_bits = range.prefix_bits();
        let found = Match { rule, decision, prefix_bits, precedence };
        let (segments, first, hosts, end) = match range.network() {
            IpAddr::V4(network) => {
                let hosts = u128::from(u32::MAX.checked_shr(u32::from(prefix_bits)).unwrap_or(0));
                (&mut self.v4, u128::from(network.to_bits()), hosts, u128::from(u32::MAX))
            }
            IpAddr::V6(network) => {
                let hosts = u128::MAX.checked_shr(u32::from(prefix_bits)).unwrap_or(0);
                (&mut self.v6, network.to_bits(), hosts, u128::MAX)
            }
        };
        let last = first | hosts;
        cut(segments, first);
        if last < end {
            cut(segments, last + 1);
        }
        for segment in segments.iter_mut().filter(|segment| (first..=last).contains(&segment.first)) {
            if segment.found.is_none_or(|before| found.is_before(&before)) {
                segment.found = Some(found);
            }
        }
    }

    #[inline]
    pub(super) fn find(&self, ip: IpAddr) -> Option<Match> {
        let (segments, bits) = match ip {
            IpAddr::V4(ip) => (&self.v4, u128::from(ip.to_bits())),
            IpAddr::V6(ip) => (&self.v6, ip.to_bits()),
        };
        let next = segments.partition_point(|segment| segment.first <= bits);
        segments.get(next.checked_sub(1)?)?.found
    }

    /// Iterates over first address, last address and rule of every stretch in which one rule counts.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (IpAddr, IpAddr, Option<Match>)> {
        let v4 = merged(&self.v4, u128::from(u32::MAX)).map(|(first, last, found)| {
            let ip = |bits: u128| IpAddr::V4(Ipv4Addr::from_bits(bits as u32));
            (ip(first), ip(last), found)
        });
        let v6 = merged(&self.v6, u128::MAX).map(|(first, last, found)| {
            let ip = |bits: u128| IpAddr::V6(Ipv6Addr::from_bits(bits));
            (ip(first), ip(last), found)
        });
        v4.chain(v6)
    }
}

/// Makes `at` the start of a segment.
fn cut(segments: &mut Vec<Segment>, at: u128) {
    let next = segments.partition_point(|segment| segment.first <= at);
    if let Some(before) = next.checked_sub(1).and_then(|index| segments.get(index)).filter(|before| before.first < at) {
        let found = before.found;
        segments.insert(next, Segment { first: at, found });
    }
}

/// Joins neighbouring segments of one rule.
fn merged(segments: &[Segment], end: u128) -> impl Iterator<Item = (u128, u128, Option<Match>)> {
    let mut rest = segments;
    core::iter::from_fn(move || {
        let (head, _) = rest.split_first()?;
        let same = rest.iter().take_while(|segment| segment.found == head.found).count();
        rest = &rest[same..];
        let last = rest.first().map_or(end, |next| next.first - 1);
        Some((head.first, last, head.found))
    })
}
