//! Relay sockets that no worker uses, and the number of all: one pool for the process.

mod binding;
mod ephemeral;
mod plan;
mod reserved;
mod shared_ports;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tt_model::{IpFamily, Nanos};
use tt_net::UdpSocket;

pub(crate) use binding::Ports;
use binding::{bind_random, bind_random_pair, port_at, random};
pub(crate) use plan::RelayPlan;
use reserved::ReservedPorts;
pub(crate) use shared_ports::{SharedPorts, WorkerSockets};

/// Delay before sockets are bound again after a failure (no descriptors, no free port).
const RETRY: Nanos = Nanos::from_secs(1);
/// Idle sockets of one address: bound up to `IDLE_HIGH` when fewer than `IDLE_LOW` are left.
const IDLE_LOW: usize = 64;
const IDLE_HIGH: usize = 128;
/// Sockets that are bound at once, between two rounds: clients wait meanwhile.
const REFILL_MAX: usize = 2;
/// Receive buffer of an idle socket in bytes; the kernel's minimum is larger. What arrives is discarded.
const IDLE_BUFFER: usize = 1;

/// A port for a relay.
#[derive(Debug)]
pub(crate) struct RelayPort {
    /// Index of its address in the plan.
    pub(crate) ip: usize,
    inlet: Inlet,
}

/// What receives for a port. A worker has one for each relay, so the address of a socket is not here again.
#[derive(Debug)]
enum Inlet {
    /// The socket that is bound to it.
    Own(UdpSocket),
    /// The socket that the relays of a worker share; this is the port's address.
    Shared(SocketAddr),
}

impl RelayPort {
    fn bound(socket: UdpSocket, ip: usize) -> Self {
        Self { ip, inlet: Inlet::Own(socket) }
    }

    fn shared(addr: SocketAddr, ip: usize) -> Self {
        Self { ip, inlet: Inlet::Shared(addr) }
    }

    /// Returns the address and port.
    pub(crate) fn addr(&self) -> SocketAddr {
        match &self.inlet {
            Inlet::Own(socket) => socket.local_addr(),
            Inlet::Shared(addr) => *addr,
        }
    }

    /// Returns the socket that is bound to it; `None` if the relays of a worker share one.
    pub(crate) const fn socket(&self) -> Option<&UdpSocket> {
        match &self.inlet {
            Inlet::Own(socket) => Some(socket),
            Inlet::Shared(_) => None,
        }
    }

    /// Returns a second descriptor of its socket.
    fn try_clone(&self) -> io::Result<Self> {
        let inlet = match &self.inlet {
            Inlet::Own(socket) => Inlet::Own(socket.try_clone()?),
            Inlet::Shared(addr) => Inlet::Shared(*addr),
        };
        Ok(Self { ip: self.ip, inlet })
    }
}

/// The idle and the reserved relay sockets of all workers, or the ports that share sockets. Used when an allocation begins
/// and when its port has rested, never per datagram.
#[derive(Debug)]
pub(crate) struct RelayPool {
    plan: ArcSwap<RelayPlan>,
    /// Sockets that one worker has room for.
    sockets_most: u32,
    /// Those that a token reserves.
    pub(crate) reserved: ReservedPorts,
    /// The ports, if they have no sockets.
    shared: Option<Arc<SharedPorts>>,
    sockets: Mutex<Sockets>,
    needs_refill: AtomicBool,
}

#[derive(Debug)]
struct Sockets {
    /// By address, then by port.
    idle: Vec<BTreeMap<u16, UdpSocket>>,
    /// All sockets: idle, allocated, reserved and resting.
    open: u32,
    /// By address, when binding single sockets and pairs is tried again after a failure.
    retry_at: Vec<[Nanos; 2]>,
}

impl Sockets {
    fn new(addresses: usize) -> Self {
        let mut sockets = Self { idle: Vec::new(), open: 0, retry_at: Vec::new() };
        sockets.extend(addresses);
        sockets
    }

    /// Has room for the sockets of further addresses, and tries all of them again.
    fn extend(&mut self, addresses: usize) {
        self.idle.resize_with(addresses, BTreeMap::new);
        self.retry_at = vec![[Nanos(0); 2]; addresses];
    }
}

