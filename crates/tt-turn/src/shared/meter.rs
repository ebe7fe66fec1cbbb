//! Traffic of each user with an allocation, of each allocation and of the process.

use alloc::boxed::Box;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};

use tt_model::{IpFamily, Nanos};

use super::Quotas;
use super::rate::Rate;
use crate::drop_reason::DropReason;
use crate::slab::NO_INDEX;

/// Depth of a bucket: one second's worth.
const DEPTH_NS: u64 = Nanos::PER_SECOND;
/// UDP header (RFC 768).
const UDP_HEADER_LEN: usize = 8;
/// IPv4 header without options (RFC 791 section 3.1).
const IPV4_HEADER_LEN: usize = 20;
/// IPv6 header without extensions (RFC 8200 section 3).
const IPV6_HEADER_LEN: usize = 40;

/// Returns the bytes on the wire of a UDP datagram to `to` with `len` bytes after the UDP header.
#[inline]
pub(crate) fn wire_len(to: IpAddr, len: usize) -> usize {
    let ip_header_len = match IpFamily::of(to.to_canonical()) {
        IpFamily::V4 => IPV4_HEADER_LEN,
        IpFamily::V6 => IPV6_HEADER_LEN,
    };
    ip_header_len + UDP_HEADER_LEN + len
}

/// Buckets of one user. Each contains the time at which it is full again.
#[derive(Debug)]
struct User {
    bytes: AtomicU64,
    packets: AtomicU64,
}

/// Buckets of all users and of the process.
#[derive(Debug)]
pub(crate) struct Meters {
    users: Box<[User]>,
    total: AtomicU64,
    user_bytes: Rate,
    user_packets: Rate,
    allocation_bytes: Rate,
    total_bytes: Rate,
}

impl Meters {
    /// Creates buckets for `users`; none if no quota limits traffic.
    pub(crate) fn new(quotas: &Quotas, users: u32) -> Self {
        let user_bytes = rate(quotas.bytes_per_second_per_user);
        let user_packets = rate(quotas.packets_per_second_per_user);
        let allocation_bytes = rate(quotas.bytes_per_second_per_allocation);
        let total_bytes = rate(quotas.bytes_per_second_total);
        let rates = [user_bytes, user_packets, allocation_bytes, total_bytes];
        let users = if rates.into_iter().all(Rate::is_unlimited) { 0 } else { users };
        Self {
            users: (0..users).map(|_| User { bytes: AtomicU64::new(0), packets: AtomicU64::new(0) }).collect(),
            total: AtomicU64::new(0),
            user_bytes,
            user_packets,
            allocation_bytes,
            total_bytes,
        }
    }

    /// Returns the place of the buckets of the user with `account`, or [`NO_INDEX`] if there is no limit.
    pub(crate) fn place(&self, account: u32) -> u32 {
        if self.users.is_empty() { NO_INDEX } else { account }
    }

    /// Empties the buckets of a new account.
    pub(crate) fn empty(&self, account: u32, now: Nanos) {
        if let Some(user) = self.users.get(account as usize) {
            user.bytes.store(empty_at(now).0, Ordering::Relaxed);
            user.packets.store(empty_at(now).0, Ordering::Relaxed);
        }
    }

    /// Takes one packet of `bytes` from the buckets of its allocation, of the user at `place` and of the process; from
    /// all or from none.
    ///
    /// # Errors
    /// The quota that is used up.
    #[inline(never)]
    pub(crate) fn spend(&self, place: u32, allocation: &mut Nanos, now: Nanos, bytes: usize) -> Result<(), DropReason> {
        let Some(user) = self.users.get(place as usize) else { return Ok(()) };
        let bytes = bytes as u64;
        let later =
            self.allocation_bytes.take_or_owe(allocation.0, now, bytes).ok_or(DropReason::AllocationBandwidth)?;
        if !self.user_bytes.spend_or_owe(&user.bytes, now, bytes) {
            return Err(DropReason::UserBandwidth);
        }
        if !self.user_packets.spend_or_owe(&user.packets, now, 1) {
            self.user_bytes.refund(&user.bytes, bytes);
            return Err(DropReason::UserPackets);
        }
        if !self.total_bytes.spend_or_owe(&self.total, now, bytes) {
            self.user_packets.refund(&user.packets, 1);
            self.user_bytes.refund(&user.bytes, bytes);
            return Err(DropReason::TotalBandwidth);
        }
        *allocation = Nanos(later);
        Ok(())
    }
}

/// Returns a rate with a burst of one second's worth; `u64::MAX` is unlimited.
fn rate(per_second: u64) -> Rate {
    if per_second == u64::MAX { Rate::UNLIMITED } else { Rate::new(per_second, per_second) }
}

/// Returns when a bucket that is empty at `now` is full.
pub(crate) const fn empty_at(now: Nanos) -> Nanos {
    now.saturating_add(Nanos(DEPTH_NS))
}

#[cfg(test)]
mod tests {
    use super::{Meters, wire_len};
    use crate::drop_reason::DropReason;
    use crate::shared::Quotas;
    use crate::slab::NO_INDEX;
    use tt_model::Nanos;

