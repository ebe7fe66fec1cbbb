//! The built binary under floods from ten thousand source addresses, in a separate network namespace.
//!
//! Meanwhile an old client's relay carries on, a new client is let in, and the server's memory stays as it was.

mod flood;
mod network;

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use testkit::{Requirement, measured, require};

use crate::server::{PASSWORD, Server, USER};
use flood::{Came, Kind};
use network::{HONEST, Network, SERVER, Side};
use testkit::turn_client::Client;

const CHANNEL: u16 = 0x4001;
/// The flood that is measured.
const FLOOD: Duration = Duration::from_secs(6);
/// A flood of the same kind before it, so that buffers that any traffic would touch are touched.
const WARMUP: Duration = Duration::from_secs(1);
/// Round trips of the old client in a second.
const ECHOES: u32 = 200;
/// RFC 8489 section 6.2.1: a client sends its request again after 500 ms.
const RETRANSMIT: Duration = Duration::from_millis(500);
/// Datagrams in a second of a flood beyond what the server reads.
const OVERLOAD: u32 = 200_000;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);
/// A new client has its allocation by then.
const LET_IN: Duration = Duration::from_secs(2);
const RESIDENT_GROWTH_MAX: u64 = 1 << 20;

/// What a flood comes over.
#[derive(Clone, Copy, Debug)]
enum Over {
    Udp,
    Tcp,
}

fn start() -> Server {
    let listen = format!("{SERVER}:0");
    let (ip, honest) = (SERVER.to_string(), format!("{HONEST}/32"));
    Server::start(&["--listen", &listen, "--relay-ip", &ip, "--allow-peer", &honest, "--workers", "4"])
}

/// Runs a flood together with honest clients, and checks the guarantees of all clients.
fn require_withstood(kind: Kind, over: Over) -> Option<Came> {
    let flood = match over {
        Over::Udp => flood::udp,
        Over::Tcp => flood::tcp,
    };
    let network = require(Requirement::NetNamespace, Network::make())?;
    let server = network.on(Side::Server, start);
    let listener = server.listen[0];
    let target = match over {
        Over::Udp => listener,
        Over::Tcp => server.tcp[0],
    };
    let mut old = network.on(Side::Outside, || OldClient::new(listener));
    network.on(Side::Outside, || flood(kind, target, WARMUP));
    old.echo_while(&AtomicBool::new(false), 20);
    let before = server.resident_bytes();

    let is_over = AtomicBool::new(false);
    let (came, echoes, tries, let_in) = thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            let came = network.on(Side::Outside, || flood(kind, target, FLOOD));
            is_over.store(true, Ordering::Relaxed);
            came
        });
        let echoing = scope.spawn(|| old.echo_while(&is_over, u32::MAX));
        let trying = scope.spawn(|| network.on(Side::Outside, || FirstTries::make_while(listener, &is_over)));
        let let_in = network.on(Side::Outside, || {
            let started = Instant::now();
            let mut new = Client::on(HONEST, listener, USER, PASSWORD);
            new.retransmits_after = Some(RETRANSMIT);
            new.allocate().unwrap();
            started.elapsed()
        });
        (flooding.join().unwrap(), echoing.join().unwrap(), trying.join().unwrap(), let_in)
    });
    let grown = server.resident_bytes().saturating_sub(before);
    println!(
        "{kind:?} over {over:?}: {:.0}/s, {came:?}; {echoes:?}; {tries:?}; let in after {let_in:?}; resident {before} B + \
         {grown} B",
        came.rate()
    );
    assert!(came.sent > 1_000, "no flood: {came:?}");
    assert!(grown <= RESIDENT_GROWTH_MAX, "resident memory grew by {grown} B");
    assert!(let_in <= LET_IN, "a new client waited {let_in:?}");
    assert!(tries.made >= 100 && tries.challenged * 100 >= tries.made * 99, "{tries:?}");
    assert!(echoes.sent >= 1_000, "too few to detect a loss of one in a thousand: {echoes:?}");
    assert!(echoes.lost() * 1_000 <= echoes.sent, "the old client's relay lost {} of {}", echoes.lost(), echoes.sent);
    server.stop();
    measured(
        "forged sources",
        format_args!(
            "{kind:?} over {over:?} at {:.0}/s: {} of {} first tries challenged, the old client lost {} of {}",
            came.rate(),
            tries.challenged,
            tries.made,
            echoes.lost(),
            echoes.sent
        ),
    );
    Some(came)
}

