//! PostgreSQL: a server in a temporary folder, which the test starts, stops and kills.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use testkit::{Requirement, require};

use super::{
    FURTHER, NO_FURTHER, ORIGIN, OWN_HOST, PEER_ROWS, PeerRow, TurnAdmin, follows_turnadmin,
    follows_turnadmin_in_realms, metric, origins_add_realms, peers_follow_realms, wait_failed,
};
use crate::operators::operated::{Operated, wait};

/// The tables as coturn's documentation has them (schema.sql).
const SCHEMA: &str = "
    CREATE TABLE turnusers_lt (realm varchar(127) default '', name varchar(512), hmackey char(128), PRIMARY KEY (realm,name));
    CREATE TABLE turn_secret (realm varchar(127) default '', value varchar(256), primary key (realm,value));
    CREATE TABLE allowed_peer_ip (realm varchar(127) default '', ip_range varchar(256), primary key (realm,ip_range));
    CREATE TABLE denied_peer_ip (realm varchar(127) default '', ip_range varchar(256), primary key (realm,ip_range));
    CREATE TABLE turn_origin_to_realm (origin varchar(127),realm varchar(127),primary key (origin));
    CREATE TABLE turn_realm_option (realm varchar(127) default '', opt varchar(32), value varchar(128), primary key (realm,opt));";
/// The user of Debian's package: the server does not run as root.
const USER: &str = "postgres";

/// A server with coturn's tables that listens on a socket in its folder.
struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    server: Option<Child>,
}

impl Postgres {
    /// Skips the test without PostgreSQL.
    fn require() -> Option<Self> {
        let programs = require(Requirement::Program, programs())?;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut postgres = Self { folder, programs, server: None };
        let files = postgres.path("files");
        let made = postgres.command("initdb").args(["-D", &files, "-A", "trust", "-U", USER]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        postgres.serve();
        let made = postgres.sql(SCHEMA);
        assert!(made, "no tables");
        Some(postgres)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs `program` as an unprivileged user.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path());
        command
    }

    fn serve(&mut self) {
        let (files, folder) = (self.path("files"), self.folder.path().display().to_string());
        let mut command = self.command("postgres");
        command.args(["-D", &files, "-k", &folder, "-c", "listen_addresses=", "-F"]);
        self.server = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait("PostgreSQL answers", || self.sql("SELECT 1"));
    }

    fn sql(&self, sql: &str) -> bool {
        let mut psql = self.command("psql");
        let psql = psql.args(["-h", &self.folder.path().display().to_string(), "-U", USER, "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-q", "-c", sql]).output().unwrap().status.success()
    }

    /// The connection in libpq's words.
    fn connection(&self) -> String {
        format!("host={} user={USER} dbname=postgres", self.folder.path().display())
    }

    /// Signals every process of the server.
    fn signal(&self, signal: Signal) {
        let main = self.server.as_ref().unwrap().id();
        let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
        for id in children.split_whitespace().map(|id| id.parse().unwrap()).chain([main as i32]) {
            // A process may have ended meanwhile.
            let _ = kill(Pid::from_raw(id), signal);
        }
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Immediate shutdown: as after a crash.
            let _ = kill(Pid::from_raw(server.id() as i32), Signal::SIGQUIT);
            let _ = server.wait();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.signal(Signal::SIGCONT);
        }
        self.stop();
    }
}

/// The folder with Debian's newest PostgreSQL.
fn programs() -> Result<PathBuf, &'static str> {
    let versions =
        fs::read_dir("/usr/lib/postgresql").map_err(|_| "postgresql is not installed (Debian package postgresql)")?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    folders.filter(|folder: &PathBuf| Path::new(folder).join("initdb").exists()).max().ok_or("no initdb of postgresql")
}

fn server_of(postgres: &Postgres) -> Operated {
    server_with(postgres, "")
}

fn server_with(postgres: &Postgres, keys: &str) -> Operated {
    let keys = format!("database = \"postgres:{}\"\n{keys}", postgres.connection());
    Operated::start_in(Operated::configured("127.0.0.1:0", &keys), &[])
}

#[test]
fn postgres_turnadmin_writes_and_clients_log_in() {
    let Some(postgres) = Postgres::require() else { return };
    let Some(admin) = TurnAdmin::require("-e", &postgres.connection()) else { return };
    admin.add("carol");
    let server = server_of(&postgres);
    follows_turnadmin(&server, &admin, "postgres");
}

