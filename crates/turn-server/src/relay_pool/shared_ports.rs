//! Relays without sockets of their own: each worker has one socket for all of them, and a table says whose a port is.
//!
//! An `sk_lookup` program in the kernel gives the datagrams of a port to the socket of its worker
//! ([`tt_path::Steering`]); raw sockets send. An allocation costs an entry of a table.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tt_model::{IpFamily, Nanos};
use tt_net::{
    FragmentingSockets, IcmpReport, IcmpSocket, Inbox, Poller, RawIcmpInbox, RawOutbox, RawSocket, Received, Sent,
    UdpSocket,
};
use tt_path::{SteeredPort, Steering};
use tt_turn::relay::RelayId;
use turn_config::{RelaySockets, TurnConfig};

use super::binding::{Ports, find_pair, find_port};
use super::{RelayPlan, RelayPort, ephemeral};
use crate::poll_key::{icmp_key, relay_key, shared_key};

/// Receive and send buffers in bytes: the relays of a worker share them.
const BUFFER: usize = 8 << 20;
/// Minimum interval at which the program learns that a socket is empty: its counts are in the cache of another CPU.
const DRAINED_EVERY: Nanos = Nanos::from_millis(1);
const PORTS: usize = 1 << 16;

/// The ports of all workers, and the sockets of those that do not run.
pub(crate) struct SharedPorts {
    steering: Steering,
    /// The relay addresses of the start, by their place in the plan.
    ips: Vec<IpAddr>,
    /// Ports that are not free.
    open: AtomicU32,
    spare: Vec<Mutex<Option<WorkerSockets>>>,
}

/// The sockets for all relays of one worker.
#[derive(Debug)]
pub(crate) struct WorkerSockets {
    /// By family, with the number under which the program knows each.
    udp: [Option<Receiver>; 2],
    icmp: [Option<IcmpSocket>; 2],
    /// By the place of their address.
    exits: Vec<RawSocket>,
    fragmenting: FragmentingSockets,
    ips: Vec<IpAddr>,
    /// The relay of each port, plus one, by the place of the address.
    relays: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct Receiver {
    number: u16,
    socket: UdpSocket,
    /// When the program may learn again that the socket is empty.
    note_from: Cell<Nanos>,
}

impl SharedPorts {
    /// Opens the sockets of all workers if `config` says so. `None` if each relay has its own; a line of the log says why.
    pub(crate) fn start(config: &TurnConfig) -> Option<Arc<Self>> {
        if config.relay_sockets == RelaySockets::Each {
            return None;
        }
        match Self::open(config) {
            Ok(ports) => {
                tracing::info!(workers = config.workers, "the relays of a worker share a socket");
                Some(Arc::new(ports))
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "relay_sockets: each relay has a socket");
                None
            }
        }
    }

    fn open(config: &TurnConfig) -> anyhow::Result<Self> {
        ephemeral::check(config.relay_ports)?;
        let ips: Vec<IpAddr> = config.relay_ips.iter().map(|ip| ip.bound).collect();
        let mut number = 0;
        let workers = (0..config.workers).map(|_| WorkerSockets::new(&ips, &mut number));
        let workers = workers.collect::<anyhow::Result<Vec<_>>>()?;
        let receivers: Vec<_> = workers.iter().flat_map(|worker| worker.udp.iter().flatten()).collect();
        let steering = Steering::load(&ips, &receivers.iter().map(|one| one.socket.as_fd()).collect::<Vec<_>>())?;
        let spare = workers.into_iter().map(|worker| Mutex::new(Some(worker))).collect();
        let ports = Self { steering, ips, open: AtomicU32::new(0), spare };
        // A program that has one of them keeps it: no relay gets it.
        let taken = ephemeral::in_use(config.relay_ports).context("cannot read the sockets of this host")?;
        for (place, port) in (0..ports.ips.len()).flat_map(|place| taken.iter().map(move |port| (place, *port))) {
            let _ = ports.steering.take(SteeredPort { place, port });
            ports.steering.pass(SteeredPort { place, port });
        }
        Ok(ports)
    }

    /// Returns the number of workers that there are sockets for.
    pub(crate) fn workers(&self) -> usize {
        self.spare.len()
    }

