//! Relay sockets that no worker uses, and the number of all: one pool for the process.

mod reserved;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tt_model::{IpFamily, Nanos};
use tt_net::UdpSocket;

use crate::config::RelayIp;
use crate::section::PortRange;
use reserved::ReservedSockets;

/// Delay before sockets are bound again after a failure (no descriptors, no free port).
const RETRY: Nanos = Nanos::from_secs(1);
/// Idle sockets of one address: bound up to `IDLE_HIGH` when fewer than `IDLE_LOW` are left.
const IDLE_LOW: usize = 64;
const IDLE_HIGH: usize = 128;
/// Sockets that are bound at once, between two rounds: clients wait meanwhile.
const REFILL_MAX: usize = 2;
/// Receive buffer of an idle socket in bytes; the kernel's minimum is larger. What arrives is discarded.
const IDLE_BUFFER: usize = 1;
/// Random ports that are tried for one socket before the range is searched from a random port.
const DRAWS: usize = 16;
/// Ports of the range that are searched.
const SEARCHED_MAX: u32 = 1_024;

/// Addresses, ports and number of the relay sockets of all workers.
#[derive(Clone, Debug)]
pub(crate) struct RelayPlan {
    /// The addresses.
    pub(crate) ips: Vec<RelayIp>,
    /// The ports.
    pub(crate) ports: PortRange,
    /// Maximum number of sockets, over all addresses.
    pub(crate) sockets_max: u32,
}

/// A bound relay socket.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub(crate) socket: UdpSocket,
    /// Index of its address in the plan.
    pub(crate) ip: usize,
}

/// The idle and the reserved relay sockets of all workers. Used when an allocation begins and when its socket has rested, never per
/// datagram.
#[derive(Debug)]
pub(crate) struct RelayPool {
    plan: RelayPlan,
    /// Those that a token reserves.
    pub(crate) reserved: ReservedSockets,
    sockets: Mutex<Sockets>,
    needs_refill: AtomicBool,
}

#[derive(Debug)]
struct Sockets {
    /// By address, then by port.
    idle: Vec<BTreeMap<u16, UdpSocket>>,
    /// All sockets: idle, allocated, reserved and resting.
    open: u32,
    retry_at: Nanos,
    pairs_retry_at: Nanos,
}

impl RelayPool {
    pub(crate) fn new(plan: RelayPlan) -> Self {
        let idle = plan.ips.iter().map(|_| BTreeMap::new()).collect();
        let sockets = Sockets { idle, open: 0, retry_at: Nanos(0), pairs_retry_at: Nanos(0) };
        let reserved = ReservedSockets::default();
        Self { plan, reserved, sockets: Mutex::new(sockets), needs_refill: AtomicBool::new(false) }
    }

    pub(crate) fn plan(&self) -> &RelayPlan {
        &self.plan
    }