#[test]
fn postgres_realms_have_their_users_and_origins() {
    let Some(postgres) = Postgres::require() else { return };
    let Some(admin) = TurnAdmin::require("-e", &postgres.connection()) else { return };
    admin.add("carol");
    follows_turnadmin_in_realms(&server_with(&postgres, FURTHER), &admin);
}

#[test]
fn postgres_origins_add_realms() {
    let Some(postgres) = Postgres::require() else { return };
    let Some(admin) = TurnAdmin::require("-e", &postgres.connection()) else { return };
    origins_add_realms(&server_with(&postgres, NO_FURTHER), &admin);
}

#[test]
fn postgres_peers_count_for_users_of_their_realm() {
    let Some(postgres) = Postgres::require() else { return };
    let Some(admin) = TurnAdmin::require("-e", &postgres.connection()) else { return };
    admin.run_in("b.example", &["-O", "-o", ORIGIN]);
    admin.run_in("b.example", &["-a", "-u", "dave", "-p", "dave-secret"]);
    let add = |(list, realm, range): PeerRow| {
        assert!(postgres.sql(&format!("INSERT INTO {list}_peer_ip VALUES ('{realm}', '{range}')")));
    };
    let delete = |(list, realm, range): PeerRow| {
        let rows = format!("realm = '{realm}' AND ip_range = '{range}'");
        assert!(postgres.sql(&format!("DELETE FROM {list}_peer_ip WHERE {rows}")));
    };
    PEER_ROWS.into_iter().for_each(add);
    peers_follow_realms(&server_with(&postgres, &format!("{OWN_HOST}{FURTHER}")), &add, &delete);
}

/// A server that is killed, hangs, and loses a table: users stay, and each fault has a name.
#[test]
fn postgres_users_stay_while_the_server_is_away_or_hangs() {
    let Some(mut postgres) = Postgres::require() else { return };
    let Some(admin) = TurnAdmin::require("-e", &postgres.connection()) else { return };
    admin.add("carol");
    let server = server_of(&postgres);
    let up = || metric(&server, "up{kind=\"postgres\"}");
    assert!(server.client("carol").log_in().is_ok());
    postgres.stop();
    wait_failed(&server, "connect");
    assert!(server.client("carol").log_in().is_ok(), "killed");
    postgres.serve();
    wait("it is back", || up() == Some(1.0));
    postgres.signal(Signal::SIGSTOP);
    wait_failed(&server, "timeout");
    assert!(server.client("carol").log_in().is_ok(), "it hangs");
    postgres.signal(Signal::SIGCONT);
    wait("it answers", || up() == Some(1.0));
    assert!(postgres.sql("ALTER TABLE turn_secret RENAME TO other"));
    wait_failed(&server, "schema");
    assert!(server.client("carol").log_in().is_ok(), "without a table");
    assert!(postgres.sql("ALTER TABLE other RENAME TO turn_secret"));
    wait("the table is back", || up() == Some(1.0));
    admin.run(&["-d", "-u", "carol"]);
    wait("carol is gone", || server.client("carol").log_in() == Err(401));
}

/// A start without the server; then rows of nonsense, which coturn's schema allows and others.
#[test]
fn postgres_rows_with_nonsense_are_counted() {
    let Some(mut postgres) = Postgres::require() else { return };
    postgres.stop();
    let server = server_of(&postgres);
    wait_failed(&server, "connect");
    postgres.serve();
    assert!(postgres.sql(
        "ALTER TABLE turnusers_lt DROP CONSTRAINT turnusers_lt_pkey, ALTER name DROP NOT NULL, ALTER name TYPE text;
         INSERT INTO turnusers_lt VALUES ('truetick', NULL, 'aa'), ('truetick', repeat('n', 10000000), 'aa'),
            ('truetick', 'key', NULL), ('truetick', 'hex', 'zz'), ('truetick', '', 'aa'),
            ('truetick', 'carol', '775c26a20cdaa46e5b2494ac61cbea3b');
         INSERT INTO turn_secret VALUES ('truetick', ''), ('truetick', 'north');",
    ));
    wait("carol logs in", || server.client("carol").log_in().is_ok());
    for (reason, count) in [
        ("name_missing", 2.0),
        ("name_too_long", 1.0),
        ("key_missing", 1.0),
        ("key_not_hex", 1.0),
        ("secret_invalid", 1.0),
    ] {
        assert_eq!(metric(&server, &format!("rows_skipped{{reason=\"{reason}\"}}")), Some(count), "{reason}");
    }
}
