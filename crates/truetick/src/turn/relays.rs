//! One worker's relay sockets: bound ahead of need, drawn by the engine, rested after use.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;
use tt_net::{FaultCounts, Inbox, IoFault, Poller, UdpSocket};
use tt_turn::relay::{RelayAddress, RelayDemand};
use tt_turn::{RelayId, Server};

use super::settings::RelayIp;
use super::worker::Ready;
use crate::config::PortRange;

/// How long a socket rests between two allocations, so that late datagrams of the first never reach the second.
const REST: Nanos = Nanos::from_secs(5);
/// How long to wait after a failure (no descriptors, no free port) before sockets are bound again.
const RETRY: Nanos = Nanos::from_secs(1);
/// Sockets of one address that wait for an allocation: topped up to `POOL_HIGH` when fewer than `POOL_LOW` are left.
const POOL_LOW: usize = 64;
const POOL_HIGH: usize = 128;
/// Pairs of one family, on an even port and the next one, that wait for a client that asks for both: topped up to
/// `PAIRS_HIGH` when fewer than `PAIRS_LOW` are left. A worker with few sockets keeps fewer, or none.
const PAIRS_LOW: usize = 2;
const PAIRS_HIGH: usize = 4;
/// One pair for so many sockets that a worker may have, at most.
const SOCKETS_PER_PAIR: usize = 16;
/// Bytes that a relay socket's queue may hold, where the system allows it; one burst of a peer, not its memory.
const SOCKET_BUFFER: usize = 1 << 20;
/// Random ports that are tried for one socket before the range is searched from a random port on.
const DRAWS: usize = 16;

/// What a worker may bind relay sockets on.
#[derive(Clone, Debug)]
pub(super) struct RelayPlan {
    /// The addresses.
    pub(super) ips: Vec<RelayIp>,
    /// The ports, shared with the other workers.
    pub(super) ports: PortRange,
    /// This worker's share of sockets, over all addresses.
    pub(super) sockets_max: u32,
}

/// What became of relay sockets and of what they received while they rested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RelayCounts {
    /// Sockets that are bound: waiting, serving or resting.
    pub(super) bound: u64,
    /// Sockets that rest.
    pub(super) resting: u64,
    /// Datagrams that came while their socket rested.
    pub(super) late: u64,
    /// Failures to bind or watch a socket.
    pub(super) faults: FaultCounts,
}

#[derive(Debug)]
struct Relay {
    socket: UdpSocket,
    /// Index of its address in the plan.
    ip: usize,
    /// Sends what must not be fragmented, once there has been such a thing.
    whole: Option<UdpSocket>,
}

/// One worker's relay sockets. A socket's index is its [`RelayId`].
#[derive(Debug)]
pub(super) struct Relays {
    plan: RelayPlan,
    slots: Vec<Option<Relay>>,
    vacant: Vec<u32>,
    resting: VecDeque<(Nanos, RelayId)>,
    /// When sockets are bound again after a failure.
    retry_at: Option<Nanos>,
    /// When pairs are bound again after a failure, which is none of the others' business.
    pairs_retry_at: Option<Nanos>,
    pub(super) counts: RelayCounts,
}

impl Relays {
    pub(super) fn new(plan: RelayPlan) -> Self {
        let sockets_max = plan.sockets_max;
        Self {
            plan,
            slots: (0..sockets_max).map(|_| None).collect(),
            vacant: (0..sockets_max).rev().collect(),
            resting: VecDeque::new(),
            retry_at: None,
            pairs_retry_at: None,
            counts: RelayCounts::default(),
        }
    }

    /// The socket of `id`, unless there is none.
    pub(super) fn socket(&self, id: RelayId) -> Option<&UdpSocket> {
        Some(&self.slots.get(id.0 as usize)?.as_ref()?.socket)
    }

    /// The socket of `key`, unless there is none: of a relay, or the one beside it that sends what stays whole.
    pub(super) fn socket_of(&self, key: u64) -> Option<&UdpSocket> {
        let relay = self.slots.get(relay_of(key)?.0 as usize)?.as_ref()?;
        if key & WHOLE_KEYS == 0 { Some(&relay.socket) } else { relay.whole.as_ref() }
    }

    /// The key of the socket from which datagrams of `id` leave with a DF bit of 1 (RFC 8656 section 14). It is made when
    /// it is first asked for; then it joins `ready`, for what came to it meanwhile. Where it cannot be made, that is
    /// counted, and the key is of no socket.
    pub(super) fn whole_key(&mut self, id: RelayId, ready: &mut VecDeque<Ready>) -> u64 {
        let key = relay_key(id) | WHOLE_KEYS;
        if let Some(Some(relay)) = self.slots.get_mut(id.0 as usize)
            && relay.whole.is_none()
        {
            match relay.socket.unfragmented() {
                Ok(whole) => {
                    relay.whole = Some(whole);
                    ready.push_back(Ready::first(key));
                }
                Err(error) => self.counts.faults.record(IoFault::of(&error)),
            }
        }
        key
    }

