//! Relaying for clients over TCP and TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use socket2::{Domain, Socket, Type};
use turn_server::{TurnConfig, User};

use super::{count, peer, probe, shown, start};
use crate::certificates::Certificates;
use crate::server::{PASSWORD, Server, USER};
use crate::stream_client::{PATIENCE, StreamClient, connect, connect_tls};
use testkit::turn_client::Client;

const CHANNEL: u16 = 0x4001;
const SIZES: [usize; 9] = [0, 1, 2, 3, 4, 160, 1_201, 9_000, 65_507];

/// Allocates, permits, binds, and carries payloads of many sizes both ways. Returns what the server saw.
fn relay_both_ways<S: Read + Write>(client: &mut StreamClient<S>) -> u64 {
    let relayed = client.allocate().unwrap();
    let peer = peer();
    let peer_addr = peer.local_addr().unwrap();
    assert_eq!(client.permit(peer_addr), 0);
    let mut received = vec![0; 65_536];
    for (number, size) in (0u8..).zip(SIZES) {
        let payload = vec![number + 1; size];
        client.send_indication(peer_addr, &payload);
        let (length, from) = peer.recv_from(&mut received).unwrap();
        assert_eq!((&received[..length], from), (&payload[..], relayed));
        peer.send_to(&payload, relayed).unwrap();
        assert_eq!(client.receive_indication(), (peer_addr, payload));
    }
    assert_eq!(client.bind_channel(CHANNEL, peer_addr), 0);
    for (number, size) in (0u8..).zip(SIZES) {
        let payload = vec![number + 100; size];
        client.send_channel(CHANNEL, &payload);
        let (length, from) = peer.recv_from(&mut received).unwrap();
        assert_eq!((&received[..length], from), (&payload[..], relayed));
        peer.send_to(&payload, relayed).unwrap();
        assert_eq!(client.receive_channel(), (CHANNEL, payload));
    }
    assert_eq!(client.refresh(600), 0);
    client.sent + 2 * SIZES.len() as u64
}

#[test]
fn rfc_r016_binding_is_answered_over_tcp_as_over_udp() {
    let server = start(&[]);
    let mut client = StreamClient::new(connect(server.tcp[0]));
    for _ in 0..3 {
        assert_eq!(client.binding(), client.stream.local_addr().unwrap());
    }
    let mut client = Client::new(server.listen[0], USER, PASSWORD);
    assert_eq!(client.binding(), client.socket.local_addr().unwrap());
    assert_eq!(server.stop().received, 4);
}

/// R112: the client's framing takes padded ChannelData only, and A73: the largest datagrams are among the sizes.
#[test]
fn rfc_r112_case_a73_relays_both_ways_over_tcp_and_tls_with_four_workers() {
    let certificates = Certificates::new();
    let flags = certificates.flags();
    let server = start(&flags.each_ref().map(String::as_str));
    let config = certificates.client(rustls::ALL_VERSIONS, &[]);
    let mut expected = 0;
    let mut plain: Vec<_> = (0..6).map(|_| StreamClient::new(connect(server.tcp[0]))).collect();
    let mut tls: Vec<_> = (0..6).map(|_| StreamClient::new(connect_tls(server.tls[0], &config).unwrap())).collect();
    for client in &mut plain {
        expected += relay_both_ways(client);
    }
    for client in &mut tls {
        expected += relay_both_ways(client);
    }
    let ledger = shown(&server, "drops", |ledger| ledger["in"] == expected && ledger["closes"] == true);
    assert_eq!((&ledger["out"], &ledger["dropped"]), (&expected.into(), &0.into()), "{ledger}");
    let streams = shown(&server, "streams", |_| true);
    let now = ["open", "open_tls", "half_open", "accepted", "handshakes"].map(|name| streams[name].as_u64().unwrap());
    assert_eq!(now, [12, 6, 0, 12, 6], "{streams}");
    drop((plain, tls));
    let streams = shown(&server, "streams", |streams| streams["open"] == 0);
    assert_eq!(count(&streams["ended"], "client"), 12, "{streams}");
    let allocations = shown(&server, "allocations", |allocations| allocations["allocations"]["live"] == 0);
    assert_eq!(allocations["allocations"]["ended"], 12, "they end with their connections: {allocations}");
    probe(&server);
}

