//! State that all workers share: quotas, budgets, owners of flows and relayed addresses.

mod accounts;
mod budget;
mod charge;
mod debts;
mod meter;
mod rate;
mod realms;
pub(crate) mod registry;

pub(crate) use accounts::Pool;
pub use accounts::Pools;
pub use budget::Budget;
pub(crate) use charge::Charge;
pub(crate) use meter::Meter;
pub use realms::RealmQuotas;

use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicBool, Ordering};

use tt_model::Nanos;

use crate::drop_reason::DropReason;
use crate::flow::{FlowKey, bits_v6, canonical};
use crate::output::WorkerId;
use crate::realm::RealmId;
use crate::rejection::RejectReason;
use crate::relay::RelayId;
use crate::slab::NO_INDEX;
use accounts::{Accounts, Share, Shortage};
use budget::{Budgets, ExcessBudget, source_key};
use meter::{Meters, wire_len};
use realms::Realms;
use registry::{Adjusted, Registry, fold};

/// States of a token in the registry; zero is none.
const TOKEN_OPEN: u64 = 1;
const TOKEN_CLAIMED: u64 = 2;
/// A response of at most so many times its request needs no budget: QUIC's bound for addresses that have not been
/// validated (RFC 9000 section 8).
const AMPLIFICATION_FREE: usize = 3;

/// Limits over all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Live allocations and reserved ports of one user of the default realm; one more is rejected with 486.
    pub allocations_per_user: u32,
    /// Live allocations and reserved ports of all users; one more is rejected with 486.
    pub allocations_total: u32,
    /// The part of each of the [`Pools`] that one user may hold while no other user holds anything, in percent, from 1
    /// to 100. Of what others leave every user gets the same part. 100 is no limit.
    pub user_share_percent: u8,
    /// Allocations of one user; one more is rejected with 486.
    pub user_allocation_rate: Budget,
    /// Relayed bytes per second of all allocations of one user of the default realm, both directions together;
    /// `u64::MAX` is unlimited.
    ///
    /// Bytes are those on the wire where the datagram leaves: IP header (20 or 40 bytes), UDP header (8), and to the
    /// client also the ChannelData header or the Data indication. A stream counts as if it were UDP. A datagram between
    /// two allocations of this server counts for both. After an idle second, one second's worth may pass at once.
    /// Excess datagrams are dropped.
    pub bytes_per_second_per_user: u64,
    /// Relayed packets per second of all allocations of one user of the default realm, both directions together;
    /// `u64::MAX` is unlimited.
    pub packets_per_second_per_user: u64,
    /// The same bytes per second of all allocations of one source, the client's address; `u64::MAX` is unlimited.
    pub bytes_per_second_per_source: u64,
    /// The same packets per second of one source; `u64::MAX` is unlimited.
    pub packets_per_second_per_source: u64,
    /// The same bytes per second of one allocation of the default realm; `u64::MAX` is unlimited.
    pub bytes_per_second_per_allocation: u64,
    /// The same bytes per second of all users together; `u64::MAX` is unlimited.
    ///
    /// Users who send more than `100 - user_share_percent` percent of it leave as much of the bucket to others.
    pub bytes_per_second_total: u64,
    /// Bytes by which unauthenticated error responses over UDP exceed three times their requests, to all sources.
    /// Within it sources have no limit.
    pub error_excess: Budget,
    /// The same bytes to one source once the total is used up.
    pub error_excess_per_source: Budget,
    /// Binding responses to one source.
    pub binding_replies: Budget,
    /// Responses to wrong reservation tokens of one user.
    pub token_guesses: Budget,
    /// Length of the prefix that makes an IPv6 source, in bits. An IPv4 source is one address.
    pub ipv6_prefix_bits: u8,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            allocations_per_user: u32::MAX,
            allocations_total: u32::MAX,
            user_share_percent: 75,
            user_allocation_rate: Budget { per_second: 50, burst: 200 },
            bytes_per_second_per_user: u64::MAX,
            packets_per_second_per_user: u64::MAX,
            bytes_per_second_per_source: u64::MAX,
            packets_per_second_per_source: u64::MAX,
            bytes_per_second_per_allocation: u64::MAX,
            bytes_per_second_total: u64::MAX,
            error_excess: Budget { per_second: 1 << 20, burst: 1 << 20 },
            error_excess_per_source: Budget { per_second: 64 << 10, burst: 256 << 10 },
            binding_replies: Budget::UNLIMITED,
            token_guesses: Budget { per_second: 10, burst: 256 },
            ipv6_prefix_bits: 64,
        }
    }
}

