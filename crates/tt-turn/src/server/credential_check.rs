//! The long-term credential check (RFC 8489 section 9.2.4).

use core::net::SocketAddr;

use tt_model::Nanos;

use super::icmp_in::shows_rfc8489;
use super::{Request, Server};
use crate::config::{ExpiryCheck, PasswordAlgorithms};
use crate::credential::{Answer, Expiry, KeptKey, KeyPlace, LongTermKey, Name, PasswordAlgorithm, Path, User};
use crate::error::ErrorCode;
use crate::message::{Known, Message};
use crate::nonce::{NonceCheck, offers_algorithms};
use crate::realm::RealmId;

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
        self.check(now, (client, None), message)
    }

    /// The same for a request to a listener, which may serve one realm only.
    #[inline]
    fn check(
        &mut self,
        now: Nanos,
        (client, server): (SocketAddr, Option<SocketAddr>),
        message: &Message<'_>,
    ) -> Result<User, ErrorCode> {
        let shown = self.shown(message, server)?;
        let expiry = Expiry { unix_s: self.clock.unix_s(now), exempt: None };
        let user = self.verify(&shown, expiry, message)?;
        self.check_nonce(&shown, expiry.unix_s, client, user)
    }

    /// Authenticates a request. The allocation of its flow keeps the key that made it: that key counts as long as the
    /// allocation lives, whatever became of the user since, and a time-limited name does not expire before it.
    ///
    /// # Errors
    /// As [`Server::credential_check`].
    #[inline]
    pub(super) fn authenticate(&mut self, request: &Request<'_, '_>) -> Result<User, ErrorCode> {
        let Request { now, from, listener, message, .. } = request;
        let Some(index) = request.allocation else {
            return self.check(*now, (from.client, Some(**listener)), message);
        };
        let user = self.authenticate_owner(request, index)?;
        if shows_rfc8489(message)
            && let Some(allocation) = self.allocations.get_mut(index).filter(|allocation| allocation.is_of(&user))
        {
            allocation.knows_rfc8656 = true;
        }
        Ok(user)
    }

    /// Authenticates a request on the flow of an allocation.
    #[inline]
    fn authenticate_owner(&mut self, request: &Request<'_, '_>, index: u32) -> Result<User, ErrorCode> {
        let Request { now, from, listener, message, .. } = request;
        let shown = self.shown(message, Some(**listener))?;
        let unix_s = self.clock.unix_s(*now);
        let owner = self.allocations.get(index).filter(|allocation| self.is_realm_of(allocation.realm, &shown));
        let owner = owner.map(|allocation| (allocation.realm, allocation.user, allocation.quota_key));
        if let Some((realm, id, quota_key)) =
            owner.filter(|(realm, ..)| self.matches_kept_key(index, *realm, &shown, unix_s, message))
        {
            let proof = self.kept_keys.get(index).and_then(KeptKey::nonce);
            match self.nonces.check(shown.nonce, unix_s, from.client, proof) {
                NonceCheck::Stale => return Err(ErrorCode::StaleNonce),
                NonceCheck::Proven => {}
                NonceCheck::Fresh(proof) => self.kept_keys.keep_nonce(index, proof),
            }
            return Ok(User { realm, id, quota_key, answer: shown.path.answer, key: KeyPlace::Kept(index) });
        }
        let exempt = match self.config.expiry_check {
            ExpiryCheck::AtAllocate => owner.map(|(_, id, _)| id),
            ExpiryCheck::EveryRequest => None,
        };
        let user = self.verify(&shown, Expiry { unix_s, exempt }, message)?;
        let user = self.check_nonce(&shown, unix_s, from.client, user)?;
        // Another expiry, algorithm or password of the same user: from now on the allocation keeps this one.
        if owner.is_some_and(|(realm, id, _)| (realm, id) == (user.realm, user.id))
            && let Some(key) = self.credentials.of(user.realm).kept_key(&user)
        {
            self.kept_keys.keep(index, key);
        }
        Ok(user)
    }

    /// Returns whether a message names the realm of an allocation, as it is called now or was called before.
    #[inline]
    fn is_realm_of(&self, realm: RealmId, shown: &Shown<'_>) -> bool {
        // A further realm may have the old name now. The kept key decides whose request it is.
        shown.realm == Some(realm) || self.had_name(realm, shown.realm_name)
    }

    /// Reads the credentials of a message to a listener.
    #[inline]
    fn shown<'a>(&self, message: &Message<'a>, server: Option<SocketAddr>) -> Result<Shown<'a>, ErrorCode> {
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
        Ok(Shown { name, realm: self.realm_at(realm, server), realm_name: realm, nonce, path })
    }

    /// Returns whether the credentials are those that the allocation keeps.
    #[inline]
    fn matches_kept_key(
        &self,
        index: u32,
        realm: RealmId,
        shown: &Shown<'_>,
        unix_s: u64,
        message: &Message<'_>,
    ) -> bool {
        let Some(kept) = self.kept_keys.get(index) else { return false };
        let expires = match self.config.expiry_check {
            ExpiryCheck::AtAllocate => u64::MAX,
            ExpiryCheck::EveryRequest => kept.expiry_s(),
        };
        let credentials = self.credentials.of(realm);
        expires > unix_s && credentials.matches_kept(kept, shown.name, shown.path, |key| is_authentic(message, key))
    }

    #[inline]
    fn verify(&mut self, shown: &Shown<'_>, expiry: Expiry, message: &Message<'_>) -> Result<User, ErrorCode> {
        let verify = |key: &LongTermKey| is_authentic(message, key);
        let id = shown.realm.unwrap_or_default();
        let realm = match id.index().and_then(|index| self.config.realms.get(index)) {
            Some(further) => &further.name,
            None => &self.config.realm,
        };
        let credentials = self.credentials.of_mut(id);
        let user = credentials.authenticate(shown.name, shown.path, realm, expiry, verify);
        user.filter(|_| shown.realm.is_some()).ok_or(ErrorCode::Unauthenticated)
    }

    #[inline]
    fn check_nonce(&self, shown: &Shown<'_>, unix_s: u64, client: SocketAddr, user: User) -> Result<User, ErrorCode> {
        if self.nonces.is_fresh(shown.nonce, unix_s, client) { Ok(user) } else { Err(ErrorCode::StaleNonce) }
    }

    /// Returns the key that signs the response to a request of `user`.
    #[inline]
    pub(super) fn response_key(&self, user: &User) -> Option<&LongTermKey> {
        match user.key {
            KeyPlace::Kept(index) => self.kept_keys.get(index).map(KeptKey::key),
            KeyPlace::Static(..) | KeyPlace::Derived(_) => self.credentials.of(user.realm).key_of(user),
        }
    }
}

/// The credentials in a message.
#[derive(Clone, Copy, Debug)]
struct Shown<'a> {
    name: Name<'a>,
    /// The realm that it names, if the listener serves it.
    realm: Option<RealmId>,
    realm_name: &'a [u8],
    nonce: &'a [u8],
    path: Path,
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
