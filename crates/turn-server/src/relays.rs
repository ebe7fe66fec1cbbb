//! The relay sockets of one worker: a pool that is bound in advance, and a quarantine after each allocation.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tt_model::{IpFamily, Nanos};
use tt_net::{FaultCounts, Inbox, IoFault, Poller, UdpSocket};
use tt_turn::Server;
use tt_turn::relay::{RelayAddress, RelayDemand, RelayId};

use crate::config::RelayIp;
use crate::poll_key::{DF_KEYS, relay_key, relay_of};
use crate::ready::{Ready, ReadyQueue};
use crate::section::PortRange;

/// Quarantine of a socket between two allocations: late datagrams of the first never reach the second.
const QUARANTINE: Nanos = Nanos::from_secs(5);
/// Delay before sockets are bound again after a failure (no descriptors, no free port).
const RETRY: Nanos = Nanos::from_secs(1);
/// Pool of one address: refilled to `POOL_HIGH` sockets when fewer than `POOL_LOW` are left.
const POOL_LOW: usize = 64;
const POOL_HIGH: usize = 128;
/// Pool of port pairs (even port and the next one) of one family: refilled to `PAIRS_HIGH` when fewer than `PAIRS_LOW`
/// are left. A worker with few sockets keeps fewer pairs, or none.
const PAIRS_LOW: usize = 2;
const PAIRS_HIGH: usize = 4;
/// At most one pooled pair per this many sockets of a worker.
const SOCKETS_PER_PAIR: usize = 16;
/// Receive buffer of a relay socket in bytes, if the system allows it: one burst of a peer.
const SOCKET_BUFFER: usize = 1 << 20;
/// Random ports that are tried for one socket before the range is searched from a random port.
const DRAWS: usize = 16;

/// Addresses, ports and number of relay sockets of one worker.
#[derive(Clone, Debug)]
pub(crate) struct RelayPlan {
    /// The addresses.
    pub(crate) ips: Vec<RelayIp>,
    /// The ports, shared with the other workers.
    pub(crate) ports: PortRange,
    /// Maximum number of sockets of all workers, over all addresses.
    pub(crate) sockets_total: u32,
    /// Maximum number of sockets of one worker, over all addresses.
    pub(crate) sockets_max: u32,
}

/// Counters of the relay sockets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelayCounts {
    /// Bound sockets: in the pool, allocated or in quarantine.
    pub(crate) bound: u64,
    /// Sockets in quarantine.
    pub(crate) quarantined: u64,
    /// Datagrams received during quarantine.
    pub(crate) late: u64,
    /// Attempts to bind a socket that found no free port.
    pub(crate) no_free_port: u64,
    /// Other failures to bind or poll a socket.
    pub(crate) faults: FaultCounts,
}

impl RelayCounts {
    fn record(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::AddrInUse {
            self.no_free_port += 1;
        } else {
            self.faults.record(IoFault::of(error));
        }
    }
}

#[derive(Debug)]
struct Relay {
    socket: UdpSocket,
    /// Index of its address in the plan.
    ip: usize,
    /// Socket with the DF bit set, bound on first use.
    df_socket: Option<UdpSocket>,
}

/// The relay sockets of one worker. The index of a socket is its [`RelayId`].
#[derive(Debug)]
pub(crate) struct Relays {
    plan: RelayPlan,
    slots: Vec<Option<Relay>>,
    vacant: Vec<u32>,
    quarantined: VecDeque<(Nanos, RelayId)>,
    /// Time of the next attempt to bind sockets after a failure.
    retry_at: Option<Nanos>,
    /// Time of the next attempt to bind pairs after a failure.
    pairs_retry_at: Option<Nanos>,
    pub(crate) counts: RelayCounts,
}

