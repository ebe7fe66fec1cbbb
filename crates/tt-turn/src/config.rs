//! Configuration and capacity of a server.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::policy::{PeerPolicy, RealmPolicies};
pub use crate::realm::{REALMS_MAX, RealmConfig, RealmId};

/// Configuration of a server; the same for all workers.
#[derive(Clone, Debug)]
pub struct Config {
    /// The realm of the long-term credentials, fewer than 128 characters.
    pub realm: String,
    /// Further realms, at most [`REALMS_MAX`]. Users of different realms are different users, whatever their names.
    pub realms: Vec<RealmConfig>,
    /// SOFTWARE in responses to authenticated requests and to Bindings; off by default (RFC 8489 section 16.1.2).
    pub software: Option<String>,
    /// When responses carry FINGERPRINT.
    pub fingerprint: FingerprintUse,
    /// Default and shortest lifetime of an allocation, in seconds.
    pub lifetime_default_s: u32,
    /// Longest lifetime of an allocation, in seconds.
    pub lifetime_max_s: u32,
    /// Lifetime of a nonce in seconds, at most 3,600 (RFC 8656 section 5).
    pub nonce_lifetime_s: u32,
    /// Password algorithms that clients may use.
    pub password_algorithms: PasswordAlgorithms,
    /// Channel numbers that clients may bind.
    pub channel_numbers: ChannelNumbers,
    /// Whether the driver can send with the DF bit set.
    pub dont_fragment: DontFragment,
    /// When the expiry of a time-limited user name is checked.
    pub expiry_check: ExpiryCheck,
    /// Allocations of users that are removed.
    pub removed_users: RemovedUsers,
    /// Channels whose permission has expired.
    pub lapsed_permissions: LapsedPermissions,
    /// Clients that get ICMP errors.
    pub icmp_indications: IcmpIndications,
    /// Peers that the relay may reach for users of the default realm, and of all realms without a policy.
    pub peer_policy: PeerPolicy,
    /// Policies of further realms.
    pub realm_policies: Arc<RealmPolicies>,
    /// Whether a relayed address of this server may be a peer; allowed by default.
    pub hairpin: Hairpin,
    /// Whether the end of an allocation lists its peers.
    pub peer_lists: PeerLists,
    /// Whether lifetimes that clients get are reported.
    pub grant_reports: GrantReports,
}

impl Config {
    /// Returns the defaults of RFC 8656 for `realm`: lifetimes of 600 s to 3,600 s and the complete deny list.
    #[must_use]
    pub fn new(realm: &str) -> Self {
        Self {
            realm: realm.into(),
            realms: Vec::new(),
            software: None,
            fingerprint: FingerprintUse::Echo,
            lifetime_default_s: 600,
            lifetime_max_s: 3_600,
            nonce_lifetime_s: 3_600,
            password_algorithms: PasswordAlgorithms::Md5AndSha256,
            channel_numbers: ChannelNumbers::Rfc8656,
            dont_fragment: DontFragment::Honoured,
            expiry_check: ExpiryCheck::AtAllocate,
            removed_users: RemovedUsers::KeepAllocations,
            lapsed_permissions: LapsedPermissions::ChannelRelays,
            icmp_indications: IcmpIndications::Auto,
            peer_policy: PeerPolicy::new(),
            realm_policies: Arc::default(),
            hairpin: Hairpin::Allowed,
            peer_lists: PeerLists::Kept,
            grant_reports: GrantReports::Omitted,
        }
    }
}

/// Peers in [`AllocationEnd`](crate::event::AllocationEnd): half a kibibyte for each allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerLists {
    /// The first peers are listed.
    Kept,
    /// None is listed.
    Omitted,
}

/// Lifetimes of allocations for [`Server::poll_grant`](crate::Server::poll_grant).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantReports {
    /// Each is reported.
    Kept,
    /// None is reported.
    Omitted,
}

/// Clients that get Data indications with an ICMP attribute (RFC 8656 section 11.5).
///
/// Clients written for RFC 5766 may fail at a Data indication without DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpIndications {
    /// Clients that have sent an attribute of RFC 8489 or 8656 in an authenticated request: MESSAGE-INTEGRITY-SHA256,
    /// USERHASH, PASSWORD-ALGORITHM, PASSWORD-ALGORITHMS, ADDITIONAL-ADDRESS-FAMILY, ADDRESS-ERROR-CODE or ICMP.
    Auto,
    /// All clients.
    Always,
    /// None.
    Never,
}