/// The relay of a live allocation of any worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelayEnd {
    pub(crate) worker: WorkerId,
    pub(crate) relay: RelayId,
}

impl RelayEnd {
    /// Never zero.
    const fn bits(self) -> u64 {
        (self.relay.0 as u64) << 16 | 1 << 48 | self.worker.0 as u64
    }

    const fn of_bits(bits: u64) -> Self {
        Self { worker: WorkerId(bits as u16), relay: RelayId((bits >> 16) as u32) }
    }
}

/// The state of a token before it is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenClaim {
    /// No worker had claimed it.
    Open,
    /// A worker claims it, and may give it back.
    Claimed,
    /// It is used up, has expired, or never was.
    Unknown,
}

/// State that all workers of one server share, in an `Arc`.
#[derive(Debug)]
pub struct Shared {
    quotas: Quotas,
    seed: u64,
    draining: AtomicBool,
    memory_full: AtomicBool,
    accounts: Accounts,
    realms: Realms,
    flows: Registry,
    relayed: Registry,
    /// Open and claimed reservation tokens.
    tokens: Registry,
    meters: Meters,
    allocation_rates: Budgets,
    error_excess: ExcessBudget,
    binding_replies: Budgets,
    token_guesses: Budgets,
}

impl Shared {
    /// Creates tables for `allocations` live allocations over all workers, hashed with `seed`, which must be random
    /// and secret. Pools have no limit but the tables of each worker.
    #[must_use]
    pub fn new(quotas: Quotas, allocations: u32, seed: u64) -> Self {
        Self::with_pools(quotas, allocations, Pools::UNLIMITED, seed)
    }

    /// As [`Shared::new`], with pools that all workers share.
    #[must_use]
    pub fn with_pools(quotas: Quotas, allocations: u32, pools: Pools, seed: u64) -> Self {
        Self::with_realms((quotas, &[]), allocations, pools, seed)
    }

    /// As [`Shared::with_pools`], with limits of the realms after the default one.
    #[must_use]
    pub fn with_realms((quotas, realms): (Quotas, &[RealmQuotas]), allocations: u32, pools: Pools, seed: u64) -> Self {
        let all_realms = || core::iter::once(RealmQuotas::of_default(&quotas)).chain(realms.iter().copied());
        let pools = Pools { allocations: pools.allocations.min(quotas.allocations_total), ..pools };
        // A user with an account holds a port at least.
        let users = if pools.ports == u32::MAX { allocations.saturating_mul(2) } else { pools.ports };
        Self {
            quotas,
            seed,
            draining: AtomicBool::new(false),
            memory_full: AtomicBool::new(false),
            accounts: Accounts::new(users, pools, Share::new(quotas.user_share_percent)),
            flows: Registry::new(allocations),
            // An allocation has one of each family at most.
            relayed: Registry::new(allocations.saturating_mul(2)),
            tokens: Registry::new(allocations.div_ceil(2)),
            realms: Realms::new(all_realms(), users),
            meters: Meters::new(&quotas, all_realms(), users),
            allocation_rates: Budgets::new(quotas.user_allocation_rate),
            error_excess: ExcessBudget::new(quotas.error_excess, quotas.error_excess_per_source),
            binding_replies: Budgets::new(quotas.binding_replies),
            token_guesses: Budgets::new(quotas.token_guesses),
        }
    }

