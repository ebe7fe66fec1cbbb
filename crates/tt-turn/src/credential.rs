//! Users with passwords, and shared secrets of the TURN REST API.

mod directory;
mod kept_key;
mod key;
mod realms;
mod time_limited;

pub use directory::{USER_PARTS, UserPart, user_part_of};
pub(crate) use kept_key::{KeptKey, KeptKeys};
pub(crate) use key::PasswordAlgorithm;
pub use key::{LongTermKey, UserSecret, long_term_key, md5_key, user_hash};
pub(crate) use realms::RealmCredentials;

use alloc::sync::Arc;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use crate::base64;
use crate::integrity::HmacSha1;
use crate::realm::RealmId;
use crate::shared::Shared;
use directory::{NameSeeds, StaticUser, Users, hash_key};
use key::UserKeys;
use realms::RealmSecrets;
use time_limited::{Derived, DerivedKeys, TimeLimited};

/// Secrets of a server: users' keys, shared secrets, nonce keys and seeds.
///
/// All workers have the same, except the seed. Contains keys, no passwords.
#[derive(Clone)]
pub struct Secrets {
    pub(crate) seed: [u8; 32],
    pub(crate) nonce_key: [u8; 32],
    pub(crate) nonce_key_previous: Option<[u8; 32]>,
    default: RealmSecrets,
    further: Vec<RealmSecrets>,
}

impl core::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Secrets")
            .field("users", &self.default.users.parts.iter().map(|part| part.all.len()).sum::<usize>())
            .field("auth_secrets", &self.default.auth_secrets.len())
            .field("further_realms", &self.further.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.seed.zeroize();
        self.nonce_key.zeroize();
        self.nonce_key_previous.zeroize();
    }
}

impl Secrets {
    /// Returns secrets without users.
    ///
    /// `seed` must be random, secret and different for each worker. `nonce_key` must be random, secret and the same
    /// for all workers (and all servers that accept each other's nonces).
    #[must_use]
    pub fn new(seed: [u8; 32], nonce_key: [u8; 32]) -> Self {
        let (default, further) = (RealmSecrets::default(), Vec::new());
        Self { seed, nonce_key, nonce_key_previous: None, default, further }
    }

    /// Returns a copy with another seed, for another worker. Both share the users.
    #[must_use]
    pub fn with_seed(&self, seed: [u8; 32]) -> Self {
        let mut seeded = self.clone();
        seeded.seed = seed;
        seeded
    }

    /// Accepts nonces of an earlier key until they are stale, after a rotation.
    pub fn accept_nonce_key(&mut self, nonce_key_previous: [u8; 32]) {
        self.nonce_key_previous = Some(nonce_key_previous);
    }

    /// Puts the users of `part` in place of those that were in it.
    pub fn replace_users(&mut self, part: &UserPart) {
        self.realm_mut(part.realm).users.parts[part.number] = Arc::clone(&part.users);
    }

    /// Takes the users of all realms of `other` in place of those that it has. Both share them.
    pub fn share_users(&mut self, other: &Self) {
        self.default.users = other.default.users.clone();
        for (index, realm) in other.further.iter().enumerate() {
            self.realm_mut(RealmId::further(index)).users = realm.users.clone();
        }
    }

    fn realm_mut(&mut self, realm: RealmId) -> &mut RealmSecrets {
        let Some(index) = realm.index() else { return &mut self.default };
        if self.further.len() <= index {
            self.further.resize_with(index + 1, RealmSecrets::default);
        }
        &mut self.further[index]
    }

    /// Returns users and shared secrets of a realm; `None` if it has none.
    fn of_realm(&self, realm: RealmId) -> Option<&RealmSecrets> {
        match realm.index() {
            None => Some(&self.default),
            Some(index) => self.further.get(index),
        }
    }

    /// Adds a user of the default realm. `name` and `password` must be prepared as OpaqueString (RFC 8265).
    ///
    /// `realm` must be that of the configuration. Of two users with one name, the first counts. Stores keys, not the
    /// password (RFC 8656 section 6).
    pub fn add_user(&mut self, name: &[u8], realm: &str, password: &[u8]) {
        self.add_user_of(RealmId::DEFAULT, name, realm, password);
    }

