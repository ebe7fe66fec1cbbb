//! The shared state as one worker sees it: with the limits in force.

use alloc::sync::Arc;
use core::net::{IpAddr, SocketAddr};
use core::ops::Deref;

use tt_model::Nanos;

use super::accounts::{Bound, Pool, Shortage};
use super::budget::source_key;
use super::charge::Charge;
use super::limits::Limits;
use super::meter::{Meter, wire_len};
use super::registry::fold;
use super::{AMPLIFICATION_FREE, Shared};
use crate::drop_reason::DropReason;
use crate::realm::RealmId;
use crate::rejection::RejectReason;

/// The state of all workers, and the limits that one worker goes by.
#[derive(Debug)]
pub(crate) struct View {
    shared: Arc<Shared>,
    limits: Arc<Limits>,
}

impl Deref for View {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl View {
    /// Returns the view with the limits of the start.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { limits: shared.limits(), shared }
    }

    /// Goes by `limits` from here on, and returns those before.
    pub(crate) fn replace_limits(&mut self, limits: Arc<Limits>) -> Arc<Limits> {
        core::mem::replace(&mut self.limits, limits)
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
            self.limits.meters.begin(place, user, now);
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
        self.accounts.close(user, references, |place| self.limits.meters.end(place, user));
    }

    /// Takes units of a pool for an account.
    ///
    /// # Errors
    /// The quota or pool that is used up.
    pub(crate) fn take(&self, account: u32, pool: Pool, units: u32) -> Result<(), RejectReason> {
        if units == 0 {
            return Ok(());
        }
        if pool != Pool::Allocations {
            return self.take_within(account, pool, units, self.limits.bound(pool));
        }
        let Some(realm) = self.limits.realm(self.realms.of(account)) else { return Err(RejectReason::RealmQuota) };
        let bound = Bound { most: realm.allocations_per_user, ..self.limits.bound(pool) };
        self.take_within(account, pool, units, bound)?;
        if !self.realms.take(account, units, realm.allocations) {
            self.accounts.give(account, pool, units);
            return Err(RejectReason::RealmQuota);
        }
        Ok(())
    }

    fn take_within(&self, account: u32, pool: Pool, units: u32, bound: Bound) -> Result<(), RejectReason> {
        self.accounts.take(account, pool, units, bound).map_err(|shortage| match (pool, shortage) {
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
        self.allocations().checked_add(units).is_none_or(|more| more > self.limits.quotas().allocations_total)
    }

    /// Takes one allocation from the rate of a user.
    pub(crate) fn spend_allocation(&self, now: Nanos, user: u64) -> bool {
        self.limits.allocation_rates.spend(now, fold(&[user], self.seed()), 1)
    }

    /// Returns the meter of a new allocation of an account, for a client at `source`.
    pub(crate) fn meter(&self, account: u32, source: IpAddr, now: Nanos) -> Meter {
        Meter::new((self.realms.of(account), account), self.source_key(source), now)
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
        if self.limits.meters.is_unlimited() {
            return Ok(());
        }
        self.limits.meters.spend(meter, now, wire_len(to.ip(), len))
    }

    /// Returns whether no quota limits traffic.
    pub(crate) fn is_traffic_unlimited(&self) -> bool {
        self.limits.meters.is_unlimited()
    }

    /// Takes an error response of `len` bytes to a request of `request_len` bytes from the budgets of unproven sources.
    /// Only what exceeds three times the request counts.
    #[inline]
    pub(crate) fn spend_error_reply(&self, now: Nanos, source: IpAddr, len: usize, request_len: usize) -> bool {
        match len.saturating_sub(AMPLIFICATION_FREE * request_len) {
            0 => true,
            excess => self.limits.error_excess.spend(now, self.source_key(source), excess as u64),
        }
    }

    #[inline]
    pub(crate) fn spend_binding_reply(&self, now: Nanos, source: IpAddr) -> bool {
        self.limits.binding_replies.is_unlimited() || self.spend_limited_binding_reply(now, source)
    }

    /// Apart, so that a pass without a limit stays short.
    #[inline(never)]
    fn spend_limited_binding_reply(&self, now: Nanos, source: IpAddr) -> bool {
        self.limits.binding_replies.spend(now, self.source_key(source), 1)
    }

    /// Takes one response to a wrong reservation token from the user's budget.
    pub(crate) fn spend_token_guess(&self, now: Nanos, user: u64) -> bool {
        self.limits.token_guesses.spend(now, fold(&[user], self.seed()), 1)
    }

    #[inline]
    fn source_key(&self, source: IpAddr) -> u64 {
        source_key(source, self.limits.quotas().ipv6_prefix_bits, self.seed())
    }
}
