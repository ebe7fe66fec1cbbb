//! Users and shared secrets of every realm.

use alloc::vec::Vec;

use super::directory::Users;
use super::{Credentials, Secrets, UserPart};
use crate::integrity::HmacSha1;
use crate::realm::RealmId;

/// Users and shared secrets of one realm.
#[derive(Clone, Default)]
pub(super) struct RealmSecrets {
    pub(super) users: Users,
    pub(super) auth_secrets: Vec<HmacSha1>,
}

/// Credentials of all realms of one worker.
#[derive(Debug)]
pub(crate) struct RealmCredentials {
    default: Credentials,
    further: Vec<Credentials>,
}

impl RealmCredentials {
    /// Prepares `secrets` for look-ups in the default realm and `further` others. The keys of about `names_kept`
    /// time-limited names of all realms are cached.
    pub(crate) fn new(secrets: &Secrets, further: usize, names_seed: u64, names_kept: u32) -> Self {
        let names_kept = names_kept / (further as u32 + 1);
        let of = |realm| Credentials::new(secrets, realm, names_seed, names_kept);
        Self { default: of(RealmId::DEFAULT), further: (0..further).map(|index| of(RealmId::further(index))).collect() }
    }

    /// Adds realms up to `further` ones beyond the default one.
    pub(crate) fn extend(&mut self, secrets: &Secrets, further: usize, names_seed: u64, names_kept: u32) {
        let names_kept = names_kept / (further as u32 + 1);
        let new = self.further.len()..further;
        let of = |index| Credentials::new(secrets, RealmId::further(index), names_seed, names_kept);
        self.further.extend(new.map(of));
    }

    #[inline]
    pub(crate) fn of(&self, realm: RealmId) -> &Credentials {
        realm.index().and_then(|index| self.further.get(index)).unwrap_or(&self.default)
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, realm: RealmId) -> &mut Credentials {
        realm.index().and_then(|index| self.further.get_mut(index)).unwrap_or(&mut self.default)
    }

    fn all(&self) -> impl Iterator<Item = &Credentials> {
        core::iter::once(&self.default).chain(&self.further)
    }

    /// Puts the users of `part` in place of those that were in it, which it returns.
    pub(crate) fn replace_users(&mut self, part: &UserPart) -> UserPart {
        self.of_mut(part.realm).replace_users(part)
    }

    /// Returns whether USERHASH can be resolved in every realm: a nonce is for all of them.
    pub(crate) fn understands_hashes(&self) -> bool {
        self.all().all(Credentials::understands_hashes)
    }

    /// Returns the number of keys derived from shared secrets.
    pub(crate) fn derivations(&self) -> u64 {
        self.all().map(Credentials::derivations).sum()
    }
}
