//! Who may relay: users with a password, and secrets of the TURN REST API.

mod key;
mod time_limited;

pub use key::{LongTermKey, long_term_key, user_hash};
pub(crate) use key::{PasswordAlgorithm, SigningKey};

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use crate::base64;
use crate::integrity::HmacSha1;
use crate::table::Table;
use key::UserKeys;
use time_limited::{DerivedKeys, TimeLimited};

/// Every secret of a server: users' keys, shared secrets, nonce keys and seeds. The same for every worker save the
/// seed. Keys are kept, not passwords.
#[derive(Clone)]
pub struct Secrets {
    pub(crate) seed: [u8; 32],
    pub(crate) nonce_key: [u8; 32],
    pub(crate) nonce_key_previous: Option<[u8; 32]>,
    users: Vec<StaticUser>,
    auth_secrets: Vec<HmacSha1>,
}

impl core::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Secrets")
            .field("users", &self.users.len())
            .field("auth_secrets", &self.auth_secrets.len())
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
    /// No users and no secrets yet. `seed` is random and secret, another one for each worker; `nonce_key` is random
    /// and secret, the same for all workers (and for a fleet that shares nonces).
    #[must_use]
    pub fn new(seed: [u8; 32], nonce_key: [u8; 32]) -> Self {
        Self { seed, nonce_key, nonce_key_previous: None, users: Vec::new(), auth_secrets: Vec::new() }
    }

    /// The same with another seed: for another worker.
    #[must_use]
    pub fn seeded(&self, seed: [u8; 32]) -> Self {
        let mut seeded = self.clone();
        seeded.seed = seed;
        seeded
    }

    /// Nonces made with this key stay valid until they are stale: the key before a rotation.
    pub fn accept_nonces_of(&mut self, nonce_key_previous: [u8; 32]) {
        self.nonce_key_previous = Some(nonce_key_previous);
    }

    /// Adds a user with the password, both already prepared as RFC 8265's OpaqueString. `realm` must be the
    /// configuration's; of two users of one name the first counts. Keys are kept, the password is not (RFC 8656
    /// section 6).
    pub fn add_user(&mut self, name: &[u8], realm: &str, password: &[u8]) {
        self.users.push(StaticUser {
            name: name.into(),
            id: UserId::of(name),
            hash: user_hash(name, realm.as_bytes()),
            keys: UserKeys::new(name, realm.as_bytes(), password),
        });
    }

    /// Adds a shared secret: credentials `expiry[:id]` with the password `base64(HMAC-SHA1(secret, name))` are valid
    /// until their expiry in Unix seconds. Several secrets may be valid at once. With one, USERHASH is not offered
    /// any more: nobody knows beforehand which names it may stand for.
    pub fn add_auth_secret(&mut self, secret: &[u8]) {
        self.auth_secrets.push(HmacSha1::new(secret));
    }
}

#[derive(Clone, Debug)]
struct StaticUser {
    name: Box<[u8]>,
    id: UserId,
    /// USERHASH in place of the name.
    hash: [u8; 32],
    keys: UserKeys,
}

/// Who a request is from: 128 bits of the name's SHA-256, the same before and after the secrets are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserId(u128);

impl UserId {
    fn of(name: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(name).into();
        Self(digest.first_chunk().map_or(0, |first| u128::from_be_bytes(*first)))
    }
}

/// What a request says about who sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name<'a> {
    /// USERNAME.
    Plain(&'a [u8]),
    /// USERHASH.
    Hash(&'a [u8]),
}

/// How a request is authenticated, and so how its answer is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) algorithm: PasswordAlgorithm,
    pub(crate) answer: Answer,
}

/// What an answer carries, RFC 8489 section 9.2.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// MESSAGE-INTEGRITY: the request has no PASSWORD-ALGORITHM.
    Sha1,
    /// MESSAGE-INTEGRITY-SHA256.
    Sha256,
    /// MESSAGE-INTEGRITY too: the request has a PASSWORD-ALGORITHM and is signed so, and there are clients that take
    /// nothing else back.
    Both,
}

impl Path {
    #[inline]
    fn signing(self, key: &LongTermKey) -> SigningKey {
        match self.answer {
            Answer::Sha1 => SigningKey::Sha1(key.sha1.clone()),
            Answer::Sha256 => SigningKey::Sha256(key.sha256.clone()),
            Answer::Both => SigningKey::Both(key.clone()),
        }
    }
}

/// A user whose request was verified.
#[derive(Clone, Debug)]
pub struct User {
    pub(crate) id: UserId,
    /// What quotas are kept by: the hash of the name without its expiry.
    pub(crate) quota_key: u64,
    pub(crate) key: SigningKey,
}

/// The users and secrets of one worker, ready to be asked.
#[derive(Debug)]
pub(crate) struct Credentials {
    users: Vec<StaticUser>,
    by_name: Table<u64, u32>,
    by_hash: Table<u64, u32>,
    auth_secrets: Vec<HmacSha1>,
    derived: DerivedKeys,
    /// How often a key was derived from a secret.
    derivations: u64,
    /// Verified instead of an unknown user's keys, so that both cost the same.
    nobody: UserKeys,
    names_seed: u64,
    shared_seed: SharedSeed,
}

