//! Actions of clients and faults.

use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;

use super::clients::{Answered, Ask, Client, Flaw, Goal, Step, Value, echo};
use super::credentials::Credential;
use super::event::Event;
use super::host::Host;
use super::invariants::Failure;
use super::link::Weather;
use super::script::{Action, Deed, Ill, Path, Request};
use super::topology::{Features, Place, listener, relay_ip};
use super::wire::{self, Reading, Writer};
use super::world::World;
use crate::draw::{Draw, mix};

/// Temporary conditions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clear {
    Weather(Path, Ill),
    Squeeze,
    SendErrors,
}

/// A client that is never served (RFC 8656 section 21.4).
pub(super) fn is_barred(place: &Place) -> bool {
    matches!(place.ip, IpAddr::V6(ip) if ip.segments()[0] == 0x2002)
}

/// Both weathers at once.
pub(super) fn worse(a: &Weather, b: &Weather) -> Weather {
    Weather {
        loss: a.loss.max(b.loss),
        duplicate: a.duplicate.max(b.duplicate),
        reorder: a.reorder.max(b.reorder),
        corrupt: a.corrupt.max(b.corrupt),
        truncate: a.truncate.max(b.truncate),
        delay_ms: a.delay_ms.max(b.delay_ms),
        is_parted: a.is_parted || b.is_parted,
        mtu: if a.mtu == 0 || b.mtu == 0 { a.mtu.max(b.mtu) } else { a.mtu.min(b.mtu) },
    }
}

