//! Traffic of ended allocations, by realm and user: `/api/v1/turn/users` and `/metrics`.

use serde_json::{Value, json};
use testkit::turn_client::Client;

use super::operated::{Operated, TOKEN, peer, relays, wait};

const KEYS: &str = "allow_own_host = [\"127.0.0.2/32\"]\n[[turn.realms]]\nname = \"b.example\"\norigins = \
                    [\"https://b.example\"]\nuser = [\"ann:ann-secret\"]\n";

/// Sends `payloads` of `len` bytes, and ends the allocation.
fn call(mut client: Client, payloads: u64, len: usize) {
    let peer = peer();
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    for _ in 0..payloads {
        relays(&mut client, 0x4000, &peer, &vec![b'x'; len]);
    }
    assert_eq!(client.refresh(0), 0);
}

fn ended(server: &Operated, limit: usize) -> Value {
    let answer = server.ask("GET", &format!("/api/v1/turn/users?limit={limit}"), Some(TOKEN));
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["ended"].clone()
}

fn traffic(allocations: u64, bytes: u64, packets: u64) -> Value {
    json!({
        "allocations": allocations, "to_peers_bytes": bytes, "to_clients_bytes": 0, "to_peers_packets": packets,
        "to_clients_packets": 0
    })
}

fn user(realm: &str, name: &str, traffic: Value) -> Value {
    let Value::Object(mut row) = traffic else { panic!("{traffic}") };
    row.insert("realm".to_owned(), realm.into());
    row.insert("user".to_owned(), name.into());
    Value::Object(row)
}

#[test]
fn ended_allocations_count_for_their_user_and_realm() {
    let server = Operated::start(KEYS, &[]);
    call(server.client("ann"), 3, 100);
    call(server.client("ann"), 2, 10);
    call(server.client("bob"), 1, 50);
    call(server.client("ann").of_origin("https://b.example"), 7, 200);
    let mut live = server.client("bob");
    live.allocate().unwrap();
    wait("the last end", || ended(&server, 10)["total"]["allocations"] == 4);
    let rows = [
        user("b.example", "ann", traffic(1, 1_400, 7)),
        user("truetick", "ann", traffic(2, 320, 5)),
        user("truetick", "bob", traffic(1, 50, 1)),
    ];
    let (total, others) = (traffic(4, 1_770, 13), traffic(0, 0, 0));
    assert_eq!(ended(&server, 10), json!({ "users": 3, "list": rows, "others": others, "total": total }));
    assert_eq!(ended(&server, 1), json!({ "users": 3, "list": [rows[0]], "others": others, "total": total }));
    let metrics = server.ask("GET", "/metrics", None).body;
    for line in [
        "truetick_turn_ended_relayed_bytes_total{realm=\"b.example\",direction=\"to_peers\"} 1400",
        "truetick_turn_ended_relayed_bytes_total{realm=\"truetick\",direction=\"to_peers\"} 370",
        "truetick_turn_ended_relayed_packets_total{realm=\"truetick\",direction=\"to_peers\"} 6",
        "truetick_turn_ended_allocations_total{realm=\"truetick\"} 3",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    assert_eq!(server.ask("GET", "/api/v1/turn/users", None).status, 401, "names of users need the token");
    assert!(!metrics.contains("bob"), "no name of a user in a label");
}
