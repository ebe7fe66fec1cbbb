//! Policies of realms whose rules differ from those of the default realm.

use alloc::vec::Vec;

use super::{PeerPolicy, Rule};
use crate::realm::RealmId;

/// The policies of the realms after the default one that have other rules than it.
#[derive(Clone, Debug, Default)]
pub struct RealmPolicies {
    /// The place of the policy of each further realm.
    places: Vec<Option<u16>>,
    /// Each with the number of rules of those before it.
    policies: Vec<(PeerPolicy, usize)>,
}

impl RealmPolicies {
    /// Sets the policy of `realms`. Realms without one have that of the default realm, which is not set here.
    pub fn set(&mut self, realms: &[RealmId], policy: PeerPolicy) {
        let place = self.policies.len() as u16;
        for index in realms.iter().filter_map(|realm| realm.index()) {
            if self.places.len() <= index {
                self.places.resize(index + 1, None);
            }
            self.places[index] = Some(place);
        }
        let before = self.policies.last().map_or(0, |(last, before)| before + last.rules().len());
        self.policies.push((policy, before));
    }

    /// Returns the policy of a realm, unless it has that of the default realm.
    #[must_use]
    pub fn of(&self, realm: RealmId) -> Option<&PeerPolicy> {
        self.find(realm).map(|(policy, _)| policy)
    }

    /// Returns the policy of a realm, and the number of rules of those before it.
    pub(crate) fn find(&self, realm: RealmId) -> Option<&(PeerPolicy, usize)> {
        let place = *self.places.get(realm.index()?)?;
        self.policies.get(usize::from(place?))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Iterates over the rules of all policies.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> + Clone {
        self.policies.iter().flat_map(|(policy, _)| policy.rules())
    }
}