/// First tries of new clients during a flood, and those that were challenged.
#[derive(Clone, Copy, Debug, Default)]
struct FirstTries {
    made: u32,
    challenged: u32,
}

impl FirstTries {
    /// Sends a first Allocate from another port every few milliseconds until `is_over`. Nothing is sent twice.
    fn make_while(server: SocketAddr, is_over: &AtomicBool) -> Self {
        let mut tries = Self::default();
        let mut bytes = [0; 1_500];
        while !is_over.load(Ordering::Relaxed) {
            let socket = UdpSocket::bind((HONEST, 0)).unwrap();
            socket.set_read_timeout(Some(RETRANSMIT)).unwrap();
            socket.send_to(&Kind::Unauthenticated.message(1 << 31 | tries.made), server).unwrap();
            tries.made += 1;
            // Error response to Allocate (RFC 8656 section 17).
            tries.challenged += u32::from(socket.recv(&mut bytes).is_ok() && bytes[..2] == [0x01, 0x13]);
            thread::park_timeout(BETWEEN_TRIES);
        }
        tries
    }
}

/// A client with a channel to a peer that echoes.
struct OldClient {
    client: Client,
    peer: UdpSocket,
}

#[derive(Clone, Copy, Debug, Default)]
struct Echoes {
    sent: u64,
    received: u64,
}

impl Echoes {
    fn lost(&self) -> u64 {
        self.sent - self.received
    }
}

impl OldClient {
    fn new(server: SocketAddr) -> Self {
        let peer = UdpSocket::bind((HONEST, 0)).unwrap();
        peer.set_nonblocking(true).unwrap();
        let mut client = Client::on(HONEST, server, USER, PASSWORD);
        client.allocate().unwrap();
        assert_eq!(client.bind_channel(CHANNEL, peer.local_addr().unwrap()), 0);
        Self { client, peer }
    }

    /// Sends numbered payloads, and counts those that come back, until `is_over` or `most` were sent.
    fn echo_while(&mut self, is_over: &AtomicBool, most: u32) -> Echoes {
        self.client.socket.set_nonblocking(true).unwrap();
        let started = Instant::now();
        let (mut echoes, mut seen) = (Echoes::default(), Vec::new());
        let mut grace = None;
        loop {
            let done = is_over.load(Ordering::Relaxed) || echoes.sent >= u64::from(most);
            if done && *grace.get_or_insert(Instant::now() + Duration::from_secs(1)) <= Instant::now() {
                return echoes;
            }
            let due = (started.elapsed().as_millis() as u64 * u64::from(ECHOES) / 1_000).min(u64::from(most));
            while !done && echoes.sent < due {
                self.client.send_channel(CHANNEL, &echoes.sent.to_be_bytes());
                echoes.sent += 1;
                seen.push(false);
            }
            echoes.received += self.pass_on(&mut seen);
            if done && echoes.lost() == 0 {
                return echoes;
            }
            let mut sockets = [&self.client.socket, &self.peer].map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN));
            poll(&mut sockets, PollTimeout::from(2u8)).unwrap();
        }
    }

    /// What came to the peer goes back; what came to the client is ticked off.
    fn pass_on(&self, seen: &mut [bool]) -> u64 {
        let (mut bytes, mut new) = ([0; 256], 0);
        while let Ok((length, from)) = self.peer.recv_from(&mut bytes) {
            self.peer.send_to(&bytes[..length], from).unwrap();
        }
        while let Ok(length) = self.client.socket.recv(&mut bytes) {
            assert_eq!((length, &bytes[..4]), (12, &[0x40, 1, 0, 8][..]));
            let number = u64::from_be_bytes(bytes[4..12].try_into().unwrap()) as usize;
            new += u64::from(!std::mem::replace(&mut seen[number], true));
        }
        new
    }
}

