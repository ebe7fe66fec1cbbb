//! Reasons for dropping a datagram.

use core::fmt;

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// Reason for dropping a datagram: no reply, no change of state, one counter incremented.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[$doc])* $variant,)*
        }

        impl DropReason {
            /// Every reason, in the order of [`Counters::drops`](crate::Counters::drops).
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the reason's name in metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// Shorter than a STUN or a ChannelData header.
    Short = "short";
    /// The first bits are neither STUN nor ChannelData, or the magic cookie is wrong.
    NotStun = "not_stun";
    /// The length in the header is not a multiple of four, or not that of the datagram.
    Length = "length";
    /// An attribute extends past the end.
    Attribute = "attribute";
    /// A request longer than [`REQUEST_MAX`](crate::config::REQUEST_MAX).
    RequestLength = "request_length";
    /// STUN from a source that is [banned](crate::bans::Bans).
    Banned = "banned";
    /// FINGERPRINT is wrong, or not the last attribute.
    Fingerprint = "fingerprint";
    /// A response or a Data indication, which no client sends.
    Class = "class";
    /// An unknown method, or a method in the wrong class.
    Method = "method";
    /// A Binding indication: a keep-alive without a response.
    BindingIndication = "binding_indication";
    /// The source's budget of Binding responses is used up.
    BindingBudget = "binding_budget";
    /// The budgets of unauthenticated error responses, in total and of the source, are used up.
    ErrorBudget = "error_budget";
    /// The user's budget of responses to wrong reservation tokens is used up.
    TokenBudget = "token_budget";
    /// An indication or ChannelData of a client without an allocation.
    NoAllocation = "no_allocation";
    /// A Send indication without a usable XOR-PEER-ADDRESS or DATA.
    SendMalformed = "send_malformed";
    /// A Send indication with a comprehension-required attribute that is unknown or unsupported.
    SendUnsupported = "send_unsupported";
    /// The peer policy denies the peer of a Send indication or of a packet from a peer.
    PeerDenied = "peer_denied";
    /// The peer has no permission.
    NoPermission = "no_permission";
    /// The length in ChannelData is greater than the datagram.
    ChannelLength = "channel_length";
    /// ChannelData on an unbound number.
    ChannelUnbound = "channel_unbound";
    /// A packet from a peer on a relay without an allocation.
    RelayUnallocated = "relay_unallocated";
    /// An ICMP error of a type that is not relayed (RFC 8656 section 11.5).
    IcmpType = "icmp_type";
    /// An ICMP error for a client that has not shown that it knows the ICMP attribute.
    IcmpClient = "icmp_client";
    /// The user's bytes per second are used up.
    UserBandwidth = "user_bandwidth";
    /// The user's packets per second are used up.
    UserPackets = "user_packets";
    /// The allocation's bytes per second are used up.
    AllocationBandwidth = "allocation_bandwidth";
    /// The bytes per second of the source are used up.
    SourceBandwidth = "source_bandwidth";
    /// The packets per second of the source are used up.
    SourcePackets = "source_packets";
    /// The remaining bytes per second of all users together are for users who send less.
    TotalShare = "total_share";
    /// The bytes per second of all users together are used up.
    TotalBandwidth = "total_bandwidth";
    /// A packet from a peer that does not fit a Data indication.
    TooLarge = "too_large";
    /// The caller's buffer is too small for the response.
    OutBuffer = "out_buffer";
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "datagram dropped: {}", self.name())
    }
}

impl core::error::Error for DropReason {}
