//! How many connections there may be, and for how long.

use std::collections::VecDeque;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};
use testkit::measured;

use super::{FLAGS, count, probe, read_to_end, shown, start, text};
use crate::certificates::Certificates;
use crate::server::Server;
use crate::stream_client::{PATIENCE, StreamClient, connect, connect_from, connect_tls, shake_hands, tls_to};

/// A configuration file with `bounds` of streams.
pub(super) fn configuration(bounds: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truetick.toml");
    std::fs::write(&path, format!("[turn.streams]\n{bounds}\n")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn one_source_has_so_many_connections_and_others_have_theirs() {
    let (_folder, path) = configuration("connections_per_source = 100\nhalf_open_per_source = 20");
    let server = start(&["--config", &path]);
    let silent: Vec<_> = (0..20).map(|_| connect_from([127, 0, 0, 2], server.tcp[0])).collect();
    shown(&server, "streams", |streams| streams["half_open"] == 20);
    let mut refused = connect_from([127, 0, 0, 2], server.tcp[0]);
    assert_eq!(read_to_end(&mut refused), b"", "20 that say nothing are enough");
    let mut served: Vec<_> = (0..100)
        .map(|_| {
            let mut client = StreamClient::new(connect_from([127, 0, 0, 3], server.tcp[0]));
            client.binding();
            client
        })
        .collect();
    let mut refused = connect_from([127, 0, 0, 3], server.tcp[0]);
    assert_eq!(read_to_end(&mut refused), b"", "100 are enough");
    let streams = shown(&server, "streams", |streams| {
        streams["open"] == 120 && streams["half_open"] == 20 && count(&streams["refused"], "source_connections") > 0
    });
    assert_eq!(streams["half_open"], 20, "{streams}");
    let refusals =
        ["source_half_open", "source_connections", "connections"].map(|name| count(&streams["refused"], name));
    assert_eq!(refusals, [1, 1, 0], "{streams}");
    // One of each leaves, and the next is taken.
    drop(served.pop());
    drop(silent);
    shown(&server, "streams", |streams| streams["open"] == 99);
    for host in [[127, 0, 0, 2], [127, 0, 0, 3]] {
        StreamClient::new(connect_from(host, server.tcp[0])).binding();
    }
    probe(&server);
}

#[test]
fn all_sources_together_have_so_many_connections_and_allocations_keep_theirs() {
    let (_folder, path) = configuration("connections_max = 5");
    let flags = ["--listen", "127.0.0.1:0", "--workers", "1", "--http", "127.0.0.1:0", "--config", &path];
    let server = Server::start(&flags);
    let mut silent: Vec<_> = (2..7).map(|host| connect_from([127, 0, 0, host], server.tcp[0])).collect();
    shown(&server, "streams", |streams| streams["open"] == 5);
    let mut clients: Vec<_> = (2..7)
        .map(|host| {
            // One that waits, and has said nothing, makes room for each.
            let mut client = StreamClient::new(connect_from([127, 0, 1, host], server.tcp[0]));
            client.allocate().unwrap();
            client
        })
        .collect();
    for stream in &mut silent {
        assert_eq!(read_to_end(stream), b"");
    }
    assert_eq!(read_to_end(&mut connect_from([127, 0, 0, 9], server.tcp[0])), b"", "an allocation frees no place");
    let streams = shown(&server, "streams", |streams| count(&streams["refused"], "connections") > 0);
    let counts = (count(&streams["ended"], "displaced"), count(&streams["refused"], "connections"));
    assert_eq!((counts, &streams["open"]), ((5, 1), &5.into()), "{streams}");
    for client in &mut clients {
        assert_eq!(client.refresh(600), 0);
    }
    drop(clients);
    shown(&server, "streams", |streams| streams["open"] == 0);
    probe(&server);
}

/// A whole ClientHello is all that a client can do until the server answers.
#[test]
fn who_has_greeted_keeps_its_place_before_those_who_say_nothing() {
    let certificates = Certificates::new();
    let (_folder, path) = configuration("connections_max = 5");
    let files = certificates.flags();
    // A worker makes room among its own connections.
    let flags = ["--listen", "127.0.0.1:0", "--workers", "1", "--http", "127.0.0.1:0", "--config", &path];
    let server = Server::start(&[&flags, &files.each_ref().map(String::as_str)[..]].concat());
    let config = certificates.client(rustls::ALL_VERSIONS, &[]);
    let (mut tls, mut socket) = (tls_to(server.tcp[0], &config), connect(server.tcp[0]));
    tls.write_tls(&mut socket).unwrap();
    shown(&server, "streams", |streams| streams["handshakes_in_progress"] == 1);
    let _silent: Vec<_> = (2..22).map(|host| connect_from([127, 0, 0, host], server.tcp[0])).collect();
    shown(&server, "streams", |streams| {
        count(&streams["ended"], "displaced") + count(&streams["refused"], "connections") >= 16
    });
    tls.complete_io(&mut socket).unwrap();
    StreamClient::new(rustls::StreamOwned::new(tls, socket)).allocate().unwrap();
    probe(&server);
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client has its allocation `within` that time; a connection that was displaced before it had spoken is made again.
fn is_let_in(within: Duration, attempt: impl Fn() -> bool) -> Duration {
    let started = Instant::now();
    while !catch_unwind(AssertUnwindSafe(&attempt)).unwrap_or(false) {
        assert!(started.elapsed() < within, "a new client is not let in");
    }
    let took = started.elapsed();
    assert!(took < within, "a new client waited {took:?}");
    took
}

#[test]
fn a_flood_of_connections_keeps_no_honest_client_out() {
    flood_of_connections(PATIENCE);
}

/// The same in the time that availability asks for: it judges the machine, too.
#[test]
fn a_flood_of_connections_lets_honest_clients_in_within_two_seconds() {
    let longest = flood_of_connections(Duration::from_secs(2));
    measured("connections", format_args!("5 TCP and 5 TLS clients let in during the flood, each within {longest:.0?}"));
}

/// Ten thousand addresses open connections and say nothing, half a message, or half a handshake, as fast as they can;
/// the table is full of them all the time. A new client is let in `within` that time.
fn flood_of_connections(within: Duration) -> Duration {
    let certificates = Certificates::new();
    let (_folder, path) = configuration("connections_max = 500");
    let files = certificates.flags();
    let server = start(&[&files.each_ref().map(String::as_str)[..], &["--config", &path]].concat());
    let mut old = StreamClient::new(connect(server.tcp[0]));
    old.allocate().unwrap();
    let (stop, addr, mut longest) = (AtomicBool::new(false), server.tcp[0], Duration::ZERO);
    std::thread::scope(|scope| {
        // Also where an assertion fails: else the flood would go on for ever.
        let _ends = StopOnDrop(&stop);
        scope.spawn(|| {
            let mut held = VecDeque::new();
            for number in (0..10_000_usize).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                let mut stream = connect_from([127, 2, (number / 250) as u8, (number % 250 + 1) as u8], addr);
                // Refused or displaced already, maybe.
                let _ = match number % 3 {
                    0 => stream.write_all(b"\x00\x01\x00"),
                    1 => stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
                    _ => Ok(()),
                };
                held.push_back(stream);
                if held.len() > 2_000 {
                    held.pop_front();
                }
            }
        });
        shown(&server, "streams", |streams| count(&streams["ended"], "displaced") > 500);
        let config = certificates.client(rustls::ALL_VERSIONS, &[]);
        // Their addresses are below and above those of the flood.
        for host in [1, 250, 1, 250, 250].map(|part| [127, part, 0, 1]) {
            let tcp = is_let_in(within, || StreamClient::new(connect_from(host, addr)).allocate().is_ok());
            let tls = || {
                let tls = shake_hands(connect_from(host, addr), &config);
                tls.is_ok_and(|tls| StreamClient::new(tls).allocate().is_ok())
            };
            longest = longest.max(tcp).max(is_let_in(within, tls));
            assert_eq!(old.refresh(600), 0, "an allocation made before lives on");
        }
    });
    probe(&server);
    longest
}

#[test]
fn case_a71_who_dawdles_is_closed_at_the_deadline() {
    let certificates = Certificates::new();
    let (_folder, path) = configuration("handshake_s = 1\nfirst_message_s = 2\nidle_s = 3");
    let files = certificates.flags();
    let server = start(&[&files.each_ref().map(String::as_str)[..], &["--config", &path]].concat());
    let started = Instant::now();
    // Nothing at all; the beginning of a message, a byte at a time; the beginning of a handshake.
    let mut silent = connect(server.tcp[0]);
    let mut slow = connect(server.tcp[0]);
    let mut greeting = connect(server.tcp[0]);
    greeting.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let header = [&b"\x00\x01\x04\x00\x21\x12\xA4\x42"[..], &[0; 1_000]].concat();
    let mut dawdled = 0;
    loop {
        // A byte every tenth of a second; the wait for an answer is how the time passes.
        match std::io::Read::read(&mut slow, &mut [0; 8]) {
            Ok(0) => break,
            Ok(_) => panic!("an answer to half a message"),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(_) => dawdled += 1,
        }
        if slow.write_all(&header[dawdled - 1..dawdled]).is_err() {
            break;
        }
        assert!(dawdled < header.len() - 1, "it is let dawdle");
    }
    assert_eq!(read_to_end(&mut greeting), [21, 3, 3, 0, 2, 1, 0], "close_notify");
    assert_eq!(read_to_end(&mut silent), b"");
    // A client that has spoken and has no allocation may be silent for longer, one with an allocation for as long.
    let mut spoken = StreamClient::new(connect(server.tcp[0]));
    spoken.binding();
    let mut allocated = StreamClient::new(connect(server.tcp[0]));
    allocated.allocate().unwrap();
    assert_eq!(spoken.receive(), None);
    assert!(started.elapsed() >= Duration::from_secs(5), "each has its time");
    let streams = shown(&server, "streams", |streams| streams["open"] == 1);
    let ended = ["first_message_deadline", "handshake_deadline", "idle"].map(|name| count(&streams["ended"], name));
    assert_eq!((ended, &streams["half_open"]), ([2, 1, 1], &0.into()), "{streams}");
    assert_eq!(allocated.refresh(600), 0);
    probe(&server);
}

fn resident(server: &Server) -> u64 {
    let metrics = text(server, "/metrics");
    let line = metrics.lines().find(|line| line.starts_with("process_resident_memory_bytes ")).unwrap();
    line.split(' ').nth(1).unwrap().parse::<f64>().unwrap() as u64
}

#[test]
fn case_a71_idle_connections_cost_little_each() {
    let certificates = Certificates::new();
    let files = certificates.flags();
    let (_folder, path) =
        configuration("first_message_s = 600\nhandshake_s = 600\nidle_s = 600\nhandshakes_max = 10000");
    let flags = [&FLAGS[..], &files.each_ref().map(String::as_str), &["--config", &path]].concat();
    // The server takes a quarter of its descriptors for connections; each end here is one, too.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let may_have =
        |count: u64| Command::new("sh").args(["-c", &format!("ulimit -n {count}")]).status().unwrap().success();
    let descriptors = if hard < 65_536 && may_have(65_536) { 65_536 } else { hard };
    let idle = (descriptors / 4).min(hard.saturating_sub(1_000)).min(10_000) as usize;
    nix::sys::resource::setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let server = Server::start_with_descriptors(u32::try_from(descriptors).unwrap(), &flags);
    probe(&server);
    let config = certificates.client(rustls::ALL_VERSIONS, &[]);
    drop(connect_tls(server.tls[0], &config).unwrap());
    let before = resident(&server);
    // Of each ten one has a TLS handshake behind it, three are within one, three have begun a message.
    let host = |number: usize| [127, 1, (number / 20 / 250) as u8, (number / 20 % 250 + 1) as u8];
    let mut streams = Vec::new();
    let mut shaken = Vec::new();
    for number in 0..idle - 100 {
        let mut stream = connect_from(host(number), server.tcp[0]);
        match number % 10 {
            0 if shaken.len() < 300 => {
                let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
                let tls = rustls::ClientConnection::new(std::sync::Arc::clone(&config), name).unwrap();
                let mut stream = rustls::StreamOwned::new(tls, stream);
                while stream.conn.is_handshaking() {
                    stream.conn.complete_io(&mut stream.sock).unwrap();
                }
                shaken.push(stream);
                continue;
            }
            1..4 => stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").unwrap(),
            4..7 => stream.write_all(b"\x00\x01\x00").unwrap(),
            _ => {}
        }
        streams.push(stream);
    }
    let open = (streams.len() + shaken.len()) as u64;
    shown(&server, "streams", |streams| streams["open"].as_u64() == Some(open));
    let each = resident(&server).saturating_sub(before) / open;
    println!("{open} idle connections, {} of them with TLS: {each} bytes each", shaken.len());
    assert!(each <= 16 << 10, "{each} bytes for each of {open}");
    probe(&server);
}
