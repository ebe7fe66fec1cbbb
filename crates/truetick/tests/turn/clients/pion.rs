//! Go's `github.com/pion/turn/v5` as a client: two allocations, payloads from relay to relay and back; and the library's
//! own examples, whose clients end at an ICMP indication.
//!
//! Needs a Go that is new enough for the library, and its modules.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::certificates::Certificates;
use crate::operators::kernel_path::scene::{IPV4, Scene};
use crate::operators::namespaces::Network;
use crate::server::{PASSWORD, Server, USER};
use serde_json::Value;
use testkit::{Requirement, require};

const PAYLOADS: u64 = 500;
/// Pings of the library's examples.
const PINGS: usize = 10;
const FLAGS: &[&str] = &["--listen", "127.0.0.1:0", "--workers", "2", "--allow-own-host", "127.0.0.0/8"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/turn/clients/pion")
}

fn go(arguments: &[&str]) -> std::io::Result<Output> {
    let mut go = Command::new("go");
    // A toolchain that is too old must say so and not fetch another one.
    go.args(arguments).current_dir(source()).env("GOTOOLCHAIN", "local").env("GOFLAGS", "-mod=readonly").output()
}

/// The programs in this folder and of the library.
const PROGRAMS: &[(&str, &str)] = &[
    ("pion-client", "."),
    ("pion-udp", "github.com/pion/turn/v5/examples/turn-client/udp"),
    ("pion-tcp", "github.com/pion/turn/v5/examples/turn-client/tcp"),
    ("pion-tls", "github.com/pion/turn/v5/examples/turn-client/tls"),
];

/// The folder of the built programs, or why there is none.
fn built() -> &'static Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let modules = go(&["mod", "download"]).map_err(|_| "go is not installed".to_owned())?;
        if !modules.status.success() {
            let message = String::from_utf8_lossy(&modules.stderr).lines().next().unwrap_or_default().to_owned();
            return Err(format!("go cannot bring the modules: {message}"));
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        for (name, package) in PROGRAMS {
            let build = go(&["build", "-o", folder.join(name).to_str().unwrap(), package]).unwrap();
            assert!(build.status.success(), "{name}: {}", String::from_utf8_lossy(&build.stderr));
        }
        Ok(folder.to_owned())
    })
}

fn client(folder: &Path, server: &Server, password: &str) -> Command {
    let mut client = Command::new(folder.join("pion-client"));
    client.args([&server.listen[0].to_string(), USER, password, &PAYLOADS.to_string()]);
    client
}

/// A UDP port without a listener, for as long as the test holds the TCP port of the same number.
fn closed_port() -> (TcpListener, SocketAddr) {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = holder.local_addr().unwrap();
    (holder, addr)
}

/// Runs `example` of the library, which relays to a closed UDP port, then relays ten pings, and counts these.
fn example_pings(example: &Path, server: &Server, flags: &[&str]) -> usize {
    pings(example, server.listen[0], &format!("{USER}={PASSWORD}"), flags)
}

fn pings(example: &Path, server: SocketAddr, user: &str, flags: &[&str]) -> usize {
    let (host, port) = (server.ip().to_string(), server.port().to_string());
    let mut example = Command::new(example);
    example.args(["-host", &host, "-port", &port, "-user", user, "-realm", "truetick", "-ping"]);
    let output = example.args(flags).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    log.lines().filter(|line| line.contains("bytes from")).count()
}

#[test]
fn pion_relays_both_ways() {
    let Some(folder) = require(Requirement::Program, built().as_ref()) else { return };
    let server = Server::start(FLAGS);
    let output = client(folder, &server, PASSWORD).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["matched"], PAYLOADS, "{result}");
    assert_eq!(result["mapped"], result["local"], "{result}");
    assert_ne!(result["caller"], result["callee"], "{result}");
    let farewell = server.stop();
    assert!(farewell.out >= 4 * PAYLOADS, "each payload passes two relays there and two back: {}", farewell.line);
    assert_eq!(farewell.dropped, 0, "{}", farewell.line);
}

#[test]
fn pion_with_a_wrong_password_allocates_nothing() {
    let Some(folder) = require(Requirement::Program, built().as_ref()) else { return };
    let server = Server::start(FLAGS);
    let output = client(folder, &server, "wrong").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("allocate") && message.contains("401"), "{message}");
    server.stop();
}