/// More than one worker can read, from a generator that shares its CPU. The client's datagrams do not share the loss.
#[test]
fn a_client_loses_nothing_to_a_flood_beyond_what_its_worker_reads() {
    let Some(network) = require(Requirement::NetNamespace, Network::make()) else { return };
    let (listen, ip, honest) = (format!("{SERVER}:0"), SERVER.to_string(), format!("{HONEST}/32"));
    let flags = ["--listen", &listen, "--relay-ip", &ip, "--allow-peer", &honest, "--workers", "1"];
    let server = network.on(Side::Server, || Server::start(&flags));
    let listener = server.listen[0];
    let mut old = network.on(Side::Outside, || OldClient::new(listener));
    let is_over = AtomicBool::new(false);
    let (came, echoes, tries) = thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            let came = network.on(Side::Outside, || flood::udp_at(OVERLOAD, Kind::Binding, listener, FLOOD));
            is_over.store(true, Ordering::Relaxed);
            came
        });
        let make_tries = || network.on(Side::Outside, || FirstTries::make_while(listener, &is_over));
        let trying = [(); 8].map(|()| scope.spawn(make_tries));
        let echoes = old.echo_while(&is_over, u32::MAX);
        let tries = trying.map(|one| one.join().unwrap());
        (flooding.join().unwrap(), echoes, tries)
    });
    let farewell = server.stop();
    let made: u32 = tries.iter().map(|it| it.made).sum();
    let challenged: u32 = tries.iter().map(|it| it.challenged).sum();
    println!("{:.0}/s, {came:?}; {echoes:?}; {challenged} of {made} first tries; {}", came.rate(), farewell.line);
    assert!(farewell.line.contains("dropped by the kernel"), "no more than it reads: {}", farewell.line);
    assert!(echoes.sent >= 1_000 && echoes.lost() * 1_000 <= echoes.sent, "the old client lost {echoes:?}");
    assert!(challenged > 0, "strangers get a share: 0 of {made}");
    measured(
        "forged sources",
        format_args!(
            "{:.0}/s, more than a worker reads: the old client lost {} of {}, {challenged} of {made} first tries challenged",
            came.rate(),
            echoes.lost(),
            echoes.sent
        ),
    );
}

#[test]
fn case_a43_a_flood_of_bindings_is_answered_with_less_than_twice_its_bytes() {
    let Some(came) = require_withstood(Kind::Binding, Over::Udp) else { return };
    assert!(came.replies > 0 && came.link_bytes * 10 <= came.sent_bytes * 16, "{came:?}");
}

#[test]
fn case_a43_a_flood_without_credentials_is_answered_with_at_most_three_times_its_bytes() {
    let Some(came) = require_withstood(Kind::Unauthenticated, Over::Udp) else { return };
    assert!(came.replies > 0 && came.link_bytes <= came.sent_bytes * 3, "{came:?}");
}

#[test]
fn case_a30_forged_integrity_from_ten_thousand_sources_costs_no_memory() {
    let Some(came) = require_withstood(Kind::Forged, Over::Udp) else { return };
    assert!(came.replies > 0 && came.link_bytes <= came.sent_bytes * 2, "{came:?}");
}

#[test]
fn a_flood_of_junk_is_not_answered() {
    let Some(came) = require_withstood(Kind::Junk, Over::Udp) else { return };
    assert_eq!(came.replies, 0, "{came:?}");
}

#[test]
fn a_flood_of_connections_with_bindings_is_answered() {
    let Some(came) = require_withstood(Kind::Binding, Over::Tcp) else { return };
    assert!(came.replies * 100 >= came.sent * 90, "{came:?}");
}

#[test]
fn a_flood_of_connections_without_credentials_lets_others_in() {
    require_withstood(Kind::Unauthenticated, Over::Tcp);
}

#[test]
fn case_a30_forged_integrity_on_connections_of_ten_thousand_sources_costs_no_memory() {
    require_withstood(Kind::Forged, Over::Tcp);
}

#[test]
fn a_flood_of_connections_with_junk_is_not_answered() {
    let Some(came) = require_withstood(Kind::Junk, Over::Tcp) else { return };
    assert_eq!(came.replies, 0, "{came:?}");
}
