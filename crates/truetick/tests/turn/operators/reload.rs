//! SIGHUP: users, secrets, peer rules and limits, without a drop, all of it or nothing.

use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use serde_json::json;
use testkit::turn_client::{Client, FINGERPRINT, LIFETIME, REFRESH, SOFTWARE};

use super::operated::{Operated, TOKEN, peer, relays, wait};
use crate::certificates::Certificates;
use crate::stream_client::connect_tls;

const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]";

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
    wait("eve is let in", || server.client("eve").log_in().is_ok());
    wait("bob is out", || server.client("bob").log_in() == Err(401));
    relays(&mut client, 0x4000, &peer, b"as before");
    assert_eq!(client.refresh(600), 0);
    // Who is gone keeps the allocation, and makes no other.
    server.rewrite("users", "eve:eve-secret\n");
    server.reload();
    wait("ann is out", || server.client("ann").log_in() == Err(401));
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
    wait("ann is out", || server.client("ann").log_in() == Err(401));
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
    // Had one of these gone through, it would be there before the second answer: the first one may leave before what is
    // relayed in the same round.
    client.send_channel(0x4000, b"denied");
    near.send_to(b"denied too", relayed).unwrap();
    assert_eq!((client.refresh(600), client.refresh(600)), (0, 0));
    near.set_nonblocking(true).unwrap();
    assert_eq!(near.recv_from(&mut [0; 64]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let counted = "\ntruetick_turn_peers_denied_total{rule=\"deny own host\"} ";
    wait("the rule's count", || server.ask("GET", "/metrics", None).body.contains(counted));
    server.edit(|text| text.replace("allow_own_host = []", "allow_own_host = [\"127.0.0.0/8\"]"));
    server.reload();
    wait("the peer is allowed again", || client.permit(near_addr) == 0);
}

#[test]
fn a_fault_in_any_file_keeps_what_is_in_force_and_is_one_record() {
    let server = Operated::start(KEYS, &[]);
    server.rewrite("users", "eve:eve-secret\nbroken\n");
    let reported = server.reload();
    assert!(
        reported.contains("not reloaded") && reported.contains("line 2: a user must be NAME:PASSWORD"),
        "{reported}"
    );
    assert!(server.client("ann").allocate().is_ok());
    assert_eq!(server.client("eve").allocate(), Err(401));
    server.rewrite("users", "eve:eve-secret\n");
    server.edit(|text| text.replace("workers = 2", "workers = 2\nno_such_key = 1"));
    let reported = server.reload();
    assert!(
        reported.contains("not reloaded") && reported.contains("line 5: unknown field `no_such_key`"),
        "{reported}"
    );
    assert_eq!(server.client("eve").allocate(), Err(401));
    assert!(!server.log().contains("-secret"), "{}", server.log());
}

#[test]
fn the_api_reloads_for_the_token_and_says_what_needs_a_restart() {
    const RELOAD: &str = "/api/v1/reload";
    let server = Operated::start(KEYS, &[]);
    server.rewrite("users", "eve:eve-secret\n");
    for (token, status) in [(None, 401), (Some("wrong"), 401), (Some(&TOKEN[1..]), 401)] {
        assert_eq!(server.ask("POST", RELOAD, token).status, status);
    }
    assert_eq!(server.ask("GET", RELOAD, Some(TOKEN)).status, 405);
    assert!(server.client("ann").log_in().is_ok(), "without the token there is no reload");
    let answer = server.ask("POST", RELOAD, Some(TOKEN));
    assert_eq!((answer.status, answer.json()), (200, json!({ "reloaded": true })));
    wait("eve is let in", || server.client("eve").log_in().is_ok());
    wait("ann is out", || server.client("ann").log_in() == Err(401));

    server.edit(|text| text.replace("workers = 2", "workers = 2\ncdr = \"stdout\"\nlifetime_s = 700"));
    let answer = server.ask("POST", RELOAD, Some(TOKEN));
    assert_eq!(
        (answer.status, answer.json()),
        (422, json!({ "error": "a restart is needed for turn.cdr" })),
        "{}",
        answer.body
    );
    server.edit(|text| text.replace("lifetime_s = 700", "lifetime_s = \"long\""));
    let answer = server.ask("POST", RELOAD, Some(TOKEN));
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(
        answer.json()["error"].as_str().unwrap().contains("truetick.toml, line 6: turn.lifetime_s"),
        "{}",
        answer.body
    );
    assert!(server.client("eve").log_in().is_ok());
}

/// A pipe has no end until somebody writes to it, so reading it would hold up the signals.
#[test]
fn a_pipe_in_the_place_of_a_file_is_an_error_and_holds_up_nothing() {
    let server = Operated::start(KEYS, &[]);
    let users = server.folder().join("users");
    std::fs::remove_file(&users).unwrap();
    mkfifo(&users, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let reported = server.reload();
    assert!(reported.contains("not reloaded") && reported.contains("users: not a regular file"), "{reported}");
    assert!(server.client("ann").allocate().is_ok());
    let flags = ["turn", "--listen", "127.0.0.1:0", "--user-file", users.to_str().unwrap()];
    let started = std::process::Command::new(crate::server::program()).args(flags).output().unwrap();
    let line = String::from_utf8(started.stderr).unwrap();
    assert!(started.status.code() == Some(1) && line.contains("users: not a regular file"), "{line}");
    server.signal(Signal::SIGINT);
    assert!(server.ended().0.success());
}

#[test]
fn a_private_key_that_others_may_read_is_rejected() {
    let certificates = Certificates::new();
    let set = |mode| std::fs::set_permissions(certificates.key(), std::fs::Permissions::from_mode(mode)).unwrap();
    let keys = format!("cert = \"{}\"\nkey = \"{}\"", certificates.cert().display(), certificates.key().display());
    set(0o640);
    let server = Operated::start(&keys, &[]);
    set(0o644);
    let reported = server.reload();
    assert!(reported.contains("not reloaded") && reported.contains("key.pem holds secrets"), "{reported}");
    let flags = certificates.flags();
    for check in [&["--check-config"][..], &[]] {
        let mut command = std::process::Command::new(crate::server::program());
        let output = command.args(["turn", "--listen", "127.0.0.1:0"]).args(&flags).args(check).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && line.contains("(mode 644); chmod 600 it"), "{line}");
    }
}

#[test]
fn what_needs_a_restart_is_named_and_nothing_is_applied() {
    let server = Operated::start(KEYS, &[]);
    server.rewrite("users", "eve:eve-secret\n");
    server.edit(|text| text.replace("workers = 2", "workers = 2\ncdr = \"stdout\"\nstreams.handshake_threads = 2"));
    let reported = server.reload();
    assert!(
        reported.contains("not reloaded")
            && reported.contains("a restart is needed for turn.streams.handshake_threads turn.cdr"),
        "{reported}"
    );
    assert_eq!(server.client("eve").log_in(), Err(401));
    assert!(server.client("ann").log_in().is_ok());
    server.edit(|text| text.replace("\ncdr = \"stdout\"\nstreams.handshake_threads = 2", ""));
    assert!(server.reload().contains("configuration reloaded"));
    wait("eve is let in", || server.client("eve").log_in().is_ok());
}

/// Keys that a reload applies, each alone, and what a client notices then. Without the key the answer differs.
type Noticed = fn(&Operated, &mut Client) -> bool;
const APPLIED: [(&str, Noticed); 10] = [
    ("software = \"Relay 19\"", |_, live| live.binding_response().bytes(SOFTWARE) == Some(b"Relay 19")),
    ("fingerprint_always = true", |_, live| live.binding_response().bytes(FINGERPRINT).is_some()),
    ("lifetime_s = 601", |_, live| refreshed_s(live, 30) == 601),
    ("lifetime_max_s = 3601", |_, live| refreshed_s(live, 9_999) == 3_601),
    ("rfc5766_channel_numbers = true", |server, _| {
        let mut client = server.client("ann");
        client.allocate().unwrap();
        let code = client.bind_channel(0x5000, "127.0.0.3:9".parse().unwrap());
        client.refresh(0);
        code == 0
    }),
    ("hairpin = false", |server, _| {
        let mut clients = [server.client("ann"), server.client("bob")];
        let relayed = clients.each_mut().map(|client| client.allocate().unwrap());
        let code = clients[0].bind_channel(0x4000, relayed[1]);
        clients.iter_mut().for_each(|client| assert_eq!(client.refresh(0), 0));
        code == 403
    }),
    ("quotas = { user_allocations = 1 }", |server, _| {
        let mut client = server.client("ann");
        let result = client.allocate();
        client.refresh(0);
        result == Err(486)
    }),
    ("quotas = { permissions_per_allocation = 2 }", |server, _| {
        let mut client = server.client("ann");
        client.allocate().unwrap();
        let codes = ["127.0.0.4:1", "127.0.0.5:1", "127.0.0.6:1"].map(|peer| client.permit(peer.parse().unwrap()));
        client.refresh(0);
        codes == [0, 0, 508]
    }),
    ("quotas = { channels_per_allocation = 1 }", |server, _| {
        let mut client = server.client("ann");
        client.allocate().unwrap();
        let codes = [1, 2].map(|n| client.bind_channel(0x4000 + n, format!("127.0.0.7:{n}").parse().unwrap()));
        client.refresh(0);
        codes == [0, 508]
    }),
    ("password_algorithms = \"sha256\"", |server, _| server.client("ann").allocate() == Err(401)),
];

/// The lifetime that a Refresh for `asked_s` is granted.
fn refreshed_s(client: &mut Client, asked_s: u32) -> u32 {
    let answer = client.request(REFRESH, vec![(LIFETIME, asked_s.to_be_bytes().to_vec())]);
    u32::from_be_bytes(answer.bytes(LIFETIME).unwrap().try_into().unwrap())
}

#[test]
fn how_requests_are_answered_changes_with_a_reload_and_changes_back() {
    let server = Operated::start(KEYS, &[]);
    let (mut live, peer) = (server.client("ann"), peer());
    live.allocate().unwrap();
    assert_eq!(live.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    for (line, is_noticed) in APPLIED {
        assert!(!is_noticed(&server, &mut live), "{line} before");
        server.edit(|text| text.replace("workers = 2\n", &format!("workers = 2\n{line}\n")));
        let reported = server.reload();
        assert!(reported.contains("configuration reloaded") && !reported.contains("restart"), "{line}: {reported}");
        assert!(is_noticed(&server, &mut live), "{line}");
        relays(&mut live, 0x4000, &peer, b"through it all");
        server.edit(|text| text.replace(&format!("{line}\n"), ""));
        server.reload();
        assert!(!is_noticed(&server, &mut live), "{line} after");
    }
}

#[test]
fn the_default_realm_gets_another_name_while_calls_go_on() {
    let server = Operated::start(&format!("{KEYS}\nkick_removed_users = true\ncdr = \"{{folder}}/records\""), &[]);
    let (mut live, peer) = (server.client("ann"), peer());
    assert_eq!(live.challenge(), "truetick");
    live.allocate().unwrap();
    assert_eq!(live.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    server.edit(|text| text.replace("workers = 2\n", "workers = 2\nrealm = \"calls.example\"\n"));
    assert!(server.reload().contains("configuration reloaded"));
    wait("the new name", || server.client("bob").challenge() == "calls.example");
    wait("new users log in with it", || server.client("bob").log_in().is_ok());
    assert_eq!(server.ask("GET", "/api/v1/turn/allocations", None).json()["realm"], "calls.example");
    relays(&mut live, 0x4000, &peer, b"on the call goes");
    assert_eq!(live.refresh(600), 0);
    let records = || std::fs::read_to_string(server.folder().join("records")).unwrap();
    server.client("bob").allocate().unwrap();
    wait("the record of a new allocation", || {
        records().lines().any(|line| line.contains("\"bob\"") && line.contains("\"calls.example\""))
    });
    // A client that starts again goes on, too.
    assert_eq!(live.challenge(), "calls.example");
    assert_eq!(live.refresh(600), 0);
    relays(&mut live, 0x4000, &peer, b"and on");
}

/// Keys that only a start reads, each with another value than the one in force.
const RESTART_ONLY: [(&str, &str); 4] = [
    ("data_path = \"auto\"", "turn.data_path"),
    ("streams = { handshake_threads = 2 }", "turn.streams.handshake_threads"),
    ("relay_sockets = \"shared\"", "turn.relay_sockets"),
    ("cdr = \"stdout\"", "turn.cdr"),
];

#[test]
fn each_key_that_only_a_start_reads_is_named_and_changes_nothing() {
    let server = Operated::start(KEYS, &[]);
    for (line, key) in RESTART_ONLY {
        server.edit(|text| text.replace("workers = 2\n", &format!("workers = 2\n{line}\n")));
        let reported = server.reload();
        assert!(reported.contains(&format!("a restart is needed for {key}")), "{line}: {reported}");
        let mut clients = [server.client("ann"), server.client("ann")];
        let relayed = clients.each_mut().map(|client| client.allocate().unwrap());
        assert!(relayed.iter().all(|addr| addr.ip() == server.listen.ip()), "{line}: {relayed:?}");
        assert!(clients.each_mut().iter_mut().all(|client| client.refresh(0) == 0), "{line}");
        let again = server.reload();
        assert!(again.contains(&format!("a restart is needed for {key}")), "{line} unchanged: {again}");
        server.edit(|text| text.replace(&format!("{line}\n"), ""));
        let back = server.reload();
        assert!(back.contains("configuration reloaded") && !back.contains("restart"), "{line} is gone: {back}");
    }
}

#[test]
fn the_log_level_follows_a_reload_unless_a_flag_sets_it() {
    const CREATED: &str = "allocation created";
    for (flags, counts) in [(&[][..], [0, 1, 1, 2]), (&["--log-level", "info"], [0; 4])] {
        let server = Operated::start(KEYS, flags);
        let mut level = String::new();
        for (next, count) in ["info", "debug", "error", "debug"].into_iter().zip(counts) {
            server.edit(|text| text.replace(&level, "") + &format!("[log]\nlevel = {next:?}\n"));
            level = format!("[log]\nlevel = {next:?}\n");
            assert_eq!(server.ask("POST", "/api/v1/reload", Some(TOKEN)).status, 200);
            let mut client = server.client("ann");
            client.allocate().unwrap();
            assert_eq!(client.refresh(0), 0);
            server.wait_log(CREATED, count);
        }
        server.signal(Signal::SIGINT);
        let (_, log) = server.ended();
        assert_eq!(log.lines().filter(|line| line.contains(CREATED)).count(), counts[3], "{log}");
    }
}

#[test]
fn a_changed_drain_timeout_is_in_force_at_the_next_drain() {
    let server = Operated::start(&format!("{KEYS}\ndrain_timeout_s = 3600"), &[]);
    server.client("ann").allocate().unwrap();
    server.edit(|text| text.replace("drain_timeout_s = 3600", "drain_timeout_s = 1"));
    let reported = server.reload();
    assert!(reported.contains("configuration reloaded") && !reported.contains("restart"), "{reported}");
    server.signal(Signal::SIGTERM);
    // With the time-out of before it would outlast the test's patience.
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(log.contains("timeout_s=1") && log.contains("cause=\"deadline\""), "{log}");
}

#[test]
fn a_renewed_certificate_is_shown_after_a_reload_and_a_broken_one_changes_nothing() {
    let certificates = Certificates::new();
    let path = |path: std::path::PathBuf| path.display().to_string();
    let keys = format!("cert = \"{}\"\nkey = \"{}\"", path(certificates.cert()), path(certificates.key()));
    let server = Operated::start(&keys, &[]);
    let client = certificates.client(rustls::ALL_VERSIONS, &[]);
    let shown = || {
        let stream = connect_tls(server.tcp.unwrap(), &client).unwrap();
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    let first = shown();
    let renewed = certificates.renew();
    assert!(first != renewed && shown() == first, "before a reload");
    assert!(server.reload().contains("configuration reloaded"), "{}", server.log());
    assert_eq!(shown(), renewed);
    // One that cannot be used keeps everything, users too.
    std::fs::write(certificates.key(), "no key").unwrap();
    server.rewrite("users", "eve:eve-secret\n");
    let reported = server.reload();
    assert!(reported.contains("not reloaded") && reported.contains("key.pem"), "{reported}");
    assert_eq!(shown(), renewed);
    assert_eq!(server.client("eve").allocate(), Err(401));
    assert!(server.client("ann").allocate().is_ok());
}
