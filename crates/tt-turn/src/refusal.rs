//! Why a request that is well-formed was refused.

use crate::error::ErrorCode;
use crate::policy::RuleIndex;

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $code:ident;)*) => {
        /// Why an authenticated, well-formed request was answered 403, 486 or 508: which rule, which quota, which room.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Refusal {
            $($(#[$doc])* $variant,)*
        }

        impl Refusal {
            /// Every refusal, in the order of [`Counters::refusals`](crate::Counters).
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The refusal's name in metrics and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What the client is answered.
            #[must_use]
            pub const fn code(self) -> ErrorCode {
                match self {
                    $(Self::$variant => ErrorCode::$code,)*
                }
            }
        }
    };
}

refusals! {
    /// 403: the peer policy denies a peer; the event says which rule.
    PeerDenied = "peer_denied", Forbidden;
    /// 403: the server makes no new allocation, since it is about to end.
    Draining = "draining", Forbidden;
    /// 403: the client is behind 6to4 or Teredo (RFC 8656 section 21.4).
    ClientTunnel = "client_tunnel", Forbidden;
    /// 486: the user has as many allocations and reserved ports as one user may have.
    UserQuota = "user_quota", AllocationQuotaReached;
    /// 486: all users together have as many as there may be.
    TotalQuota = "total_quota", AllocationQuotaReached;
    /// 508: no relay of the family, or none with an even port, waits.
    RelayPool = "relay_pool", InsufficientCapacity;
    /// 508: no two relays on a port and the next one wait.
    RelayPairs = "relay_pairs", InsufficientCapacity;
    /// 508: the reservation token was never given out, or is used or expired.
    Token = "token", InsufficientCapacity;
    /// 508: a client on a byte stream claims a relay that another worker holds; a connection does not change workers.
    TokenElsewhere = "token_elsewhere", InsufficientCapacity;
    /// 508: no more ports can be held in reserve.
    Reservations = "reservations", InsufficientCapacity;
    /// 508: the worker has no room for one more allocation.
    Allocations = "allocations", InsufficientCapacity;
    /// 508: the allocation has as many permissions as one may have.
    PermissionsPerAllocation = "permissions_per_allocation", InsufficientCapacity;
    /// 508: the worker has no room for one more permission.
    Permissions = "permissions", InsufficientCapacity;
    /// 508: the allocation has as many channels as one may have.
    ChannelsPerAllocation = "channels_per_allocation", InsufficientCapacity;
    /// 508: the worker has no room for one more channel.
    Channels = "channels", InsufficientCapacity;
}

/// One refusal, on its way into an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) refusal: Refusal,
    /// Which rule of the peer policy, where it was one.
    pub(crate) rule: Option<RuleIndex>,
}
