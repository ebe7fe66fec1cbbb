//! Allocation records: who had which relayed address when, also when files move, disks are full and the server ends.

mod many;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::turn_client::Client;
use testkit::{Requirement, require};

use super::operated::{Operated, PATIENCE, TOKEN, peer, relays, wait};
use crate::stream_client::{StreamClient, connect};

const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]\ncdr = \"{folder}/records\"";

/// The records in a file; each line is one JSON object.
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The value of a counter of `/metrics`.
fn lines_counted(server: &Operated, outcome: &str) -> u64 {
    let (text, start) =
        (server.ask("GET", "/metrics", None).body, format!("truetick_turn_records_total{{outcome=\"{outcome}\"}} "));
    text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

fn wait_written(server: &Operated, lines: u64) {
    wait(&format!("{lines} lines"), || lines_counted(server, "written") >= lines);
}

/// The reason of the end of the allocation that the record `start` began.
fn reason<'a>(all: &'a [Value], start: &Value) -> &'a Value {
    let ends: Vec<_> = all.iter().filter(|record| record["event"] == "end" && record["id"] == start["id"]).collect();
    assert_eq!(ends.len(), 1, "{start}");
    &ends[0]["reason"]
}

#[test]
fn a_record_holds_all_that_an_operator_asks_for() {
    let server = Operated::start(KEYS, &[]);
    let (mut client, near) = (server.client("ann"), peer());
    let (relayed, to) = (client.allocate().unwrap(), near.local_addr().unwrap());
    assert_eq!(client.permit("127.0.0.9:9".parse().unwrap()), 0);
    assert_eq!(client.bind_channel(0x4000, to), 0);
    relays(&mut client, 0x4000, &near, b"to the peer");
    relays(&mut client, 0x4000, &near, b"once more");
    near.send_to(b"back", relayed).unwrap();
    assert_eq!(client.receive_channel(), (0x4000, b"back".to_vec()));
    assert_eq!(client.refresh(0), 0);
    wait_written(&server, 2);
    let path = server.folder().join("records");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let [start, end] = &records(&path)[..] else { panic!("{:?}", records(&path)) };
    for record in [start, end] {
        assert_eq!(record["user"], "ann");
        assert_eq!(record["client"], client.socket.local_addr().unwrap().to_string());
        assert_eq!((&record["transport"], &record["listener"]), (&"udp".into(), &server.listen.to_string().into()));
        assert_eq!(record["relayed"][0]["address"], relayed.to_string());
        assert_eq!((&record["id"], &record["start"]), (&start["id"], &start["start"]));
    }
    assert_eq!((&start["event"], &end["event"], &end["reason"]), (&"start".into(), &"end".into(), &"deleted".into()));
    let counted = ["bytes_to_peers", "packets_to_peers", "bytes_to_client", "packets_to_client", "peers_not_listed"];
    assert_eq!(counted.map(|key| end[key].as_u64().unwrap()), [20, 2, 4, 1, 0]);
    assert_eq!(end["peers"], serde_json::json!(["127.0.0.9", to.to_string()]));
    assert!(end["start"].as_str() <= end["end"].as_str() && end["relayed"][0]["until"] == end["end"], "{end}");
    let end_time = end["end"].as_str().unwrap();
    assert!(end_time.len() == "2026-01-01T00:00:00.000Z".len() && end_time.ends_with('Z'), "{end_time}");
}

