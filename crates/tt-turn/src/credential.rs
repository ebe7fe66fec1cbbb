//! Who may relay: users with a password, and secrets of the TURN REST API.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use md5::{Digest, Md5};
use sha2::Sha256;
use zeroize::Zeroize;

use crate::base64;
use crate::integrity::HmacSha1;
use crate::table::Table;

/// Every secret of a server: users' keys, shared secrets, nonce keys and seeds. The same for every worker save the
/// seed. Keys are kept, not passwords.
#[derive(Clone)]
pub struct Secrets {
    pub(crate) seed: [u8; 32],
    pub(crate) nonce_key: [u8; 32],
    pub(crate) nonce_key_previous: Option<[u8; 32]>,
    users: Vec<(Box<[u8]>, HmacSha1)>,
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

    /// Nonces made with this key stay valid until they are stale: the key before a rotation.
    pub fn accept_nonces_of(&mut self, nonce_key_previous: [u8; 32]) {
        self.nonce_key_previous = Some(nonce_key_previous);
    }

    /// Adds a user with the password, both already prepared as RFC 8265's OpaqueString. `realm` must be the
    /// configuration's; of two users of one name the first counts.
    pub fn add_user(&mut self, name: &[u8], realm: &str, password: &[u8]) {
        self.users.push((name.into(), long_term_key(name, realm.as_bytes(), password)));
    }

    /// Adds a shared secret: credentials `expiry[:id]` with the password `base64(HMAC-SHA1(secret, name))` are valid
    /// until their expiry in Unix seconds. Several secrets may be valid at once.
    pub fn add_auth_secret(&mut self, secret: &[u8]) {
        self.auth_secrets.push(HmacSha1::new(secret));
    }
}

/// The key of a user: MD5 of `name:realm:password` (RFC 8489 section 9.2.2), as kept HMAC states.
#[must_use]
pub fn long_term_key(name: &[u8], realm: &[u8], password: &[u8]) -> HmacSha1 {
    let mut md5 = Md5::new();
    for part in [name, b":", realm, b":", password] {
        md5.update(part);
    }
    let mut key: [u8; 16] = md5.finalize().into();
    let states = HmacSha1::new(&key);
    key.zeroize();
    states
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

/// A user whose request was verified.
#[derive(Clone, Debug)]
pub struct User {
    pub(crate) id: UserId,
    /// What quotas are kept by: the hash of the name without its expiry.
    pub(crate) quota_key: u64,
    pub(crate) key: HmacSha1,
}

/// The users and secrets of one worker, ready to be asked.
#[derive(Debug)]
pub(crate) struct Credentials {
    users: Vec<(Box<[u8]>, HmacSha1)>,
    ids: Box<[UserId]>,
    by_name: Table<u64, u32>,
    auth_secrets: Vec<HmacSha1>,
    /// Verified instead of an unknown user's key, so that both cost the same.
    nobody: HmacSha1,
    names_seed: u64,
    shared_seed: SharedSeed,
}

impl Credentials {
    /// `names_seed` is the same for all workers that share quotas.
    pub(crate) fn new(secrets: &Secrets, names_seed: u64) -> Self {
        let mut credentials = Self {
            users: secrets.users.clone(),
            ids: secrets.users.iter().map(|(name, _)| UserId::of(name)).collect(),
            by_name: Table::new(secrets.users.len(), names_seed),
            auth_secrets: secrets.auth_secrets.clone(),
            nobody: HmacSha1::new(&secrets.seed),
            names_seed,
            shared_seed: SharedSeed::from_u64(names_seed.rotate_left(9)),
        };
        for (index, (name, _)) in (0u32..).zip(&secrets.users) {
            let key = credentials.name_key(name);
            if credentials.by_name.get(&key).is_none() {
                let stored = credentials.by_name.insert(key, index);
                debug_assert!(stored, "the table has room for every user");
            }
        }
        credentials
    }

    fn name_key(&self, name: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.names_seed, &self.shared_seed);
        hasher.write(name);
        hasher.finish().max(1)
    }

    /// The user called `name` whose key satisfies `verify`; a time-limited name must not have expired at `unix_s`.
    pub(crate) fn authenticate(
        &self,
        name: &[u8],
        realm: &str,
        unix_s: u64,
        verify: impl Fn(&HmacSha1) -> bool,
    ) -> Option<User> {
        let name_key = self.name_key(name);
        let index = self.by_name.get(&name_key).copied();
        if let Some((index, (_, key))) = index
            .and_then(|index| Some((index, self.users.get(index as usize)?)))
            .filter(|(_, (known, _))| **known == *name)
        {
            let id = self.ids.get(index as usize).copied()?;
            return verify(key).then(|| User { id, quota_key: name_key, key: key.clone() });
        }
        let Some((expiry_s, id)) = expiry_and_id(name).filter(|_| !self.auth_secrets.is_empty()) else {
            let _ = core::hint::black_box(verify(&self.nobody));
            return None;
        };
        let user = self.auth_secrets.iter().find_map(|secret| {
            let code = secret.mac(name);
            let key = long_term_key(name, realm.as_bytes(), &base64::of_sha1(&code));
            verify(&key).then(|| User { id: UserId::of(name), quota_key: self.name_key(id), key })
        });
        user.filter(|_| expiry_s > unix_s)
    }
}

/// The parts of a time-limited name: Unix seconds, and what is behind the colon (the whole name where there is none).
fn expiry_and_id(name: &[u8]) -> Option<(u64, &[u8])> {
    let digits = name.iter().position(|byte| *byte == b':').unwrap_or(name.len());
    let (expiry, rest) = name.split_at(digits);
    let expiry_s = core::str::from_utf8(expiry).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    let id = rest.get(1..).filter(|id| !id.is_empty()).unwrap_or(name);
    Some((expiry_s.parse().ok()?, id))
}
