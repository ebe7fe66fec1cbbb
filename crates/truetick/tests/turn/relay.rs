//! The built binary as a TURN server, over loopback, with a client written from the RFCs.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha1::Sha1;

use crate::server::{PASSWORD, Server, USER};
use testkit::turn_client::Client;

const PATIENCE: Duration = Duration::from_secs(20);
const CHANNEL: u16 = 0x4001;

fn peer(family_of: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((if family_of.is_ipv4() { "127.0.0.1" } else { "::1" }, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// `GET path` from the control plane, as JSON.
fn get(http: SocketAddr, path: &str) -> Value {
    let mut stream = TcpStream::connect(http).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    serde_json::from_str(body).unwrap()
}

fn drop_count(ledger: &Value, name: &str) -> u64 {
    let drops = ledger["drops"].as_array().unwrap();
    drops.iter().find(|drop| drop["name"] == name).unwrap()["count"].as_u64().unwrap()
}

/// Allocates, permits, binds, and carries payloads of many sizes both ways, by channel and by indication.
/// Returns how many datagrams the peer has sent.
fn relay_both_ways(client: &mut Client) -> u64 {
    let relayed = client.allocate().unwrap();
    let peer = peer(relayed);
    let peer_addr = peer.local_addr().unwrap();
    assert_eq!(client.permit(peer_addr), 0);
    let mut received = vec![0; 65_536];
    let sizes = [0, 1, 3, 4, 160, 1_200, 1_201, 9_000];
    for (number, size) in (0u8..).zip(sizes) {
        let payload = vec![number + 1; size];
        client.send_indication(peer_addr, &payload);
        let (length, from) = peer.recv_from(&mut received).unwrap();
        assert_eq!((&received[..length], from), (&payload[..], relayed));
        peer.send_to(&payload, relayed).unwrap();
        assert_eq!(client.receive_indication(), (peer_addr, payload));
    }
    assert_eq!(client.bind_channel(CHANNEL, peer_addr), 0);
    for (number, size) in (0u8..).zip(sizes) {
        let payload = vec![number + 100; size];
        client.send_channel(CHANNEL, &payload);
        let (length, from) = peer.recv_from(&mut received).unwrap();
        assert_eq!((&received[..length], from), (&payload[..], relayed));
        peer.send_to(&payload, relayed).unwrap();
        assert_eq!(client.receive_channel(), (CHANNEL, payload));
    }
    2 * sizes.len() as u64
}

#[test]
fn relays_both_ways_over_both_families_with_four_workers() {
    let server = Server::start(&[
        "--listen",
        "127.0.0.1:0",
        "--listen",
        "[::1]:0",
        "--workers",
        "4",
        "--http",
        "127.0.0.1:0",
        "--allow-own-host",
        "127.0.0.0/8",
        "--allow-own-host",
        "::1/128",
    ]);
    let http = server.http.unwrap();
    let mut clients: Vec<_> = (0..24).map(|n| Client::new(server.listen[n % 2], USER, PASSWORD)).collect();
    let mut expected = 0;
    for client in &mut clients {
        assert_eq!(client.binding(), client.socket.local_addr().unwrap());
        expected += relay_both_ways(client) + client.sent;
    }
    let bytes = 2 * 24 * (1 + 3 + 4 + 160 + 1_200 + 1_201 + 9_000_u64);
    let started = Instant::now();
    let ledger = loop {
        let ledger = get(http, "/api/v1/turn/drops");
        if ledger["in"] == expected && ledger["closes"] == true {
            break ledger;
        }
        assert!(started.elapsed() < PATIENCE, "{expected} were sent: {ledger}");
        testkit::pause();
    };
    assert_eq!((&ledger["out"], &ledger["dropped"]), (&expected.into(), &0.into()), "{ledger}");
    let allocations = &get(http, "/api/v1/turn/allocations")["allocations"];
    assert_eq!((&allocations["live"], &allocations["created"]), (&24.into(), &24.into()));
    assert_eq!((&allocations["to_peers_bytes"], &allocations["to_clients_bytes"]), (&bytes.into(), &bytes.into()));
    for client in &mut clients {
        assert_eq!(client.refresh(0), 0);
    }
    let farewell = server.stop();
    assert_eq!((farewell.received, farewell.dropped), (expected + 24, 0), "{}", farewell.line);
}

/// Clients and relayed addresses of either family in all four combinations, and one client with both.
#[test]
fn rfc_r084_both_families_from_clients_of_either() {
    let flags = "--listen 127.0.0.1:0 --listen [::1]:0 --relay-ip 127.0.0.1 --relay-ip ::1 --workers 4";
    let flags: Vec<_> =
        flags.split(' ').chain(["--allow-own-host", "127.0.0.0/8", "--allow-own-host", "::1/128"]).collect();
    let server = Server::start(&flags);
    let mut received = [0; 64];
    let mut clients = Vec::new();
    for listen in &server.listen {
        let mut dual = Client::new(*listen, USER, PASSWORD);
        let granted = dual.allocate_with(&[(testkit::turn_client::ADDITIONAL_ADDRESS_FAMILY, &[2, 0, 0, 0])]).unwrap();
        assert!(matches!(granted.relayed[..], [SocketAddr::V4(_), SocketAddr::V6(_)]), "{:?}", granted.relayed);
        for relayed in granted.relayed {
            let family = if relayed.is_ipv4() { 1 } else { 2 };
            let mut single = Client::new(*listen, USER, PASSWORD);
            let own =
                single.allocate_with(&[(testkit::turn_client::REQUESTED_ADDRESS_FAMILY, &[family, 0, 0, 0])]).unwrap();
            assert_eq!((own.relayed.len(), own.relayed[0].is_ipv4()), (1, relayed.is_ipv4()));
            for (client, relayed, number) in
                [(&mut dual, relayed, CHANNEL + u16::from(family)), (&mut single, own.relayed[0], CHANNEL)]
            {
                let peer = peer(relayed);
                assert_eq!(client.permit(peer.local_addr().unwrap()), 0);
                client.send_indication(peer.local_addr().unwrap(), b"out");
                let (length, from) = peer.recv_from(&mut received).unwrap();
                assert_eq!((&received[..length], from), (&b"out"[..], relayed));
                peer.send_to(b"in", relayed).unwrap();
                assert_eq!(client.receive_indication(), (peer.local_addr().unwrap(), b"in".to_vec()));
                assert_eq!(client.bind_channel(number, peer.local_addr().unwrap()), 0);
                client.send_channel(number, b"out");
                assert_eq!(peer.recv_from(&mut received).unwrap().1, relayed);
                peer.send_to(b"in", relayed).unwrap();
                assert_eq!(client.receive_channel(), (number, b"in".to_vec()));
            }
            clients.push(single);
        }
        clients.push(dual);
    }
    assert_eq!(server.stop().dropped, 0);
}

/// What `[turn.quotas]` says holds at all four workers together.
#[test]
fn case_a54_case_a62_quotas_of_the_configuration_hold_at_every_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truetick.toml");
    let text = "[turn.quotas]\nuser_allocations = 3\npermissions_per_allocation = 2\nchannels_per_allocation = 1\n";
    std::fs::write(&path, text).unwrap();
    let flags = ["--listen", "127.0.0.1:0", "--workers", "4", "--config", path.to_str().unwrap()];
    let server = Server::start(&flags);
    let mut clients: Vec<_> = (0..12).map(|_| Client::new(server.listen[0], USER, PASSWORD)).collect();
    let codes: Vec<_> = clients.iter_mut().map(|client| client.allocate().err()).collect();
    assert_eq!((&codes[..3], &codes[3..]), (&[None; 3][..], &[Some(486); 9][..]));
    let peer = |host: u8| SocketAddr::from(([198, 41, 0, host], 9));
    assert_eq!([1, 2, 3].map(|host| clients[0].permit(peer(host))), [0, 0, 508]);
    assert_eq!((clients[0].bind_channel(CHANNEL, peer(1)), clients[0].bind_channel(CHANNEL + 1, peer(2))), (0, 508));
    assert_eq!(clients[1].permit(peer(3)), 0, "another allocation has its own");
    assert_eq!(clients[1].refresh(0), 0);
    assert!(clients[9].allocate().is_ok(), "the unit is free again, at whichever worker");
    assert_eq!(clients[10].allocate(), Err(486));
    assert_eq!(server.stop().dropped, 0);
}

/// A token is worth the same at every worker: the kernel chooses which of the four a client's datagrams come to.
#[test]
fn rfc_r086_case_a50_a_reserved_port_is_claimed_from_any_five_tuple() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "4", "--allow-own-host", "127.0.0.0/8"]);
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut holder = Client::new(server.listen[0], USER, PASSWORD);
        let granted = holder.allocate_with(&[(testkit::turn_client::EVEN_PORT, &[0x80])]).unwrap();
        let (even, token) = (granted.relayed[0], granted.token.unwrap());
        assert_eq!(even.port() % 2, 0);
        let mut claimer = Client::new(server.listen[0], USER, PASSWORD);
        let claimed = claimer.allocate_with(&[(testkit::turn_client::RESERVATION_TOKEN, &token)]).unwrap();
        assert_eq!(claimed.relayed, [SocketAddr::new(even.ip(), even.port() + 1)]);
        assert_eq!(claimed.token, None);
        let mut late = Client::new(server.listen[0], USER, PASSWORD);
        assert_eq!(late.allocate_with(&[(testkit::turn_client::RESERVATION_TOKEN, &token)]).err(), Some(508), "used");
        // Whoever has it relays on it, at whichever worker.
        let peer = peer(even);
        assert_eq!(claimer.permit(peer.local_addr().unwrap()), 0);
        claimer.send_indication(peer.local_addr().unwrap(), b"out");
        assert_eq!(peer.recv_from(&mut [0; 8]).unwrap().1, claimed.relayed[0]);
        peer.send_to(b"in", claimed.relayed[0]).unwrap();
        assert_eq!(claimer.receive_indication(), (peer.local_addr().unwrap(), b"in".to_vec()));
        assert_eq!(claimer.refresh(600), 0);
        // The ports of clients that are gone might be given to the next ones, and their allocations with them.
        clients.extend([holder, claimer, late]);
    }
    assert_eq!(server.stop().dropped, 0);
}

