//! Users of the realms after the default one.

use std::net::SocketAddr;

use tt_turn::config::{RealmConfig, RealmId};
use tt_turn::credential::{USER_PARTS, UserPart};
use tt_turn::shared::Shared;

use crate::config::{Realm, TurnConfig};
use crate::credentials::Users;
use crate::listeners::StreamAddr;

use super::Blueprint;
use super::reload::passwords;

/// The users of each realm after the default one, by its index, and its name.
pub(super) struct RealmUsers(Vec<(String, Users)>);

impl RealmUsers {
    /// Takes the users from a configuration.
    pub(super) fn take(config: &mut TurnConfig) -> Self {
        let of = |realm: &mut Realm| (realm.name.clone(), std::mem::take(&mut realm.users));
        Self(config.realms.iter_mut().map(of).collect())
    }

    /// Makes all parts of all realms.
    pub(super) fn parts(&self, seeds: (&Shared, &[u8; 32])) -> impl Iterator<Item = UserPart> {
        self.0.iter().enumerate().flat_map(move |(index, (name, users))| {
            let realm = (RealmId::further(index), name.as_str());
            (0..USER_PARTS).map(move |number| UserPart::of_realm(realm, number, passwords(users), seeds))
        })
    }
}

/// Returns the realms for engines, with the addresses that the listeners have been bound to.
pub(super) fn engine_realms(config: &TurnConfig, udp: &[SocketAddr], streams: &[StreamAddr]) -> Vec<RealmConfig> {
    let on_udp_ports = if config.tcp_on_udp_ports { &config.listen[..] } else { &[] };
    let configured_streams = on_udp_ports.iter().chain(&config.listen_tcp).chain(&config.listen_tls);
    let bound: Vec<(SocketAddr, SocketAddr)> = config
        .listen
        .iter()
        .copied()
        .zip(udp.iter().copied())
        .chain(configured_streams.copied().zip(streams.iter().map(|stream| stream.addr)))
        .collect();
    let of = |realm: &Realm| {
        let own = bound.iter().filter(|(configured, _)| realm.listen.contains(configured));
        let mut listeners: Vec<_> = own.map(|(_, bound)| *bound).collect();
        listeners.dedup();
        RealmConfig { name: realm.name.clone(), origins: realm.origins.clone(), listeners }
    };
    config.realms.iter().map(of).collect()
}

impl Blueprint {
    /// Gives a new configuration the realms that this server has, with the users and secrets of those that it names. A
    /// realm that it does not name has no users any more.
    pub(super) fn keep_realms(&self, config: &mut TurnConfig) {
        let mut named = std::mem::take(&mut config.realms);
        config.realms = self
            .in_force
            .load()
            .config
            .realms
            .iter()
            .map(|kept| {
                let next = named.iter_mut().find(|next| next.name == kept.name).map(std::mem::take);
                let Realm { users, auth_secrets, .. } = next.unwrap_or_default();
                Realm { users, auth_secrets, ..kept.clone() }
            })
            .collect();
    }
}
