//! The long-term credential check (RFC 8489 section 9.2.4).

use core::net::SocketAddr;

use tt_model::Nanos;

use super::Server;
use crate::config::PasswordAlgorithms;
use crate::credential::{Answer, LongTermKey, Name, PasswordAlgorithm, Path, User};
use crate::error::ErrorCode;
use crate::message::{Known, Message};
use crate::nonce::offers_algorithms;

impl Server {
    /// Authenticates `message`: realm, user, message integrity and nonce, in the order of RFC 8489 section 9.2.4. A
    /// wrong code is 401 however old the nonce is.
    ///
    /// # Errors
    /// `Unauthenticated` (401): no message integrity of its length, an unknown user or realm, a wrong code, or MD5
    /// where it is not accepted. `BadRequest` (400): USERNAME and USERHASH, REALM or NONCE is missing, or
    /// PASSWORD-ALGORITHM does not match the offer. `StaleNonce` (438): the nonce is stale, forged or another
    /// client's.
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

/// Returns whether the message integrity that counts is present in its full length; TURN allows no truncation (RFC
/// 8489 section 14.6).
#[inline]
fn has_integrity(message: &Message<'_>) -> bool {
    match message.value(Known::IntegritySha256) {
        Some(value) => value.len() == 32,
        None => message.value(Known::Integrity).is_some_and(|value| value.len() == 20),
    }
}

/// Checks MESSAGE-INTEGRITY-SHA256 if it is present, else MESSAGE-INTEGRITY (RFC 8489 section 9.2.4).
#[inline]
fn is_authentic(message: &Message<'_>, key: &LongTermKey) -> bool {
    if message.has(Known::IntegritySha256) {
        message.has_valid_integrity_sha256(&key.sha256)
    } else {
        message.has_valid_integrity(&key.sha1)
    }
}

/// Returns the algorithm of the client's key: that of PASSWORD-ALGORITHM, or MD5 for a client that does not know
/// algorithms.
///
/// A nonce without an offer was not issued by a server that makes one, so that such a request ends in 438 at best.
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
    if !offers_algorithms(nonce) {
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
