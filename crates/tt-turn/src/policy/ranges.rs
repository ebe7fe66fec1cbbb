//! Rules by range: of all that contain an address and a port, the most specific one counts.

use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::peer_range::PeerRange;
use super::{PeerDecision, RuleIndex};

/// What decides between two rules of equally large ranges: the operator before the built-in list, a denial before an
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
    /// Number of addresses and number of ports after the first: fewer addresses count before fewer ports.
    size: (u128, u16),
    precedence: Precedence,
}

impl Match {
    fn is_before(&self, other: &Self) -> bool {
        self.size < other.size || self.size == other.size && self.precedence > other.precedence
    }
}

/// Ports from `first` to the next one of these, and the rule that counts for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortSegment {
    first: u16,
    found: Option<Match>,
}

/// Addresses from `first` to the next segment.
#[derive(Clone, Debug)]
struct Segment {
    first: u128,
    /// The rule that counts for the ports from 0.
    found: Option<Match>,
    /// The other ports, if they have other rules.
    more: Vec<PortSegment>,
}

impl Segment {
    #[inline]
    fn find(&self, port: u16) -> Option<&Match> {
        let next = self.more.partition_point(|segment| segment.first <= port);
        match next.checked_sub(1).and_then(|index| self.more.get(index)) {
            Some(segment) => segment.found.as_ref(),
            None => self.found.as_ref(),
        }
    }

    fn ports(&self) -> impl Iterator<Item = PortSegment> {
        core::iter::once(PortSegment { first: 0, found: self.found }).chain(self.more.iter().copied())
    }

    /// Applies `found` to the ports from `first` to `last` of which it is the most specific rule.
    fn apply(&mut self, (first, last): (u16, u16), found: Match) {
        self.cut(first);
        if let Some(next) = last.checked_add(1) {
            self.cut(next);
        }
        let apply = |to: &mut Option<Match>| {
            if to.is_none_or(|before| found.is_before(&before)) {
                *to = Some(found);
            }
        };
        if first == 0 {
            apply(&mut self.found);
        }
        let within = self.more.iter_mut().filter(|segment| (first..=last).contains(&segment.first));
        within.for_each(|segment| apply(&mut segment.found));
        let mut before = self.found;
        self.more.retain(|segment| core::mem::replace(&mut before, segment.found) != segment.found);
    }

    /// Makes `at` the start of a port segment.
    fn cut(&mut self, at: u16) {
        let next = self.more.partition_point(|segment| segment.first < at);
        if at > 0 && self.more.get(next).is_none_or(|segment| segment.first != at) {
            let found = self.find(at).copied();
            self.more.insert(next, PortSegment { first: at, found });
        }
    }
}

/// Ranges of both families, cut into segments in which one rule counts. A look-up is a binary search.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    v4: Vec<Segment>,
    /// The first address of each segment of IPv4: a look-up reads two cache lines of them.
    v4_firsts: Vec<u32>,
    v6: Vec<Segment>,
}

impl Default for Ranges {
    fn default() -> Self {
        let whole = Segment { first: 0, found: None, more: Vec::new() };
        Self { v4: vec![whole.clone()], v4_firsts: vec![0], v6: vec![whole] }
    }
}

/// Addresses and ports for which one rule, or none, counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) first: IpAddr,
    pub(super) last: IpAddr,
    pub(super) ports: (u16, u16),
    pub(super) found: Option<Match>,
}

impl Ranges {
    pub(super) fn push(&mut self, range: PeerRange, decision: PeerDecision, precedence: Precedence, rule: RuleIndex) {
        let ((first, last), ports) = (range.bits(), range.ports());
        let found = Match { rule, decision, size: range.size(), precedence };
        let is_ipv4 = range.addresses().0.is_ipv4();
        let segments = if is_ipv4 { &mut self.v4 } else { &mut self.v6 };
        cut(segments, first);
        if last < end_of(is_ipv4) {
            cut(segments, last + 1);
        }
        for segment in segments.iter_mut().filter(|segment| (first..=last).contains(&segment.first)) {
            segment.apply(ports, found);
        }
        if is_ipv4 {
            self.v4_firsts.clear();
            self.v4_firsts.extend(self.v4.iter().map(|segment| segment.first as u32));
        }
    }

    #[inline]
    pub(super) fn find(&self, ip: IpAddr, port: u16) -> Option<&Match> {
        self.segment(ip)?.find(port)
    }

    /// Returns allowed if a port of `ip` is, else the decision about its first port. `default` is for ports without a
    /// rule.
    pub(super) fn decide_any(&self, ip: IpAddr, default: PeerDecision) -> PeerDecision {
        let decision = |found: &Option<Match>| found.as_ref().map_or(default, |found| found.decision);
        let Some(segment) = self.segment(ip) else { return default };
        match segment.more.iter().any(|ports| decision(&ports.found) == PeerDecision::Allowed) {
            true => PeerDecision::Allowed,
            false => decision(&segment.found),
        }
    }

    /// Returns whether ports of `ip` have different rules.
    pub(super) fn differs_by_port(&self, ip: IpAddr) -> bool {
        self.segment(ip).is_some_and(|segment| !segment.more.is_empty())
    }

    #[inline]
    fn segment(&self, ip: IpAddr) -> Option<&Segment> {
        let (segments, next) = match ip {
            IpAddr::V4(ip) => {
                let bits = ip.to_bits();
                (&self.v4, self.v4_firsts.partition_point(|first| *first <= bits))
            }
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                (&self.v6, self.v6.partition_point(|segment| segment.first <= bits))
            }
        };
        segments.get(next.checked_sub(1)?)
    }

    /// Iterates over the blocks in which one rule counts, by address and then by port, IPv4 first.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> {
        [(&self.v4, true), (&self.v6, false)].into_iter().flat_map(|(segments, is_ipv4)| {
            let ip = move |bits: u128| match is_ipv4 {
                true => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
                false => IpAddr::V6(Ipv6Addr::from_bits(bits)),
            };
            merged(segments, end_of(is_ipv4)).flat_map(move |(segment, last)| {
                let ends = segment.more.iter().map(|next| next.first - 1).chain([u16::MAX]);
                segment.ports().zip(ends).map(move |(ports, last_port)| Block {
                    first: ip(segment.first),
                    last: ip(last),
                    ports: (ports.first, last_port),
                    found: ports.found,
                })
            })
        })
    }
}

/// Returns the bits of the last address of a family.
const fn end_of(is_ipv4: bool) -> u128 {
    if is_ipv4 { u32::MAX as u128 } else { u128::MAX }
}

/// Makes `at` the start of a segment.
fn cut(segments: &mut Vec<Segment>, at: u128) {
    let next = segments.partition_point(|segment| segment.first <= at);
    if let Some(before) = next.checked_sub(1).and_then(|index| segments.get(index)).filter(|before| before.first < at) {
        let segment = Segment { first: at, ..before.clone() };
        segments.insert(next, segment);
    }
}

/// Joins neighbouring segments of the same rules; each with its last address.
fn merged(segments: &[Segment], end: u128) -> impl Iterator<Item = (&Segment, u128)> {
    let mut rest = segments;
    core::iter::from_fn(move || {
        let (head, _) = rest.split_first()?;
        let is_same = |segment: &&Segment| segment.found == head.found && segment.more == head.more;
        let same = rest.iter().take_while(is_same).count();
        rest = &rest[same..];
        let last = rest.first().map_or(end, |next| next.first - 1);
        Some((head, last))
    })
}
