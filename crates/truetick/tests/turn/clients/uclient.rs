//! Debian's `turnutils_uclient`: 4 clients, 50 payloads each, every one of which must come back. And its little sister
//! `turnutils_stunclient`.
//!
//! uclient binds channel numbers up to 0x7FFF, so the server must accept them. `-c` keeps it from asking for a second,
//! reserved port for RTCP. Of its modes that are about UDP these are not here, because there is nothing that they could
//! ask for: `-Z` (two families at once with the private number 0x8032, that is not RFC 8656's), `-M` (mobility), `-J`
//! (third-party authorisation) and `-I` (a relay without permissions); and `-O` and `-h`, which never end.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use testkit::{Requirement, find_program, require};

use crate::certificates::Certificates;
use crate::server::{PASSWORD, Server, USER};

const CLIENTS: u32 = 4;
const PAYLOADS_EACH: u32 = 50;
const FLAGS: &[&str] = &["--listen", "127.0.0.1:0", "--allow-own-host", "127.0.0.0/8", "--rfc5766-channel-numbers"];

/// The same with relayed addresses of both families.
const BOTH_FAMILIES: &[&str] = &["--relay-ip", "127.0.0.1", "--relay-ip", "::1", "--allow-own-host", "::1/128"];
/// Time limit of uclient with `-R`, which never ends after it has sent a request that must not be answered.
const MANGLES_FOR: Duration = Duration::from_secs(8);

fn start(workers: &str, more: &[&str]) -> Server {
    Server::start(&[FLAGS, &["--workers", workers], more].concat())
}

/// A command with `clients` clients that send what the test counts.
fn command(server: &Server, password: &str, clients: u32, mode: &[&str]) -> Command {
    let mut uclient = Command::new("turnutils_uclient");
    uclient
        .args(["-u", USER, "-w", password, "-l", "170", "-z", "10"])
        .args(["-m", &clients.to_string(), "-n", &PAYLOADS_EACH.to_string()])
        .args(["-p", &server.listen[0].port().to_string()])
        .args(mode)
        .arg("127.0.0.1");
    uclient
}

fn uclient(server: &Server, password: &str, mode: &[&str]) -> Output {
    command(server, password, CLIENTS, &[&["-c"], mode].concat()).output().unwrap()
}

/// Skips the test without coturn's `program`.
pub(super) fn require_coturn(program: &str) -> Option<PathBuf> {
    require(Requirement::Program, find_program(program, "coturn"))
}

/// uclient's own report: as many received as sent, nothing lost, nothing dropped.
pub(super) fn is_whole(output: &Output, payloads: u32) {
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    assert!(report.contains(&format!("tot_send_msgs={payloads}, tot_recv_msgs={payloads}")), "{report}");
    assert!(report.contains("Total lost packets 0 (0.000000%), total send dropped 0 (0.000000%)"), "{report}");
}

/// Runs `mode`, holds uclient to its report, and the server to having dropped nothing.
fn loses_nothing(mode: &[&str]) {
    loses_nothing_on(&[], mode);
}

/// The same on a server with `more` flags.
fn loses_nothing_on(more: &[&str], mode: &[&str]) {
    let Some(_) = require_coturn("turnutils_uclient") else { return };
    let server = start("2", more);
    let payloads = CLIENTS * PAYLOADS_EACH;
    is_whole(&uclient(&server, PASSWORD, mode), payloads);
    let farewell = server.stop();
    assert_eq!(farewell.dropped, 0, "{}", farewell.line);
    assert!(farewell.out >= u64::from(2 * payloads), "every payload is relayed twice: {}", farewell.line);
}

/// Runs `mode`, in which uclient also sends what a server must not take, and holds it to its report.
fn relays_despite_faults(mode: &[&str]) {
    let Some(_) = require_coturn("turnutils_uclient") else { return };
    let server = start("2", &[]);
    let payloads = CLIENTS * PAYLOADS_EACH;
    is_whole(&uclient(&server, PASSWORD, mode), payloads);
    let farewell = server.stop();
    assert!(farewell.out >= u64::from(2 * payloads), "every payload is relayed twice: {}", farewell.line);
}

