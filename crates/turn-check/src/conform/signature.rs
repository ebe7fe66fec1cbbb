//! Credentials of a message, each part of which a check may change.

use tt_turn::codec::{Class, Emitter, HmacSha1, HmacSha256, Method};
use tt_turn::codec::{TransactionId, attribute};

use super::check::Unmet;
use crate::client::{Attribute, transaction_id, write};

/// Longest message of a probe.
const MESSAGE_MAX: usize = 4_096;

/// Credentials of a message, and attributes behind them.
#[derive(Clone, Default)]
pub(super) struct Signature {
    pub(super) name: Option<Vec<u8>>,
    pub(super) user_hash: Option<[u8; 32]>,
    pub(super) realm: Option<Vec<u8>>,
    pub(super) nonce: Option<Vec<u8>>,
    /// PASSWORD-ALGORITHMS.
    pub(super) algorithms: Option<Vec<u8>>,
    /// PASSWORD-ALGORITHM.
    pub(super) algorithm: Option<Vec<u8>>,
    pub(super) sha1: Option<HmacSha1>,
    pub(super) sha256: Option<HmacSha256>,
    /// Attributes behind MESSAGE-INTEGRITY.
    pub(super) behind: Vec<(u16, Vec<u8>)>,
    pub(super) has_fingerprint: bool,
}

impl Signature {
    fn write(&self, emitter: &mut Emitter<'_>) {
        let values = [
            (attribute::USERNAME, self.name.as_deref()),
            (attribute::USERHASH, self.user_hash.as_ref().map(|hash| &hash[..])),
            (attribute::REALM, self.realm.as_deref()),
            (attribute::NONCE, self.nonce.as_deref()),
            (attribute::PASSWORD_ALGORITHMS, self.algorithms.as_deref()),
            (attribute::PASSWORD_ALGORITHM, self.algorithm.as_deref()),
        ];
        for (kind, value) in values {
            if let Some(value) = value {
                emitter.attribute(kind, value);
            }
        }
        if let Some(key) = &self.sha1 {
            emitter.message_integrity(key);
        }
        if let Some(key) = &self.sha256 {
            emitter.message_integrity_sha256(key);
        }
        for (kind, value) in &self.behind {
            emitter.attribute(*kind, value);
        }
        if self.has_fingerprint {
            emitter.fingerprint();
        }
    }
}

/// Returns a message with new transaction id.
pub(super) fn compose(
    method: Method,
    class: Class,
    attributes: &[Attribute<'_>],
    signature: &Signature,
) -> Result<Vec<u8>, Unmet> {
    compose_with((method, class, transaction_id()?), attributes, signature)
}

/// Returns a message with a given transaction id.
pub(super) fn compose_with(
    (method, class, id): (Method, Class, TransactionId),
    attributes: &[Attribute<'_>],
    signature: &Signature,
) -> Result<Vec<u8>, Unmet> {
    let mut out = vec![0; MESSAGE_MAX];
    let mut emitter = Emitter::begin(&mut out, method, class, id);
    write(&mut emitter, attributes);
    signature.write(&mut emitter);
    let length = emitter.finish().ok_or_else(|| Unmet::not_judged("the message is too long"))?.len();
    out.truncate(length);
    Ok(out)
}
