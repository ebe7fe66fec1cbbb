//! Realms after the default one.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use tt_turn::config::REALMS_MAX;
use tt_turn::shared::RealmQuotas;

use super::{REALM_CHARACTERS_MAX, TurnConfig};
use crate::credentials::{
    AuthSecret, ExternalPeers, ExternalUsers, User, Users, auth_secrets_in, opaque_string, read_users,
};
use crate::section::{KeySources, RealmSection, TurnSection};

/// A realm in addition to the default one.
#[derive(Clone, Debug, Default)]
pub struct Realm {
    /// Its name, different from those of all others.
    pub name: String,
    /// Addresses of listeners that serve this realm only.
    pub listen: Vec<SocketAddr>,
    /// Values of ORIGIN that select it at the other listeners.
    pub origins: Vec<String>,
    /// Static users.
    pub users: Users,
    /// Secrets of time-limited credentials; each of them is valid.
    pub auth_secrets: Vec<AuthSecret>,
    /// Limits of the realm and of its users.
    pub quotas: RealmQuotas,
    /// Peer rules from outside the configuration for its users.
    pub external_peers: Arc<ExternalPeers>,
}

impl Realm {
    /// Reads the files with users and secrets.
    fn read(section: &RealmSection) -> anyhow::Result<Self> {
        let mut realm = Self {
            name: section.name.clone(),
            listen: section.listen.clone(),
            origins: section.origins.clone(),
            quotas: section.quotas(),
            ..Self::default()
        };
        for user in &section.user {
            realm.users.push(User::parse(user).context("user")?);
        }
        for path in &section.user_file {
            read_users(path, &mut realm.users).context("user_file")?;
        }
        for path in &section.auth_secret_file {
            realm.auth_secrets.extend(auth_secrets_in(path).context("auth_secret_file")?);
        }
        Ok(realm)
    }

    fn check(&self, config: &TurnConfig) -> anyhow::Result<()> {
        check_name(&self.name).context("name")?;
        ensure!(
            !self.listen.is_empty() || !self.origins.is_empty() || config.external_users == ExternalUsers::Provided,
            "it needs `listen`, `origins` or a `database` with origins: no request selects it"
        );
        let listeners = || config.listen.iter().chain(&config.listen_tcp).chain(&config.listen_tls);
        for addr in &self.listen {
            ensure!(listeners().any(|listener| listener == addr), "listen: {addr} is no address of turn.listen");
        }
        ensure!(self.origins.iter().all(|origin| !origin.is_empty()), "origins: an origin must not be empty");
        Ok(())
    }
}

/// Checks the name of a realm.
///
/// # Errors
/// The name is empty or too long, or has characters that a realm must not have.
pub fn check_name(name: &str) -> anyhow::Result<()> {
    ensure!(
        (1..=REALM_CHARACTERS_MAX).contains(&name.chars().count()),
        "must have from 1 to {REALM_CHARACTERS_MAX} characters"
    );
    ensure!(
        opaque_string(name).is_some_and(|prepared| *prepared == name) && !name.contains(['"', '\\']),
        "must not contain control characters, quotes, backslashes or decomposed characters"
    );
    Ok(())
}

impl TurnConfig {
    /// Reads the realms of a section.
    pub(super) fn read_realms(&mut self, section: &TurnSection) -> anyhow::Result<()> {
        for (index, realm) in section.realms.iter().enumerate() {
            let named = || format!("{} {:?}", section.key_sources.name("realms", index), realm.name);
            self.realms.push(Realm::read(realm).with_context(named)?);
        }
        Ok(())
    }

    /// Checks each realm, and that no two of them have a name, an address or an origin in common.
    pub(super) fn check_realms(&self, keys: &KeySources) -> anyhow::Result<()> {
        ensure!(self.realms.len() <= REALMS_MAX, "{}: more than {REALMS_MAX} realms", keys.name("realms", REALMS_MAX));
        for (index, realm) in self.realms.iter().enumerate() {
            let named = || format!("{} {:?}", keys.name("realms", index), realm.name);
            realm.check(self).with_context(named)?;
            let before = &self.realms[..index];
            let is_taken = realm.name == self.realm || before.iter().any(|other| other.name == realm.name);
            ensure!(!is_taken, "{}: another realm has this name", named());
            for addr in &realm.listen {
                let is_taken = before.iter().any(|other| other.listen.contains(addr));
                ensure!(!is_taken, "{}: listen: {addr} serves another realm", named());
            }
            for origin in &realm.origins {
                let has = |other: &Realm| other.origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
                ensure!(!before.iter().any(has), "{}: origins: {origin} selects another realm", named());
            }
        }
        Ok(())
    }

    /// Returns the names of all realms, the default one first.
    #[must_use]
    pub fn realm_names(&self) -> Vec<String> {
        std::iter::once(&self.realm).chain(self.realms.iter().map(|realm| &realm.name)).cloned().collect()
    }

    /// Returns the limits of the realms.
    #[must_use]
    pub fn realm_quotas(&self) -> Vec<RealmQuotas> {
        self.realms.iter().map(|realm| realm.quotas).collect()
    }
}
