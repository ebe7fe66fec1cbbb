//! What the workers share: quotas, budgets, and who owns which flow and relayed address.

mod budget;
pub(crate) mod registry;

pub use budget::Budget;

use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU32, Ordering};

use tt_model::Nanos;

use crate::flow::{FlowKey, bits_v6, canonical};
use crate::output::WorkerId;
use budget::Budgets;
use registry::{Adjusted, Registry, fold};

/// Bounds over all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Live allocations of one user; one more is answered 486.
    pub allocations_per_user: u32,
    /// Live allocations of all users; one more is answered 486.
    pub allocations_total: u32,
    /// Unauthenticated error replies to one source address.
    pub error_replies: Budget,
    /// Binding answers to one source address.
    pub binding_replies: Budget,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            allocations_per_user: u32::MAX,
            allocations_total: u32::MAX,
            error_replies: Budget { per_second: 10, burst: 256 },
            binding_replies: Budget::UNLIMITED,
        }
    }
}

/// What all workers of one server share. The caller makes one, in an `Arc`.
#[derive(Debug)]
pub struct Shared {
    quotas: Quotas,
    seed: u64,
    allocations: AtomicU32,
    users: Registry,
    flows: Registry,
    relayed: Registry,
    error_replies: Budgets,
    binding_replies: Budgets,
}

impl Shared {
    /// Shared state with `quotas`, with tables for `allocations` live ones over all workers, hashed with `seed`,
    /// which is random and secret.
    #[must_use]
    pub fn new(quotas: Quotas, allocations: u32, seed: u64) -> Self {
        Self {
            quotas,
            seed,
            allocations: AtomicU32::new(0),
            users: Registry::new(allocations),
            flows: Registry::new(allocations),
            relayed: Registry::new(allocations),
            error_replies: Budgets::new(quotas.error_replies),
            binding_replies: Budgets::new(quotas.binding_replies),
        }
    }

    /// The bounds.
    #[must_use]
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Live allocations over all workers.
    #[must_use]
    pub fn allocations(&self) -> u32 {
        self.allocations.load(Ordering::Relaxed)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Takes one unit of the total and of the user's quota; false where either is used up.
    pub(crate) fn take_quota(&self, user: u64) -> bool {
        let total = self.quotas.allocations_total;
        let more = |live: u32| if live < total { live.checked_add(1) } else { None };
        if self.allocations.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return false;
        }
        let taken =
            self.users.adjust(user, |units| if units < self.quotas.allocations_per_user { units + 1 } else { units });
        if matches!(taken, Adjusted::From(units) if units < self.quotas.allocations_per_user) {
            return true;
        }
        self.allocations.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Gives the units back.
    pub(crate) fn return_quota(&self, user: u64) {
        self.users.adjust(user, |units| units.saturating_sub(1));
        self.allocations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes known that `worker` owns the flow and the relayed address; false where there is no room.
    pub(crate) fn publish(&self, flow: &FlowKey, relayed: SocketAddr, worker: WorkerId) -> bool {
        let owner = u32::from(worker.0) + 1;
        let (flow, relayed) = (self.flow_key(flow), self.addr_key(relayed));
        if self.flows.adjust(flow, |_| owner) == Adjusted::Full {
            return false;
        }
        if self.relayed.adjust(relayed, |_| owner) == Adjusted::Full {
            self.flows.adjust(flow, |_| 0);
            return false;
        }
        true
    }

    /// Takes back what was published.
    pub(crate) fn withdraw(&self, flow: &FlowKey, relayed: SocketAddr) {
        self.flows.adjust(self.flow_key(flow), |_| 0);
        self.relayed.adjust(self.addr_key(relayed), |_| 0);
    }

    /// The worker that has the flow's allocation.
    #[inline]
    pub(crate) fn flow_owner(&self, flow: &FlowKey) -> Option<WorkerId> {
        self.flows.get(self.flow_key(flow)).map(|owner| WorkerId((owner - 1) as u16))
    }

    /// Whether `addr` is the relayed address of a live allocation, of any worker.
    #[inline]
    pub(crate) fn is_relayed(&self, addr: SocketAddr) -> bool {
        self.relayed.get(self.addr_key(addr)).is_some()
    }

    #[inline]
    pub(crate) fn spend_error_reply(&self, now: Nanos, source: IpAddr) -> bool {
        self.error_replies.spend(now, source, self.seed)
    }

    #[inline]
    pub(crate) fn spend_binding_reply(&self, now: Nanos, source: IpAddr) -> bool {
        self.binding_replies.spend(now, source, self.seed)
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
