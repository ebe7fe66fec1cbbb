//! The relays of one worker: those of its allocations, and a quarantine after each. Each has a socket, or all share one.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tt_model::{IpFamily, Nanos};
use tt_net::{FaultCounts, IcmpReport, Inbox, IoFault, Poller, RawIcmpInbox, RawOutbox, Received, Sent, UdpSocket};
use tt_turn::Server;
use tt_turn::relay::{
    PortNeed, RelayAddress, RelayDemand, RelayError, RelayId, RelayNeed, Reservation, ReservationEnd,
};

use crate::poll_key::{relay_key, relay_of, shared_key};
use crate::relay_pool::{Ports, RelayPlan, RelayPool, RelayPort, WorkerSockets};

/// Quarantine of a socket between two allocations: late datagrams of the first never reach the second.
const QUARANTINE: Nanos = Nanos::from_secs(5);
/// Receive buffer of a relay socket in bytes, if the system allows it: one burst of a peer.
const SOCKET_BUFFER: usize = 1 << 20;
/// Delay before the end of a reservation is tried again, if another worker is about to claim it.
const RETRY: Nanos = Nanos::from_secs(1);
/// Datagrams that are discarded at once from a socket that was idle. Its receive buffer holds fewer.
const DISCARDED_MAX: usize = 64;
/// Sockets whose quarantine ends between two rounds.
const RESTED_MAX: usize = 16;

/// Counters of the relay sockets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelayCounts {
    /// Sockets of this worker: allocated or in quarantine.
    pub(crate) bound: u64,
    /// Sockets in quarantine.
    pub(crate) quarantined: u64,
    /// Datagrams received during quarantine or while the socket was idle.
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

/// The relays of one worker. The index of a port is its [`RelayId`].
///
/// Idle sockets are in the pool of the process. The engine gets one when an Allocate needs it: so every worker can use
/// every port.
#[derive(Debug)]
pub(crate) struct Relays {
    pool: Arc<RelayPool>,
    /// Grows up to the highest number in use, so that memory that is never used is not touched.
    slots: Vec<Option<RelayPort>>,
    vacant: Vec<u32>,
    /// Sockets that the engine got for the current Allocate.
    lent: Vec<RelayId>,
    /// The reserved socket that the engine got for it, and its token. The pool has another descriptor.
    lent_reserved: Option<(RelayId, u64)>,
    quarantined: VecDeque<(Nanos, RelayId)>,
    worker: u16,
    /// The sockets that all relays share; `None` if each has its own.
    shared: Option<WorkerSockets>,
    pub(crate) counts: RelayCounts,
}

/// Passes the addresses of a plan to the engine, so that it knows its families and its own addresses.
///
/// # Errors
/// Too many addresses.
pub(crate) fn announce(plan: &RelayPlan, server: &mut Server) -> Result<(), RelayError> {
    plan.ips.iter().try_for_each(|ip| {
        let at = |addr| SocketAddr::new(addr, plan.ports.low);
        server.add_relay_address(RelayAddress { bound: at(ip.bound), external: at(ip.external) })
    })
}

impl Relays {
    /// Creates the relays of a worker, which share `shared` if there are such sockets.
    pub(crate) fn new(pool: Arc<RelayPool>, worker: u16, shared: Option<WorkerSockets>) -> Self {
        let sockets_most = pool.sockets_most();
        Self {
            pool,
            slots: Vec::with_capacity(sockets_most as usize),
            vacant: (0..sockets_most).rev().collect(),
            lent: Vec::new(),
            lent_reserved: None,
            quarantined: VecDeque::new(),
            worker,
            shared,
            counts: RelayCounts::default(),
        }
    }

    /// Returns the sockets that all relays share, for the relays of an engine that follows a panic.
    pub(crate) fn take_shared(&mut self) -> Option<WorkerSockets> {
        let mut shared = self.shared.take()?;
        shared.forget_all();
        Some(shared)
    }

    /// Returns the keys of the sockets that all relays share.
    pub(crate) fn shared_keys(&self) -> impl Iterator<Item = u64> {
        self.shared.iter().flat_map(|shared| shared.families().map(shared_key))
    }

