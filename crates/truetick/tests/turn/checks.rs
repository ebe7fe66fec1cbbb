//! `truetick check`, against this server and Debian's coturn.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use testkit::{Requirement, find_program, require};

use crate::certificates::Certificates;
use crate::coturn::Coturn;
use crate::server::{PASSWORD, Server, USER, program};

pub(crate) fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn truetick(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

/// Rows of a check as transport, step and outcome, its status, and the rows themselves.
fn check(uri: &str, more: &[&str]) -> (Vec<String>, Option<i32>, Vec<Value>) {
    let output = truetick(&[&["check", uri, "--json", "--messages", "20"], more].concat());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    let rows = document["rows"].as_array().unwrap().clone();
    let word = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let short = |row: &Value| format!("{} {} {}", word(row, "transport"), word(row, "check"), word(row, "outcome"));
    (rows.iter().map(short).collect(), output.status.code(), rows)
}

const STEPS: [&str; 6] = ["binding", "no credential", "wrong password", "allocate", "private peer", "relay"];

fn all_ok(transport: &str) -> Vec<String> {
    STEPS.iter().map(|step| format!("{transport} {step} ok")).collect()
}

#[test]
fn a_check_tries_every_transport() {
    let (certificates, folder) = (Certificates::new(), tempfile::tempdir().unwrap());
    let files = certificates.flags();
    let flags = ["--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"];
    let server = Server::start(&[&flags[..], &files.each_ref().map(String::as_str)].concat());
    let users = written(folder.path(), "users", &format!("{USER}:{PASSWORD}\n"));
    let users = ["--user-file", users.to_str().unwrap()];
    let port = server.listen[0].port();
    for (uri, transport) in [
        (format!("turn:127.0.0.1:{port}?transport=udp"), "udp"),
        (format!("turn:127.0.0.1:{}?transport=tcp", server.tcp[0].port()), "tcp"),
    ] {
        let (steps, status, rows) = check(&uri, &users);
        assert_eq!((steps, status), (all_ok(transport), Some(0)), "{rows:#?}");
        assert_eq!((rows[5]["lost"].as_u64(), rows[5]["sent"].as_u64()), (Some(0), Some(20)));
        assert!(rows[0]["candidate"].as_str().unwrap().starts_with("127.0.0.1:"));
        assert!(rows[0]["rtt_us_p50"].as_u64().unwrap() > 0 && rows[5]["rtt_us_p50"].as_u64().unwrap() > 0);
    }
    let uri = format!("turns:127.0.0.1:{}", server.tls[0].port());
    let authority = certificates.authority_file();
    let (steps, status, rows) = check(&uri, &[&users[..], &["--authority-file", authority.to_str().unwrap()]].concat());
    let certificate = vec!["tls certificate ok".to_owned()];
    assert_eq!((steps, status), ([certificate, all_ok("tls")].concat(), Some(0)), "{rows:#?}");
    assert!(rows[0]["days_left"].as_i64().unwrap() > 7);
    // Without the authority the certificate is not trusted.
    let (steps, status, _) = check(&uri, &users);
    assert_eq!((steps, status), (vec!["tls connect failed".to_owned()], Some(1)));
    // Without a credential nothing is relayed.
    let (steps, status, _) = check(&format!("turn:127.0.0.1:{port}?transport=udp"), &[]);
    assert_eq!(steps[2..], STEPS[2..].iter().map(|step| format!("udp {step} skipped")).collect::<Vec<_>>());
    assert_eq!(status, Some(0));
    server.stop();
}

#[test]
fn a_check_finds_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["--listen", "127.0.0.1:0", "--no-tcp", "--allow-peer", "10.0.0.0/8"]);
    let uri = format!("turn:127.0.0.1:{}?transport=udp", server.listen[0].port());
    let users = written(folder.path(), "users", &format!("{USER}:{PASSWORD}\n"));
    let (steps, status, rows) = check(&uri, &["--user-file", users.to_str().unwrap()]);
    assert_eq!((steps[4].as_str(), steps[5].as_str(), status), ("udp private peer failed", "udp relay ok", Some(1)));
    assert!(rows[4]["text"].as_str().unwrap().contains("10.255.255.254"), "{rows:#?}");
    let wrong = written(folder.path(), "wrong", &format!("{USER}:not {PASSWORD}\n"));
    let (steps, status, _) = check(&uri, &["--user-file", wrong.to_str().unwrap()]);
    assert_eq!((steps[3].as_str(), steps.len(), status), ("udp allocate failed", 4, Some(1)));
    let (steps, status, _) = check(&uri.replace("udp", "tcp"), &[]);
    assert_eq!((steps, status), (vec!["tcp connect failed".to_owned()], Some(1)));
    assert_eq!(truetick(&["check", "http://example.org"]).status.code(), Some(2));
    server.stop();
}

#[test]
fn a_check_makes_its_credential_from_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let secret = written(folder.path(), "secret", "north\n");
    let secret = secret.to_str().unwrap();
    let server = Server::start(&["--listen", "127.0.0.1:0", "--auth-secret-file", secret]);
    let uri = format!("turn:127.0.0.1:{}?transport=udp", server.listen[0].port());
    let (steps, status, _) = check(&uri, &["--secret-file", secret, "--user", "bob"]);
    assert_eq!((steps, status), (all_ok("udp"), Some(0)));
    server.stop();
}

/// coturn relays to private peers by default, and to loopback peers on request.
#[test]
fn a_check_of_coturn_finds_its_private_peers() {
    let Some(program) = require(Requirement::Program, find_program("turnserver", "coturn")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let coturn = Coturn::start(&program, folder.path(), &[]);
    let users = written(folder.path(), "users", &format!("{USER}:{PASSWORD}\n"));
    for transport in ["udp", "tcp"] {
        let uri = format!("turn:127.0.0.1:{}?transport={transport}", coturn.port);
        let (steps, status, rows) = check(&uri, &["--user-file", users.to_str().unwrap()]);
        let expected: Vec<_> =
            all_ok(transport).iter().map(|row| row.replace("private peer ok", "private peer failed")).collect();
        assert_eq!((steps, status), (expected, Some(1)), "{rows:#?}");
        let text = rows[4]["text"].as_str().unwrap();
        assert!(
            ["10.255.255.254", "192.168.255.254", "169.254.169.254", "127.0.0.1"].iter().all(|ip| text.contains(ip)),
            "{text}"
        );
    }
}
