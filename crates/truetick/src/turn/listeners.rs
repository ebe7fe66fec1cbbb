//! The sockets that clients send and connect to, one of each for every worker.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use tt_net::UdpSocket;
use tt_net::stream::StreamListener;

use super::StreamAddr;
use super::settings::TurnConfig;
use super::streams::Takes;

/// Free UDP ports that are tried until one is free for TCP, too.
const PORTS_TRIED: usize = 32;

/// Groups of sockets; a group has one for every worker, on one address.
pub(super) struct Listeners {
    pub(super) udp: Vec<Vec<UdpSocket>>,
    pub(super) streams: Vec<(Takes, Vec<StreamListener>)>,
}

impl Listeners {
    /// Binds everything that `config` names.
    ///
    /// # Errors
    /// An address that cannot be bound.
    pub(super) fn bind(config: &TurnConfig) -> anyhow::Result<Self> {
        let mut listeners = Self { udp: Vec::new(), streams: Vec::new() };
        for &addr in &config.listen {
            if config.tcp_beside_udp {
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

/// One port for UDP and TCP. Where any port will do, one that is free for both.
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

/// What is taken at a listener.
pub(super) fn stream_addr(takes: Takes, listener: &StreamListener, has_tls: bool) -> StreamAddr {
    StreamAddr { addr: listener.local_addr(), tcp: takes == Takes::Both, tls: has_tls }
}

/// Where is listened, with the transport; a port that takes two transports is there twice.
pub(super) fn listens(udp: &[SocketAddr], streams: &[StreamAddr]) -> Vec<String> {
    let udp = udp.iter().map(|addr| format!("udp {addr}"));
    let tcp = streams.iter().filter(|stream| stream.tcp).map(|stream| format!("tcp {}", stream.addr));
    let tls = streams.iter().filter(|stream| stream.tls).map(|stream| format!("tls {}", stream.addr));
    udp.chain(tcp).chain(tls).collect()
}
