//! Realms: each has its own users, shared secrets and quotas (RFC 8489 section 9.2).

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

/// Maximum number of realms after the default one.
pub const REALMS_MAX: usize = 1_024;

/// Number of a realm: 0 is [`Config::realm`](crate::config::Config::realm), the others follow in the order of
/// [`Config::realms`](crate::config::Config::realms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RealmId(pub(crate) u16);

impl RealmId {
    /// The realm of requests that select no other.
    pub const DEFAULT: Self = Self(0);

    /// Returns the number of the realm at `index` of [`Config::realms`](crate::config::Config::realms), which must be
    /// below [`REALMS_MAX`].
    #[must_use]
    pub const fn further(index: usize) -> Self {
        Self(index as u16 + 1)
    }

    /// Returns the index in [`Config::realms`](crate::config::Config::realms), unless it is the default realm.
    #[must_use]
    pub const fn index(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }

    /// Returns the seed of the hashes of this realm's user names: two users with one name have different quotas.
    pub(crate) const fn names_seed(self, seed: u64) -> u64 {
        seed.wrapping_add((self.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}

/// A realm after the default one, and the requests that select it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealmConfig {
    /// Its name as in REALM, different from all others, fewer than 128 characters.
    pub name: String,
    /// Values of ORIGIN that select it, in any case. ORIGIN is an attribute of a former draft (0x802F).
    pub origins: Vec<String>,
    /// Listeners that serve this realm only. An unspecified address is any with its port.
    pub listeners: Vec<SocketAddr>,
}

impl RealmConfig {
    /// Returns whether `server`, the address that a client sent to, is one of the listeners.
    pub(crate) fn listens_on(&self, server: SocketAddr) -> bool {
        self.listeners.iter().any(|listener| {
            let is_wildcard = listener.ip().is_unspecified() && listener.is_ipv4() == server.is_ipv4();
            *listener == server || is_wildcard && listener.port() == server.port()
        })
    }
}
