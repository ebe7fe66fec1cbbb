//! Sockets that systemd has bound: the server takes them instead of binding.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use testkit::turn_client::Client;
use testkit::{Requirement, find_program, require};

use super::namespaces::Network;
use super::operated::{Operated, PATIENCE, peer, relays, wait};
use crate::certificates::Certificates;
use crate::server::program;
use crate::stream_client::{StreamClient, connect, connect_tls};

const ACTIVATE: &str = include_str!("activate.py");
/// No user of this machine.
const UID: &str = "64124";

/// A command that passes `sockets` to the program, as `user`.
fn passing(sockets: &[String], user: &str) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", ACTIVATE, user]).args(sockets).arg("--").arg(program());
    command
}

/// A port that is free for UDP and TCP.
pub(super) fn free_port() -> u16 {
    /// No relay of another test has one of these, nor does the kernel choose one for a socket.
    static PORTS: Mutex<RangeInclusive<u16>> = Mutex::new(18_000..=19_999);
    let any = Ipv4Addr::UNSPECIFIED;
    let is_free = |port: &u16| UdpSocket::bind((any, *port)).is_ok() && TcpListener::bind((any, *port)).is_ok();
    PORTS.lock().unwrap_or_else(PoisonError::into_inner).find(is_free).expect("a free port")
}

/// Whether everybody gets a response: the kernel spreads clients over the sockets that share an address.
fn serves(server: SocketAddr, clients: usize) {
    let mut clients: Vec<_> = (0..clients).map(|_| Client::new(server, "ann", "ann-secret")).collect();
    for client in &mut clients {
        assert_eq!(client.binding(), client.socket.local_addr().unwrap());
    }
}

/// A child that is killed when dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// systemd starts the server with the first datagram, which waits in the socket until it is served.
#[test]
fn the_first_datagram_starts_the_server_and_is_answered() {
    let activate = find_program("systemd-socket-activate", "systemd");
    let Some(activate) = require(Requirement::Program, activate) else { return };
    let server = format!("127.0.0.1:{}", free_port());
    let folder = Operated::configured(&server, "no_tcp = true\nallow_own_host = [\"127.0.0.0/8\"]");
    let config = folder.path().join("truetick.toml");
    let mut command = Command::new(activate);
    command.args(["--datagram", "--listen", &server]).arg(program()).args(["turn", "--config"]).arg(config);
    let mut started = Started(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(started.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("Listening on")), "it never listens");
    let mut client = Client::new(server.parse().unwrap(), "ann", "ann-secret");
    client.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(client.binding(), client.socket.local_addr().unwrap());
    let peer = peer();
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    relays(&mut client, 0x4000, &peer, b"through a passed socket");
    assert_eq!(client.refresh(0), 0);
    // Two workers and one socket.
    let warning = log.find(|line| line.contains("fewer UDP sockets were passed than there are workers"));
    assert!(warning.unwrap().contains("sockets=1 workers=2"));
    kill(Pid::from_raw(started.0.id().cast_signed()), Signal::SIGINT).unwrap();
    assert!(started.0.wait().unwrap().success());
}

