//! The quotas in force, with what users and sources have taken of those that are rates.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::Quotas;
use super::accounts::{Bound, Pool, Pools, Share};
use super::budget::{Budgets, ExcessBudget};
use super::meter::Meters;
use super::realms::RealmQuotas;
use crate::realm::RealmId;

/// The quotas in force, with what users and sources have taken of those that are rates. All servers of a
/// [`Shared`](super::Shared) have the same, but for the moment of a change.
#[derive(Debug)]
pub struct Limits {
    quotas: Quotas,
    /// By [`RealmId`].
    realms: Box<[RealmQuotas]>,
    /// Accounts that have meters, if anything limits traffic.
    accounts: u32,
    /// What all users together may hold, if the shared state has room for it.
    pools: Pools,
    share: Share,
    pub(super) meters: Meters,
    pub(super) allocation_rates: Budgets,
    pub(super) error_excess: ExcessBudget,
    pub(super) binding_replies: Budgets,
    pub(super) token_guesses: Budgets,
}

impl Limits {
    /// Creates limits for this number of accounts. `further` are those of the realms after the default one.
    pub(super) fn new(quotas: Quotas, further: &[RealmQuotas], pools: Pools, accounts: u32) -> Self {
        let realms = core::iter::once(RealmQuotas::of_default(&quotas)).chain(further.iter().copied());
        let realms: Box<[RealmQuotas]> = realms.collect();
        Self {
            accounts,
            pools: Pools { allocations: pools.allocations.min(quotas.allocations_total), ..pools },
            share: Share::new(quotas.user_share_percent),
            meters: Meters::new(&quotas, realms.iter().copied(), accounts),
            allocation_rates: Budgets::new(quotas.user_allocation_rate),
            error_excess: ExcessBudget::new(quotas.error_excess, quotas.error_excess_per_source),
            binding_replies: Budgets::new(quotas.binding_replies),
            token_guesses: Budgets::new(quotas.token_guesses),
            quotas,
            realms,
        }
    }

    /// Returns limits by other quotas, for [`Server::replace_limits`](crate::Server::replace_limits) of every worker.
    /// `further` are those of the realms after the default one, and `pools` what all users together may hold, at most what
    /// the [`Shared`](super::Shared) was made for.
    ///
    /// Whoever has used up a rate has used up the new one, for as long as by the old one. Who had no limit before begins
    /// with a full bucket. Allocations, permissions and channels beyond a new limit stay. Allocates memory.
    #[must_use]
    pub fn succeeded_by(&self, quotas: Quotas, further: &[RealmQuotas], pools: Pools) -> Arc<Self> {
        let new = Self::new(quotas, further, pools, self.accounts);
        new.meters.continue_from(&self.meters);
        Arc::new(Self {
            allocation_rates: self.allocation_rates.succeeded_by(quotas.user_allocation_rate),
            error_excess: self.error_excess.succeeded_by(quotas.error_excess, quotas.error_excess_per_source),
            binding_replies: self.binding_replies.succeeded_by(quotas.binding_replies),
            token_guesses: self.token_guesses.succeeded_by(quotas.token_guesses),
            ..new
        })
    }

    /// Returns the quotas.
    #[must_use]
    pub const fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Returns the quotas of a realm; without any, nothing is allowed.
    pub(super) fn realm(&self, realm: RealmId) -> Option<&RealmQuotas> {
        self.realms.get(usize::from(realm.0))
    }

    /// Returns what limits a user in a pool, beyond a quota of single users.
    pub(super) const fn bound(&self, pool: Pool) -> Bound {
        Bound { most: u32::MAX, total: self.pools.size(pool), share: self.share }
    }
}