    /// Returns the limits.
    #[must_use]
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Returns the number of live allocations and reserved ports over all workers.
    #[must_use]
    pub fn allocations(&self) -> u32 {
        self.accounts.used(Pool::Allocations)
    }

    /// Returns the units of each pool in use, over all workers and users.
    #[must_use]
    pub fn used(&self) -> Pools {
        Pools {
            allocations: self.accounts.used(Pool::Allocations),
            ports: self.accounts.used(Pool::Ports),
            reservations: self.accounts.used(Pool::Reservations),
            permissions: self.accounts.used(Pool::Permissions),
            channels: self.accounts.used(Pool::Channels),
        }
    }

    /// Stops new allocations on all workers: an Allocate is rejected with 403, or with 300 if there is an
    /// [alternate](crate::Server::set_alternates).
    ///
    /// Live allocations continue and may be refreshed. RFC 8656 section 7.2 lets a server choose the clients that it
    /// serves.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Allows new allocations again.
    pub fn end_drain(&self) {
        self.draining.store(false, Ordering::Relaxed);
    }

    /// Returns whether new allocations are rejected after [`Shared::drain`].
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Sets whether the process has all the memory that it may have. Meanwhile an Allocate is rejected with 508 on all
    /// workers; live allocations continue and may be refreshed.
    pub fn set_memory_full(&self, is_full: bool) {
        self.memory_full.store(is_full, Ordering::Relaxed);
    }

    /// Returns what [`Shared::set_memory_full`] set.
    #[must_use]
    pub fn is_memory_full(&self) -> bool {
        self.memory_full.load(Ordering::Relaxed)
    }

