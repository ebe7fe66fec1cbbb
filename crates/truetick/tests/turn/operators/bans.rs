//! Orders over the API to a running server: users by their traffic, bans, drains.

use std::io::{ErrorKind, Read as _};
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use testkit::turn_client::Client;

use super::operated::{Operated, TOKEN, peer, relays, wait};
use crate::stream_client::connect_from;

const BANS: &str = "/api/v1/turn/bans";
const DRAIN: &str = "/api/v1/turn/drain";
const USERS: &str = "/api/v1/turn/users";

fn client_from(server: &Operated, host: [u8; 4], user: &str) -> Client {
    Client::on(Ipv4Addr::from(host).into(), server.listen, user, &format!("{user}-secret"))
}

fn metric(server: &Operated, line: &str) -> bool {
    server.ask("GET", "/metrics", None).body.contains(&format!("\n{line}\n"))
}

#[test]
fn orders_want_the_token() {
    let server = Operated::start("", &[]);
    for (method, path) in [
        ("GET", USERS),
        ("GET", BANS),
        ("PUT", "/api/v1/turn/bans/192.0.2.1"),
        ("DELETE", "/api/v1/turn/bans/192.0.2.1"),
        ("POST", DRAIN),
        ("DELETE", DRAIN),
    ] {
        for token in [None, Some("wrong"), Some(""), Some(&TOKEN[1..])] {
            assert_eq!(server.ask(method, path, token).status, 401, "{method} {path} {token:?}");
        }
        assert_ne!(server.ask(method, path, Some(TOKEN)).status, 401, "{method} {path}");
    }
}

#[test]
fn users_are_listed_by_what_they_have_relayed() {
    let server = Operated::start("allow_own_host = [\"127.0.0.0/8\"]", &[]);
    let near = peer();
    let mut clients: Vec<_> = ["ann", "bob", "ann", "ann"].map(|user| server.client(user)).into();
    for client in &mut clients {
        client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    }
    relays(&mut clients[1], 0x4000, &near, b"most of all");
    relays(&mut clients[2], 0x4000, &near, b"less");
    let row = |user: &str, allocations: u64, bytes: u64| {
        json!({
            "realm": "truetick", "user": user, "allocations": allocations, "permissions": allocations, "channels": allocations,
            "to_peers_bytes": bytes, "to_client_bytes": 0,
        })
    };
    let mut listed = server.ask("GET", USERS, Some(TOKEN)).json();
    assert_eq!(listed.as_object_mut().unwrap().remove("ended").unwrap()["users"], 0, "no allocation has ended");
    assert_eq!(listed, json!({ "realm": "truetick", "users": 2, "list": [row("bob", 1, 11), row("ann", 3, 4)] }));
    let listed = server.ask("GET", &format!("{USERS}?limit=1"), Some(TOKEN)).json();
    assert_eq!((&listed["users"], listed["list"].as_array().map(Vec::len)), (&2.into(), Some(1)));
    assert_eq!(server.ask("GET", &format!("{USERS}?limits=1"), Some(TOKEN)).status, 400);

    let (mut of_ann, mut next) = (0, Some(String::new()));
    while let Some(after) = next {
        let path = format!("/api/v1/turn/allocations?user=ann&limit=2{after}");
        let page = server.ask("GET", &path, Some(TOKEN)).json();
        let rows = page["list"].as_array().unwrap();
        assert!(rows.len() <= 2 && rows.iter().all(|row| row["user"] == "ann"), "{page}");
        of_ann += rows.len();
        next = page["next"].as_str().map(|next| format!("&after={next}"));
    }
    assert_eq!(of_ann, 3);
    let others = server.ask("GET", "/api/v1/turn/allocations?user=an", Some(TOKEN)).json();
    assert_eq!(others["list"], json!([]));
}

