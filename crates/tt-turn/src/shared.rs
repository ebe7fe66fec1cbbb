//! State that all workers share: quotas, budgets, owners of flows and relayed addresses.

mod accounts;
mod budget;
mod charge;
mod debts;
mod limits;
mod meter;
mod rate;
mod realms;
pub(crate) mod registry;
mod view;

pub(crate) use accounts::Pool;
pub use accounts::Pools;
pub use budget::Budget;
pub(crate) use charge::Charge;
pub use limits::Limits;
pub(crate) use meter::Meter;
pub use realms::RealmQuotas;
pub(crate) use view::View;

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::flow::{FlowKey, bits_v6, canonical};
use crate::output::WorkerId;
use crate::realm::RealmId;
use crate::relay::RelayId;
use accounts::Accounts;
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
    /// Live allocations and reserved ports of all users of the default realm; one more is rejected with 486.
    pub allocations_of_default_realm: u32,
    /// Live allocations and reserved ports of all users of all realms; one more is rejected with 486.
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
            allocations_of_default_realm: u32::MAX,
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
    /// The limits of the start.
    limits: Arc<Limits>,
    seed: u64,
    draining: AtomicBool,
    memory_full: AtomicBool,
    accounts: Accounts,
    realms: Realms,
    flows: Registry,
    relayed: Registry,
    /// Open and claimed reservation tokens.
    tokens: Registry,
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
        // A user with an account holds a port at least.
        let users = if pools.ports == u32::MAX { allocations.saturating_mul(2) } else { pools.ports };
        Self {
            limits: Arc::new(Limits::new(quotas, realms, pools, users)),
            seed,
            draining: AtomicBool::new(false),
            memory_full: AtomicBool::new(false),
            accounts: Accounts::new(users, pools),
            flows: Registry::new(allocations),
            // An allocation has one of each family at most.
            relayed: Registry::new(allocations.saturating_mul(2)),
            tokens: Registry::new(allocations.div_ceil(2)),
            realms: Realms::new(users),
        }
    }

    /// Returns the limits of the start, which servers have until [`Server::replace_limits`](crate::Server::replace_limits).
    #[must_use]
    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits)
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

    /// Returns the account of a user who holds something.
    pub(crate) fn account(&self, user: u64) -> Option<u32> {
        self.accounts.place(user)
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