#[test]
fn the_end_of_an_allocation_names_its_reason() {
    let server = Operated::start(&format!("kick_removed_users = true\n{KEYS}"), &[]);
    let mut clients = [server.client("ann"), server.client("ann"), server.client("bob"), server.client("ann")];
    let relayed = clients.each_mut().map(|client| client.allocate().unwrap());
    assert_eq!(clients[0].refresh(0), 0);
    let one = format!("/api/v1/turn/allocations/{}", relayed[1]);
    assert_eq!(server.ask("DELETE", &one, Some(TOKEN)).status, 200);
    server.rewrite("users", "ann:ann-secret\n");
    assert!(server.reload().contains("configuration reloaded"));
    let mut over_tcp = StreamClient::of_user(connect(server.tcp.unwrap()), "ann", "ann-secret");
    let relayed = [&relayed[..], &[over_tcp.allocate().unwrap()]].concat();
    drop(over_tcp);
    wait_written(&server, 9);
    server.signal(Signal::SIGINT);
    let path = server.folder().join("records").to_owned();
    let kept = server.ended_with_folder();
    let all = records(&path);
    let is_start = |record: &&Value, relayed: &SocketAddr| {
        record["event"] == "start" && record["relayed"][0]["address"] == relayed.to_string()
    };
    let start = |relayed| all.iter().find(|record| is_start(record, relayed)).unwrap();
    let starts: Vec<_> = relayed.iter().map(start).collect();
    let reasons: Vec<_> = starts.iter().map(|start| reason(&all, start)).collect();
    assert_eq!(reasons, ["deleted", "operator", "user_removed", "shutdown", "connection_closed"]);
    assert_eq!(starts[4]["transport"], "tcp");
    drop(kept);
}

/// logrotate renames or removes the file.
#[test]
fn a_file_that_is_moved_is_made_again_and_no_line_is_lost() {
    let server = Operated::start(KEYS, &[]);
    let (path, moved) = (server.folder().join("records"), server.folder().join("records.1"));
    server.client("ann").allocate().unwrap();
    wait_written(&server, 1);
    fs::rename(&path, &moved).unwrap();
    server.client("bob").allocate().unwrap();
    wait_written(&server, 2);
    assert_eq!((&records(&moved)[0]["user"], records(&moved).len()), (&"ann".into(), 1));
    assert_eq!((&records(&path)[0]["user"], records(&path).len()), (&"bob".into(), 1));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(&path).unwrap();
    server.client("ann").allocate().unwrap();
    wait_written(&server, 3);
    assert_eq!(records(&path).len(), 1);
    assert_eq!((lines_counted(&server, "write_failed"), lines_counted(&server, "queue_full")), (0, 0));
}

#[test]
fn a_full_disk_costs_no_relaying_and_its_losses_are_counted() {
    let unlimited = "[turn.quotas]\nuser_allocations_per_second = 0";
    let keys = format!("{}\n{unlimited}", KEYS.replace("{folder}/records", "/dev/full"));
    let server = Operated::start(&keys, &[]);
    let (mut client, near) = (server.client("ann"), peer());
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, near.local_addr().unwrap()), 0);
    for number in 1..=300 {
        let mut other = server.client("bob");
        other.allocate().unwrap();
        assert_eq!(other.refresh(0), 0);
        relays(&mut client, 0x4000, &near, format!("{number}").as_bytes());
    }
    wait("601 lines", || lines_counted(&server, "write_failed") == 601);
    assert_eq!((lines_counted(&server, "written"), lines_counted(&server, "queue_full")), (0, 0));
    server.wait_log("allocation records cannot be written", 1);
    assert!(server.log().contains("No space left on device"), "{}", server.log());
}

/// A disk that is full for some time: whole lines only, before and after.
#[test]
fn a_disk_that_has_room_again_gets_whole_lines() {
    let namespace = Command::new("unshare").args(["--mount", "true"]).output().map_err(|error| error.to_string());
    let namespace = namespace.and_then(|done| done.status.success().then_some(()).ok_or("no mount namespace".into()));
    let Some(()) = require(Requirement::Privilege, namespace) else { return };
    let folder = Operated::configured("127.0.0.1:0", "cdr = \"{folder}/disk/records\"");
    fs::create_dir(folder.path().join("disk")).unwrap();
    let disk = folder.path().join("disk").display().to_string();
    let server = Operated::start_after(&format!("mount -t tmpfs -o size=16k none {disk}"), folder);
    let path = format!("/proc/{}/root{disk}/records", server.id());
    // They stay: a socket at the port of an earlier one would get the allocation of that.
    let mut clients = Vec::new();
    while lines_counted(&server, "write_failed") == 0 {
        let mut client = server.client("ann");
        client.allocate().unwrap();
        clients.push(client);
    }
    // The thread that writes may be behind: no line of ann's may come after the disk has room.
    let tried = || lines_counted(&server, "written") + lines_counted(&server, "write_failed");
    wait("every line of ann's", || tried() == clients.len() as u64);
    let before = records(Path::new(&path)).len();
    assert!(before > 20, "{before}");
    fs::rename(&path, format!("{path}.1")).unwrap();
    fs::remove_file(format!("{path}.1")).unwrap();
    let lost = lines_counted(&server, "write_failed");
    server.client("bob").allocate().unwrap();
    wait("a line", || Path::new(&path).exists() && records(Path::new(&path)).len() == 1);
    server.wait_log("allocation records are written again", 1);
    assert_eq!(records(Path::new(&path))[0]["user"], "bob");
    assert_eq!((lines_counted(&server, "written"), lines_counted(&server, "write_failed")), (before as u64 + 1, lost));
}

