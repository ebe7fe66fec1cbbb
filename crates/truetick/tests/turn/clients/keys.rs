//! Users whose keys coturn's `turnadmin` makes: clients log in with the password, and the server never has it.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use testkit::turn_client::{ALLOCATE, Client, REQUESTED_TRANSPORT};

use super::uclient::{is_whole, require_coturn};
use crate::operators::operated::{Operated, wait, write_secret};
use crate::server::program;

const KEYS: &str = "rfc5766_channel_numbers = true\nallow_own_host = [\"127.0.0.0/8\"]";
/// The default realm of truetick.
const REALM: &str = "truetick";
const PASSWORD_ALGORITHMS: u16 = 0x8002;

/// Returns the key of a user as `turnadmin -k` prints it, `0x` and digits.
fn key(name: &str, realm: &str, password: &str) -> String {
    let output = Command::new("turnadmin").args(["-k", "-u", name, "-r", realm, "-p", password]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let key = text.lines().find(|line| line.starts_with("0x")).unwrap_or_else(|| panic!("no key: {text}"));
    key.trim_end().to_owned()
}

/// Starts a server with `users` as its file of users.
fn start(users: &str) -> Operated {
    let folder = Operated::configured("127.0.0.1:0", KEYS);
    write_secret(&folder, "users", users);
    Operated::start_in(folder, &[])
}

/// Two clients of coturn's relay to each other.
fn uclient(server: &Operated, user: &str, password: &str) -> Output {
    let mut uclient = Command::new("turnutils_uclient");
    uclient.args(["-u", user, "-w", password, "-c", "-y", "-m", "2", "-n", "20", "-l", "170", "-z", "10"]);
    uclient.args(["-p", &server.listen.port().to_string(), "127.0.0.1"]).output().unwrap()
}

fn log_in(server: SocketAddr, user: &str, password: &str) -> Result<(), u16> {
    Client::new(server, user, password).log_in()
}

/// Returns whether the server offers SHA-256: whether its 401 has PASSWORD-ALGORITHMS (RFC 8489 section 9.2.4).
fn offers_sha256(server: SocketAddr) -> bool {
    let transport = vec![(REQUESTED_TRANSPORT, vec![17, 0, 0, 0])];
    let answer = Client::new(server, "stranger", "unknown").request(ALLOCATE, transport);
    assert_eq!(answer.code, 401);
    answer.bytes(PASSWORD_ALGORITHMS).is_some()
}

#[test]
fn uclient_logs_in_with_the_password_of_a_key() {
    let Some(_) = require_coturn("turnadmin") else { return };
    let (ann, bob) = (key("ann", REALM, "ann-secret"), key("bob", REALM, "ann-secret"));
    let server = start(&format!("bob:bob-secret\nann:{ann}\n"));
    for (name, password) in [("ann", "ann-secret"), ("bob", "bob-secret")] {
        is_whole(&uclient(&server, name, password), 40);
    }
    assert!(!offers_sha256(server.listen));
    for wrong in ["bob-secret", "ann-secre", "nn-secret", &ann, &ann[2..], &bob] {
        assert_eq!(log_in(server.listen, "ann", wrong), Err(401), "{wrong}");
    }
    let report = uclient(&server, "ann", &ann);
    let report = String::from_utf8_lossy(&report.stdout);
    assert!(report.contains("Cannot complete Allocation"), "{report}");
    assert!(!server.log().contains(&ann[2..]), "{}", server.log());
}

#[test]
fn a_reload_replaces_a_password_by_a_key_and_a_key_by_a_password() {
    let Some(_) = require_coturn("turnadmin") else { return };
    let server = start("ann:ann-secret\nbob:bob-secret\n");
    let mut live = server.client("ann");
    live.allocate().unwrap();
    assert!(offers_sha256(server.listen));
    let reload = |users: &str| {
        server.rewrite("users", users);
        server.reload()
    };
    let logged_in = || ["ann-secret", "another"].map(|password| log_in(server.listen, "ann", password));

    let other = key("ann", REALM, "another");
    for (user, expected, offers) in [
        (format!("ann:{}", key("ann", REALM, "ann-secret")), [Ok(()), Err(401)], false),
        (format!("ann:{other}"), [Err(401), Ok(())], false),
        ("ann:ann-secret".to_owned(), [Ok(()), Err(401)], true),
        // Keys of another name and of another realm.
        (format!("ann:{}", key("bob", REALM, "ann-secret")), [Err(401); 2], false),
        (format!("ann:{}", key("ann", "example.org", "ann-secret")), [Err(401); 2], false),
        (format!("ann:{}", key("ann", REALM, "ann-secret")), [Ok(()), Err(401)], false),
    ] {
        let reported = reload(&format!("{user}\nbob:bob-secret\n"));
        assert!(reported.contains("configuration reloaded"), "{reported}");
        assert_eq!((logged_in(), offers_sha256(server.listen)), (expected, offers), "{user}");
        assert_eq!(log_in(server.listen, "bob", "bob-secret"), Ok(()));
        // A nonce says whether SHA-256 is offered: the one of before is stale after a change.
        live.challenge();
        assert_eq!(live.refresh(600), 0);
    }
    is_whole(&uclient(&server, "ann", "ann-secret"), 40);

    for wrong in [&other[..33], &format!("{other}0"), &other.replacen(&other[9..10], "g", 1)] {
        let reported = reload(&format!("bob:bob-secret\nann:{wrong}\n"));
        assert!(reported.contains("not reloaded") && reported.contains("users, line 2: user ann"), "{reported}");
        assert!(!reported.contains(&other[12..24]), "{reported}");
    }
    server.edit(|text| text.replace("workers = 2\n", "workers = 2\npassword_algorithms = \"sha256\"\n"));
    let reported = reload(&format!("ann:{other}\n"));
    let reason = "password_algorithms must be md5 with user ann: the key of this user is MD5";
    assert!(reported.contains("not reloaded") && reported.contains(reason), "{reported}");
    assert_eq!(logged_in(), [Ok(()), Err(401)], "the users of before");
}

#[test]
fn a_realm_has_users_with_keys_of_that_realm() {
    let Some(_) = require_coturn("turnadmin") else { return };
    let own = key("ann", "example.org", "ann-secret");
    let foreign = key("bob", REALM, "bob-secret");
    let realm = format!(
        "{KEYS}\n[[turn.realms]]\nname = \"example.org\"\norigins = [\"https://example.org\"]\n\
         user = [\"ann:{own}\", \"bob:{foreign}\"]\n"
    );
    let server = Operated::start(&realm, &[]);
    let of_realm = |user: &str| server.client(user).of_origin("https://example.org").log_in();
    assert_eq!((of_realm("ann"), of_realm("bob")), (Ok(()), Err(401)));
    // The default realm has the same names with passwords.
    assert_eq!((server.client("ann").log_in(), server.client("bob").log_in()), (Ok(()), Ok(())));
    assert!(!offers_sha256(server.listen));
}

/// Debian's coturn; ends when dropped.
pub(super) struct Coturn(Child);

impl Coturn {
    /// Starts it with a file and waits until it answers.
    pub(super) fn start(file: &Path, listen: SocketAddr) -> Self {
        let path = |end: &str| format!("{}.{end}", file.display());
        let mut command = Command::new("turnserver");
        command.arg("-c").arg(file).args(["--no-cli", "--no-stdout-log", "--simple-log"]);
        command.args(["--log-file", &path("log"), "--pidfile", &path("pid")]);
        let coturn = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        probe.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let binding = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
        wait("an answer of coturn", || {
            let _ = probe.send_to(&binding, listen);
            probe.recv(&mut [0; 512]).is_ok()
        });
        coturn
    }
}

impl Drop for Coturn {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The same file, for Debian's coturn and for truetick under the name `turnserver`.
#[test]
fn keys_of_coturns_file_serve_whom_they_serve_in_coturn() {
    let (Some(_), Some(_)) = (require_coturn("turnadmin"), require_coturn("turnserver")) else { return };
    let of = |name: &str| key(name, REALM, "secret");
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = SocketAddr::from(([127, 0, 0, 1], port));
    let (cid, eve, fay) = (of("cid"), of("eve"), of("fay"));
    let upper = format!("0x{}", of("bob")[2..].to_uppercase());
    let users = [
        format!("ann:{}", of("ann")),
        format!("bob:{upper}"),
        format!("cid:{cid}00zz"),
        format!("dan: {}", of("dan")),
        format!("eve:{}", &eve[..20]),
        format!("fay:{}zz{}", &fay[..20], &fay[22..]),
        format!("gil:0X{}", &of("gil")[2..]),
        "hal:secret".to_owned(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("turnserver.conf");
    let text = format!(
        "listening-ip=127.0.0.1\nlistening-port={port}\nlt-cred-mech\nrealm={REALM}\nallow-loopback-peers\n\
         no-tcp-relay\n{}",
        users.map(|user| format!("user={user}\n")).concat()
    );
    fs::write(&file, format!("{text}cli-password=unused\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let answers =
        || ["ann", "bob", "cid", "dan", "eve", "fay", "gil", "hal"].map(|name| log_in(listen, name, "secret"));
    let theirs = {
        let _coturn = Coturn::start(&file, listen);
        answers()
    };
    let (yes, no) = (Ok(()), Err(401));
    assert_eq!(theirs, [yes, yes, yes, yes, no, no, no, yes]);

    fs::write(&file, format!("{text}prometheus\nprometheus-address=127.0.0.1\nprometheus-port=0\n")).unwrap();
    let mut refused = Command::new(program());
    refused.args(["turn", "--password-algorithms", "sha256", "--check-config", "--coturn"]).arg(&file);
    let reason = "--password-algorithms must be md5 with user ann: the key of this user is MD5";
    let reported = String::from_utf8(refused.output().unwrap().stderr).unwrap();
    assert!(reported.contains(reason), "{reported}");
    let link = folder.path().join("turnserver");
    symlink(program(), &link).unwrap();
    let mut command = Command::new(link);
    command.arg("-c").arg(&file).arg("--no-cli");
    let server = Operated::start_command(command, folder);
    assert_eq!((server.listen, answers()), (listen, theirs));
    assert!(!offers_sha256(listen));
    assert_eq!(log_in(listen, "gil", &format!("0X{}", &of("gil")[2..])), Ok(()), "a plain password");

    // From a password to a key.
    server.rewrite(
        "turnserver.conf",
        &fs::read_to_string(&file).unwrap().replace("hal:secret", &format!("hal:{}", of("hal"))),
    );
    assert!(server.reload().contains("configuration reloaded"), "{}", server.log());
    assert_eq!(answers(), theirs);
}
