//! What the log says: one record a line, few of a kind, no secret.

use std::net::UdpSocket;
use std::process::Command;

use super::operated::{Operated, PATIENCE, wait};
use crate::wire::{self, Reading, Writer};
use testkit::turn_client::Client;
use testkit::{Requirement, find_program, measured, require};

/// Names that would break a line, a terminal, a format string or JSON.
const HOSTILE: [&str; 6] = ["a\r\nb", "a\u{1b}[2Jb", "%s%n", "a\0b", "a\"b\\", "a\u{9b}b\u{202e}"];

fn refused_lines(server: &Operated) -> Vec<String> {
    server.log().lines().filter(|line| line.contains("request rejected")).map(str::to_owned).collect()
}

/// A24, the log's part: a hostile name is exactly one escaped line, as text and as JSON.
#[test]
fn case_a24_a_hostile_name_is_one_escaped_line() {
    for name in HOSTILE {
        for format in ["text", "json"] {
            let server = Operated::start("", &["--log-format", format]);
            let before = server.log().lines().count();
            let refused = Client::new(server.listen, name, "wrong").allocate();
            assert!(matches!(refused, Err(400 | 401)), "{refused:?}");
            server.wait_log("request rejected", 1);
            wait("the line's end", || server.log().ends_with('\n'));
            let log = server.log();
            assert_eq!(log.lines().count(), before + 1, "{log:?}");
            assert!(!log.chars().any(|c| c.is_control() && c != '\n'), "{log:?}");
            let line = log.lines().last().unwrap();
            if format == "json" {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(record["fields"]["user"], name, "{line}");
            } else {
                assert!(line.contains(" user=\"a") || line.contains(" user=\"%s%n\""), "{line}");
            }
        }
    }
}

/// Asks for an allocation under a name of any bytes; the error's code.
fn allocate_as(server: &Operated, name: &[u8]) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.listen).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let exchange = |request: &[u8]| {
        socket.send(request).unwrap();
        let mut reply = [0; 2_048];
        let length = socket.recv(&mut reply).unwrap();
        Reading::of(&reply[..length])
    };
    let challenge = exchange(&Writer::new(wire::ALLOCATE, 0, [1; 12]).0);
    let (realm, nonce) = (challenge.get(wire::REALM).unwrap(), challenge.get(wire::NONCE).unwrap());
    let request = Writer::new(wire::ALLOCATE, 0, [2; 12]).attr(wire::TRANSPORT, &[17, 0, 0, 0]);
    let request = request.attr(wire::USERNAME, name).attr(wire::REALM, realm).attr(wire::NONCE, nonce);
    exchange(&request.integrity(b"whatever").0).code()
}

/// A24, the log's part: also a name that is no text, empty, or too long is exactly one line, and a short one.
#[test]
fn case_a24_a_name_that_is_no_text_is_one_short_line() {
    for name in [&b""[..], b"\xFF\xFE", b"\x1B[31m\x07", &[b'a'; 513], &[b'a'; 764], &[0xC3; 508]] {
        let server = Operated::start("", &[]);
        let before = server.log().lines().count();
        let code = allocate_as(&server, name);
        assert!(matches!(code, 400 | 401), "{code} for {name:02x?}");
        server.wait_log("request rejected", 1);
        wait("the line's end", || server.log().ends_with('\n'));
        let log = server.log();
        assert_eq!(log.lines().count(), before + 1, "{log:?}");
        let line = log.lines().last().unwrap();
        assert!(line.len() < 1_000 && !line.chars().any(char::is_control), "{line:?}");
    }
}

