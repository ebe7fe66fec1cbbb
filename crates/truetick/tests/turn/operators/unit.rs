//! The systemd unit: what it allows, and the samples under its user, its capability and its layout of files.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha1::Sha1;
use tempfile::TempDir;
use testkit::turn_client::Client;
use testkit::{Requirement, find_program, require};

use super::namespaces::Network;
use super::operated::wait;
use crate::certificates::Certificates;
use crate::stream_client::connect_tls;

/// Ten times the exposure that is allowed.
const EXPOSURE_MAX: &str = "20";

fn unit() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/truetick.service")
}

#[test]
fn the_unit_exposes_no_more_than_it_may() {
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let unit = unit();
    let arguments = ["security", "--offline=true", &threshold, "--no-pager", unit.to_str().unwrap()];
    let analyze = find_program("systemd-analyze", "systemd");
    let Some(analyze) = require(Requirement::Program, analyze) else { return };
    let output = Command::new(analyze).args(arguments).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("Overall exposure level"), "{report} {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{report}");
}

#[test]
fn what_the_unit_starts_is_a_command_that_truetick_knows() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("truetick.toml");
    fs::write(&config, "[turn]\nlisten = [\"127.0.0.1:0\"]\n").unwrap();
    let text = fs::read_to_string(unit()).unwrap();
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("ExecStart")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let (_, line) = command.split_once("=/usr/local/bin/truetick ").unwrap();
        let line = line.replace("/etc/truetick/truetick.toml", config.to_str().unwrap());
        let mut command = Command::new(crate::server::program());
        command.args(line.split(' '));
        if !line.contains("--check-config") {
            command.arg("--check-config");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }
}

/// No user of this machine, as the unit's user is none of the others.
const UID: u32 = 64_123;

/// The value of `key` in the unit.
fn value(key: &str) -> String {
    let text = fs::read_to_string(unit()).unwrap();
    let start = format!("{key}=");
    text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("no {key}")).to_owned()
}

/// The folder in the place of `/etc/truetick`, and the binary in the place of that in `/usr/local/bin`.
struct Installed {
    folder: TempDir,
    certificates: Certificates,
}

impl Installed {
    fn new() -> Self {
        let installed = Self { folder: tempfile::tempdir().unwrap(), certificates: Certificates::new() };
        fs::set_permissions(installed.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(crate::server::program(), installed.folder.path().join("truetick")).unwrap();
        let files = [("secrets", "north\n"), ("users", "livekit:a-password\n"), ("api-token", "a-token\n")];
        files.iter().for_each(|(name, text)| installed.write(name, text.as_bytes()));
        installed.write_certificate();
        installed
    }

    /// Writes a file as docs/turn-operators.md says: the unit's user owns it, with mode 600.
    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(UID), Some(UID)).unwrap();
    }

    fn write_certificate(&self) {
        self.write("fullchain.pem", &fs::read(self.certificates.cert()).unwrap());
        self.write("privkey.pem", &fs::read(self.certificates.key()).unwrap());
    }

    /// The command that the unit names under `key`, as the unit's user with `capabilities`.
    fn command(&self, key: &str, capabilities: &str) -> Command {
        let named = capabilities.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase());
        let list = named.fold("-all".to_owned(), |list, name| format!("{list},+{name}"));
        let folder = self.folder.path().to_str().unwrap();
        let line = value(key).replace("/usr/local/bin", folder).replace("/etc/truetick", folder);
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &UID.to_string(), "--regid", &UID.to_string(), "--clear-groups", "--no-new-privs"]);
        command.args(["--bounding-set", &list, "--inh-caps", &list, "--ambient-caps", &list]).args(line.split(' '));
        command
    }

    fn check(&self, capabilities: &str) -> Output {
        self.command("ExecStartPre", capabilities).output().unwrap()
    }
}

