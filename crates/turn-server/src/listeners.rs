//! The addresses that clients send and connect to, and their sockets: one per address and worker, or passed ones.

mod bind;

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use tt_net::UdpSocket;
use tt_net::stream::StreamListener;
use turn_config::TurnConfig;

use crate::listener_id::{ListenerId, ListenerUse};
use crate::streams::Takes;
pub(crate) use bind::{Bound, bind, bind_further};

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

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Udp,
    Stream(Takes),
}

/// An address that is listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) id: ListenerId,
    pub(crate) purpose: Purpose,
    /// The address as configured, and with the kernel's choice for port 0.
    pub(crate) configured: SocketAddr,
    pub(crate) bound: SocketAddr,
    /// Its sockets are those of another process, for the workers of the start.
    is_passed: bool,
}

/// Everything that is listened on, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listening {
    listeners: Vec<Listener>,
    has_certificate: bool,
    next_id: ListenerId,
    /// Former listeners, some of whose sockets may be open.
    former: Vec<(SocketAddr, Weak<AtomicUsize>)>,
}

impl Listening {
    /// Returns the UDP addresses.
    pub(crate) fn udp_addrs(&self) -> Vec<SocketAddr> {
        self.of_udp().map(|listener| listener.bound).collect()
    }

    /// Returns the addresses that accept connections.
    pub(crate) fn stream_addrs(&self) -> Vec<StreamAddr> {
        let of = |listener: &Listener| match listener.purpose {
            Purpose::Udp => None,
            Purpose::Stream(takes) => {
                Some(StreamAddr { addr: listener.bound, tcp: takes == Takes::Both, tls: self.has_certificate })
            }
        };
        self.listeners.iter().filter_map(of).collect()
    }

    /// Returns `TRANSPORT ADDRESS` of every listener; a port with two transports is listed twice.
    pub(crate) fn names(&self) -> Vec<String> {
        let streams = self.stream_addrs();
        let udp = self.of_udp().map(|listener| format!("udp {}", listener.bound));
        let tcp = streams.iter().filter(|stream| stream.tcp).map(|stream| format!("tcp {}", stream.addr));
        let tls = streams.iter().filter(|stream| stream.tls).map(|stream| format!("tls {}", stream.addr));
        udp.chain(tcp).chain(tls).collect()
    }

    /// Returns the addresses that these configured ones have been bound to.
    pub(crate) fn bound(&self, configured: &[SocketAddr]) -> Vec<SocketAddr> {
        let own = self.listeners.iter().filter(|listener| configured.contains(&listener.configured));
        let mut bound: Vec<_> = own.map(|listener| listener.bound).collect();
        bound.dedup();
        bound
    }

    /// Returns the listeners of `before` that are gone, each with the number of workers that have allocations there.
    pub(crate) fn replace(&mut self, before: &Self) -> Vec<(ListenerId, Arc<AtomicUsize>)> {
        let is_gone = |listener: &&Listener| self.listeners.iter().all(|kept| kept.id != listener.id);
        let gone = before.listeners.iter().filter(is_gone);
        let removed: Vec<(_, _, Arc<AtomicUsize>)> = gone.map(|gone| (gone.bound, gone.id, Arc::default())).collect();
        self.former.retain(|(_, workers)| workers.strong_count() > 0);
        self.former.extend(removed.iter().map(|(bound, _, workers)| (*bound, Arc::downgrade(workers))));
        removed.into_iter().map(|(_, id, workers)| (id, workers)).collect()
    }

    /// Whether a socket at `addr` would share its port with one of this process.
    fn has_port(&self, addr: SocketAddr) -> bool {
        let is_same = |own: SocketAddr| own.port() == addr.port() && own.is_ipv4() == addr.is_ipv4();
        let is_former = |(own, workers): &(SocketAddr, Weak<AtomicUsize>)| workers.strong_count() > 0 && is_same(*own);
        self.listeners.iter().any(|own| is_same(own.bound)) || self.former.iter().any(is_former)
    }

    fn of_udp(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(|listener| listener.purpose == Purpose::Udp)
    }
}

/// Returns what `config` listens on. A TCP address of a UDP port comes with the place of that one.
fn wanted(config: &TurnConfig) -> impl Iterator<Item = (Purpose, SocketAddr, Option<usize>)> {
    let on_udp_ports = if config.tcp_on_udp_ports { &config.listen[..] } else { &[] };
    let udp = config.listen.iter().map(|addr| (Purpose::Udp, *addr, None));
    let both = Purpose::Stream(Takes::Both);
    let on_udp_ports = on_udp_ports.iter().enumerate().map(move |(place, addr)| (both, *addr, Some(place)));
    let tcp = config.listen_tcp.iter().map(move |addr| (both, *addr, None));
    let tls = config.listen_tls.iter().map(|addr| (Purpose::Stream(Takes::Tls), *addr, None));
    udp.chain(on_udp_ports).chain(tcp).chain(tls)
}

/// The sockets of one listener.
#[derive(Debug)]
pub(crate) enum Sockets {
    Udp(Vec<UdpSocket>),
    Streams(Takes, Vec<StreamListener>),
}

/// New listeners of one worker, and those that it gives up.
#[derive(Debug, Default)]
pub(crate) struct ListenerChange {
    pub(crate) udp: Vec<(ListenerId, UdpSocket)>,
    pub(crate) streams: Vec<(ListenerId, StreamListener, Takes)>,
    pub(crate) removed: Vec<(ListenerId, ListenerUse)>,
}

/// Shares sockets out. Groups with fewer sockets than workers begin at different workers.
pub(crate) fn share_out(groups: Vec<(ListenerId, Sockets)>, workers: usize) -> Vec<ListenerChange> {
    let mut shares: Vec<_> = (0..workers).map(|_| ListenerChange::default()).collect();
    for (first, (id, sockets)) in groups.into_iter().enumerate() {
        let numbers = (first..).map(|number| number % workers);
        match sockets {
            Sockets::Udp(group) => {
                numbers.zip(group).for_each(|(number, socket)| shares[number].udp.push((id, socket)))
            }
            Sockets::Streams(takes, group) => {
                numbers.zip(group).for_each(|(number, socket)| shares[number].streams.push((id, socket, takes)));
            }
        }
    }
    shares
}
