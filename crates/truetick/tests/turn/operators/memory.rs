//! A bound of resident memory: clients that take allocations get 508, and a call goes on.

use std::net::UdpSocket;

use testkit::turn_client::Client;

use super::operated::{Operated, peer, relays, wait};

/// Allocations that are tried with the bound and made without it.
const MANY: usize = 4_000;
/// Allocations before memory is measured.
const FIRST: usize = 500;
/// Memory that clients may take.
const ROOM: u64 = 1 << 20;
const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]\nrelay_ports = \"20000-29999\"\nno_tcp = true\n";
const QUOTAS: &str = "\n[turn.quotas]\nuser_share_percent = 100\nuser_allocations_per_second = 0";

fn resident_bytes(server: &Operated) -> u64 {
    testkit::memory_bytes(server.id(), "VmRSS")
}

/// A server in use, and the client and the peer of a call. What the first allocations touch is resident.
fn with_a_call() -> (Operated, Client, UdpSocket) {
    let server = Operated::start(&format!("{KEYS}{QUOTAS}"), &[]);
    let (mut client, near) = (server.client("bob"), peer());
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    relays(&mut client, 0x4000, &near, b"before");
    assert!(!take(&server, FIRST).1);
    (server, client, near)
}

/// Returns the clients with an allocation, and whether one of `most` got 508.
fn take(server: &Operated, most: usize) -> (Vec<Client>, bool) {
    let mut clients = Vec::new();
    for _ in 0..most {
        let mut client = server.client("ann");
        match client.allocate() {
            Ok(_) => clients.push(client),
            Err(code) => {
                assert_eq!(code, 508);
                return (clients, true);
            }
        }
    }
    (clients, false)
}

#[test]
fn allocations_stop_at_the_bound_of_memory_and_a_call_goes_on() {
    let (server, _call, _near) = with_a_call();
    let before = resident_bytes(&server);
    let (clients, is_full) = take(&server, MANY);
    let after = resident_bytes(&server);
    println!("without a bound: {} allocations, {before} to {after} bytes", clients.len());
    assert!(!is_full && clients.len() == MANY && after > before + 2 * ROOM, "clients take more than the bound");
    drop((server, clients));

    let (server, mut call, near) = with_a_call();
    let bound_by = |from: &str, to: &str| {
        server.edit(|text| text.replace(from, to));
        assert!(server.reload().contains("configuration reloaded"), "{to}");
    };
    // The first reload takes memory that the second one uses again.
    bound_by("no_tcp = true", "no_tcp = true\nmemory_max = \"8G\"");
    let max = resident_bytes(&server) + ROOM;
    bound_by("8G", &max.to_string());
    let (clients, is_full) = take(&server, MANY);
    let resident = resident_bytes(&server);
    println!("with a bound of {max}: {} allocations, {resident} bytes", clients.len());
    assert!(is_full && !clients.is_empty());
    assert!(resident < max + ROOM / 2, "{resident} bytes");
    server.wait_log("memory is full: new allocations are rejected", 1);
    for number in 0..100 {
        relays(&mut call, 0x4000, &near, format!("{number}").as_bytes());
    }
    assert_eq!(call.refresh(600), 0);
    assert_eq!(server.client("bob").allocate(), Err(508), "another user's too");
    assert_eq!(server.ask("GET", "/readyz", None).status, 503);
    let counted = || {
        let metrics = server.ask("GET", "/metrics", None).body;
        metrics.contains("\ntruetick_turn_refused_total{reason=\"memory\"} 2\n")
            && metrics.contains("\ntruetick_turn_memory_full 1\n")
            && metrics.contains(&format!("\ntruetick_turn_memory_max_bytes {max}\n"))
    };
    wait("two rejections", counted);
    assert_eq!(server.ask("GET", "/healthz", None).status, 200);
}
