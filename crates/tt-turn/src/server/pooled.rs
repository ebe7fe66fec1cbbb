//! Permissions and channels from the pools of all users, beyond those that each allocation is guaranteed.

use super::Server;
use crate::config::{CHANNELS_GUARANTEED, PERMISSIONS_GUARANTEED};
use crate::rejection::RejectReason;
use crate::shared::Pool;

/// Permissions and channels of an allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Units {
    pub(super) permissions: u32,
    pub(super) channels: u32,
}

impl Server {
    /// Takes what an allocation that has `has` needs from the pools before it gets `added` permissions and channels; all or none.
    ///
    /// # Errors
    /// A pool is empty, or the user has its share.
    #[inline]
    pub(super) fn take_pooled(&self, (account, has): (u32, Units), added: Units) -> Result<(), RejectReason> {
        let permissions = beyond(has.permissions, added.permissions, PERMISSIONS_GUARANTEED);
        let channels = beyond(has.channels, added.channels, CHANNELS_GUARANTEED);
        self.shared.take(account, Pool::Permissions, permissions)?;
        self.shared
            .take(account, Pool::Channels, channels)
            .inspect_err(|_| self.shared.give(account, Pool::Permissions, permissions))
    }

    /// Returns to the pools what an allocation does not need after `ended` permissions and channels have gone.
    pub(super) fn give_pooled(&self, index: u32, ended: Units) {
        let Some((account, has)) = self.account_of(index) else { return };
        self.shared.give(
            account,
            Pool::Permissions,
            beyond(has.permissions, ended.permissions, PERMISSIONS_GUARANTEED),
        );
        self.shared.give(account, Pool::Channels, beyond(has.channels, ended.channels, CHANNELS_GUARANTEED));
    }

    /// Returns the account of an allocation's user, and what the allocation has.
    #[inline]
    pub(super) fn account_of(&self, index: u32) -> Option<(u32, Units)> {
        let allocation = self.allocations.get(index)?;
        let (permissions, channels) = allocation.used();
        Some((allocation.account, Units { permissions, channels }))
    }
}

/// Returns how many of the `more` units after the first `has` are beyond the `guaranteed` ones.
#[inline]
fn beyond(has: u32, more: u32, guaranteed: u32) -> u32 {
    (has + more).saturating_sub(guaranteed.max(has))
}
