//! The binary under the name `turnserver`, with coturn's file and coturn's signals; and `truetick import`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use tempfile::TempDir;
use testkit::turn_client::Client;

use super::activation::free_port;
use super::operated::{Operated, PATIENCE, peer, relays};
use crate::server::program;

/// Writes a file that only its owner can read.
fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Starts `turnserver -c FILE` with the users ann and bob.
fn turnserver() -> (Operated, String) {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let text = format!(
        "listening-ip=127.0.0.1\nlistening-port={port}\nlt-cred-mech\nrealm=example.org\nuser=ann:ann-secret\n\
         user=bob:bob-secret\nallowed-peer-ip=127.0.0.2\nallow-loopback-peers\nno-tcp-relay\nprometheus\n\
         prometheus-address=127.0.0.1\nprometheus-port=0\n"
    );
    let file = write(&folder, "turnserver.conf", &text);
    let link = folder.path().join("turnserver");
    symlink(program(), &link).unwrap();
    let mut command = Command::new(link);
    command.args(["-c", &file, "--no-cli"]);
    (Operated::start_command(command, folder), text)
}

/// SIGUSR2 of coturn reads the certificates again; here it reads the whole file, as SIGHUP does.
#[test]
fn sigusr2_reads_the_file_of_coturn_again_and_keeps_calls() {
    let (server, text) = turnserver();
    let mut client = server.client("bob");
    client.allocate().unwrap();
    assert_eq!(server.client("ann").allocate().map(drop), Ok(()));
    server.rewrite("turnserver.conf", &text.replace("ann-secret", "other"));
    server.signal(Signal::SIGUSR2);
    server.wait_log("configuration reloaded", 1);
    assert_eq!(server.client("ann").allocate(), Err(401));
    assert_eq!(Client::new(server.listen, "ann", "other").allocate().map(drop), Ok(()));
    assert_eq!(client.refresh(600), 0);
    // What cannot be applied changes nothing.
    server.rewrite("turnserver.conf", &format!("{}no-auth\n", text.replace("ann-secret", "third")));
    server.signal(Signal::SIGUSR2);
    server.wait_log("configuration not reloaded", 1);
    assert_eq!(Client::new(server.listen, "ann", "other").allocate().map(drop), Ok(()));
    server.signal(Signal::SIGINT);
    let (status, log) = server.ended();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}

/// coturn's names (its src/apps/relay/prom_server.c at 4.17) with what went through, in addition to those of truetick.
#[test]
fn metrics_have_the_names_of_coturn_too() {
    let (server, _) = turnserver();
    let (mut client, peer) = (server.client("ann"), peer());
    let relayed = client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    relays(&mut client, 0x4000, &peer, b"payload");
    for answer in [b"one", b"two"] {
        peer.send_to(answer, relayed).unwrap();
        assert_eq!(client.receive_channel(), (0x4000, answer.to_vec()));
    }
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"\0\x01\0\0\x21\x12\xA4\x42transaction1", server.listen).unwrap();
    assert!(socket.recv(&mut [0; 200]).unwrap() > 20);
    let series = [
        ("stun_binding_request", "1"),
        ("stun_binding_response", "1"),
        ("stun_binding_error", "0"),
        // The first Allocate of the client has no credentials.
        ("turn_unauthenticated_401_responses", "1"),
        ("turn_packet_dropped", "0"),
        ("turn_total_allocations{type=\"UDP\"}", "1"),
        ("turn_total_allocations{type=\"TCP\"}", "0"),
        ("turn_total_allocations{type=\"TLS/TCP\"}", "0"),
        ("truetick_turn_allocations", "1"),
    ];
    let (to_peers, to_clients) = (["1", "7"], ["2", "6"]);
    let directions = [("rcv", to_peers), ("sent", to_clients), ("peer_rcv", to_clients), ("peer_sent", to_peers)];
    let traffic = directions.into_iter().flat_map(|(of, values)| {
        let each = ["p", "b"].into_iter().zip(values);
        let realm = "{realm=\"example.org\"}";
        each.flat_map(move |(unit, value)| {
            [format!("turn_total_traffic_{of}{unit}"), format!("turn_traffic_{of}{unit}{realm}")]
                .map(|name| (name, value))
        })
    });
    let series = series.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(traffic);
    let lines: Vec<String> = series.map(|(name, value)| format!("{name} {value}")).collect();
    let missing = || {
        let metrics = server.ask("GET", "/metrics", None).body;
        lines.iter().filter(|line| !metrics.lines().any(|of| of == *line)).cloned().collect::<Vec<_>>()
    };
    // Workers publish their counts a few times a second.
    let started = std::time::Instant::now();
    while !missing().is_empty() {
        assert!(started.elapsed() < PATIENCE, "{:?}\n{}", missing(), server.ask("GET", "/metrics", None).body);
        testkit::pause();
    }
    let metrics = server.ask("GET", "/metrics", None).body;
    let processed = metrics.lines().find_map(|line| line.strip_prefix("turn_packet_processed ")).unwrap();
    assert_eq!(
        metrics.lines().find_map(|line| line.strip_prefix("truetick_turn_datagrams_in_total ")),
        Some(processed)
    );
}

