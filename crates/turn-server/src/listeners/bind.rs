//! Binds the sockets of listeners.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use tt_net::UdpSocket;
use tt_net::stream::StreamListener;
use turn_config::TurnConfig;

use crate::listener_id::ListenerId;
use crate::passed::PassedSockets;
use crate::streams::Takes;

use super::{Listener, Listening, Purpose, Sockets, wanted};

/// Attempts to find a port that is free for UDP and TCP.
const PORTS_TRIED: usize = 32;
/// Receive buffer of a listener in bytes, if the system allows it.
const LISTENER_BUFFER: usize = 4 << 20;

/// Everything that is listened on, with the new sockets.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) listening: Listening,
    pub(crate) sockets: Vec<(ListenerId, Sockets)>,
}

/// Where the sockets of a listener come from.
enum Source {
    /// It has them already.
    Kept(Listener),
    Passed(Sockets),
    Bind,
}

/// Keeps the listeners of `before` that `config` names, takes the passed sockets, and binds everything else, for this
/// number of workers.
///
/// # Errors
/// An address that cannot be bound; a passed socket that `config` does not name.
pub(crate) fn bind(
    config: &TurnConfig,
    before: &Listening,
    mut passed: PassedSockets,
    workers: usize,
) -> anyhow::Result<Bound> {
    let mut left = before.listeners.clone();
    let all: Vec<_> = wanted(config)
        .map(|(purpose, addr, udp)| {
            let is_same = |kept: &Listener| kept.purpose == purpose && [kept.configured, kept.bound].contains(&addr);
            let source = match left.iter().position(is_same) {
                Some(place) => Source::Kept(Listener { configured: addr, ..left.remove(place) }),
                None => taken(&mut passed, purpose, addr),
            };
            (purpose, addr, udp, source)
        })
        .collect();
    // Before anything is bound: the address of a socket that is left is in use.
    passed.check_taken(config)?;
    let is_bound = |place| all.iter().any(|(.., udp, source)| *udp == Some(place) && matches!(source, Source::Bind));
    let has_both: Vec<bool> = (0..all.len()).map(is_bound).collect();
    let listening =
        Listening { listeners: Vec::new(), has_certificate: !config.certificates.is_empty(), ..before.clone() };
    let mut bound = Bound { listening, sockets: Vec::new() };
    let mut on_udp_ports = Vec::new();
    for (place, (purpose, configured, udp, source)) in all.into_iter().enumerate() {
        // A TCP port follows that of UDP, which the kernel may have chosen.
        let addr = udp.map_or(configured, |place: usize| bound.listening.listeners[place].bound);
        let is_passed = matches!(source, Source::Passed(_));
        let sockets = match (source, purpose) {
            (Source::Kept(listener), _) => {
                bound.listening.listeners.push(listener);
                continue;
            }
            (Source::Passed(Sockets::Udp(group)), _) => checked(group, addr, workers),
            (Source::Passed(Sockets::Streams(takes, group)), _) => shared(takes, group, addr, workers)?,
            (Source::Bind, Purpose::Udp) if has_both[place] => {
                let (udp, tcp) = bind_both(addr, workers, before)?;
                on_udp_ports.push((place, tcp));
                udp
            }
            (Source::Bind, Purpose::Udp) => bind_udp(addr, workers, before)?,
            (Source::Bind, Purpose::Stream(takes)) => {
                let with_udp = on_udp_ports.iter().position(|(place, _)| Some(*place) == udp);
                let with_udp = with_udp.map(|index| on_udp_ports.swap_remove(index).1);
                Sockets::Streams(takes, with_udp.map_or_else(|| bind_tcp(addr, workers, before), Ok)?)
            }
        };
        sockets.prepare()?;
        bound.add((purpose, configured, is_passed), sockets);
    }
    Ok(bound)
}

/// Binds sockets for this number of further workers at every address but those with passed sockets: they would be another
/// process's.
///
/// # Errors
/// An address that cannot be bound.
pub(crate) fn bind_further(listening: &Listening, workers: usize) -> anyhow::Result<Vec<(ListenerId, Sockets)>> {
    let own = listening.listeners.iter().filter(|listener| !listener.is_passed);
    own.map(|Listener { id, purpose, bound, .. }| {
        let sockets = match purpose {
            Purpose::Udp => bind_udp(*bound, workers, listening)?,
            Purpose::Stream(takes) => Sockets::Streams(*takes, bind_tcp(*bound, workers, listening)?),
        };
        sockets.prepare()?;
        Ok((*id, sockets))
    })
    .collect()
}