    /// Receives datagrams to the relays of a family from the socket that they share.
    pub(crate) fn receive_shared(
        &mut self,
        now: Nanos,
        family: IpFamily,
        inbox: &mut Inbox,
        most: usize,
    ) -> io::Result<Received> {
        let Some((shared, ports)) = self.shared.as_ref().zip(self.pool.shared()) else {
            return Ok(Received { drained: true, ..Received::default() });
        };
        let received = shared.receive(now, (ports, family), inbox, most)?;
        // To ports that have just begun to rest.
        self.counts.late += received.unclaimed;
        Ok(received)
    }

    /// Reads the next ICMP errors about datagrams of relays that share a socket. Returns whether those were all.
    pub(crate) fn receive_icmp(
        &self,
        family: IpFamily,
        inbox: &mut RawIcmpInbox,
        report: impl FnMut(RelayId, IcmpReport),
    ) -> io::Result<bool> {
        self.shared.as_ref().map_or(Ok(true), |shared| shared.receive_icmp(family, inbox, report))
    }

    /// Returns the number of the raw socket by which a relay sends, and its address; `None` if it has a socket or is gone.
    pub(crate) fn exit(&self, relay: RelayId) -> Option<(usize, SocketAddr)> {
        let port = self.slots.get(relay.0 as usize)?.as_ref().filter(|port| port.socket().is_none())?;
        Some((port.ip, port.addr()))
    }

    /// Sends what relays that share a socket have for peers.
    pub(crate) fn flush_shared(&mut self, outbox: &mut RawOutbox, inbox: &Inbox) -> Sent {
        self.shared.as_mut().map_or_else(Sent::default, |shared| shared.flush(outbox, inbox))
    }

    /// Returns the datagrams that the kernel has dropped since the last call, because their port had its share of the
    /// receive buffer.
    pub(crate) fn take_over(&self) -> u64 {
        self.shared.as_ref().zip(self.pool.shared()).map_or(0, |(shared, ports)| shared.take_over(ports))
    }

    /// Returns whether all relays share a socket.
    pub(crate) const fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the socket of `id`.
    pub(crate) fn socket(&self, id: RelayId) -> Option<&UdpSocket> {
        self.slots.get(id.0 as usize)?.as_ref()?.socket()
    }

    /// Returns the relay socket of `key`.
    pub(crate) fn socket_of(&self, key: u64) -> Option<&UdpSocket> {
        self.socket(relay_of(key)?)
    }

    /// Passes every relay address to the engine, so that it knows its families and its own addresses.
    ///
    /// # Errors
    /// Too many addresses.
    pub(crate) fn announce(&self, server: &mut Server) -> Result<(), RelayError> {
        announce(&self.pool.plan(), server)
    }

    /// Adds what an Allocate needs to the engine, if the pool has it. Call [`Relays::settle`] after the Allocate.
    pub(crate) fn lend(&mut self, now: Nanos, need: RelayNeed, server: &mut Server, poller: &Poller) {
        let (families, port) = match need {
            RelayNeed::Free { families, port } => (families, port),
            RelayNeed::Reserved(token) => {
                if let Err(error) = self.lend_reserved(token, (server, poller)) {
                    self.counts.record(&error);
                }
                return;
            }
        };
        for family in IpFamily::ALL.into_iter().filter(|family| families[*family as usize]) {
            let lent = match port {
                PortNeed::Any => self.lend_one(now, family, Ports::Any, (server, poller)),
                PortNeed::Even => self.lend_one(now, family, Ports::Even, (server, poller)),
                PortNeed::Pair => self.lend_pair(now, family, (server, poller)),
            };
            if let Err(error) = lent {
                self.counts.record(&error);
            }
        }
    }

    fn lend_one(
        &mut self,
        now: Nanos,
        family: IpFamily,
        ports: Ports,
        (server, poller): (&mut Server, &Poller),
    ) -> io::Result<()> {
        let Some(bound) = self.pool.take(now, family, ports)? else { return Ok(()) };
        let Some((id, address)) = self.keep(bound, poller)? else { return Ok(()) };
        if let Err(fault) = server.add_relay(id, address) {
            tracing::error!(?fault, relay = id.0, "the engine rejected a relay socket");
        }
        Ok(())
    }