#[test]
fn rfc_r114_dscp_and_ecn_of_a_payload_are_kept_both_ways() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--allow-own-host", "127.0.0.0/8"]);
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    let peer = tt_net::UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let relayed = client.allocate().unwrap();
    assert_eq!(client.bind_channel(CHANNEL, peer.local_addr()), 0);
    let mut poller = tt_net::Poller::new(1).unwrap();
    poller.add(&peer, 0).unwrap();
    let (mut inbox, mut outbox) = (tt_net::Inbox::new(1, 64), tt_net::Outbox::new(1, 64));
    let (to_peer, to_client) = (0xba, 0x49);
    socket2::SockRef::from(&client.socket).set_tos_v4(to_peer).unwrap();
    socket2::SockRef::from(&client.socket).set_recv_tos_v4(true).unwrap();
    client.send_channel(CHANNEL, b"marked");
    assert_eq!(poller.wait(Some(PATIENCE)).unwrap(), [0]);
    inbox.receive(&peer, 0, 1).unwrap();
    let datagram = inbox.datagram(0);
    assert_eq!((datagram.bytes, u32::from(datagram.traffic_class)), (&b"marked"[..], to_peer));
    let back = tt_net::Outgoing {
        traffic_class: to_client,
        ..tt_net::Outgoing::quoting(0, relayed, 0, tt_model::ByteRange::new(0, 6))
    };
    assert!(outbox.push(back));
    assert_eq!(outbox.flush(&inbox, |_| Some(&peer)).datagrams, 1);
    let mut space = nix::cmsg_space!(u8);
    let mut bytes = [0; 64];
    let mut pieces = [std::io::IoSliceMut::new(&mut bytes)];
    let flags = nix::sys::socket::MsgFlags::empty();
    let received =
        nix::sys::socket::recvmsg::<()>(client.socket.as_raw_fd(), &mut pieces, Some(&mut space), flags).unwrap();
    let classes: Vec<_> = received.cmsgs().unwrap().collect();
    assert_eq!(classes, [nix::sys::socket::ControlMessageOwned::Ipv4Tos(to_client)]);
}

