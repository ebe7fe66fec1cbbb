//! The long-term credential check (RFC 8489 section 9.2.4).

use core::net::SocketAddr;

use tt_model::Nanos;

use super::Server;
use crate::config::PasswordAlgorithms;
use crate::credential::{Answer, LongTermKey, Name, PasswordAlgorithm, Path, User};
use crate::error::ErrorCode;
use crate::message::{Known, Message};
use crate::nonce::tells_of_algorithms;

impl Server {
    /// Who sent `message`, by realm, user, message integrity and nonce, looked at in the order of RFC 8489 section
    /// 9.2.4: a wrong code is 401 however old the nonce is.
    ///
    /// # Errors
    /// `Unauthenticated` (401) without a message integrity of its length, for an unknown user or realm, a wrong code,
    /// or MD5 where it is refused; `BadRequest` (400) where USERNAME and USERHASH, REALM or NONCE is missing, or
    /// PASSWORD-ALGORITHM does not go with what was offered; `StaleNonce` (438) where the nonce is old, forged or
    /// another client's.
    #[inline]
    pub fn credential_check(
        &mut self,
        now: Nanos,
        client: SocketAddr,
        message: &Message<'_>,
    ) -> Result<User, ErrorCode> {
        if !has_integrity(message) {
            return Err(ErrorCode::Unauthenticated);
        }
        let name = match message.value(Known::Username) {
            Some(name) => Name::Plain(name),
            None => Name::Hash(message.value(Known::UserHash).ok_or(ErrorCode::BadRequest)?),
        };
        let (Some(realm), Some(nonce)) = (message.value(Known::Realm), message.value(Known::Nonce)) else {
            return Err(ErrorCode::BadRequest);
        };
        let path = path(self.config.password_algorithms, nonce, message)?;
        let unix_s = self.clock.unix_s(now);
        let verify = |key: &LongTermKey| is_authentic(message, key);
        let user = self.credentials.authenticate(name, path, &self.config.realm, unix_s, verify);
        let Some(user) = user.filter(|_| realm == self.config.realm.as_bytes()) else {
            return Err(ErrorCode::Unauthenticated);
        };
        if self.nonces.is_fresh(nonce, unix_s, client) { Ok(user) } else { Err(ErrorCode::StaleNonce) }
    }
}

/// Whether the message integrity that counts is there, of its full length (RFC 8489 section 14.6: TURN allows no
/// shorter one).
#[inline]
fn has_integrity(message: &Message<'_>) -> bool {
    match message.value(Known::IntegritySha256) {
        Some(value) => value.len() == 32,
        None => message.value(Known::Integrity).is_some_and(|value| value.len() == 20),
    }
}

/// RFC 8489 section 9.2.4: MESSAGE-INTEGRITY-SHA256 is checked where it is present, else MESSAGE-INTEGRITY.
#[inline]
fn is_authentic(message: &Message<'_>, key: &LongTermKey) -> bool {
    if message.has(Known::IntegritySha256) {
        message.integrity_sha256_is_right(&key.sha256)
    } else {
        message.integrity_is_right(&key.sha1)
    }
}

/// Which key the client has made: what PASSWORD-ALGORITHM says, or MD5 where the client knows nothing of algorithms.
/// A nonce that says that none were offered is not one of an offering server's, so that what follows from it ends in
/// 438 at best.
#[inline]
fn path(accepted: PasswordAlgorithms, nonce: &[u8], message: &Message<'_>) -> Result<Path, ErrorCode> {
    let (list, choice) = (message.value(Known::PasswordAlgorithms), message.value(Known::PasswordAlgorithm));
    if list.is_none() && choice.is_none() {
        return match accepted {
            PasswordAlgorithms::Md5AndSha256 | PasswordAlgorithms::Md5 => {
                Ok(Path { algorithm: PasswordAlgorithm::Md5, answer: Answer::Sha1 })
            }
            PasswordAlgorithms::Sha256 => Err(ErrorCode::Unauthenticated),
        };
    }
    let answer = if message.has(Known::IntegritySha256) { Answer::Sha256 } else { Answer::Both };
    let algorithm = match choice {
        Some([0, 1, 0, 0]) => Some(PasswordAlgorithm::Md5),
        Some([0, 2, 0, 0]) => Some(PasswordAlgorithm::Sha256),
        Some(_) | None => None,
    };
    if !tells_of_algorithms(nonce) {
        return Ok(Path { algorithm: algorithm.unwrap_or(PasswordAlgorithm::Md5), answer });
    }
    let is_offered = match (accepted, algorithm) {
        (PasswordAlgorithms::Md5AndSha256, Some(PasswordAlgorithm::Md5 | PasswordAlgorithm::Sha256))
        | (PasswordAlgorithms::Sha256, Some(PasswordAlgorithm::Sha256)) => list == accepted.offer(),
        (PasswordAlgorithms::Sha256, Some(PasswordAlgorithm::Md5))
        | (PasswordAlgorithms::Md5, Some(_))
        | (PasswordAlgorithms::Md5AndSha256 | PasswordAlgorithms::Md5 | PasswordAlgorithms::Sha256, None) => false,
    };
    match algorithm {
        Some(algorithm) if is_offered => Ok(Path { algorithm, answer }),
        Some(_) | None => Err(ErrorCode::BadRequest),
    }
}