    /// Binds the first sockets of every address.
    ///
    /// # Errors
    /// An address on which not one can be bound, with the reason.
    pub(super) fn fill(&mut self, server: &mut Server, poller: &Poller) -> Result<(), (SocketAddr, io::Error)> {
        self.top_up_pairs(Nanos(0), server, poller);
        for ip in 0..self.plan.ips.len() {
            let share = self.slots.len() / self.plan.ips.len();
            let is_here = |slot: &&Option<Relay>| slot.as_ref().is_some_and(|relay| relay.ip == ip);
            let paired = self.slots.iter().filter(is_here).count();
            for count in paired..share.min(POOL_HIGH) {
                match self.bind(ip, server, poller) {
                    Ok(()) => {}
                    Err(error) if count == 0 => {
                        return Err((SocketAddr::new(self.plan.ips[ip].bound, self.plan.ports.low), error));
                    }
                    Err(error) => {
                        self.counts.faults.record(IoFault::of(&error));
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes back what the engine has done with, wakes what has rested, and binds more where few are left.
    pub(super) fn tend(&mut self, now: Nanos, server: &mut Server, poller: &Poller, inbox: &mut Inbox) {
        while let Some(RelayDemand::Retire(id)) = server.poll_relay() {
            // Unwatched while it rests: what arrives stays in the kernel's bounded queue and costs nothing here.
            if let Some(Err(error)) = self.socket(id).map(|socket| poller.remove(socket)) {
                self.counts.faults.record(IoFault::of(&error));
            }
            if let Some(Some(relay)) = self.slots.get_mut(id.0 as usize) {
                relay.whole = None;
            }
            self.resting.push_back((now.saturating_add(REST), id));
        }
        while let Some(&(until, id)) = self.resting.front()
            && until <= now
        {
            self.resting.pop_front();
            self.wake(id, server, poller, inbox);
        }
        if self.retry_at.is_none_or(|at| at <= now) {
            self.retry_at = None;
            self.top_up(now, server, poller);
        }
        if self.pairs_retry_at.is_none_or(|at| at <= now) {
            self.pairs_retry_at = None;
            self.top_up_pairs(now, server, poller);
        }
        self.counts.resting = self.resting.len() as u64;
    }

    /// When [`Relays::tend`] has something to do again, if nothing else happens.
    pub(super) fn next_wake(&self) -> Option<Nanos> {
        let rested_at = self.resting.front().map(|(until, _)| *until);
        [rested_at, self.retry_at, self.pairs_retry_at].into_iter().flatten().min()
    }

    fn top_up(&mut self, now: Nanos, server: &mut Server, poller: &Poller) {
        for is_ipv4 in [true, false] {
            let ips = self.ips_of(is_ipv4).count();
            let pooled = server.relays_pooled(is_ipv4);
            if self.vacant.is_empty() || pooled >= POOL_LOW * ips {
                continue;
            }
            for count in pooled..POOL_HIGH * ips {
                let Some(ip) = self.ips_of(is_ipv4).nth(count % ips) else { break };
                if let Err(error) = self.bind(ip, server, poller) {
                    self.counts.faults.record(IoFault::of(&error));
                    self.retry_at = Some(now.saturating_add(RETRY));
                    return;
                }
            }
        }
    }

    fn top_up_pairs(&mut self, now: Nanos, server: &mut Server, poller: &Poller) {
        let (low, high) = self.pairs_kept();
        for is_ipv4 in [true, false] {
            let ips = self.ips_of(is_ipv4).count();
            let pooled = server.relay_pairs_pooled(is_ipv4);
            if ips == 0 || pooled >= low {
                continue;
            }
            for count in pooled..high {
                let Some(ip) = self.ips_of(is_ipv4).nth(count % ips).filter(|_| self.vacant.len() >= 2) else { break };
                if let Err(error) = self.bind_pair(ip, server, poller) {
                    // That no two free ports were met is no failed system call.
                    if error.raw_os_error().is_some() {
                        self.counts.faults.record(IoFault::of(&error));
                    }
                    self.pairs_retry_at = Some(now.saturating_add(RETRY));
                    return;
                }
            }
        }
    }

    /// How many pairs of a family are few, and how many are enough.
    fn pairs_kept(&self) -> (usize, usize) {
        let high = PAIRS_HIGH.min(self.slots.len() / SOCKETS_PER_PAIR);
        (PAIRS_LOW.min(high), high)
    }

    fn ips_of(&self, is_ipv4: bool) -> impl Iterator<Item = usize> {
        let ips = self.plan.ips.iter().enumerate();
        ips.filter(move |(_, ip)| ip.bound.is_ipv4() == is_ipv4).map(|(index, _)| index)
    }

    fn bind(&mut self, ip: usize, server: &mut Server, poller: &Poller) -> io::Result<()> {
        if self.vacant.is_empty() {
            return Ok(());
        }
        let id = self.keep(ip, bind_random(self.plan.ips[ip].bound, self.plan.ports)?, poller)?;
        self.register(id, server);
        Ok(())
    }

    fn bind_pair(&mut self, ip: usize, server: &mut Server, poller: &Poller) -> io::Result<()> {
        let (even, odd) = bind_random_pair(self.plan.ips[ip].bound, self.plan.ports)?;
        let even = self.keep(ip, even, poller)?;
        let odd = self.keep(ip, odd, poller).inspect_err(|_| self.close(even))?;
        let address = |id| self.address(id).map(|address| (id, address));
        let Some((low, high)) = address(even).zip(address(odd)) else { return Ok(()) };
        if let Err(fault) = server.add_relay_pair(low, high) {
            tracing::error!(?fault, relay = even.0, "the engine refuses a pair of relay sockets");
            self.close(even);
            self.close(odd);
        }
        Ok(())
    }

    /// Gives a socket a vacant number and watches it.
    fn keep(&mut self, ip: usize, socket: UdpSocket, poller: &Poller) -> io::Result<RelayId> {
        let Some(&id) = self.vacant.last() else { return Err(io::ErrorKind::OutOfMemory.into()) };
        socket.set_buffers(SOCKET_BUFFER, false)?;
        socket.take_trains()?;
        socket.tell_icmp()?;
        poller.add(&socket, relay_key(RelayId(id)))?;
        self.vacant.pop();
        self.slots[id as usize] = Some(Relay { socket, ip, whole: None });
        self.counts.bound += 1;
        Ok(RelayId(id))
    }

    /// Empties a rested socket, counts what came late, and lets it serve again; closes it where enough others wait.
    fn wake(&mut self, id: RelayId, server: &mut Server, poller: &Poller, inbox: &mut Inbox) {
        let Some(relay) = self.slots[id.0 as usize].as_ref() else { return };
        inbox.clear();
        loop {
            match inbox.receive(&relay.socket, relay_key(id), inbox.room()) {
                Ok(received) => {
                    self.counts.late += received.count as u64;
                    inbox.clear();
                    if received.drained {
                        break;
                    }
                }
                Err(error) => {
                    self.counts.faults.record(IoFault::of(&error));
                    break;
                }
            }
        }
        let is_ipv4 = relay.socket.local_addr().is_ipv4();
        let is_surplus = server.relays_pooled(is_ipv4) >= POOL_HIGH * self.ips_of(is_ipv4).count();
        match poller.add(&relay.socket, relay_key(id)) {
            Ok(()) if !is_surplus => self.register(id, server),
            Ok(()) => self.close(id),
            Err(error) => {
                self.counts.faults.record(IoFault::of(&error));
                self.close(id);
            }
        }
    }

    fn close(&mut self, id: RelayId) {
        self.slots[id.0 as usize] = None;
        self.vacant.push(id.0);
        self.counts.bound -= 1;
    }

    fn register(&mut self, id: RelayId, server: &mut Server) {
        let Some(address) = self.address(id) else { return };
        if let Err(fault) = server.add_relay(id, address) {
            tracing::error!(?fault, relay = id.0, "the engine refuses a relay socket");
            self.close(id);
        }
    }

    fn address(&self, id: RelayId) -> Option<RelayAddress> {
        let relay = self.slots.get(id.0 as usize)?.as_ref()?;
        let bound = relay.socket.local_addr();
        Some(RelayAddress { bound, external: SocketAddr::new(self.plan.ips[relay.ip].external, bound.port()) })
    }
}

/// The key under which a relay socket is watched; listeners have the numbers below.
pub(super) const fn relay_key(id: RelayId) -> u64 {
    RELAY_KEYS | id.0 as u64
}

/// The relay of a key, unless it is a listener's.
pub(super) const fn relay_of(key: u64) -> Option<RelayId> {
    if key & RELAY_KEYS == 0 { None } else { Some(RelayId(key as u32)) }
}

const RELAY_KEYS: u64 = 1 << 32;
const WHOLE_KEYS: u64 = 1 << 33;

/// A socket on a port of `ports` that nobody can foresee.
fn bind_random(ip: IpAddr, ports: PortRange) -> io::Result<UdpSocket> {
    let span = u32::from(ports.high - ports.low) + 1;
    let port_at = |offset: u32| ports.low + (offset % span) as u16;
    for _ in 0..DRAWS {
        match UdpSocket::bind(SocketAddr::new(ip, port_at(random()?))) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    let start = random()? % span;
    for offset in 0..span.min(1024) {
        match UdpSocket::bind(SocketAddr::new(ip, port_at(start + offset))) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Two sockets, on an even port of `ports` that nobody can foresee and on the next one (RFC 8656 section 7.2).
fn bind_random_pair(ip: IpAddr, ports: PortRange) -> io::Result<(UdpSocket, UdpSocket)> {
    let first = u32::from(ports.low).next_multiple_of(2);
    let pairs = (u32::from(ports.high) + 1).saturating_sub(first) / 2;
    let draws = if pairs == 0 { 0 } else { DRAWS };
    for _ in 0..draws {
        let even = (first + 2 * (random()? % pairs)) as u16;
        let bind = |port| UdpSocket::bind(SocketAddr::new(ip, port));
        match bind(even).and_then(|low| Ok((low, bind(even + 1)?))) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn random() -> io::Result<u32> {
    getrandom::u32().map_err(io::Error::other)
}