/// QEMU's emulated kernel does not know `SO_RXQ_OVFL`.
#[test]
#[cfg(target_arch = "x86_64")]
fn relays_where_the_kernel_lacks_an_option_of_sockets() {
    let emulator = testkit::find_program("qemu-x86_64-static", "qemu-user-static");
    let Some(emulator) = testkit::require(testkit::Requirement::Program, emulator) else { return };
    let flags = ["--listen", "127.0.0.1:0", "--workers", "1", "--allow-own-host", "127.0.0.0/8"];
    let server = Server::start_emulated(&emulator, &flags);
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    let (relayed, peer) = (client.allocate().unwrap(), peer(server.listen[0]));
    let peer_addr = peer.local_addr().unwrap();
    assert_eq!(client.permit(peer_addr), 0);
    client.send_indication(peer_addr, b"to the peer");
    assert_eq!(peer.recv_from(&mut [0; 64]).unwrap(), (11, relayed));
    peer.send_to(b"to the client", relayed).unwrap();
    assert_eq!(client.receive_indication(), (peer_addr, b"to the client".to_vec()));
    assert_eq!(server.stop().dropped, 0);
}

#[test]
fn every_kind_of_garbage_is_dropped_under_a_name() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--workers", "1"]);
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    for garbage in [&b""[..], b"x", &[0xff; 40], &[0; 19], &[0; 20], &[0x40, 1, 0, 0]] {
        client.send(garbage);
    }
    client.binding();
    let started = Instant::now();
    let ledger = loop {
        let ledger = get(server.http.unwrap(), "/api/v1/turn/drops");
        if ledger["in"] == client.sent {
            break ledger;
        }
        assert!(started.elapsed() < PATIENCE, "{ledger}");
        testkit::pause();
    };
    assert_eq!((&ledger["dropped"], &ledger["closes"]), (&6.into(), &true.into()), "{ledger}");
    assert!(drop_count(&ledger, "short") >= 3 && drop_count(&ledger, "no_allocation") == 1, "{ledger}");
    assert_eq!(server.stop().dropped, 6);
}

