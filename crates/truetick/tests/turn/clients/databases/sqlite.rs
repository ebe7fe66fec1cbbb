//! SQLite: the file that `turnadmin` makes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::{Requirement, find_program, require};

use super::{
    FURTHER, NO_FURTHER, ORIGIN, PEER_ROWS, PeerRow, REALM, TurnAdmin, follows_turnadmin, follows_turnadmin_in_realms,
    metric, origins_add_realms, peers_follow_realms, wait_failed,
};
use crate::operators::operated::{Operated, peer, wait};

/// A folder with a configuration that names `turndb` in it, and its path.
fn configured(keys: &str) -> (tempfile::TempDir, PathBuf) {
    let keys = format!("database = \"sqlite:{{folder}}/turndb\"\nallow_own_host = [\"127.0.0.0/8\"]\n{keys}");
    let folder = Operated::configured("127.0.0.1:0", &keys);
    let file = folder.path().join("turndb");
    (folder, file)
}

fn require_admin(file: &Path) -> Option<TurnAdmin> {
    TurnAdmin::require("-b", file.to_str().unwrap())
}

/// The program `sqlite3` on the file.
fn sqlite3(file: &Path, sql: &str) {
    let output = Command::new("sqlite3").arg(file).arg(sql).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn require_sqlite3() -> Option<PathBuf> {
    require(Requirement::Program, find_program("sqlite3", "sqlite3"))
}

#[test]
fn sqlite_turnadmin_writes_and_clients_log_in() {
    let (folder, file) = configured("");
    let Some(admin) = require_admin(&file) else { return };
    admin.add("carol");
    let server = Operated::start_in(folder, &[]);
    follows_turnadmin(&server, &admin, "sqlite");
}

#[test]
fn sqlite_realms_have_their_users_and_origins() {
    let (folder, file) = configured(FURTHER);
    let Some(admin) = require_admin(&file) else { return };
    admin.add("carol");
    let server = Operated::start_in(folder, &[]);
    follows_turnadmin_in_realms(&server, &admin);
}

#[test]
fn sqlite_origins_add_realms() {
    let (folder, file) = configured(NO_FURTHER);
    let Some(admin) = require_admin(&file) else { return };
    admin.add("carol");
    origins_add_realms(&Operated::start_in(folder, &[]), &admin);
}

#[test]
fn sqlite_users_relay_with_uclient() {
    let (folder, file) = configured("rfc5766_channel_numbers = true\n");
    let Some(admin) = require_admin(&file) else { return };
    let Some(_) = require(Requirement::Program, find_program("turnutils_uclient", "coturn")) else { return };
    admin.add("carol");
    let server = Operated::start_in(folder, &[]);
    let port = server.listen.port().to_string();
    let mut uclient = Command::new("turnutils_uclient");
    uclient.args(["-y", "-c", "-u", "carol", "-w", "carol-secret", "-m", "2", "-n", "20", "-l", "170", "-z", "10"]);
    let output = uclient.args(["-p", &port, "127.0.0.1"]).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("tot_send_msgs=40, tot_recv_msgs=40"), "{report}");
}

#[test]
fn sqlite_peers_and_options_of_the_realm_count() {
    let (folder, file) = configured("");
    let Some(admin) = require_admin(&file) else { return };
    let Some(_) = require_sqlite3() else { return };
    admin.add("carol");
    admin.run(&["-g", "--user-quota=1"]);
    sqlite3(
        &file,
        &format!(
            "INSERT INTO denied_peer_ip VALUES ('{REALM}', '11.0.0.0-11.0.0.255'), ('elsewhere', '12.0.0.1');
             INSERT INTO allowed_peer_ip VALUES ('{REALM}', '11.0.0.7'), ('{REALM}', '10.0.0.1');"
        ),
    );
    let server = Operated::start_in(folder, &[]);
    let mut client = server.client("carol");
    client.allocate().unwrap();
    assert_eq!(server.client("carol").log_in(), Err(486), "user-quota of the realm");
    let mut permit = |peer: &str| client.permit(SocketAddr::new(peer.parse().unwrap(), 9));
    let codes = ["11.0.0.6", "11.0.0.7", "10.0.0.1", "10.0.0.2", "12.0.0.1"].map(&mut permit);
    assert_eq!(codes, [403, 0, 0, 403, 0]);
    sqlite3(&file, &format!("INSERT INTO denied_peer_ip VALUES ('{REALM}', '12.0.0.1')"));
    wait("the new rule", || permit("12.0.0.1") == 403);
    admin.run(&["-g", "--user-quota=2"]);
    wait("the new quota", || server.client("carol").log_in().is_ok());
    assert_eq!(client.refresh(600), 0, "what lives goes on");
}

