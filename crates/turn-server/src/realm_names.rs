//! The names of realms, for records and logs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tt_turn::config::RealmId;
use turn_config::TurnConfig;

/// The names of all realms by their number, for every thread that writes them.
#[derive(Clone, Debug)]
pub(crate) struct RealmNames(Arc<ArcSwap<Vec<String>>>);

impl RealmNames {
    pub(crate) fn new(config: &TurnConfig) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(config.realm_names())))
    }

    /// Takes the names of `config`, in which those of before have their place.
    pub(crate) fn replace(&self, config: &TurnConfig) {
        self.0.store(Arc::new(config.realm_names()));
    }

    /// Returns the name of a realm.
    pub(crate) fn of(&self, realm: RealmId) -> String {
        self.0.load().get(realm.index().map_or(0, |index| index + 1)).cloned().unwrap_or_default()
    }
}