    /// The same for any realm, whose name is `realm`.
    pub fn add_user_of(&mut self, id: RealmId, name: &[u8], realm: &str, password: &[u8]) {
        let keys = UserKeys::new(name, realm.as_bytes(), password);
        Arc::make_mut(&mut self.realm_mut(id).users.parts[user_part_of(name)]).push(name, realm, keys);
    }

    /// Indexes the users for servers of `shared`.
    ///
    /// All servers with these secrets and their copies then share one index, and
    /// [`Server::replace_secrets`](crate::Server::replace_secrets) takes a time that does not grow with the number of
    /// users. Without this, each server makes a copy with an index.
    pub fn index(&mut self, shared: &Shared) {
        self.default.users.index(shared.seed(), &self.seed);
        for (index, realm) in self.further.iter_mut().enumerate() {
            realm.users.index(RealmId::further(index).names_seed(shared.seed()), &self.seed);
        }
    }

    /// Adds a shared secret of the TURN REST API for users of the default realm.
    ///
    /// A user name `expiry[:id]` with the password `base64(HMAC-SHA1(secret, name))` is valid until `expiry` in Unix
    /// seconds. Several secrets may be valid at once. With a shared secret, USERHASH is not offered, because the names
    /// are not known in advance.
    pub fn add_auth_secret(&mut self, secret: &[u8]) {
        self.add_auth_secret_of(RealmId::DEFAULT, secret);
    }

    /// The same for users of any realm.
    pub fn add_auth_secret_of(&mut self, realm: RealmId, secret: &[u8]) {
        self.realm_mut(realm).auth_secrets.push(HmacSha1::new(secret));
    }

    /// Removes all shared secrets of a realm but the first `len`.
    pub fn truncate_auth_secrets(&mut self, realm: RealmId, len: usize) {
        self.realm_mut(realm).auth_secrets.truncate(len);
    }
}

/// Identity of a user: 128 bits of a SHA-256, which do not change when the secrets are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserId(u128);

impl UserId {
    /// Returns the identity of a static user, or of a whole name.
    fn of(name: &[u8]) -> Self {
        Self::first_bits(Sha256::digest(name).into())
    }

    /// Returns the identity behind all time-limited names with this id. It is no static user's: 0xFF occurs in no name.
    fn of_limited(id: &[u8]) -> Self {
        Self::first_bits(Sha256::new_with_prefix([0xFF]).chain_update(id).finalize().into())
    }

    fn first_bits(digest: [u8; 32]) -> Self {
        Self(digest.first_chunk().map_or(0, |first| u128::from_be_bytes(*first)))
    }
}

/// The name in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name<'a> {
    /// USERNAME.
    Plain(&'a [u8]),
    /// USERHASH.
    Hash(&'a [u8]),
}

/// Algorithm of a request's key, and signature of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) algorithm: PasswordAlgorithm,
    pub(crate) answer: Answer,
}

/// Message integrity of a response (RFC 8489 section 9.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// MESSAGE-INTEGRITY: the request has no PASSWORD-ALGORITHM.
    Sha1,
    /// MESSAGE-INTEGRITY-SHA256.
    Sha256,
    /// Both: the request has a PASSWORD-ALGORITHM and MESSAGE-INTEGRITY, and some clients accept nothing else.
    Both,
}

/// An authenticated user. Valid until the secrets are replaced or another request is authenticated.
#[derive(Clone, Copy, Debug)]
pub struct User {
    pub(crate) realm: RealmId,
    /// The same for every expiry of a time-limited name, and for every realm.
    pub(crate) id: UserId,
    /// Key of the user's quota: the hash of a static name, or of the part of a time-limited one that stays.
    pub(crate) quota_key: u64,
    pub(crate) answer: Answer,
    pub(crate) key: KeyPlace,
}

