//! Client, server, router and peer in network namespaces.

use std::net::{SocketAddr, UdpSocket};

use serde_json::Value;
use testkit::turn_client::Client;
use testkit::{Requirement, find_program, require};

use crate::operators::namespaces::{Network, ip};
use crate::operators::operated::{Operated, PATIENCE, wait};

/// Packets whose checksums prove an interface.
pub(super) const PROOF: usize = 64;
pub(super) const CHANNEL: u16 = 0x4abc;
pub(super) const LEN: usize = 200;
/// The places of the namespaces.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;
pub(super) const ROUTER: usize = 2;
pub(super) const PEER: usize = 3;

pub(super) struct Scene {
    pub(super) network: Network,
    pub(super) server: Operated,
    pub(super) client: Client,
    pub(super) peer: UdpSocket,
    pub(super) relayed: SocketAddr,
}

/// The client is on the server's link, and the peer behind a router: both have another Ethernet address than the other.
pub(super) fn network(tx_checksums: &str) -> Result<Network, String> {
    find_program("ethtool", "ethtool")?;
    let network = Network::make(
        &["c", "s", "r", "p"],
        &[
            "-n {s} link add c0 type veth peer name s0 netns {c}",
            "-n {s} link add r0 type veth peer name s0 netns {r}",
            "-n {r} link add p0 type veth peer name r0 netns {p}",
            "-n {c} addr add 10.91.0.1/24 dev s0",
            "-n {s} addr add 10.91.0.2/24 dev c0",
            "-n {s} addr add 10.92.0.2/24 dev r0",
            "-n {r} addr add 10.92.0.1/24 dev s0",
            "-n {r} addr add 10.93.0.1/24 dev p0",
            "-n {p} addr add 10.93.0.2/24 dev r0",
            "-n {c} link set s0 up",
            "-n {s} link set c0 up",
            "-n {s} link set r0 up",
            "-n {r} link set s0 up",
            "-n {r} link set p0 up",
            "-n {p} link set r0 up",
            "-n {s} route add 10.93.0.0/24 via 10.92.0.1",
            "-n {p} route add default via 10.93.0.1",
            "netns exec {r} sysctl -q -w net.ipv4.ip_forward=1",
        ],
    )?;
    // A veth device receives what a program sends only with NAPI, which it has with GRO.
    for (place, device) in [(CLIENT, "s0"), (ROUTER, "s0"), (PEER, "r0")] {
        let name = &network.names[place];
        ip(&format!("netns exec {name} ethtool -K {device} gro on tx {tx_checksums}"))?;
    }
    Ok(network)
}

impl Scene {
    /// `None`: namespaces, or programs in the kernel, are not permitted here.
    pub(super) fn require(data_path: &str, tx_checksums: &str) -> Option<Self> {
        let network = require(Requirement::NetNamespace, network(tx_checksums))?;
        let keys = format!(
            "relay_ip = [\"10.92.0.2\"]\nallow_peer = [\"10.0.0.0/8\"]\nno_tcp = true\ndata_path = \"{data_path}\"\n\
             quotas.user_allocations_per_second = 0\ncdr = \"{{folder}}/records\""
        );
        let server = network.on(SERVER, || Operated::start_on("10.91.0.2:3478", &keys));
        let is_refused = |line: &&str| line.contains("the sockets relay") && line.contains("CAP_BPF");
        let refused = server.log().lines().find(is_refused).map(str::to_owned);
        require(Requirement::Privilege, refused.map_or(Ok(()), Err))?;
        let mut client =
            network.on(CLIENT, || Client::on("10.91.0.1".parse().unwrap(), server.listen, "ann", "ann-secret"));
        let peer = network.on(PEER, || UdpSocket::bind("10.93.0.2:0").unwrap());
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(CHANNEL, peer.local_addr().unwrap()), 0);
        Some(Self { network, server, client, peer, relayed })
    }

    pub(super) fn relay_out(&mut self) {
        self.client.send_channel(CHANNEL, &[7; LEN]);
        let mut received = [0; 2 * LEN];
        let (length, from) = self.peer.recv_from(&mut received).expect("at the peer");
        assert_eq!((&received[..length], from), (&[7; LEN][..], self.relayed));
    }

    pub(super) fn relay_back(&mut self) {
        self.peer.send_to(&[9; LEN], self.relayed).unwrap();
        assert_eq!(self.client.receive_channel(), (CHANNEL, vec![9; LEN]));
    }

    /// Relays both ways until the kernel does it; returns how many payloads that took, each way.
    pub(super) fn prove(&mut self) -> u64 {
        let mut relayed = 0;
        wait("the kernel relays both ways", || {
            (0..PROOF).for_each(|_| {
                self.relay_out();
                self.relay_back();
            });
            relayed += PROOF as u64;
            let status = self.status();
            status["to_peers"].as_u64() > Some(0) && status["to_clients"].as_u64() > Some(0)
        });
        relayed
    }

    pub(super) fn status(&self) -> Value {
        self.ask("/api/v1/turn/kernel-path")
    }

    pub(super) fn ask(&self, path: &str) -> Value {
        self.network.on(SERVER, || self.server.ask("GET", path, None)).json()
    }

    pub(super) fn metric(&self, series: &str) -> u64 {
        let metrics = self.network.on(SERVER, || self.server.ask("GET", "/metrics", None)).body;
        let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} in {metrics}")).parse().unwrap()
    }
}