#[test]
fn sqlite_peers_count_for_users_of_their_realm() {
    let (folder, file) = configured(FURTHER);
    let Some(admin) = require_admin(&file) else { return };
    let Some(_) = require_sqlite3() else { return };
    admin.run_in("b.example", &["-O", "-o", ORIGIN]);
    admin.run_in("b.example", &["-a", "-u", "dave", "-p", "dave-secret"]);
    let add = |(list, realm, range): PeerRow| {
        sqlite3(&file, &format!("INSERT INTO {list}_peer_ip VALUES ('{realm}', '{range}')"));
    };
    let delete = |(list, realm, range): PeerRow| {
        sqlite3(&file, &format!("DELETE FROM {list}_peer_ip WHERE realm = '{realm}' AND ip_range = '{range}'"));
    };
    PEER_ROWS.into_iter().for_each(add);
    peers_follow_realms(&Operated::start_in(folder, &[]), &add, &delete);
}

/// A file that goes away, comes back, is no database, and lacks a table: users stay, and each fault has a name.
#[test]
fn sqlite_users_stay_while_the_file_is_away() {
    let (folder, file) = configured("");
    let Some(admin) = require_admin(&file) else { return };
    let Some(_) = require_sqlite3() else { return };
    let server = Operated::start_in(folder, &[]);
    wait_failed(&server, "connect");
    assert!(server.client("ann").log_in().is_ok(), "a start without a database has the users of the file");
    admin.add("carol");
    wait("carol logs in", || server.client("carol").log_in().is_ok());
    server.wait_log("the database is back", 1);
    let aside = file.with_extension("aside");
    for (kind, damage) in [
        ("connect", (|file: &Path| assert!(!file.exists())) as fn(&Path)),
        ("query", |file: &Path| fs::write(file, [7; 8_192]).unwrap()),
        ("schema", |file: &Path| sqlite3(file, "CREATE TABLE other (a);")),
    ] {
        let up = || metric(&server, "up{kind=\"sqlite\"}");
        fs::rename(&file, &aside).unwrap();
        damage(&file);
        wait_failed(&server, kind);
        wait(kind, || up() == Some(0.0));
        assert!(server.client("carol").log_in().is_ok(), "{kind}: the last users stay");
        fs::rename(&aside, &file).unwrap();
        wait("it is back", || up() == Some(1.0));
    }
    admin.run(&["-d", "-u", "carol"]);
    wait("carol is gone", || server.client("carol").log_in() == Err(401));
    assert_eq!(server.log().matches("the database cannot be read").count(), 4, "one record each: {}", server.log());
}

/// `sqlite3` that holds an exclusive lock until it is dropped.
struct Lock(Child);

impl Lock {
    fn new(file: &Path) -> Self {
        let mut child = Command::new("sqlite3").arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"BEGIN EXCLUSIVE;\nSELECT 'locked';\n").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "locked\n");
        Self(child)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sqlite_users_stay_while_another_program_has_locked_the_file() {
    let (folder, file) = configured("");
    let Some(admin) = require_admin(&file) else { return };
    let Some(_) = require_sqlite3() else { return };
    admin.add("carol");
    let server = Operated::start_in(folder, &[]);
    let lock = Lock::new(&file);
    wait_failed(&server, "busy");
    assert!(server.client("carol").log_in().is_ok());
    // No client waits for the lock: a relay works meanwhile.
    let (mut client, peer) = (server.client("carol"), peer());
    client.allocate().unwrap();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    crate::operators::operated::relays(&mut client, 0x4000, &peer, b"while it is locked");
    drop(lock);
    admin.add("dave");
    wait("dave logs in", || server.client("dave").log_in().is_ok());
}

#[test]
fn sqlite_logins_can_be_users_or_secrets_only() {
    for (logins, user, secret) in [("users", Ok(()), Err(401)), ("secrets", Err(401), Ok(()))] {
        let (folder, file) = configured(&format!("database_logins = \"{logins}\""));
        let Some(admin) = require_admin(&file) else { return };
        admin.add("carol");
        admin.run(&["-s", "north"]);
        let server = Operated::start_in(folder, &[]);
        let codes = (server.client("carol").log_in(), super::limited(&server, "north", "x").log_in());
        assert_eq!(codes, (user, secret), "{logins}");
    }
}

#[test]
fn sqlite_check_config_reads_the_database() {
    let (folder, file) = configured("");
    let Some(admin) = require_admin(&file) else { return };
    let check = || {
        let config = folder.path().join("truetick.toml");
        let flags = ["turn", "--config", config.to_str().unwrap(), "--check-config"];
        let output = Command::new(crate::server::program()).args(flags).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    let (status, text) = check();
    assert!(status == Some(1) && text.contains("truetick.toml, line 5: turn.database: connect: cannot open"), "{text}");
    admin.add("carol");
    let (status, text) = check();
    assert!(status == Some(0) && text.contains("database: 1 user, 0 secrets"), "{text}");
    admin.run_in("c.example", &["-O", "-o", ORIGIN]);
    admin.run_in("c.example", &["-a", "-u", "dave", "-p", "dave-secret"]);
    assert!(check().1.contains("database: 2 users, 0 secrets"), "a realm that an origin names");
}
