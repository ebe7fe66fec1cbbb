//! `truetick turn` as a process with its folder, its log, and signals.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use testkit::turn_client::Client;

/// How long anything may take that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const TOKEN: &str = "token-of-the-tests";

/// A server with two users, ann and bob, whose password is their name and `-secret`; killed when dropped.
pub(crate) struct Operated {
    child: Child,
    pub(crate) folder: TempDir,
    pub(crate) listen: SocketAddr,
    /// Where it takes TCP, and TLS with a certificate.
    pub(crate) tcp: Option<SocketAddr>,
    pub(crate) http: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Operated {
    /// Starts it with `keys` in `[turn]` in addition to the usual ones, and with global `flags`.
    pub(crate) fn start(keys: &str, flags: &[&str]) -> Self {
        Self::with("127.0.0.1:0", keys, flags)
    }

    /// Starts it on another address, with `keys` in `[turn]`.
    pub(crate) fn start_on(listen: &str, keys: &str) -> Self {
        Self::with(listen, keys, &[])
    }

    fn with(listen: &str, keys: &str, flags: &[&str]) -> Self {
        Self::start_in(Self::configured(listen, keys), flags)
    }

    /// Makes a folder with a configuration for `listen`, with `keys` in `[turn]`. In `keys`, `{folder}` is its path.
    pub(crate) fn configured(listen: &str, keys: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys.replace("{folder}", folder.path().to_str().unwrap());
        write_secret(&folder, "users", "ann:ann-secret\nbob:bob-secret\n");
        write_secret(&folder, "token", &format!("{TOKEN}\n"));
        let path = |name| folder.path().join(name).display().to_string();
        let text = format!(
            "[turn]\nlisten = [\"{listen}\"]\nuser_file = [\"{}\"]\nworkers = 2\n{keys}\n\
             [http]\nlisten = \"127.0.0.1:0\"\napi_token_file = \"{}\"\n",
            path("users"),
            path("token")
        );
        fs::write(path("truetick.toml"), text).unwrap();
        folder
    }

    /// The same in a folder that has everything.
    pub(crate) fn start_in(folder: TempDir, flags: &[&str]) -> Self {
        Self::start_by(Command::new(crate::server::program()), folder, flags)
    }

    /// The same after `lines` of a shell in a new mount namespace.
    pub(crate) fn start_after(lines: &str, folder: TempDir) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", &format!("{lines}\nexec \"$0\" \"$@\"")]);
        command.arg(crate::server::program());
        Self::start_by(command, folder, &[])
    }

    /// The same by `command`, which runs the program.
    pub(crate) fn start_by(mut command: Command, folder: TempDir, flags: &[&str]) -> Self {
        let config = folder.path().join("truetick.toml");
        command.args(flags).args(["turn", "--config", config.to_str().unwrap()]);
        Self::start_command(command, folder)
    }

    /// Starts `command`, which has all of its arguments, and keeps `folder` as long as it runs.
    pub(crate) fn start_command(mut command: Command, folder: TempDir) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut listen, mut tcp, mut http) = (None, None, None);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        loop {
            let mut line = String::new();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "it ended before it was ready");
            let line = line.trim_end();
            let after = |start: &str| line.strip_prefix(start).map(|addr| addr.parse::<SocketAddr>().unwrap());
            listen = listen.or_else(|| after("listening on udp "));
            tcp = tcp.or_else(|| after("listening on tcp "));
            http = http.or_else(|| after("http://"));
            if line == "ready" {
                break;
            }
        }
        let log = Arc::new(Mutex::new(String::new()));
        let (mut stderr, sink) = (child.stderr.take().unwrap(), Arc::clone(&log));
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                sink.lock().unwrap().push_str(std::str::from_utf8(&chunk[..length]).unwrap());
            }
            // What it still says on standard output at its end must not block it.
            let _ = stdout.read_to_end(&mut Vec::new());
        });
        let (listen, http) = (listen.unwrap(), http.unwrap());
        let server = Self { child, folder, listen, tcp, http, log, reader: Some(reader) };
        server.wait_log("serving", 1);
        server
    }

    pub(crate) fn client(&self, user: &str) -> Client {
        Client::new(self.listen, user, &format!("{user}-secret"))
    }

    /// Puts `text` in the place of a file of secrets.
    pub(crate) fn rewrite(&self, name: &str, text: &str) {
        write_secret(&self.folder, name, text);
    }

    /// The folder of the configuration and of the secrets.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Changes the configuration's text.
    pub(crate) fn edit(&self, change: impl FnOnce(String) -> String) {
        let path = self.folder.path().join("truetick.toml");
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
    }

    /// The process's number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log says `text` for the time `count`.
    pub(crate) fn wait_log(&self, text: &str, count: usize) {
        wait(&format!("{text:?} in the log"), || self.log().matches(text).count() >= count);
    }

    /// SIGHUP, and the record that says what came of it.
    pub(crate) fn reload(&self) -> String {
        let before = self.log().lines().count();
        self.signal(Signal::SIGHUP);
        let logged = || self.log().lines().skip(before).find(|line| line.contains("reloaded")).map(str::to_owned);
        wait("a record of the reload", || logged().is_some());
        logged().unwrap()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, token: Option<&str>) -> Answer {
        self.send(method, path, token, "")
    }

    /// The same with the token and a body.
    pub(crate) fn ask_with(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send(method, path, Some(TOKEN), body)
    }

    fn send(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.http).unwrap();
        let bearer = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let length = format!("Content-Length: {}\r\n", body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{bearer}{length}", self.http);
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer { status: head.split(' ').nth(1).unwrap().parse().unwrap(), body: body.to_owned() }
    }

    /// Its folder after its end.
    pub(crate) fn ended_with_folder(mut self) -> TempDir {
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        let (_, log) = self.ended();
        assert!(!log.contains("panicked"), "{log}");
        folder
    }

    /// Its status at its end, and the whole log.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let mut status = None;
        wait("its end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.reader.take().unwrap().join().unwrap();
        (status.unwrap(), self.log())
    }
}

impl Drop for Operated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn write_secret(folder: &TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Waits until `is_so`.
pub(crate) fn wait(what: &str, is_so: impl FnMut() -> bool) {
    assert!(testkit::wait_until(PATIENCE, is_so), "never: {what}");
}

/// A peer on loopback, on another address than the relay: that one is reachable by rule.
pub(crate) fn peer() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends `payload` on the channel and waits until it is at `peer`.
pub(crate) fn relays(client: &mut Client, number: u16, peer: &UdpSocket, payload: &[u8]) {
    client.send_channel(number, payload);
    let mut received = [0; 2_048];
    let (length, _) = peer.recv_from(&mut received).unwrap();
    assert_eq!(&received[..length], payload);
}