/// When the expiry of a time-limited user name is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryCheck {
    /// When an allocation is made: a call may be longer than its credential is valid.
    AtAllocate,
    /// In every request: after the expiry an allocation cannot be refreshed.
    EveryRequest,
}

/// Allocations of users that are removed from the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovedUsers {
    /// They continue and can be refreshed: an allocation keeps its key.
    KeepAllocations,
    /// They end at once.
    EndAllocations,
}

/// Channels whose permission has expired: a permission lives 300 s, a channel 600 s (RFC 8656 sections 9 and 12).
///
/// Clients that refresh the channel alone, such as aioice, would lose their peer for the rest of its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LapsedPermissions {
    /// The channel relays to and from its peer, if the policy still allows it. Other ports of the peer's address need a
    /// permission.
    ChannelRelays,
    /// The channel relays nothing until there is a permission again, as RFC 8656 sections 9 and 11.3 read.
    ChannelStops,
}

/// Whether the peer of an allocation may be the relayed address of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hairpin {
    /// Allowed in every range, unless the operator denies it. The payload does not leave the process.
    Allowed,
    /// Rejected with 403.
    Denied,
}

/// When responses carry FINGERPRINT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FingerprintUse {
    /// If the request carries one.
    Echo,
    /// Always.
    Always,
}

/// Handling of DONT-FRAGMENT (RFC 8656 sections 7.2 and 11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DontFragment {
    /// The driver can send with the DF bit set.
    Honoured,
    /// The driver cannot: the attribute is an unknown comprehension-required one.
    Unknown,
}

/// Password algorithms that clients may use (RFC 8489 section 18.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordAlgorithms {
    /// SHA-256 is offered; MD5 is accepted from clients that do not know the offer.
    Md5AndSha256,
    /// SHA-256 is not offered.
    Md5,
    /// MD5 is rejected: clients of RFC 5389 and RFC 5766 get 401.
    Sha256,
}

impl PasswordAlgorithms {
    /// Returns the value of PASSWORD-ALGORITHMS, preferred algorithm first (RFC 8489 sections 14.11 and 14.12), or
    /// `None` if nothing is offered.
    #[must_use]
    pub const fn offer(self) -> Option<&'static [u8]> {
        match self {
            Self::Md5AndSha256 => Some(&[0, 2, 0, 0, 0, 1, 0, 0]),
            Self::Sha256 => Some(&[0, 2, 0, 0]),
            Self::Md5 => None,
        }
    }
}

/// Channel numbers that clients may bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelNumbers {
    /// 0x4000 to 0x4FFF, RFC 8656 section 12.
    Rfc8656,
    /// 0x4000 to 0x7FFF, RFC 5766, for older clients.
    Rfc5766,
}

/// Maximum length of a request in bytes. Each attribute of a usual request has at most 763 bytes (RFC 8489 section 14);
/// a CreatePermission of this length names 1,300 IPv4 peers. What a request costs grows with its length: digest,
/// attributes and peers.
pub const REQUEST_MAX: usize = 16 << 10;

/// Permissions of each allocation that no other allocation can take.
pub const PERMISSIONS_GUARANTEED: u32 = 16;
/// Channels of each allocation that no other allocation can take.
pub const CHANNELS_GUARANTEED: u32 = 8;

/// Size of every table of a worker; all are allocated by [`Server::new`](crate::Server::new).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Allocations.
    pub allocations: u32,
    /// Permissions of all allocations together.
    pub permissions: u32,
    /// Permissions of one allocation; one more is rejected with 508.
    pub permissions_per_allocation: u32,
    /// Channels of all allocations together.
    pub channels: u32,
    /// Channels of one allocation; one more is rejected with 508.
    pub channels_per_allocation: u32,
    /// Relay sockets that the driver may register. Every `RelayId` is below this number.
    pub relays: u32,
}

impl Capacity {
    /// Returns a capacity for `allocations`, with four permissions, four channels and one relay each on average.
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