#[test]
fn a_banned_source_loses_what_it_has_and_gets_nothing_until_the_ban_ends() {
    let server = Operated::start("allow_own_host = [\"127.0.0.0/8\"]", &[]);
    let near = peer();
    let mut banned: Vec<_> = (0..8).map(|_| client_from(&server, [127, 0, 5, 1], "ann")).collect();
    let mut other = client_from(&server, [127, 0, 6, 1], "ann");
    for client in banned.iter_mut().chain([&mut other]) {
        client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    }
    let path = format!("{BANS}/127.0.5.0/24");
    let answer = server.ask("PUT", &path, Some(TOKEN));
    assert_eq!((answer.status, answer.json()), (200, json!({ "source": "127.0.5.0/24", "seconds": 3600, "ended": 8 })));
    server.wait_log("source banned over the API", 1);
    banned[0].send_channel(0x4000, b"lost");
    relays(&mut other, 0x4000, &near, b"goes on");
    let live = || server.ask("GET", "/api/v1/turn/allocations", None).json()["allocations"]["live"].clone();
    wait("their end", || live() == 1);
    let mut connection = connect_from([127, 0, 5, 9], server.tcp.unwrap());
    let closed = connection.read(&mut [0; 1]).map_err(|error| error.kind());
    assert!(matches!(closed, Ok(0) | Err(ErrorKind::ConnectionReset)), "{closed:?}");
    wait("the refusal by name", || metric(&server, "truetick_turn_connections_refused_total{bound=\"banned\"} 1"));

    let left = |listed: &Value| listed["bans"][0]["seconds_left"].as_u64().unwrap();
    let listed = server.ask("GET", BANS, Some(TOKEN)).json();
    assert_eq!(listed["bans"][0]["source"], "127.0.5.0/24");
    assert!((3_500..=3_600).contains(&left(&listed)), "{listed}");
    assert_eq!(
        server.ask("DELETE", &format!("{BANS}/127.0.5.0/23"), Some(TOKEN)).status,
        400,
        "bits behind the prefix"
    );
    assert_eq!(server.ask("DELETE", &format!("{BANS}/127.0.5.1"), Some(TOKEN)).status, 404, "not this range");
    assert_eq!(server.ask("DELETE", &path, Some(TOKEN)).status, 200);
    assert_eq!(server.ask("DELETE", &path, Some(TOKEN)).status, 404);
    assert_eq!(server.ask("GET", BANS, Some(TOKEN)).json(), json!({ "bans": [] }));
    client_from(&server, [127, 0, 5, 1], "ann").allocate().unwrap();
}

#[test]
fn a_ban_needs_a_range_that_spares_most_and_a_time_that_ends() {
    let server = Operated::start("", &[]);
    for (source, says) in [
        ("0.0.0.0/0", "at least 8 bits"),
        ("2000::/15", "at least 16 bits"),
        ("192.0.2.7/24", "behind the prefix"),
        ("example.org", "no IP address"),
    ] {
        let answer = server.ask("PUT", &format!("{BANS}/{source}"), Some(TOKEN));
        assert!(answer.status == 400 && answer.body.contains(says), "{source}: {}", answer.body);
    }
    for (body, status) in [
        ("{\"seconds\":0}", 400),
        ("{\"seconds\":2592001}", 400),
        ("{\"second\":5}", 400),
        ("5", 400),
        ("{\"seconds\":5}", 200),
    ] {
        let answer = server.ask_with("PUT", &format!("{BANS}/192.0.2.7"), body);
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    assert_eq!(server.ask("GET", BANS, Some(TOKEN)).json()["bans"][0]["source"], "192.0.2.7/32");
}

/// A79: with an alternate the answer is 300 and its address (RFC 8489 sections 10 and 14.15); what lives goes on.
#[test]
fn case_a79_a_drain_over_the_api_sends_clients_to_another_server_and_can_end() {
    const ALTERNATE_SERVER: u16 = 0x8023;
    let server = Operated::start("allow_own_host = [\"127.0.0.0/8\"]", &[]);
    let (mut lives, near) = (server.client("ann"), peer());
    lives.allocate().unwrap();
    assert_eq!(lives.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    for body in ["{\"alternates\":[\"192.0.2.9\"]}", "{\"alternates\":[\"192.0.2.9:1\",\"192.0.2.8:1\"]}"] {
        assert_eq!(server.ask_with("POST", DRAIN, body).status, 400, "{body}");
    }
    assert_eq!(server.ask("GET", "/readyz", None).status, 200);
    let answer = server.ask_with("POST", DRAIN, "{\"alternates\":[\"192.0.2.9:3479\",\"[2001:db8::9]:3478\"]}");
    assert_eq!((answer.status, &answer.json()["draining"]), (200, &true.into()));
    wait("a red light", || server.ask("GET", "/readyz", None).status == 503);
    let mut client = server.client("bob");
    assert_eq!(client.allocate(), Err(300));
    let reply = client.request(0x003, vec![(0x0019, vec![17, 0, 0, 0])]);
    assert_eq!(reply.bytes(ALTERNATE_SERVER), Some(&[0, 1, 13, 151, 192, 0, 2, 9][..]));
    relays(&mut lives, 0x4000, &near, b"goes on");
    assert_eq!(lives.refresh(600), 0);
    wait("the refusals", || metric(&server, "truetick_turn_refused_total{reason=\"redirected\"} 2"));
    assert_eq!(server.ask("POST", DRAIN, Some(TOKEN)).status, 200);
    assert_eq!(server.client("bob").allocate(), Err(403), "without an alternate");
    assert_eq!(server.ask("DELETE", DRAIN, Some(TOKEN)).status, 200);
    server.client("bob").allocate().unwrap();
    wait("a green light", || server.ask("GET", "/readyz", None).status == 200);
}
