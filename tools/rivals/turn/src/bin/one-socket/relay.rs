//! The loop: client socket and relay socket in turn, the engine between them.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd as _, RawFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use socket2::{Domain, Protocol, Socket, Type};

use tt_meter::Off;
use tt_model::{FiveTuple, Nanos, Transport};
use tt_turn::relay::{IcmpError, PeerPath, RelayAddress, RelayDemand, RelayId};
use tt_turn::{Output, Server};

use crate::steer::{self, Steering};
use crate::sys::batch::{self, Inbox, Meta, Outbox, Outgoing};
use crate::wire::{self, Checksum, Fields};
use crate::{Flags, Leaving};

/// Datagrams of a batch, as in the shipped program.
const BATCH: usize = 32;
/// Longest arrival: a GRO batch.
const ARRIVAL_LEN_MAX: usize = 1 << 16;
const HEAD_LEN_MAX: usize = 1_500;
/// Datagrams of GRO batches that are handled before what they cause is sent.
const QUEUE: usize = BATCH * 64;
const BUFFER_LEN: usize = 4 << 20;
/// A retired port rests, as in the shipped program.
const QUARANTINE: Nanos = Nanos::from_secs(5);
const TICK_MS: i32 = 100;
/// Key of a batch that leaves by the only socket.
const ONLY: u32 = 0;

/// Sockets bound to relay ports, the most recently used first to stay.
struct Pool {
    sockets: HashMap<u32, (Socket, u64)>,
    uses: u64,
    capacity: usize,
}

pub(crate) struct Relay {
    server: Server,
    epoch: Instant,
    listen: SocketAddrV4,
    ips: Vec<Ipv4Addr>,
    ports: (u16, u16),
    leaving: Leaving,
    client: Socket,
    relay: Socket,
    raw: Option<Socket>,
    icmp: Socket,
    pool: Pool,
    _steering: Vec<Steering>,
    id: u16,
    resting: VecDeque<(Nanos, RelayId)>,
    to_client: Outbox,
    to_peer: Outbox,
    wall_clock_at: Nanos,
    show_icmp: bool,
}

/// A UDP socket with the options of the shipped program's.
fn udp(at: SocketAddrV4, shares: bool) -> anyhow::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    socket.set_reuse_port(shares)?;
    socket.set_recv_tos_v4(true)?;
    for (level, option, value) in [
        (libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT),
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1),
        (libc::SOL_UDP, libc::UDP_GRO, 1),
    ] {
        batch::set(socket.as_raw_fd(), level, option, value)?;
    }
    socket.bind(&at.into()).with_context(|| format!("cannot bind {at}"))?;
    let _ = socket.set_recv_buffer_size(BUFFER_LEN);
    let _ = socket.set_send_buffer_size(BUFFER_LEN);
    for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
        let _ = batch::set(socket.as_raw_fd(), libc::SOL_SOCKET, option, BUFFER_LEN as i32);
    }
    Ok(socket)
}