    fn lend_pair(&mut self, now: Nanos, family: IpFamily, (server, poller): (&mut Server, &Poller)) -> io::Result<()> {
        let Some([even, odd]) = self.pool.take_pair(now, family)? else { return Ok(()) };
        let (even, odd) = (self.keep(even, poller), self.keep(odd, poller));
        let (Some(even), Some(odd)) = (even?, odd?) else { return Ok(()) };
        if let Err(fault) = server.add_relay_pair(even, odd) {
            tracing::error!(?fault, relay = even.0.0, "the engine rejected a pair of relay sockets");
        }
        Ok(())
    }

    fn lend_reserved(&mut self, token: u64, (server, poller): (&mut Server, &Poller)) -> io::Result<()> {
        let Some((bound, reservation)) = self.pool.reserved.lend(token)? else { return Ok(()) };
        let Some(id) = self.vacant.last().copied().map(RelayId) else { return Ok(()) };
        self.watch(id, &bound, poller)?;
        self.occupy(id, bound);
        self.lent_reserved = Some((id, token));
        if let Err(fault) = server.add_reserved(id, reservation) {
            tracing::error!(?fault, relay = id.0, "the engine rejected a reserved relay socket");
        }
        Ok(())
    }

    /// Prepares the lent sockets that the engine uses, and returns the others to the pool. Call it before the response
    /// is sent: a reserved socket is then where every worker finds it.
    pub(crate) fn settle(&mut self, server: &mut Server, poller: &Poller) {
        while let Some((id, reservation)) = server.poll_reservation() {
            if let Some(port) = self.vacate(id, poller) {
                if let Some((shared, ports)) = self.shared.as_mut().zip(self.pool.shared()) {
                    // What arrives until it is claimed is late, and counted here.
                    shared.open(ports, &port, None);
                }
                self.pool.reserved.put(port, reservation, reservation.expires());
            }
        }
        if let Some((id, token)) = self.lent_reserved.take() {
            if server.withdraw_relay(id) || !server.has_relay(id) {
                self.vacate(id, poller);
            } else {
                // The descriptor of the worker is the only one from now on.
                self.pool.reserved.take(token);
                self.open(id);
            }
        }
        while let Some(id) = self.lent.pop() {
            if server.withdraw_relay(id) || !server.has_relay(id) {
                if let Some(bound) = self.vacate(id, poller) {
                    self.pool.give(bound);
                }
            } else {
                self.open(id);
            }
        }
    }

    /// Quarantines retired sockets, and returns sockets after their quarantine to the pool, which is refilled.
    pub(crate) fn maintain_pool(&mut self, now: Nanos, server: &mut Server, poller: &Poller, inbox: &mut Inbox) {
        while let Some((bound, reservation)) = self.pool.reserved.take_due(now) {
            self.end_reservation(now, bound, reservation, (server, poller));
        }
        while let Some(RelayDemand::Retire(id)) = server.poll_relay() {
            // Not polled during quarantine: datagrams stay in the kernel's bounded queue.
            if let Some(Err(error)) = self.socket(id).map(|socket| poller.remove(socket)) {
                self.counts.record(&error);
            }
            self.close(id);
            self.quarantined.push_back((now.saturating_add(QUARANTINE), id));
        }
        for _ in 0..RESTED_MAX {
            let Some((_, id)) = self.quarantined.pop_front_if(|(until, _)| *until <= now) else { break };
            self.end_quarantine(id, server, inbox);
        }
        if let Err(error) = self.pool.refill(now) {
            self.counts.record(&error);
        }
        self.counts.quarantined = self.quarantined.len() as u64;
    }

