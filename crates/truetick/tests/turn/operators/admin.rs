//! `/api/v1/turn/allocations`: the list, one, and the end of one.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

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
