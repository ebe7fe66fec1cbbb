//! Lists of ranges of both families.

use alloc::vec::Vec;
use core::net::IpAddr;

use super::RuleIndex;
use super::cidr::Cidr;

/// One range: mask, network and rule.
#[derive(Clone, Copy, Debug)]
struct Range<T> {
    mask: T,
    network: T,
    rule: RuleIndex,
}

/// Ranges in the order in which they were added. The first that contains an address is its rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    v4: Vec<Range<u32>>,
    v6: Vec<Range<u128>>,
}

impl Ranges {
    pub(super) fn push(&mut self, range: Cidr, rule: RuleIndex) {
        let bits = u32::from(range.prefix_bits());
        match range.network() {
            IpAddr::V4(network) => {
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                self.v4.push(Range { mask, network: network.to_bits(), rule });
            }
            IpAddr::V6(network) => {
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                self.v6.push(Range { mask, network: network.to_bits(), rule });
            }
        }
    }

    #[inline]
    pub(super) fn find(&self, ip: IpAddr) -> Option<RuleIndex> {
        match ip {
            IpAddr::V4(ip) => {
                let bits = ip.to_bits();
                self.v4.iter().find(|range| bits & range.mask == range.network).map(|range| range.rule)
            }
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                self.v6.iter().find(|range| bits & range.mask == range.network).map(|range| range.rule)
            }
        }
    }
}
