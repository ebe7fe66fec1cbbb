//! SIGHUP: users, secrets and peer rules, without a drop, all of it or nothing.

use super::operated::{Operated, peer, relays, wait};

const KEYS: &str = "allow_peer = [\"127.0.0.0/8\"]";

#[test]
fn users_come_and_go_while_allocations_relay_on() {
    let server = Operated::start(KEYS, &[]);
    let (mut client, peer) = (server.client("ann"), peer());
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    assert_eq!(server.client("eve").allocate(), Err(401));
    server.rewrite("users", "eve:eve-secret\nann:ann-secret\n");
    assert!(server.reload().contains("configuration reloaded"), "{}", server.log());
    // The workers take it between two rounds.
    wait("eve is let in", || server.client("eve").allocate().is_ok());
    wait("bob is out", || server.client("bob").allocate() == Err(401));
    relays(&mut client, 0x4000, &peer, b"as before");
    assert_eq!(client.refresh(600), 0);
    // Who is gone keeps the allocation, and makes no other.
    server.rewrite("users", "eve:eve-secret\n");
    server.reload();
    wait("ann is out", || server.client("ann").allocate() == Err(401));
    relays(&mut client, 0x4000, &peer, b"and on");
    assert_eq!(client.refresh(600), 0);
}

#[test]
fn kicked_users_lose_their_allocations_at_once() {
    let server = Operated::start(&format!("{KEYS}\nkick_removed_users = true"), &[]);
    let (mut ann, mut bob) = (server.client("ann"), server.client("bob"));
    ann.allocate().unwrap();
    bob.allocate().unwrap();
    server.rewrite("users", "bob:bob-secret\n");
    server.reload();
    wait("ann is out", || server.client("ann").allocate() == Err(401));
    wait("ann's allocation has ended", || ann.refresh(600) == 401);
    assert_eq!(bob.refresh(600), 0);
}

#[test]
fn a_peer_that_new_rules_deny_is_cut_off() {
    let server = Operated::start(KEYS, &[]);
    let (mut client, near) = (server.client("ann"), peer());
    let relayed = client.allocate().unwrap();
    let near_addr = near.local_addr().unwrap();
    assert_eq!(client.bind_channel(0x4000, near_addr), 0);
    relays(&mut client, 0x4000, &near, b"allowed");
    server.edit(|text| text.replace("[\"127.0.0.0/8\"]", "[]"));
    server.reload();
    wait("the peer is denied", || client.permit(near_addr) == 403);
    // Had one of these gone through, it would be there before the answer to the request behind it is here.
    client.send_channel(0x4000, b"denied");
    near.send_to(b"denied too", relayed).unwrap();
    assert_eq!(client.refresh(600), 0);
    near.set_nonblocking(true).unwrap();
    assert_eq!(near.recv_from(&mut [0; 64]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let counted = "\ntruetick_turn_peers_denied_total{rule=\"deny 127.0.0.0/8 (built-in)\"} ";
    wait("the rule's count", || server.ask("GET", "/metrics", None).body.contains(counted));
    server.edit(|text| text.replace("allow_peer = []", "allow_peer = [\"127.0.0.0/8\"]"));
    server.reload();
    wait("the peer is allowed again", || client.permit(near_addr) == 0);
}

#[test]
fn a_fault_in_any_file_keeps_what_is_in_force_and_is_one_record() {
    let server = Operated::start(KEYS, &[]);
    server.rewrite("users", "eve:eve-secret\nbroken\n");
    let told = server.reload();
    assert!(told.contains("not reloaded") && told.contains("line 2: a user must be NAME:PASSWORD"), "{told}");
    assert!(server.client("ann").allocate().is_ok());
    assert_eq!(server.client("eve").allocate(), Err(401));
    server.rewrite("users", "eve:eve-secret\n");
    server.edit(|text| text.replace("workers = 2", "workers = 2\nno_such_key = 1"));
    let told = server.reload();
    assert!(told.contains("not reloaded") && told.contains("line 5: unknown field `no_such_key`"), "{told}");
    assert_eq!(server.client("eve").allocate(), Err(401));
    assert!(!server.log().contains("-secret"), "{}", server.log());
}

#[test]
fn what_wants_a_restart_is_named_and_the_rest_is_in_force() {
    let server = Operated::start(KEYS, &[]);
    server.rewrite("users", "eve:eve-secret\n");
    server.edit(|text| {
        text.replace("workers = 2", "workers = 3").replace("listen = [\"127.0.0.1:0\"]", "listen = [\"127.0.0.2:0\"]")
    });
    let told = server.reload();
    assert!(told.contains("need a restart") && told.contains("turn.listen turn.workers"), "{told}");
    wait("eve is let in", || server.client("eve").allocate().is_ok());
}