/// Location of a user's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// A static user's, by index.
    Static(u32, PasswordAlgorithm),
    /// A time-limited name's, in the cache.
    Derived(u32),
    /// The one that the allocation of this index keeps.
    Kept(u32),
}

/// Whose expired names are accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    /// The time in Unix seconds.
    pub(crate) unix_s: u64,
    /// The user of the flow's allocation, whose names do not expire before it.
    pub(crate) exempt: Option<UserId>,
}

/// Users and secrets of one realm and one worker.
///
/// An unknown user takes the same time and touches the same memory as a known user with a wrong password: its look-up
/// ends at some user's record, whose key is verified and whose name is compared, without effect.
#[derive(Debug)]
pub(crate) struct Credentials {
    realm: RealmId,
    users: Users,
    /// Each with its digest.
    auth_secrets: Vec<(HmacSha1, u64)>,
    derived: DerivedKeys,
    /// Number of keys derived from a shared secret.
    derivations: u64,
    seeds: NameSeeds,
}

impl Credentials {
    /// Prepares the `secrets` of a realm for look-ups.
    ///
    /// `seed` must be the same for all workers that share quotas. The keys of about `names_kept` time-limited
    /// names are cached.
    fn new(secrets: &Secrets, realm: RealmId, seed: u64, names_kept: u32) -> Self {
        let RealmSecrets { mut users, auth_secrets } = secrets.of_realm(realm).cloned().unwrap_or_default();
        let names_kept = if auth_secrets.is_empty() { 0 } else { names_kept.max(1) as usize };
        let names_seed = realm.names_seed(seed);
        users.index(names_seed, &secrets.seed);
        Self {
            realm,
            users,
            auth_secrets: auth_secrets.iter().map(|secret| (secret.clone(), digest(secret))).collect(),
            derived: DerivedKeys::new(names_kept),
            derivations: 0,
            seeds: NameSeeds::new(names_seed),
        }
    }

    /// Puts the users of `part` in place of those that were in it, which it returns.
    pub(crate) fn replace_users(&mut self, part: &UserPart) -> UserPart {
        let users = core::mem::replace(&mut self.users.parts[part.number], Arc::clone(&part.users));
        UserPart { realm: part.realm, number: part.number, users }
    }

    /// Returns whether USERHASH can be resolved: RFC 8489's username anonymity.
    pub(crate) fn understands_hashes(&self) -> bool {
        self.auth_secrets.is_empty()
    }

    /// Returns the number of keys derived from a shared secret.
    pub(crate) fn derivations(&self) -> u64 {
        self.derivations
    }

    fn name_key(&self, name: &[u8]) -> u64 {
        self.seeds.key(name)
    }

    /// Returns the user whose key satisfies `verify`. A time-limited name must not have expired, unless it is exempt.
    #[inline]
    pub(crate) fn authenticate(
        &mut self,
        name: Name<'_>,
        path: Path,
        realm: &str,
        expiry: Expiry,
        verify: impl Fn(&LongTermKey) -> bool,
    ) -> Option<User> {
        let limited = match name {
            Name::Plain(name) if !self.auth_secrets.is_empty() => {
                TimeLimited::read(name).map(|limited| (name, limited))
            }
            Name::Plain(_) | Name::Hash(_) => None,
        };
        let (user, is_known) = match name {
            Name::Plain(name) => self.named(name),
            Name::Hash(hash) => self.hashed(hash),
        }?;
        if let Some((name, limited)) = limited.filter(|_| !is_known) {
            let user = self.time_limited(name, limited, path, realm, verify);
            return user.filter(|user| limited.expiry_s > expiry.unix_s || expiry.exempt == Some(user.id));
        }
        let passes = verify(user.keys.of(path.algorithm)) & is_known;
        let key = KeyPlace::Static(user.index, path.algorithm);
        passes.then_some(User { realm: self.realm, id: user.id, quota_key: user.quota_key, answer: path.answer, key })
    }