    const START_S: u64 = 1_000;

    fn at_ms(ms: u64) -> Nanos {
        Nanos(START_S * Nanos::PER_SECOND + ms * 1_000_000)
    }

    fn meters(bytes_per_second_per_user: u64, users: u32) -> Meters {
        Meters::new(&Quotas { bytes_per_second_per_user, ..Quotas::default() }, users)
    }

    fn spend(meters: &Meters, place: u32, now: Nanos, bytes: usize) -> bool {
        meters.spend(place, &mut Nanos(0), now, bytes).is_ok()
    }

    #[test]
    fn a_second_at_once_and_then_the_rate() {
        let meters = meters(100_000, 2);
        (0..2).for_each(|account| meters.empty(account, at_ms(0)));
        let (one, two) = (meters.place(0), meters.place(1));
        assert!(!spend(&meters, one, at_ms(9), 1_000), "it starts empty");
        let mut carried = 0;
        // After a silence twice the rate for a minute: 1,000 bytes each 5 ms.
        for step in 400..12_400 {
            carried += u64::from(spend(&meters, one, at_ms(step * 5), 1_000));
            assert!(!step.is_multiple_of(2) || spend(&meters, two, at_ms(step * 5), 1_000), "another user's");
        }
        assert!((6_099..=6_100).contains(&carried), "{carried}");
        // A new account gives no additional second.
        meters.empty(one, at_ms(62_000));
        assert!(!spend(&meters, one, at_ms(62_009), 1_000));
        assert!(spend(&meters, one, at_ms(62_010), 1_000));
    }

    #[test]
    fn what_is_larger_than_the_bucket_goes_when_it_is_full() {
        let meters = meters(1_000, 1);
        meters.empty(0, at_ms(0));
        assert!(!spend(&meters, 0, at_ms(999), 5_000));
        assert!(spend(&meters, 0, at_ms(1_000), 5_000));
        assert!(!spend(&meters, 0, at_ms(4_999), 1), "four seconds' worth is owed");
        assert!(!spend(&meters, 0, at_ms(5_999), 5_000));
        assert!(spend(&meters, 0, at_ms(6_000), 5_000));
        assert!(spend(&meters, NO_INDEX, at_ms(0), 65_535), "nobody's");
    }

    #[test]
    fn without_limits_there_are_no_buckets() {
        assert_eq!(meters(u64::MAX, 70).place(1), NO_INDEX);
        assert_eq!(meters(1, 70).place(1), 1);
    }

    #[test]
    fn what_one_quota_refuses_costs_no_other() {
        let quotas = Quotas {
            bytes_per_second_per_user: 1_000,
            packets_per_second_per_user: 10,
            bytes_per_second_per_allocation: 500,
            bytes_per_second_total: 1_500,
            ..Quotas::default()
        };
        let meters = Meters::new(&quotas, 2);
        (0..2).for_each(|account| meters.empty(account, at_ms(0)));
        let (one, two, now) = (meters.place(0), meters.place(1), at_ms(1_000));
        let mut allocations = [Nanos(0); 5];
        let mut of = |place, allocation: usize, bytes| meters.spend(place, &mut allocations[allocation], now, bytes);
        assert_eq!((of(one, 0, 500), of(one, 0, 1)), (Ok(()), Err(DropReason::AllocationBandwidth)));
        assert_eq!((of(one, 1, 400), of(one, 2, 101)), (Ok(()), Err(DropReason::UserBandwidth)));
        // Two packets have gone: eight more may, and the ninth costs no bytes.
        assert!((0..8).all(|_| of(one, 2, 1) == Ok(())));
        assert!((0..500).all(|_| of(one, 2, 1) == Err(DropReason::UserPackets)));
        // 592 bytes of the total are left. What it refuses costs the user neither bytes nor packets.
        assert_eq!(of(two, 3, 500), Ok(()));
        assert!((0..100).all(|_| of(two, 4, 93) == Err(DropReason::TotalBandwidth)));
        assert!((0..9).all(|_| of(two, 4, 10) == Ok(())));
        assert_eq!(of(two, 4, 1), Err(DropReason::UserPackets));
    }

    #[test]
    fn a_quota_of_the_process_alone_needs_no_users() {
        let meters = Meters::new(&Quotas { bytes_per_second_total: 100, ..Quotas::default() }, 2);
        let carried = (0..10).filter(|step| spend(&meters, meters.place(step % 2), at_ms(0), 20)).count();
        assert_eq!(carried, 5);
    }

    /// RFC 791 section 3.1, RFC 8200 section 3, RFC 768.
    #[test]
    fn headers_count() {
        let ip = |text: &str| text.parse().expect("an address");
        assert_eq!(["8.8.8.8", "2600::1", "::ffff:8.8.8.8"].map(|to| wire_len(ip(to), 0)), [28, 48, 28]);
        assert_eq!(wire_len(ip("8.8.8.8"), 1_472), 1_500);
    }
}
