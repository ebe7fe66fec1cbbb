//! How what was sent arrives: routes, NATs and links.

use std::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use super::event::Event;
use super::host::{Done, Host};
use super::link::carry;
use super::model::RelayPlace;
use super::planted::Planted;
use super::stream::Way;
use super::topology::relay_ip;
use super::world::{CAPTURED_MAX, World};

impl World<'_> {
    /// What the engine did goes its way.
    pub(super) fn route(&mut self, done: Vec<Done>) {
        for done in done {
            match done {
                Done::Reply { to, bytes } => self.send_to_client(to, bytes),
                Done::ToClient { client, bytes, .. } => {
                    self.tally.relayed += 1;
                    self.send_to_client(client, bytes);
                }
                Done::ToPeer { relay, peer, payload } => {
                    self.tally.relayed += 1;
                    self.send_to_peer(relay, peer, payload);
                }
                Done::HandOver(_) | Done::Drop(_) => {}
            }
        }
    }

    fn sending_fails(&mut self) -> bool {
        self.send_errors > 0 && self.peer_link.chance(self.send_errors, 100)
    }

    fn send_to_client(&mut self, flow: FiveTuple, bytes: Vec<u8>) {
        let Some(client) = self.mappings.get(&flow.client).copied() else { return };
        let is_lost = self.is_healed && client == 0 && self.host.planted == Some(Planted::LosesAnswers);
        if !is_lost && !self.sending_fails() {
            self.travel(client, Way::ToClient, bytes, |bytes| Event::AtClient { flow, bytes });
        }
    }

    /// A client's datagram sets out.
    pub(super) fn send_to_server(&mut self, client: usize, bytes: Vec<u8>) {
        let flow = self.clients[client].flow();
        self.captured.push_back((flow, bytes.clone()));
        if self.captured.len() > CAPTURED_MAX {
            self.captured.pop_front();
        }
        let bytes = self.append(client, bytes);
        self.travel(client, Way::ToServer, bytes, |bytes| Event::AtServer { flow, bytes });
    }

    /// Over a client's link.
    fn travel(&mut self, client: usize, way: Way, bytes: Vec<u8>, event: impl Fn(Vec<u8>) -> Event) {
        let weather = super::deeds::worse(&self.weather, &self.weather_of[client]);
        if self.clients[client].is_stream() {
            match weather.is_parted {
                true => self.cut(client),
                false => self.write(client, way, &bytes),
            }
            return;
        }
        for (delay, bytes) in carry(&mut self.links[client], &weather, bytes).into_iter().flatten() {
            self.later(delay, event(bytes));
        }
    }

    /// A stream breaks at both ends.
    pub(super) fn cut(&mut self, client: usize) {
        let flow = self.clients[client].flow();
        self.clients[client].is_cut = true;
        self.streams[client].restart(self.now);
        self.later(Nanos(1), Event::Closed { flow });
    }

    fn send_to_peer(&mut self, relay: RelayPlace, peer: SocketAddr, payload: Vec<u8>) {
        if self.sending_fails() {
            return;
        }
        let from = Host::relay_addr(&self.script.topology, relay);
        for (delay, bytes) in carry(&mut self.peer_link, &self.weather_of_peers, payload).into_iter().flatten() {
            if peer.ip() == relay_ip(true) || peer.ip() == relay_ip(false) {
                if let Some(relay) = self.host.relay_on(peer) {
                    self.later(Nanos(50_000), Event::AtRelay { relay, from, bytes });
                }
            } else {
                self.later(delay, Event::AtPeer { peer, from, bytes });
            }
        }
    }

    /// A peer's datagram sets out for a relay.
    pub(super) fn send_to_relay(&mut self, from: SocketAddr, relayed: SocketAddr, bytes: Vec<u8>) {
        let Some(relay) = self.host.relay_on(relayed).filter(|_| from.is_ipv4() == relayed.is_ipv4()) else { return };
        for (delay, bytes) in carry(&mut self.peer_link, &self.weather_of_peers, bytes).into_iter().flatten() {
            self.later(delay, Event::AtRelay { relay, from, bytes });
        }
    }
}