    /// Binds the first sockets of every address.
    ///
    /// # Errors
    /// An address on which no socket can be bound, with the cause.
    pub(crate) fn fill(&self) -> Result<(), (SocketAddr, io::Error)> {
        for (ip, addresses) in self.plan.ips.iter().enumerate() {
            match self.bind_up_to(Nanos(0), ip, self.share(), usize::MAX) {
                Err(error) if self.sockets().idle[ip].is_empty() => {
                    return Err((SocketAddr::new(addresses.bound, self.plan.ports.low), error));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Binds a few idle sockets if too few were left. Call it again at [`RelayPool::refill_at`].
    ///
    /// # Errors
    /// The error of a system call; the next attempt is a second later.
    pub(crate) fn refill(&self, now: Nanos) -> io::Result<()> {
        if self.refill_at().is_none_or(|at| now < at) || !self.needs_refill.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let mut left = REFILL_MAX;
        for ip in 0..self.plan.ips.len() {
            let bound = self.bind_up_to(now, ip, self.share(), left);
            left -= bound.inspect_err(|_| self.needs_refill.store(true, Ordering::Relaxed))?;
        }
        if left == 0 {
            self.needs_refill.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns when sockets are to be bound, or `None` if enough are idle.
    pub(crate) fn refill_at(&self) -> Option<Nanos> {
        self.needs_refill.load(Ordering::Relaxed).then(|| self.sockets().retry_at)
    }

    /// Takes a random socket of `family`, with an even port if `is_even`; binds one if none is idle.
    ///
    /// # Errors
    /// The error of a system call.
    pub(crate) fn take(&self, now: Nanos, family: IpFamily, ports: Ports) -> io::Result<Option<BoundSocket>> {
        let start = random()?;
        for ip in self.ips_of(family, start) {
            if let Some(socket) = self.take_idle(ip, start, ports) {
                return Ok(Some(BoundSocket { socket, ip }));
            }
        }
        let Some(ip) = self.ips_of(family, start).next() else { return Ok(None) };
        let bound = self.plan.ips[ip].bound;
        let opened = self.open(now, ip, 1, || bind_random(bound, self.plan.ports, ports))?;
        Ok(opened.map(|socket| BoundSocket { socket, ip }))
    }

    /// Takes a random even port of `family` and the next port; binds both if there are no two idle ones.
    ///
    /// # Errors
    /// The error of a system call.
    pub(crate) fn take_pair(&self, now: Nanos, family: IpFamily) -> io::Result<Option<[BoundSocket; 2]>> {
        let start = random()?;
        let pair = |ip, sockets: [UdpSocket; 2]| sockets.map(|socket| BoundSocket { socket, ip });
        for ip in self.ips_of(family, start) {
            if let Some(sockets) = self.take_idle_pair(ip, start) {
                return Ok(Some(pair(ip, sockets)));
            }
        }
        let Some(ip) = self.ips_of(family, start).next() else { return Ok(None) };
        let bound = self.plan.ips[ip].bound;
        Ok(self.open(now, ip, 2, || bind_random_pair(bound, self.plan.ports))?.map(|sockets| pair(ip, sockets)))
    }

    /// Returns a socket that has rested, or that no allocation needed. Closes it if enough are idle.
    pub(crate) fn give(&self, bound: BoundSocket) {
        let BoundSocket { socket, ip } = bound;
        let mut sockets = self.sockets();
        if sockets.idle[ip].len() >= IDLE_HIGH {
            sockets.open -= 1;
        } else if socket.set_receive_buffer(IDLE_BUFFER).is_ok() {
            sockets.idle[ip].insert(socket.local_addr().port(), socket);
        } else {
            sockets.open -= 1;
        }
        sockets.retry_at = Nanos(0);
    }

    /// Subtracts sockets that a worker has closed.
    pub(crate) fn forget(&self, count: u32) {
        let mut sockets = self.sockets();
        sockets.open -= count;
        sockets.retry_at = Nanos(0);
    }

    fn take_idle(&self, ip: usize, start: u32, ports: Ports) -> Option<UdpSocket> {
        let start = self.port_at(start);
        let mut sockets = self.sockets();
        let idle = &mut sockets.idle[ip];
        let suits = |port: &&u16| ports == Ports::Any || port.is_multiple_of(2);
        let keys = || idle.range(start..).chain(idle.range(..start)).map(|(port, _)| port);
        let port = *keys().find(suits)?;
        let socket = idle.remove(&port);
        self.note_taken(idle.len());
        socket
    }

    fn take_idle_pair(&self, ip: usize, start: u32) -> Option<[UdpSocket; 2]> {
        let start = self.port_at(start);
        let mut sockets = self.sockets();
        let idle = &mut sockets.idle[ip];
        let has_next = |port: &&u16| port.is_multiple_of(2) && idle.contains_key(&(**port + 1));
        let even = *idle.range(start..).chain(idle.range(..start)).map(|(port, _)| port).find(has_next)?;
        let pair = [idle.remove(&even)?, idle.remove(&(even + 1))?];
        self.note_taken(idle.len());
        Some(pair)
    }

    fn note_taken(&self, left: usize) {
        if left < IDLE_LOW.min(self.share()) {
            self.needs_refill.store(true, Ordering::Relaxed);
        }
    }

    /// Runs `bind` for `count` sockets if that many may be opened. If not, idle sockets of other addresses are closed.
    fn open<T>(
        &self,
        now: Nanos,
        ip: usize,
        count: u32,
        bind: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        {
            let mut sockets = self.sockets();
            let retry_at = if count == 1 { sockets.retry_at } else { sockets.pairs_retry_at };
            while now >= retry_at && sockets.open + count > self.plan.sockets_max {
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
            let retry_at = if count == 1 { &mut sockets.retry_at } else { &mut sockets.pairs_retry_at };
            *retry_at = now.saturating_add(RETRY);
        })
    }

    /// Binds idle sockets until there are `count`, at most `most`. Returns the number of new ones.
    fn bind_up_to(&self, now: Nanos, ip: usize, count: usize, most: usize) -> io::Result<usize> {
        let bound = self.plan.ips[ip].bound;
        let missing = count.saturating_sub(self.sockets().idle[ip].len()).min(most);
        for number in 0..missing {
            {
                let sockets = self.sockets();
                if sockets.open >= self.plan.sockets_max {
                    return Ok(number);
                }
            }
            let Some(socket) = self.open(now, ip, 1, || bind_random(bound, self.plan.ports, Ports::Any))? else {
                return Ok(number);
            };
            self.give(BoundSocket { socket, ip });
        }
        Ok(missing)
    }

    /// Returns the sockets of one address that are bound ahead.
    fn share(&self) -> usize {
        (self.plan.sockets_max as usize / self.plan.ips.len()).clamp(1, IDLE_HIGH)
    }

    /// Returns the addresses of a family, in turn from a random one.
    fn ips_of(&self, family: IpFamily, start: u32) -> impl Iterator<Item = usize> {
        let ips = &self.plan.ips;
        let first = start as usize % ips.len();
        let all = (first..ips.len()).chain(0..first);
        all.filter(move |ip| IpFamily::of(ips[*ip].bound) == family)
    }

    fn port_at(&self, offset: u32) -> u16 {
        port_at(self.plan.ports, offset)
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ports that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    Any,
    Even,
}

fn port_at(ports: PortRange, offset: u32) -> u16 {
    let span = u32::from(ports.high - ports.low) + 1;
    ports.low + (offset % span) as u16
}

fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(addr)?;
    socket.enable_gro()?;
    socket.enable_icmp_errors()?;
    Ok(socket)
}

/// Binds a socket to an unpredictable port of `range`.
fn bind_random(ip: IpAddr, range: PortRange, ports: Ports) -> io::Result<UdpSocket> {
    let span = u32::from(range.high - range.low) + 1;
    let start = random()?;
    let drawn = (0..DRAWS).map(|_| random());
    let searched = (0..span.min(SEARCHED_MAX)).map(|step| Ok(start.wrapping_add(step)));
    for offset in drawn.chain(searched) {
        let port = port_at(range, offset?);
        if ports == Ports::Even && !port.is_multiple_of(2) {
            continue;
        }
        match bind(SocketAddr::new(ip, port)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Binds two sockets, to an unpredictable even port of `ports` and to the next port (RFC 8656 section 7.2).
fn bind_random_pair(ip: IpAddr, ports: PortRange) -> io::Result<[UdpSocket; 2]> {
    let first = u32::from(ports.low).next_multiple_of(2);
    let pairs = (u32::from(ports.high) + 1).saturating_sub(first) / 2;
    let draws = if pairs == 0 { 0 } else { DRAWS };
    for _ in 0..draws {
        let even = (first + 2 * (random()? % pairs)) as u16;
        let at = |port| bind(SocketAddr::new(ip, port));
        match at(even).and_then(|low| Ok([low, at(even + 1)?])) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn random() -> io::Result<u32> {
    getrandom::u32().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(sockets_max: u32) -> RelayPool {
        let ip: IpAddr = "127.0.0.1".parse().unwrap();
        let ips = vec![RelayIp { bound: ip, external: ip }];
        let pool = RelayPool::new(RelayPlan { ips, ports: PortRange { low: 30_000, high: 60_000 }, sockets_max });
        pool.fill().unwrap();
        pool
    }

    fn take(pool: &RelayPool) -> BoundSocket {
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
        assert_eq!(pool.refill_at(), Some(Nanos(0)));
        pool.refill(Nanos(0)).unwrap();
        assert_eq!((pool.refill_at(), idle(&pool), taken.len()), (None, 10, 90));
    }

    #[test]
    fn a_refill_after_a_failure_is_due_a_second_later() {
        let ip: IpAddr = "127.0.0.1".parse().unwrap();
        let used = UdpSocket::bind(SocketAddr::new(ip, 0)).unwrap();
        let port = used.local_addr().port();
        let ips = vec![RelayIp { bound: ip, external: ip }];
        let pool = RelayPool::new(RelayPlan { ips, ports: PortRange { low: port, high: port }, sockets_max: 1 });
        pool.needs_refill.store(true, Ordering::Relaxed);
        assert_eq!(pool.refill(Nanos(5)).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(pool.refill_at(), Some(Nanos(5).saturating_add(RETRY)));
        pool.refill(Nanos(6)).unwrap();
        drop(used);
        pool.refill(Nanos(5).saturating_add(RETRY)).unwrap();
        assert_eq!(idle(&pool), 1);
    }
}
