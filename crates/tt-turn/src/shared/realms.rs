//! Allocations of each realm, over all workers.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::Quotas;
use crate::realm::{REALMS_MAX, RealmId};

/// Limits of one realm, over all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealmQuotas {
    /// Live allocations and reserved ports of all its users; one more is rejected with 486.
    pub allocations: u32,
    /// Live allocations and reserved ports of one user; one more is rejected with 486.
    pub allocations_per_user: u32,
    /// Relayed bytes per second of one user; see [`Quotas::bytes_per_second_per_user`].
    pub bytes_per_second_per_user: u64,
    /// Relayed packets per second of one user; see [`Quotas::packets_per_second_per_user`].
    pub packets_per_second_per_user: u64,
    /// Relayed bytes per second of one allocation; see [`Quotas::bytes_per_second_per_allocation`].
    pub bytes_per_second_per_allocation: u64,
}

impl Default for RealmQuotas {
    /// No limit.
    fn default() -> Self {
        Self {
            allocations: u32::MAX,
            allocations_per_user: u32::MAX,
            bytes_per_second_per_user: u64::MAX,
            packets_per_second_per_user: u64::MAX,
            bytes_per_second_per_allocation: u64::MAX,
        }
    }
}

impl RealmQuotas {
    /// Returns the limits that `quotas` have for the default realm.
    #[must_use]
    pub const fn of_default(quotas: &Quotas) -> Self {
        Self {
            allocations: quotas.allocations_of_default_realm,
            allocations_per_user: quotas.allocations_per_user,
            bytes_per_second_per_user: quotas.bytes_per_second_per_user,
            packets_per_second_per_user: quotas.packets_per_second_per_user,
            bytes_per_second_per_allocation: quotas.bytes_per_second_per_allocation,
        }
    }
}

/// Allocations and reserved ports in use of each realm, by [`RealmId`], and the realm of each account.
#[derive(Debug)]
pub(super) struct Realms {
    used: Box<[AtomicU32]>,
    of_accounts: Box<[AtomicU16]>,
}

impl Realms {
    /// Creates room for the most realms, and for this number of accounts.
    pub(super) fn new(accounts: u32) -> Self {
        Self {
            used: (0..=REALMS_MAX).map(|_| AtomicU32::new(0)).collect(),
            of_accounts: (0..accounts).map(|_| AtomicU16::new(0)).collect(),
        }
    }

    /// Sets the realm of a new account.
    pub(super) fn assign(&self, account: u32, realm: RealmId) {
        if let Some(of) = self.of_accounts.get(account as usize) {
            of.store(realm.0, Ordering::Relaxed);
        }
    }

    /// Returns the realm of an account.
    pub(super) fn of(&self, account: u32) -> RealmId {
        RealmId(self.of_accounts.get(account as usize).map_or(0, |of| of.load(Ordering::Relaxed)))
    }

    fn used_by(&self, account: u32) -> Option<&AtomicU32> {
        self.used.get(usize::from(self.of(account).0))
    }

    /// Takes `units` for an account from its realm, which may have `most`; all or none.
    pub(super) fn take(&self, account: u32, units: u32, most: u32) -> bool {
        let Some(used) = self.used_by(account) else { return false };
        let more = |used: u32| used.checked_add(units).filter(|more| *more <= most);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Returns `units` of an account to its realm.
    pub(super) fn give(&self, account: u32, units: u32) {
        if let Some(used) = self.used_by(account) {
            used.fetch_sub(units, Ordering::Relaxed);
        }
    }

    /// Returns the allocations and reserved ports of a realm.
    pub(super) fn used(&self, realm: RealmId) -> u32 {
        self.used.get(usize::from(realm.0)).map_or(0, |used| used.load(Ordering::Relaxed))
    }
}