/// The sockets of all four purposes at once, before and after a reload. The parent binds without sharing its ports, so
/// that a server that binds its own fails.
#[test]
fn every_listener_may_be_passed_and_outlives_a_reload() {
    let Some(_) = require(Requirement::Program, find_program("python3", "python3")) else { return };
    let [port, tls, http] = std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()));
    let certificates = Certificates::new();
    let [_, cert, _, key] = certificates.flags();
    let keys =
        format!("listen_tls = [\"{tls}\"]\ncert = \"{cert}\"\nkey = \"{key}\"\nallow_own_host = [\"127.0.0.0/8\"]");
    let folder = Operated::configured(&port, &keys);
    on_port(&folder, &http);
    let names = ["udp", "truetick.socket", "tls", "http"];
    let sockets = [format!("udp={port}"), format!("tcp={port}"), format!("tcp={tls}"), format!("tcp={http}")];
    let sockets: Vec<_> = sockets.iter().zip(names).map(|(socket, name)| format!("{socket}={name}")).collect();
    let server = Operated::start_by(passing(&sockets, "-"), folder, &[]);
    assert_eq!((server.listen.to_string(), server.tcp.unwrap().to_string()), (port.clone(), port.clone()));
    let tls_client = certificates.client(rustls::ALL_VERSIONS, &[]);
    let mut lasting = server.client("bob");
    lasting.allocate().unwrap();
    let peer = peer();
    assert_eq!(lasting.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    let is_served = || {
        serves(server.listen, 32);
        // More connections than workers, and at the same time.
        let mut over_tcp: Vec<_> = (0..16).map(|_| StreamClient::new(connect(server.listen))).collect();
        over_tcp.iter_mut().for_each(|client| assert!(client.binding().ip().is_loopback()));
        let mut over_tls: Vec<_> =
            (0..4).map(|_| StreamClient::new(connect_tls(tls.parse().unwrap(), &tls_client).unwrap())).collect();
        over_tls.iter_mut().for_each(|client| assert!(client.binding().ip().is_loopback()));
        assert_eq!(server.ask("GET", "/readyz", None).status, 200);
    };
    is_served();
    server.rewrite("users", "ann:other\nbob:bob-secret\n");
    let reported = server.reload();
    assert!(reported.contains("configuration reloaded"), "{reported}");
    is_served();
    relays(&mut lasting, 0x4000, &peer, b"after the reload");
    assert_eq!(Client::new(server.listen, "ann", "ann-secret").allocate(), Err(401));
    assert!(Client::new(server.listen, "ann", "other").allocate().is_ok());
    server.signal(Signal::SIGINT);
    let (status, log) = server.ended();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}

/// Puts the control plane on `addr`.
fn on_port(folder: &TempDir, addr: &str) {
    let path = folder.path().join("truetick.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("[http]\nlisten = \"127.0.0.1:0\"", &format!("[http]\nlisten = \"{addr}\"")))
        .unwrap();
}

/// As many sockets as workers, and more: each has a reader, so that no client waits for ever.
#[test]
fn sockets_that_share_a_port_are_all_read() {
    let Some(_) = require(Requirement::Program, find_program("python3", "python3")) else { return };
    for sockets in [2, 5] {
        let port = format!("127.0.0.1:{}", free_port());
        let of = |kind: &str| vec![format!("{kind}={port}=-"); sockets];
        let folder = Operated::configured(&port, "");
        let server = Operated::start_by(passing(&[of("udp"), of("tcp")].concat(), "-"), folder, &[]);
        serves(server.listen, 64);
        let mut streams: Vec<_> = (0..64).map(|_| StreamClient::new(connect(server.listen))).collect();
        streams.iter_mut().for_each(|client| assert!(client.binding().ip().is_loopback()));
        let metrics = || server.ask("GET", "/metrics", None).body;
        wait("no datagram is lost", || metrics().contains("\ntruetick_turn_kernel_lost_total 0\n"));
        assert!(!server.log().contains("fewer UDP sockets"), "{}", server.log());
    }
}

