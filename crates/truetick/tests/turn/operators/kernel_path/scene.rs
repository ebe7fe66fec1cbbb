//! Client, server, router and peer in network namespaces.

use std::net::{SocketAddr, UdpSocket};

use serde_json::Value;
use testkit::turn_client::Client;
use testkit::{Requirement, find_program, require};

use crate::operators::namespaces::{Network, ip};
use crate::operators::operated::{Operated, PATIENCE, TOKEN, wait};

/// Packets whose checksums prove an interface.
pub(in crate::operators) const PROOF: usize = 64;
pub(in crate::operators) const CHANNEL: u16 = 0x4abc;
pub(in crate::operators) const LEN: usize = 200;
/// The places of the namespaces.
pub(in crate::operators) const CLIENT: usize = 0;
pub(in crate::operators) const SERVER: usize = 1;
pub(in crate::operators) const ROUTER: usize = 2;
pub(in crate::operators) const PEER: usize = 3;

pub(crate) struct Scene {
    pub(super) network: Network,
    pub(crate) server: Operated,
    pub(super) client: Client,
    pub(super) peer: UdpSocket,
    pub(super) relayed: SocketAddr,
    /// Payloads that came through, both ways.
    came: u64,
}

/// The client is on the server's link, and the peer behind a router: both have another Ethernet address than the other.
pub(in crate::operators) fn network(tx_checksums: &str) -> Result<Network, String> {
    find_program("ethtool", "ethtool")?;
    let network = Network::make(
        &["c", "s", "r", "p"],
        &[
            "-n {s} link add c0 type veth peer name s0 netns {c}",
            "-n {s} link add r0 type veth peer name s0 netns {r}",
            "-n {r} link add p0 type veth peer name r0 netns {p}",
            "-n {c} addr add 10.91.0.1/24 dev s0",
            "-n {c} addr add 10.91.0.3/24 dev s0",
            "-n {s} addr add 10.91.0.2/24 dev c0",
            "-n {s} addr add 10.92.0.2/24 dev r0",
            "-n {r} addr add 10.92.0.1/24 dev s0",
            "-n {r} addr add 10.93.0.1/24 dev p0",
            "-n {p} addr add 10.93.0.2/24 dev r0",
            "-n {c} addr add 2a00:91::1/64 dev s0 nodad",
            "-n {s} addr add 2a00:91::2/64 dev c0 nodad",
            "-n {s} addr add 2a00:92::2/64 dev r0 nodad",
            "-n {r} addr add 2a00:92::1/64 dev s0 nodad",
            "-n {r} addr add 2a00:93::1/64 dev p0 nodad",
            "-n {p} addr add 2a00:93::2/64 dev r0 nodad",
            "-n {c} link set s0 up",
            "-n {s} link set c0 up",
            "-n {s} link set r0 up",
            "-n {r} link set s0 up",
            "-n {r} link set p0 up",
            "-n {p} link set r0 up",
            "-n {s} route add 10.93.0.0/24 via 10.92.0.1",
            "-n {p} route add default via 10.93.0.1",
            // Chromium looks for the address of its default route.
            "-n {c} route add default via 10.91.0.2",
            "-n {s} route add 2a00:93::/64 via 2a00:92::1",
            "-n {p} route add default via 2a00:93::1",
            "netns exec {r} sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
        ],
    )?;
    // A veth device receives what a program sends only with NAPI, which it has with GRO.
    for (place, device) in [(CLIENT, "s0"), (ROUTER, "s0"), (PEER, "r0")] {
        let name = &network.names[place];
        ip(&format!("netns exec {name} ethtool -K {device} gro on tx {tx_checksums}"))?;
    }
    Ok(network)
}

/// The addresses of a scene.
pub(crate) struct Ends {
    pub(in crate::operators) client: &'static str,
    pub(in crate::operators) listen: &'static str,
    pub(in crate::operators) relay: &'static str,
    pub(in crate::operators) peer: &'static str,
}

pub(crate) const IPV4: Ends =
    Ends { client: "10.91.0.1", listen: "10.91.0.2:3478", relay: "10.92.0.2", peer: "10.93.0.2" };
pub(in crate::operators) const IPV6: Ends =
    Ends { client: "2a00:91::1", listen: "[2a00:91::2]:3478", relay: "2a00:92::2", peer: "2a00:93::2" };

impl Scene {
    /// `None`: namespaces, or programs in the kernel, are not permitted here.
    pub(super) fn require(data_path: &str, tx_checksums: &str) -> Option<Self> {
        Self::with(data_path, tx_checksums, &IPV4, "")
    }

    /// A server with `keys` more, whose interfaces are proven.
    pub(crate) fn require_proven(ends: &Ends, keys: &str) -> Option<Self> {
        let mut scene = Self::with("native", "off", ends, keys)?;
        scene.prove();
        Some(scene)
    }

