//! `/api/v1/turn/allocations` and `/api/v1/turn/users`: the list, one, the end of one, and of all of a user.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha1::Sha1;
use testkit::turn_client::Client;

use super::operated::{Operated, PATIENCE, TOKEN, peer, relays, wait};

const PATH: &str = "/api/v1/turn/allocations";

#[test]
fn the_list_wants_the_token_and_the_counts_do_not() {
    let server = Operated::start("", &[]);
    server.client("ann").allocate().unwrap();
    wait("the count", || server.ask("GET", PATH, None).json()["allocations"]["live"] == 1);
    assert!(server.ask("GET", PATH, None).json().get("list").is_none());
    for (method, path) in [
        ("GET", format!("{PATH}?limit=1")),
        ("GET", format!("{PATH}/127.0.0.1:1")),
        ("DELETE", format!("{PATH}/127.0.0.1:1")),
    ] {
        for token in [None, Some("wrong"), Some(""), Some(&TOKEN[1..])] {
            let answer = server.ask(method, &path, token);
            assert_eq!(answer.status, 401, "{method} {path} {token:?}: {}", answer.body);
        }
        assert_ne!(server.ask(method, &path, Some(TOKEN)).status, 401);
    }
}

#[test]
fn without_a_token_single_allocations_are_not_available() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[turn]\nlisten = [\"127.0.0.1:0\"]\n[http]\nlisten = \"127.0.0.1:0\"\n";
    std::fs::write(folder.path().join("truetick.toml"), text).unwrap();
    let server = Operated::start_in(folder, &[]);
    let answer = server.ask("GET", &format!("{PATH}?limit=5"), Some(TOKEN));
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("--api-token-file"), "{}", answer.body);
    assert_eq!(server.ask("GET", PATH, None).status, 200);
}

#[test]
fn pages_hold_every_allocation_once_with_what_hangs_on_it() {
    let server = Operated::start("allow_own_host = [\"127.0.0.0/8\"]", &[]);
    let near = peer();
    let mut clients: Vec<_> = (0..7).map(|_| server.client("ann")).collect();
    let mut relayed: Vec<String> = clients.iter_mut().map(|client| client.allocate().unwrap().to_string()).collect();
    assert_eq!(clients[3].bind_channel(0x4000, near.local_addr().unwrap()), 0);
    relays(&mut clients[3], 0x4000, &near, b"eleven byte");
    let row = server.ask("GET", &format!("{PATH}/{}", relayed[3]), Some(TOKEN)).json();
    assert_eq!(row["client"], clients[3].socket.local_addr().unwrap().to_string());
    assert_eq!((&row["server"], &row["transport"]), (&server.listen.to_string().into(), &"udp".into()));
    assert_eq!((&row["user"], &row["relayed"]), (&"ann".into(), &relayed[3].clone().into()));
    assert_eq!((&row["permissions"], &row["channels"]), (&1.into(), &1.into()));
    assert_eq!((&row["to_peers_bytes"], &row["to_client_bytes"]), (&11.into(), &0.into()));
    let (age_s, expires_s) = (row["age_s"].as_u64().unwrap(), row["expires_s"].as_u64().unwrap());
    assert!((598..=601).contains(&(age_s + expires_s)), "{row}");

    let (mut listed, mut next) = (Vec::new(), Some(String::new()));
    while let Some(after) = next {
        let after = if after.is_empty() { after } else { format!("&after={after}") };
        let page = server.ask("GET", &format!("{PATH}?limit=2{after}"), Some(TOKEN)).json();
        let rows = page["list"].as_array().unwrap();
        assert!((1..=2).contains(&rows.len()), "{page}");
        listed.extend(rows.iter().map(|row| row["relayed"].as_str().unwrap().to_owned()));
        next = page["next"].as_str().map(str::to_owned);
    }
    relayed.sort();
    listed.sort();
    assert_eq!(listed, relayed);
    assert_eq!(server.ask("GET", &format!("{PATH}?after=x"), Some(TOKEN)).status, 400);
}

