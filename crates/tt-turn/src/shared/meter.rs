//! Traffic of each user with an allocation, of each allocation and of the process.

use alloc::boxed::Box;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};

use tt_model::{IpFamily, Nanos};

use super::Quotas;
use super::debts::Debts;
use super::rate::Rate;
use super::realms::RealmQuotas;
use crate::drop_reason::DropReason;
use crate::realm::RealmId;

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

/// Buckets of sources. Sources with the same bucket share its rate.
const SOURCE_BUCKETS: usize = 1 << 14;
const _: () = assert!(SOURCE_BUCKETS <= 1 << 16, "Meter::source is the number of a bucket");

/// An allocation's part in the traffic quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    /// The user's index in the meters.
    user: u32,
    /// The bucket of the client's address, if sources are limited.
    source: u16,
    realm: RealmId,
    /// When the allocation's own bucket is full.
    full_at: Nanos,
}

/// Buckets of one user. Each contains the time at which it is full again.
#[derive(Debug, Default)]
struct User {
    bytes: AtomicU64,
    packets: AtomicU64,
    /// Bytes, by the rate below which a user takes little of the total.
    little: AtomicU64,
}

/// Buckets of one source.
#[derive(Debug, Default)]
struct Source {
    bytes: AtomicU64,
    packets: AtomicU64,
}

/// Rates of the users of one realm.
#[derive(Clone, Copy, Debug)]
struct RealmRates {
    user_bytes: Rate,
    user_packets: Rate,
    allocation_bytes: Rate,
}

impl Meter {
    /// Returns the meter of a new allocation of an account, for a client whose address has the hashed key `source`. The
    /// allocation's bucket is empty.
    pub(super) fn new((realm, account): (RealmId, u32), source: u64, now: Nanos) -> Self {
        Self { user: account, source: (source % SOURCE_BUCKETS as u64) as u16, realm, full_at: empty_at(now) }
    }
}

impl RealmRates {
    fn new(quotas: RealmQuotas) -> Self {
        Self {
            user_bytes: rate(quotas.bytes_per_second_per_user),
            user_packets: rate(quotas.packets_per_second_per_user),
            allocation_bytes: rate(quotas.bytes_per_second_per_allocation),
        }
    }

    const fn all(self) -> [Rate; 3] {
        [self.user_bytes, self.user_packets, self.allocation_bytes]
    }
}

/// Buckets of all users, of all sources and of the process.
#[derive(Debug)]
pub(crate) struct Meters {
    users: Box<[User]>,
    debts: Debts,
    sources: Box<[Source]>,
    total: AtomicU64,
    /// By [`RealmId`].
    realms: Box<[RealmRates]>,
    source_bytes: Rate,
    source_packets: Rate,
    total_bytes: Rate,
    /// The part of the total that other users leave to a user who sends no more than that.
    little_bytes: Rate,
    /// The same part as time of the total's bucket.
    rest_ns: u64,
}

impl Meters {
    /// Creates buckets for `users`; none if no quota limits traffic.
    pub(crate) fn new(quotas: &Quotas, realms: impl Iterator<Item = RealmQuotas>, users: u32) -> Self {
        let realms: Box<[RealmRates]> = realms.map(RealmRates::new).collect();
        let (source_bytes, source_packets) =
            (rate(quotas.bytes_per_second_per_source), rate(quotas.packets_per_second_per_source));
        let total_bytes = rate(quotas.bytes_per_second_total);
        let rates = [source_bytes, source_packets, total_bytes].into_iter();
        let mut rates = rates.chain(realms.iter().flat_map(|realm| realm.all()));
        let users = if rates.all(Rate::is_unlimited) { 0 } else { users };
        let owes = realms.iter().any(|realm| !realm.user_bytes.is_unlimited());
        let limits_sources = !(source_bytes.is_unlimited() && source_packets.is_unlimited());
        let others_percent = u64::from(100 - quotas.user_share_percent.min(100));
        Self {
            users: (0..users).map(|_| User::default()).collect(),
            debts: Debts::new(if owes { users } else { 0 }),
            sources: (0..if limits_sources { SOURCE_BUCKETS } else { 1 }).map(|_| Source::default()).collect(),
            total: AtomicU64::new(0),
            realms,
            source_bytes,
            source_packets,
            total_bytes,
            little_bytes: rate(quotas.bytes_per_second_total / 100 * others_percent),
            rest_ns: DEPTH_NS / 100 * others_percent,
        }
    }

