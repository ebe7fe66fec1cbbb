//! Users, secrets and peers from outside the configuration, such as a database.

use std::fmt;
use std::hash::{BuildHasher, Hash as _, Hasher as _, RandomState};
use std::sync::Arc;

use tt_turn::credential::{USER_PARTS, UserSecret, md5_key, user_part_of};
use tt_turn::policy::PeerPolicy;
use tt_turn::shared::{Quotas, RealmQuotas};
use zeroize::{Zeroize as _, ZeroizeOnDrop, Zeroizing};

use super::{AuthSecret, Users};
use crate::section::PeerRange;

/// Whether further users come from outside the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalUsers {
    /// They do not.
    None,
    /// They do, through `CredentialSink`. Clients use MD5 only.
    Provided,
}

/// Users, secrets and peers in addition to those of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalCredentials {
    /// Users. One whose name the configuration has does not count.
    pub users: KeyedUsers,
    /// Secrets of time-limited credentials; each of them is valid.
    pub auth_secrets: Vec<AuthSecret>,
    /// Peer rules for users of the default realm.
    pub peers: Arc<ExternalPeers>,
    /// Limits in place of those of the configuration.
    pub limits: ExternalLimits,
    /// What further realms have. One that the configuration does not have has the quotas of the default realm.
    pub realms: Vec<ExternalRealm>,
    /// Peer rules for users of realms that `realms` does not have.
    pub peers_of_others: Arc<ExternalPeers>,
}

/// Users, secrets and origins of a realm after the default one, in addition to those of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalRealm {
    /// The name of the realm.
    pub name: String,
    /// Users. One whose name the configuration has does not count.
    pub users: KeyedUsers,
    /// Secrets of time-limited credentials; each of them is valid.
    pub auth_secrets: Vec<AuthSecret>,
    /// Values of ORIGIN that select it. One that the configuration gives to a realm does not count.
    pub origins: Vec<String>,
    /// Limits in place of those of the configuration.
    pub limits: ExternalLimits,
    /// Peer rules for its users.
    pub peers: Arc<ExternalPeers>,
}

/// All peer rules of one realm that are not in the configuration; those of the configuration count, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalPeers {
    /// Peers to allow although they are denied by default.
    pub allow: Vec<PeerRange>,
    /// Addresses and ports of this host that peers may have.
    pub allow_own_host: Vec<PeerRange>,
    /// Peers to deny.
    pub deny: Vec<PeerRange>,
}

impl ExternalPeers {
    /// Reads lists of the form of `allow_peer`, `allow_own_host` and `deny_peer`. A text that is no range does not count.
    #[must_use]
    pub fn read([allow, allow_own_host, deny]: [&[String]; 3]) -> Self {
        let ranges = |texts: &[String]| texts.iter().filter_map(|text| text.parse().ok()).collect();
        Self { allow: ranges(allow), allow_own_host: ranges(allow_own_host), deny: ranges(deny) }
    }

    /// Adds the rules to a policy.
    pub fn add_to(&self, policy: &mut PeerPolicy) {
        let Self { allow, allow_own_host, deny } = self;
        allow.iter().for_each(|range| policy.allow(range.engine()));
        deny.iter().for_each(|range| policy.deny(range.engine()));
        allow_own_host.iter().for_each(|range| policy.open_host(range.engine()));
    }
}

impl ExternalCredentials {
    /// Returns whether all but the users of the default realm is the same.
    #[must_use]
    pub fn differ_in_users_only(&self, other: &Self) -> bool {
        let Self { users: _, auth_secrets, peers, limits, realms, peers_of_others } = self;
        auth_secrets == &other.auth_secrets
            && peers == &other.peers
            && limits == &other.limits
            && realms == &other.realms
            && peers_of_others == &other.peers_of_others
    }

    /// Returns what the realm of this name has.
    #[must_use]
    pub fn realm(&self, name: &str) -> Option<&ExternalRealm> {
        self.realms.iter().find(|realm| realm.name == name)
    }
}

/// Limits of a realm in place of those of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExternalLimits {
    /// Live allocations and reserved ports of one user.
    pub allocations_per_user: Option<u32>,
    /// Live allocations and reserved ports of all users of the realm.
    pub allocations_total: Option<u32>,
    /// Relayed bytes per second of one allocation, both directions together.
    pub bytes_per_second_per_allocation: Option<u64>,
}

impl ExternalLimits {
    /// Returns the limits of coturn's options of a realm, of which 0 is none. `max-bps` is for each direction.
    #[must_use]
    pub fn of_coturn(max_bps: Option<u64>, user_quota: Option<u64>, total_quota: Option<u64>) -> Self {
        let set = |option: Option<u64>| option.filter(|limit| *limit > 0);
        let count = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
        Self {
            allocations_per_user: set(user_quota).map(count),
            allocations_total: set(total_quota).map(count),
            bytes_per_second_per_allocation: set(max_bps).map(|limit| limit.saturating_mul(2)),
        }
    }

    /// Puts the limits into `quotas`.
    pub fn set(self, quotas: &mut Quotas) {
        let Self { allocations_per_user, allocations_total, bytes_per_second_per_allocation } = self;
        quotas.allocations_per_user = allocations_per_user.unwrap_or(quotas.allocations_per_user);
        quotas.allocations_of_default_realm = allocations_total.unwrap_or(quotas.allocations_of_default_realm);
        quotas.bytes_per_second_per_allocation =
            bytes_per_second_per_allocation.unwrap_or(quotas.bytes_per_second_per_allocation);
    }