impl Relays {
    pub(crate) fn new(plan: RelayPlan) -> Self {
        let sockets_max = plan.sockets_max;
        Self {
            plan,
            slots: (0..sockets_max).map(|_| None).collect(),
            vacant: (0..sockets_max).rev().collect(),
            quarantined: VecDeque::new(),
            retry_at: None,
            pairs_retry_at: None,
            counts: RelayCounts::default(),
        }
    }

    /// Returns the socket of `id`.
    pub(crate) fn socket(&self, id: RelayId) -> Option<&UdpSocket> {
        Some(&self.slots.get(id.0 as usize)?.as_ref()?.socket)
    }

    /// Returns the socket of `key`: a relay's socket, or its socket with the DF bit set.
    pub(crate) fn socket_of(&self, key: u64) -> Option<&UdpSocket> {
        let relay = self.slots.get(relay_of(key)?.0 as usize)?.as_ref()?;
        if key & DF_KEYS == 0 { Some(&relay.socket) } else { relay.df_socket.as_ref() }
    }

    /// Returns the key of the socket of `id` that sends with a DF bit of 1 (RFC 8656 section 14).
    ///
    /// Binds the socket on first use and adds it to `ready`, since it may have received datagrams already. If that fails,
    /// the error is counted and the key has no socket.
    pub(crate) fn df_key(&mut self, id: RelayId, ready: &mut ReadyQueue) -> u64 {
        let key = relay_key(id) | DF_KEYS;
        if let Some(Some(relay)) = self.slots.get_mut(id.0 as usize)
            && relay.df_socket.is_none()
        {
            match relay.socket.unfragmented() {
                Ok(socket) => {
                    relay.df_socket = Some(socket);
                    ready.push(Ready::first(key));
                }
                Err(error) => self.counts.record(&error),
            }
        }
        key
    }

    /// Fills the pool of every address.
    ///
    /// # Errors
    /// An address on which no socket can be bound, with the cause.
    pub(crate) fn fill(&mut self, server: &mut Server, poller: &Poller) -> Result<(), (SocketAddr, io::Error)> {
        self.refill_pairs(Nanos(0), server, poller);
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
                        self.counts.record(&error);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Quarantines retired sockets, returns sockets after their quarantine to the pool, and refills it.
    pub(crate) fn maintain_pool(&mut self, now: Nanos, server: &mut Server, poller: &Poller, inbox: &mut Inbox) {
        while let Some(RelayDemand::Retire(id)) = server.poll_relay() {
            // Not polled during quarantine: datagrams stay in the kernel's bounded queue.
            if let Some(Err(error)) = self.socket(id).map(|socket| poller.remove(socket)) {
                self.counts.record(&error);
            }
            if let Some(Some(relay)) = self.slots.get_mut(id.0 as usize) {
                relay.df_socket = None;
            }
            self.quarantined.push_back((now.saturating_add(QUARANTINE), id));
        }
        while let Some(&(until, id)) = self.quarantined.front()
            && until <= now
        {
            self.quarantined.pop_front();
            self.end_quarantine(id, server, poller, inbox);
        }
        if self.retry_at.is_none_or(|at| at <= now) {
            self.retry_at = None;
            self.refill(now, server, poller);
        }
        if self.pairs_retry_at.is_none_or(|at| at <= now) {
            self.pairs_retry_at = None;
            self.refill_pairs(now, server, poller);
        }
        self.counts.quarantined = self.quarantined.len() as u64;
    }

    /// Returns when [`Relays::maintain_pool`] must be called next.
    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        let quarantine_end = self.quarantined.front().map(|(until, _)| *until);
        [quarantine_end, self.retry_at, self.pairs_retry_at].into_iter().flatten().min()
    }

    fn refill(&mut self, now: Nanos, server: &mut Server, poller: &Poller) {
        for family in IpFamily::ALL {
            let ips = self.ips_of(family).count();
            let pooled = server.relays_pooled(family);
            if self.vacant.is_empty() || pooled >= POOL_LOW * ips {
                continue;
            }
            for count in pooled..POOL_HIGH * ips {
                let Some(ip) = self.ips_of(family).nth(count % ips) else { break };
                if let Err(error) = self.bind(ip, server, poller) {
                    self.counts.record(&error);
                    self.retry_at = Some(now.saturating_add(RETRY));
                    return;
                }
            }
        }
    }