    /// Takes over what users, sources and the process have taken by the quotas before.
    pub(crate) fn continue_from(&self, before: &Self) {
        let copy = |from: &AtomicU64, to: &AtomicU64| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        for (from, to) in before.users.iter().zip(&self.users) {
            copy(&from.bytes, &to.bytes);
            copy(&from.packets, &to.packets);
            copy(&from.little, &to.little);
        }
        if before.sources.len() == self.sources.len() {
            for (from, to) in before.sources.iter().zip(&self.sources) {
                copy(&from.bytes, &to.bytes);
                copy(&from.packets, &to.packets);
            }
        }
        copy(&before.total, &self.total);
        before.debts.copy_to(&self.debts);
    }

    /// Returns whether nothing limits traffic.
    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.users.is_empty()
    }

    /// Begins a new account of `key`: its buckets are empty, and the bytes that its user still owes are owed.
    pub(crate) fn begin(&self, account: u32, key: u64, now: Nanos) {
        if let Some(user) = self.users.get(account as usize) {
            user.bytes.store(empty_at(now).max(self.debts.take(key)).0, Ordering::Relaxed);
            user.packets.store(empty_at(now).0, Ordering::Relaxed);
            user.little.store(empty_at(now).0, Ordering::Relaxed);
        }
    }

    /// Ends an account of `key`. A packet is never more than a second's worth, so only bytes are owed.
    pub(crate) fn end(&self, account: u32, key: u64) {
        if let Some(user) = self.users.get(account as usize) {
            self.debts.keep(key, Nanos(user.bytes.load(Ordering::Relaxed)));
        }
    }

    /// Takes one packet of `bytes` from the buckets of its allocation, of its user, of its source and of the process;
    /// from all or from none.
    ///
    /// # Errors
    /// The quota that is used up.
    #[inline(never)]
    pub(crate) fn spend(&self, meter: &mut Meter, now: Nanos, bytes: usize) -> Result<(), DropReason> {
        let users = self.users.get(meter.user as usize);
        // Without limits of sources there is one bucket.
        let source = self.sources.get(meter.source as usize).or(self.sources.first());
        let Some((user, source)) = users.zip(source) else { return Ok(()) };
        let Some(rates) = self.realms.get(usize::from(meter.realm.0)) else { return Ok(()) };
        let bytes = bytes as u64;
        let later = rates.allocation_bytes.take_or_owe(meter.full_at.0, now, bytes);
        let later = later.ok_or(DropReason::AllocationBandwidth)?;
        let parts = [
            (rates.user_bytes, &user.bytes, bytes, DropReason::UserBandwidth),
            (rates.user_packets, &user.packets, 1, DropReason::UserPackets),
            (self.source_bytes, &source.bytes, bytes, DropReason::SourceBandwidth),
            (self.source_packets, &source.packets, 1, DropReason::SourcePackets),
        ];
        let refund =
            |count: usize| parts[..count].iter().for_each(|(rate, bucket, units, _)| rate.refund(bucket, *units));
        for (index, (rate, bucket, units, reason)) in parts.iter().enumerate() {
            if !rate.spend_or_owe(bucket, now, *units) {
                refund(index);
                return Err(*reason);
            }
        }
        self.spend_total(user, now, bytes).inspect_err(|_| refund(parts.len()))?;
        meter.full_at = Nanos(later);
        Ok(())
    }

    /// Takes `bytes` from the total. Users who send much leave a part of it to those who send little.
    fn spend_total(&self, user: &User, now: Nanos, bytes: u64) -> Result<(), DropReason> {
        if self.total_bytes.is_unlimited() {
            return Ok(());
        }
        let sends_little = self.rest_ns == 0 || self.little_bytes.note(&user.little, now, bytes);
        let rest_ns = if sends_little { 0 } else { self.rest_ns };
        if self.total_bytes.spend_leaving(&self.total, now, bytes, rest_ns) {
            return Ok(());
        }
        let is_left = self.total_bytes.take(self.total.load(Ordering::Relaxed), now, bytes).is_some();
        Err(if is_left && !sends_little { DropReason::TotalShare } else { DropReason::TotalBandwidth })
    }
}

/// Returns a rate with a burst of one second's worth; `u64::MAX` is unlimited.
fn rate(per_second: u64) -> Rate {
    if per_second == u64::MAX { Rate::UNLIMITED } else { Rate::new(per_second, per_second) }
}

/// Returns when a bucket that is empty at `now` is full.
const fn empty_at(now: Nanos) -> Nanos {
    now.saturating_add(Nanos(DEPTH_NS))
}

#[cfg(test)]
mod tests {
    use super::RealmQuotas;
    use super::{Meter, Meters, wire_len};
    use crate::drop_reason::DropReason;
    use crate::realm::RealmId;
    use crate::shared::Quotas;
    use tt_model::Nanos;