    /// Puts the limits into those of a realm after the default one.
    pub fn set_of_realm(self, quotas: &mut RealmQuotas) {
        let Self { allocations_per_user, allocations_total, bytes_per_second_per_allocation } = self;
        quotas.allocations_per_user = allocations_per_user.unwrap_or(quotas.allocations_per_user);
        quotas.allocations = allocations_total.unwrap_or(quotas.allocations);
        quotas.bytes_per_second_per_allocation =
            bytes_per_second_per_allocation.unwrap_or(quotas.bytes_per_second_per_allocation);
    }
}

/// Users with the MD5 keys of long-term credentials (RFC 8489 section 9.2.2). `Debug` shows neither.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyedUsers {
    /// All names, one after the other.
    names: Vec<u8>,
    /// The end of each name, and the key.
    users: Vec<(usize, [u8; 16])>,
}

impl KeyedUsers {
    /// Adds a user. `name` is as in USERNAME.
    pub fn push(&mut self, name: &str, key: &Zeroizing<[u8; 16]>) {
        self.push_bytes(name.as_bytes(), key);
    }

    fn push_bytes(&mut self, name: &[u8], key: &Zeroizing<[u8; 16]>) {
        if self.users.len() == self.users.capacity() {
            // The former block would keep the keys.
            let mut larger = Vec::with_capacity((2 * self.users.len()).max(16));
            larger.extend_from_slice(&self.users);
            self.users.zeroize();
            self.users = larger;
        }
        self.names.extend_from_slice(name);
        self.users.push((self.names.len(), **key));
    }

    /// Returns the number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Returns whether there is no user.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns the keys of `users`.
    #[must_use]
    pub fn of(users: &Users, realm: &str) -> Self {
        let mut keyed = Self::default();
        for (name, secret) in users.iter() {
            let key = Zeroizing::new(match secret {
                UserSecret::Password(password) => md5_key(name, realm.as_bytes(), password),
                UserSecret::Md5Key(key) => *key,
            });
            keyed.push_bytes(name, &key);
        }
        keyed
    }

    /// Returns the name and the key of each user.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], UserSecret<'_>)> + Clone {
        let starts = std::iter::once(0).chain(self.users.iter().map(|(end, _)| *end));
        starts.zip(&self.users).map(|(start, (end, key))| (&self.names[start..*end], UserSecret::Md5Key(key)))
    }

    /// Returns a digest of the users in each part, whatever their order.
    #[must_use]
    pub fn digests(&self, hasher: &RandomState) -> [u64; USER_PARTS] {
        let mut digests = [0; USER_PARTS];
        for (name, secret) in self.iter() {
            let mut hash = hasher.build_hasher();
            name.hash(&mut hash);
            match secret {
                UserSecret::Md5Key(bytes) => hash.write(bytes),
                UserSecret::Password(bytes) => hash.write(bytes),
            }
            let digest: &mut u64 = &mut digests[user_part_of(name)];
            *digest = digest.wrapping_add(hash.finish());
        }
        digests
    }
}

impl Drop for KeyedUsers {
    fn drop(&mut self) {
        self.users.iter_mut().for_each(|(_, key)| key.zeroize());
    }
}

impl ZeroizeOnDrop for KeyedUsers {}

impl fmt::Debug for KeyedUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedUsers").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::User;
    use super::*;

    fn keyed(users: &[(&str, u8)]) -> KeyedUsers {
        let mut keyed = KeyedUsers::default();
        users.iter().for_each(|(name, byte)| keyed.push(name, &Zeroizing::new([*byte; 16])));
        keyed
    }

    /// The example of coturn's schema.userdb.redis.
    #[test]
    fn the_key_of_a_password_is_the_one_of_coturns_schema() {
        let key = "7da2270ccfa49786e0115366d3a3d14d";
        let with_key = format!("gorst:0x{key}");
        let users: Vec<_> = ["ann:x", "gorst:hero", &with_key].map(|text| User::parse(text).unwrap()).into();
        let keyed = KeyedUsers::of(&users.into(), "north.gov");
        assert_eq!(keyed.len(), 3);
        for (name, secret) in keyed.iter().skip(1) {
            let UserSecret::Md5Key(bytes) = secret else { panic!("no key") };
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((name, digits.as_str()), (&b"gorst"[..], key));
        }
        assert!(!format!("{keyed:?}").contains("gorst"));
    }

    #[test]
    fn a_digest_shows_every_change_and_no_order() {
        let hasher = RandomState::new();
        let of = |users: &[(&str, u8)]| keyed(users).digests(&hasher);
        let before = of(&[("ann", 1), ("bob", 2)]);
        assert_eq!(before, of(&[("bob", 2), ("ann", 1)]));
        for other in [&[("ann", 1), ("bob", 3)][..], &[("ann", 1)], &[("ann", 2), ("bob", 1)], &[("ann", 1), ("bo", 2)]]
        {
            assert_ne!(before, of(other), "{other:?}");
        }
        let changed: Vec<_> = before.iter().zip(of(&[("ann", 9), ("bob", 2)])).map(|(was, is)| *was != is).collect();
        let expected: Vec<_> = (0..USER_PARTS).map(|part| part == user_part_of(b"ann")).collect();
        assert_eq!(changed, expected);
    }
}
