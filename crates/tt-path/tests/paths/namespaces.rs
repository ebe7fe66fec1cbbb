//! Client, relay and peer in network namespaces of their own, with native XDP on the relay's two veth interfaces.

use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::time::{ClockId, clock_gettime};
use testkit::{Requirement, find_program, require};
use tt_model::Nanos;
use tt_path::{Capacity, Direction, Interface, Mode, NextHop, PathKey, PathSpec, Paths, PortKind, Proof, Reason};

use crate::require_kernel;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const CHANNEL: u16 = 0x4abc;
/// Indices and Ethernet addresses of both ends of both links: relay and client, relay and peer.
pub(crate) const TOWARD_CLIENT: (u32, [u8; 6]) = (11, [2, 0, 0, 0, 0, 0x11]);
pub(crate) const CLIENT: (u32, [u8; 6]) = (12, [2, 0, 0, 0, 0, 0x12]);
pub(crate) const TOWARD_PEER: (u32, [u8; 6]) = (13, [2, 0, 0, 0, 0, 0x13]);
pub(crate) const PEER: (u32, [u8; 6]) = (14, [2, 0, 0, 0, 0, 0x14]);

/// Three namespaces: client, relay, peer.
pub(crate) struct Network(pub(crate) [String; 3]);

#[derive(Clone, Copy)]
pub(crate) enum Side {
    Client = 0,
    Relay = 1,
    Peer = 2,
}

