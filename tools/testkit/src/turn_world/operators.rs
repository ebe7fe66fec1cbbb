//! Actions of operators on a running server, and ICMP errors from the network.

use std::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};
use tt_turn::relay::IcmpError;

use super::event::Event;
use super::host::Host;
use super::invariants::{self, Delivery, Failure};
use super::model::{Expected, RelayPlace};
use super::world::World;
use crate::draw::Draw;

impl World<'_> {
    /// RFC 8656 section 7.2.11: no new allocation any more; what lives goes on.
    pub(super) fn drain(&mut self) {
        if self.is_up {
            self.host.drain();
            self.model.is_draining = true;
        }
    }

    /// A peer is denied while allocations live: its permissions end at once.
    pub(super) fn deny_peer(&mut self, peer: usize) -> Result<(), Failure> {
        if !self.is_up {
            return Ok(());
        }
        self.pass()?;
        let ip = self.script.topology.peers[peer].ip();
        self.model.deny(self.now, ip);
        self.host.replace_policy(self.model.peer_rules(), self.model.listeners());
        (0..self.script.topology.workers).try_for_each(|worker| self.settle(worker))
    }

    /// The host opens a listener on a peer's address and port, or closes it: permissions and channels stay, and
    /// nothing is relayed while it is open. Peers do not know of it and go on to send.
    pub(super) fn toggle_listener(&mut self, draw: &mut Draw, peer: usize) -> Result<(), Failure> {
        if !self.is_up {
            return Ok(());
        }
        self.pass()?;
        let is_foreign = |peer: &SocketAddr| self.script.topology.peers.contains(peer);
        let bound: Vec<_> = self.model.bound(self.now).into_iter().filter(|(peer, _)| is_foreign(peer)).collect();
        let peer = match bound.len() {
            0 => self.script.topology.peers[peer],
            len => bound[draw.below(len as u64) as usize].0,
        };
        self.model.toggle_listener(peer);
        self.host.replace_policy(self.model.peer_rules(), self.model.listeners());
        (0..self.script.topology.workers).try_for_each(|worker| self.settle(worker))?;
        for (_, relayed) in bound.into_iter().filter(|(bound, _)| *bound == peer).take(8) {
            self.send_to_relay(peer, relayed, b"does not know of the listener".to_vec());
        }
        Ok(())
    }

    /// Nonces of the key before stay good, those of the key before that do not.
    pub(super) fn rotate_nonce_key(&mut self) {
        if self.is_up {
            self.model.generation += 1;
            self.host.rotate(self.now, &self.script.topology, self.model.generation);
        }
    }

    /// An ICMP error sets out for some relay, about some peer.
    pub(super) fn icmp(&mut self, draw: &mut Draw) {
        let relayed = self.any_relayed(draw);
        let peer = draw.pick(&self.script.topology.peers);
        let Some(relay) = self.host.relay_on(relayed) else { return };
        let kinds: &[(u8, u8)] = if peer.is_ipv4() {
            &[(3, 4), (3, 1), (3, 3), (11, 0), (5, 0), (8, 0)]
        } else {
            &[(1, 0), (2, 0), (3, 1), (4, 0), (128, 0)]
        };
        let (kind, code) = draw.pick(kinds);
        let mtu = draw.between(0, 1_500) as u32;
        let error = IcmpError { relay: self.host.relay_id(relay), peer, kind, code, mtu };
        self.later(Nanos(draw.between(1_000_000, 20_000_000)), Event::Icmp { error, relay });
    }

    /// The server receives an ICMP error, and its reaction is checked.
    pub(super) fn learn_of_error(&mut self, relay: RelayPlace, error: IcmpError) -> Result<(), Failure> {
        self.pass()?;
        let worker = self.host.worker_of(relay);
        let peer = error.peer;
        let no_client = FiveTuple { client: peer, server: peer, transport: tt_model::Transport::Udp };
        let delivery = Delivery { now: self.now, worker, flow: &no_client, bytes: &[error.kind, error.code] };
        let before = self.host.tables(worker);
        let expected = self.model.expect_of_error(self.now, relay, &error);
        let done = self.host.icmp(self.now, worker, error);
        self.note(&delivery, &expected.clone().map_or(Expected::Silence, |(_, expected)| expected), &done);
        let indication = expected.as_ref().map_or(&Expected::Silence, |(_, expected)| expected);
        if !self.meter(indication, None, (&done, 0))? {
            invariants::error(&delivery, expected.as_ref(), &done)?;
        }
        invariants::unproven(&delivery, before, self.host.tables(worker))?;
        self.settle(worker)?;
        done.iter().for_each(|done| self.count_to_client(done));
        self.route(done);
        Ok(())
    }
}

impl Host {
    fn drain(&self) {
        self.shared.drain();
    }
}