#[test]
fn records_on_standard_output_are_alone_there() {
    let folder = Operated::configured("127.0.0.1:0", "cdr = \"stdout\"");
    let mut child = Command::new(crate::server::program())
        .args(["turn", "--config", folder.path().join("truetick.toml").to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let listen = lines.find_map(|line| Some(line.strip_prefix("listening on udp ")?.parse().unwrap())).unwrap();
    assert!(lines.any(|line| line == "ready"));
    Client::new(listen, "ann", "ann-secret").allocate().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    stdout.read_line(&mut text).unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    stdout.read_to_string(&mut text).unwrap();
    assert!(lines.any(|line| line.starts_with("datagrams: in ")));
    assert!(child.wait().unwrap().success());
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((all.len(), &all[0]["event"], &all[1]["reason"]), (2, &"start".into(), &"shutdown".into()));
}

/// A receiver at the journal's address, in a mount namespace of the server.
#[test]
fn records_in_the_journal_are_one_entry_each() {
    let namespace = Command::new("unshare").args(["--mount", "true"]).output().map_err(|error| error.to_string());
    let namespace = namespace.and_then(|done| done.status.success().then_some(()).ok_or("no mount namespace".into()));
    let Some(()) = require(Requirement::Privilege, namespace) else { return };
    let folder = Operated::configured("127.0.0.1:0", "cdr = \"journald\"");
    let lines = "mount -t tmpfs none /run\nmkdir -p /run/systemd/journal";
    let server = Operated::start_after(lines, folder);
    server.client("ann").allocate().unwrap();
    wait("a lost line", || lines_counted(&server, "write_failed") == 1);
    let address = format!("/proc/{}/root/run/systemd/journal/socket", server.id());
    let journal = UnixDatagram::bind(address).unwrap();
    journal.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = server.client("bob");
    client.allocate().unwrap();
    assert_eq!(client.refresh(0), 0);
    for event in ["start", "end"] {
        let mut entry = [0; 8_192];
        let length = journal.recv(&mut entry).unwrap();
        let text = std::str::from_utf8(&entry[..length]).unwrap();
        let fields: Vec<_> = text.lines().map(|line| line.split_once('=').unwrap()).collect();
        let value = |name| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value);
        assert_eq!((value("SYSLOG_IDENTIFIER"), value("PRIORITY")), (Some("truetick-cdr"), Some("6")), "{text}");
        let record: Value = serde_json::from_str(value("MESSAGE").unwrap()).unwrap();
        assert_eq!((&record["event"], &record["user"]), (&event.into(), &"bob".into()));
    }
    wait_written(&server, 2);
}

#[test]
fn an_output_that_cannot_be_opened_prevents_the_start() {
    let folder = Operated::configured("127.0.0.1:0", "cdr = \"{folder}/none/records\"");
    let config = folder.path().join("truetick.toml");
    for flags in [&["--check-config"][..], &[]] {
        let mut command = Command::new(crate::server::program());
        let output = command.args(["turn", "--config", config.to_str().unwrap()]).args(flags).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("--cdr: cannot open") && error.contains("No such file or directory"), "{error}");
    }
    fs::create_dir(folder.path().join("none")).unwrap();
    let mut command = Command::new(crate::server::program());
    let checked = command.args(["turn", "--check-config", "--config", config.to_str().unwrap()]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert!(!folder.path().join("none/records").exists(), "a check makes no file");
}
