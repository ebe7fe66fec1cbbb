//! Users and what they prove themselves with: a password, or a name that ends at some time (TURN REST API).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use super::topology::REALM;
use super::wire::{Algorithm, Key};

pub(super) const PASSWORD: &str = "correct horse";
/// What the server and the applications of its users share.
pub(super) const SECRET: &[u8] = b"known to the server and to the application";

pub(super) fn user_name(number: usize) -> Vec<u8> {
    format!("user{number}").into_bytes()
}

/// Both keys of a name.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) md5: Key,
    pub(super) sha256: Key,
}

impl Keys {
    pub(super) fn new(name: &[u8], password: &str) -> Self {
        let of = |algorithm| Key::new(algorithm, name, REALM, password);
        Self { md5: of(Algorithm::Md5), sha256: of(Algorithm::Sha256) }
    }

    pub(super) fn of(&self, algorithm: Algorithm) -> &Key {
        match algorithm {
            Algorithm::Md5 => &self.md5,
            Algorithm::Sha256 => &self.sha256,
        }
    }

    /// The keys of a name that ends: its password is the code of the name under the secret.
    pub(super) fn limited(name: &[u8]) -> Self {
        let mac = Hmac::<Sha1>::new_from_slice(SECRET).expect("HMAC takes keys of any length");
        Self::new(name, &STANDARD.encode(mac.chain_update(name).finalize().into_bytes()))
    }
}

/// A name with its keys.
#[derive(Clone)]
pub(super) struct Credential {
    pub(super) name: Vec<u8>,
    pub(super) keys: Keys,
}

impl Credential {
    pub(super) fn lasting(user: usize) -> Self {
        let name = user_name(user);
        Self { keys: Keys::new(&name, PASSWORD), name }
    }

    /// Valid until a second of Unix time.
    pub(super) fn limited(user: usize, expiry_s: u64) -> Self {
        let name = [expiry_s.to_string().as_bytes(), b":", &user_name(user)].concat();
        Self { keys: Keys::limited(&name), name }
    }
}

/// The expiry and the user's name in a name that ends.
pub(super) fn parts(name: &[u8]) -> Option<(u64, &[u8])> {
    let colon = name.iter().position(|byte| *byte == b':')?;
    let expiry = std::str::from_utf8(&name[..colon]).ok()?;
    Some((expiry.parse().ok()?, &name[colon + 1..]))
}
