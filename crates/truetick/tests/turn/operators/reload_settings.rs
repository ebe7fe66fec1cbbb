//! A reload with other settings of the workers: DSCP values, busy polling, the maximum of allocations.

use std::io::Read as _;
use std::time::{Duration, Instant};

use testkit::turn_client::Client;
use tt_net::{Inbox, Poller, UdpSocket};

use super::operated::{Operated, PATIENCE, wait};
use crate::stream_client::{StreamClient, connect};

const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]";
/// AF21, which WebRTC uses, with ECT(1).
const CLASS: u8 = 18 << 2 | 1;
/// CPU time that a server with one datagram a second does not use in that second.
const CPU_TICKS: u64 = 20;
/// How long a worker polls after a datagram.
const POLLED: Duration = Duration::from_secs(1);

/// Returns the traffic class at a peer of what the client sends with [`CLASS`].
fn relayed_class(client: &mut Client, channel: u16, peer: &UdpSocket, poller: &mut Poller) -> u8 {
    client.send_channel(channel, b"marked");
    let mut inbox = Inbox::new(1, 64);
    let started = Instant::now();
    while inbox.is_empty() {
        assert!(started.elapsed() < PATIENCE, "nothing at the peer");
        poller.wait(Some(Duration::from_secs(1))).unwrap();
        inbox.receive(peer, 0, 1).unwrap();
    }
    inbox.datagram(0).traffic_class
}

#[test]
fn dscp_values_follow_a_reload_for_allocations_that_live() {
    let server = Operated::start(KEYS, &[]);
    let (mut client, peer) = (server.client("ann"), UdpSocket::bind("127.0.0.2:0".parse().unwrap()).unwrap());
    let mut poller = Poller::new(1).unwrap();
    poller.add(&peer, 0).unwrap();
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr()), 0);
    socket2::SockRef::from(&client.socket).set_tos_v4(CLASS.into()).unwrap();
    assert_eq!(relayed_class(&mut client, 0x4000, &peer, &mut poller), CLASS);
    let mut line = String::from("workers = 2\n");
    for (values, class) in [("0,46", 1), ("all", CLASS), ("none", 1), ("18", CLASS)] {
        let next = format!("workers = 2\ndscp_allow = \"{values}\"\n");
        server.edit(|text| text.replace(&line, &next));
        line = next;
        assert!(server.reload().contains("configuration reloaded"), "{values}");
        // A worker applies it between two rounds.
        wait(values, || relayed_class(&mut client, 0x4000, &peer, &mut poller) == class);
    }
}

/// CPU time of the server in clock ticks.
fn cpu_ticks(server: &Operated) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn busy_polling_begins_with_a_reload() {
    let server = Operated::start(KEYS, &[]);
    server.edit(|text| text.replace("workers = 2\n", "workers = 2\nbusy_poll_us = 1000000\n"));
    assert!(server.reload().contains("configuration reloaded"));
    let mut client = server.client("ann");
    // One datagram begins a second of polling. A worker that was not scheduled in it, or that has not applied the
    // reload yet, gets another; without polling no second takes that much time.
    wait("a worker that polls", || {
        client.binding_response();
        let before = cpu_ticks(&server);
        testkit::wait_until(POLLED, || cpu_ticks(&server) >= before + CPU_TICKS)
    });
}

/// Allocates with a new client, and returns it.
fn allocate(server: &Operated) -> Result<Client, u16> {
    let mut client = server.client("ann");
    client.allocate().map(|_| client)
}

#[test]
fn the_maximum_of_allocations_rises_and_falls_and_none_is_lost() {
    const QUOTAS: &str = "\nallocations_max = 4\nquotas = { user_share_percent = 100 }";
    let server = Operated::start(&(KEYS.to_owned() + QUOTAS), &[]);
    let status = || server.ask("GET", "/api/v1/turn/allocations", None).json()["allocations"].clone();
    let set = |from: u32, to: u32| {
        server.edit(|text| text.replace(&format!("allocations_max = {from}"), &format!("allocations_max = {to}")));
        server.reload()
    };
    let mut live: Vec<_> = (0..4).map(|_| allocate(&server).unwrap()).collect();
    assert!(allocate(&server).is_err());
    assert!(set(4, 16).contains("configuration reloaded"), "{}", server.log());
    live.extend((0..12).map(|_| allocate(&server).unwrap()));
    assert!(allocate(&server).is_err());
    assert_eq!(status()["capacity"], 16);
    let refused = set(16, 17);
    assert!(refused.contains("not reloaded") && refused.contains("turn.allocations_max above 16"), "{refused}");
    assert_eq!(status()["capacity"], 16);
    assert!(set(17, 2).contains("configuration reloaded"));
    assert!(live.iter_mut().all(|client| client.refresh(600) == 0), "more than the new maximum live on");
    assert!(allocate(&server).is_err());
    assert!(live.drain(1..).all(|mut client| client.refresh(0) == 0));
    // The ports of ended allocations rest.
    wait("a free port", || {
        live.extend(allocate(&server));
        live.len() == 2
    });
    assert!(allocate(&server).is_err());
    wait("the count is published", || status()["live"] == 2);
}

#[test]
fn limits_of_connections_follow_a_reload_and_open_ones_stay() {
    let server = Operated::start(&format!("{KEYS}\nno_tcp = true"), &[]);
    let set = |from: &str, to: &str| {
        server.edit(|text| text.replace(from, to));
        let reported = server.reload();
        assert!(reported.contains("configuration reloaded"), "{to}: {reported}");
    };
    // The first TCP address since the start.
    set("no_tcp = true", "streams = { connections_per_source = 2 }");
    let mut open: Vec<_> = (0..2).map(|_| StreamClient::of_user(connect(server.listen), "ann", "ann-secret")).collect();
    assert!(open.iter_mut().all(|client| client.allocate().is_ok()));
    let is_rejected = || connect(server.listen).read(&mut [0; 1]).is_ok_and(|length| length == 0);
    assert!(is_rejected());
    set("connections_per_source = 2", "connections_per_source = 3");
    assert!(StreamClient::of_user(connect(server.listen), "ann", "ann-secret").allocate().is_ok());
    set("connections_per_source = 3", "connections_max = 1");
    assert!(open.iter_mut().all(|client| client.refresh(600) == 0));
    assert!(is_rejected());
}

#[test]
fn a_bound_of_memory_comes_and_goes() {
    let server = Operated::start(KEYS, &[]);
    let (mut call, mut line) = (server.client("ann"), String::from("workers = 2\n"));
    call.allocate().unwrap();
    for (bound, result) in [("1M", Err(508)), ("off", Ok(())), ("1M", Err(508)), ("8G", Ok(()))] {
        let next = format!("workers = 2\nmemory_max = \"{bound}\"\n");
        server.edit(|text| text.replace(&line, &next));
        line = next;
        assert!(server.reload().contains("configuration reloaded"), "{bound}");
        wait(bound, || allocate(&server).map(drop) == result);
        assert_eq!(call.refresh(600), 0);
    }
}