impl Relay {
    pub(crate) fn new(flags: &Flags, mut server: Server) -> anyhow::Result<Self> {
        let client = udp(flags.listen, false)?;
        // Its port is below the relay range: nothing is sent to it but what the program steers.
        let relay = udp(SocketAddrV4::new(flags.relay_ip[0], 0), true)?;
        batch::set(relay.as_raw_fd(), libc::IPPROTO_IP, libc::IP_RECVORIGDSTADDR, 1)?;
        batch::set(relay.as_raw_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
        let mut steering = vec![steer::receive(&relay, &flags.relay_ip, flags.port_low..=flags.port_high)?];
        if flags.leaving == Leaving::Mark {
            steering.push(steer::send(flags.device)?);
        }
        let is_raw = matches!(flags.leaving, Leaving::Raw | Leaving::RawUnsummed);
        let raw = is_raw.then(raw_socket).transpose()?;
        let icmp = Socket::new(Domain::IPV4, Type::RAW.nonblocking(), Some(Protocol::ICMPV4))?;
        // ICMP_FILTER: everything but destination unreachable, time exceeded and parameter problem.
        const ICMP_FILTER: i32 = 1;
        batch::set(icmp.as_raw_fd(), libc::SOL_RAW, ICMP_FILTER, !(1 << 3 | 1 << 11 | 1 << 12))?;
        let ports = (flags.port_low, flags.port_high);
        Ok(Self {
            epoch: Instant::now(),
            listen: flags.listen,
            ips: flags.relay_ip.clone(),
            ports,
            leaving: flags.leaving,
            client,
            relay,
            raw,
            icmp,
            pool: Pool { sockets: HashMap::new(), uses: 0, capacity: flags.pool },
            _steering: steering,
            id: 1,
            resting: VecDeque::new(),
            to_client: Outbox::new(QUEUE, HEAD_LEN_MAX),
            to_peer: Outbox::new(QUEUE, wire::HEADERS_LEN),
            wall_clock_at: Nanos(0),
            show_icmp: flags.show_icmp,
            server: {
                let count = u32::from(ports.1 - ports.0) + 1;
                for id in 0..flags.relay_ip.len() as u32 * count {
                    let ip = flags.relay_ip[(id / count) as usize];
                    let bound = SocketAddr::from((ip, ports.0 + (id % count) as u16));
                    let added = server.add_relay(RelayId(id), RelayAddress { bound, external: bound });
                    added.map_err(|error| anyhow::anyhow!("relay {id}: {error:?}"))?;
                }
                server
            },
        })
    }

    /// Serves until it is killed.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        let (client, relay, icmp) = (self.client.as_raw_fd(), self.relay.as_raw_fd(), self.icmp.as_raw_fd());
        let mut inbox = Inbox::new(BATCH, ARRIVAL_LEN_MAX);
        let (mut has_client, mut has_relay) = (false, false);
        loop {
            let now = self.now();
            self.run_timers(now);
            let timeout_ms = if has_client || has_relay { 0 } else { TICK_MS };
            let [of_client, of_relay, of_icmp] = batch::wait([client, relay, icmp], timeout_ms);
            let now = self.now();
            if of_relay & libc::POLLERR != 0 || of_icmp != 0 {
                self.take_icmp(now, &mut inbox);
            }
            (has_client, has_relay) = (has_client || of_client != 0, has_relay || of_relay & libc::POLLIN != 0);
            if has_client {
                // A late ICMP error is an error of the call, and nothing is lost.
                let count = inbox.receive(client, 0).unwrap_or(0);
                (0..count).for_each(|index| self.handle_client(now, &inbox, index));
                self.flush(&inbox);
                has_client = inbox.is_full();
            }
            if has_relay {
                let count = inbox.receive(relay, 0).unwrap_or(0);
                (0..count).for_each(|index| self.handle_peer(now, &inbox, index));
                self.flush(&inbox);
                has_relay = inbox.is_full();
            }
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    fn run_timers(&mut self, now: Nanos) {
        if now >= self.wall_clock_at {
            let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.server.set_wall_clock(now, Nanos(unix.as_nanos() as u64));
            self.wall_clock_at = now.saturating_add(Nanos::from_secs(1));
        }
        if self.server.poll_timeout().is_some_and(|due| due <= now) {
            self.server.handle_timeout(now);
        }
        while let Some(RelayDemand::Retire(id)) = self.server.poll_relay() {
            self.resting.push_back((now.saturating_add(QUARANTINE), id));
            self.pool.sockets.remove(&id.0);
        }
        while let Some((_, id)) = self.resting.pop_front_if(|(until, _)| *until <= now) {
            let bound = SocketAddr::V4(self.address(id));
            let added = self.server.add_relay(id, RelayAddress { bound, external: bound });
            debug_assert!(added.is_ok(), "the number was registered before");
        }
        while self.server.poll_event().is_some() {}
        while self.server.poll_rejected().is_some() {}
    }

    fn ports_count(&self) -> u32 {
        u32::from(self.ports.1 - self.ports.0) + 1
    }

    fn address(&self, id: RelayId) -> SocketAddrV4 {
        let count = self.ports_count();
        SocketAddrV4::new(self.ips[(id.0 / count) as usize], self.ports.0 + (id.0 % count) as u16)
    }

    /// The number of a relayed address.
    fn relay_at(&self, to: SocketAddrV4) -> Option<RelayId> {
        let ip = self.ips.iter().position(|ip| ip == to.ip())?;
        let port = to.port().checked_sub(self.ports.0).filter(|_| to.port() <= self.ports.1)?;
        Some(RelayId(ip as u32 * self.ports_count() + u32::from(port)))
    }

    fn handle_client(&mut self, now: Nanos, inbox: &Inbox, index: usize) {
        let meta = inbox.meta(index);
        let from = FiveTuple {
            client: SocketAddr::V4(meta.from),
            server: SocketAddr::V4(self.listen),
            transport: Transport::Udp,
        };
        for (start, end) in pieces(inbox.bytes(index).len(), meta.segment_len) {
            let head = self.to_client.head();
            let output = self.server.handle_client(now, &from, &inbox.bytes(index)[start..end], head, &mut Off);
            self.send(inbox, (index, start), &meta, &output, 2);
        }
    }

    fn handle_peer(&mut self, now: Nanos, inbox: &Inbox, index: usize) {
        let meta = inbox.meta(index);
        let Some(relay) = meta.to.and_then(|to| self.relay_at(to)) else { return };
        let from = PeerPath { relay, peer: SocketAddr::V4(meta.from) };
        for (start, end) in pieces(inbox.bytes(index).len(), meta.segment_len) {
            let head = self.to_client.head();
            let output = self.server.handle_peer(now, from, &inbox.bytes(index)[start..end], head, &mut Off);
            self.send(inbox, (index, start), &meta, &output, 1);
        }
    }

    /// Queues `output`; `passed` relays are passed by a datagram to a client.
    fn send(&mut self, inbox: &Inbox, (index, start): (usize, usize), meta: &Meta, output: &Output, passed: u8) {
        let plain = Outgoing {
            key: ONLY,
            to: meta.from,
            traffic_class: 0,
            hop_limit: 0,
            mark: 0,
            head_len: 0,
            quote: (index, 0, 0),
        };
        let quote =
            |payload: tt_model::ByteRange| (index, start + payload.start as usize, start + payload.end as usize);
        match *output {
            Output::Reply { len, .. } => self.to_client.push(Outgoing { head_len: len, ..plain }),
            Output::ToClient { client: FiveTuple { client: SocketAddr::V4(to), .. }, header_len, payload, .. } => {
                let hop_limit = meta.hop_limit.saturating_sub(passed);
                let (traffic_class, quote) = (meta.traffic_class, quote(payload));
                let outgoing = Outgoing { to, traffic_class, hop_limit, head_len: header_len, quote, ..plain };
                self.to_client.push(outgoing);
            }
            Output::ToPeer { relay, peer: SocketAddr::V4(to), payload, .. } => {
                let hop_limit = meta.hop_limit.saturating_sub(1);
                let quote = quote(payload);
                let outgoing = Outgoing { to, traffic_class: meta.traffic_class, hop_limit, quote, ..plain };
                self.push_to_peer(relay, outgoing, inbox);
            }
            // One worker, and no IPv6 here.
            Output::ToClient { .. }
            | Output::ToPeer { .. }
            | Output::ToWorker { .. }
            | Output::HandOff(_)
            | Output::Drop(_) => {}
        }
    }

    fn push_to_peer(&mut self, relay: RelayId, outgoing: Outgoing, inbox: &Inbox) {
        let from = self.address(relay);
        let outgoing = match self.leaving {
            Leaving::Raw | Leaving::RawUnsummed => {
                let (index, start, end) = outgoing.quote;
                let Outgoing { to, traffic_class, hop_limit, .. } = outgoing;
                self.id = self.id.checked_add(1).unwrap_or(1);
                let fields = Fields { from, to, traffic_class, hop_limit, id: self.id };
                let checksum = if self.leaving == Leaving::Raw { Checksum::Computed } else { Checksum::Zero };
                wire::write(self.to_peer.head(), &fields, &inbox.bytes(index)[start..end], checksum);
                Outgoing { head_len: wire::HEADERS_LEN, traffic_class: 0, hop_limit: 0, ..outgoing }
            }
            Leaving::Mark => Outgoing { mark: steer::mark(from.port()), ..outgoing },
            Leaving::WrongPort => outgoing,
            Leaving::Pool => {
                if !self.pool.hold(relay.0, from) {
                    return;
                }
                Outgoing { key: relay.0, ..outgoing }
            }
        };
        self.to_peer.push(outgoing);
    }

    fn flush(&mut self, inbox: &Inbox) {
        let (client, relay) = (self.client.as_raw_fd(), self.relay.as_raw_fd());
        let raw = self.raw.as_ref().map_or(relay, |raw| raw.as_raw_fd());
        let Self { to_client, to_peer, pool, leaving, .. } = self;
        to_client.flush(inbox, |_| client);
        let pooled = |key: u32| pool.sockets.get(&key).map_or(-1, |(socket, _)| socket.as_raw_fd());
        to_peer.flush(inbox, |key| if *leaving == Leaving::Pool { pooled(key) } else { raw });
        pool.trim();
    }

    /// What both kinds of sockets say of ICMP errors. Only the raw one names the port that the datagram had left from.
    fn take_icmp(&mut self, now: Nanos, inbox: &mut Inbox) {
        let relay: RawFd = self.relay.as_raw_fd();
        while let Ok(count @ 1..) = inbox.receive(relay, libc::MSG_ERRQUEUE) {
            if self.show_icmp {
                (0..count).for_each(|index| println!("error queue: {:?}", inbox.meta(index)));
            }
        }
        while let Ok(count @ 1..) = inbox.receive(self.icmp.as_raw_fd(), 0) {
            for index in 0..count {
                let Some((from, error)) = quoted(inbox.bytes(index)) else { continue };
                let Some(relay) = self.relay_at(from) else { continue };
                if self.show_icmp {
                    println!("raw socket: from {from} {error:?}");
                }
                let head = self.to_client.head();
                let output = self.server.handle_icmp(now, IcmpError { relay, ..error }, head, &mut Off);
                let nothing = Meta { hop_limit: 0, traffic_class: 0, ..inbox.meta(index) };
                self.send(inbox, (index, 0), &nothing, &output, 0);
            }
            self.flush(inbox);
        }
    }
}

/// A socket that sends what this program writes from the IP header on, and receives nothing.
fn raw_socket() -> anyhow::Result<Socket> {
    let raw = Socket::new(Domain::IPV4, Type::RAW.nonblocking(), Some(Protocol::from(libc::IPPROTO_RAW)))?;
    let _ = batch::set(raw.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER_LEN as i32);
    Ok(raw)
}

/// The sender and the error of an ICMP packet about a datagram of UDP over IPv4 (RFC 792).
fn quoted(packet: &[u8]) -> Option<(SocketAddrV4, IcmpError)> {
    let icmp = packet.get(usize::from(packet.first()? & 15) * 4..)?;
    let inner = icmp.get(8..)?;
    let udp = inner.get(usize::from(inner.first()? & 15) * 4..)?;
    if *inner.get(9)? != 17 {
        return None;
    }
    let ip = |at: usize| Some(Ipv4Addr::new(*inner.get(at)?, inner[at + 1], inner[at + 2], *inner.get(at + 3)?));
    let port = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
    let (from, to) = (SocketAddrV4::new(ip(12)?, port(0)?), SocketAddrV4::new(ip(16)?, port(2)?));
    let mtu = u32::from(u16::from_be_bytes([icmp[6], icmp[7]]));
    Some((from, IcmpError { relay: RelayId(0), peer: SocketAddr::V4(to), kind: icmp[0], code: icmp[1], mtu }))
}

/// The datagrams of an arrival.
fn pieces(len: usize, segment_len: usize) -> impl Iterator<Item = (usize, usize)> {
    let step = if segment_len == 0 { len.max(1) } else { segment_len };
    (0..len.max(1)).step_by(step).map(move |start| (start, len.min(start + step)))
}

impl Pool {
    /// Binds a socket to `from` unless it has one.
    fn hold(&mut self, key: u32, from: SocketAddrV4) -> bool {
        self.uses += 1;
        if let Some((_, used)) = self.sockets.get_mut(&key) {
            *used = self.uses;
            return true;
        }
        let Ok(socket) = udp(from, true) else { return false };
        self.sockets.insert(key, (socket, self.uses));
        true
    }

    /// Closes what was not used for longest, after a batch has left.
    fn trim(&mut self) {
        while self.sockets.len() > self.capacity {
            let oldest = self.sockets.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            oldest.and_then(|key| self.sockets.remove(&key));
        }
    }
}