    fn with(data_path: &str, tx_checksums: &str, ends: &Ends, keys: &str) -> Option<Self> {
        let network = require(Requirement::NetNamespace, network(tx_checksums))?;
        let keys = format!(
            "relay_ip = [\"{}\"]\nallow_peer = [\"10.0.0.0/8\"]\nno_tcp = true\ndata_path = \"{data_path}\"\n\
             quotas.user_allocations_per_second = 0\ncdr = \"{{folder}}/records\"\n{keys}",
            ends.relay
        );
        let server = network.on(SERVER, || Operated::start_on(ends.listen, &keys));
        let is_refused = |line: &&str| line.contains("the sockets relay") && line.contains("CAP_BPF");
        let refused = server.log().lines().find(is_refused).map(str::to_owned);
        require(Requirement::Privilege, refused.map_or(Ok(()), Err))?;
        let mut client =
            network.on(CLIENT, || Client::on(ends.client.parse().unwrap(), server.listen, "ann", "ann-secret"));
        let peer = network.on(PEER, || UdpSocket::bind((ends.peer, 0)).unwrap());
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(CHANNEL, peer.local_addr().unwrap()), 0);
        Some(Self { network, server, client, peer, relayed, came: 0 })
    }

    /// Another client in the namespace of the first.
    pub(super) fn other_client(&self, local: &str, user: &str) -> Client {
        let password = format!("{user}-secret");
        self.network.on(CLIENT, || Client::on(local.parse().unwrap(), self.server.listen, user, &password))
    }

    /// Gives an order over the API.
    pub(super) fn order(&self, method: &str, path: &str) -> u16 {
        self.network.on(SERVER, || self.server.ask(method, path, Some(TOKEN))).status
    }

    /// Changes the configuration, and reloads it.
    pub(super) fn reload(&self, from: &str, to: &str) {
        self.server.edit(|text| {
            assert!(text.contains(from), "{text}");
            text.replace(from, to)
        });
        let line = self.server.reload();
        assert!(line.contains("INFO"), "{line}");
    }

    /// Runs a line of `ip` in the namespace of the server.
    pub(super) fn ip(&self, line: &str) {
        ip(&format!("-n {} {line}", self.network.names[SERVER])).unwrap();
    }

    /// Sees that nothing goes through any more in either direction, in the kernel or by sockets.
    pub(super) fn assert_cut_off(&mut self) {
        wait("the path is closed", || self.metric("truetick_turn_paths") == 0);
        let dropped = |scene: &Self| scene.ask("/api/v1/turn/drops")["dropped"].as_u64().unwrap();
        let before = dropped(self);
        self.peer.send_to(&[9; LEN], self.relayed).unwrap();
        self.client.send_channel(CHANNEL, &[7; LEN]);
        // Had they gone through, they would be there now.
        wait("the server drops the client's payload", || dropped(self) > before);
        assert!(self.client.is_silent());
        self.peer.set_nonblocking(true).unwrap();
        assert!(self.peer.recv(&mut [0; LEN]).is_err(), "nothing came through");
        self.peer.set_nonblocking(false).unwrap();
    }

    /// Payloads that were relayed by sockets and in the kernel, both ways, as they are counted until now.
    pub(super) fn counted(&self) -> [u64; 2] {
        let drops = self.ask("/api/v1/turn/drops");
        let of = |name: &str| {
            let outcomes = drops["outcomes"].as_array().unwrap();
            outcomes.iter().find(|outcome| outcome["name"] == name).unwrap()["count"].as_u64().unwrap()
        };
        [of("relayed"), of("relayed_by_kernel")]
    }

    /// Payloads that the kernel has relayed, once all that came through are counted. What a path relays is counted once
    /// a second, and after its end.
    pub(super) fn kernel_relayed(&self) -> u64 {
        wait("every payload is counted", || self.counted().iter().sum::<u64>() == self.came);
        self.counted()[1]
    }

    /// Runs `exchange`, which relays at least `payloads`, in the namespace of the client. Also returns the percentage of what
    /// was relayed meanwhile that the kernel has relayed.
    pub(crate) fn share_of<T: Send>(&self, payloads: u64, exchange: impl FnOnce() -> T + Send) -> (T, u64) {
        self.kernel_relayed();
        let before = self.counted();
        let result = self.network.on(CLIENT, exchange);
        let since = || [0, 1].map(|at| self.counted()[at] - before[at]);
        wait("every payload is counted", || since().iter().sum::<u64>() >= payloads);
        let [by_sockets, in_kernel] = since();
        println!("{by_sockets} by sockets, {in_kernel} in the kernel");
        (result, 100 * in_kernel / (by_sockets + in_kernel))
    }

    /// Relays until the kernel relays more than before, both ways.
    pub(super) fn wait_for_kernel(&mut self) {
        let before = self.status();
        wait("the kernel relays again", || {
            self.relay_out();
            self.relay_back();
            let now = self.status();
            ["to_peers", "to_clients"].iter().all(|way| now[way].as_u64() > before[way].as_u64())
        });
    }

    pub(super) fn relay_out(&mut self) {
        self.client.send_channel(CHANNEL, &[7; LEN]);
        let mut received = [0; 2 * LEN];
        let (length, from) = self.peer.recv_from(&mut received).expect("at the peer");
        assert_eq!((&received[..length], from), (&[7; LEN][..], self.relayed));
        self.came += 1;
    }

    pub(super) fn relay_back(&mut self) {
        self.peer.send_to(&[9; LEN], self.relayed).unwrap();
        assert_eq!(self.client.receive_channel(), (CHANNEL, vec![9; LEN]));
        self.came += 1;
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
