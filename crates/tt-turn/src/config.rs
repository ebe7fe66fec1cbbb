//! What the operator chooses, and how much of everything there is.

use alloc::string::String;

use crate::policy::PeerPolicy;

/// The operator's choices. The same for every worker.
#[derive(Clone, Debug)]
pub struct Config {
    /// The realm of the long-term credentials, fewer than 128 characters.
    pub realm: String,
    /// SOFTWARE in answers to authenticated requests and Bindings; off by default (RFC 8489 section 16.1.2).
    pub software: Option<String>,
    /// When answers carry FINGERPRINT.
    pub fingerprint: FingerprintUse,
    /// Lifetime of an allocation whose client asks for none or less, in seconds.
    pub lifetime_default_s: u32,
    /// Longest lifetime of an allocation, in seconds.
    pub lifetime_max_s: u32,
    /// Age at which a nonce goes stale, in seconds, 3,600 at most (RFC 8656 section 5).
    pub nonce_lifetime_s: u32,
    /// What a password may be hashed with.
    pub password_algorithms: PasswordAlgorithms,
    /// Which channel numbers a client may bind.
    pub channel_numbers: ChannelNumbers,
    /// Whether the driver can forbid fragmentation.
    pub dont_fragment: DontFragment,
    /// Which peers the relay may reach.
    pub peer_policy: PeerPolicy,
    /// Whether relayed addresses of this server may be peers of each other; on by default.
    pub hairpin: Hairpin,
}

impl Config {
    /// The defaults of RFC 8656 for `realm`: 600 s, at most 3,600 s, the whole deny list.
    #[must_use]
    pub fn new(realm: &str) -> Self {
        Self {
            realm: realm.into(),
            software: None,
            fingerprint: FingerprintUse::Echo,
            lifetime_default_s: 600,
            lifetime_max_s: 3_600,
            nonce_lifetime_s: 3_600,
            password_algorithms: PasswordAlgorithms::Md5AndSha256,
            channel_numbers: ChannelNumbers::Rfc8656,
            dont_fragment: DontFragment::Honoured,
            peer_policy: PeerPolicy::new(),
            hairpin: Hairpin::Allowed,
        }
    }
}

/// Whether an allocation's peer may be another allocation's relayed address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hairpin {
    /// It may, whatever range of the peer policy it is in, but for what the operator denies. The payload does not leave
    /// the process.
    Allowed,
    /// It may not: 403.
    Denied,
}

/// When answers carry FINGERPRINT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FingerprintUse {
    /// Where the request carried one.
    Echo,
    /// Always.
    Always,
}

/// What becomes of DONT-FRAGMENT (RFC 8656 sections 7.2 and 11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DontFragment {
    /// The driver can send with the DF bit set.
    Honoured,
    /// It cannot: the attribute is treated as an unknown one that must be understood.
    Unknown,
}

/// What a client may hash its password with, RFC 8489 section 18.5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordAlgorithms {
    /// SHA-256 is offered, MD5 is accepted of clients that do not know the offer.
    Md5AndSha256,
    /// SHA-256 is not offered.
    Md5,
    /// MD5 is refused: clients of RFC 5389 and 5766 get nothing but 401.
    Sha256,
}

impl PasswordAlgorithms {
    /// The value of PASSWORD-ALGORITHMS, the preferred one first (RFC 8489 sections 14.11 and 14.12); `None` where nothing is
    /// offered.
    #[must_use]
    pub const fn offer(self) -> Option<&'static [u8]> {
        match self {
            Self::Md5AndSha256 => Some(&[0, 2, 0, 0, 0, 1, 0, 0]),
            Self::Sha256 => Some(&[0, 2, 0, 0]),
            Self::Md5 => None,
        }
    }
}

/// Which channel numbers a client may bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelNumbers {
    /// 0x4000 to 0x4FFF, RFC 8656 section 12.
    Rfc8656,
    /// 0x4000 to 0x7FFF, RFC 5766; older clients bind these.
    Rfc5766,
}

/// How much of everything one worker holds. All of it is allocated by [`Server::new`](crate::Server::new).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Live allocations.
    pub allocations: u32,
    /// Live permissions of all allocations together.
    pub permissions: u32,
    /// Live permissions of one allocation; one more is answered 508.
    pub permissions_per_allocation: u32,
    /// Live channels of all allocations together.
    pub channels: u32,
    /// Live channels of one allocation; one more is answered 508.
    pub channels_per_allocation: u32,
    /// Relay sockets that the driver may register; `RelayId`s are below this number.
    pub relays: u32,
}

impl Capacity {
    /// Room for `allocations`, with four permissions and four channels each on average and as many relays.
    #[must_use]
    pub const fn for_allocations(allocations: u32) -> Self {
        Self {
            allocations,
            permissions: allocations.saturating_mul(4),
            permissions_per_allocation: 256,
            channels: allocations.saturating_mul(4),
            channels_per_allocation: 64,
            relays: allocations,
        }
    }
}
