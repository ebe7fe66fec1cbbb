//! Who may relay: users with a password, and secrets of the TURN REST API.

mod key;
mod time_limited;

pub(crate) use key::PasswordAlgorithm;
pub use key::{LongTermKey, long_term_key, user_hash};

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
            quota_key: 0,
            index: 0,
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
    /// What the user's quota is kept by, in [`Credentials`].
    quota_key: u64,
    /// The user's place there.
    index: u32,
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

/// A user whose request was verified; good until the secrets are replaced or another request is verified.
#[derive(Clone, Copy, Debug)]
pub struct User {
    pub(crate) id: UserId,
    /// What quotas are kept by: the hash of the name without its expiry.
    pub(crate) quota_key: u64,
    pub(crate) answer: Answer,
    key: KeyPlace,
}

/// Where the key of a verified user is.
#[derive(Clone, Copy, Debug)]
enum KeyPlace {
    Static(u32, PasswordAlgorithm),
    Derived(u32),
}

/// The users and secrets of one worker, ready to be asked.
///
/// An unknown user costs what a known one with a wrong password costs, down to the memory that is touched: its look-up
/// ends at some user's record, whose key is verified and whose name is compared, for nothing.
#[derive(Debug)]
pub(crate) struct Credentials {
    /// Every user, or a single one that nobody is.
    users: Vec<StaticUser>,
    by_name: Table<u64, u32>,
    by_hash: Table<u64, u32>,
    auth_secrets: Vec<HmacSha1>,
    derived: DerivedKeys,
    /// How often a key was derived from a secret.
    derivations: u64,
    names_seed: u64,
    shared_seed: SharedSeed,
}

/// Room in the tables for each user: names that share a bucket are told from others by the time.
const ROOM_EACH: usize = 4;

impl Credentials {
    /// `names_seed` is the same for all workers that share quotas; the keys of about `names_kept` time-limited names
    /// are kept.
    pub(crate) fn new(secrets: &Secrets, names_seed: u64, names_kept: u32) -> Self {
        let names_kept = if secrets.auth_secrets.is_empty() { 0 } else { names_kept.max(1) as usize };
        let room = ROOM_EACH * secrets.users.len();
        let mut credentials = Self {
            users: secrets.users.clone(),
            by_name: Table::new(room, names_seed),
            by_hash: Table::new(room, names_seed.rotate_left(17)),
            auth_secrets: secrets.auth_secrets.clone(),
            derived: DerivedKeys::new(names_kept),
            derivations: 0,
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
            let user = &mut credentials.users[index as usize];
            (user.quota_key, user.index) = (key, index);
        }
        if credentials.users.is_empty() {
            credentials.users.push(StaticUser {
                name: Box::default(),
                id: UserId(0),
                hash: [0; 32],
                quota_key: 0,
                index: 0,
                keys: UserKeys::of_nobody(&secrets.seed),
            });
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
            return self.time_limited(name, limited, path, realm, verify).filter(|_| limited.expiry_s > unix_s);
        }
        let passes = verify(user.keys.of(path.algorithm)) & is_known;
        let key = KeyPlace::Static(user.index, path.algorithm);
        passes.then_some(User { id: user.id, quota_key: user.quota_key, answer: path.answer, key })
    }

    /// The key that the user was verified by.
    pub(crate) fn key_of(&self, user: &User) -> Option<&LongTermKey> {
        match user.key {
            KeyPlace::Static(index, algorithm) => Some(self.users.get(index as usize)?.keys.of(algorithm)),
            KeyPlace::Derived(place) => self.derived.at(place),
        }
    }

    /// The user called `name` and true, or some user and false.
    #[inline]
    fn named(&self, name: &[u8]) -> Option<(&StaticUser, bool)> {
        let key = self.name_key(name);
        let (index, is_found) = self.by_name.get_or(&key, self.decoy(key));
        let user = self.users.get(index as usize)?;
        // A name that is not there is compared with itself: that takes as long.
        let _ = core::hint::black_box(user.name.first().copied());
        let known = core::hint::black_box(if is_found { &user.name } else { name });
        Some((user, (*known == *name) & is_found))
    }

    fn hashed(&self, hash: &[u8]) -> Option<(&StaticUser, bool)> {
        let whole: Option<&[u8; 32]> = hash.try_into().ok().filter(|_| self.understands_hashes());
        let key = whole.map_or(1, hash_key);
        let (index, is_found) = self.by_hash.get_or(&key, self.decoy(key));
        let user = self.users.get(index as usize)?;
        Some((user, (whole == Some(&user.hash)) & is_found))
    }

    /// Some user, always the same one for a key.
    #[inline]
    fn decoy(&self, key: u64) -> u32 {
        (((key >> 32) * self.users.len() as u64) >> 32) as u32
    }

    /// The name behind a USERHASH.
    pub(crate) fn name_of(&self, hash: &[u8]) -> Option<&[u8]> {
        self.hashed(hash).filter(|(_, is_known)| *is_known).map(|(user, _)| &*user.name)
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
        let user = |place| User { id, quota_key, answer: path.answer, key: KeyPlace::Derived(place) };
        let place = self.derived.place(id);
        if self.derived.get(place, id, path.algorithm).is_some_and(&verify) {
            return Some(user(place));
        }
        let key = self.auth_secrets.iter().find_map(|secret| {
            self.derivations += 1;
            let password = base64::of_sha1(&secret.mac(name));
            let key = LongTermKey::of(path.algorithm, name, realm.as_bytes(), &password);
            verify(&key).then_some(key)
        })?;
        self.derived.keep(place, id, path.algorithm, key);
        Some(user(place))
    }
}

/// A table's key of a USERHASH.
fn hash_key(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().map_or(1, |first| u64::from_be_bytes(*first).max(1))
}