#[test]
fn a_passed_socket_that_the_configuration_does_not_name_is_an_error() {
    let Some(_) = require(Requirement::Program, find_program("python3", "python3")) else { return };
    let (port, other) = (free_port(), free_port());
    let folder = Operated::configured(&format!("127.0.0.1:{port}"), "");
    let config = folder.path().join("truetick.toml");
    let listens = format!("not in the configuration, which listens on udp 127.0.0.1:{port}, tcp 127.0.0.1:{port}");
    let cases = [
        (
            vec![format!("udp=127.0.0.1:{port}=-"), format!("udp=127.0.0.1:{other}=-")],
            format!("turn: passed socket 2, udp 127.0.0.1:{other} is {listens}"),
        ),
        (
            vec![format!("tcp=127.0.0.1:{port}=tls")],
            format!("turn: passed socket 1, tcp 127.0.0.1:{port}, named \"tls\" is {listens}, http 127.0.0.1:0\n"),
        ),
        (
            vec![format!("udp=0.0.0.0:{port}=udp"), format!("tcp=127.0.0.1:{other}=http")],
            format!("1, udp 0.0.0.0:{port}, named \"udp\", passed socket 2, tcp 127.0.0.1:{other}, named \"http\" are"),
        ),
        (vec![format!("bound=127.0.0.1:{port}=-")], "passed socket 1 (\"\") cannot be used: it does not listen".into()),
        (vec![format!("dual=[::]:{port}=-")], "it takes IPv4, too: BindIPv6Only=ipv6-only".into()),
        (vec!["file=a:1=a".into()], "passed socket 1 (\"a\") cannot be used: it is not a socket".into()),
    ];
    for (sockets, expected) in cases {
        for check in [&["--check-config"][..], &[]] {
            let mut command = passing(&sockets, "-");
            let output = command.args(["turn", "--config"]).arg(&config).args(check).output().unwrap();
            let line = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(1) && line.contains(&expected), "{sockets:?} {check:?}: {line}");
        }
    }
    let sockets = [format!("udp=127.0.0.1:{port}=udp"), format!("tcp=127.0.0.1:{port}=tcp")];
    let checked = |command: &mut Command| {
        let output = command.args(["turn", "--check-config", "--config"]).arg(&config).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, line) = checked(passing(&sockets, "-").env("LISTEN_FDNAMES", "udp"));
    assert!(status == Some(1) && line.contains("LISTEN_FDNAMES has 1 names and LISTEN_FDS 2 descriptors"), "{line}");
    // Those of another process: this one binds its own, which are taken.
    let (status, line) = checked(passing(&sockets, "-").env("LISTEN_PID", "1"));
    assert!(status == Some(1) && line.contains("Address already in use"), "{line}");
    let (status, line) = checked(&mut passing(&sockets, "-"));
    assert!(status == Some(0), "{line}");
}

/// The sample of a unit for the sockets: the addresses of a configuration without `listen`, without a capability.
#[test]
fn the_socket_unit_lets_a_user_without_capabilities_serve_low_ports() {
    let network = find_program("python3", "python3").and_then(|_| {
        Network::make(&["u"], &["-n {u} addr add 192.0.2.10/32 dev lo", "-n {u} route add default dev lo"])
    });
    let Some(network) = require(Requirement::NetNamespace, network) else { return };
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/truetick.socket");
    let text = fs::read_to_string(unit).unwrap();
    let of = |key: &str, kind: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(key));
        lines.map(|addr| format!("{kind}={addr}=truetick.socket")).collect()
    };
    assert!(text.contains("\nBindIPv6Only=ipv6-only\n"), "{text}");
    let sockets = [of("ListenDatagram=", "udp"), of("ListenStream=", "tcp")].concat();
    assert_eq!(sockets.len(), 4, "{sockets:?}");
    network.on(0, || {
        let run = |sockets: &[String], flags: &[&str]| {
            let mut command = passing(sockets, UID);
            command.args(["turn", "--relay-ip", "192.0.2.10", "--check-config"]).args(flags);
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let (status, line) = run(&sockets, &[]);
        assert_eq!(status, Some(0), "{line}");
        let low = ["udp=192.0.2.10:443=-".to_owned(), "tcp=192.0.2.10:443=-".to_owned()];
        let (status, line) = run(&low, &["--listen", "192.0.2.10:443"]);
        assert_eq!(status, Some(0), "{line}");
        let (status, line) = run(&[], &["--listen", "192.0.2.10:443"]);
        let expected = "cannot listen on udp 192.0.2.10:443: Permission denied";
        assert!(status == Some(1) && line.contains(expected), "{line}");
    });
}