/// The library's client reads nothing more after a Data indication without DATA (RFC 8656 section 11.5).
#[test]
fn pion_survives_a_closed_peer_port() {
    let Some(folder) = require(Requirement::Program, built().as_ref()) else { return };
    let (_holder, closed) = closed_port();
    let payloads = |flags: &[&str]| {
        let server = Server::start(&[FLAGS, flags].concat());
        let output = client(folder, &server, PASSWORD).env("CLOSED_PEER", closed.to_string()).output().unwrap();
        server.stop();
        serde_json::from_slice::<Value>(&output.stdout).ok().and_then(|result| result["matched"].as_u64())
    };
    assert_eq!(payloads(&[]), Some(PAYLOADS));
    assert_ne!(payloads(&["--icmp-indications", "always"]), Some(PAYLOADS), "the closed port was not noticed");
}

/// A router between the server at 11.0.0.1 and the clients at 10.77.0.0/24: it translates their addresses, and has no
/// socket for what comes from an address that a client did not send to.
fn in_front_of_the_clients() -> Result<Network, String> {
    let network = Network::make(
        &["s", "r", "c"],
        &[
            "-n {r} link add out0 type veth peer name out0 netns {s}",
            "-n {r} link add in0 type veth peer name in0 netns {c}",
            "-n {s} addr add 11.0.0.1/24 dev out0",
            "-n {r} addr add 11.0.0.2/24 dev out0",
            "-n {r} addr add 10.77.0.1/24 dev in0",
            "-n {c} addr add 10.77.0.2/24 dev in0",
            "-n {s} link set out0 up",
            "-n {r} link set out0 up",
            "-n {r} link set in0 up",
            "-n {c} link set in0 up",
            "-n {c} route add default via 10.77.0.1",
            "netns exec {r} sysctl -q -w net.ipv4.ip_forward=1",
        ],
    )?;
    network.translate(
        1,
        "table ip nat {\n\
         chain post { type nat hook postrouting priority 100; oif out0 masquerade; }\n\
         }\n",
    )?;
    Ok(network)
}

/// The example relays to the address that its server sees: a port of the router that is open for the server alone.
#[test]
fn pions_udp_example_survives_a_closed_peer_port() {
    let Some(folder) = require(Requirement::Program, built().as_ref()) else { return };
    let Some(network) = require(Requirement::NetNamespace, in_front_of_the_clients()) else { return };
    let pings = |flags: &[&str]| {
        let flags = [&["--listen", "11.0.0.1:0"][..], flags].concat();
        let server = network.on(0, || Server::start(&flags));
        let pings = network.on(2, || example_pings(&folder.join("pion-udp"), &server, &[]));
        server.stop();
        pings
    };
    assert_eq!(pings(&[]), PINGS);
    assert_ne!(pings(&["--icmp-indications", "always"]), PINGS, "the closed port was not noticed");
}

#[test]
fn pions_tcp_example_survives_a_closed_peer_port() {
    let Some(folder) = require(Requirement::Program, built().as_ref()) else { return };
    let server = Server::start(FLAGS);
    assert_eq!(example_pings(&folder.join("pion-tcp"), &server, &[]), PINGS);
    server.stop();
}

#[test]
fn pions_tls_example_survives_a_closed_peer_port() {
    let Some(folder) = require(Requirement::Program, built().as_ref()) else { return };
    let certificates = Certificates::new();
    let files = certificates.flags();
    let server = Server::start(&[FLAGS, &files.each_ref().map(String::as_str)].concat());
    let authority = certificates.authority_file();
    assert_eq!(example_pings(&folder.join("pion-tls"), &server, &["-ca", authority.to_str().unwrap()]), PINGS);
    server.stop();
}

/// The example's pings come from another socket of its host, for which its client binds a channel after the first. What it
/// sends is padded, which only sockets relay.
#[test]
fn pions_udp_example_is_relayed_in_the_kernel() {
    let Some(folder) = require(Requirement::Program, built().as_ref()) else { return };
    let Some(scene) = Scene::require_proven(&IPV4, "") else { return };
    let run = || pings(&folder.join("pion-udp"), scene.server.listen, "bob=bob-secret", &[]);
    let (answered, share) = scene.share_of(2 * PINGS as u64, run);
    assert_eq!(answered, PINGS);
    assert!(share >= 35, "{share} % in the kernel");
}