    /// Returns whether `name` and `path` are those of the kept key, and it satisfies `verify`.
    #[inline]
    pub(crate) fn matches_kept(
        &self,
        kept: &KeptKey,
        name: Name<'_>,
        path: Path,
        verify: impl Fn(&LongTermKey) -> bool,
    ) -> bool {
        let is_same = match name {
            Name::Plain(name) => self.name_key(name) == kept.name_key,
            Name::Hash(hash) => self.understands_hashes() && kept.hash.as_ref().is_some_and(|known| known[..] == *hash),
        };
        is_same && path.algorithm == kept.algorithm && verify(&kept.key)
    }

    /// Returns whether the user or shared secret of a kept key is still configured.
    pub(crate) fn knows(&self, kept: &KeptKey) -> bool {
        if kept.secret != 0 {
            return self.auth_secrets.iter().any(|(_, digest)| *digest == kept.secret);
        }
        let named = self.users.part_at(kept.index).and_then(|part| part.named(kept.name_key));
        named.is_some_and(|(user, is_found)| is_found && user.id == kept.user)
    }

    /// Returns the key that the user was verified by, unless an allocation keeps it.
    pub(crate) fn key_of(&self, user: &User) -> Option<&LongTermKey> {
        match user.key {
            KeyPlace::Static(index, algorithm) => Some(self.users.at(index)?.keys.of(algorithm)),
            KeyPlace::Derived(place) => self.derived.at(place).map(|derived| &derived.key),
            KeyPlace::Kept(_) => None,
        }
    }

    /// Returns what an allocation of the user keeps, unless it keeps it already.
    pub(crate) fn kept_key(&self, user: &User) -> Option<KeptKey> {
        match user.key {
            KeyPlace::Static(index, algorithm) => {
                let known = self.users.at(index)?;
                Some(KeptKey {
                    key: known.keys.of(algorithm).clone(),
                    algorithm,
                    user: known.id,
                    name_key: known.quota_key,
                    hash: Some(known.hash),
                    index,
                    expiry_s: u64::MAX,
                    secret: 0,
                    nonce: None,
                })
            }
            KeyPlace::Derived(place) => self.derived.at(place).map(|derived| KeptKey {
                key: derived.key.clone(),
                algorithm: derived.algorithm,
                user: derived.user,
                name_key: derived.name_key,
                hash: None,
                index: 0,
                expiry_s: derived.expiry_s,
                secret: derived.secret,
                nonce: None,
            }),
            KeyPlace::Kept(_) => None,
        }
    }

    /// Returns the user called `name` and true, or another user and false.
    #[inline]
    fn named(&self, name: &[u8]) -> Option<(&StaticUser, bool)> {
        let key = self.name_key(name);
        let part = &self.users.parts[user_part_of(name)];
        let (user, is_found) = part.named(key)?;
        // A name that is not there is compared with itself: that takes as long.
        let of_user = part.name(user);
        let _ = core::hint::black_box(of_user.first().copied());
        let known = core::hint::black_box(if is_found { of_user } else { name });
        Some((user, (*known == *name) & is_found))
    }

    fn hashed(&self, hash: &[u8]) -> Option<(&StaticUser, bool)> {
        let whole: Option<&[u8; 32]> = hash.try_into().ok().filter(|_| self.understands_hashes());
        let key = whole.map_or(1, hash_key);
        // The part does not follow from the hash: all of them are searched, whether one has it or not.
        let part = key as usize % USER_PARTS;
        let mut found = ((part, self.users.parts[part].decoy(key)), false);
        for (number, part) in self.users.parts.iter().enumerate() {
            let (index, is_found) = part.by_hash.get_or(&key, 0);
            found = [found, ((number, index), true)][usize::from(is_found)];
        }
        let ((part, index), is_found) = found;
        let user = self.users.parts[part].all.get(index as usize)?;
        Some((user, (whole == Some(&user.hash)) & is_found))
    }

    /// Returns the name behind a USERHASH.
    pub(crate) fn name_of(&self, hash: &[u8]) -> Option<&[u8]> {
        let (user, _) = self.hashed(hash).filter(|(_, is_known)| *is_known)?;
        self.users.part_at(user.index).map(|part| part.name(user))
    }