    /// Returns the number of live allocations and reserved ports of one realm over all workers.
    #[must_use]
    pub fn allocations_of(&self, realm: RealmId) -> u32 {
        self.realms.used(realm)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Takes the units of `charge` for a user, all or none, and returns the user's account. A user's first account
    /// starts with empty traffic buckets and the debt of the one before, so that a user gains nothing by ending and making
    /// allocations.
    ///
    /// # Errors
    /// The quota or pool that is used up.
    pub(crate) fn charge(
        &self,
        now: Nanos,
        (realm, user): (RealmId, u64),
        charge: Charge,
    ) -> Result<u32, RejectReason> {
        let references = charge.references();
        let opened = self.accounts.open(user, references, |place| {
            self.realms.assign(place, realm);
            self.meters.begin(place, user, now);
        });
        let account = opened.ok_or(RejectReason::Allocations)?;
        let parts = charge.parts();
        for (index, (pool, units)) in parts.into_iter().enumerate() {
            if let Err(reason) = self.take(account, pool, units) {
                parts[..index].iter().for_each(|(pool, units)| self.give(account, *pool, *units));
                self.close(user, references);
                return Err(reason);
            }
        }
        Ok(account)
    }

    /// Returns the units of `charge`.
    pub(crate) fn refund(&self, user: u64, charge: Charge) {
        let Some(account) = self.accounts.place(user) else { return };
        for (pool, units) in charge.parts() {
            self.give(account, pool, units);
        }
        self.close(user, charge.references());
    }

    /// Removes references from the account of a user. What the user owes outlives the account.
    fn close(&self, user: u64, references: u32) {
        self.accounts.close(user, references, |place| self.meters.end(place, user));
    }

    /// Takes units of a pool for an account.
    ///
    /// # Errors
    /// The quota or pool that is used up.
    pub(crate) fn take(&self, account: u32, pool: Pool, units: u32) -> Result<(), RejectReason> {
        if units == 0 {
            return Ok(());
        }
        let is_allocation = pool == Pool::Allocations;
        let most = if is_allocation { self.realms.allocations_per_user(account) } else { u32::MAX };
        self.take_from_pool(account, pool, units, most)?;
        if is_allocation && !self.realms.take(account, units) {
            self.accounts.give(account, pool, units);
            return Err(RejectReason::RealmQuota);
        }
        Ok(())
    }

    fn take_from_pool(&self, account: u32, pool: Pool, units: u32, most: u32) -> Result<(), RejectReason> {
        self.accounts.take(account, pool, units, most).map_err(|shortage| match (pool, shortage) {
            (_, Shortage::Quota) => RejectReason::UserQuota,
            (Pool::Allocations, Shortage::Empty) if self.is_total_reached(units) => RejectReason::TotalQuota,
            (Pool::Allocations, Shortage::Empty) => RejectReason::Allocations,
            (Pool::Allocations, Shortage::Share) => RejectReason::AllocationsShare,
            (Pool::Ports, Shortage::Empty) => RejectReason::RelayPool,
            (Pool::Ports, Shortage::Share) => RejectReason::PortsShare,
            (Pool::Reservations, Shortage::Empty) => RejectReason::Reservations,
            (Pool::Reservations, Shortage::Share) => RejectReason::ReservationsShare,
            (Pool::Permissions, Shortage::Empty) => RejectReason::Permissions,
            (Pool::Permissions, Shortage::Share) => RejectReason::PermissionsShare,
            (Pool::Channels, Shortage::Empty) => RejectReason::Channels,
            (Pool::Channels, Shortage::Share) => RejectReason::ChannelsShare,
        })
    }

    /// Returns units of a pool from an account.
    pub(crate) fn give(&self, account: u32, pool: Pool, units: u32) {
        if units > 0 {
            self.accounts.give(account, pool, units);
            if pool == Pool::Allocations {
                self.realms.give(account, units);
            }
        }
    }

    fn is_total_reached(&self, units: u32) -> bool {
        self.allocations().checked_add(units).is_none_or(|more| more > self.quotas.allocations_total)
    }

    /// Takes one allocation from the rate of a user.
    pub(crate) fn spend_allocation(&self, now: Nanos, user: u64) -> bool {
        self.allocation_rates.spend(now, fold(&[user], self.seed), 1)
    }

    /// Returns the account of a user who holds something.
    pub(crate) fn account(&self, user: u64) -> Option<u32> {
        self.accounts.place(user)
    }

    /// Returns the meter of a new allocation of an account, for a client at `source`.
    pub(crate) fn meter(&self, account: u32, source: IpAddr, now: Nanos) -> Meter {
        self.meters.meter((self.realms.of(account), account), self.source_key(source), now)
    }

    /// Takes a datagram to `to`, with `len` bytes after its UDP header, from the quotas of the meter's allocation, of
    /// its user and of the process; from all or from none.
    ///
    /// # Errors
    /// The quota that is used up.
    #[inline]
    pub(crate) fn spend_traffic(
        &self,
        meter: &mut Meter,
        now: Nanos,
        to: SocketAddr,
        len: usize,
    ) -> Result<(), DropReason> {
        match meter.user {
            NO_INDEX => Ok(()),
            _ => self.meters.spend(meter, now, wire_len(to.ip(), len)),
        }
    }

    /// Publishes that `worker` owns the flow; returns `false` if the table is full.
    pub(crate) fn publish_flow(&self, flow: &FlowKey, worker: WorkerId) -> bool {
        let owner = u64::from(worker.0) + 1;
        self.flows.adjust(self.flow_key(flow), |_| owner) != Adjusted::Full
    }

    /// Withdraws the owner of the flow.
    pub(crate) fn withdraw_flow(&self, flow: &FlowKey) {
        self.flows.adjust(self.flow_key(flow), |_| 0);
    }

    /// Publishes that `relay` of `worker` has the relayed address; returns `false` if the table is full.
    pub(crate) fn publish_relayed(&self, relayed: SocketAddr, end: RelayEnd) -> bool {
        self.relayed.adjust(self.addr_key(relayed), |_| end.bits()) != Adjusted::Full
    }

    /// Withdraws the relayed address.
    pub(crate) fn withdraw_relayed(&self, relayed: SocketAddr) {
        self.relayed.adjust(self.addr_key(relayed), |_| 0);
    }

    /// Publishes the token of a reserved relay; returns `false` if the table is full, or has it.
    pub(crate) fn publish_token(&self, token: u64) -> bool {
        let publish = |before| if before == 0 { TOKEN_OPEN } else { before };
        self.tokens.adjust(fold(&[token], self.seed), publish) == Adjusted::From(0)
    }

    /// Claims the relay of `token`: of several workers that do, one gets [`TokenClaim::Open`].
    pub(crate) fn claim_token(&self, token: u64) -> TokenClaim {
        let claim = |before| if before == TOKEN_OPEN { TOKEN_CLAIMED } else { before };
        match self.tokens.adjust(fold(&[token], self.seed), claim) {
            Adjusted::From(TOKEN_OPEN) => TokenClaim::Open,
            Adjusted::From(TOKEN_CLAIMED) => TokenClaim::Claimed,
            Adjusted::From(_) | Adjusted::Full => TokenClaim::Unknown,
        }
    }

    /// Undoes [`Shared::claim_token`] of the worker that got it.
    pub(crate) fn reopen_token(&self, token: u64) {
        self.tokens.adjust(fold(&[token], self.seed), |_| TOKEN_OPEN);
    }

    /// Withdraws the token.
    pub(crate) fn withdraw_token(&self, token: u64) {
        self.tokens.adjust(fold(&[token], self.seed), |_| 0);
    }

    /// Returns whether `token` may be claimed.
    pub(crate) fn is_token_open(&self, token: u64) -> bool {
        self.tokens.get(fold(&[token], self.seed)) == Some(TOKEN_OPEN)
    }

    /// Returns the worker that has the flow's allocation.
    #[inline]
    pub(crate) fn flow_owner(&self, flow: &FlowKey) -> Option<WorkerId> {
        self.flows.get(self.flow_key(flow)).map(|owner| WorkerId((owner - 1) as u16))
    }

    /// Returns the relay with the relayed address `addr`, if it is a live allocation's of any worker.
    #[inline]
    pub(crate) fn relay_end(&self, addr: SocketAddr) -> Option<RelayEnd> {
        self.relayed.get(self.addr_key(addr)).map(RelayEnd::of_bits)
    }

    /// Takes an error response of `len` bytes to a request of `request_len` bytes from the budgets of unproven sources.
    /// Only what exceeds three times the request counts.
    #[inline]
    pub(crate) fn spend_error_reply(&self, now: Nanos, source: IpAddr, len: usize, request_len: usize) -> bool {
        match len.saturating_sub(AMPLIFICATION_FREE * request_len) {
            0 => true,
            excess => self.error_excess.spend(now, self.source_key(source), excess as u64),
        }
    }

    #[inline]
    pub(crate) fn spend_binding_reply(&self, now: Nanos, source: IpAddr) -> bool {
        self.binding_replies.is_unlimited() || self.binding_replies.spend(now, self.source_key(source), 1)
    }

    /// Takes one response to a wrong reservation token from the user's budget.
    pub(crate) fn spend_token_guess(&self, now: Nanos, user: u64) -> bool {
        self.token_guesses.spend(now, fold(&[user], self.seed), 1)
    }

    #[inline]
    fn source_key(&self, source: IpAddr) -> u64 {
        source_key(source, self.quotas.ipv6_prefix_bits, self.seed)
    }

    fn flow_key(&self, flow: &FlowKey) -> u64 {
        match flow {
            FlowKey::V4(bits) => fold(&[(bits >> 64) as u64, *bits as u64], self.seed),
            FlowKey::V6(words) => fold(words, self.seed),
        }
    }

    fn addr_key(&self, addr: SocketAddr) -> u64 {
        let addr = canonical(addr);
        let bits = bits_v6(addr.ip());
        fold(&[(bits >> 64) as u64, bits as u64, u64::from(addr.port())], self.seed)
    }
}
