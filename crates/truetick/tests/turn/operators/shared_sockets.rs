//! Relays that share a socket, in the shipped program: client, server, router and peer in network namespaces.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::turn_client::Client;
use testkit::{Requirement, require};

use super::kernel_path::scene::{CLIENT, Ends, IPV4, IPV6, PEER, SERVER, network};
use super::namespaces::{Network, ip};
use super::operated::{Operated, PATIENCE, wait};

const CHANNEL: u16 = 0x4abc;
/// Datagrams that one port may have in the receive buffer.
const BUDGET: usize = 512;

struct Scene {
    network: Network,
    server: Operated,
    ends: &'static Ends,
}

impl Scene {
    /// A server whose relays share sockets. `None`: namespaces or programs in the kernel are not permitted here.
    fn require(ends: &'static Ends) -> Option<Self> {
        let network = require(Requirement::NetNamespace, reserved_network())?;
        let server = network.on(SERVER, || Operated::start_on(ends.listen, &keys(ends)));
        let refused = server.log().lines().find(|line| line.contains("each relay has a socket")).map(str::to_owned);
        require(Requirement::Privilege, refused.map_or(Ok(()), Err))?;
        Some(Self { network, server, ends })
    }

    fn client(&self, user: &str) -> Client {
        let password = format!("{user}-secret");
        self.network.on(CLIENT, || Client::on(self.ends.client.parse().unwrap(), self.server.listen, user, &password))
    }

    fn peer(&self) -> UdpSocket {
        let peer = self.network.on(PEER, || UdpSocket::bind((self.ends.peer, 0)).unwrap());
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        peer
    }

    fn ask(&self, path: &str) -> Value {
        self.network.on(SERVER, || self.server.ask("GET", path, None)).json()
    }

    /// In is what went out and what was dropped by name.
    fn assert_closed(&self) {
        let ledger = self.ask("/api/v1/turn/drops");
        let of = |name: &str| ledger[name].as_u64().unwrap();
        assert_eq!(of("in"), of("out") + of("dropped"), "{ledger}");
    }

    /// A count of the ledger: an outcome or a drop.
    fn count(&self, name: &str) -> u64 {
        let ledger = self.ask("/api/v1/turn/drops");
        let all = ["outcomes", "drops"].map(|list| ledger[list].as_array().unwrap());
        let named = all.into_iter().flatten().find(|count| count["name"] == name);
        named.map_or(0, |count| count["count"].as_u64().unwrap())
    }

    fn kernel_lost(&self) -> u64 {
        self.ask("/api/v1/turn/drops")["kernel_lost"].as_u64().unwrap()
    }
}

fn keys(ends: &Ends) -> String {
    format!(
        "relay_ip = [\"{}\"]\nallow_peer = [\"10.0.0.0/8\"]\nno_tcp = true\nrelay_sockets = \"shared\"\n\
         icmp_indications = \"always\"\nquotas.user_allocations_per_second = 0\n",
        ends.relay
    )
}

/// The network of the kernel path, in which the system gives no port of relays to other programs.
fn reserved_network() -> Result<Network, String> {
    let network = network("on")?;
    ip(&format!("netns exec {} sysctl -q -w net.ipv4.ip_local_reserved_ports=49152-65535", network.names[SERVER]))?;
    Ok(network)
}

/// Relays `payload` in both directions by a channel.
fn relay_both_ways(client: &mut Client, peer: &UdpSocket, relayed: SocketAddr, payload: &[u8]) {
    client.send_channel(CHANNEL, payload);
    let mut received = vec![0; payload.len() + 1];
    let (length, from) = peer.recv_from(&mut received).expect("at the peer");
    assert_eq!((&received[..length], from), (payload, relayed));
    peer.send_to(payload, relayed).unwrap();
    assert_eq!(client.receive_channel(), (CHANNEL, payload.to_vec()));
}

/// Also what is longer than an MTU, in fragments, and nothing is bound to a port of the relays.
#[test]
fn relays_share_a_socket_in_both_directions() {
    for ends in [&IPV4, &IPV6] {
        let Some(scene) = Scene::require(ends) else { return };
        let peer = scene.peer();
        let mut clients: Vec<_> = ["ann", "bob", "ann"].map(|user| scene.client(user)).into();
        let allocate = |client: &mut Client| {
            let relayed = client.allocate().unwrap();
            assert_eq!(client.bind_channel(CHANNEL, peer.local_addr().unwrap()), 0);
            relayed
        };
        let relayed: Vec<SocketAddr> = clients.iter_mut().map(allocate).collect();
        for length in [0, 1, 160, 1_200, 1_472, 1_473, 4_001, 60_001] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            // IPv6 fragments are to be reassembled by the peer, too.
            for (client, relayed) in clients.iter_mut().zip(&relayed) {
                relay_both_ways(client, &peer, *relayed, &payload);
            }
        }
        let bound = scene.network.on(SERVER, || {
            ["udp", "udp6"].map(|list| std::fs::read_to_string(format!("/proc/thread-self/net/{list}")).unwrap())
        });
        // Those that send what is longer than an MTU are bound; with the others the relays have no sockets.
        let bound_relays = |port: u16| bound.iter().any(|list| list.contains(&format!(":{port:04X} 0000")));
        assert!(bound_relays(relayed[0].port()), "it has sent fragments");
        for client in &mut clients {
            assert_eq!(client.refresh(0), 0);
        }
        let fresh = allocate(&mut clients[0]);
        assert!(!bound_relays(fresh.port()));
        relay_both_ways(&mut clients[0], &peer, fresh, b"again");
        scene.assert_closed();
        assert_eq!(scene.kernel_lost(), 0);
    }
}

