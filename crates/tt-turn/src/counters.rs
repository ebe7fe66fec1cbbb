//! What the engine counts. Every datagram ends in exactly one of these numbers.

use crate::error::ErrorCode;
use crate::refusal::Refusal;

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// Why a datagram was given up. No reply, no state; exactly one counter goes up by one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[$doc])* $variant,)*
        }

        impl DropReason {
            /// Every reason, in the order of [`Counters::drops`].
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The reason's name in metrics.
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
    /// Shorter than a STUN header, or a ChannelData header.
    Short = "short";
    /// First bits of neither STUN nor ChannelData, or no magic cookie.
    NotStun = "not_stun";
    /// The header's length is no multiple of four or not the datagram's.
    Length = "length";
    /// An attribute reaches past the end.
    Attribute = "attribute";
    /// FINGERPRINT is wrong, or not last.
    Fingerprint = "fingerprint";
    /// A response, or a Data indication: nothing that a server is sent.
    Class = "class";
    /// A method that this server does not have, or not in this class.
    Method = "method";
    /// A Binding indication: a keep-alive, answered by nothing.
    BindingIndication = "binding_indication";
    /// The source's budget of Binding answers is spent.
    BindingBudget = "binding_budget";
    /// The source's budget of unauthenticated error replies is spent.
    ErrorBudget = "error_budget";
    /// An indication or ChannelData of a client without an allocation.
    NoAllocation = "no_allocation";
    /// A Send indication without a usable XOR-PEER-ADDRESS or DATA.
    SendMalformed = "send_malformed";
    /// A Send indication with a comprehension-required attribute that is unknown or unsupported.
    SendUnsupported = "send_unsupported";
    /// The peer policy refuses the peer of a Send indication or of a packet from a peer.
    PeerDenied = "peer_denied";
    /// The peer has no permission.
    NoPermission = "no_permission";
    /// ChannelData's length is more than the datagram holds.
    ChannelLength = "channel_length";
    /// ChannelData on a number that is not bound.
    ChannelUnbound = "channel_unbound";
    /// A packet from a peer on a relay that serves no allocation (any more).
    RelayUnallocated = "relay_unallocated";
    /// An ICMP error of a type that is not passed on (RFC 8656 section 11.5).
    IcmpType = "icmp_type";
    /// The user's bandwidth is spent.
    UserBandwidth = "user_bandwidth";
    /// A packet from a peer that does not fit a Data indication.
    TooLarge = "too_large";
    /// The caller's buffer was too small for the answer.
    OutBuffer = "out_buffer";
}

/// Plain counters of one [`Server`](crate::Server).
///
/// A payload from one relayed address of this server to another makes two hops without leaving the process, and counts
/// as `received` and as `relayed` for each. `received == replied + relayed + handed_over + drops.sum()` after every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams handed in, from clients and from peers, and ICMP errors.
    pub received: u64,
    /// Datagrams answered, successes and errors.
    pub replied: u64,
    /// Payloads passed on, to peers and to clients.
    pub relayed: u64,
    /// Payloads, of those relayed, that went to a relayed address of this server, of this worker or another.
    pub hairpinned: u64,
    /// Datagrams left to the worker that owns their allocation.
    pub handed_over: u64,
    /// Datagrams given up, by [`DropReason`] as index.
    pub drops: [u64; DropReason::ALL.len()],
    /// Payload bytes relayed from clients to peers.
    pub bytes_to_peers: u64,
    /// Payload bytes relayed from peers to clients.
    pub bytes_to_clients: u64,
    /// Look-ups of a five-tuple that found a live allocation.
    pub flow_hits: u64,
    /// Look-ups of a five-tuple that found none.
    pub flow_misses: u64,
    /// Error replies, by [`ErrorCode`] as index.
    pub errors: [u64; ErrorCode::ALL.len()],
    /// Requests refused with 403, 486 or 508, by [`Refusal`] as index.
    pub refusals: [u64; Refusal::ALL.len()],
    /// Allocations made.
    pub allocations_made: u64,
    /// Allocations that ended: by Refresh with a lifetime of zero, by expiry, or with their connection.
    pub allocations_ended: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            received: 0,
            replied: 0,
            relayed: 0,
            hairpinned: 0,
            handed_over: 0,
            drops: [0; DropReason::ALL.len()],
            bytes_to_peers: 0,
            bytes_to_clients: 0,
            flow_hits: 0,
            flow_misses: 0,
            errors: [0; ErrorCode::ALL.len()],
            refusals: [0; Refusal::ALL.len()],
            allocations_made: 0,
            allocations_ended: 0,
        }
    }
}

impl Counters {
    /// How many datagrams were given up for `reason`.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// How many requests were refused for `refusal`.
    #[must_use]
    pub const fn refused(&self, refusal: Refusal) -> u64 {
        self.refusals[refusal as usize]
    }

    /// Whether every received datagram is accounted for.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.received == self.replied + self.relayed + self.handed_over + self.drops.iter().sum::<u64>()
    }
}