/// A server that the unit's command started; killed when dropped.
struct Served {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Served {
    fn start(installed: &Installed) -> Self {
        let mut command = installed.command("ExecStart", &value("AmbientCapabilities"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let served = Self { child, log };
        assert!(stdout.lines().any(|line| line.unwrap() == "ready"), "it ended before it was ready");
        served
    }

    /// Runs the unit's `ExecReload`, and returns the record of the reload.
    fn reload(&mut self) -> String {
        assert_eq!(value("ExecReload"), "/bin/kill -HUP $MAINPID");
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGHUP).unwrap();
        self.log.by_ref().lines().map(Result::unwrap).find(|line| line.contains("reloaded")).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Allocates with a time-limited credential of `secret`.
fn allocate(secret: &str) -> Result<(), u16> {
    let expiry = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 600;
    let name = format!("{expiry}:bob");
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(name.as_bytes());
    let password = BASE64.encode(mac.finalize().into_bytes());
    Client::new("127.0.0.1:3478".parse().unwrap(), &name, &password).allocate().map(drop)
}

/// The network of the samples, with the rights to make it and to be another user.
fn network() -> Result<Network, String> {
    find_program("setpriv", "util-linux")?;
    Network::make(&["u"], &["-n {u} addr add 192.0.2.10/32 dev lo"])
}

/// Every sample with TLS on port 443, which the samples advise.
#[test]
fn the_unit_starts_every_sample_with_tls_on_port_443() {
    let Some(network) = require(Requirement::NetNamespace, network()) else { return };
    let installed = Installed::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples");
    let names: Vec<_> = fs::read_dir(&samples).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    network.on(0, || {
        for name in names {
            let text = fs::read_to_string(samples.join(&name)).unwrap();
            let text = text.replace("/etc/truetick", installed.folder.path().to_str().unwrap());
            let port_443 = text.replace("\"0.0.0.0:5349\"", "\"0.0.0.0:5349\", \"0.0.0.0:443\"");
            assert_ne!(port_443, text, "{name:?}");
            installed.write("truetick.toml", port_443.as_bytes());
            let checked = installed.check(&value("AmbientCapabilities"));
            assert!(checked.status.success(), "{name:?}: {checked:?}");
            drop(Served::start(&installed));
            // Without the capability the check says so before the start does.
            let checked = installed.check("");
            let line = String::from_utf8(checked.stderr).unwrap();
            let expected = "cannot listen on tcp 0.0.0.0:443: Permission denied";
            assert!(checked.status.code() == Some(1) && line.contains(expected), "{name:?}: {line}");
        }
    });
}

#[test]
fn secrets_and_certificates_rotate_by_a_reload_under_the_unit() {
    let Some(network) = require(Requirement::NetNamespace, network()) else { return };
    let installed = Installed::new();
    let sample = include_str!("../../../../../deploy/samples/synapse.toml");
    installed
        .write("truetick.toml", sample.replace("/etc/truetick", installed.folder.path().to_str().unwrap()).as_bytes());
    network.on(0, || {
        let mut served = Served::start(&installed);
        let client = installed.certificates.client(rustls::ALL_VERSIONS, &[]);
        let shown = || {
            let stream = connect_tls("127.0.0.1:5349".parse().unwrap(), &client).unwrap();
            stream.conn.peer_certificates().unwrap()[0].to_vec()
        };
        let first = shown();
        assert_eq!((allocate("north"), allocate("south")), (Ok(()), Err(401)));
        installed.write("secrets", b"north\nsouth\n");
        let renewed = installed.certificates.renew();
        installed.write_certificate();
        let reported = served.reload();
        assert!(reported.contains("configuration reloaded"), "{reported}");
        assert!(shown() == renewed && renewed != first);
        wait("the new secret is valid", || allocate("south") == Ok(()));
        assert_eq!(allocate("north"), Ok(()));
        installed.write("secrets", b"south\n");
        served.reload();
        wait("the old secret is not", || allocate("north") == Err(401));
        assert_eq!(allocate("south"), Ok(()));
    });
}

/// What a start rejects, the check rejects.
#[test]
fn the_check_finds_what_keeps_the_server_from_starting() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let http = std::net::TcpListener::bind(busy).unwrap();
    let (port, busy) = (port.to_string(), busy.to_string());
    let one_port = format!("{0}-{0}", taken.local_addr().unwrap().port());
    for (flags, expected) in [
        (vec!["--listen", &port], "cannot listen on udp"),
        (vec!["--listen", "127.0.0.1:0", "--relay-ip", "192.0.2.200"], "cannot bind a relay socket on 192.0.2.200"),
        (vec!["--listen", "127.0.0.1:0", "--relay-ports", &one_port], "cannot bind a relay socket on 127.0.0.1"),
        (vec!["--listen", "127.0.0.1:0", "--http", &busy], "cannot listen on 127.0.0.1"),
    ] {
        for check in [&["--check-config"][..], &[]] {
            let mut command = Command::new(crate::server::program());
            let output = command.arg("turn").args(&flags).args(check).output().unwrap();
            let line = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(1) && line.contains(expected), "{flags:?} {check:?}: {line}");
        }
    }
    drop(http);
}
