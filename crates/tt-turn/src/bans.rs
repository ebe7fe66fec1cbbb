//! Sources that an operator keeps away for a time.

use alloc::collections::BTreeMap;
use core::fmt;
use core::net::IpAddr;

use tt_model::Nanos;

use crate::flow::bits_v6;
use crate::policy::Cidr;

/// Maximum number of bans.
pub const BANS_MAX: usize = 1_024;
/// Bits of an IPv4-mapped IPv6 address before the IPv4 address.
const MAPPED_BITS: u8 = 96;

/// Ranges of client addresses that an operator keeps away, each until a time. One per range.
#[derive(Clone, Debug, Default)]
pub struct Bans {
    /// By the length of the prefix in IPv6 form and the prefix itself.
    by_prefix: BTreeMap<(u8, u128), (Cidr, Nanos)>,
}

/// There are [`BANS_MAX`] bans already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyBans;

impl fmt::Display for TooManyBans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there are {BANS_MAX} bans already")
    }
}

impl core::error::Error for TooManyBans {}

impl Bans {
    /// Bans the addresses of `range` until `until`, instead of an earlier ban of the same range.
    ///
    /// # Errors
    /// [`TooManyBans`]; nothing changes.
    pub fn insert(&mut self, range: Cidr, until: Nanos) -> Result<(), TooManyBans> {
        let key = key(range);
        if self.by_prefix.len() >= BANS_MAX && !self.by_prefix.contains_key(&key) {
            return Err(TooManyBans);
        }
        self.by_prefix.insert(key, (range, until));
        Ok(())
    }

    /// Ends the ban of exactly `range`. Returns false if there is none.
    pub fn remove(&mut self, range: Cidr) -> bool {
        self.by_prefix.remove(&key(range)).is_some()
    }

    /// Forgets the bans that are over at `now`.
    pub fn expire(&mut self, now: Nanos) {
        self.by_prefix.retain(|_, (_, until)| *until > now);
    }

    /// Returns whether `source` is banned at `now`. Each length of a prefix that occurs costs a look-up.
    #[must_use]
    pub fn contains(&self, source: IpAddr, now: Nanos) -> bool {
        let bits = bits_v6(source);
        let mut next = self.by_prefix.range(..).next();
        while let Some(((length, _), _)) = next {
            let prefix = bits & mask(*length);
            if self.by_prefix.get(&(*length, prefix)).is_some_and(|(_, until)| *until > now) {
                return true;
            }
            next = self.by_prefix.range((length + 1, 0)..).next();
        }
        false
    }

    /// Iterates over the ranges, each with the end of its ban.
    pub fn iter(&self) -> impl Iterator<Item = (Cidr, Nanos)> {
        self.by_prefix.values().copied()
    }

    /// Returns whether nothing is banned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }
}

fn key(range: Cidr) -> (u8, u128) {
    let before = if range.network().is_ipv4() { MAPPED_BITS } else { 0 };
    (before + range.prefix_bits(), bits_v6(range.network()))
}

const fn mask(bits: u8) -> u128 {
    match bits {
        0 => 0,
        bits => u128::MAX << (128 - bits as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bans(of: &[(&str, u64)]) -> Bans {
        let mut bans = Bans::default();
        for (range, until) in of {
            bans.insert(range.parse().unwrap(), Nanos(*until)).unwrap();
        }
        bans
    }

    #[test]
    fn a_source_is_banned_by_each_range_that_holds_it() {
        let bans = bans(&[("192.0.2.7/32", 9), ("198.51.100.0/24", 9), ("2001:db8:7::/48", 9), ("192.0.2.0/24", 5)]);
        for (source, is_banned) in [
            ("192.0.2.7", true),
            ("::ffff:192.0.2.7", true),
            ("192.0.2.8", true),
            ("192.0.3.7", false),
            ("198.51.100.255", true),
            ("198.51.101.0", false),
            ("2001:db8:7:ffff::1", true),
            ("2001:db8:8::1", false),
            ("::c000:207", false),
        ] {
            assert_eq!(bans.contains(source.parse().unwrap(), Nanos(4)), is_banned, "{source}");
        }
        assert!(bans.contains("192.0.2.7".parse().unwrap(), Nanos(8)), "the other ban is over, this one is not");
        assert!(!bans.contains("192.0.2.8".parse().unwrap(), Nanos(5)));
        assert!(!bans.contains("192.0.2.7".parse().unwrap(), Nanos(9)));
    }

    #[test]
    fn a_range_of_all_addresses_is_one_family() {
        let bans = bans(&[("0.0.0.0/0", 9)]);
        assert!(bans.contains("203.0.113.1".parse().unwrap(), Nanos(1)));
        assert!(!bans.contains("2001:db8::1".parse().unwrap(), Nanos(1)));
    }

    #[test]
    fn a_new_ban_replaces_the_one_of_the_same_range_and_their_number_has_a_bound() {
        let mut bans = bans(&[("192.0.2.7", 9), ("192.0.2.7/32", 20)]);
        assert_eq!(bans.iter().map(|(_, until)| until.0).collect::<alloc::vec::Vec<_>>(), [20]);
        for number in 0..BANS_MAX as u32 - 1 {
            bans.insert(Cidr::new(IpAddr::from(number.to_be_bytes()), 32).unwrap(), Nanos(30)).unwrap();
        }
        let other: Cidr = "203.0.113.1".parse().unwrap();
        assert_eq!(bans.insert(other, Nanos(30)), Err(TooManyBans));
        assert_eq!(bans.insert("192.0.2.7".parse().unwrap(), Nanos(10)), Ok(()), "there was one of this range");
        bans.expire(Nanos(10));
        assert_eq!(bans.insert(other, Nanos(30)), Ok(()));
        assert!(bans.remove(other) && !bans.remove(other));
    }
}