impl Network {
    /// Makes the namespaces; an error is the reason for a skip.
    pub(crate) fn make() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let network = Self(["c", "r", "p"].map(|side| format!("ttp{id}{side}")));
        let [client, relay, peer] = &network.0;
        for name in &network.0 {
            run("ip", &format!("netns add {name}"))?;
        }
        let link = |near: (u32, [u8; 6]), far: (u32, [u8; 6]), namespace: &str| {
            let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
            let (near_end, far_end) = (format!("r{}", near.0), format!("f{}", far.0));
            format!(
                "-n {relay} link add {near_end} index {} address {} type veth peer name {far_end} index {} address {} \
                 netns {namespace}",
                near.0,
                mac(near.1),
                far.0,
                mac(far.1)
            )
        };
        let lines = [
            link(TOWARD_CLIENT, CLIENT, client),
            link(TOWARD_PEER, PEER, peer),
            format!("-n {relay} addr add 10.91.0.2/24 dev r11"),
            format!("-n {relay} addr add 2001:db8:91::2/64 dev r11 nodad"),
            format!("-n {relay} addr add 10.92.0.2/24 dev r13"),
            format!("-n {relay} addr add 2001:db8:92::2/64 dev r13 nodad"),
            format!("-n {client} addr add 10.91.0.1/24 dev f12"),
            format!("-n {client} addr add 2001:db8:91::1/64 dev f12 nodad"),
            format!("-n {peer} addr add 10.92.0.1/24 dev f14"),
            format!("-n {peer} addr add 2001:db8:92::1/64 dev f14 nodad"),
            format!("-n {relay} link set r11 up"),
            format!("-n {relay} link set r13 up"),
            format!("-n {client} link set f12 up"),
            format!("-n {peer} link set f14 up"),
        ];
        lines.iter().try_for_each(|line| run("ip", line))?;
        // A veth receives frames of XDP only with NAPI, which it has with GRO.
        for (name, end) in [(client, "f12"), (peer, "f14")] {
            run("ip", &format!("netns exec {name} ethtool -K {end} gro on"))?;
        }
        Ok(network)
    }

    /// Sets whether the client and the peer leave checksums to their devices.
    pub(crate) fn set_tx_checksums(&self, state: &str) {
        for (side, end) in [(Side::Client, "f12"), (Side::Peer, "f14")] {
            run("ip", &format!("netns exec {} ethtool -K {end} tx {state}", self.0[side as usize])).unwrap();
        }
    }

    /// Runs `work` on a thread in a namespace.
    pub(crate) fn on<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.0[side as usize])).unwrap();
        let enter_and_work = || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(enter_and_work).join().unwrap())
    }

    pub(crate) fn socket(&self, side: Side, address: SocketAddr) -> UdpSocket {
        let socket = self.on(side, || UdpSocket::bind(address).unwrap());
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// UDP datagrams with a wrong checksum that a namespace received.
    fn checksum_errors(&self, side: Side) -> u64 {
        self.on(side, || {
            let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
            let mut lines = text.lines().filter(|line| line.starts_with("Udp: "));
            let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
            let at = names.split(' ').position(|name| name == "InCsumErrors").unwrap();
            let ip4: u64 = values.split(' ').nth(at).unwrap().parse().unwrap();
            let text = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap();
            let line = text.lines().find(|line| line.starts_with("Udp6InCsumErrors")).unwrap();
            ip4 + line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = run("ip", &format!("netns del {name}"));
        }
    }
}

pub(crate) fn run(program: &str, line: &str) -> Result<(), String> {
    let output = Command::new(program).args(line.split_whitespace()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program} {line}: {}", text.trim())) }
}

/// The relay's program on both interfaces, and the sockets of all ends.
///
/// The sockets live as long as it: a process that another test starts holds a copy of them for a moment, so that an
/// address cannot be bound again at once.
pub(crate) struct Scene {
    pub(crate) network: Network,
    pub(crate) paths: Paths,
    /// Client, listener, relayed and peer, over IPv4 and over IPv6.
    sockets: [[UdpSocket; 4]; 2],
}

/// Addresses of one family: client, listener, relayed, peer.
fn addresses(is_ip4: bool) -> [SocketAddr; 4] {
    let texts = if is_ip4 {
        ["10.91.0.1:40000", "10.91.0.2:3478", "10.92.0.2:49152", "10.92.0.1:9000"]
    } else {
        ["[2001:db8:91::1]:40000", "[2001:db8:91::2]:3478", "[2001:db8:92::2]:49152", "[2001:db8:92::1]:9000"]
    };
    texts.map(|text| text.parse().unwrap())
}

impl Scene {
    pub(crate) fn require(tx_checksums: &str) -> Option<Self> {
        drop(require_kernel()?);
        require(Requirement::Program, find_program("ethtool", "ethtool"))?;
        let network = require(Requirement::NetNamespace, Network::make())?;
        network.set_tx_checksums(tx_checksums);
        let mut paths = Paths::load(Capacity { paths: 4, meters: 1 }).unwrap();
        network.on(Side::Relay, || {
            for (name, (index, mac)) in [("r11", TOWARD_CLIENT), ("r13", TOWARD_PEER)] {
                paths.attach(&Interface { name: name.to_owned(), index, mac, redirects: true }, Mode::Native).unwrap();
            }
            let again = Interface { name: "r11".to_owned(), index: 11, mac: [0; 6], redirects: true };
            let error = paths.attach(&again, Mode::Native).unwrap_err();
            assert!(error.to_string().contains("cannot be attached with interface 11"), "{error}");
        });
        let mut writer = paths.writer().unwrap();
        let hop = |(_, to): (u32, [u8; 6]), (ifindex, from)| NextHop { to, from, ifindex, mtu: 1500 };
        writer.set_hop(0, Some(hop(PEER, TOWARD_PEER))).unwrap();
        writer.set_hop(1, Some(hop(CLIENT, TOWARD_CLIENT))).unwrap();
        for (number, is_ip4) in [(0, true), (2, false)] {
            let [client, listener, relayed, peer] = addresses(is_ip4);
            let spec = |direction, (from, to), (new_from, new_to), (ifindex, hop): (u32, u16)| PathSpec {
                key: PathKey { direction, channel: CHANNEL, from, to, ifindex },
                new_from,
                new_to,
                path: number + u32::from(hop),
                meter: None,
                until: Nanos(u64::MAX),
                epoch: 1,
                hop,
            };
            writer.open(&spec(Direction::ToPeer, (client, listener), (relayed, peer), (TOWARD_CLIENT.0, 0))).unwrap();
            writer.open(&spec(Direction::ToClient, (peer, relayed), (listener, client), (TOWARD_PEER.0, 1))).unwrap();
        }
        let board = paths.board();
        board.set_port(3478, PortKind::Listener);
        board.set_port(49_152, PortKind::Relay);
        board.set_epoch(1);
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
        // A minute ahead: this test has no thread for the heartbeat.
        board.beat(Nanos(u64::try_from(now.tv_sec()).unwrap() * Nanos::PER_SECOND + 60 * Nanos::PER_SECOND));
        board.switch(true);
        let sides = [Side::Client, Side::Relay, Side::Relay, Side::Peer];
        let sockets = [true, false].map(|is_ip4| {
            let addresses = addresses(is_ip4);
            [0, 1, 2, 3].map(|end: usize| network.socket(sides[end], addresses[end]))
        });
        Some(Self { network, paths, sockets })
    }

    /// Sends `count` datagrams from client to peer and back. Returns those that the relay's own sockets received, by
    /// direction; all others reached the other end, with the right bytes and addresses.
    pub(crate) fn exchange(&self, is_ip4: bool, count: usize) -> [usize; 2] {
        let [_, listener_at, relayed_at, _] = addresses(is_ip4);
        let [client, listener, relayed, peer] = &self.sockets[usize::from(!is_ip4)];
        let mut at_sockets = [0; 2];
        for step in 0..count {
            let data: Vec<u8> = (0..20 + step % 1400).map(|at| (at * 7 + step) as u8).collect();
            let header = [CHANNEL.to_be_bytes(), u16::try_from(data.len()).unwrap().to_be_bytes()].concat();
            let message = [header, data.clone()].concat();
            for (direction, (from, to, socket, other_end), (sent, received)) in [
                (0, (client, listener_at, listener, (peer, relayed_at)), (&message, &data)),
                (1, (peer, relayed_at, relayed, (client, listener_at)), (&data, &message)),
            ] {
                let before = self.relayed();
                from.send_to(sent, to).unwrap();
                let mut buffer = [0; 2000];
                // The program decides while the datagram is sent, or just after; either end gets it.
                let (len, source, is_at_socket) = self.first_of(socket, other_end.0, &mut buffer);
                at_sockets[direction] += usize::from(is_at_socket);
                if is_at_socket {
                    assert_eq!(&buffer[..len], &sent[..], "the socket gets what was sent");
                    assert_eq!(self.relayed(), before);
                } else {
                    assert_eq!((&buffer[..len], source), (&received[..], other_end.1));
                    assert_eq!(self.relayed(), before + 1);
                }
            }
        }
        at_sockets
    }

    fn relayed(&self) -> u64 {
        self.paths.reasons().unwrap().of(Reason::Relayed)
    }

    /// Waits for a datagram at either socket.
    fn first_of(&self, socket: &UdpSocket, other: &UdpSocket, buffer: &mut [u8]) -> (usize, SocketAddr, bool) {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;
        let mut polled = [socket, other].map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
        let ready = poll(&mut polled, PollTimeout::try_from(PATIENCE).unwrap()).unwrap();
        assert_ne!(ready, 0, "a datagram was lost: {:?}", self.paths.reasons());
        let is_at_socket = polled[0].any() == Some(true);
        let (len, from) = if is_at_socket { socket } else { other }.recv_from(buffer).unwrap();
        (len, from, is_at_socket)
    }
}

#[test]
fn datagrams_are_relayed_both_ways_once_the_interfaces_are_proven() {
    let Some(scene) = Scene::require("off") else { return };
    // The first 64 candidates of each interface prove it, and go to the sockets.
    assert_eq!(scene.exchange(true, 1_500), [64, 64]);
    assert_eq!(scene.exchange(false, 1_500), [0, 0]);
    for (ifindex, _) in [TOWARD_CLIENT, TOWARD_PEER] {
        let proof = scene.paths.board().proof(ifindex);
        assert_eq!((proof.proof, proof.bad), (Proof::Proven, 0));
    }
    for side in [Side::Client, Side::Relay, Side::Peer] {
        assert_eq!(scene.network.checksum_errors(side), 0);
    }
    let tallies = [0, 1, 2, 3].map(|path| scene.paths.board().tally(path).unwrap().packets);
    assert_eq!(tallies, [1_436, 1_436, 1_500, 1_500]);
}

#[test]
fn an_interface_with_checksum_offload_stays_unproven_and_loses_nothing() {
    let Some(scene) = Scene::require("on") else { return };
    for is_ip4 in [true, false] {
        assert_eq!(scene.exchange(is_ip4, 100), [100, 100]);
    }
    for (ifindex, _) in [TOWARD_CLIENT, TOWARD_PEER] {
        assert_eq!(scene.paths.board().proof(ifindex).proof, Proof::Unproven);
    }
    // The remedy that the proof's documentation names.
    scene.network.set_tx_checksums("off");
    [TOWARD_CLIENT, TOWARD_PEER].iter().for_each(|(ifindex, _)| scene.paths.board().prove_again(*ifindex));
    assert_eq!(scene.exchange(true, 65), [64, 64]);
    // A proven interface whose sender turns the offload on again: each packet goes up.
    scene.network.set_tx_checksums("on");
    assert_eq!(scene.exchange(true, 100), [100, 100]);
    assert_eq!(scene.paths.board().proof(TOWARD_CLIENT.0).proof, Proof::Proven);
    for side in [Side::Client, Side::Relay, Side::Peer] {
        assert_eq!(scene.network.checksum_errors(side), 0);
    }
}

#[test]
fn a_detached_program_relays_nothing() {
    let Some(mut scene) = Scene::require("off") else { return };
    assert_eq!(scene.exchange(true, 65), [64, 64]);
    assert!(scene.paths.detach(TOWARD_CLIENT.0) && !scene.paths.detach(TOWARD_CLIENT.0));
    assert_eq!(scene.exchange(true, 10), [10, 0]);
    assert_eq!(scene.paths.board().proof(TOWARD_CLIENT.0).proof, Proof::Off);
    // The end of the process has the same effect: nothing is pinned.
    let Scene { network, paths, .. } = scene;
    let is_attached = || {
        let command = ["-n", &network.0[Side::Relay as usize], "link", "show"];
        let output = Command::new("ip").args(command).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("xdp")
    };
    assert!(is_attached());
    drop(paths);
    assert!(!is_attached());
}