impl Credentials {
    /// `names_seed` is the same for all workers that share quotas; the keys of about `names_kept` time-limited names
    /// are kept.
    pub(crate) fn new(secrets: &Secrets, names_seed: u64, names_kept: u32) -> Self {
        let names_kept = if secrets.auth_secrets.is_empty() { 0 } else { names_kept as usize };
        let mut credentials = Self {
            users: secrets.users.clone(),
            by_name: Table::new(secrets.users.len(), names_seed),
            by_hash: Table::new(secrets.users.len(), names_seed.rotate_left(17)),
            auth_secrets: secrets.auth_secrets.clone(),
            derived: DerivedKeys::new(names_kept),
            derivations: 0,
            nobody: UserKeys::of_nobody(&secrets.seed),
            names_seed,
            shared_seed: SharedSeed::from_u64(names_seed.rotate_left(9)),
        };
        for (index, user) in (0u32..).zip(&secrets.users) {
            let key = credentials.name_key(&user.name);
            if credentials.by_name.get(&key).is_none() {
                let stored =
                    credentials.by_name.insert(key, index) && credentials.by_hash.insert(hash_key(&user.hash), index);
                debug_assert!(stored, "the tables have room for every user");
            }
        }
        credentials
    }

    /// Whether a USERHASH names somebody: RFC 8489's username anonymity.
    pub(crate) fn understands_hashes(&self) -> bool {
        self.auth_secrets.is_empty()
    }

    /// How often a key was derived from a secret.
    pub(crate) fn derivations(&self) -> u64 {
        self.derivations
    }

    fn name_key(&self, name: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.names_seed, &self.shared_seed);
        hasher.write(name);
        hasher.finish().max(1)
    }

    /// The user whose key satisfies `verify`; a time-limited name must not have expired at `unix_s`.
    #[inline]
    pub(crate) fn authenticate(
        &mut self,
        name: Name<'_>,
        path: Path,
        realm: &str,
        unix_s: u64,
        verify: impl Fn(&LongTermKey) -> bool,
    ) -> Option<User> {
        let (user, quota_key) = match name {
            Name::Plain(name) => {
                let name_key = self.name_key(name);
                (self.named(name, name_key), name_key)
            }
            Name::Hash(hash) => {
                let user = self.hashed(hash);
                (user, user.map_or(0, |user| self.name_key(&user.name)))
            }
        };
        if let Some(user) = user {
            let key = user.keys.of(path.algorithm);
            return verify(key).then(|| User { id: user.id, quota_key, key: path.signing(key) });
        }
        if let Name::Plain(name) = name
            && !self.auth_secrets.is_empty()
            && let Some(limited) = TimeLimited::read(name)
        {
            return self.time_limited(name, limited, path, realm, verify).filter(|_| limited.expiry_s > unix_s);
        }
        let _ = core::hint::black_box(verify(self.nobody.of(path.algorithm)));
        None
    }

    /// An unknown name is compared too, with itself: that it is unknown must not be told by the time it takes.
    #[inline]
    fn named(&self, name: &[u8], name_key: u64) -> Option<&StaticUser> {
        let found = self.by_name.get(&name_key).and_then(|index| self.users.get(*index as usize));
        let known = core::hint::black_box(found.map_or(name, |user| &user.name));
        let is_same = *known == *name;
        found.filter(|_| is_same)
    }

    /// The name behind a USERHASH.
    pub(crate) fn name_of(&self, hash: &[u8]) -> Option<&[u8]> {
        self.hashed(hash).map(|user| &*user.name)
    }

    fn hashed(&self, hash: &[u8]) -> Option<&StaticUser> {
        let hash: &[u8; 32] = hash.try_into().ok().filter(|_| self.understands_hashes())?;
        let index = *self.by_hash.get(&hash_key(hash))?;
        self.users.get(index as usize).filter(|user| user.hash == *hash)
    }

    /// The user of a time-limited name, by the key that is kept for it, or else by one derived from each secret.
    fn time_limited(
        &mut self,
        name: &[u8],
        limited: TimeLimited<'_>,
        path: Path,
        realm: &str,
        verify: impl Fn(&LongTermKey) -> bool,
    ) -> Option<User> {
        let (id, quota_key) = (UserId::of(name), self.name_key(limited.id));
        let user = |key: &LongTermKey| User { id, quota_key, key: path.signing(key) };
        if let Some(key) = self.derived.get(id, path.algorithm).filter(|key| verify(key)) {
            return Some(user(key));
        }
        let key = self.auth_secrets.iter().find_map(|secret| {
            self.derivations += 1;
            let password = base64::of_sha1(&secret.mac(name));
            let key = LongTermKey::of(path.algorithm, name, realm.as_bytes(), &password);
            verify(&key).then_some(key)
        })?;
        let user = user(&key);
        self.derived.keep(id, path.algorithm, key);
        Some(user)
    }
}

/// A table's key of a USERHASH.
fn hash_key(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().map_or(1, |first| u64::from_be_bytes(*first).max(1))
}