#[test]
fn uclient_channels_between_clients() {
    loses_nothing(&["-y"]);
}

#[test]
fn uclient_send_indications_between_clients() {
    loses_nothing(&["-y", "-s"]);
}

/// Without `-c`: half of the clients ask for an even port, the others claim the next ones, reserved for RTCP, by their
/// tokens (EVEN-PORT, RESERVATION-TOKEN).
#[test]
fn uclient_claims_reserved_ports() {
    let Some(_) = require_coturn("turnutils_uclient") else { return };
    let server = start("2", &[]);
    let payloads = CLIENTS * PAYLOADS_EACH;
    is_whole(&command(&server, PASSWORD, CLIENTS, &["-y"]).output().unwrap(), payloads);
    let farewell = server.stop();
    assert_eq!(farewell.dropped, 0, "{}", farewell.line);
}

/// The same on connections, which the kernel spreads over the workers: ten times in a row, each way at the same time.
#[test]
fn rfc_r086_uclient_claims_reserved_ports_over_tcp_and_tls_ten_times_in_a_row() {
    let Some(_) = require_coturn("turnutils_uclient") else { return };
    let certificates = Certificates::new();
    let (files, authority) = (certificates.flags(), certificates.authority_file());
    let tls = ["-t", "-S", "-y", "-E", authority.to_str().unwrap()];
    let ten_times = |workers: &str, mode: &[&str]| {
        let server = start(workers, &files.each_ref().map(String::as_str));
        for _ in 0..10 {
            is_whole(&command(&server, PASSWORD, CLIENTS, mode).output().unwrap(), CLIENTS * PAYLOADS_EACH);
        }
        let farewell = server.stop();
        assert_eq!(farewell.dropped, 0, "{}", farewell.line);
    };
    thread::scope(|scope| {
        let ten_times = &ten_times;
        for workers in ["1", "2", "8"] {
            for mode in [&["-t", "-y"][..], &tls] {
                scope.spawn(move || ten_times(workers, mode));
            }
        }
    });
}

#[test]
fn uclient_channels_to_a_peer() {
    let Some(peer) = EchoPeer::require() else { return };
    loses_nothing(&["-e", "127.0.0.1", "-r", &peer.port.to_string()]);
}

#[test]
fn uclient_send_indications_to_a_peer() {
    let Some(peer) = EchoPeer::require() else { return };
    loses_nothing(&["-s", "-e", "127.0.0.1", "-r", &peer.port.to_string()]);
}

#[test]
fn uclient_channels_between_clients_over_tcp() {
    loses_nothing(&["-t", "-y"]);
}

#[test]
fn uclient_send_indications_between_clients_over_tcp() {
    loses_nothing(&["-t", "-y", "-s"]);
}

#[test]
fn uclient_to_a_peer_over_tcp() {
    let Some(peer) = EchoPeer::require() else { return };
    loses_nothing(&["-t", "-e", "127.0.0.1", "-r", &peer.port.to_string()]);
}

/// It takes every TLS record for one message, whatever RFC 8656 section 12.5 says.
#[test]
fn uclient_over_tls_with_an_authority_of_the_tests() {
    let certificates = Certificates::new();
    let (files, authority) = (certificates.flags(), certificates.authority_file());
    let flags = files.each_ref().map(String::as_str);
    let authority = ["-E", authority.to_str().unwrap()];
    for mode in [&["-t", "-S", "-y"][..], &["-t", "-S", "-y", "-s"]] {
        loses_nothing_on(&flags, &[mode, &authority].concat());
    }
}

