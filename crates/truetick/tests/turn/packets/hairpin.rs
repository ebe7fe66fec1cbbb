//! Clients whose peers are each other's relayed addresses.

use std::net::SocketAddr;

use super::{CHANNEL, wait_for_drops};
use crate::server::{PASSWORD, Server, USER};
use testkit::turn_client::Client;

/// A client with an allocation, and its relayed address.
fn allocated(server: SocketAddr) -> (Client, SocketAddr) {
    let mut client = Client::new(server, USER, PASSWORD);
    let relayed = client.allocate().unwrap();
    (client, relayed)
}

/// Every ordered pair of `count` clients exchanges payloads of several sizes, all at once where it can.
fn everybody_with_everybody(workers: &str, listen: &str, count: u16) {
    let server = Server::start(&["--listen", listen, "--workers", workers]);
    let mut clients: Vec<_> = (0..count).map(|_| allocated(server.listen[0])).collect();
    let relayed: Vec<_> = clients.iter().map(|(_, relayed)| *relayed).collect();
    for (client, own) in &mut clients {
        for (number, peer) in (0u16..).zip(&relayed).filter(|(_, peer)| *peer != own) {
            assert_eq!(client.bind_channel(CHANNEL + number, *peer), 0, "its peer is a relayed address");
        }
    }
    let sizes = [0, 1, 160, 1_200, 1_473, 9_000, 60_000];
    let mut hops = 0;
    for size in sizes {
        for source in 0..count {
            for target in (0..count).filter(|target| *target != source) {
                let payload = vec![source as u8 ^ target as u8; size];
                clients[usize::from(source)].0.send_channel(CHANNEL + target, &payload);
                let (number, received) = clients[usize::from(target)].0.receive_channel();
                assert!(number == CHANNEL + source && received == payload, "{size} bytes from {source} to {target}");
                hops += 1;
            }
        }
    }
    let farewell = server.stop();
    // Every payload comes in twice and goes out twice: once between the two relayed addresses.
    let sent: u64 = clients.iter().map(|(client, _)| client.sent).sum();
    assert_eq!((farewell.received, farewell.out, farewell.dropped), (sent + hops, sent + hops, 0), "{}", farewell.line);
}

#[test]
fn case_a75_relayed_clients_are_each_others_peers_on_one_worker() {
    everybody_with_everybody("1", "127.0.0.1:0", 4);
    everybody_with_everybody("1", "[::1]:0", 2);
}

#[test]
fn case_a75_relayed_clients_are_each_others_peers_on_four_workers() {
    // With 16 clients nearly all pairs of workers meet.
    everybody_with_everybody("4", "127.0.0.1:0", 16);
}

#[test]
fn case_a75_one_in_is_one_out_for_each_hop_and_permissions_are_asked() {
    for workers in ["1", "4"] {
        let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", workers, "--http", "127.0.0.1:0"]);
        let ((mut a, relayed_a), (mut b, relayed_b)) = (allocated(server.listen[0]), allocated(server.listen[0]));
        assert_eq!((a.bind_channel(CHANNEL, relayed_b), b.bind_channel(CHANNEL, relayed_a)), (0, 0));
        for number in 0..50u8 {
            a.send_channel(CHANNEL, &[number]);
        }
        for number in 0..50u8 {
            assert_eq!(b.receive_channel(), (CHANNEL, vec![number]), "in order, each once");
        }
        // No answer of b's went to a, nor anything twice.
        assert!(a.is_silent() && b.is_silent());
        let (mut stranger, _) = allocated(server.listen[0]);
        let (mut c, relayed_c) = allocated(server.listen[0]);
        assert_eq!(stranger.bind_channel(CHANNEL, relayed_c), 0);
        for _ in 0..20 {
            stranger.send_channel(CHANNEL, b"not permitted by c");
        }
        wait_for_drops(server.http.unwrap(), "no_permission", 20);
        assert_eq!(c.binding(), c.socket.local_addr().unwrap(), "the next that c hears is the answer to itself");
        let farewell = server.stop();
        let sent = a.sent + b.sent + c.sent + stranger.sent;
        assert_eq!((farewell.received, farewell.dropped), (sent + 70, 20), "{}", farewell.line);
    }
}

#[test]
fn case_a75_a_user_may_forbid_it() {
    let server = Server::start(&[
        "--listen",
        "127.0.0.1:0",
        "--workers",
        "1",
        "--no-hairpin",
        "--allow-own-host",
        "127.0.0.0/8",
    ]);
    let ((mut a, relayed_a), (mut b, relayed_b)) = (allocated(server.listen[0]), allocated(server.listen[0]));
    assert_eq!((a.bind_channel(CHANNEL, relayed_b), b.bind_channel(CHANNEL, relayed_a)), (403, 403));
    assert_eq!((a.permit(relayed_b), b.permit(relayed_a)), (0, 0), "the address is opened, with every other port");
    a.send_indication(relayed_b, b"x");
    assert_eq!(a.binding(), a.socket.local_addr().unwrap());
    assert_eq!(b.binding(), b.socket.local_addr().unwrap(), "the next that b hears is the answer to itself");
    assert!(server.stop().line.contains("peer_denied 1"));
}
