//! The server behind a router that translates addresses, and on a machine with two links, in network namespaces.

use std::fs::File;
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::sched::{CloneFlags, setns};

use super::operated::{Operated, PATIENCE};
use testkit::{Requirement, require};

use testkit::turn_client::Client;

/// Namespaces of one test; gone when dropped.
pub(crate) struct Network {
    pub(crate) names: Vec<String>,
}

impl Network {
    /// Makes a namespace for each of `sides`; an error is the reason for a skip. In `lines` of `ip`, `{side}` is
    /// for a namespace's name.
    pub(crate) fn make(sides: &[&str], lines: &[&str]) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}n{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let names: Vec<String> = sides.iter().map(|side| format!("tt{id}{side}")).collect();
        let network = Self { names };
        for name in &network.names {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        for line in lines {
            let line = sides
                .iter()
                .zip(&network.names)
                .fold((*line).to_owned(), |line, (side, name)| line.replace(&format!("{{{side}}}"), name));
            ip(&line)?;
        }
        Ok(network)
    }

    /// Runs `work` on a thread that lives in the namespace `number`; processes that it starts live there too.
    pub(crate) fn on<T: Send>(&self, number: usize, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.names[number])).unwrap();
        let enter_and_work = || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(enter_and_work).join().unwrap())
    }

    /// Loads `rules` into the namespace `number`.
    pub(crate) fn translate(&self, number: usize, rules: &str) -> Result<(), String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[number], "nft", "-f", "-"]).stdin(Stdio::piped());
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| error.to_string())?;
        // Without nft the output is not used.
        let _ = child.stdin.take().unwrap().write_all(rules.as_bytes());
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("nft (Debian package nftables): {}", message.trim())) }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

pub(crate) fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output();
    let output = output.map_err(|error| format!("no program ip (Debian package iproute2): {error}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {line}: {}", message.trim())) }
}

/// A router between 10.77.0.0/24, where the server is, and 11.0.0.0/24: 11.0.0.10 there is 10.77.0.2 here.
fn behind_a_router() -> Result<Network, String> {
    let network = Network::make(
        &["s", "r", "o"],
        &[
            "-n {r} link add in0 type veth peer name in0 netns {s}",
            "-n {r} link add out0 type veth peer name out0 netns {o}",
            "-n {s} addr add 10.77.0.2/24 dev in0",
            "-n {r} addr add 10.77.0.1/24 dev in0",
            "-n {r} addr add 11.0.0.1/24 dev out0",
            "-n {r} addr add 11.0.0.10/24 dev out0",
            "-n {o} addr add 11.0.0.20/24 dev out0",
            "-n {o} addr add 11.0.0.30/24 dev out0",
            "-n {s} link set in0 up",
            "-n {r} link set in0 up",
            "-n {r} link set out0 up",
            "-n {o} link set out0 up",
            "-n {s} route add default via 10.77.0.1",
            "netns exec {r} sysctl -q -w net.ipv4.ip_forward=1",
        ],
    )?;
    network.translate(
        1,
        "table ip nat {\n\
         chain pre { type nat hook prerouting priority -100; iif out0 ip daddr 11.0.0.10 dnat to 10.77.0.2; }\n\
         chain post { type nat hook postrouting priority 100; oif out0 ip saddr 10.77.0.2 snat to 11.0.0.10; }\n\
         }\n",
    )?;
    Ok(network)
}

#[test]
fn a_server_behind_one_to_one_nat_relays_under_its_public_address() {
    let Some(network) = require(Requirement::NetNamespace, behind_a_router()) else { return };
    let keys = "relay_ip = [\"10.77.0.2\"]\nexternal_ip = [\"11.0.0.10\"]\nno_tcp = true";
    let server = network.on(0, || Operated::start_on("10.77.0.2:3478", keys));
    network.on(2, || {
        let public: SocketAddr = "11.0.0.10:3478".parse().unwrap();
        let mut client = Client::on("11.0.0.20".parse().unwrap(), public, "ann", "ann-secret");
        assert_eq!(client.binding(), client.socket.local_addr().unwrap());
        let relayed = client.allocate().unwrap();
        assert_eq!(relayed.ip(), public.ip(), "XOR-RELAYED-ADDRESS is the public one");
        let peer = UdpSocket::bind("11.0.0.30:0").unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
        client.send_channel(0x4000, b"out");
        let mut received = [0; 64];
        let (length, from) = peer.recv_from(&mut received).unwrap();
        assert_eq!((&received[..length], from), (&b"out"[..], relayed));
        peer.send_to(b"back", relayed).unwrap();
        assert_eq!(client.receive_channel(), (0x4000, b"back".to_vec()));
        // Two clients that relay reach each other under their public addresses, without a turn through the router.
        let mut other = Client::on("11.0.0.30".parse().unwrap(), public, "bob", "bob-secret");
        let other_relayed = other.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4001, other_relayed), 0);
        assert_eq!(other.bind_channel(0x4001, relayed), 0);
        client.send_channel(0x4001, b"to the other");
        assert_eq!(other.receive_channel(), (0x4001, b"to the other".to_vec()));
    });
    drop(server);
}

/// R014: the machine's routes would have the answer leave from its other address.
#[test]
fn rfc_r014_replies_of_a_multi_homed_server_leave_from_the_address_that_was_asked() {
    let network = Network::make(
        &["s", "o"],
        &[
            "-n {s} link add one type veth peer name one netns {o}",
            "-n {s} link add two type veth peer name two netns {o}",
            "-n {s} addr add 11.1.0.2/24 dev one",
            "-n {s} addr add 11.2.0.2/24 dev two",
            "-n {o} addr add 11.1.0.1/24 dev one",
            "-n {s} link set one up",
            "-n {s} link set two up",
            "-n {o} link set one up",
            "-n {o} link set two up",
            "-n {o} route add 11.2.0.2 via 11.1.0.2",
        ],
    );
    let Some(network) = require(Requirement::NetNamespace, network) else { return };
    let server = network.on(0, || Operated::start_on("0.0.0.0:3478", "relay_ip = [\"11.1.0.2\"]\nno_tcp = true"));
    network.on(1, || {
        for asked in ["11.1.0.2:3478", "11.2.0.2:3478"] {
            // Its socket receives only from the address that it queried.
            let mut client = Client::on("11.1.0.1".parse().unwrap(), asked.parse().unwrap(), "ann", "ann-secret");
            assert_eq!(client.binding(), client.socket.local_addr().unwrap());
            let relayed = client.allocate().unwrap();
            let peer = UdpSocket::bind("11.1.0.1:0").unwrap();
            assert_eq!(client.permit(peer.local_addr().unwrap()), 0);
            peer.send_to(b"by indication", relayed).unwrap();
            assert_eq!(client.receive_indication(), (peer.local_addr().unwrap(), b"by indication".to_vec()));
        }
    });
    drop(server);
}