#[test]
fn uclient_with_a_wrong_password_gets_nowhere() {
    let Some(_) = require_coturn("turnutils_uclient") else { return };
    let server = start("2", &[]);
    let output = uclient(&server, "wrong", &["-y"]);
    assert!(!output.status.success());
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("Cannot complete Allocation"), "{report}");
    server.stop();
}

#[test]
fn uclient_asks_for_ipv4() {
    loses_nothing(&["-y", "-X"]);
}

#[test]
fn uclient_asks_for_ipv6() {
    let Some(_) = require(Requirement::Ipv6, UdpSocket::bind("[::1]:0")) else { return };
    loses_nothing_on(BOTH_FAMILIES, &["-y", "-x"]);
}

#[test]
fn uclient_pads_its_channel_data() {
    loses_nothing(&["-y", "-D"]);
}

#[test]
fn uclient_asks_not_to_fragment() {
    loses_nothing(&["-y", "-g"]);
}

#[test]
fn uclient_with_a_second_port_for_rtcp() {
    let Some(_) = require_coturn("turnutils_uclient") else { return };
    let server = start("2", &[]);
    // Without `-c` it asks for an even port and the next one, and draws the second allocation with the token.
    let output = command(&server, PASSWORD, CLIENTS, &["-y"]).output().unwrap();
    is_whole(&output, CLIENTS * PAYLOADS_EACH);
    server.stop();
}

#[test]
fn uclient_sends_faulty_requests_too() {
    relays_despite_faults(&["-y", "-N"]);
}

#[test]
fn uclient_asks_for_permissions_and_channels_again_and_again() {
    relays_despite_faults(&["-y", "-G"]);
}

#[test]
fn uclient_leaves_without_a_word_and_comes_back() {
    relays_despite_faults(&["-y", "-B"]);
}

#[test]
fn uclient_mangles_what_it_sends() {
    let Some(_) = require_coturn("turnutils_uclient") else { return };
    let server = start("2", &[]);
    let started = Instant::now();
    let mut mangling: Vec<Child> = (0..CLIENTS)
        .map(|_| {
            let mut uclient = command(&server, PASSWORD, 1, &["-c", "-y", "-R"]);
            uclient.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    // Meanwhile others are served as if nothing were.
    while started.elapsed() < MANGLES_FOR {
        is_whole(&uclient(&server, PASSWORD, &["-y"]), CLIENTS * PAYLOADS_EACH);
    }
    for uclient in &mut mangling {
        let _ = uclient.kill();
        uclient.wait().unwrap();
    }
    is_whole(&uclient(&server, PASSWORD, &["-y"]), CLIENTS * PAYLOADS_EACH);
    server.stop();
}

#[test]
fn stunclient_learns_its_address() {
    let Some(program) = require_coturn("turnutils_stunclient") else { return };
    let server = start("2", &[]);
    let port = server.listen[0].port().to_string();
    let output = Command::new(program).args(["-L", "127.0.0.9", "-p", &port, "127.0.0.1"]).output();
    let output = output.unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output_text.contains("UDP reflexive addr: 127.0.0.9:"), "{output_text}");
    server.stop();
}

/// Debian's `turnutils_peer`, which sends everything back.
struct EchoPeer {
    child: Child,
    port: u16,
}

impl EchoPeer {
    /// Starts it and waits until it answers; skips the test if it is not installed.
    fn require() -> Option<Self> {
        let program = require_coturn("turnutils_peer")?;
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        probe.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // It takes no port 0, so a port that was free a moment ago must do.
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .args(["-L", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let peer = Self { child, port };
        let started = Instant::now();
        loop {
            let _ = probe.send_to(b"there?", SocketAddr::from(([127, 0, 0, 1], port)));
            if probe.recv(&mut [0; 16]).is_ok() {
                return Some(peer);
            }
            assert!(started.elapsed() < Duration::from_secs(20), "turnutils_peer does not answer");
        }
    }
}

impl Drop for EchoPeer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