/// Takes the passed sockets of an address.
fn taken(passed: &mut PassedSockets, purpose: Purpose, addr: SocketAddr) -> Source {
    let sockets = match purpose {
        Purpose::Udp => Sockets::Udp(passed.take_udp(addr)),
        Purpose::Stream(Takes::Both) => Sockets::Streams(Takes::Both, passed.take_tcp(addr)),
        Purpose::Stream(Takes::Tls) => Sockets::Streams(Takes::Tls, passed.take_tls(addr)),
    };
    if sockets.local_addr().is_some() { Source::Passed(sockets) } else { Source::Bind }
}

impl Bound {
    fn add(&mut self, (purpose, configured, is_passed): (Purpose, SocketAddr, bool), sockets: Sockets) {
        let bound = sockets.local_addr().unwrap_or(configured);
        let id = self.listening.next_id.take();
        self.listening.listeners.push(Listener { id, purpose, configured, bound, is_passed });
        self.sockets.push((id, sockets));
    }
}

impl Sockets {
    /// Returns the address of the first socket.
    fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp(group) => group.first().map(UdpSocket::local_addr),
            Self::Streams(_, group) => group.first().map(StreamListener::local_addr),
        }
    }

    fn prepare(&self) -> anyhow::Result<()> {
        let Self::Udp(group) = self else { return Ok(()) };
        if let Some(socket) = group.first().filter(|socket| !socket.reports_lost()) {
            let addr = socket.local_addr().to_string();
            tracing::warn!(addr, "this kernel does not report the datagrams that it drops: their count stays 0");
        }
        for socket in group {
            // With a smaller buffer a burst loses datagrams earlier, which is counted.
            let _ = socket.set_buffers(LISTENER_BUFFER, true);
            socket.enable_gro().context("turn: cannot enable GRO")?;
        }
        Ok(())
    }
}

fn bind_udp(addr: SocketAddr, workers: usize, own: &Listening) -> anyhow::Result<Sockets> {
    let bind = if own.has_port(addr) { UdpSocket::further_listeners } else { UdpSocket::listeners };
    bind(addr, workers).map(Sockets::Udp).with_context(|| format!("turn: cannot listen on udp {addr}"))
}

fn bind_tcp(addr: SocketAddr, workers: usize, own: &Listening) -> anyhow::Result<Vec<StreamListener>> {
    let bind = if own.has_port(addr) { StreamListener::further_listeners } else { StreamListener::listeners };
    bind(addr, workers).with_context(|| format!("turn: cannot listen on tcp {addr}"))
}

/// Returns the passed sockets at `addr`. Two workers cannot share one: the datagrams of a client would reach both.
fn checked(passed: Vec<UdpSocket>, addr: SocketAddr, workers: usize) -> Sockets {
    let sockets = passed.len();
    if sockets < workers {
        let addr = addr.to_string();
        tracing::warn!(addr, sockets, workers, "fewer UDP sockets were passed than there are workers to read them");
    }
    Sockets::Udp(passed)
}

/// Returns passed sockets at `addr` for all workers. They can share a socket: one of them takes each connection.
fn shared(takes: Takes, mut passed: Vec<StreamListener>, addr: SocketAddr, workers: usize) -> anyhow::Result<Sockets> {
    let sockets = passed.len();
    for number in sockets..workers {
        let clone = passed[number % sockets].try_clone();
        passed.push(clone.with_context(|| format!("turn: cannot share the passed socket of tcp {addr}"))?);
    }
    Ok(Sockets::Streams(takes, passed))
}

/// Binds the same port for UDP and TCP; for port 0, one that is free for both.
fn bind_both(addr: SocketAddr, workers: usize, own: &Listening) -> anyhow::Result<(Sockets, Vec<StreamListener>)> {
    let mut tries = 0;
    loop {
        let udp = bind_udp(addr, workers, own)?;
        let bound = udp.local_addr().unwrap_or(addr);
        tries += 1;
        match bind_tcp(bound, workers, own) {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) if addr.port() == 0 && tries < PORTS_TRIED && is_in_use(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_in_use(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}
