//! A reload with other listeners and with the first certificate, while allocations live and connections are open.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use testkit::turn_client::Client;

use super::operated::{Operated, peer, relays, wait};
use crate::certificates::Certificates;
use crate::stream_client::{StreamClient, connect, connect_tls};

/// Relays do not follow `listen`.
const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]\nrelay_ip = [\"127.0.0.1\"]";
/// Workers look once a second for addresses that are not needed any more.
const SEVERAL_LOOKS: Duration = Duration::from_secs(3);
const BINDING: &[u8] = b"\x00\x01\x00\x00\x21\x12\xA4\x42AAAABBBBCCCC";

/// An address whose port was free for UDP and TCP a moment ago, below the ports that the kernel chooses.
fn free(host: &str) -> SocketAddr {
    let is_free = |addr: &SocketAddr| UdpSocket::bind(addr).is_ok() && TcpListener::bind(addr).is_ok();
    // Tests run at the same time: each begins at another port.
    let skipped = std::process::id() as usize % 1_000 + 3 * (host.len() + host.as_bytes()[host.len() - 1] as usize);
    let mut found = None;
    // Another test may have all of these ports as relays for a while.
    wait("a free port", || {
        let addrs = (26_000..29_000).map(|port| SocketAddr::new(host.parse().unwrap(), port));
        found = addrs.skip(skipped).find(is_free);
        found.is_some()
    });
    found.unwrap()
}

fn with_keys(server: &Operated, keys: &str) -> String {
    server.edit(|text| {
        let (before, rest) = text.split_once("# keys\n").unwrap();
        let (_, after) = rest.split_once("# end\n").unwrap();
        format!("{before}# keys\n{keys}\n# end\n{after}")
    });
    server.reload()
}

/// A server on a port of 127.0.0.1, whose keys for listeners change.
fn start(keys: &str) -> Operated {
    let server = Operated::start(&format!("{KEYS}\n# keys\n{keys}\n# end"), &[]);
    server.edit(|text| text.replace("listen = [\"127.0.0.1:0\"]\n", ""));
    server
}

/// What the page shows of the listeners: it gets snapshots.
fn listens(server: &Operated) -> Vec<String> {
    let mut stream = TcpStream::connect(server.http).unwrap();
    stream.write_all(format!("GET /api/v1/live HTTP/1.1\r\nHost: {}\r\n\r\n", server.http).as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let snapshot = lines.find_map(|line| line.strip_prefix("data:").map(str::to_owned)).unwrap();
    let snapshot: serde_json::Value = serde_json::from_str(&snapshot).unwrap();
    let names = snapshot["turn"]["listens"].as_array().unwrap_or_else(|| panic!("{snapshot}"));
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Datagrams that were dropped for this reason.
fn dropped(server: &Operated, reason: &str) -> u64 {
    let drops = server.ask("GET", "/api/v1/turn/drops", None).json();
    let counts = drops["drops"].as_array().unwrap_or_else(|| panic!("{drops}"));
    counts.iter().find(|count| count["name"] == reason).map_or(0, |count| count["count"].as_u64().unwrap())
}

/// Every datagram is accounted for, and this many were dropped. Workers publish their counts one after the other.
fn check_drops(server: &Operated, count: u64) {
    let drops = || server.ask("GET", "/api/v1/turn/drops", None).json();
    wait("the sum", || drops()["closes"] == true);
    assert_eq!(drops()["dropped"], count, "{}", drops());
}

fn at(addr: SocketAddr) -> Client {
    Client::new(addr, "ann", "ann-secret")
}

#[test]
fn udp_addresses_come_and_go_and_a_call_on_one_that_has_gone_goes_on() {
    let server = start("");
    // On both workers, or the kernel does not spread them.
    let (mut calls, near): (Vec<Client>, _) = ((0..16).map(|_| server.client("ann")).collect(), peer());
    for call in &mut calls {
        call.allocate().unwrap();
        assert_eq!(call.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    }
    let next = free("127.0.0.3");
    let reported = with_keys(&server, &format!("listen = [\"{next}\"]\nno_tcp = true"));
    assert!(reported.contains("configuration reloaded"), "{reported}");
    wait("the new address on the page", || listens(&server) == [format!("udp {next}")]);
    let mut others: Vec<Client> = (0..8).map(|_| at(next)).collect();
    assert!(others.iter_mut().all(|client| client.allocate().is_ok()));

    // A newcomer gets no answer at the former address, and the calls all of them.
    let newcomer = UdpSocket::bind("127.0.0.1:0").unwrap();
    newcomer.send_to(BINDING, server.listen).unwrap();
    wait("the newcomer is counted", || dropped(&server, "listener_closed") == 1);
    let started = Instant::now();
    for call in (0..calls.len()).cycle().take_while(|_| started.elapsed() < SEVERAL_LOOKS) {
        relays(&mut calls[call], 0x4000, &near, format!("{call}").as_bytes());
    }
    assert!(calls.iter_mut().all(|call| call.refresh(600) == 0 && call.permit("127.0.0.9:1".parse().unwrap()) == 0));
    assert!(UdpSocket::bind(server.listen).is_err(), "the calls have their sockets");
    assert!(calls.iter_mut().all(|call| call.refresh(0) == 0));
    wait("the end of the socket", || UdpSocket::bind(server.listen).is_ok());

    // And back, with everything that waits in the sockets.
    let reported = with_keys(&server, &format!("listen = [\"{}\"]\nno_tcp = true", server.listen));
    assert!(reported.contains("configuration reloaded"), "{reported}");
    assert!(server.client("ann").allocate().is_ok());
    assert!(others.iter_mut().all(|client| client.refresh(0) == 0));
    wait("the end of the other sockets", || UdpSocket::bind(next).is_ok());
    check_drops(&server, 1);
}

#[test]
fn an_address_that_comes_back_while_calls_use_it_serves_everybody() {
    let server = start("");
    let mut calls: Vec<Client> = (0..8).map(|_| server.client("ann")).collect();
    assert!(calls.iter_mut().all(|call| call.allocate().is_ok()));
    let next = free("127.0.0.9");
    for _ in 0..5 {
        for listen in [next, server.listen] {
            let reported = with_keys(&server, &format!("listen = [\"{listen}\"]\nno_tcp = true"));
            assert!(reported.contains("configuration reloaded"), "{reported}");
            for _ in 0..8 {
                let mut client = at(listen);
                assert!(client.allocate().is_ok() && client.refresh(0) == 0, "{listen}");
            }
            assert!(calls.iter_mut().all(|call| call.refresh(600) == 0), "{listen}");
        }
    }
    check_drops(&server, 0);
}

#[test]
fn a_call_moves_between_the_wildcard_and_its_own_address() {
    let server = start("");
    let mut call = server.client("ann");
    call.allocate().unwrap();
    let port = server.listen.port();
    for ip in ["0.0.0.0", "127.0.0.1", "0.0.0.0"] {
        let reported = with_keys(&server, &format!("listen = [\"{ip}:{port}\"]"));
        assert!(reported.contains("configuration reloaded"), "{ip}: {reported}");
        assert_eq!(call.refresh(600), 0, "{ip}");
        assert!((0..8).all(|_| server.client("ann").allocate().is_ok()), "{ip}");
        let mut tcp = StreamClient::of_user(connect(server.listen), "ann", "ann-secret");
        assert!(tcp.allocate().is_ok(), "{ip}");
    }
}

#[test]
fn an_address_that_cannot_be_bound_is_named_and_nothing_changes() {
    let server = start("");
    let (taken, next) = (UdpSocket::bind("127.0.0.4:0").unwrap().local_addr().unwrap(), free("127.0.0.5"));
    for (holder, transport) in [(UdpSocket::bind(taken).ok(), "udp"), (None, "tcp")] {
        let _listener = holder.is_none().then(|| TcpListener::bind(taken).unwrap());
        server.rewrite("users", "eve:eve-secret\n");
        let reported = with_keys(&server, &format!("listen = [\"{next}\", \"{taken}\"]"));
        assert!(
            reported.contains("not reloaded") && reported.contains(&format!("cannot listen on {transport} {taken}")),
            "{reported}"
        );
        assert_eq!(listens(&server), [format!("udp {}", server.listen), format!("tcp {}", server.tcp.unwrap())]);
        drop((UdpSocket::bind(next).unwrap(), TcpListener::bind(next).unwrap()));
        assert_eq!(server.client("eve").log_in(), Err(401));
        assert!(server.client("ann").allocate().is_ok());
    }
}

#[test]
fn connections_stay_open_when_their_listener_goes_and_certificates_come_and_go() {
    let server = start("");
    let former = server.tcp.unwrap();
    let mut open = StreamClient::of_user(connect(former), "ann", "ann-secret");
    open.allocate().unwrap();
    let listen = format!("listen = [\"{}\"]", server.listen);
    let reload = |keys: &str| {
        let reported = with_keys(&server, &format!("{listen}\n{keys}"));
        assert!(reported.contains("configuration reloaded"), "{keys}: {reported}");
    };
    reload("no_tcp = true");
    wait("no more connections", || TcpStream::connect(former).is_err());
    assert_eq!(open.refresh(600), 0);

    let tcp = free("127.0.0.1");
    reload(&format!("listen_tcp = [\"{tcp}\"]"));
    assert!(StreamClient::of_user(connect(tcp), "ann", "ann-secret").allocate().is_ok());

    let certificates = Certificates::new();
    let client = certificates.client(rustls::ALL_VERSIONS, &[]);
    assert!(connect_tls(tcp, &client).is_err(), "without a certificate");
    let (cert, key) = (certificates.cert().display().to_string(), certificates.key().display().to_string());
    let tls = free("127.0.0.1");
    let with_tls = format!("listen_tcp = [\"{tcp}\"]\nlisten_tls = [\"{tls}\"]\ncert = \"{cert}\"\nkey = \"{key}\"");
    reload(&with_tls);
    let mut secured: Vec<_> =
        [tcp, tls].map(|addr| StreamClient::of_user(connect_tls(addr, &client).unwrap(), "ann", "ann-secret")).into();
    assert!(secured.iter_mut().all(|client| client.allocate().is_ok()));
    wait("TLS on the page", || listens(&server).ends_with(&[format!("tls {tcp}"), format!("tls {tls}")]));

    reload(&format!("listen_tcp = [\"{tcp}\"]"));
    wait("no more TLS", || connect_tls(tcp, &client).is_err() && TcpStream::connect(tls).is_err());
    assert!(secured.iter_mut().all(|client| client.refresh(600) == 0));
    assert_eq!(open.refresh(600), 0);
    reload(&with_tls);
    assert!(connect_tls(tls, &client).is_ok());
}

#[test]
fn a_realm_of_a_listener_moves_with_it() {
    let server = start("");
    let next = free("127.0.0.8");
    let realm = format!("\n[[turn.realms]]\nname = \"b.example\"\nlisten = [\"{next}\"]\n[http]");
    server.edit(|text| text.replace("[http]", &realm));
    let reported = with_keys(&server, &format!("listen = [\"{}\", \"{next}\"]", server.listen));
    assert!(reported.contains("configuration reloaded"), "{reported}");
    assert_eq!(at(next).challenge(), "b.example");
    assert_eq!(server.client("ann").challenge(), "truetick");
}