    /// Returns the user of a time-limited name, by its cached key or by one derived from each secret.
    fn time_limited(
        &mut self,
        name: &[u8],
        limited: TimeLimited<'_>,
        path: Path,
        realm: &str,
        verify: impl Fn(&LongTermKey) -> bool,
    ) -> Option<User> {
        let (whole_name, quota_key) = (UserId::of(name), self.seeds.limited_key(limited.id));
        let (of, answer) = (self.realm, path.answer);
        let user = |id, place| User { realm: of, id, quota_key, answer, key: KeyPlace::Derived(place) };
        let place = self.derived.place(whole_name);
        if let Some(known) = self.derived.get(place, whole_name, path.algorithm).filter(|known| verify(&known.key)) {
            return Some(user(known.user, place));
        }
        let (key, secret) = self.auth_secrets.iter().find_map(|(secret, digest)| {
            self.derivations += 1;
            let password = base64::of_sha1(&secret.mac(name));
            let key = LongTermKey::of(path.algorithm, name, realm.as_bytes(), &password);
            verify(&key).then_some((key, *digest))
        })?;
        let id = UserId::of_limited(limited.id);
        let (name_key, algorithm, expiry_s) = (self.name_key(name), path.algorithm, limited.expiry_s);
        self.derived.keep(place, Derived { whole_name, name_key, user: id, algorithm, key, expiry_s, secret });
        Some(user(id, place))
    }
}

