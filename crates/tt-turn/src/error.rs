//! Error codes of responses.

use core::fmt;

/// An error code of RFC 8489 section 14.8 or RFC 8656 section 19, named by its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ErrorCode {
    /// 300: another server takes new allocations (RFC 8489 section 10).
    TryAlternate,
    /// 400: the request is malformed.
    BadRequest,
    /// 401: no or wrong credentials.
    Unauthenticated,
    /// 403: the request is refused for good.
    Forbidden,
    /// 420: a comprehension-required attribute is unknown.
    UnknownAttribute,
    /// 437: there is no allocation, or there is one already.
    AllocationMismatch,
    /// 438: the nonce is stale, or another client's.
    StaleNonce,
    /// 440: no relay of the address family that is asked for.
    AddressFamilyNotSupported,
    /// 441: the allocation is another user's.
    WrongCredentials,
    /// 442: the transport that is asked for is not relayed.
    UnsupportedTransportProtocol,
    /// 443: the peer's address family is not the relayed address's.
    PeerAddressFamilyMismatch,
    /// 486: the user's or the server's quota is used up.
    AllocationQuotaReached,
    /// 508: no relay, or no room.
    InsufficientCapacity,
}

impl ErrorCode {
    /// Every code, in the order of [`Counters::errors`](crate::Counters).
    pub const ALL: [Self; 13] = [
        Self::TryAlternate,
        Self::BadRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::UnknownAttribute,
        Self::AllocationMismatch,
        Self::StaleNonce,
        Self::AddressFamilyNotSupported,
        Self::WrongCredentials,
        Self::UnsupportedTransportProtocol,
        Self::PeerAddressFamilyMismatch,
        Self::AllocationQuotaReached,
        Self::InsufficientCapacity,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::TryAlternate => 300,
            Self::BadRequest => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::UnknownAttribute => 420,
            Self::AllocationMismatch => 437,
            Self::StaleNonce => 438,
            Self::AddressFamilyNotSupported => 440,
            Self::WrongCredentials => 441,
            Self::UnsupportedTransportProtocol => 442,
            Self::PeerAddressFamilyMismatch => 443,
            Self::AllocationQuotaReached => 486,
            Self::InsufficientCapacity => 508,
        }
    }
}

impl fmt::Display for ErrorCode {
    /// The code and its reason phrase (RFC 8489 section 14.8, RFC 8656 section 19).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phrase = match self {
            Self::TryAlternate => "Try Alternate",
            Self::BadRequest => "Bad Request",
            Self::Unauthenticated => "Unauthenticated",
            Self::Forbidden => "Forbidden",
            Self::UnknownAttribute => "Unknown Attribute",
            Self::AllocationMismatch => "Allocation Mismatch",
            Self::StaleNonce => "Stale Nonce",
            Self::AddressFamilyNotSupported => "Address Family not Supported",
            Self::WrongCredentials => "Wrong Credentials",
            Self::UnsupportedTransportProtocol => "Unsupported Transport Protocol",
            Self::PeerAddressFamilyMismatch => "Peer Address Family Mismatch",
            Self::AllocationQuotaReached => "Allocation Quota Reached",
            Self::InsufficientCapacity => "Insufficient Capacity",
        };
        write!(f, "{} {phrase}", self.code())
    }
}

impl core::error::Error for ErrorCode {}