impl RelayPool {
    /// Creates the pool of `plan`; later plans may have up to `sockets_most` sockets.
    pub(crate) fn new(plan: RelayPlan, sockets_most: u32, shared: Option<Arc<SharedPorts>>) -> Self {
        let sockets = Mutex::new(Sockets::new(plan.ips.len()));
        let (plan, reserved) = (ArcSwap::from_pointee(plan), ReservedPorts::default());
        Self { plan, sockets_most, reserved, shared, sockets, needs_refill: AtomicBool::new(false) }
    }

    /// Returns the ports, if they have no sockets.
    pub(crate) fn shared(&self) -> Option<&Arc<SharedPorts>> {
        self.shared.as_ref()
    }

    /// Returns the plan in force.
    pub(crate) fn plan(&self) -> Guard<Arc<RelayPlan>> {
        self.plan.load()
    }

    /// Returns the maximum number of sockets of any plan.
    pub(crate) fn sockets_most(&self) -> u32 {
        self.sockets_most
    }

    /// Binds a socket on every address of `next` that is new or has other ports now, so that the plan can be put in force.
    ///
    /// # Errors
    /// An address on which no socket can be bound, with the cause.
    pub(crate) fn try_plan(&self, next: &RelayPlan) -> Result<(), (IpAddr, io::Error)> {
        if let Some(shared) = &self.shared {
            return shared.try_plan(next);
        }
        let plan = self.plan();
        // Without a free port an address in use is full, and no reason to reject the plan.
        let is_in_use = |place: usize| plan.ports == next.ports && plan.used.get(place) == Some(&true);
        next.in_use().filter(|(place, _)| !is_in_use(*place)).try_for_each(|(_, ip)| {
            bind_random(ip.bound, next.ports, Ports::Any).map(drop).map_err(|error| (ip.bound, error))
        })
    }

    /// Puts `next`, a successor of the plan, in force. Idle sockets that are not of it are closed; allocations keep theirs.
    pub(crate) fn replace_plan(&self, next: RelayPlan) {
        let mut sockets = self.sockets();
        sockets.extend(next.ips.len());
        let mut closed = 0;
        for (ip, idle) in sockets.idle.iter_mut().enumerate() {
            let before = idle.len();
            idle.retain(|port, _| next.has(ip, *port));
            closed += before - idle.len();
        }
        sockets.open -= closed as u32;
        // Under the lock: whoever returns a socket goes by the new plan from here on.
        self.plan.store(Arc::new(next));
        drop(sockets);
        self.needs_refill.store(true, Ordering::Relaxed);
    }