/// Returns a digest of a shared secret, never zero.
fn digest(secret: &HmacSha1) -> u64 {
    secret.mac(b"digest").first_chunk().map_or(1, |first| u64::from_be_bytes(*first).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{Quotas, Shared};

    const REALM: &str = "example.org";

    fn named(credentials: &Credentials, name: &str) -> bool {
        credentials.named(name.as_bytes()).is_some_and(|(_, is_known)| is_known)
    }

    #[test]
    fn indexed_users_are_shared_by_every_worker() {
        let shared = Shared::new(Quotas::default(), 8, 7);
        let mut secrets = Secrets::new([1; 32], [2; 32]);
        for name in ["ann", "bob"] {
            secrets.add_user(name.as_bytes(), REALM, b"secret");
        }
        secrets.index(&shared);
        let workers: Vec<_> = (0..4)
            .map(|seed| Credentials::new(&secrets.with_seed([seed; 32]), RealmId::DEFAULT, shared.seed(), 8))
            .collect();
        for worker in &workers {
            for (own, shared) in worker.users.parts.iter().zip(&secrets.default.users.parts) {
                assert!(Arc::ptr_eq(own, shared));
            }
            assert!(named(worker, "ann") && named(worker, "bob") && !named(worker, "carol") && !named(worker, ""));
        }
        // A user who is added later is not in their index.
        secrets.add_user(b"carol", REALM, b"secret");
        let later = Credentials::new(&secrets, RealmId::DEFAULT, shared.seed(), 8);
        assert!(named(&later, "ann") && named(&later, "carol") && !named(&workers[0], "carol"));
        // The secrets have copied the part of the new user, and no other.
        let counts = workers[0].users.parts.each_ref().map(Arc::strong_count);
        for (number, count) in counts.into_iter().enumerate() {
            assert_eq!(count, if number == user_part_of(b"carol") { 4 } else { 6 }, "part {number}");
        }
    }

    #[test]
    fn an_index_without_users_knows_none_and_takes_users_later() {
        let shared = Shared::new(Quotas::default(), 8, 7);
        let mut secrets = Secrets::new([1; 32], [2; 32]);
        secrets.index(&shared);
        let none = Credentials::new(&secrets, RealmId::DEFAULT, shared.seed(), 8);
        assert!(!named(&none, "") && !named(&none, "ann") && none.users.parts.iter().all(|part| part.all.len() == 1));
        secrets.add_user(b"ann", REALM, b"secret");
        let one = Credentials::new(&secrets, RealmId::DEFAULT, shared.seed(), 8);
        assert!(!named(&one, "") && named(&one, "ann") && one.users.parts.iter().all(|part| part.all.len() == 1));
    }

    fn as_passwords<'a>(
        users: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    ) -> impl Iterator<Item = (&'a [u8], UserSecret<'a>)> + Clone {
        users.map(|(name, password)| (name, UserSecret::Password(password)))
    }

    /// RFC 8489 section 9.2.2: the key is MD5 of name, realm and password. SHA-256 of the same password does not fit.
    #[test]
    fn a_user_with_a_key_is_one_with_the_password_for_md5_only() {
        let shared = Shared::new(Quotas::default(), 8, 7);
        let (name, password) = (b"ann".as_slice(), b"secret".as_slice());
        let key = md5_key(name, REALM.as_bytes(), password);
        let users = [(name, UserSecret::Md5Key(&key))];
        let part = UserPart::new(user_part_of(name), users.into_iter(), REALM, (&shared, &[3; 32]));
        let mut worker = Credentials::new(&Secrets::new([1; 32], [2; 32]), RealmId::DEFAULT, shared.seed(), 8);
        worker.replace_users(&part);
        let (user, is_known) = worker.named(name).unwrap();
        let own = |algorithm| user.keys.of(algorithm).sha1.mac(b"text");
        let from_password = |algorithm| LongTermKey::of(algorithm, name, REALM.as_bytes(), password).sha1.mac(b"text");
        assert!(is_known);
        assert_eq!(own(PasswordAlgorithm::Md5), from_password(PasswordAlgorithm::Md5));
        assert_ne!(own(PasswordAlgorithm::Sha256), from_password(PasswordAlgorithm::Sha256));
        assert_ne!(own(PasswordAlgorithm::Sha256), own(PasswordAlgorithm::Md5));
        assert_eq!(worker.name_of(&user_hash(name, REALM.as_bytes())), Some(name));
    }

    /// Each user has a password; of two with one name the first counts, and every user is found by name and by hash.
    #[test]
    fn parts_replace_users_one_after_the_other() {
        let shared = Shared::new(Quotas::default(), 8, 7);
        let names: Vec<_> = (0..200).map(|number| alloc::format!("user-{number}")).collect();
        let users = |password: &'static str| names.iter().map(move |name| (name.as_bytes(), password.as_bytes()));
        let mut secrets = Secrets::new([1; 32], [2; 32]);
        users("before").for_each(|(name, password)| secrets.add_user(name, REALM, password));
        secrets.add_user(b"user-7", REALM, b"of a second");
        let mut worker = Credentials::new(&secrets, RealmId::DEFAULT, shared.seed(), 8);
        let has = |worker: &Credentials, name: &str, password: &str| {
            let key = LongTermKey::md5(name.as_bytes(), REALM.as_bytes(), password.as_bytes());
            let hash = user_hash(name.as_bytes(), REALM.as_bytes());
            let both = [worker.named(name.as_bytes()), worker.hashed(&hash)];
            assert_eq!(worker.name_of(&hash), Some(name.as_bytes()));
            both.iter().flatten().all(|(user, is_known)| {
                let own = user.keys.of(PasswordAlgorithm::Md5);
                *is_known && own.sha1.mac(b"text") == key.sha1.mac(b"text")
            })
        };
        for part in 0..USER_PARTS {
            for name in &names {
                let is_replaced = user_part_of(name.as_bytes()) < part;
                assert!(has(&worker, name, if is_replaced { "after" } else { "before" }), "{name}, part {part}");
            }
            let replaced =
                worker.replace_users(&UserPart::new(part, as_passwords(users("after")), REALM, (&shared, &[3; 32])));
            let own = names.iter().filter(|name| user_part_of(name.as_bytes()) == part).count();
            assert!(own > 1 && own < 30, "{own} of 200 in part {part}");
            assert!(replaced.users.all.len() >= own && Arc::strong_count(&replaced.users) <= 2);
        }
        assert!(names.iter().all(|name| has(&worker, name, "after")));
        assert!(!named(&worker, "user-200") && worker.name_of(&[7; 32]).is_none());
    }
}
