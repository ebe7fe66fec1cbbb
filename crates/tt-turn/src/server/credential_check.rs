//! The long-term credential check (RFC 8489 section 9.2.4).

use core::net::SocketAddr;

use tt_model::Nanos;

use super::Server;
use crate::credential::User;
use crate::error::ErrorCode;
use crate::message::{Known, Message};

impl Server {
    /// Who sent `message`, by realm, user, MESSAGE-INTEGRITY and nonce, looked at in the order of RFC 8489 section
    /// 9.2.4: a wrong code is 401 however old the nonce is.
    ///
    /// # Errors
    /// `Unauthenticated` (401) without a MESSAGE-INTEGRITY of its length, for an unknown user or realm, or a wrong
    /// code; `BadRequest` (400) where USERNAME, REALM or NONCE is missing; `StaleNonce` (438) where the nonce is old,
    /// forged or another client's.
    #[inline]
    pub fn credential_check(&self, now: Nanos, client: SocketAddr, message: &Message<'_>) -> Result<User, ErrorCode> {
        let integrity = message.value(Known::Integrity);
        if integrity.is_none_or(|value| value.len() != 20) {
            return Err(ErrorCode::Unauthenticated);
        }
        let name = message.value(Known::Username);
        if name.is_none() && !message.has(Known::UserHash) {
            return Err(ErrorCode::BadRequest);
        }
        let (Some(realm), Some(nonce)) = (message.value(Known::Realm), message.value(Known::Nonce)) else {
            return Err(ErrorCode::BadRequest);
        };
        let unix_s = self.clock.unix_s(now);
        let user = self
            .credentials
            .authenticate(name.unwrap_or(&[]), &self.config.realm, unix_s, |key| message.integrity_is_right(key));
        let Some(user) = user.filter(|_| realm == self.config.realm.as_bytes()) else {
            return Err(ErrorCode::Unauthenticated);
        };
        if self.nonces.is_fresh(nonce, unix_s, client) { Ok(user) } else { Err(ErrorCode::StaleNonce) }
    }
}