    /// Binds the first sockets of every address.
    ///
    /// # Errors
    /// An address on which no socket can be bound, with the cause.
    pub(crate) fn fill(&self) -> Result<(), (SocketAddr, io::Error)> {
        let plan = self.plan();
        for (ip, addresses) in plan.in_use().filter(|_| self.shared.is_none()) {
            match self.bind_up_to(Nanos(0), &plan, ip, usize::MAX) {
                Err(error) if self.sockets().idle[ip].is_empty() => {
                    return Err((SocketAddr::new(addresses.bound, plan.ports.low), error));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Binds a few idle sockets if too few were left. Call it again at [`RelayPool::refill_at`].
    ///
    /// # Errors
    /// The first error of a system call; the next attempt at this address is a second later.
    pub(crate) fn refill(&self, now: Nanos) -> io::Result<()> {
        if self.refill_at().is_none_or(|at| now < at) || !self.needs_refill.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let (plan, mut left, mut failed) = (self.plan(), REFILL_MAX, None);
        for (ip, _) in plan.in_use() {
            match self.bind_up_to(now, &plan, ip, left) {
                Ok(bound) => left -= bound,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if left == 0 || failed.is_some() {
            self.needs_refill.store(true, Ordering::Relaxed);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Returns when sockets are to be bound, or `None` if enough are idle.
    pub(crate) fn refill_at(&self) -> Option<Nanos> {
        if self.shared.is_some() || !self.needs_refill.load(Ordering::Relaxed) {
            return None;
        }
        let (plan, sockets) = (self.plan(), self.sockets());
        let misses = |ip: &usize| sockets.idle[*ip].len() < plan.share();
        let may_open = sockets.open < plan.sockets_max;
        let missing = plan.in_use().map(|(ip, _)| ip).filter(misses);
        missing.map(|ip| sockets.retry_at[ip][0]).min().filter(|_| may_open)
    }

    /// Takes a random socket of `family`, with an even port if `is_even`; binds one if none is idle.
    ///
    /// # Errors
    /// The error of a system call.
    pub(crate) fn take(&self, now: Nanos, family: IpFamily, ports: Ports) -> io::Result<Option<RelayPort>> {
        let (plan, start) = (self.plan(), random()?);
        if let Some(shared) = &self.shared {
            return shared.take(&plan, plan.ips_of(family, start), ports);
        }
        for ip in plan.ips_of(family, start) {
            if let Some(socket) = self.take_idle(&plan, ip, start, ports) {
                return Ok(Some(RelayPort::bound(socket, ip)));
            }
        }
        let bind = |ip: usize| bind_random(plan.ips[ip].bound, plan.ports, ports);
        let opened = self.open_any(now, &plan, plan.ips_of(family, start), 1, bind)?;
        Ok(opened.map(|(ip, socket)| RelayPort::bound(socket, ip)))
    }

    /// Takes a random even port of `family` and the next port; binds both if there are no two idle ones.
    ///
    /// # Errors
    /// The error of a system call.
    pub(crate) fn take_pair(&self, now: Nanos, family: IpFamily) -> io::Result<Option<[RelayPort; 2]>> {
        let (plan, start) = (self.plan(), random()?);
        if let Some(shared) = &self.shared {
            return shared.take_pair(&plan, plan.ips_of(family, start));
        }
        let pair = |ip, sockets: [UdpSocket; 2]| sockets.map(|socket| RelayPort::bound(socket, ip));
        for ip in plan.ips_of(family, start) {
            if let Some(sockets) = self.take_idle_pair(&plan, ip, start) {
                return Ok(Some(pair(ip, sockets)));
            }
        }
        let bind = |ip: usize| bind_random_pair(plan.ips[ip].bound, plan.ports);
        let opened = self.open_any(now, &plan, plan.ips_of(family, start), 2, bind)?;
        Ok(opened.map(|(ip, sockets)| pair(ip, sockets)))
    }

    /// Returns a port that has rested, or that no allocation needed. Closes its socket if enough are idle, or if it is not of
    /// the plan any more.
    pub(crate) fn give(&self, RelayPort { ip, inlet }: RelayPort) {
        let socket = match inlet {
            Inlet::Own(socket) => socket,
            Inlet::Shared(addr) => {
                if let Some(shared) = &self.shared {
                    shared.give(ip, addr.port());
                }
                return;
            }
        };
        let mut sockets = self.sockets();
        let is_planned = self.plan().has(ip, socket.local_addr().port());
        if sockets.idle[ip].len() >= IDLE_HIGH || !is_planned {
            sockets.open -= 1;
        } else if socket.set_receive_buffer(IDLE_BUFFER).is_ok() {
            sockets.idle[ip].insert(socket.local_addr().port(), socket);
        } else {
            sockets.open -= 1;
        }
        sockets.retry_at[ip][0] = Nanos(0);
    }

    /// Subtracts sockets that a worker has closed.
    pub(crate) fn forget(&self, count: u32) {
        let mut sockets = self.sockets();
        sockets.open -= count;
        sockets.retry_at.iter_mut().for_each(|[single, _]| *single = Nanos(0));
    }

    fn take_idle(&self, plan: &RelayPlan, ip: usize, start: u32, ports: Ports) -> Option<UdpSocket> {
        let start = port_at(plan.ports, start);
        let mut sockets = self.sockets();
        let idle = &mut sockets.idle[ip];
        let suits = |port: &&u16| ports == Ports::Any || port.is_multiple_of(2);
        let keys = || idle.range(start..).chain(idle.range(..start)).map(|(port, _)| port);
        let port = *keys().find(suits)?;
        let socket = idle.remove(&port);
        self.note_taken(plan, idle.len());
        socket
    }

    fn take_idle_pair(&self, plan: &RelayPlan, ip: usize, start: u32) -> Option<[UdpSocket; 2]> {
        let start = port_at(plan.ports, start);
        let mut sockets = self.sockets();
        let idle = &mut sockets.idle[ip];
        let has_next = |port: &&u16| port.is_multiple_of(2) && idle.contains_key(&(**port + 1));
        let even = *idle.range(start..).chain(idle.range(..start)).map(|(port, _)| port).find(has_next)?;
        let pair = [idle.remove(&even)?, idle.remove(&(even + 1))?];
        self.note_taken(plan, idle.len());
        Some(pair)
    }

    fn note_taken(&self, plan: &RelayPlan, left: usize) {
        if left < IDLE_LOW.min(plan.share()) {
            self.needs_refill.store(true, Ordering::Relaxed);
        }
    }

    /// Opens `count` sockets on the first of these addresses on which `bind` succeeds.
    ///
    /// # Errors
    /// The error of the last address, if there was none without.
    fn open_any<T>(
        &self,
        now: Nanos,
        plan: &RelayPlan,
        ips: impl Iterator<Item = usize>,
        count: u32,
        bind: impl Fn(usize) -> io::Result<T>,
    ) -> io::Result<Option<(usize, T)>> {
        let mut result = Ok(None);
        for ip in ips {
            result = self.open(now, plan, ip, count, || bind(ip)).map(|opened| opened.map(|opened| (ip, opened)));
            if matches!(result, Ok(Some(_))) {
                break;
            }
        }
        result
    }

    /// Runs `bind` for `count` sockets if that many may be opened. If not, idle sockets of other addresses are closed.
    fn open<T>(
        &self,
        now: Nanos,
        plan: &RelayPlan,
        ip: usize,
        count: u32,
        bind: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        {
            let mut sockets = self.sockets();
            let retry_at = sockets.retry_at[ip][usize::from(count > 1)];
            while now >= retry_at && sockets.open + count > plan.sockets_max {
                let others = sockets.idle.iter_mut().enumerate().filter(|(other, _)| *other != ip);
                if others.map(|(_, idle)| idle).find_map(BTreeMap::pop_first).is_none() {
                    return Ok(None);
                }
                sockets.open -= 1;
            }
            if now < retry_at {
                return Ok(None);
            }
            sockets.open += count;
        }
        // Without the lock: other workers take idle sockets meanwhile.
        bind().map(Some).inspect_err(|_| {
            let mut sockets = self.sockets();
            sockets.open -= count;
            sockets.retry_at[ip][usize::from(count > 1)] = now.saturating_add(RETRY);
        })
    }

    /// Binds idle sockets of an address until there is its share, at most `most`. Returns the number of new ones.
    fn bind_up_to(&self, now: Nanos, plan: &RelayPlan, ip: usize, most: usize) -> io::Result<usize> {
        let bound = plan.ips[ip].bound;
        let missing = plan.share().saturating_sub(self.sockets().idle[ip].len()).min(most);
        for number in 0..missing {
            {
                let sockets = self.sockets();
                if sockets.open >= plan.sockets_max {
                    return Ok(number);
                }
            }
            let Some(socket) = self.open(now, plan, ip, 1, || bind_random(bound, plan.ports, Ports::Any))? else {
                return Ok(number);
            };
            self.give(RelayPort::bound(socket, ip));
        }
        Ok(missing)
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use turn_config::{PortRange, RelayIp};

    use super::*;

    fn pool(sockets_max: u32) -> RelayPool {
        let ip: IpAddr = "127.0.0.1".parse().unwrap();
        let pool = RelayPool::new(plan(ip, PortRange { low: 30_000, high: 60_000 }, sockets_max), sockets_max, None);
        pool.fill().unwrap();
        pool
    }

    fn plan(ip: IpAddr, ports: PortRange, sockets_max: u32) -> RelayPlan {
        RelayPlan::new(&[RelayIp { bound: ip, external: ip }], ports, sockets_max)
    }

    fn take(pool: &RelayPool) -> RelayPort {
        pool.take(Nanos(0), IpFamily::V4, Ports::Any).unwrap().unwrap()
    }

    fn idle(pool: &RelayPool) -> usize {
        pool.sockets().idle[0].len()
    }

    #[test]
    fn a_refill_binds_a_few_sockets_at_a_time_until_enough_are_idle() {
        let pool = pool(1_000);
        let mut taken: Vec<_> = (0..IDLE_HIGH - IDLE_LOW).map(|_| take(&pool)).collect();
        assert_eq!((pool.refill_at(), idle(&pool)), (None, IDLE_LOW));
        taken.push(take(&pool));
        for number in 0.. {
            assert!(number <= IDLE_HIGH, "it never ends");
            if pool.refill_at().is_none() {
                break;
            }
            let before = idle(&pool);
            pool.refill(Nanos(0)).unwrap();
            assert!(idle(&pool) - before <= REFILL_MAX, "{before} before");
        }
        assert_eq!((pool.refill_at(), idle(&pool)), (None, IDLE_HIGH));
    }

    #[test]
    fn a_refill_ends_where_no_socket_may_be_opened() {
        let pool = pool(100);
        let taken: Vec<_> = (0..90).map(|_| take(&pool)).collect();
        assert_eq!(pool.refill_at(), None);
        pool.refill(Nanos(0)).unwrap();
        assert_eq!((pool.refill_at(), idle(&pool), taken.len()), (None, 10, 90));
    }

    #[test]
    fn a_refill_after_a_failure_is_due_a_second_later() {
        let ip: IpAddr = "127.0.0.1".parse().unwrap();
        let used = UdpSocket::bind(SocketAddr::new(ip, 0)).unwrap();
        let port = used.local_addr().port();
        let pool = RelayPool::new(plan(ip, PortRange { low: port, high: port }, 1), 1, None);
        pool.needs_refill.store(true, Ordering::Relaxed);
        assert_eq!(pool.refill(Nanos(5)).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(pool.refill_at(), Some(Nanos(5).saturating_add(RETRY)));
        pool.refill(Nanos(6)).unwrap();
        drop(used);
        pool.refill(Nanos(5).saturating_add(RETRY)).unwrap();
        assert_eq!(idle(&pool), 1);
    }

    /// The first address has no free port: the second one is filled and used nevertheless.
    #[test]
    fn an_address_without_a_free_port_does_not_hold_up_another() {
        let [one, two]: [IpAddr; 2] = ["127.0.0.1", "127.0.0.2"].map(|ip| ip.parse().unwrap());
        let used = UdpSocket::bind(SocketAddr::new(one, 0)).unwrap();
        let port = used.local_addr().port();
        let first = plan(one, PortRange { low: port, high: port }, 2);
        let pool = RelayPool::new(first.clone(), 2, None);
        let ips = [one, two].map(|ip| RelayIp { bound: ip, external: ip });
        let next = first.succeeded_by(&ips, first.ports, 2);
        pool.try_plan(&next).expect("an address without a free port remains");
        pool.replace_plan(next);
        assert_eq!(pool.refill(Nanos(5)).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!([0, 1].map(|ip| pool.sockets().idle[ip].len()), [0, 1]);
        assert_eq!(pool.refill_at(), Some(Nanos(5).saturating_add(RETRY)), "not at once");
        assert_eq!(pool.take(Nanos(6), IpFamily::V4, Ports::Any).unwrap().unwrap().ip, 1);
        // An address that is gone gets its socket back no more.
        let bound = RelayPort::bound(UdpSocket::bind(SocketAddr::new(two, 0)).unwrap(), 1);
        let third = pool.plan().succeeded_by(&ips[..1], first.ports, 2);
        assert_eq!((&third.ips[..], &third.used[..]), (&ips[..], &[true, false][..]));
        pool.replace_plan(third);
        pool.give(bound);
        assert_eq!(pool.sockets().idle[1].len(), 0);
    }
}