#[test]
fn an_allocation_that_is_ended_relays_no_more_and_the_others_do() {
    let server = Operated::start("allow_own_host = [\"127.0.0.0/8\"]", &[]);
    let near = peer();
    let mut clients = [server.client("ann"), server.client("bob")];
    let relayed = clients.each_mut().map(|client| client.allocate().unwrap());
    for client in &mut clients {
        assert_eq!(client.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    }
    let path = format!("{PATH}/{}", relayed[0]);
    assert_eq!(server.ask("DELETE", &path, Some(TOKEN)).status, 200);
    assert_eq!(server.ask("DELETE", &path, Some(TOKEN)).status, 404);
    assert_eq!(server.ask("GET", &path, Some(TOKEN)).status, 404);
    assert_eq!(clients[0].refresh(600), 437);
    relays(&mut clients[1], 0x4000, &near, b"goes on");
    server.wait_log("allocation ended over the API", 1);
    assert!(clients[0].allocate().is_ok(), "the user's quota is free again");
}

#[test]
fn all_allocations_of_a_user_end_at_once_on_all_workers() {
    let server = Operated::start("allow_own_host = [\"127.0.0.0/8\"]\ncdr = \"{folder}/records\"", &[]);
    let near = peer();
    let mut of_ann: Vec<_> = (0..16).map(|_| server.client("ann")).collect();
    let mut bob = server.client("bob");
    for client in of_ann.iter_mut().chain([&mut bob]) {
        client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    }
    let listed = server.ask("GET", PATH, Some(TOKEN)).json();
    let workers: HashSet<_> = listed["list"].as_array().unwrap().iter().map(|row| row["worker"].as_u64()).collect();
    assert_eq!(workers.len(), 2, "the kernel spreads clients over the workers");
    for token in [None, Some("wrong")] {
        assert_eq!(server.ask("DELETE", "/api/v1/turn/users/ann", token).status, 401);
    }
    for other in ["an", "ann%20", "annb", "%00", "ann-secret"] {
        assert_eq!(server.ask("DELETE", &format!("/api/v1/turn/users/{other}"), Some(TOKEN)).status, 404, "{other}");
    }
    let answer = server.ask("DELETE", "/api/v1/turn/users/%61nn", Some(TOKEN));
    assert_eq!((answer.status, answer.json()), (200, json!({ "user": "ann", "ended": 16 })));
    assert_eq!(server.ask("DELETE", "/api/v1/turn/users/ann", Some(TOKEN)).status, 404);
    for client in &mut of_ann {
        assert_eq!(client.refresh(600), 437);
    }
    relays(&mut bob, 0x4000, &near, b"goes on");
    server.wait_log("allocations of a user ended over the API", 1);
    let ended =
        || std::fs::read_to_string(server.folder().join("records")).unwrap().matches("\"reason\":\"operator\"").count();
    wait("the records of the ends", || ended() == 16);
    assert!(of_ann[0].allocate().is_ok(), "the user's quota is free again");
}

/// The id in time-limited names is the user, whatever the expiry.
#[test]
fn allocations_of_a_time_limited_user_end_by_the_id() {
    let server = Operated::start("auth_secret_file = [\"{folder}/token\"]", &[]);
    let client = |name: &str| {
        let mut mac = Hmac::<Sha1>::new_from_slice(TOKEN.as_bytes()).unwrap();
        mac.update(name.as_bytes());
        Client::new(server.listen, name, &BASE64.encode(mac.finalize().into_bytes()))
    };
    let mut clients = ["4000000000:carol", "4000000001:carol", "4000000000:carola", "4000000000:a:carol"].map(client);
    for client in &mut clients {
        client.allocate().unwrap();
    }
    let answer = server.ask("DELETE", "/api/v1/turn/users/carol", Some(TOKEN));
    assert_eq!((answer.status, answer.json()), (200, json!({ "user": "carol", "ended": 2 })));
    assert_eq!(clients.each_mut().map(|client| client.refresh(600)), [437, 437, 0, 0]);
    assert_eq!(server.ask("DELETE", "/api/v1/turn/users/a:carol", Some(TOKEN)).status, 200);
    assert_eq!(clients[3].refresh(600), 437);
}

#[test]
fn whoever_connects_and_says_nothing_does_not_keep_others_out() {
    let server = Operated::start("", &[]);
    let idle: Vec<_> = (0..300).map(|_| TcpStream::connect(server.http).unwrap()).collect();
    // Those over the bound are closed as they come; the others after the time that a head may take.
    for mut stream in idle {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\n");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    }
    assert_eq!(server.ask("GET", "/healthz", None).status, 200);
}