/// A connection that ends with RST and not with FIN.
fn reset(client: StreamClient<std::net::TcpStream>) {
    socket2::SockRef::from(&client.stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
}

#[test]
fn case_a54_a_reset_connection_gives_its_quota_back() {
    let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
    config.users = vec![User::parse(&format!("{USER}:{PASSWORD}")).unwrap()].into();
    config.quotas.allocations_per_user = 3;
    config.workers = 4;
    let running = turn_server::start(&config).unwrap();
    let addr = running.streams()[0].addr;
    let mut clients: Vec<_> = (0..3).map(|_| StreamClient::new(connect(addr))).collect();
    clients.iter_mut().for_each(|client| assert!(client.allocate().is_ok()));
    assert_eq!(StreamClient::new(connect(addr)).allocate(), Err(486));
    for closes in 1..=6 {
        // Every other one ends with RST, the rest with FIN.
        let client = clients.remove(0);
        if closes % 2 == 0 {
            drop(client)
        } else {
            reset(client)
        }
        // One that asks again on its connection, so that a refusal costs no new one.
        let mut client = StreamClient::new(connect(addr));
        let started = Instant::now();
        while client.allocate().is_err() {
            assert!(started.elapsed() < PATIENCE, "the unit is not returned");
        }
        clients.push(client);
        assert_eq!(StreamClient::new(connect(addr)).allocate(), Err(486), "one unit, not more");
    }
    drop(clients);
    let started = Instant::now();
    while running.totals().allocations(1).live > 0 {
        assert!(started.elapsed() < PATIENCE, "{:?}", running.totals());
        testkit::pause();
    }
    let streams = running.totals().streams();
    let ended = |name| streams.ended.iter().find(|count| count.name == name).unwrap().count;
    assert_eq!((ended("reset"), streams.half_open), (3, 0));
    let allocations = running.totals().allocations(1);
    assert_eq!((allocations.created, allocations.ended), (9, 9));
    running.stop();
}

#[test]
fn rfc_r015_no_connection_is_opened_back() {
    let server = start(&[]);
    let local = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    local.set_reuse_address(true).unwrap();
    local.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    local.connect(&server.tcp[0].into()).unwrap();
    local.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = StreamClient::new(std::net::TcpStream::from(local));
    let addr = client.stream.local_addr().unwrap();
    let relayed = client.allocate().unwrap();
    let peer = peer();
    assert_eq!(client.permit(peer.local_addr().unwrap()), 0);
    reset(client);
    let listener = TcpListener::bind(addr).unwrap();
    listener.set_nonblocking(true).unwrap();
    shown(&server, "streams", |streams| streams["open"] == 0);
    for _ in 0..20 {
        peer.send_to(b"anybody?", relayed).unwrap();
    }
    // Whatever the server does about them, it has done when it has counted them and serves on.
    shown(&server, "drops", |ledger| ledger["dropped"].as_u64() >= Some(1) || ledger["in"].as_u64() >= Some(3));
    probe(&server);
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn case_a72_a_client_that_stops_reading_loses_its_own_messages_only() {
    let server = Server::start(&[
        "--listen",
        "127.0.0.1:0",
        "--workers",
        "1",
        "--allow-own-host",
        "127.0.0.0/8",
        "--http",
        "127.0.0.1:0",
    ]);
    let mut deaf = StreamClient::new(connect(server.tcp[0]));
    let deaf_relayed = deaf.allocate().unwrap();
    let talker = peer();
    assert_eq!(deaf.bind_channel(CHANNEL, talker.local_addr().unwrap()), 0);
    let mut neighbours = [StreamClient::new(connect(server.tcp[0])), StreamClient::new(connect(server.tcp[0]))];
    let partner = peer();
    let relayed = neighbours.each_mut().map(|client| {
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(CHANNEL, partner.local_addr().unwrap()), 0);
        relayed
    });
    let payload = [5; 1_200];
    let mut received = [0; 2_048];
    let started = Instant::now();
    let mut rounds = 0_u64;
    loop {
        for _ in 0..64 {
            talker.send_to(&payload, deaf_relayed).unwrap();
        }
        for (client, relayed) in neighbours.iter_mut().zip(relayed) {
            client.send_channel(CHANNEL, b"there");
            let (length, from) = partner.recv_from(&mut received).unwrap();
            assert_eq!((&received[..length], from), (&b"there"[..], relayed));
            partner.send_to(b"back", relayed).unwrap();
            assert_eq!(client.receive_channel(), (CHANNEL, b"back".to_vec()));
        }
        rounds += 1;
        if rounds.is_multiple_of(100) {
            let ledger = shown(&server, "drops", |_| true);
            if count(&ledger["drops"], "queue_full") > 5_000 {
                break;
            }
        }
        assert!(started.elapsed() < 4 * PATIENCE, "the queue has no end");
    }
    let ledger = shown(&server, "drops", |ledger| ledger["closes"] == true);
    assert!(count(&ledger["drops"], "queue_full") > 5_000, "{ledger}");
    // What the queue took arrives, whole, when it reads again.
    for _ in 0..50 {
        assert_eq!(deaf.receive_channel(), (CHANNEL, payload.to_vec()));
    }
    let farewell = server.stop();
    assert!(farewell.line.contains("queue_full"), "{}", farewell.line);
}