    /// Returns the sockets of a worker that starts.
    pub(crate) fn sockets(&self, worker: u16) -> Option<WorkerSockets> {
        self.spare.get(usize::from(worker))?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the sockets of a worker that has ended.
    pub(crate) fn keep(&self, worker: u16, sockets: WorkerSockets) {
        if let Some(spare) = self.spare.get(usize::from(worker)) {
            *spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(sockets);
        }
    }

    /// Returns an error if relays of `next` could not share sockets.
    pub(super) fn try_plan(&self, next: &RelayPlan) -> Result<(), (IpAddr, io::Error)> {
        for (place, ip) in next.in_use() {
            if place >= self.ips.len() {
                let restart = "a restart is needed for a new address while relays share sockets";
                return Err((ip.bound, io::Error::other(restart)));
            }
            ephemeral::check(next.ports).map_err(|error| (ip.bound, error))?;
        }
        Ok(())
    }

    /// Takes an unpredictable free port of the first of these addresses that has one.
    pub(super) fn take(
        &self,
        plan: &RelayPlan,
        ips: impl Iterator<Item = usize>,
        ports: Ports,
    ) -> io::Result<Option<RelayPort>> {
        self.take_any(plan, ips, 1, |ip| find_port(plan.ports, ports, |port| self.take_port(plan, ip, port)))
    }

    /// Takes an unpredictable even port and the next one.
    pub(super) fn take_pair(
        &self,
        plan: &RelayPlan,
        ips: impl Iterator<Item = usize>,
    ) -> io::Result<Option<[RelayPort; 2]>> {
        let pair = |ip, even| {
            let low = self.take_port(plan, ip, even)?;
            let odd = self.take_port(plan, ip, even + 1);
            odd.map(|odd| [low, odd]).inspect_err(|_| self.steering.give(SteeredPort { place: ip, port: even }))
        };
        self.take_any(plan, ips, 2, |ip| find_pair(plan.ports, |even| pair(ip, even)))
    }

    fn take_any<T>(
        &self,
        plan: &RelayPlan,
        ips: impl Iterator<Item = usize>,
        count: u32,
        take: impl Fn(usize) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let more = |open: u32| Some(open + count).filter(|open| *open <= plan.sockets_max);
        if self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return Ok(None);
        }
        let mut failed = None;
        for ip in ips.filter(|ip| *ip < self.ips.len()) {
            match take(ip) {
                Ok(taken) => return Ok(Some(taken)),
                Err(error) => failed = Some(error),
            }
        }
        self.open.fetch_sub(count, Ordering::Relaxed);
        failed.map_or(Ok(None), Err)
    }

    fn take_port(&self, plan: &RelayPlan, ip: usize, port: u16) -> io::Result<RelayPort> {
        if !self.steering.take(SteeredPort { place: ip, port }) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(RelayPort::shared(SocketAddr::new(plan.ips[ip].bound, port), ip))
    }

    pub(super) fn give(&self, ip: usize, port: u16) {
        self.steering.give(SteeredPort { place: ip, port });
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for SharedPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPorts").field("ips", &self.ips).field("open", &self.open).finish_non_exhaustive()
    }
}

impl WorkerSockets {
    /// Opens the sockets of one worker; `number` counts those that receive.
    fn new(ips: &[IpAddr], number: &mut u16) -> anyhow::Result<Self> {
        let is_used = |family: IpFamily| ips.iter().any(|ip| IpFamily::of(*ip) == family);
        let (mut udp, mut icmp) = ([None, None], [None, None]);
        for family in IpFamily::ALL.into_iter().filter(|family| is_used(*family)) {
            let socket = UdpSocket::steered(family).context("cannot open a socket for relays")?;
            // A smaller buffer loses datagrams of a burst earlier, which is counted.
            let _ = socket.set_buffers(BUFFER, true);
            udp[family as usize] = Some(Receiver { number: *number, socket, note_from: Cell::new(Nanos(0)) });
            *number += 1;
            icmp[family as usize] = Some(IcmpSocket::open(family).context("raw sockets need CAP_NET_RAW")?);
        }
        let exit = |ip: &IpAddr| {
            let socket = RawSocket::open(*ip).with_context(|| format!("cannot open a raw socket on {ip}"))?;
            let _ = socket.set_send_buffer(BUFFER);
            Ok(socket)
        };
        let exits = ips.iter().map(exit).collect::<anyhow::Result<_>>()?;
        let relays = ips.iter().map(|_| vec![0; PORTS]).collect();
        Ok(Self { udp, icmp, exits, fragmenting: FragmentingSockets::default(), ips: ips.to_vec(), relays })
    }

