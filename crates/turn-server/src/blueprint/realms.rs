//! Users of the realms after the default one.

use anyhow::ensure;
use tt_turn::config::{REALMS_MAX, RealmConfig, RealmId};
use tt_turn::credential::{USER_PARTS, UserPart, UserSecret};
use tt_turn::shared::{RealmQuotas, Shared};
use turn_config::{Realm, TurnConfig, Users};

use crate::listeners::Listening;

use super::Blueprint;
use super::external::Origins;

/// The users of each realm after the default one, by its index, and its name.
pub(super) struct RealmUsers(Vec<(String, Users)>);

impl RealmUsers {
    /// Takes the users from a configuration.
    pub(super) fn take(config: &mut TurnConfig) -> Self {
        let of = |realm: &mut Realm| (realm.name.clone(), std::mem::take(&mut realm.users));
        Self(config.realms.iter_mut().map(of).collect())
    }

    /// Makes all parts of all realms, with the users from outside.
    pub(super) fn parts<'a>(
        &'a self,
        origins: Option<&'a Origins>,
        seeds: (&'a Shared, &'a [u8; 32]),
    ) -> impl Iterator<Item = UserPart> + 'a {
        self.0.iter().enumerate().flat_map(move |(index, (name, users))| {
            let external = origins.into_iter().flat_map(move |origins| origins.external_users_of(name));
            parts_of((index, name), users.iter().chain(external), seeds)
        })
    }
}

/// Makes all parts of the realm with this index and name.
pub(super) fn parts_of<'a>(
    (index, name): (usize, &'a str),
    users: impl Iterator<Item = (&'a [u8], UserSecret<'a>)> + Clone + 'a,
    seeds: (&'a Shared, &'a [u8; 32]),
) -> impl Iterator<Item = UserPart> + 'a {
    let realm = (RealmId::further(index), name);
    (0..USER_PARTS).map(move |number| UserPart::of_realm(realm, number, users.clone(), seeds))
}

impl Blueprint {
    /// Returns the realms for engines, with the addresses that the listeners have been bound to.
    pub(super) fn engine_realms(config: &TurnConfig, listening: &Listening) -> Vec<RealmConfig> {
        let of = |realm: &Realm| {
            let listeners = listening.bound(&realm.listen);
            RealmConfig { name: realm.name.clone(), origins: realm.origins.clone(), listeners }
        };
        config.realms.iter().map(of).collect()
    }

    /// Puts the realms of a new configuration in the order of their numbers: those that this server has, then new ones. A
    /// realm that the configuration does not name any more keeps its number; no request selects it, and it has no users.
    ///
    /// # Errors
    /// Too many realms since the start.
    pub(super) fn order_realms(&self, config: &mut TurnConfig) -> anyhow::Result<()> {
        let mut named = std::mem::take(&mut config.realms);
        for kept in &self.in_force.load().config.realms {
            let next = named.iter().position(|next| next.name == kept.name).map(|index| named.remove(index));
            let quotas = RealmQuotas::of_default(&config.quotas);
            let gone = || Realm { name: kept.name.clone(), quotas, ..Realm::default() };
            config.realms.push(next.unwrap_or_else(gone));
        }
        config.realms.append(&mut named);
        ensure!(config.realms.len() <= REALMS_MAX, "turn.realms: more than {REALMS_MAX} realms since the start");
        Ok(())
    }
}
