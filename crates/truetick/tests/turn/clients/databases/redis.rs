//! Redis: a server in a temporary folder, which the test starts and kills.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use testkit::{Requirement, find_program, require};

use super::{
    FURTHER, NO_FURTHER, ORIGIN, OWN_HOST, PEER_ROWS, PeerRow, TurnAdmin, follows_turnadmin,
    follows_turnadmin_in_realms, metric, origins_add_realms, peers_follow_realms, wait_failed,
};
use crate::operators::operated::{Operated, wait};

pub(super) const PASSWORD: &str = "password-of-redis";

/// A server with a password; killed when dropped.
pub(super) struct Redis {
    folder: TempDir,
    pub(super) port: u16,
    server: Child,
}

impl Redis {
    /// Skips the test without Redis.
    pub(super) fn require() -> Option<Self> {
        require(Requirement::Program, find_program("redis-server", "redis-server"))?;
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self::spawn(&folder, port);
        let redis = Self { folder, port, server };
        redis.wait();
        Some(redis)
    }

    fn spawn(folder: &TempDir, port: u16) -> Child {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--requirepass", PASSWORD]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        command.current_dir(folder.path()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn wait(&self) {
        wait("Redis answers", || self.ask(&["PING"]).trim() == "PONG");
    }

    pub(super) fn ask(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string(), "--no-auth-warning", "-a", PASSWORD, "-n", "3"]).args(arguments);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    pub(super) fn kill(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    pub(super) fn restart(&mut self) {
        self.server = Self::spawn(&self.folder, self.port);
        self.wait();
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.server.id() as i32), signal).unwrap();
    }

    /// The connection in coturn's words.
    fn require_admin(&self) -> Option<TurnAdmin> {
        let connection = format!("ip=127.0.0.1 dbname=3 password={PASSWORD} port={} connect_timeout=30", self.port);
        TurnAdmin::require("-N", &connection)
    }

    fn server(&self) -> Operated {
        self.server_with("")
    }

    fn server_with(&self, keys: &str) -> Operated {
        let keys = format!(
            "database = \"redis:ip=127.0.0.1 dbname=3 port={}\"\ndatabase_password_file = \"{{folder}}/password\"\n{keys}",
            self.port
        );
        let folder = Operated::configured("127.0.0.1:0", &keys);
        crate::operators::operated::write_secret(&folder, "password", PASSWORD);
        Operated::start_in(folder, &[])
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn redis_turnadmin_writes_and_clients_log_in() {
    let Some(redis) = Redis::require() else { return };
    let Some(admin) = redis.require_admin() else { return };
    admin.add("carol");
    let server = redis.server();
    follows_turnadmin(&server, &admin, "redis");
    assert!(!server.log().contains(PASSWORD), "{}", server.log());
}

#[test]
fn redis_realms_have_their_users_and_origins() {
    let Some(redis) = Redis::require() else { return };
    let Some(admin) = redis.require_admin() else { return };
    admin.add("carol");
    follows_turnadmin_in_realms(&redis.server_with(FURTHER), &admin);
}

#[test]
fn redis_origins_add_realms() {
    let Some(redis) = Redis::require() else { return };
    let Some(admin) = redis.require_admin() else { return };
    origins_add_realms(&redis.server_with(NO_FURTHER), &admin);
}

#[test]
fn redis_peers_count_for_users_of_their_realm() {
    let Some(redis) = Redis::require() else { return };
    let Some(admin) = redis.require_admin() else { return };
    admin.run_in("b.example", &["-O", "-o", ORIGIN]);
    admin.run_in("b.example", &["-a", "-u", "dave", "-p", "dave-secret"]);
    let change = |command: &str, (list, realm, range): PeerRow| {
        assert_eq!(redis.ask(&[command, &format!("turn/realm/{realm}/{list}-peer-ip"), range]).trim(), "1");
    };
    let (add, delete) = (|row: PeerRow| change("SADD", row), |row: PeerRow| change("SREM", row));
    PEER_ROWS.into_iter().for_each(add);
    peers_follow_realms(&redis.server_with(&format!("{OWN_HOST}{FURTHER}")), &add, &delete);
}

/// A server that is killed, hangs, and has a key of another type: users stay, and each fault has a name.
#[test]
fn redis_users_stay_while_the_server_is_away_or_hangs() {
    let Some(mut redis) = Redis::require() else { return };
    let Some(admin) = redis.require_admin() else { return };
    admin.add("carol");
    let server = redis.server();
    let up = || metric(&server, "up{kind=\"redis\"}");
    assert!(server.client("carol").log_in().is_ok());
    redis.kill();
    wait_failed(&server, "connect");
    assert!(server.client("carol").log_in().is_ok(), "killed");
    redis.restart();
    wait("it is back", || up() == Some(1.0));
    redis.signal(Signal::SIGSTOP);
    wait_failed(&server, "timeout");
    assert!(server.client("carol").log_in().is_ok(), "it hangs");
    redis.signal(Signal::SIGCONT);
    wait("it answers", || up() == Some(1.0));
    redis.ask(&["SET", "turn/realm/truetick/secret", "no set"]);
    wait_failed(&server, "schema");
    assert!(server.client("carol").log_in().is_ok(), "a key of another type");
    redis.ask(&["DEL", "turn/realm/truetick/secret"]);
    wait("the key is gone", || up() == Some(1.0));
    admin.run(&["-d", "-u", "carol"]);
    wait("carol is gone", || server.client("carol").log_in() == Err(401));
}

#[test]
fn redis_keys_with_nonsense_are_counted() {
    let Some(redis) = Redis::require() else { return };
    let key = |name: &str| format!("turn/realm/truetick/user/{name}/key");
    redis.ask(&["SET", &key(""), "aa"]);
    redis.ask(&["SET", &key(&"n".repeat(100_000)), "aa"]);
    redis.ask(&["SET", &key("hex"), "zz"]);
    redis.ask(&["HSET", &key("hash"), "a", "b"]);
    redis.ask(&["SET", &key("carol"), "775c26a20cdaa46e5b2494ac61cbea3b"]);
    redis.ask(&["SET", "turn/realm/other/user/dave/key", "775c26a20cdaa46e5b2494ac61cbea3b"]);
    redis.ask(&["SADD", "turn/realm/truetick/secret", "", "north"]);
    redis.ask(&["SADD", "turn/realm/truetick/denied-peer-ip", "11.0.0.1"]);
    redis.ask(&["SET", "turn/realm/truetick/total-quota", "many"]);
    let server = redis.server();
    let mut client = server.client("carol");
    client.allocate().unwrap();
    assert_eq!(client.permit("11.0.0.1:9".parse().unwrap()), 403);
    assert_eq!(client.permit("11.0.0.2:9".parse().unwrap()), 0);
    for (reason, count) in [
        ("name_missing", 1.0),
        ("name_too_long", 1.0),
        ("key_missing", 1.0),
        ("key_not_hex", 1.0),
        ("secret_invalid", 1.0),
        ("option_invalid", 1.0),
    ] {
        assert_eq!(metric(&server, &format!("rows_skipped{{reason=\"{reason}\"}}")), Some(count), "{reason}");
    }
}