    const START_S: u64 = 1_000;

    fn at_ms(ms: u64) -> Nanos {
        Nanos(START_S * Nanos::PER_SECOND + ms * 1_000_000)
    }

    fn meters_of(quotas: &Quotas, users: u32) -> Meters {
        Meters::new(quotas, core::iter::once(RealmQuotas::of_default(quotas)), users)
    }

    fn meters(bytes_per_second_per_user: u64, users: u32) -> Meters {
        meters_of(&Quotas { bytes_per_second_per_user, ..Quotas::default() }, users)
    }

    fn meter(account: u32) -> Meter {
        Meter { full_at: Nanos(0), ..Meter::new((RealmId::DEFAULT, account), 0, Nanos(0)) }
    }

    fn spend(meters: &Meters, account: u32, now: Nanos, bytes: usize) -> bool {
        meters.spend(&mut meter(account), now, bytes).is_ok()
    }

    #[test]
    fn a_second_at_once_and_then_the_rate() {
        let meters = meters(100_000, 2);
        (0..2).for_each(|account| meters.begin(account, 7, at_ms(0)));
        let (one, two) = (0, 1);
        assert!(!spend(&meters, one, at_ms(9), 1_000), "it starts empty");
        let mut carried = 0;
        // After a silence twice the rate for a minute: 1,000 bytes each 5 ms.
        for step in 400..12_400 {
            carried += u64::from(spend(&meters, one, at_ms(step * 5), 1_000));
            assert!(!step.is_multiple_of(2) || spend(&meters, two, at_ms(step * 5), 1_000), "another user's");
        }
        assert!((6_099..=6_100).contains(&carried), "{carried}");
        // A new account gives no additional second.
        meters.begin(one, 7, at_ms(62_000));
        assert!(!spend(&meters, one, at_ms(62_009), 1_000));
        assert!(spend(&meters, one, at_ms(62_010), 1_000));
    }

    #[test]
    fn what_is_larger_than_the_bucket_goes_when_it_is_full() {
        let meters = meters(1_000, 1);
        meters.begin(0, 7, at_ms(0));
        assert!(!spend(&meters, 0, at_ms(999), 5_000));
        assert!(spend(&meters, 0, at_ms(1_000), 5_000));
        assert!(!spend(&meters, 0, at_ms(4_999), 1), "four seconds' worth is owed");
        assert!(!spend(&meters, 0, at_ms(5_999), 5_000));
        assert!(spend(&meters, 0, at_ms(6_000), 5_000));
        assert!(spend(&meters, 7, at_ms(0), 65_535), "no user's");
    }

    #[test]
    fn without_limits_there_are_no_buckets() {
        assert!(meters(u64::MAX, 70).is_unlimited() && !meters(1, 70).is_unlimited());
    }

    #[test]
    fn what_one_quota_refuses_costs_no_other() {
        let quotas = Quotas {
            bytes_per_second_per_user: 1_000,
            packets_per_second_per_user: 10,
            bytes_per_second_per_allocation: 500,
            bytes_per_second_total: 1_500,
            user_share_percent: 100,
            ..Quotas::default()
        };
        let meters = meters_of(&quotas, 2);
        (0..2).for_each(|account| meters.begin(account, 7, at_ms(0)));
        let (one, two, now) = (0, 1, at_ms(1_000));
        let mut allocations = [0, 0, 0, 1, 1].map(meter);
        let mut of = |account, allocation: usize, bytes| {
            assert_eq!(allocations[allocation].user, account);
            meters.spend(&mut allocations[allocation], now, bytes)
        };
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
        let meters =
            meters_of(&Quotas { bytes_per_second_total: 100, user_share_percent: 100, ..Quotas::default() }, 2);
        let carried = (0..10).filter(|step| spend(&meters, step % 2, at_ms(0), 20)).count();
        assert_eq!(carried, 5);
    }

    /// Users 0 to 4 send ten times the total; user 5 sends a tenth of it, and loses nothing.
    #[test]
    fn users_who_send_much_leave_a_part_of_the_total() {
        const TOTAL: u64 = 1_000_000;
        for heavy in [1, 5] {
            let meters = meters_of(&Quotas { bytes_per_second_total: TOTAL, ..Quotas::default() }, 6);
            (0..6).for_each(|account| meters.begin(account, 7, at_ms(0)));
            let (mut carried, mut lost) = (0, 0);
            for ms in 1..=20_000 {
                for step in 0..10 {
                    carried += 1_000 * u64::from(spend(&meters, step % heavy, at_ms(ms), 1_000));
                }
                if ms % 10 == 0 {
                    lost += u64::from(!spend(&meters, 5, at_ms(ms), 1_000));
                }
            }
            assert_eq!(lost, 0, "{heavy}");
            // The rest is used: 0.9 of the total, and the burst.
            assert!((18_000_000..=19_100_000).contains(&carried), "{heavy}: {carried}");
        }
        let meters = meters_of(&Quotas { bytes_per_second_total: TOTAL, ..Quotas::default() }, 2);
        let mut of = meter(0);
        let refused = (0..2_000).find_map(|_| meters.spend(&mut of, at_ms(0), 1_000).err());
        assert_eq!(refused, Some(DropReason::TotalShare));
    }

