//! Keys of long-term credentials (RFC 8489 sections 9.2.2 and 18.5.1).

use md5::{Digest, Md5};
use sha2::Sha256;
use zeroize::Zeroize;

use crate::integrity::{HmacSha1, HmacSha256};

/// A password algorithm (RFC 8489 section 18.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordAlgorithm {
    Md5,
    Sha256,
}

/// A long-term key as the precomputed states of both message integrity codes.
///
/// Each state fits in one cache line, so that no key takes longer than another.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct LongTermKey {
    /// For MESSAGE-INTEGRITY-SHA256.
    pub sha256: HmacSha256,
    /// For MESSAGE-INTEGRITY.
    pub sha1: HmacSha1,
}

impl LongTermKey {
    fn new(key: &[u8]) -> Self {
        Self { sha1: HmacSha1::new(key), sha256: HmacSha256::new(key) }
    }

    /// MD5 of `name:realm:password`.
    #[must_use]
    pub fn md5(name: &[u8], realm: &[u8], password: &[u8]) -> Self {
        let mut key = hash::<Md5, 16>([name, realm, password]);
        let states = Self::new(&key);
        key.zeroize();
        states
    }

    /// SHA-256 of `name:realm:password`.
    #[must_use]
    pub fn sha256(name: &[u8], realm: &[u8], password: &[u8]) -> Self {
        let mut key = hash::<Sha256, 32>([name, realm, password]);
        let states = Self::new(&key);
        key.zeroize();
        states
    }

    pub(super) fn of(algorithm: PasswordAlgorithm, name: &[u8], realm: &[u8], password: &[u8]) -> Self {
        match algorithm {
            PasswordAlgorithm::Md5 => Self::md5(name, realm, password),
            PasswordAlgorithm::Sha256 => Self::sha256(name, realm, password),
        }
    }
}

fn hash<D: Digest, const N: usize>([name, realm, password]: [&[u8]; 3]) -> [u8; N]
where
    [u8; N]: From<md5::digest::Output<D>>,
{
    let mut digest = D::new();
    for part in [name, b":", realm, b":", password] {
        digest.update(part);
    }
    digest.finalize().into()
}

/// Returns the MD5 key of a user for MESSAGE-INTEGRITY: MD5 of `name:realm:password` (RFC 8489 section 9.2.2).
#[must_use]
pub fn long_term_key(name: &[u8], realm: &[u8], password: &[u8]) -> HmacSha1 {
    LongTermKey::md5(name, realm, password).sha1
}

/// Returns the MD5 key of a user itself, which [`UserSecret::Md5Key`] takes.
#[must_use]
pub fn md5_key(name: &[u8], realm: &[u8], password: &[u8]) -> [u8; 16] {
    hash::<Md5, 16>([name, realm, password])
}

/// Returns the USERHASH of a user: SHA-256 of `name:realm` (RFC 8489 section 14.4).
#[must_use]
pub fn user_hash(name: &[u8], realm: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [name, b":", realm] {
        digest.update(part);
    }
    digest.finalize().into()
}

/// The secret of a user.
#[derive(Clone, Copy)]
pub enum UserSecret<'a> {
    /// The password, prepared as OpaqueString (RFC 8265).
    Password(&'a [u8]),
    /// The key of RFC 8489 section 9.2.2. No key for SHA-256 follows from it: the user can use MD5 only.
    Md5Key(&'a [u8; 16]),
}

impl core::fmt::Debug for UserSecret<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Password(_) => "Password(..)",
            Self::Md5Key(_) => "Md5Key(..)",
        })
    }
}

/// One user's keys, one for each algorithm.
#[derive(Clone, Debug)]
pub(super) struct UserKeys {
    md5: LongTermKey,
    sha256: LongTermKey,
}

impl UserKeys {
    pub(super) fn new(name: &[u8], realm: &[u8], password: &[u8]) -> Self {
        Self { md5: LongTermKey::md5(name, realm, password), sha256: LongTermKey::sha256(name, realm, password) }
    }

    /// Returns the keys of a user whose MD5 key is known. The other one is made of `unknown`, which must be random and
    /// secret: it fits no password.
    pub(super) fn of_md5_key(key: &[u8; 16], unknown: &[u8; 32]) -> Self {
        Self { md5: LongTermKey::new(key), sha256: LongTermKey::new(unknown) }
    }

    /// Returns random keys that belong to no user.
    pub(super) fn of_no_user(seed: &[u8; 32]) -> Self {
        Self { md5: LongTermKey::new(seed), sha256: LongTermKey::new(seed) }
    }

    #[inline]
    pub(super) fn of(&self, algorithm: PasswordAlgorithm) -> &LongTermKey {
        match algorithm {
            PasswordAlgorithm::Md5 => &self.md5,
            PasswordAlgorithm::Sha256 => &self.sha256,
        }
    }
}
