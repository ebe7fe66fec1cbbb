//! Users, secrets and peers by their origin: the configuration, and outside of it.

use std::collections::HashSet;
use std::hash::RandomState;
use std::sync::{Arc, PoisonError};

use tt_turn::config::{REALMS_MAX, RealmId, RemovedUsers};
use tt_turn::credential::{USER_PARTS, UserPart, UserSecret};
use tt_turn::shared::{Quotas, RealmQuotas, Shared};
use turn_config::{ExternalCredentials, ExternalUsers, KeyedUsers, Realm, TurnConfig, check_name};

use crate::commands::WorkerHandle;

use super::realms::parts_of;
use super::reload::InForce;
use super::{Blueprint, random};

/// Users, secrets and peers by their origin.
#[derive(Debug)]
pub(super) struct Origins {
    pub(super) external_users: ExternalUsers,
    /// The users of the configuration, if there are others. Only their keys are kept (RFC 8656 section 6).
    own_users: KeyedUsers,
    /// The number of secrets of the configuration, which come first.
    own_secrets: usize,
    own_quotas: Quotas,
    own_realms: Vec<OwnRealm>,
    external: ExternalCredentials,
    digests: [u64; USER_PARTS],
    hasher: RandomState,
}

/// What the configuration has of a realm after the default one.
#[derive(Debug)]
struct OwnRealm {
    name: String,
    users: KeyedUsers,
    /// The number of secrets, which come first.
    secrets: usize,
    origins: Vec<String>,
    quotas: RealmQuotas,
}

impl OwnRealm {
    fn new(realm: &Realm) -> Self {
        Self {
            name: realm.name.clone(),
            users: KeyedUsers::of(&realm.users, &realm.name),
            secrets: realm.auth_secrets.len(),
            origins: realm.origins.clone(),
            quotas: realm.quotas,
        }
    }
}

impl Origins {
    /// Returns the origins of a configuration that has its own users only.
    pub(super) fn new(config: &TurnConfig) -> Self {
        Self {
            external_users: config.external_users,
            own_users: match config.external_users {
                ExternalUsers::None => KeyedUsers::default(),
                ExternalUsers::Provided => KeyedUsers::of(&config.users, &config.realm),
            },
            own_secrets: config.auth_secrets.len(),
            own_quotas: config.quotas,
            own_realms: match config.external_users {
                ExternalUsers::None => Vec::new(),
                ExternalUsers::Provided => config.realms.iter().map(OwnRealm::new).collect(),
            },
            external: ExternalCredentials::default(),
            digests: [0; USER_PARTS],
            hasher: RandomState::new(),
        }
    }

    /// Takes what `other` has of the configuration.
    pub(super) fn take_own(&mut self, other: Self) {
        let Self { own_users, own_secrets, own_quotas, own_realms, .. } = other;
        (self.own_users, self.own_secrets, self.own_realms) = (own_users, own_secrets, own_realms);
        self.own_quotas = own_quotas;
    }

    /// Adds the secrets from outside to those of a configuration, and sets the peers and limits from outside.
    pub(super) fn add_external(&self, config: &mut TurnConfig) {
        config.auth_secrets.extend(self.external.auth_secrets.iter().cloned());
        config.external_peers = Arc::clone(&self.external.peers);
        self.external.limits.set(&mut config.quotas);
        self.add_external_realms(config);
    }

    /// Does the same for the realms after the default one. An origin that the configuration gives to a realm stays there.
    fn add_external_realms(&self, config: &mut TurnConfig) {
        let taken: Vec<String> = config.realms.iter().flat_map(|realm| realm.origins.iter().cloned()).collect();
        let is_free = |origin: &&String| !taken.iter().any(|taken| taken.eq_ignore_ascii_case(origin));
        for realm in &mut config.realms {
            let external = self.external.realm(&realm.name);
            realm.external_peers =
                Arc::clone(external.map_or(&self.external.peers_of_others, |external| &external.peers));
            let Some(external) = external else { continue };
            realm.auth_secrets.extend(external.auth_secrets.iter().cloned());
            realm.origins.extend(external.origins.iter().filter(is_free).cloned());
            external.limits.set_of_realm(&mut realm.quotas);
        }
    }

    /// Returns the name and the key of each user from outside.
    pub(super) fn external_users(&self) -> impl Iterator<Item = (&[u8], UserSecret<'_>)> + Clone {
        self.external.users.iter()
    }