    #[test]
    fn sources_have_bytes_and_packets() {
        let quotas = Quotas {
            bytes_per_second_per_source: 1_000,
            packets_per_second_per_source: 10,
            bytes_per_second_per_user: 5_000,
            ..Quotas::default()
        };
        let meters = meters_of(&quotas, 4);
        let [mut one, mut same, mut other] =
            [(0, 7), (1, 7), (2, 8)].map(|(account, source)| Meter::new((RealmId::DEFAULT, account), source, Nanos(0)));
        let now = at_ms(1_000);
        assert_eq!(meters.spend(&mut one, now, 900), Ok(()));
        assert_eq!(meters.spend(&mut same, now, 101), Err(DropReason::SourceBandwidth), "two users of one source");
        assert!((0..9).all(|_| meters.spend(&mut same, now, 1) == Ok(())));
        assert_eq!(meters.spend(&mut one, now, 1), Err(DropReason::SourcePackets));
        assert_eq!(meters.spend(&mut other, now, 1_000), Ok(()));
        assert_eq!(meters.spend(&mut other, at_ms(1_100), 100), Ok(()));
    }

    #[test]
    fn each_realm_has_its_own_rates() {
        let quotas = |bytes, packets, allocation| RealmQuotas {
            bytes_per_second_per_user: bytes,
            packets_per_second_per_user: packets,
            bytes_per_second_per_allocation: allocation,
            ..RealmQuotas::default()
        };
        let realms = [quotas(1_000, 50, 900), quotas(3_000, 7, 2_000), RealmQuotas::default()];
        let meters = Meters::new(&Quotas::default(), realms.into_iter(), 3);
        (0..3).for_each(|account| meters.begin(account, 7, at_ms(0)));
        let passed = |account: u16, allocations: usize, bytes| {
            let now = at_ms(10_000 * (u64::from(account) + 1) + bytes as u64);
            let of = |_| Meter { full_at: Nanos(0), ..Meter::new((RealmId(account), account.into()), 0, Nanos(0)) };
            let mut all: std::vec::Vec<_> = (0..allocations).map(of).collect();
            let mut sent = 0;
            let reason = (0..10_000).find_map(|step| {
                let result = meters.spend(&mut all[step % allocations], now, bytes).err();
                sent += usize::from(result.is_none());
                result
            });
            (sent, reason)
        };
        assert_eq!(passed(0, 1, 100), (9, Some(DropReason::AllocationBandwidth)));
        assert_eq!(passed(1, 1, 500), (4, Some(DropReason::AllocationBandwidth)));
        assert_eq!(passed(2, 1, 500), (10_000, None));
        let meters = Meters::new(&Quotas::default(), realms.into_iter(), 3);
        let spend = |account: u16, bytes| {
            meters.begin(account.into(), 7, at_ms(0));
            let of = || Meter { full_at: Nanos(0), ..Meter::new((RealmId(account), account.into()), 0, Nanos(0)) };
            let mut sent = 0;
            let reason = (0..100).find_map(|_| {
                let result = meters.spend(&mut of(), at_ms(1_000), bytes).err();
                sent += usize::from(result.is_none());
                result
            });
            (sent, reason)
        };
        assert_eq!(spend(0, 100), (10, Some(DropReason::UserBandwidth)));
        assert_eq!(spend(0, 1), (50, Some(DropReason::UserPackets)));
        assert_eq!(spend(1, 600), (5, Some(DropReason::UserBandwidth)));
        assert_eq!(spend(1, 1), (7, Some(DropReason::UserPackets)));
        assert_eq!(spend(2, 1_000), (100, None));
    }

    /// RFC 791 section 3.1, RFC 8200 section 3, RFC 768.
    #[test]
    fn headers_count() {
        let ip = |text: &str| text.parse().expect("an address");
        assert_eq!(["8.8.8.8", "2600::1", "::ffff:8.8.8.8"].map(|to| wire_len(ip(to), 0)), [28, 48, 28]);
        assert_eq!(wire_len(ip("8.8.8.8"), 1_472), 1_500);
    }
}
