//! The sockets that clients send and connect to: one per address and worker.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use tt_net::UdpSocket;
use tt_net::stream::StreamListener;

use crate::config::TurnConfig;
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

/// Groups of sockets. A group has one socket per worker on the same address.
pub(crate) struct Listeners {
    pub(crate) udp: Vec<Vec<UdpSocket>>,
    pub(crate) streams: Vec<(Takes, Vec<StreamListener>)>,
}

impl Listeners {
    /// Binds everything that `config` names.
    ///
    /// # Errors
    /// An address that cannot be bound.
    pub(crate) fn bind(config: &TurnConfig) -> anyhow::Result<Self> {
        let mut listeners = Self { udp: Vec::new(), streams: Vec::new() };
        for &addr in &config.listen {
            if config.tcp_on_udp_ports {
                let (udp, tcp) = bind_both(addr, config.workers)?;
                listeners.udp.push(udp);
                listeners.streams.push((Takes::Both, tcp));
            } else {
                let udp = UdpSocket::listeners(addr, config.workers);
                listeners.udp.push(udp.with_context(|| format!("turn: cannot listen on udp {addr}"))?);
            }
        }
        let tcp = config.listen_tcp.iter().map(|addr| (Takes::Both, addr));
        for (takes, &addr) in tcp.chain(config.listen_tls.iter().map(|addr| (Takes::Tls, addr))) {
            let group = StreamListener::listeners(addr, config.workers);
            listeners.streams.push((takes, group.with_context(|| format!("turn: cannot listen on tcp {addr}"))?));
        }
        Ok(listeners)
    }
}

/// Binds the same port for UDP and TCP; for port 0, one that is free for both.
fn bind_both(addr: SocketAddr, workers: usize) -> anyhow::Result<(Vec<UdpSocket>, Vec<StreamListener>)> {
    let mut tries = 0;
    loop {
        let udp = UdpSocket::listeners(addr, workers).with_context(|| format!("turn: cannot listen on udp {addr}"))?;
        let bound = udp[0].local_addr();
        tries += 1;
        match StreamListener::listeners(bound, workers) {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && addr.port() == 0 && tries < PORTS_TRIED => {}
            Err(error) => return Err(error).with_context(|| format!("turn: cannot listen on tcp {bound}")),
        }
    }
}

/// Returns the address of a listener and the transports that it accepts.
pub(crate) fn stream_addr(takes: Takes, listener: &StreamListener, has_tls: bool) -> StreamAddr {
    StreamAddr { addr: listener.local_addr(), tcp: takes == Takes::Both, tls: has_tls }
}

/// Returns `TRANSPORT ADDRESS` of every listener; a port with two transports is listed twice.
pub(crate) fn listens(udp: &[SocketAddr], streams: &[StreamAddr]) -> Vec<String> {
    let udp = udp.iter().map(|addr| format!("udp {addr}"));
    let tcp = streams.iter().filter(|stream| stream.tcp).map(|stream| format!("tcp {}", stream.addr));
    let tls = streams.iter().filter(|stream| stream.tls).map(|stream| format!("tls {}", stream.addr));
    udp.chain(tcp).chain(tls).collect()
}