#[test]
fn rfc_r014_replies_of_a_wildcard_listener_leave_from_the_address_that_was_asked() {
    let server =
        Server::start(&["--listen", "0.0.0.0:0", "--relay-ip", "127.0.0.1", "--allow-own-host", "127.0.0.0/8"]);
    let asked = SocketAddr::from(([127, 0, 0, 77], server.listen[0].port()));
    let mut client = Client::new(asked, USER, PASSWORD);
    client.binding();
    relay_both_ways(&mut client);
    assert_eq!(server.stop().dropped, 0);
}

#[test]
fn clients_receive_the_external_address_and_ports_of_the_range() {
    let flags = "--listen 127.0.0.1:0 --external-ip 192.0.2.9 --relay-ports 45000-45999 --workers 1";
    let server = Server::start(&flags.split(' ').collect::<Vec<_>>());
    // All of them live to the end: the port of one that is gone might be given to the next, and its allocation with it.
    let mut clients: Vec<_> = (0..40).map(|_| Client::new(server.listen[0], USER, PASSWORD)).collect();
    let ports: BTreeSet<_> = clients
        .iter_mut()
        .map(|client| {
            let relayed = client.allocate().unwrap();
            assert_eq!(relayed.ip().to_string(), "192.0.2.9");
            assert!((45_000..=45_999).contains(&relayed.port()), "{relayed}");
            relayed.port()
        })
        .collect();
    assert_eq!(ports.len(), 40, "each allocation has a separate port");
    let neighbours = ports.iter().zip(ports.iter().skip(1)).filter(|(a, b)| *b - *a == 1).count();
    assert!(neighbours < 10, "drawn at random, 40 of 1,000 ports are not in a row: {ports:?}");
}