    fn refill_pairs(&mut self, now: Nanos, server: &mut Server, poller: &Poller) {
        let (low, high) = self.pairs_kept();
        for family in IpFamily::ALL {
            let ips = self.ips_of(family).count();
            let pooled = server.relay_pairs_pooled(family);
            if ips == 0 || pooled >= low {
                continue;
            }
            for count in pooled..high {
                let Some(ip) = self.ips_of(family).nth(count % ips).filter(|_| self.vacant.len() >= 2) else { break };
                if let Err(error) = self.bind_pair(ip, server, poller) {
                    // An error without a code means that no two neighbouring ports were free.
                    if error.raw_os_error().is_some() {
                        self.counts.record(&error);
                    }
                    self.pairs_retry_at = Some(now.saturating_add(RETRY));
                    return;
                }
            }
        }
    }

    /// Returns the low and high marks of the pool of pairs of one family.
    fn pairs_kept(&self) -> (usize, usize) {
        let high = PAIRS_HIGH.min(self.slots.len() / SOCKETS_PER_PAIR);
        (PAIRS_LOW.min(high), high)
    }

    fn ips_of(&self, family: IpFamily) -> impl Iterator<Item = usize> {
        let ips = self.plan.ips.iter().enumerate();
        ips.filter(move |(_, ip)| IpFamily::of(ip.bound) == family).map(|(index, _)| index)
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
            tracing::error!(?fault, relay = even.0, "the engine rejected a pair of relay sockets");
            self.close(even);
            self.close(odd);
        }
        Ok(())
    }

    /// Adds a socket under a free id and polls it.
    fn keep(&mut self, ip: usize, socket: UdpSocket, poller: &Poller) -> io::Result<RelayId> {
        let Some(&id) = self.vacant.last() else { return Err(io::ErrorKind::OutOfMemory.into()) };
        socket.set_buffers(SOCKET_BUFFER, false)?;
        socket.enable_gro()?;
        socket.enable_icmp_errors()?;
        poller.add(&socket, relay_key(RelayId(id)))?;
        self.vacant.pop();
        self.slots[id as usize] = Some(Relay { socket, ip, df_socket: None });
        self.counts.bound += 1;
        Ok(RelayId(id))
    }

    /// Discards what a socket received in quarantine, then returns it to the pool or closes it if the pool is full.
    fn end_quarantine(&mut self, id: RelayId, server: &mut Server, poller: &Poller, inbox: &mut Inbox) {
        server.end_rest(id);
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
                    self.counts.record(&error);
                    break;
                }
            }
        }
        let family = IpFamily::of(relay.socket.local_addr().ip());
        let is_surplus = server.relays_pooled(family) >= POOL_HIGH * self.ips_of(family).count();
        match poller.add(&relay.socket, relay_key(id)) {
            Ok(()) if !is_surplus => self.register(id, server),
            Ok(()) => self.close(id),
            Err(error) => {
                self.counts.record(&error);
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
            tracing::error!(?fault, relay = id.0, "the engine rejected a relay socket");
            self.close(id);
        }
    }

    fn address(&self, id: RelayId) -> Option<RelayAddress> {
        let relay = self.slots.get(id.0 as usize)?.as_ref()?;
        let bound = relay.socket.local_addr();
        Some(RelayAddress { bound, external: SocketAddr::new(self.plan.ips[relay.ip].external, bound.port()) })
    }
}

/// Binds a socket to an unpredictable port of `ports`.
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

/// Binds two sockets, to an unpredictable even port of `ports` and to the next port (RFC 8656 section 7.2).
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