    /// Returns the same of the realm of this name.
    pub(super) fn external_users_of<'a>(
        &'a self,
        realm: &str,
    ) -> impl Iterator<Item = (&'a [u8], UserSecret<'a>)> + Clone + use<'a> {
        self.external.realm(realm).into_iter().flat_map(|realm| realm.users.iter())
    }

    /// Makes all parts of the users of all realms after the default one.
    fn parts_of_realms<'a>(
        &'a self,
        realms: &'a [Realm],
        seeds: (&'a Shared, &'a [u8; 32]),
    ) -> impl Iterator<Item = UserPart> + 'a {
        realms.iter().enumerate().flat_map(move |(index, realm)| {
            let own = self.own_realms.iter().find(|own| own.name == realm.name);
            let own = own.into_iter().flat_map(|own| own.users.iter());
            parts_of((index, &realm.name), own.chain(self.external_users_of(&realm.name)), seeds)
        })
    }
}

impl Blueprint {
    /// Replaces the users, secrets and peers from outside in every worker or in none, and returns whether they differ
    /// from the ones before.
    ///
    /// # Errors
    /// A system call failed; the old ones stay in force.
    pub(crate) fn replace_external(
        &self,
        external: ExternalCredentials,
        handles: &[WorkerHandle],
    ) -> anyhow::Result<bool> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.external_users == ExternalUsers::None {
            return Ok(false);
        }
        let digests = external.users.digests(&origins.hasher);
        let changed = (0..USER_PARTS).filter(|number| digests[*number] != origins.digests[*number]);
        let changed: Vec<usize> = changed.collect();
        let others_differ = !external.differ_in_users_only(&origins.external);
        let realms_differ = external.realms != origins.external.realms;
        if changed.is_empty() && !others_differ {
            return Ok(false);
        }
        let in_force = self.in_force.load_full();
        let (realm, decoy_seed) = (in_force.config.realm.clone(), random()?);
        let ends_allocations = in_force.config.removed_users == RemovedUsers::EndAllocations;
        let is_whole = others_differ || ends_allocations;
        let before = std::mem::replace(&mut origins.external, external);
        let next = origins.next(&in_force);
        let config = Arc::clone(&next.config);
        let prepared = match is_whole.then(|| self.prepare(next, handles.len())).transpose() {
            Ok(prepared) => prepared,
            Err(error) => {
                origins.external = before;
                return Err(error);
            }
        };
        origins.digests = digests;
        drop(before);
        let parts = changed.into_iter().map(|number| {
            let all = origins.own_users.iter().chain(origins.external_users());
            UserPart::new(number, all, &realm, (&self.shared, &decoy_seed))
        });
        let realms = if realms_differ { &config.realms[..] } else { &[] };
        let parts = parts.chain(origins.parts_of_realms(realms, (&self.shared, &decoy_seed)));
        match prepared {
            Some(prepared) => self.replace(prepared, parts, handles),
            None => self.replace_users(parts, handles),
        }
        Ok(true)
    }
}

impl Origins {
    /// Adds the realms that are only outside of the configuration. Those of before keep their number.
    fn add_realms(&self, config: &mut TurnConfig) {
        let mut known: HashSet<String> = config.realm_names().into_iter().collect();
        let mut left = 0;
        for external in self.external.realms.iter().filter(|external| check_name(&external.name).is_ok()) {
            if !known.insert(external.name.clone()) {
                continue;
            }
            if config.realms.len() < REALMS_MAX {
                config.realms.push(Realm { name: external.name.clone(), ..Realm::default() });
            } else {
                left += 1;
            }
        }
        if left > 0 {
            tracing::warn!(realms = left, "realms are not served: there were {REALMS_MAX} since the start");
        }
    }

    /// Returns what is in force with the secrets and peers of these origins, and the users as before.
    fn next(&self, in_force: &InForce) -> InForce {
        let mut secrets = in_force.secrets.clone();
        secrets.truncate_auth_secrets(RealmId::DEFAULT, self.own_secrets);
        for secret in &self.external.auth_secrets {
            secrets.add_auth_secret(secret.0.as_bytes());
        }
        let mut config = TurnConfig { quotas: self.own_quotas, ..TurnConfig::clone(&in_force.config) };
        self.add_realms(&mut config);
        for (index, realm) in config.realms.iter_mut().enumerate() {
            let own = self.own_realms.iter().find(|own| own.name == realm.name);
            realm.origins = own.map_or_else(Vec::new, |own| own.origins.clone());
            realm.quotas = own.map_or_else(|| RealmQuotas::of_default(&self.own_quotas), |own| own.quotas);
            secrets.truncate_auth_secrets(RealmId::further(index), own.map_or(0, |own| own.secrets));
            for secret in self.external.realm(&realm.name).into_iter().flat_map(|realm| &realm.auth_secrets) {
                secrets.add_auth_secret_of(RealmId::further(index), secret.0.as_bytes());
            }
        }
        self.add_external(&mut config);
        config.auth_secrets.clear();
        config.realms.iter_mut().for_each(|realm| realm.auth_secrets.clear());
        InForce { config: Arc::new(config), secrets }
    }
}
