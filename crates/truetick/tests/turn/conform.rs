//! `truetick conform`: against this server, Debian's coturn, and a server that is wrong on purpose.

mod broken;
mod faults;
mod listed;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::{Requirement, find_program, require};

use crate::certificates::Certificates;
use crate::checks::written;
use crate::coturn::Coturn;
use crate::server::{PASSWORD, Server, USER, program};

/// The other user, for checks of foreign allocations.
const OTHER: &str = "bob:battery staple";
/// Both loopbacks, so that there are relays of both families.
const FLAGS: &[&str] = &[
    "--listen",
    "127.0.0.1:0",
    "--listen",
    "[::1]:0",
    "--workers",
    "2",
    "--allow-own-host",
    "127.0.0.0/8",
    "--allow-own-host",
    "::1/128",
    "--icmp-indications",
    "always",
    "--user-share-percent",
    "100",
    "--user",
    OTHER,
    "--http",
    "127.0.0.1:0",
];

/// A scoreboard: its status and its rows.
struct Judged {
    status: Option<i32>,
    rows: Vec<Value>,
}

impl Judged {
    /// Ids and titles of the rows with a result.
    fn with_result(&self, result: &str) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row["result"] == result);
        rows.map(|row| format!("{} {}", text(row, "id"), text(row, "title"))).collect()
    }

    /// Ids of the rows with a result, each once.
    fn ids(&self, result: &str) -> Vec<String> {
        let mut ids: Vec<_> =
            self.rows.iter().filter(|row| row["result"] == result).map(|row| text(row, "id")).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_owned()
}