/// SIGUSR1 of coturn drains: no new allocation, live ones go on, and the last one ends the process.
#[test]
fn sigusr1_drains_and_ends_with_the_last_allocation() {
    let (server, _) = turnserver();
    let (mut client, peer) = (server.client("ann"), peer());
    client.allocate().unwrap();
    server.signal(Signal::SIGUSR1);
    server.wait_log("draining: new allocations are rejected", 1);
    assert_eq!(server.client("bob").allocate(), Err(403));
    assert_eq!(server.ask("GET", "/readyz", None).status, 503);
    assert_eq!(client.refresh(600), 0);
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    relays(&mut client, 0x4000, &peer, b"while it drains");
    assert_eq!(client.refresh(0), 0);
    let (status, log) = server.ended();
    assert!(status.code() == Some(0) && log.contains("drained"), "{log}");
}

fn import(arguments: &[&str]) -> Output {
    Command::new(program()).arg("import").args(arguments).output().unwrap()
}

/// 0: nothing changes, 1: something does, 2: there is nothing to read.
#[test]
fn the_status_of_an_import_is_whether_behaviour_would_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| write(&folder, name, text);
    let same = "stun-only\nlistening-ip=192.0.2.1\nrelay-ip=192.0.2.1\nno-tcp-relay\n\
                denied-peer-ip=0.0.0.0-255.255.255.255\n\
                denied-peer-ip=::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\n";
    let secret = "use-auth-secret\nstatic-auth-secret=hidden-north\n";
    let yaml = "eturnal:\n  secret: hidden-north\n";
    let cases = [
        (file("same.conf", same), 0, "behaviour would not change"),
        (file("differs.conf", &format!("{same}dtls\n")), 1, "behaviour would change"),
        (file("refused.conf", "no-auth\n"), 1, "refused"),
        (file("secret.conf", secret), 1, "behaviour would change"),
        (file("eturnal.yml", yaml), 1, "behaviour would change"),
    ];
    for (file, status, words) in cases {
        for flag in [&[][..], &["--json"]] {
            let output = import(&[&[file.as_str()], flag].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(output.status.code(), Some(status), "{file}: {text}");
            let is_json = flag == ["--json"];
            assert!(text.contains(words) || (is_json && text.contains("changes_behaviour")), "{file}: {text}");
            assert!(!text.contains("hidden"), "{file}: {text}");
        }
    }
    let broken = file("broken.yml", "eturnal: [\n");
    let missing = folder.path().join("missing.conf").to_str().unwrap().to_owned();
    let not_text = folder.path().join("bytes.conf");
    fs::write(&not_text, [0xFF, 0xFE, b'\n']).unwrap();
    let (not_text, listed) = (not_text.to_str().unwrap(), folder.path().to_str().unwrap());
    for file in [broken.as_str(), missing.as_str(), not_text, listed] {
        let output = import(&[file]);
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{file}: {line}");
        assert!(line.starts_with("truetick: ") && line.contains(file) && line.lines().count() == 1, "{line}");
    }
    assert_eq!(import(&[]).status.code(), Some(2), "no file is named");
    // Existing files with credentials are not overwritten: the import fails, and prints no configuration.
    let target = folder.path().to_str().unwrap();
    let secret = file("secret.conf", secret);
    assert_eq!(import(&["--credentials", target, &secret]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(Path::new(target).join("turn-secrets")).unwrap(), "hidden-north\n");
    let again = import(&["--credentials", target, &secret]);
    assert!(again.status.code() == Some(1) && again.stdout.is_empty(), "{again:?}");
}

/// `turnserver` and `turn --coturn` do not start from what an import refuses; they fail like any other start.
#[test]
fn a_start_from_a_refused_file_fails_with_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder, "turnserver.conf", "no-auth\n");
    let link = folder.path().join("turnserver");
    symlink(program(), &link).unwrap();
    let mut turnserver = Command::new(link);
    let mut turn = Command::new(program());
    for command in [turnserver.args(["-c", &file]), turn.args(["turn", "--coturn", &file])] {
        let output = command.output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && line.contains("line 1: no-auth: truetick does not relay"), "{line}");
    }
}
