//! Sets of addresses, and what a TURN server denies by default.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tt_turn::policy::{PeerPolicy, PeerRange, Rule};

/// Addresses of one family from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) is_ipv6: bool,
    pub(crate) first: u128,
    pub(crate) last: u128,
}

impl Span {
    /// Returns the addresses from `first` to `last`, which must be of one family. As in coturn, an IPv6 range that maps
    /// IPv4 addresses stays one of IPv6.
    pub(crate) fn new(first: IpAddr, last: IpAddr) -> Option<Self> {
        let (low, high) = (bits(first), bits(last));
        let is_range = first.is_ipv4() == last.is_ipv4() && low <= high;
        is_range.then_some(Self { is_ipv6: first.is_ipv6(), first: low, last: high })
    }

    /// Reads `ADDR`, `ADDR-ADDR` or a CIDR.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if let Some((first, last)) = text.split_once('-') {
            return Self::new(first.trim().parse().ok()?, last.trim().parse().ok()?);
        }
        let (first, last) = text.parse::<PeerRange>().ok().filter(PeerRange::has_all_ports)?.addresses();
        Self::new(first, last)
    }

    /// Returns the range as truetick writes it.
    pub(crate) fn range(self) -> Option<PeerRange> {
        PeerRange::new(self.address(self.first), self.address(self.last)).ok()
    }

    fn address(self, bits: u128) -> IpAddr {
        match u32::try_from(bits) {
            Ok(bits) if !self.is_ipv6 => Ipv4Addr::from_bits(bits).into(),
            Ok(_) | Err(_) => Ipv6Addr::from_bits(bits).into(),
        }
    }

    fn size(self) -> u128 {
        self.last - self.first
    }

    fn overlaps(self, other: Self) -> bool {
        self.is_ipv6 == other.is_ipv6 && self.first <= other.last && other.first <= self.last
    }

    fn intersection(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        self.overlaps(other).then_some(Self { first, last, ..self })
    }

    /// Returns the parts of the range that are in none of `others`, in order.
    pub(crate) fn without(self, others: &[Self]) -> Vec<Self> {
        let mut parts = vec![self];
        for other in others {
            parts = parts.into_iter().flat_map(|part| part.minus(*other)).flatten().collect();
        }
        parts
    }

    fn minus(self, other: Self) -> [Option<Self>; 2] {
        if !self.overlaps(other) {
            return [Some(self), None];
        }
        let before = (self.first < other.first).then(|| Self { last: other.first - 1, ..self });
        let after = (self.last > other.last).then(|| Self { first: other.last + 1, ..self });
        [before, after]
    }
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// Returns the text of each range.
pub(crate) fn texts(spans: &[Span]) -> Vec<String> {
    spans.iter().filter_map(|span| span.range()).map(|range| range.to_string()).collect()
}

/// Ranges that truetick denies by default, without that of all of IPv6, and whether a range can open them.
pub(crate) fn built_in() -> Vec<Span> {
    let policy = PeerPolicy::new();
    let ranges = policy.rules().iter().filter_map(|rule| match rule {
        Rule::BuiltIn(range) => Some(range.addresses()),
        Rule::Allowed(_)
        | Rule::Denied(_)
        | Rule::Tunnel(_)
        | Rule::Listener(_)
        | Rule::OwnRelay
        | Rule::OwnHost
        | Rule::PortZero => None,
    });
    let spans = ranges.filter_map(|(first, last)| {
        let (low, high) = (bits(first), bits(last));
        Some(Span { is_ipv6: first.is_ipv6(), first: low, last: high }).filter(|span| span.size() != u128::MAX)
    });
    spans.collect()
}

/// Returns the ranges of peers to allow so that all of `allowed` counts: the range, and each range within it that is
/// denied by default, because of two ranges the smaller one counts. `closed` stays denied.
pub(crate) fn allowances(allowed: &[Span], closed: &[Span]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for range in allowed {
        let inner = built_in().into_iter().filter_map(|denied| denied.intersection(*range));
        let smaller = inner.filter(|denied| denied.size() < range.size());
        for part in [*range].into_iter().chain(smaller).flat_map(|span| span.without(closed)) {
            if !spans.contains(&part) {
                spans.push(part);
            }
        }
    }
    spans
}

/// Returns the ranges of peers to deny so that all of `denied` counts: the range, and its part of IPv6's global unicast
/// addresses, which are allowed by default and of which the smaller range counts.
pub(crate) fn denials(denied: &[Span]) -> Vec<Span> {
    let global = Span { is_ipv6: true, first: 0x2 << 124, last: (0x4 << 124) - 1 };
    let parts = |range: &Span| {
        let inner = range.intersection(global).filter(|inner| inner.size() < range.size());
        [Some(*range), inner].into_iter().flatten()
    };
    denied.iter().flat_map(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Span {
        Span::read(text).unwrap()
    }

    #[test]
    fn reads_ranges_addresses_and_cidr() {
        assert_eq!(span("10.0.0.0-10.255.255.255"), span("10.0.0.0/8"));
        assert_ne!(span("::ffff:10.0.0.1"), span("10.0.0.1"));
        assert_eq!(texts(&[span("192.0.2.1 - 192.0.2.2")]), ["192.0.2.1-192.0.2.2"]);
        for text in ["", "10", "10.0.0.2-10.0.0.1", "10.0.0.1-::1", "a-b", "10.0.0.1:80", "10.0.0.0/33"] {
            assert_eq!(Span::read(text), None, "{text}");
        }
    }

    #[test]
    fn removes_ranges_from_a_range() {
        let parts = span("10.0.0.0/8").without(&[span("10.0.0.0"), span("10.255.255.0-11.0.0.0"), span("::/0")]);
        assert_eq!(texts(&parts), ["10.0.0.1-10.255.254.255"]);
        assert!(span("10.1.0.0/16").without(&[span("10.0.0.0/8")]).is_empty());
        let all = span("::/0").without(&[span("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]);
        assert!(all.is_empty());
    }

    #[test]
    fn denials_name_what_is_allowed_inside_of_them() {
        assert_eq!(texts(&denials(&[span("::/0"), span("10.0.0.0/8")])), ["::/0", "2000::/3", "10.0.0.0/8"]);
        assert_eq!(texts(&denials(&[span("2001:db8::/32")])), ["2001:db8::/32"]);
    }

    #[test]
    fn allowances_name_what_is_denied_inside_of_them() {
        let spans = allowances(&[span("10.0.0.0/7")], &[]);
        assert_eq!(texts(&spans), ["10.0.0.0/7", "10.0.0.0/8"]);
        assert_eq!(texts(&allowances(&[span("10.1.0.0/16")], &[])), ["10.1.0.0/16"]);
    }
}