/// Files with the credentials of both users.
fn credentials(folder: &Path) -> [String; 4] {
    let users = written(folder, "users", &format!("{USER}:{PASSWORD}\n"));
    let others = written(folder, "others", &format!("{OTHER}\n"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    ["--user-file".to_owned(), path(&users), "--other-user-file".to_owned(), path(&others)]
}

fn start(uri: &str, flags: &[&str]) -> Child {
    let mut command = Command::new(program());
    command.args(["conform", uri]).args(flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn judge(uri: &str, flags: &[&str]) -> Judged {
    let output = start(uri, &[&["--json"], flags].concat()).wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    Judged { status: output.status.code(), rows: document["rows"].as_array().unwrap().clone() }
}

/// The number of live allocations of a server.
fn live(server: &Server) -> u64 {
    let mut stream = TcpStream::connect(server.http.unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let value = answer.lines().find_map(|line| line.strip_prefix("truetick_turn_allocations "));
    value.unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
}

/// The server under judgement, over each transport.
fn uris(server: &Server) -> [String; 3] {
    [
        uri_udp(server),
        format!("turn:127.0.0.1:{}?transport=tcp", server.tcp[0].port()),
        format!("turns:127.0.0.1:{}", server.tls[0].port()),
    ]
}

#[test]
fn nothing_fails_here_over_any_transport() {
    let (certificates, folder) = (Certificates::new(), tempfile::tempdir().unwrap());
    let files = certificates.flags();
    let flags = [FLAGS, &["--listen-tls", "127.0.0.1:0"], &files.each_ref().map(String::as_str)].concat();
    let server = Server::start(&flags);
    let (credentials, authority) = (credentials(folder.path()), certificates.authority_file());
    let mut flags = credentials.each_ref().map(String::as_str).to_vec();
    flags.extend(["--authority-file", authority.to_str().unwrap(), "--hostile"]);
    thread::scope(|scope| {
        for uri in uris(&server) {
            let flags = &flags;
            scope.spawn(move || {
                let judged = judge(&uri, flags);
                assert_eq!(judged.with_result("failed"), Vec::<String>::new(), "{uri}: {:#?}", judged.rows);
                // SOFTWARE is off by default, and both families are there.
                assert_eq!(judged.ids("absent"), ["R036"], "{uri}: {:?}", judged.with_result("absent"));
                assert_eq!(judged.ids("not-judged"), ["R083"], "{uri}: {:?}", judged.with_result("not-judged"));
                assert!(judged.with_result("passed").len() > 140, "{}", judged.rows.len());
                assert_eq!(judged.status, Some(0));
            });
        }
    });
    assert_eq!(live(&server), 0, "every allocation is ended");
    server.stop();
}

#[test]
fn ctrl_c_ends_the_allocations() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(FLAGS);
    let credentials = credentials(folder.path());
    let mut child = start(&uri_udp(&server), &credentials.each_ref().map(String::as_str));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Relaying takes two allocations at a time.
    let is_relaying = |line: &str| line.contains(" R104 ");
    assert!(lines.by_ref().map(Result::unwrap).any(|line| is_relaying(&line)), "it ended too early");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{rest:#?}");
    assert!(rest.iter().any(|line| line.contains("not judged") && line.contains("interrupted")), "{rest:#?}");
    assert_eq!(live(&server), 0, "every allocation is ended");
    server.stop();
}

fn uri_udp(server: &Server) -> String {
    format!("turn:127.0.0.1:{}?transport=udp", server.listen[0].port())
}

#[test]
fn statuses_say_what_was_judged() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--no-tcp"]);
    let port = server.listen[0].port();
    // Without a credential, what needs one is not judged; TCP is absent.
    let judged = judge(&format!("turn:127.0.0.1:{port}"), &["--only", "R013,R016,R066"]);
    let row = |transport: &str, id: &str| {
        let is_it = |row: &&Value| row["transport"] == transport && row["id"] == id;
        judged.rows.iter().find(is_it).map(|row| text(row, "result"))
    };
    assert_eq!(row("udp", "R013").as_deref(), Some("passed"));
    assert_eq!(row("udp", "R066").as_deref(), Some("not-judged"));
    assert_eq!(row("tcp", "R016").as_deref(), Some("absent"));
    assert_eq!((row("tcp", "R013"), judged.status), (None, Some(0)));
    server.stop();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(judge(&format!("turn:127.0.0.1:{closed}?transport=tcp"), &[]).status, Some(2));
    let output = start("turn:127.0.0.1", &["--only", "R999"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--list"));
}

#[test]
fn a_secret_makes_the_credentials_of_both_users() {
    let folder = tempfile::tempdir().unwrap();
    let secret = written(folder.path(), "secret", "north\n");
    let secret = secret.to_str().unwrap();
    let server = Server::start(&["--listen", "127.0.0.1:0", "--auth-secret-file", secret]);
    let judged = judge(&uri_udp(&server), &["--secret-file", secret, "--user", "alice", "--only", "R066,R068,A40"]);
    assert_eq!((judged.ids("passed"), judged.status), (["A40", "R066", "R068"].map(str::to_owned).to_vec(), Some(0)));
    server.stop();
}

/// A connection that is accepted and not answered is a failure, not an absent transport.
#[test]
fn a_silent_listener_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("turn:{}?transport=tcp", listener.local_addr().unwrap());
    let judged = judge(&uri, &["--only", "R013"]);
    assert_eq!((judged.ids("failed"), judged.status), (vec!["R016".to_owned()], Some(1)), "{:#?}", judged.rows);
    // What only malformed messages show is not judged without --hostile.
    let output = start(&uri, &["--only", "A17"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--hostile"));
}

#[test]
fn markdown_has_a_row_for_each_check() {
    let server = Server::start(&["--listen", "127.0.0.1:0"]);
    let output = start(&uri_udp(&server), &["--format", "markdown", "--only", "R013,R066"]).wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "| id | section | level | check | udp |");
    assert!(lines[2].starts_with("| R013 | RFC 8489 section 6.3.1.1 | MUST | ") && lines[2].ends_with("| passed |"));
    assert!(lines[3].starts_with("| R066 | RFC 8656 section 5 | MUST | ") && lines[3].ends_with("| not judged |"));
    assert!(text.contains("R066 over udp, relays of UDP are served: not judged: no credential"), "{text}");
    server.stop();
}

/// What Debian's coturn 4.6.1 does otherwise, and why.
const COTURN: &[(&str, &str)] = &[
    ("A11", "of two XOR-PEER-ADDRESS it takes the last"),
    ("A14", "it reads attributes behind MESSAGE-INTEGRITY"),
    ("A15", "it reads attributes behind MESSAGE-INTEGRITY"),
    ("A23", "it answers classic STUN unless --no-stun-backward-compatibility is set"),
    ("A48", "a token that is used gets 404"),
    ("A63", "private and multicast peers are permitted by default"),
    ("R008", "an attribute that it does not expect in a Binding gets 420"),
    ("R056", "it looks at the nonce before the integrity, as RFC 5389 allowed"),
    ("R067", "CreatePermission and ChannelBind without an allocation get 400"),
    ("R073", "an unknown transport gets 400"),
    ("R076", "an unknown token gets 404"),
    ("R093", "an allocation lives on for a moment after lifetime zero, and a Refresh revives it"),
    ("R098", "for the same reason its five-tuple cannot allocate again at once"),
    ("R109", "it takes channel numbers up to 0x7FFF, as RFC 5766 allowed"),
    ("R110", "multicast peers are permitted by default"),
];

#[test]
fn coturn_fails_what_is_known() {
    let Some(program) = require(Requirement::Program, find_program("turnserver", "coturn")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let coturn = Coturn::start(&program, folder.path(), &["--user", OTHER]);
    let credentials = credentials(folder.path());
    let flags = credentials.each_ref().map(String::as_str);
    thread::scope(|scope| {
        for transport in ["udp", "tcp"] {
            let uri = format!("turn:127.0.0.1:{}?transport={transport}", coturn.port);
            scope.spawn(move || {
                let judged = judge(&uri, &flags);
                // Classic STUN is for UDP.
                let is_judged = |id: &&str| transport == "udp" || *id != "A23";
                let expected: Vec<_> = COTURN.iter().map(|(id, _)| *id).filter(is_judged).collect();
                assert_eq!(judged.ids("failed"), expected, "{:#?}", judged.with_result("failed"));
                assert_eq!(judged.status, Some(1));
                // It offers nothing of RFC 8489's and RFC 8656's additions; that is no failure.
                for id in ["A26", "R027", "R040", "R045", "R049", "R053", "R057", "R077", "R080", "R082", "R084"] {
                    assert!(judged.ids("absent").iter().any(|absent| absent == id), "{id}");
                }
            });
        }
    });
}
