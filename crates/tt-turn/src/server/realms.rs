//! The realm of a request: the one that it selects, and the one that its credentials name.

use core::net::SocketAddr;

use super::{Request, Server};
use crate::message::{Known, Message, attribute};
use crate::realm::RealmId;

impl Server {
    /// Returns the name of a realm.
    #[inline]
    pub(super) fn realm_name(&self, realm: RealmId) -> &str {
        let further = realm.index().and_then(|index| self.config.realms.get(index));
        further.map_or(&self.config.realm, |further| &further.name)
    }

    /// Returns the realm whose name a 401 contains: that of the listener, or else of the first known ORIGIN, or else the
    /// default one.
    pub(super) fn selected_realm(&self, request: &Request<'_, '_>) -> RealmId {
        if self.config.realms.is_empty() {
            return RealmId::DEFAULT;
        }
        self.listener_realm(*request.listener).or_else(|| self.origin_realm(&request.message)).unwrap_or_default()
    }

    /// Returns the realm that a listener serves alone.
    fn listener_realm(&self, server: SocketAddr) -> Option<RealmId> {
        self.config.realms.iter().position(|realm| realm.listens_on(server)).map(RealmId::further)
    }

    /// Returns the realm of the first ORIGIN that one has.
    fn origin_realm(&self, message: &Message<'_>) -> Option<RealmId> {
        let origins = message.attributes().filter(|(kind, _)| *kind == attribute::ORIGIN);
        origins.map(|(_, origin)| origin).find_map(|origin| {
            let is_listed = |listed: &str| listed.as_bytes().eq_ignore_ascii_case(origin);
            let has = |origins: &[alloc::string::String]| origins.iter().any(|listed| is_listed(listed));
            self.config.realms.iter().position(|realm| has(&realm.origins)).map(RealmId::further)
        })
    }

    /// Returns the realm with this name, if users of it may log in at the listener.
    ///
    /// A listener with a realm serves that one alone; a realm without origins is served there alone.
    #[inline]
    pub(super) fn realm_at(&self, name: &[u8], server: Option<SocketAddr>) -> Option<RealmId> {
        let further = &self.config.realms;
        if further.is_empty() {
            return (name == self.config.realm.as_bytes()).then_some(RealmId::DEFAULT);
        }
        let realm = self.realm_called(name)?;
        match server.map(|server| self.listener_realm(server)) {
            None => Some(realm),
            Some(Some(alone)) => (alone == realm).then_some(realm),
            Some(None) => {
                let has_origins = |index: usize| further.get(index).is_some_and(|realm| !realm.origins.is_empty());
                realm.index().is_none_or(has_origins).then_some(realm)
            }
        }
    }

    fn realm_called(&self, name: &[u8]) -> Option<RealmId> {
        if name == self.config.realm.as_bytes() {
            return Some(RealmId::DEFAULT);
        }
        self.config.realms.iter().position(|realm| realm.name.as_bytes() == name).map(RealmId::further)
    }

    /// Returns whether the realm of an allocation had this name before.
    #[cold]
    pub(super) fn had_name(&self, realm: RealmId, name: &[u8]) -> bool {
        realm == RealmId::DEFAULT && self.former_realms.iter().any(|former| former.as_bytes() == name)
    }

    /// Returns the realm that a message names, or else the default one.
    pub(super) fn named_realm(&self, message: &Message<'_>) -> RealmId {
        message.value(Known::Realm).and_then(|name| self.realm_called(name)).unwrap_or_default()
    }
}