    /// Returns when [`Relays::maintain_pool`] must be called next.
    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        let rested = self.quarantined.front().map(|(until, _)| *until);
        [rested, self.pool.reserved.next_at(), self.pool.refill_at()].into_iter().flatten().min()
    }

    /// Ends a reservation whose time is over, whichever worker made it. Its socket rests here.
    fn end_reservation(
        &mut self,
        now: Nanos,
        bound: RelayPort,
        reservation: Reservation,
        (server, poller): (&mut Server, &Poller),
    ) {
        let id = self.vacant.last().copied().map(RelayId);
        match id.map(|id| (id, server.end_reservation(now, id, &reservation))) {
            Some((id, Ok(ReservationEnd::Retired))) => {
                if let Some(Err(error)) = bound.socket().map(|socket| poller.add(socket, relay_key(id))) {
                    self.counts.record(&error);
                }
                self.occupy(id, bound);
            }
            // The worker that has claimed it has another descriptor.
            Some((_, Ok(ReservationEnd::Claimed))) => {}
            Some((_, Ok(ReservationEnd::Pending) | Err(_))) | None => {
                self.pool.reserved.put(bound, reservation, now.saturating_add(RETRY));
            }
        }
    }

    /// Discards what a socket received in quarantine, then returns it to the pool.
    fn end_quarantine(&mut self, id: RelayId, server: &mut Server, inbox: &mut Inbox) {
        let Some(Some(port)) = self.slots.get(id.0 as usize) else { return };
        inbox.clear();
        while let Some(socket) = port.socket() {
            match inbox.receive(socket, relay_key(id), inbox.room()) {
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
        self.give_back(id);
        server.end_rest(id);
    }

    /// Discards what an idle socket received, polls it under a free id, and adds it to the lent ones.
    fn keep(&mut self, port: RelayPort, poller: &Poller) -> io::Result<Option<(RelayId, RelayAddress)>> {
        let Some(id) = self.vacant.last().copied().map(RelayId) else {
            self.pool.give(port);
            return Ok(None);
        };
        if let Err(error) = self.watch(id, &port, poller) {
            self.pool.give(port);
            return Err(error);
        }
        let bound = port.addr();
        let external = SocketAddr::new(self.pool.plan().ips[port.ip].external, bound.port());
        self.occupy(id, port);
        self.lent.push(id);
        Ok(Some((id, RelayAddress { bound, external })))
    }

    /// Discards what an idle socket received, and polls it.
    fn watch(&mut self, id: RelayId, port: &RelayPort, poller: &Poller) -> io::Result<()> {
        let Some(socket) = port.socket() else { return Ok(()) };
        self.counts.late += socket.discard(DISCARDED_MAX);
        poller.add(socket, relay_key(id))
    }

    /// Prepares the port of a relay that the engine uses.
    fn open(&mut self, id: RelayId) {
        let Some(Some(port)) = self.slots.get(id.0 as usize) else { return };
        if let Some(socket) = port.socket() {
            // A smaller buffer loses datagrams of a burst earlier, which is counted.
            let _ = socket.set_buffers(SOCKET_BUFFER, false);
        } else if let Some((shared, ports)) = self.shared.as_mut().zip(self.pool.shared()) {
            shared.open(ports, port, Some(id));
        }
    }

    /// Ends the relay of a port without a socket.
    fn close(&mut self, id: RelayId) {
        let Some(Some(port)) = self.slots.get(id.0 as usize) else { return };
        if let Some(shared) = &mut self.shared {
            shared.close(port);
        }
    }

    /// Gives a port the last vacant number.
    fn occupy(&mut self, id: RelayId, port: RelayPort) {
        debug_assert_eq!(self.vacant.last(), Some(&id.0), "the number is the last vacant one");
        self.vacant.pop();
        let index = id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.slots[index] = Some(port);
        self.counts.bound += 1;
    }

    /// Takes a polled port from its number.
    fn vacate(&mut self, id: RelayId, poller: &Poller) -> Option<RelayPort> {
        self.close(id);
        let port = self.slots.get_mut(id.0 as usize).and_then(Option::take)?;
        if let Some(Err(error)) = port.socket().map(|socket| poller.remove(socket)) {
            self.counts.record(&error);
        }
        self.vacant.push(id.0);
        self.counts.bound -= 1;
        Some(port)
    }

    fn give_back(&mut self, id: RelayId) {
        if let Some(port) = self.slots.get_mut(id.0 as usize).and_then(Option::take) {
            self.vacant.push(id.0);
            self.counts.bound -= 1;
            self.pool.give(port);
        }
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        // A panic may leave a lent reserved port, which the pool has and counts.
        let lent_reserved = self.lent_reserved.map(|(id, _)| id.0 as usize);
        let mut closed = 0;
        for (index, port) in self.slots.drain(..).enumerate() {
            match port {
                Some(port) if Some(index) != lent_reserved && port.socket().is_none() => self.pool.give(port),
                Some(_) if Some(index) != lent_reserved => closed += 1,
                Some(_) | None => {}
            }
        }
        self.pool.forget(closed);
        if let Some((shared, ports)) = self.shared.take().zip(self.pool.shared()) {
            ports.keep(self.worker, shared);
        }
    }
}
