//! Those who mean harm: spoofer, replayer, appender on the path, thief with valid credentials, flooder.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tt_model::{FiveTuple, Nanos, Transport};

use super::clients::{Ask, Flaw, Proof, Value, tail};
use super::event::Event;
use super::topology::listener;
use super::wire::{self, Writer};
use super::world::{World, is_request};
use crate::draw::Draw;

impl World<'_> {
    /// Bytes that claim to be from a five-tuple.
    fn inject(&mut self, draw: &mut Draw, flow: FiveTuple, bytes: Vec<u8>) {
        self.later(Nanos(draw.between(1_000_000, 20_000_000)), Event::AtServer { flow, bytes });
    }

    /// A datagram with a victim's source address, or with a peer's; streams cannot be spoofed.
    pub(super) fn spoof(&mut self, draw: &mut Draw, victim: usize) {
        let flow = self.clients[victim].flow();
        let peer = draw.pick(&self.script.topology.peers);
        let tid = draw.bytes();
        let bytes = match draw.below(8) {
            0 => Writer::new(wire::BINDING, wire::REQUEST, tid).0,
            1 => {
                let send = Writer::new(wire::SEND, wire::INDICATION, tid).address(wire::PEER_ADDRESS, peer);
                send.attr(wire::DATA, b"not from whom you think").0
            }
            2 => wire::on_channel(0x4000 + draw.below(5) as u16, b"nor is this", false),
            3 => Ask::allocate(true).write(tid, &Proof { nonce: &[], ..self.clients[victim].proof() }),
            4 => {
                let mut ask = Ask::close();
                ask.flaw = Flaw::WrongKey;
                ask.write(tid, &self.clients[victim].proof())
            }
            5 => Writer::new(wire::ALLOCATE, draw.between(2, 3) as u16, tid).attr(wire::LIFETIME, &[0; 4]).0,
            6 => Writer::new(wire::DATA_METHOD, wire::INDICATION, tid).attr(wire::DATA, b"x").0,
            _ => {
                let relayed = self.any_relayed(draw);
                let ip: IpAddr =
                    if draw.chance(1, 2) { peer.ip() } else { Ipv4Addr::from_bits(draw.next() as u32).into() };
                let from = SocketAddr::new(ip, draw.between(1, 65_535) as u16);
                return self.send_to_relay(from, relayed, b"from a peer, perhaps".to_vec());
            }
        };
        if flow.transport == Transport::Udp {
            self.inject(draw, flow, bytes);
        }
    }

    /// A captured datagram once more, from where it came or from elsewhere.
    pub(super) fn replay(&mut self, draw: &mut Draw) {
        if self.captured.is_empty() {
            return;
        }
        let (from, bytes) = self.captured[draw.below(self.captured.len() as u64) as usize].clone();
        let other = self.clients[draw.below(self.clients.len() as u64) as usize].flow();
        let flow = if draw.chance(1, 2) { from } else { other };
        if flow.transport == Transport::Udp {
            self.inject(draw, flow, bytes);
        }
    }

    /// Returns a client's datagram as altered on the path.
    pub(super) fn append(&mut self, client: usize, bytes: Vec<u8>) -> Vec<u8> {
        if self.clients[client].appends_left == 0 || !is_request(&bytes) {
            return bytes;
        }
        self.clients[client].appends_left -= 1;
        let has_fingerprint = bytes.len() > 8 && bytes[bytes.len() - 8..bytes.len() - 4] == [0x80, 0x28, 0, 4];
        let end = bytes.len() - if has_fingerprint { 8 } else { 0 };
        let longer = tail(Writer(bytes[..end].to_vec()));
        if has_fingerprint { longer.fingerprint().0 } else { longer.0 }
    }

    /// Right credentials, but not the victim's: a thief who sits behind the same NAT, and knows the nonce.
    pub(super) fn hijack(&mut self, draw: &mut Draw, victim: usize) {
        let flow = self.clients[victim].flow();
        let users = self.model.users.len();
        let user = (self.clients[victim].place.user + draw.below(users as u64) as usize) % users;
        let peer = draw.pick(&self.script.topology.peers);
        let ask = match draw.below(5) {
            0 => Ask::close(),
            1 => Ask::permit(peer),
            2 => Ask::allocate(true),
            3 => Ask::new(wire::REFRESH, Vec::new()),
            _ => {
                let number = Value::Bytes(vec![0x40, draw.below(5) as u8, 0, 0]);
                Ask::new(
                    wire::CHANNEL_BIND,
                    vec![(wire::CHANNEL_NUMBER, number), (wire::PEER_ADDRESS, Value::Address(peer))],
                )
            }
        };
        let credential = self.credential(user, 3_600);
        let bytes = ask.write(draw.bytes(), &Proof { credential: &credential, ..self.clients[victim].proof() });
        if flow.transport == Transport::Udp {
            self.inject(draw, flow, bytes);
        }
    }

    /// Very many datagrams in a second, from one address, from many, or in the name of a client's address.
    pub(super) fn flood(&mut self, draw: &mut Draw) {
        let from = draw.below(4).min(2);
        let kind = if from == 2 && draw.chance(3, 4) { 1 } else { draw.below(5) };
        let victim = self.flooded(draw);
        let ((least, most), within) =
            if from == 2 { ((300, 600), Nanos::from_millis(5)) } else { ((50, 400), Nanos::from_secs(1)) };
        for _ in 0..draw.between(least, most) {
            let ip = match from {
                0 => Ipv4Addr::from_bits(0x6440_0001).into(),
                1 => Ipv4Addr::from_bits(0x6440_0000 + draw.below(1 << 16) as u32).into(),
                _ => self.clients[victim].addr.ip(),
            };
            let client = SocketAddr::new(ip, draw.between(1_024, 65_535) as u16);
            let flow = FiveTuple { client, server: listener(ip.is_ipv4()), transport: Transport::Udp };
            let tid = draw.bytes();
            let bytes = match kind {
                0 => Writer::new(wire::BINDING, wire::REQUEST, tid).0,
                // The shorter the request, the more of the budget its challenge takes.
                1 if from == 2 => Writer::new(wire::ALLOCATE, wire::REQUEST, tid).0,
                1 => Writer::new(wire::ALLOCATE, wire::REQUEST, tid).attr(wire::TRANSPORT, &[17, 0, 0, 0]).0,
                2 => draw.bytes::<64>().to_vec(),
                3 => {
                    let mut ask = Ask::allocate(true);
                    ask.flaw = Flaw::WrongKey;
                    let nonce = b"obMatJos2AAAAAAAAAAAAAAAAAAAAAAAAAA";
                    ask.write(tid, &Proof::legacy(&self.model.users[0].credential, nonce))
                }
                _ => wire::on_channel(0x4000, &draw.bytes::<32>(), false),
            };
            let delay = Nanos(draw.below(within.0));
            self.later(delay, Event::AtServer { flow, bytes });
        }
        let ip = self.clients[victim].addr.ip();
        let same =
            |client: &usize| from == 2 && self.clients[*client].is_stream() && self.clients[*client].addr.ip() == ip;
        for client in (0..self.clients.len()).filter(same).collect::<Vec<_>>() {
            // It gets its challenge although the budget is spent. Without attributes the challenge is the longer one.
            self.rebind(client);
            self.clients[client].queue(Ask::new(wire::ALLOCATE, Vec::new()));
            self.ask_next(client);
        }
    }

    /// Any client, but mostly one with a connection: what the flood takes from its address is nothing to it.
    fn flooded(&self, draw: &mut Draw) -> usize {
        let streams: Vec<_> = (0..self.clients.len()).filter(|client| self.clients[*client].is_stream()).collect();
        match streams[..] {
            [_, ..] if draw.chance(3, 4) => draw.pick(&streams),
            _ => draw.below(self.clients.len() as u64) as usize,
        }
    }
}