/// The datagrams of a peer to an ended allocation reach no client, and are counted while its port rests.
#[test]
fn what_arrives_at_a_resting_port_is_dropped_and_counted() {
    let Some(scene) = Scene::require(&IPV4) else { return };
    let (mut client, peer) = (scene.client("ann"), scene.peer());
    let relayed = client.allocate().unwrap();
    assert_eq!(client.bind_channel(CHANNEL, peer.local_addr().unwrap()), 0);
    relay_both_ways(&mut client, &peer, relayed, b"before");
    assert_eq!(client.refresh(0), 0);
    for _ in 0..7 {
        peer.send_to(b"late", relayed).unwrap();
    }
    wait("the late datagrams are counted", || scene.count("relay_resting") == 7);
    assert!(client.is_silent());
    scene.assert_closed();
}

/// One relay's flood leaves room for the others, although all have one receive buffer.
#[test]
fn a_flood_to_one_relay_leaves_the_buffer_to_the_others() {
    let Some(scene) = Scene::require(&IPV4) else { return };
    let peer = scene.peer();
    let mut clients = ["ann", "bob"].map(|user| scene.client(user));
    let relayed = clients.each_mut().map(|client| {
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(CHANNEL, peer.local_addr().unwrap()), 0);
        relayed
    });
    scene.server.signal(Signal::SIGSTOP);
    let stat = format!("/proc/{}/stat", scene.server.id());
    wait("the server stops", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    for _ in 0..40 * BUDGET {
        peer.send_to(&[7; 1_200], relayed[0]).unwrap();
    }
    peer.send_to(b"through", relayed[1]).unwrap();
    scene.server.signal(Signal::SIGCONT);
    assert_eq!(clients[1].receive_channel(), (CHANNEL, b"through".to_vec()));
    wait("what was over is counted", || scene.kernel_lost() > 0);
    // Whatever was lost on the way to the server, no more than its share of the flood was in the buffer.
    assert!(scene.count("relayed") <= BUDGET as u64 + 1, "{}", scene.ask("/api/v1/turn/drops"));
    relay_both_ways(&mut clients[1], &peer, relayed[1], b"as before");
    scene.assert_closed();
}

/// RFC 8656 section 11.5, without a socket whose error queue would have the message.
#[test]
fn an_icmp_error_reaches_the_client() {
    for (ends, kind, code) in [(&IPV4, 3, 3), (&IPV6, 1, 4)] {
        let Some(scene) = Scene::require(ends) else { return };
        let mut client = scene.client("ann");
        client.allocate().unwrap();
        let closed = scene.peer().local_addr().unwrap();
        assert_eq!(client.bind_channel(CHANNEL, closed), 0);
        client.send_channel(CHANNEL, b"to a closed port");
        assert_eq!(client.receive_icmp(), (closed, kind, code, [0; 4]), "{}", ends.peer);
        scene.assert_closed();
    }
}

/// The privileges are those of the start alone.
#[test]
fn no_thread_that_reads_packets_keeps_its_privileges() {
    let Some(scene) = Scene::require(&IPV4) else { return };
    const DROPPED: u64 = 1 << 12 | 1 << 13 | 1 << 39;
    let mut workers = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", scene.server.id())).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        let held = u64::from_str_radix(&field("CapPrm:"), 16).unwrap() & DROPPED;
        assert!(held == 0 || field("Name:") == "signals", "{held:x} of {}", field("Name:"));
        workers += u32::from(["turn-0", "turn-1"].contains(&field("Name:").as_str()));
    }
    assert_eq!(workers, 2);
}

/// Without a privilege, or where the system gives its ports to others, each relay has a socket and the log says why.
#[test]
fn what_is_missing_is_one_line_and_relays_have_sockets() {
    let cases =
        [(Some("-bpf"), "CAP_BPF"), (Some("-net_raw"), "CAP_NET_RAW"), (None, "ip_local_reserved_ports=49152-65535")];
    for (missing, reason) in cases {
        let Some(network) = require(Requirement::NetNamespace, network("on")) else { return };
        let mut command = Command::new("setpriv");
        if let Some(missing) = missing {
            let setting = "sysctl -q -w net.ipv4.ip_local_reserved_ports=49152-65535";
            ip(&format!("netns exec {} {setting}", network.names[SERVER])).unwrap();
            // CAP_SYS_ADMIN may load programs, too.
            command.args(["--bounding-set", "--inh-caps"].map(|set| format!("{set}={missing},-sys_admin")));
        }
        command.arg(crate::server::program());
        let folder = Operated::configured(IPV4.listen, &keys(&IPV4));
        let server = network.on(SERVER, || Operated::start_by(command, folder, &[]));
        let log = server.log();
        let line = log.lines().find(|line| line.contains("each relay has a socket")).unwrap_or_else(|| panic!("{log}"));
        assert!(line.contains(reason), "{line}");
        let scene = Scene { network, server, ends: &IPV4 };
        let (mut client, peer) = (scene.client("ann"), scene.peer());
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(CHANNEL, peer.local_addr().unwrap()), 0);
        relay_both_ways(&mut client, &peer, relayed, b"by sockets");
    }
}
