//! The sockets that clients send and connect to: one per address and worker, or passed ones.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use tt_net::UdpSocket;
use tt_net::stream::StreamListener;

use crate::config::TurnConfig;
use crate::passed::PassedSockets;
use crate::streams::Takes;

/// Attempts to find a port that is free for UDP and TCP.
const PORTS_TRIED: usize = 32;

/// An address that accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamAddr {
    /// The address and TCP port; the kernel's choice if port 0 was configured.
    pub addr: SocketAddr,
    /// Whether it accepts plain TCP.
    pub tcp: bool,
    /// Whether it accepts TLS.
    pub tls: bool,
}

/// Groups of sockets. A group is on one address and has a socket for each worker, unless sockets were passed.
pub(crate) struct Listeners {
    udp: Vec<Vec<UdpSocket>>,
    streams: Vec<(Takes, Vec<StreamListener>)>,
}

/// The listeners of one worker.
#[derive(Default)]
pub(crate) struct WorkerListeners {
    pub(crate) udp: Vec<UdpSocket>,
    pub(crate) streams: Vec<(StreamListener, Takes)>,
}

impl Listeners {
    /// Takes the passed sockets and binds everything else that `config` names.
    ///
    /// # Errors
    /// An address that cannot be bound; a passed socket that `config` does not name.
    pub(crate) fn bind(config: &TurnConfig, mut passed: PassedSockets) -> anyhow::Result<Self> {
        let workers = config.workers;
        let mut on_udp_ports = Vec::with_capacity(config.listen.len());
        for &addr in &config.listen {
            let tcp = if config.tcp_on_udp_ports { passed.take_tcp(addr) } else { Vec::new() };
            on_udp_ports.push((addr, passed.take_udp(addr), tcp));
        }
        let tcp: Vec<_> = config.listen_tcp.iter().map(|&addr| (Takes::Both, addr, passed.take_tcp(addr))).collect();
        let tls: Vec<_> = config.listen_tls.iter().map(|&addr| (Takes::Tls, addr, passed.take_tls(addr))).collect();
        // Before anything is bound: the address of a socket that is left is in use.
        passed.check_taken(config)?;
        let mut listeners = Self { udp: Vec::new(), streams: Vec::new() };
        for (addr, udp, tcp) in on_udp_ports {
            if udp.is_empty() && tcp.is_empty() && config.tcp_on_udp_ports {
                let (udp, tcp) = bind_both(addr, workers)?;
                listeners.udp.push(udp);
                listeners.streams.push((Takes::Both, tcp));
                continue;
            }
            listeners.udp.push(if udp.is_empty() { bind_udp(addr, workers)? } else { checked(udp, addr, workers) });
            if config.tcp_on_udp_ports {
                listeners.streams.push((Takes::Both, shared_or_bound(tcp, addr, workers)?));
            }
        }
        for (takes, addr, passed) in tcp.into_iter().chain(tls) {
            listeners.streams.push((takes, shared_or_bound(passed, addr, workers)?));
        }
        Ok(listeners)
    }

    /// Returns the UDP addresses.
    pub(crate) fn udp_addrs(&self) -> Vec<SocketAddr> {
        self.udp.iter().map(|group| group[0].local_addr()).collect()
    }

    /// Returns the addresses that accept connections.
    pub(crate) fn stream_addrs(&self, has_tls: bool) -> Vec<StreamAddr> {
        let of = |(takes, group): &(Takes, Vec<StreamListener>)| StreamAddr {
            addr: group[0].local_addr(),
            tcp: *takes == Takes::Both,
            tls: has_tls,
        };
        self.streams.iter().map(of).collect()
    }

    /// Shares the sockets out. Groups with fewer sockets than workers begin at different workers.
    pub(crate) fn into_workers(self, workers: usize) -> Vec<WorkerListeners> {
        let mut shares: Vec<_> = (0..workers).map(|_| WorkerListeners::default()).collect();
        for (first, group) in self.udp.into_iter().enumerate() {
            (first..).zip(group).for_each(|(number, socket)| shares[number % workers].udp.push(socket));
        }
        for (first, (takes, group)) in self.streams.into_iter().enumerate() {
            (first..).zip(group).for_each(|(number, socket)| shares[number % workers].streams.push((socket, takes)));
        }
        shares
    }
}

fn bind_udp(addr: SocketAddr, workers: usize) -> anyhow::Result<Vec<UdpSocket>> {
    UdpSocket::listeners(addr, workers).with_context(|| format!("turn: cannot listen on udp {addr}"))
}

/// Returns the passed sockets at `addr`. Two workers cannot share one: the datagrams of a client would reach both.
fn checked(passed: Vec<UdpSocket>, addr: SocketAddr, workers: usize) -> Vec<UdpSocket> {
    let sockets = passed.len();
    if sockets < workers {
        let addr = addr.to_string();
        tracing::warn!(addr, sockets, workers, "fewer UDP sockets were passed than there are workers to read them");
    }
    passed
}

/// Returns passed sockets at `addr` for all workers, or else bound ones. Workers can share a socket: one of them takes
/// each connection.
fn shared_or_bound(
    mut passed: Vec<StreamListener>,
    addr: SocketAddr,
    workers: usize,
) -> anyhow::Result<Vec<StreamListener>> {
    if passed.is_empty() {
        return StreamListener::listeners(addr, workers).with_context(|| format!("turn: cannot listen on tcp {addr}"));
    }
    let sockets = passed.len();
    for number in sockets..workers {
        let clone = passed[number % sockets].try_clone();
        passed.push(clone.with_context(|| format!("turn: cannot share the passed socket of tcp {addr}"))?);
    }
    Ok(passed)
}

/// Binds the same port for UDP and TCP; for port 0, one that is free for both.
fn bind_both(addr: SocketAddr, workers: usize) -> anyhow::Result<(Vec<UdpSocket>, Vec<StreamListener>)> {
    let mut tries = 0;
    loop {
        let udp = bind_udp(addr, workers)?;
        let bound = udp[0].local_addr();
        tries += 1;
        match StreamListener::listeners(bound, workers) {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && addr.port() == 0 && tries < PORTS_TRIED => {}
            Err(error) => return Err(error).with_context(|| format!("turn: cannot listen on tcp {bound}")),
        }
    }
}

/// Returns `TRANSPORT ADDRESS` of every listener; a port with two transports is listed twice.
pub(crate) fn listens(udp: &[SocketAddr], streams: &[StreamAddr]) -> Vec<String> {
    let udp = udp.iter().map(|addr| format!("udp {addr}"));
    let tcp = streams.iter().filter(|stream| stream.tcp).map(|stream| format!("tcp {}", stream.addr));
    let tls = streams.iter().filter(|stream| stream.tls).map(|stream| format!("tls {}", stream.addr));
    udp.chain(tcp).chain(tls).collect()
}