impl World<'_> {
    pub(super) fn act(&mut self, action: &Action) -> Result<(), Failure> {
        self.trace.say(self.now, || format!("{:?}", action.deed));
        let mut draw = Draw::new(action.draw);
        match action.deed {
            Deed::Ask { client, request } => {
                let ask = self.ask(&mut draw, client, request);
                self.clients[client].queue(ask);
                self.ask_next(client);
            }
            Deed::Say { client } => {
                let most = if self.script.topology.features.rates { 8 } else { 1 };
                for _ in 0..draw.between(1, most) {
                    self.say(&mut draw, client);
                }
            }
            Deed::Rebind { client } => self.rebind(client),
            Deed::PeerSays { peer } => self.peer_says(&mut draw, peer),
            Deed::Spoof { victim } => self.spoof(&mut draw, victim),
            Deed::Replay => self.replay(&mut draw),
            Deed::Append { victim } => self.clients[victim].appends_left += 4,
            Deed::Hijack { victim } => self.hijack(&mut draw, victim),
            Deed::Flood => self.flood(&mut draw),
            Deed::Weather { of, ill, for_s } => {
                self.change(of, |weather| sicken(weather, ill, &mut draw));
                self.clear_in(for_s, Clear::Weather(of, ill));
            }
            Deed::Crash => {
                let down = Nanos::from_millis(draw.between(10, 5_000));
                self.crash(down);
            }
            Deed::ClockJump => {
                let by_s = draw.pick(&[-86_400, -600, -7, 7, 600, 86_400]);
                self.model.wall_jump_ns += by_s * Nanos::PER_SECOND as i64;
                let jump = self.model.wall_jump_ns;
                self.host.set_wall_clock(self.now, jump);
            }
            Deed::Squeeze { for_s } => {
                self.squeezes += 1;
                self.clear_in(for_s, Clear::Squeeze);
            }
            Deed::SendErrors { for_s } => {
                self.send_errors = draw.between(1, 50);
                self.clear_in(for_s, Clear::SendErrors);
            }
            Deed::Steer => self.steering = draw.next(),
            Deed::Drain => self.drain(),
            Deed::DenyPeer { peer } => return self.deny_peer(peer),
            Deed::ToggleListener { peer } => return self.toggle_listener(&mut draw, peer),
            Deed::RotateNonceKey => self.rotate_nonce_key(),
            Deed::Icmp => self.icmp(&mut draw),
            Deed::Renew { client } => {
                let lasts_s = draw.pick(&[-600, 5, 60, 600, 3_600, 86_400]);
                self.renew(client, lasts_s);
            }
        }
        Ok(())
    }

    fn change(&mut self, of: Path, change: impl FnOnce(&mut Weather)) {
        match of {
            Path::Clients => change(&mut self.weather),
            Path::Client(client) => change(&mut self.weather_of[client]),
            Path::Peers => change(&mut self.weather_of_peers),
        }
    }

    fn clear_in(&mut self, for_s: u64, clear: Clear) {
        self.clears.push(clear);
        self.later(Nanos::from_secs(for_s), Event::Clear { clears: self.clears.len() - 1 });
    }

    pub(super) fn clear(&mut self, number: usize) {
        match self.clears.get(number).copied() {
            Some(Clear::Weather(of, ill)) => self.change(of, |weather| recover(weather, ill)),
            Some(Clear::Squeeze) => self.squeezes = self.squeezes.saturating_sub(1),
            Some(Clear::SendErrors) => self.send_errors = 0,
            None => {}
        }
    }

    /// A request of the kind, with particulars.
    fn ask(&mut self, draw: &mut Draw, client: usize, request: Request) -> Ask {
        let features = self.script.topology.features;
        let is_flawed = features.flaws && draw.chance(1, 6);
        let mut ask = match request {
            Request::Binding => Ask::new(wire::BINDING, Vec::new()),
            Request::Allocate => {
                let holder = draw.below(self.clients.len() as u64) as usize;
                let token =
                    self.clients[holder].token.clone().filter(|_| draw.chance(1 + u64::from(features.shares), 3));
                Ask::new(wire::ALLOCATE, allocate(draw, &features, is_flawed, token))
            }
            Request::Refresh => Ask::new(wire::REFRESH, refresh(draw)),
            Request::Close => Ask::close(),
            Request::Permit => {
                let most = if features.shares { 12 } else { 3 };
                let peers = if is_flawed { draw.below(4) } else { draw.between(1, most) };
                let peer = |world: &Self, draw: &mut Draw| {
                    // So many that the allocation's own permissions are too few.
                    let peer = match features.shares && draw.chance(1, 2) {
                        true => SocketAddr::new([8, 8, 1, draw.below(40) as u8].into(), 9_000),
                        false => world.peer(draw, client),
                    };
                    (wire::PEER_ADDRESS, Value::Address(peer))
                };
                Ask::new(wire::CREATE_PERMISSION, (0..peers).map(|_| peer(self, draw)).collect())
            }
            Request::Bind => {
                let number = if is_flawed {
                    draw.pick(&[0, 0x3FFF, 0x5000, 0x7FFF])
                } else {
                    0x4000 + draw.below(if features.shares { 20 } else { 5 }) as u16
                };
                let value = [number.to_be_bytes(), [0; 2]].concat();
                let many = SocketAddr::new([8, 8, 1, draw.below(40) as u8].into(), 9_000);
                let is_many = features.shares && draw.chance(2, 3);
                let peer = Value::Address(if is_many { many } else { self.peer(draw, client) });
                Ask::new(
                    wire::CHANNEL_BIND,
                    vec![(wire::CHANNEL_NUMBER, Value::Bytes(value)), (wire::PEER_ADDRESS, peer)],
                )
            }
        };
        ask.has_fingerprint = draw.chance(1, 3);
        if features.flaws && draw.chance(1, 6) {
            ask.flaw = draw.pick(&Flaw::ALL);
        }
        ask
    }

    /// A peer that a client may think of.
    fn peer(&self, draw: &mut Draw, client: usize) -> SocketAddr {
        let topology = &self.script.topology;
        let asker = &self.clients[client];
        let relayed = asker.other.filter(|_| draw.chance(1, 2)).or(asker.relayed);
        let is_ipv4 = relayed.is_none_or(|relayed| relayed.is_ipv4());
        match draw.below(16) {
            0 | 1 => echo(is_ipv4),
            2 => SocketAddr::new(draw.pick(&self.denied()), 80),
            3 | 4 if topology.features.hairpin => self.any_relayed(draw),
            5 if topology.features.hairpin => draw.pick(&[listener(is_ipv4), SocketAddr::new(relay_ip(is_ipv4), 9)]),
            6 => draw.pick(&topology.peers),
            _ => {
                let mut peer = draw.pick(&topology.peers);
                for _ in 0..8 {
                    if peer.is_ipv4() == is_ipv4 {
                        break;
                    }
                    peer = draw.pick(&topology.peers);
                }
                peer
            }
        }
    }

    fn denied(&self) -> [IpAddr; 8] {
        ["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "::ffff:127.0.0.1", "2002:7f00:1::1"]
            .map(|text| text.parse().expect("an address"))
    }

    /// A relayed address that some client has, or one of the server's.
    pub(super) fn any_relayed(&self, draw: &mut Draw) -> SocketAddr {
        let topology = &self.script.topology;
        let client = draw.below(self.clients.len() as u64) as usize;
        let worker = draw.below(u64::from(topology.workers)) as u16;
        let relay = draw.below(u64::from(topology.relays_v4 + topology.relays_v6)) as u32;
        self.clients[client].relayed.unwrap_or_else(|| Host::relay_addr(topology, (worker, relay)))
    }

    /// Sends the client's next request, if it waits for nothing.
    pub(super) fn ask_next(&mut self, client: usize) {
        if self.clients[client].is_cut && !self.clients[client].is_busy() {
            self.rebind(client);
        }
        if let Some(bytes) = self.clients[client].next_request() {
            self.ask_and_wait(client, bytes);
        }
    }

    fn ask_and_wait(&mut self, client: usize, bytes: Vec<u8>) {
        self.send_to_server(client, bytes);
        let (timer, wait) = (self.clients[client].timer, Nanos::from_millis(self.clients[client].patience_ms()));
        self.later(wait, Event::Patience { client, timer });
    }

    pub(super) fn lose_patience(&mut self, client: usize, timer: u32) {
        if self.clients[client].timer != timer {
            return;
        }
        if !self.clients[client].is_busy() {
            return self.pursue(client);
        }
        match self.clients[client].send_again() {
            Ok(bytes) => self.ask_and_wait(client, bytes),
            Err(answered) => self.finish(client, &answered),
        }
    }

    /// A credential of a user, which lasts so long if it ends at all.
    pub(super) fn credential(&self, user: usize, lasts_s: i64) -> Credential {
        match self.script.topology.rules.is_limited(user) {
            true => Credential::limited(user, self.model.unix_s(self.now).saturating_add_signed(lasts_s)),
            false => self.model.users[user].credential.clone(),
        }
    }

    pub(super) fn renew(&mut self, client: usize, lasts_s: i64) {
        let credential = self.credential(self.clients[client].place.user, lasts_s);
        self.clients[client].renew(credential);
    }

    fn finish(&mut self, client: usize, answered: &Answered) {
        if answered.code == Some(401) {
            self.renew(client, 3_600);
        }
        match self.clients[client].advance(answered) {
            Some(step) => self.take(client, step),
            None => self.ask_next(client),
        }
    }

    /// The client's next step to its goal.
    pub(super) fn pursue(&mut self, client: usize) {
        let step = self.clients[client].step();
        self.take(client, step);
    }

    fn take(&mut self, client: usize, step: Step) {
        match step {
            Step::Wait => {}
            Step::Ask(ask) => {
                self.clients[client].queue(ask);
                if let Some(bytes) = self.clients[client].next_request() {
                    self.ask_and_wait(client, bytes);
                }
            }
            Step::Speak => {
                let peer = self.clients[client].echo();
                let tid = self.clients[client].tid();
                let payload = proof(&self.clients[client], client);
                let send = Writer::new(wire::SEND, wire::INDICATION, tid);
                self.send_to_server(client, send.address(wire::PEER_ADDRESS, peer).attr(wire::DATA, &payload).0);
                let speaker = &mut self.clients[client];
                speaker.timer += 1;
                speaker.spoken += 1;
                if speaker.spoken.is_multiple_of(3) {
                    // No echo: perhaps the allocation has ended meanwhile.
                    speaker.goal = Goal::Seek { is_permitted: false };
                }
                let timer = self.clients[client].timer;
                self.later(Nanos::from_millis(400), Event::Patience { client, timer });
            }
            Step::Rebind => {
                self.rebind(client);
                self.clients[client].relayed = None;
                self.pursue(client);
            }
        }
    }

    pub(super) fn rebind(&mut self, client: usize) {
        let before = self.clients[client].addr;
        if self.clients[client].is_stream() {
            self.cut(client);
        }
        self.mappings.remove(&before);
        // Ports come around again: somebody may get an address on which an allocation still lives.
        let ports = self.clients.len().min(20_000) as u16 + 40;
        self.ports = 30_000 + (self.ports + 1 - 30_000) % ports;
        let mut addr = SocketAddr::new(before.ip(), self.ports);
        while self.mappings.contains_key(&addr) {
            addr.set_port(addr.port().checked_add(1).unwrap_or(1_024));
        }
        self.mappings.insert(addr, client);
        self.clients[client].rebind(addr);
    }

    fn say(&mut self, draw: &mut Draw, client: usize) {
        if self.clients[client].is_cut {
            return;
        }
        let peer = self.peer(draw, client);
        let tid = self.clients[client].tid();
        let speaker = &self.clients[client];
        let payload = payload(draw, client);
        let bytes = match speaker.channels.last().filter(|_| draw.chance(1, 2)) {
            Some(_) => {
                let (number, _) = draw.pick(&speaker.channels);
                wire::on_channel(number, &payload, speaker.is_stream())
            }
            None => {
                let send = Writer::new(wire::SEND, wire::INDICATION, tid).address(wire::PEER_ADDRESS, peer);
                let send = if draw.chance(1, 50) { send.attr(0x7779, b"") } else { send };
                if draw.chance(1, 50) { send.0 } else { send.attr(wire::DATA, &payload).0 }
            }
        };
        self.send_to_server(client, bytes);
    }

    fn peer_says(&mut self, draw: &mut Draw, peer: usize) {
        let from = self.script.topology.peers[peer];
        let relayed = self.any_relayed(draw);
        let payload = payload(draw, peer);
        self.send_to_relay(from, relayed, payload);
    }

    pub(super) fn client_receives(&mut self, flow: &tt_model::FiveTuple, bytes: &[u8]) {
        self.trace.note(self.now, 9, bytes);
        let Some(client) = self.mappings.get(&flow.client).copied() else { return };
        if bytes.first().is_some_and(|first| *first >= 0x40) {
            if let Some((_, payload)) = wire::channel_payload(bytes) {
                self.hear(client, payload);
            }
            return;
        }
        let Some(message) = Reading::of(bytes) else { return };
        if message.class == wire::INDICATION {
            if let Some(payload) = message.get(wire::DATA) {
                self.hear(client, payload);
            }
            return;
        }
        match self.clients[client].take_answer(&message) {
            Some(Ok(bytes)) => self.ask_and_wait(client, bytes),
            Some(Err(answered)) => self.finish(client, &answered),
            None => {}
        }
    }

    fn hear(&mut self, client: usize, payload: &[u8]) {
        let hearer = &mut self.clients[client];
        if matches!(hearer.goal, Goal::Seek { .. }) && payload == proof(hearer, client) {
            hearer.goal = Goal::Reached;
        }
    }
}

