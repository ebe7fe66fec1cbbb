//! Debian's `turnutils_uclient`: 4 clients, 50 payloads each, every one of which must come back.
//!
//! It binds channel numbers up to 0x7FFF, so the server is told to take them. `-c` keeps it from asking for a second,
//! reserved port for RTCP.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::server::{PASSWORD, Server, USER};
use super::{on_path, skip};

const CLIENTS: u32 = 4;
const PAYLOADS_EACH: u32 = 50;
const FLAGS: &[&str] =
    &["--listen", "127.0.0.1:0", "--workers", "2", "--allow-peer", "127.0.0.0/8", "--rfc5766-channel-numbers"];

fn uclient(server: &Server, password: &str, mode: &[&str]) -> Output {
    Command::new("turnutils_uclient")
        .args(["-u", USER, "-w", password, "-c", "-l", "170", "-z", "10"])
        .args(["-m", &CLIENTS.to_string(), "-n", &PAYLOADS_EACH.to_string()])
        .args(["-p", &server.listen[0].port().to_string()])
        .args(mode)
        .arg("127.0.0.1")
        .output()
        .unwrap()
}

/// Runs `mode` and holds it to its own report: as many received as sent, nothing lost, nothing dropped.
fn loses_nothing(test: &str, mode: &[&str]) {
    if on_path("turnutils_uclient").is_none() {
        return skip(test, "turnutils_uclient is not installed (Debian package coturn)");
    }
    let server = Server::start(FLAGS);
    let output = uclient(&server, PASSWORD, mode);
    let report = String::from_utf8_lossy(&output.stdout);
    let payloads = CLIENTS * PAYLOADS_EACH;
    assert!(output.status.success(), "{report}");
    assert!(report.contains(&format!("tot_send_msgs={payloads}, tot_recv_msgs={payloads}")), "{report}");
    assert!(report.contains("Total lost packets 0 (0.000000%), total send dropped 0 (0.000000%)"), "{report}");
    let farewell = server.stop();
    assert_eq!(farewell.dropped, 0, "{}", farewell.line);
    assert!(farewell.out >= u64::from(2 * payloads), "every payload is relayed twice: {}", farewell.line);
}

#[test]
fn uclient_channels_between_clients() {
    loses_nothing("uclient_channels_between_clients", &["-y"]);
}

#[test]
fn uclient_send_indications_between_clients() {
    loses_nothing("uclient_send_indications_between_clients", &["-y", "-s"]);
}

#[test]
fn uclient_channels_to_a_peer() {
    let test = "uclient_channels_to_a_peer";
    let Some(peer) = EchoPeer::start(test) else { return };
    loses_nothing(test, &["-e", "127.0.0.1", "-r", &peer.port.to_string()]);
}

#[test]
fn uclient_send_indications_to_a_peer() {
    let test = "uclient_send_indications_to_a_peer";
    let Some(peer) = EchoPeer::start(test) else { return };
    loses_nothing(test, &["-s", "-e", "127.0.0.1", "-r", &peer.port.to_string()]);
}

#[test]
fn uclient_with_a_wrong_password_gets_nowhere() {
    if on_path("turnutils_uclient").is_none() {
        let reason = "turnutils_uclient is not installed (Debian package coturn)";
        return skip("uclient_with_a_wrong_password_gets_nowhere", reason);
    }
    let server = Server::start(FLAGS);
    let output = uclient(&server, "wrong", &["-y"]);
    assert!(!output.status.success());
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("Cannot complete Allocation"), "{report}");
    server.stop();
}

/// Debian's `turnutils_peer`, which sends everything back.
struct EchoPeer {
    child: Child,
    port: u16,
}

impl EchoPeer {
    /// Starts it and waits until it answers; skips `test` where it is not installed.
    fn start(test: &str) -> Option<Self> {
        if on_path("turnutils_peer").is_none() {
            skip(test, "turnutils_peer is not installed (Debian package coturn)");
            return None;
        }
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        probe.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // It takes no port 0, so a port that was free a moment ago must do.
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("turnutils_peer")
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
