//! Reasons for rejecting a request.

use crate::error::ErrorCode;
use crate::policy::RuleIndex;

macro_rules! reject_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $code:ident;)*) => {
        /// Reason for rejecting an authenticated, well-formed request with 300, 403, 486 or 508.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum RejectReason {
            $($(#[$doc])* $variant,)*
        }

        impl RejectReason {
            /// Every reason, in the order of [`Counters::rejections`](crate::Counters::rejections).
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the reason's name in metrics and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the error code of the response.
            #[must_use]
            pub const fn code(self) -> ErrorCode {
                match self {
                    $(Self::$variant => ErrorCode::$code,)*
                }
            }
        }
    };
}

reject_reasons! {
    /// 403: the peer policy denies a peer. The event names the rule.
    PeerDenied = "peer_denied", Forbidden;
    /// 403: the server is draining and creates no allocation.
    Draining = "draining", Forbidden;
    /// 300: likewise, and another server takes the client.
    Redirected = "redirected", TryAlternate;
    /// 403: the client is behind 6to4 or Teredo (RFC 8656 section 21.4).
    ClientTunnel = "client_tunnel", Forbidden;
    /// 486: the user has the maximum number of allocations and reserved ports.
    UserQuota = "user_quota", AllocationQuotaReached;
    /// 486: the users of the realm together have the maximum number.
    RealmQuota = "realm_quota", AllocationQuotaReached;
    /// 486: all users together have the maximum number.
    TotalQuota = "total_quota", AllocationQuotaReached;
    /// 486: the remaining allocations are for users who have fewer.
    AllocationsShare = "allocations_share", AllocationQuotaReached;
    /// 486: the remaining relay ports are for users who have fewer; those that rest after use count.
    PortsShare = "ports_share", AllocationQuotaReached;
    /// 486: the remaining reservations are for users who have fewer.
    ReservationsShare = "reservations_share", AllocationQuotaReached;
    /// 486: the user creates allocations too fast.
    AllocationRate = "allocation_rate", AllocationQuotaReached;
    /// 508: the remaining permissions are for users who have fewer.
    PermissionsShare = "permissions_share", InsufficientCapacity;
    /// 508: the remaining channels are for users who have fewer.
    ChannelsShare = "channels_share", InsufficientCapacity;
    /// 508: the pool has no relay of the family, or none with an even port; or the socket of a token cannot be added.
    RelayPool = "relay_pool", InsufficientCapacity;
    /// 508: the pool has no pair of relays on adjacent ports.
    RelayPairs = "relay_pairs", InsufficientCapacity;
    /// 508: the reservation token is unknown, used or expired.
    Token = "token", InsufficientCapacity;
    /// 508: the maximum number of ports is reserved.
    Reservations = "reservations", InsufficientCapacity;
    /// 508: the process has the memory that it may have.
    Memory = "memory", InsufficientCapacity;
    /// 508: the pool, or the worker's table, of allocations is full.
    Allocations = "allocations", InsufficientCapacity;
    /// 508: the allocation has the maximum number of permissions.
    PermissionsPerAllocation = "permissions_per_allocation", InsufficientCapacity;
    /// 508: the pool, or the worker's table, of permissions is full.
    Permissions = "permissions", InsufficientCapacity;
    /// 508: the allocation has the maximum number of channels.
    ChannelsPerAllocation = "channels_per_allocation", InsufficientCapacity;
    /// 508: the pool, or the worker's table, of channels is full.
    Channels = "channels", InsufficientCapacity;
}

/// Cause of an error response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rejection {
    pub(crate) code: ErrorCode,
    pub(crate) reason: Option<RejectReason>,
    /// The rule of the peer policy that denied a peer.
    pub(crate) rule: Option<RuleIndex>,
}

impl Rejection {
    /// A peer that `rule` denies.
    pub(crate) const fn peer_denied(rule: RuleIndex) -> Self {
        let reason = RejectReason::PeerDenied;
        Self { code: reason.code(), reason: Some(reason), rule: Some(rule) }
    }
}

impl From<ErrorCode> for Rejection {
    fn from(code: ErrorCode) -> Self {
        Self { code, reason: None, rule: None }
    }
}

impl From<RejectReason> for Rejection {
    fn from(reason: RejectReason) -> Self {
        Self { code: reason.code(), reason: Some(reason), rule: None }
    }
}