#[test]
fn what_comes_late_for_one_allocation_never_reaches_the_next() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ports = format!("{port}-{port}");
    let flags = ["--listen", "127.0.0.1:0", "--workers", "1", "--relay-ports", &ports];
    let server = Server::start(&[&flags[..], &["--allow-own-host", "127.0.0.0/8", "--http", "127.0.0.1:0"]].concat());
    let mut first = Client::new(server.listen[0], USER, PASSWORD);
    let relayed = first.allocate().unwrap();
    let peer = peer(relayed);
    assert_eq!(first.permit(peer.local_addr().unwrap()), 0);
    assert_eq!(first.refresh(0), 0);
    let mut second = Client::new(server.listen[0], USER, PASSWORD);
    assert_eq!(second.allocate(), Err(508), "the only relay socket rests");
    for _ in 0..7 {
        peer.send_to(b"late", relayed).unwrap();
    }
    // An unexpected reply would arrive here; the wait lets the time pass.
    second.socket.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    let started = Instant::now();
    loop {
        assert_eq!(second.socket.recv(&mut [0; 64]).unwrap_err().kind(), ErrorKind::WouldBlock);
        match second.allocate() {
            Ok(again) => break assert_eq!(again, relayed),
            Err(code) => assert_eq!(code, 508),
        }
        assert!(started.elapsed() < PATIENCE, "the socket rests for ever");
    }
    assert!(started.elapsed() > Duration::from_secs(4), "it has rested");
    assert_eq!(second.permit(peer.local_addr().unwrap()), 0);
    assert_eq!(second.socket.recv(&mut [0; 64]).unwrap_err().kind(), ErrorKind::WouldBlock, "something came late");
    let line = server.stop().line;
    assert!(line.contains("relay_resting 7"), "{line}");
}

#[test]
fn running_out_of_descriptors_costs_allocations_only_and_only_for_a_while() {
    let flags = ["--listen", "127.0.0.1:0", "--workers", "1", "--http", "127.0.0.1:0"];
    let server = Server::start_with_descriptors(1_000, &flags);
    // The budget leaves a reserve, which the system takes away here.
    let limit = |descriptors: usize| {
        let (process, limit) = (server.id().to_string(), format!("--nofile={descriptors}:"));
        assert!(Command::new("prlimit").args(["--pid", &process, &limit]).status().unwrap().success());
    };
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
    limit(open + 2);
    // All of them live to the end: the port of one that is gone might be given to the next, and its allocation with it.
    let mut served = Vec::new();
    let mut client = loop {
        let mut client = Client::new(server.listen[0], USER, PASSWORD);
        match client.allocate() {
            Ok(_) => served.push(client),
            Err(code) => {
                assert_eq!(code, 508);
                break client;
            }
        }
    };
    let count = served.len();
    assert!((50..300).contains(&count), "{count} allocations from the sockets that were bound ahead");
    assert_eq!(client.binding(), client.socket.local_addr().unwrap(), "it still serves");
    limit(1_000);
    let started = Instant::now();
    while let Err(code) = client.allocate() {
        assert_eq!(code, 508);
        assert!(started.elapsed() < PATIENCE, "it does not recover");
    }
    let line = server.stop().line;
    assert!(line.contains("relay sockets failed: no_descriptors"), "{line}");
}

/// The kernel doubles the table when a descriptor does not fit, and the worker that opens it waits for milliseconds.
#[test]
fn the_table_of_descriptors_never_grows_under_load() {
    let flags = "--listen 127.0.77.3:0 --workers 1 --allocations-max 1000 --user-share-percent 100 \
                 --user-allocations-per-second 0";
    let server = Server::start(&flags.split_whitespace().collect::<Vec<_>>());
    let table = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        size.trim().parse::<usize>().unwrap()
    };
    let at_start = table();
    assert!(at_start >= 2_000, "one socket in use and one that rests for each allocation: {at_start}");
    for number in 0..600u16 {
        let ip = [127, 2, (number / 250) as u8, 1 + (number % 250) as u8];
        assert!(Client::on(ip.into(), server.listen[0], USER, PASSWORD).allocate().is_ok());
    }
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
    assert!(open > 600 && table() == at_start, "{open} open, {} in place of {at_start}", table());
}