/// Payload that a client sends to an echoing peer.
fn proof(client: &Client, number: usize) -> Vec<u8> {
    [&b"relayed?"[..], &(number as u64).to_be_bytes(), &client.addr.port().to_be_bytes()].concat()
}

/// A payload that says whose it is.
fn payload(draw: &mut Draw, speaker: usize) -> Vec<u8> {
    let length = match draw.below(16) {
        0 => 0,
        1 => draw.between(1_000, 1_400),
        _ => draw.between(1, 200),
    } as usize;
    let mut bytes = [&(speaker as u64).to_be_bytes()[..], &draw.next().to_be_bytes()].concat();
    let mut word = mix(speaker as u64, length as u64);
    while bytes.len() < length {
        word = mix(word, 1);
        bytes.extend(word.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn allocate(draw: &mut Draw, features: &Features, is_flawed: bool, token: Option<Vec<u8>>) -> Vec<(u16, Value)> {
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
    let mut attributes = vec![(wire::TRANSPORT, bytes(&[17, 0, 0, 0]))];
    if is_flawed {
        return match draw.below(11) {
            0 => Vec::new(),
            1 => vec![(wire::TRANSPORT, bytes(&[17, 0, 0]))],
            2 => vec![(wire::TRANSPORT, bytes(&[132, 0, 0, 0]))],
            number => {
                attributes.extend(match number {
                    3 => vec![(wire::ADDRESS_FAMILY, bytes(&[3, 0, 0, 0]))],
                    4 => vec![
                        (wire::ADDRESS_FAMILY, bytes(&[1, 0, 0, 0])),
                        (wire::ADDITIONAL_FAMILY, bytes(&[2, 0, 0, 0])),
                    ],
                    5 => vec![(wire::ADDITIONAL_FAMILY, bytes(&[1, 0, 0, 0]))],
                    6 => vec![(wire::RESERVATION_TOKEN, bytes(&[7; 7]))],
                    7 => vec![(wire::RESERVATION_TOKEN, bytes(&[7; 8]))],
                    8 => vec![(wire::RESERVATION_TOKEN, bytes(&[7; 8])), (wire::EVEN_PORT, bytes(&[0]))],
                    9 => vec![(wire::ADDITIONAL_FAMILY, bytes(&[2, 0, 0, 0])), (wire::EVEN_PORT, bytes(&[0x80]))],
                    _ => vec![(wire::LIFETIME, bytes(&[0; 3]))],
                });
                attributes
            }
        };
    }
    if draw.chance(1, 3) {
        attributes.push((wire::LIFETIME, lifetime(draw)));
    }
    if let Some(token) = token {
        attributes.push((wire::RESERVATION_TOKEN, Value::Bytes(token)));
        return attributes;
    }
    let even = draw.pick(&[0, if features.pairs { 0x80 } else { 0 }]);
    let has_even = draw.chance(1, if features.pairs { 3 } else { 6 });
    if draw.chance(1, if features.ipv6 { 4 } else { 32 }) && (!has_even || even == 0) {
        attributes.push((wire::ADDITIONAL_FAMILY, bytes(&[2, 0, 0, 0])));
    } else if draw.chance(1, if features.ipv6 { 3 } else { 16 }) {
        attributes.push((wire::ADDRESS_FAMILY, bytes(&[draw.between(1, 2) as u8, 0, 0, 0])));
    }
    if has_even {
        attributes.push((wire::EVEN_PORT, bytes(&[even])));
    }
    attributes
}

fn refresh(draw: &mut Draw) -> Vec<(u16, Value)> {
    let mut attributes = Vec::new();
    if draw.chance(1, 2) {
        attributes.push((wire::LIFETIME, lifetime(draw)));
    }
    if draw.chance(1, 8) {
        attributes.push((wire::ADDRESS_FAMILY, Value::Bytes(vec![draw.between(1, 2) as u8, 0, 0, 0])));
    }
    attributes
}

fn lifetime(draw: &mut Draw) -> Value {
    Value::Bytes(draw.pick(&[1u32, 300, 700, 4_000, u32::MAX]).to_be_bytes().to_vec())
}

fn sicken(weather: &mut Weather, ill: Ill, draw: &mut Draw) {
    match ill {
        Ill::Loss => weather.loss = draw.between(1, 50),
        Ill::Duplicate => weather.duplicate = draw.between(1, 30),
        Ill::Reorder => weather.reorder = draw.between(1, 50),
        Ill::Corrupt => weather.corrupt = draw.between(1, 30),
        Ill::Truncate => weather.truncate = draw.between(1, 30),
        Ill::Delay => weather.delay_ms = draw.pick(&[100, 2_000, 60_000]),
        Ill::Partition => weather.is_parted = true,
        Ill::Mtu => weather.mtu = draw.pick(&[100, 576, 1_280]),
    }
}

fn recover(weather: &mut Weather, ill: Ill) {
    match ill {
        Ill::Loss => weather.loss = 0,
        Ill::Duplicate => weather.duplicate = 0,
        Ill::Reorder => weather.reorder = 0,
        Ill::Corrupt => weather.corrupt = 0,
        Ill::Truncate => weather.truncate = 0,
        Ill::Delay => weather.delay_ms = 0,
        Ill::Partition => weather.is_parted = false,
        Ill::Mtu => weather.mtu = 0,
    }
}