/// A42, the log's part: of a flood one record in a window, and none without a name to it.
#[test]
fn case_a42_a_flood_is_one_line_and_a_count() {
    let server = Operated::start("", &[]);
    let mut flooded = 0;
    for _ in 0..8 {
        // Each is refused once more by every request; each client's first has no credentials and is nobody's record.
        let mut client = Client::new(server.listen, "mallory", "wrong-password");
        for _ in 0..6 {
            assert_eq!(client.allocate(), Err(401));
            flooded += 1;
        }
    }
    assert_eq!(flooded, 48);
    server.wait_log("request rejected", 1);
    assert_eq!(refused_lines(&server).len(), 1, "{}", server.log());
    server.signal(nix::sys::signal::Signal::SIGINT);
    let (_, log) = server.ended();
    let more = log.lines().find(|line| line.contains("more requests rejected")).unwrap_or_else(|| panic!("{log}"));
    assert!(more.contains("source=127.0.0.1 code=401 suppressed="), "{more}");
    // Those that came while another thread counted are counted without their source.
    let counts = log.lines().filter_map(|line| line.split_once("suppressed=")?.1.parse::<u32>().ok());
    assert_eq!(counts.sum::<u32>(), 47, "{log}");
    assert!(!log.contains("wrong-password"), "{log}");
}

/// A client on another address of loopback.
fn rejected_from(server: &Operated, host: [u8; 4], count: usize) {
    let socket = UdpSocket::bind((std::net::IpAddr::from(host), 0)).unwrap();
    socket.connect(server.listen).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = Client::new(server.listen, "mallory", "wrong");
    client.socket = socket;
    (0..count).for_each(|_| assert_eq!(client.allocate(), Err(401)));
}

/// The lines that the filter in `deploy/fail2ban` bans by: source and code before anything that a client wrote.
#[test]
fn each_source_has_a_line_that_the_fail2ban_filter_matches() {
    let (server, folder) = (Operated::start("", &[]), tempfile::tempdir().unwrap());
    for (host, count) in [([127, 0, 0, 2], 30), ([127, 0, 0, 3], 1), ([127, 0, 0, 4], 2)] {
        rejected_from(&server, host, count);
    }
    // A name that looks like another source's line.
    let forged = " INFO request rejected source=192.0.2.66 code=401 ";
    assert!(matches!(Client::new(server.listen, forged, "wrong").allocate(), Err(401)));
    server.wait_log("request rejected source=", 4);
    server.signal(nix::sys::signal::Signal::SIGINT);
    let (_, log) = server.ended();
    for line in [
        "request rejected source=127.0.0.2 code=401 ",
        "more requests rejected source=127.0.0.2 code=401 suppressed=29",
        "request rejected source=127.0.0.3 code=401 ",
        "more requests rejected source=127.0.0.4 code=401 suppressed=1",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    measured("log lines", "a line about each of 4 sources; 30 requests of one: a line and a count of 29");
    let Some(program) = require(Requirement::Program, find_program("fail2ban-regex", "fail2ban")) else { return };
    let path = folder.path().join("log");
    std::fs::write(&path, &log).unwrap();
    let filter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/fail2ban/filter.d/truetick.conf");
    let output = Command::new(program).args(["--out", "ip"]).arg(&path).arg(filter).output().unwrap();
    let mut sources: Vec<_> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    sources.sort_unstable();
    let expected = ["127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.4"];
    assert_eq!(sources, expected, "{log}");
}

#[test]
fn a_refusal_names_user_peer_and_rule_and_an_allocation_its_beginning_and_end() {
    let server = Operated::start("", &["--log-level", "debug"]);
    let mut client = server.client("ann");
    let relayed = client.allocate().unwrap();
    assert_eq!(client.permit("10.1.2.3:4".parse().unwrap()), 403);
    assert_eq!(client.refresh(0), 0);
    server.wait_log("allocation ended", 1);
    let log = server.log();
    let line = |text: &str| log.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {log}"));
    let local = client.socket.local_addr().unwrap();
    for what in ["allocation created", "allocation ended"] {
        let line = line(what);
        assert!(line.contains("user=\"ann\"") && line.contains(&format!("client={local} ")), "{line}");
        assert!(line.contains(&format!("relayed={relayed}")), "{line}");
    }
    let refused = line("request rejected");
    for part in [
        "code=403",
        "reason=\"peer_denied\"",
        "rule=\"deny 10.0.0.0/8 (built-in)\"",
        "user=\"ann\"",
        "peer=\"10.1.2.3:4\"",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(!log.contains("ann-secret") && !log.contains(super::operated::TOKEN), "{log}");
}