#[test]
fn private_peers_are_denied_by_default_and_opened_by_range() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--deny-peer", "203.0.114.0/24"]);
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    client.allocate().unwrap();
    for denied in ["10.0.0.1:80", "127.0.0.2:80", "169.254.169.254:80", "192.168.1.1:53", "203.0.114.7:9"] {
        assert_eq!(client.permit(denied.parse().unwrap()), 403, "{denied}");
    }
    assert_eq!(client.permit("198.41.0.4:53".parse().unwrap()), 0, "a public address");
    let server = Server::start(&["--listen", "127.0.0.1:0", "--allow-peer", "10.1.0.0/16"]);
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    client.allocate().unwrap();
    assert_eq!(client.permit("10.1.2.3:80".parse().unwrap()), 0);
    assert_eq!(client.permit("10.2.2.3:80".parse().unwrap()), 403);
    // The most specific range counts: one host of an allowed network stays closed.
    let flags = ["--allow-peer", "10.0.0.0/8", "--deny-peer", "10.0.0.5/32", "--allow-peer", "0.0.0.0/0"];
    let server = Server::start(&[&["--listen", "127.0.0.1:0"][..], &flags].concat());
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    client.allocate().unwrap();
    let codes = ["10.0.0.5:80", "10.0.0.4:80", "0.0.0.0:53", "192.168.1.1:53"];
    assert_eq!(codes.map(|peer| client.permit(peer.parse().unwrap())), [403, 0, 403, 403]);
    let server =
        Server::start(&["--listen", "0.0.0.0:0", "--relay-ip", "127.0.0.1", "--allow-own-host", "127.0.0.0/8"]);
    let listener = SocketAddr::from(([127, 0, 0, 1], server.listen[0].port()));
    let mut client = Client::new(listener, USER, PASSWORD);
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(CHANNEL, listener), 403, "the server's own port, although its address is opened");
}

#[test]
fn time_limited_credentials_of_every_secret_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secrets");
    std::fs::write(&path, "# rotated\nnorth\nsouth\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let path = path.to_str().unwrap();
    let server = Server::start(&["--listen", "127.0.0.1:0", "--auth-secret-file", path]);
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let allocate = |secret: &str, expiry: u64| {
        let name = format!("{expiry}:bob");
        let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(name.as_bytes());
        Client::new(server.listen[0], &name, &BASE64.encode(mac.finalize().into_bytes())).allocate()
    };
    assert!(allocate("north", unix_s + 600).is_ok());
    assert!(allocate("south", unix_s + 600).is_ok());
    assert_eq!(allocate("east", unix_s + 600), Err(401), "not a secret of this server");
    assert_eq!(allocate("north", unix_s - 60), Err(401), "expired");
}

#[test]
fn what_keeps_it_from_starting_is_one_line() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "3"]);
    let taken = server.listen[0].to_string();
    let folder = tempfile::tempdir().unwrap();
    let loose = folder.path().join("users");
    std::fs::write(&loose, "ann:secret\n").unwrap();
    std::fs::set_permissions(&loose, std::fs::Permissions::from_mode(0o644)).unwrap();
    let loose = loose.to_str().unwrap();
    for (flags, expected) in [
        (["--listen", &taken], "cannot listen on udp"),
        (["--relay-ip", "192.0.2.200"], "cannot bind a relay socket on 192.0.2.200"),
        (["--user-file", loose], "chmod 600"),
        (["--http", "192.0.2.200:1"], "cannot listen on 192.0.2.200:1"),
    ] {
        let listen: &[&str] = if flags[0] == "--listen" { &[] } else { &["--listen", "127.0.0.1:0"] };
        let output = Command::new(crate::server::program()).arg("turn").args(listen).args(flags).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
        assert!(line.contains(expected) && !line.contains("secret\n"), "{line}");
    }
}