    /// Has the poller report them.
    pub(crate) fn watch(&self, poller: &Poller) -> io::Result<()> {
        for family in IpFamily::ALL {
            if let Some(receiver) = &self.udp[family as usize] {
                poller.add(&receiver.socket, shared_key(family))?;
            }
            if let Some(icmp) = &self.icmp[family as usize] {
                poller.add(icmp, icmp_key(family))?;
            }
        }
        Ok(())
    }

    /// Returns the families of their sockets.
    pub(crate) fn families(&self) -> impl Iterator<Item = IpFamily> {
        IpFamily::ALL.into_iter().filter(|family| self.udp[*family as usize].is_some())
    }

    /// Begins to receive what arrives at a port: datagrams to `relay`, or late ones for `None`.
    pub(crate) fn open(&mut self, ports: &SharedPorts, port: &RelayPort, relay: Option<RelayId>) {
        self.relays[port.ip][usize::from(port.addr().port())] = relay.map_or(0, |relay| relay.0 + 1);
        if let Some(receiver) = &self.udp[IpFamily::of(port.addr().ip()) as usize] {
            ports.steering.steer(SteeredPort { place: port.ip, port: port.addr().port() }, receiver.number);
        }
    }

    /// Ends the relay of a port: what still arrives is late.
    pub(crate) fn close(&mut self, port: &RelayPort) {
        self.relays[port.ip][usize::from(port.addr().port())] = 0;
        self.fragmenting.close(port.addr());
    }

    /// Forgets all relays, after a panic.
    pub(crate) fn forget_all(&mut self) {
        self.relays.iter_mut().for_each(|relays| relays.fill(0));
        self.fragmenting = FragmentingSockets::default();
    }

    /// Returns the relay at an address of this worker.
    fn relay_at(&self, to: SocketAddr) -> Option<RelayId> {
        let place = self.ips.iter().position(|ip| *ip == to.ip())?;
        self.relays[place][usize::from(to.port())].checked_sub(1).map(RelayId)
    }

    /// Receives datagrams to relays of a family.
    pub(crate) fn receive(
        &self,
        now: Nanos,
        (ports, family): (&SharedPorts, IpFamily),
        inbox: &mut Inbox,
        most: usize,
    ) -> io::Result<Received> {
        let Some(receiver) = &self.udp[family as usize] else { return Ok(Received::default()) };
        let received = inbox.receive_steered(&receiver.socket, most, |to| self.relay_at(to).map(relay_key))?;
        if received.drained && now >= receiver.note_from.get() {
            ports.steering.note_drained(receiver.number);
            receiver.note_from.set(now.saturating_add(DRAINED_EVERY));
        }
        Ok(received)
    }

    /// Reads the next ICMP errors of a family. Returns whether those were all.
    pub(crate) fn receive_icmp(
        &self,
        family: IpFamily,
        inbox: &mut RawIcmpInbox,
        mut report: impl FnMut(RelayId, IcmpReport),
    ) -> io::Result<bool> {
        let Some(socket) = &self.icmp[family as usize] else { return Ok(true) };
        inbox.receive(socket, |from, error| {
            if let Some(relay) = self.relay_at(from) {
                report(relay, error);
            }
        })
    }

    /// Sends what is in the outbox.
    pub(crate) fn flush(&mut self, outbox: &mut RawOutbox, inbox: &Inbox) -> Sent {
        outbox.flush(inbox, &self.exits, &mut self.fragmenting)
    }

    /// Returns the datagrams that the program has dropped since the last call, because their port had its share of the
    /// receive buffer.
    pub(crate) fn take_over(&self, ports: &SharedPorts) -> u64 {
        self.udp.iter().flatten().map(|receiver| ports.steering.take_over(receiver.number)).sum()
    }
}
