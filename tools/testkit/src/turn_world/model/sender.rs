//! Whose request it is, and whether the credential is still good.

use std::borrow::Cow;

use tt_model::Nanos;

use super::{Alive, Flow, Model, alive};
use crate::turn_world::credentials::{Keys, parts};
use crate::turn_world::wire::{self, Algorithm, Reading};

/// Who a request says that it is from.
pub(in crate::turn_world) struct Sender<'a> {
    pub(in crate::turn_world) user: usize,
    pub(in crate::turn_world) name: &'a [u8],
    keys: Cow<'a, Keys>,
    /// Unix time at which a name ends.
    expiry_s: Option<u64>,
    message: &'a Reading<'a>,
}

impl Sender<'_> {
    pub(super) fn has_signed(&self, algorithm: Algorithm) -> bool {
        self.message.is_signed_by(self.keys.of(algorithm))
    }
}

impl Model {
    /// The user with the name in `message`, or behind its hash, and the keys that belong to that name.
    pub(in crate::turn_world) fn sender<'a>(&'a self, message: &'a Reading<'a>) -> Option<Sender<'a>> {
        let of = |name: &[u8]| self.users.iter().position(|user| user.credential.name == name);
        let (user, limited) = match message.get(wire::USERNAME) {
            Some(name) => match of(name).filter(|user| !self.rules.is_limited(*user)) {
                Some(user) => (user, None),
                None => {
                    let (expiry_s, id) = parts(name)?;
                    (of(id).filter(|user| self.rules.is_limited(*user))?, Some((expiry_s, name)))
                }
            },
            // The names that a secret may be used with are not known, so that no hash of them is understood.
            None if self.rules.is_limited(self.users.len() - 1) => return None,
            None => {
                let hash = message.get(wire::USERHASH)?;
                (self.users.iter().position(|user| hash == user.hash)?, None)
            }
        };
        let known = &self.users[user].credential;
        let keys = limited.map_or(Cow::Borrowed(&known.keys), |(_, name)| Cow::Owned(Keys::limited(name)));
        let name = limited.map_or(&known.name[..], |(_, name)| name);
        Some(Sender { user, name, keys, expiry_s: limited.map(|(expiry_s, _)| expiry_s), message })
    }

    /// Whether a name has not ended: it does not before the allocation that its user has on the flow, unless the
    /// operator wants it to.
    pub(super) fn is_valid(&self, now: Nanos, flow: &Flow, sender: &Sender<'_>) -> Alive {
        let Some(expiry_s) = sender.expiry_s else { return Alive::Yes };
        // Clocks are read in whole seconds.
        let second = i128::from(Nanos::PER_SECOND);
        let left_ns = i128::from(expiry_s) * second - i128::from(self.wall_ns(now));
        let lasts = match left_ns {
            left_ns if left_ns > 2 * second => Alive::Yes,
            left_ns if left_ns < -2 * second => Alive::No,
            _ => Alive::Maybe,
        };
        let claim = self.claims.get(flow).filter(|claim| claim.user == sender.user && !self.rules.strict_expiry);
        lasts.max(claim.map_or(Alive::No, |claim| alive(claim.expires(), now)))
    }

    /// Whether a reply is signed with the key of its request's sender, by HMAC-SHA1 and by HMAC-SHA256.
    pub(in crate::turn_world) fn signatures(
        &self,
        request: &Reading<'_>,
        reply: &Reading<'_>,
        algorithm: Algorithm,
    ) -> (bool, bool) {
        let Some(sender) = self.sender(request) else { return (false, false) };
        let key = sender.keys.of(algorithm);
        (reply.has_sha1_of(key), reply.has(wire::INTEGRITY_SHA256) && reply.is_signed_by(key))
    }
}
