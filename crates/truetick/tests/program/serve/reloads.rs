//! `serve`: SIGHUP and `POST /api/v1/reload` read the whole file again, all of it or nothing.

use std::net::SocketAddr;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sim::Venue;
use testkit::turn_client::{Client, LIFETIME, REFRESH};

use super::changes::{Configured, TOKEN, ask, books, simulator, symbols, url};
use crate::served::{PATIENCE, Served};

/// The server and the credential that `serve` shows its visitors.
fn shown(served: &Served) -> (SocketAddr, [String; 2]) {
    let server = served.json("/api/v1/turn/ice-servers")["iceServers"][0].clone();
    let address = |url: &Value| url.as_str()?.strip_prefix("turn:")?.split('?').next()?.parse().ok();
    let address = server["urls"].as_array().unwrap().iter().find_map(address).unwrap();
    (address, ["username", "credential"].map(|key| server[key].as_str().unwrap().to_owned()))
}

/// A visitor with an allocation.
fn visitor(served: &Served) -> Client {
    let (address, [name, password]) = shown(served);
    let mut client = Client::new(address, &name, &password);
    client.allocate().unwrap();
    client
}

fn refreshed_s(client: &mut Client) -> u32 {
    let answer = client.request(REFRESH, vec![(LIFETIME, 30_u32.to_be_bytes().to_vec())]);
    u32::from_be_bytes(answer.bytes(LIFETIME).unwrap().try_into().unwrap())
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    assert!(testkit::wait_until(PATIENCE, is_so), "{what} never came");
}

#[test]
fn sighup_without_a_file_changes_nothing_and_ends_nothing() {
    let served = Served::start(&[]);
    let mut client = visitor(&served);
    served.signal(Signal::SIGHUP);
    served.wait_ready();
    assert_eq!(client.refresh(600), 0);
    assert_eq!(ask(&served, "POST", "/api/v1/reload", Some(TOKEN), "").0, 404, "there is nothing to read");
    served.signal(Signal::SIGTERM);
    assert!(served.end().1.success());
}

#[test]
fn users_and_feeds_follow_the_file_together_or_not_at_all() {
    let sim = simulator();
    let configured = Configured::new();
    let kraken = (symbols(&sim, Venue::Kraken), url(&sim, Venue::Kraken));
    let write = |symbols: &[String], turn: &str| {
        configured.write(&[(Venue::Kraken, symbols, &kraken.1)]);
        let feeds = std::fs::read_to_string(configured.path()).unwrap();
        configured.replace(&format!("{feeds}[turn]\n{turn}\n"));
    };
    let reload = |served: &Served| ask(served, "POST", "/api/v1/reload", Some(TOKEN), "");
    write(&kraken.0[..1], "user = [\"ann:one\"]");
    let served = configured.serve();
    books(&served, Venue::Kraken, 1);
    let user = |name| Client::new(shown(&served).0, name, "one");
    let mut kept = visitor(&served);
    assert!(user("ann").log_in().is_ok());

    write(&kraken.0, "user = [\"bob:one\"]\nlifetime_s = 700");
    served.signal(Signal::SIGHUP);
    books(&served, Venue::Kraken, 2);
    wait("bob", || user("bob").log_in().is_ok());
    assert_eq!(user("ann").log_in(), Err(401));
    wait("the lifetime", || refreshed_s(&mut visitor(&served)) == 700);
    assert_eq!(kept.refresh(600), 0, "what was there goes on");

    // The venue is wrong, the key needs a restart, the user is wrong: each time nothing is applied.
    configured.write(&[(Venue::Kraken, &[], &kraken.1)]);
    let feeds = std::fs::read_to_string(configured.path()).unwrap();
    configured.replace(&format!("{feeds}[turn]\nuser = [\"eve:one\"]\n"));
    let (status, answer) = reload(&served);
    assert!(status == 422 && answer["error"].as_str().unwrap().contains("symbols"), "{answer}");
    write(&kraken.0[..1], "user = [\"eve:one\"]\ncdr = \"stdout\"");
    assert_eq!(reload(&served), (422, json!({ "error": "a restart is needed for turn.cdr" })));
    write(&kraken.0[..1], "user = [\"eve\"]");
    assert_eq!(reload(&served).0, 422);
    books(&served, Venue::Kraken, 2);
    assert_eq!(user("eve").log_in(), Err(401));
    assert!(user("bob").log_in().is_ok());
    write(&kraken.0[..1], "user = [\"eve:one\"]");
    assert_eq!(reload(&served), (200, json!({ "reloaded": true })));
    books(&served, Venue::Kraken, 1);
    wait("eve", || user("eve").log_in().is_ok());
    assert_eq!(kept.refresh(600), 0);
}
