//! Several realms: chosen by listener or origin, each with its own users, secrets and quotas.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::turn_client::Client;
use testkit::{Requirement, find_program, require};

use super::operated::{Operated, TOKEN, peer, relays, wait, write_secret};
use crate::server::program;

const ORIGIN: &str = "https://b.example";
/// Two listeners, the second one for the realm `a.example`.
const LISTEN: &str = "127.0.0.1:0\", \"127.0.0.2:0";
/// The quotas of every realm differ.
const KEYS: &str = "relay_ip = [\"127.0.0.1\"]
allow_own_host = [\"127.0.0.0/8\"]
rfc5766_channel_numbers = true
cdr = \"{folder}/records\"
quotas = { user_allocations = 4 }
[[turn.realms]]
name = \"a.example\"
listen = [\"127.0.0.2:0\"]
user_file = [\"{folder}/users-a\"]
user_allocations = 1
allocations = 2
[[turn.realms]]
name = \"b.example\"
origins = [\"https://other.example\", \"https://b.example\"]
user_file = [\"{folder}/users-b\"]
auth_secret_file = [\"{folder}/secrets-b\"]
user_allocations = 2
allocations = 3
";

fn folder(keys: &str) -> TempDir {
    let folder = Operated::configured(LISTEN, keys);
    for (name, text) in [
        ("users-a", "ann:a-secret\neve:a-secret\nkim:a-secret\n"),
        ("users-b", "ann:b-secret\neve:b-secret\n"),
        ("secrets-b", "north\n"),
    ] {
        write_secret(&folder, name, text);
    }
    folder
}

fn start() -> Operated {
    Operated::start_in(folder(KEYS), &[])
}

/// The listener of the realm `a.example`.
fn listener_a(server: &Operated) -> SocketAddr {
    let listens = server.ask("GET", "/api/v1/turn/allocations", None).json()["listens"].clone();
    let found = listens.as_array().unwrap().iter().find_map(|listen| listen.as_str()?.strip_prefix("udp 127.0.0.2:"));
    format!("127.0.0.2:{}", found.unwrap()).parse().unwrap()
}

fn client_a(server: &Operated, user: &str) -> Client {
    Client::new(listener_a(server), user, "a-secret")
}

fn client_b(server: &Operated, user: &str) -> Client {
    Client::new(server.listen, user, "b-secret").of_origin(ORIGIN)
}

#[test]
fn listener_and_origin_choose_the_realm_of_the_challenge() {
    let server = start();
    let at = |listen: SocketAddr| Client::new(listen, "ann", "none");
    let (first, second) = (server.listen, listener_a(&server));
    assert_eq!(at(first).challenge(), "truetick");
    assert_eq!(at(second).challenge(), "a.example");
    assert_eq!(at(first).of_origin(ORIGIN).challenge(), "b.example");
    assert_eq!(at(first).of_origin("HTTPS://OTHER.example").challenge(), "b.example");
    for unknown in ["https://b.exampl", "https://b.example.org", "https://b.example/", "", "b.example"] {
        assert_eq!(at(first).of_origin(unknown).challenge(), "truetick", "{unknown}");
    }
    assert_eq!(at(second).of_origin(ORIGIN).challenge(), "a.example", "the listener counts before the origin");
}

#[test]
fn a_password_is_for_its_realm_only() {
    let server = start();
    let passwords = ["ann-secret", "a-secret", "b-secret"];
    for (index, password) in passwords.into_iter().enumerate() {
        let expected = |realm: usize| if realm == index { Ok(()) } else { Err(401) };
        assert_eq!(Client::new(server.listen, "ann", password).log_in(), expected(0), "{password}");
        assert_eq!(Client::new(listener_a(&server), "ann", password).log_in(), expected(1), "{password}");
        assert_eq!(Client::new(server.listen, "ann", password).of_origin(ORIGIN).log_in(), expected(2), "{password}");
    }
    // A name that only one realm has.
    assert_eq!(Client::new(server.listen, "bob", "bob-secret").of_origin(ORIGIN).log_in(), Err(401));
    assert_eq!(client_a(&server, "bob").log_in(), Err(401));
    // Realms that the listener does not serve, and one that there is not.
    for (listen, realm, password) in [
        (server.listen, "a.example", "a-secret"),
        (listener_a(&server), "b.example", "b-secret"),
        (listener_a(&server), "truetick", "ann-secret"),
        (server.listen, "c.example", "ann-secret"),
        (server.listen, "", "ann-secret"),
    ] {
        let mut client = Client::new(listen, "ann", password);
        client.challenge();
        client.log_in_as(realm, "ann", password);
        assert_eq!(client.log_in(), Err(401), "{realm} at {listen}");
    }
}

#[test]
fn an_allocation_stays_with_its_realm() {
    let server = start();
    let (mut client, peer) = (server.client("ann"), peer());
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    client.log_in_as("b.example", "ann", "b-secret");
    assert_eq!(client.refresh(600), 441);
    assert_eq!(client.refresh(0), 441);
    assert_eq!(client.permit(peer.local_addr().unwrap()), 441);
    assert_eq!(client.bind_channel(0x4001, peer.local_addr().unwrap()), 441);
    assert_eq!(client.allocate(), Err(437));
    client.log_in_as("b.example", "ann", "ann-secret");
    assert_eq!(client.refresh(0), 401, "the password of the other realm");
    client.log_in_as("truetick", "ann", "ann-secret");
    assert_eq!(client.refresh(600), 0);
    relays(&mut client, 0x4000, &peer, b"as before");
}

#[test]
fn quotas_count_for_a_realm_and_for_each_of_its_users() {
    let server = start();
    let refused = |reason: &str| {
        let series = format!("\ntruetick_turn_refused_total{{reason=\"{reason}\"}} ");
        let text = server.ask("GET", "/metrics", None).body;
        let after = text.split_once(&series).map(|(_, after)| after.lines().next().unwrap().to_owned());
        after.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    let (mut kept, before) = (Vec::new(), (refused("user_quota"), refused("realm_quota")));
    let mut allocate = |mut client: Client| {
        let result = client.allocate().map(|_| ());
        kept.push(client);
        result
    };
    assert_eq!(allocate(client_a(&server, "ann")), Ok(()));
    assert_eq!(allocate(client_a(&server, "ann")), Err(486), "one of each user");
    assert_eq!(allocate(client_a(&server, "eve")), Ok(()));
    assert_eq!(allocate(client_a(&server, "kim")), Err(486), "two of the realm");
    assert_eq!(allocate(client_b(&server, "ann")), Ok(()));
    assert_eq!(allocate(client_b(&server, "ann")), Ok(()));
    assert_eq!(allocate(client_b(&server, "ann")), Err(486), "two of each user");
    assert_eq!(allocate(client_b(&server, "eve")), Ok(()));
    assert_eq!(allocate(client_b(&server, "eve")), Err(486), "three of the realm");
    for _ in 0..4 {
        assert_eq!(allocate(server.client("ann")), Ok(()));
    }
    assert_eq!(allocate(server.client("ann")), Err(486), "four of each user of the default realm");
    assert_eq!(allocate(server.client("bob")), Ok(()));
    wait("the counts", || (refused("user_quota"), refused("realm_quota")) == (before.0 + 3, before.1 + 2));
    // What ends is free for the realm again.
    assert_eq!(kept[0].refresh(0), 0);
    let mut kim = client_a(&server, "kim");
    assert!(kim.allocate().is_ok());
}

#[test]
fn lists_ends_and_records_have_the_realm_of_a_user() {
    let server = start();
    let mut clients = [server.client("ann"), client_a(&server, "ann"), client_b(&server, "ann")];
    for client in &mut clients {
        client.allocate().unwrap();
    }
    let realms = |of: &str, key: &str| {
        let list = server.ask("GET", of, Some(TOKEN)).json()["list"].clone();
        let rows = list.as_array().unwrap();
        let mut realms: Vec<_> = rows.iter().map(|row| format!("{}/{}", row[key], row["user"])).collect();
        realms.sort();
        realms.join(" ").replace('"', "")
    };
    let all = "a.example/ann b.example/ann truetick/ann";
    assert_eq!(realms("/api/v1/turn/allocations?user=ann", "realm"), all);
    assert_eq!(realms("/api/v1/turn/users", "realm"), all);
    assert_eq!(realms("/api/v1/turn/allocations?realm=b.example", "realm"), "b.example/ann");
    assert_eq!(realms("/api/v1/turn/allocations?user=bob&realm=b.example", "realm"), "");
    let ended = server.ask("DELETE", "/api/v1/turn/users/ann?realm=a.example", Some(TOKEN));
    assert_eq!((ended.status, ended.json()), (200, json!({ "user": "ann", "ended": 1 })));
    assert_eq!(clients.each_mut().map(|client| client.refresh(600)), [0, 437, 0]);
    assert_eq!(server.ask("DELETE", "/api/v1/turn/users/ann?realm=c.example", Some(TOKEN)).status, 404);
    server.signal(Signal::SIGINT);
    let folder = server.ended_with_folder();
    let lines = fs::read_to_string(folder.path().join("records")).unwrap();
    let starts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut realms: Vec<_> = starts.filter(|line| line["event"] == "start").map(|line| line["realm"].clone()).collect();
    realms.sort_by_key(ToString::to_string);
    assert_eq!(realms, ["a.example", "b.example", "truetick"]);
}

#[test]
fn a_reload_replaces_users_of_every_realm() {
    let server = start();
    assert_eq!(client_a(&server, "new").log_in(), Err(401));
    let mut kept = client_b(&server, "ann");
    kept.allocate().unwrap();
    server.rewrite("users-a", "new:a-secret\n");
    server.rewrite("users-b", "new:b-secret\n");
    assert!(server.reload().contains("configuration reloaded"), "{}", server.log());
    wait("a new user of a", || client_a(&server, "new").log_in().is_ok());
    wait("a new user of b", || client_b(&server, "new").log_in().is_ok());
    assert_eq!((client_a(&server, "ann").log_in(), client_b(&server, "ann").log_in()), (Err(401), Err(401)));
    assert!(server.client("ann").log_in().is_ok(), "the default realm has its users");
    assert_eq!(kept.refresh(600), 0, "the allocation continues");
    // Another file is as good as another text.
    write_secret(&server.folder, "users-c", "third:a-secret\n");
    server.edit(|text| text.replace("users-a", "users-c"));
    let answer = server.ask("POST", "/api/v1/reload", Some(TOKEN));
    assert_eq!(answer.json(), json!({ "reloaded": true }));
    wait("the third user of a", || client_a(&server, "third").log_in().is_ok());
    assert_eq!(kept.refresh(600), 0);
}

#[test]
fn a_reload_adds_realms_and_changes_origins_listeners_and_quotas() {
    let server = start();
    let (mut kept_a, mut kept_b) = (client_a(&server, "ann"), client_b(&server, "ann"));
    kept_a.allocate().unwrap();
    kept_b.allocate().unwrap();
    let reload = |change: &dyn Fn(String) -> String| {
        server.edit(change);
        let answer = server.ask("POST", "/api/v1/reload", Some(TOKEN));
        assert_eq!((answer.status, answer.json()), (200, json!({ "reloaded": true })));
    };
    let challenged_for = |origin: &str| Client::new(server.listen, "ann", "none").of_origin(origin).challenge();
    assert_eq!(challenged_for("https://third.example"), "truetick");
    reload(&|text| text.replace("https://other.example", "https://third.example"));
    wait("the new origin", || challenged_for("https://third.example") == "b.example");
    assert_eq!(challenged_for("https://other.example"), "truetick");

    assert_eq!(client_a(&server, "ann").log_in(), Err(486), "one for each user of a");
    reload(&|text| text.replace("user_allocations = 1\n", "user_allocations = 2\n"));
    wait("two for each user of a", || client_a(&server, "ann").log_in().is_ok());

    // A new realm takes the listener of a, and a is for an origin now.
    write_secret(&server.folder, "users-c", "ann:c-secret\n");
    let folder = server.folder().display().to_string();
    reload(&|text| {
        let of_c = "[[turn.realms]]\nname = \"c.example\"\nlisten = [\"127.0.0.2:0\"]\n";
        text.replace("listen = [\"127.0.0.2:0\"]\n", "origins = [\"https://a.example\"]\n")
            + &format!("{of_c}user_file = [\"{folder}/users-c\"]\nuser_allocations = 1\n")
    });
    let client_c = || Client::new(listener_a(&server), "ann", "c-secret");
    wait("the new realm", || client_c().log_in().is_ok());
    let mut kept_c = client_c();
    kept_c.allocate().unwrap();
    assert_eq!(client_c().log_in(), Err(486));
    assert_eq!(challenged_for("https://a.example"), "a.example");
    let rows = server.ask("GET", "/api/v1/turn/allocations?user=ann", Some(TOKEN)).json();
    let mut realms: Vec<_> = rows["list"].as_array().unwrap().iter().map(|row| row["realm"].clone()).collect();
    realms.sort_by_key(ToString::to_string);
    assert_eq!(realms, ["a.example", "b.example", "c.example"], "{rows}");

    // A realm that is gone has no users; one that comes back has them again.
    let whole = fs::read_to_string(server.folder().join("truetick.toml")).unwrap();
    reload(&|text| text.split("[[turn.realms]]\nname = \"c.example\"").next().unwrap().to_owned());
    wait("c is gone", || client_c().log_in() == Err(401));
    reload(&|_| whole.clone());
    wait("c is back", || client_c().log_in() == Err(486));
    assert_eq!((kept_b.refresh(600), kept_c.refresh(600)), (0, 0));
    server.signal(Signal::SIGINT);
    let folder = server.ended_with_folder();
    let lines = fs::read_to_string(folder.path().join("records")).unwrap();
    assert!(lines.contains("\"realm\":\"c.example\""), "{lines}");
}

#[test]
fn rejects_realms_that_no_request_selects_or_two_have() {
    for (was, is, error) in [
        ("listen = [\"127.0.0.2:0\"]\nuser", "user", "\"a.example\": it needs `listen`, `origins` or a `database`"),
        ("listen = [\"127.0.0.2:0\"]\nuser", "listen = [\"127.0.0.3:0\"]\nuser", "127.0.0.3:0 is no address of"),
        ("name = \"b.example\"", "name = \"a.example\"", "another realm has this name"),
        ("name = \"b.example\"", "name = \"truetick\"", "another realm has this name"),
        ("name = \"b.example\"", "name = \"\"", "must have from 1 to 127 characters"),
        ("origins = [\"https://other", "origins = [\"", "an origin must not be empty"),
        ("origins =", "listen = [\"127.0.0.2:0\"]\norigins =", "127.0.0.2:0 serves another realm"),
        ("user_allocations = 1", "user_allocations = 0", "expected a nonzero u32"),
        ("allocations = 3", "no_such_key = 3", "unknown field `no_such_key`"),
    ] {
        let is = if error.contains("an origin") { "origins = [\"\", \"https://other" } else { is };
        let folder = folder(&KEYS.replace(was, is));
        let config = folder.path().join("truetick.toml");
        let run = Command::new(program()).args(["turn", "--check-config", "--config"]).arg(config).output().unwrap();
        let text = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.code() == Some(1) && text.contains(error), "{is}: {text}");
    }
}

/// coturn's own client, which sends ORIGIN with `-o`: each password works for its origin only.
#[test]
fn uclient_relays_in_the_realm_of_its_origin() {
    let Some(_) = require(Requirement::Program, find_program("turnutils_uclient", "coturn")) else { return };
    let server = Operated::start_in(folder(&KEYS.replace("user_allocations = 2\nallocations = 3\n", "")), &[]);
    let run = |origin: &[&str], password: &str| {
        let mut uclient = Command::new("turnutils_uclient");
        uclient.args(["-u", "ann", "-w", password, "-c", "-y", "-m", "1", "-n", "5", "-l", "100", "-z", "10"]);
        uclient.args(origin).args(["-p", &server.listen.port().to_string(), "127.0.0.1"]);
        let output = uclient.output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success() && report.contains("tot_send_msgs=10, tot_recv_msgs=10"), report)
    };
    for (origin, password, relays) in [
        (&["-o", ORIGIN][..], "b-secret", true),
        (&["-o", ORIGIN], "ann-secret", false),
        (&[], "ann-secret", true),
        (&[], "b-secret", false),
    ] {
        let (relayed, report) = run(origin, password);
        assert_eq!(relayed, relays, "{origin:?} {password}: {report}");
    }
}
