//! What a soak does to the programs: players, each in another thread, again and again until the end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use super::program::{Program, ask, get};

pub(super) const TOKEN: &str = "a token for the soak only";
/// Interval at which a waiting player looks whether the soak is over.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes that a slow reader takes at a time, and how often.
const SLOW: (usize, Duration) = (256, Duration::from_millis(500));

/// What all players know.
pub(super) struct Stage {
    /// A copy of the program: another build during the soak is not played.
    pub(super) program: PathBuf,
    /// For the configuration, users and the token.
    pub(super) folder: PathBuf,
    /// The control planes of `serve`, `turn` and `market`.
    pub(super) serve: SocketAddr,
    pub(super) turn: SocketAddr,
    pub(super) market: SocketAddr,
    pub(super) turn_port: u16,
    pub(super) is_over: AtomicBool,
    /// How often each player has played, and what it could not do.
    pub(super) played: Mutex<BTreeMap<&'static str, Played>>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Played {
    pub(super) rounds: u64,
    pub(super) failed: u64,
    pub(super) last_failure: String,
}

/// A player: its name, the pause between two of its rounds, and a round.
pub(super) type Player = (&'static str, Duration, fn(&Stage, u64) -> anyhow::Result<()>);

pub(super) const PLAYERS: &[Player] = &[
    ("calls over UDP", Duration::from_secs(1), |stage, _| calls(stage, &[])),
    ("calls over TCP", Duration::from_secs(1), |stage, _| calls(stage, &["-t"])),
    ("checks with wrong passwords", Duration::from_secs(20), check),
    ("faults of venues", Duration::from_secs(3), fault),
    ("reloads", Duration::from_secs(15), reload),
    ("slow readers", Duration::from_secs(1), slow_reader),
    ("readers that come and go", Duration::from_secs(1), page),
    ("kills of the gate", Duration::from_secs(60), kill),
];

impl Stage {
    /// Plays rounds of a player until the soak is over.
    pub(super) fn play(&self, (name, pause, round): &Player) {
        for number in 0.. {
            let outcome = round(self, number);
            let is_over = self.is_over.load(Ordering::Relaxed);
            if !(is_over && outcome.is_err()) {
                self.count(name, outcome);
            }
            if self.rest(*pause) {
                return;
            }
        }
    }

    pub(super) fn count(&self, name: &'static str, outcome: anyhow::Result<()>) {
        let mut played = self.played.lock().expect("a player panicked");
        let played = played.entry(name).or_default();
        played.rounds += 1;
        if let Err(error) = outcome {
            played.failed += 1;
            played.last_failure = format!("{error:#}");
            eprintln!("{name}: {error:#}");
        }
    }

    /// Waits for `pause`, and returns true if the soak is over.
    pub(super) fn rest(&self, pause: Duration) -> bool {
        let started = Instant::now();
        while started.elapsed() < pause && !self.is_over.load(Ordering::Relaxed) {
            thread::sleep(LOOK.min(pause));
        }
        self.is_over.load(Ordering::Relaxed)
    }

    /// Writes the files that the programs read: users, the token, the configuration.
    pub(super) fn write_files(&self) -> anyhow::Result<String> {
        let (users, token) = (self.folder.join("users"), self.folder.join("token"));
        self.write_users(0)?;
        write_private(&token, TOKEN)?;
        let config = self.folder.join("truetick.toml");
        let text = format!(
            "[http]\napi_token_file = {token:?}\n[turn]\nuser_file = [{users:?}]\nallow_own_host = [\"127.0.0.0/8\"]\n\
             rfc5766_channel_numbers = true\n[market]\ncandle_seconds = 300\n"
        );
        // Candles fill their place within the first minutes: by default it takes four hours, which looks like a leak.
        fs::write(&config, text)?;
        Ok(config.display().to_string())
    }

    /// Users of which every reload changes one.
    fn write_users(&self, round: u64) -> anyhow::Result<()> {
        let others: String = (0..100).map(|user| format!("user{}:secret\n", user + round)).collect();
        write_private(&self.folder.join("users"), &format!("ann:secret\n{others}"))
    }
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    Ok(options.open(path)?.write_all(text.as_bytes())?)
}

fn authorized(http: SocketAddr, request: &str, body: &Value) -> anyhow::Result<String> {
    let headers = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
    let answer = ask(http, request, &headers, &body.to_string())?;
    ensure!(answer.status == 200, "{request}: {} {}", answer.status, answer.body);
    Ok(answer.body)
}

/// Four calls of ten seconds through the relay by coturn's client.
fn calls(stage: &Stage, transport: &[&str]) -> anyhow::Result<()> {
    let mut client = Command::new("turnutils_uclient");
    client.args(["-u", "ann", "-w", "secret", "-m", "4", "-l", "170", "-y", "-c", "-z", "20", "-n", "500"]);
    client.args(transport).args(["-p", &stage.turn_port.to_string(), "127.0.0.1"]);
    let output = client.output().context("turnutils_uclient (Debian package coturn)")?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let lost = report.lines().rev().find(|line| line.contains("Total lost packets"));
    let lost = lost.with_context(|| format!("no report: {}", String::from_utf8_lossy(&output.stderr)))?;
    ensure!(output.status.success() && lost.contains("packets 0 "), "{lost}");
    Ok(())
}

/// Every transport from outside, with wrong passwords and peers that are not allowed.
fn check(stage: &Stage, _: u64) -> anyhow::Result<()> {
    let mut check = Command::new(&stage.program);
    let uri = format!("turn:127.0.0.1:{}?transport=udp", stage.turn_port);
    check.args(["check", &uri, "--messages", "20", "--user-file"]).arg(stage.folder.join("users"));
    let output = check.stdin(Stdio::null()).output()?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    // The calls need what the check calls private: their peers are on this machine.
    let failed: Vec<_> =
        report.lines().filter(|line| line.contains("failed") && !line.contains("private peer")).collect();
    ensure!(failed.is_empty() && report.contains("wrong password  ok"), "{report}");
    Ok(())
}

/// The next fault for the next book.
fn fault(stage: &Stage, round: u64) -> anyhow::Result<()> {
    let json = |path: &str| -> anyhow::Result<Value> { Ok(serde_json::from_str(&get(stage.serve, path)?.body)?) };
    let (faults, books) = (json("/api/v1/simulator/faults")?, json("/api/v1/market/markets")?);
    let (faults, books) = (faults["faults"].as_array(), books.as_array());
    let (faults, books) = (faults.context("no faults")?, books.context("no books")?);
    ensure!(!faults.is_empty() && !books.is_empty(), "no faults or no books");
    let book = &books[(round / faults.len() as u64) as usize % books.len()];
    let fault = &faults[round as usize % faults.len()];
    let body = json!({ "venue": book["venue"], "symbol": book["venue_symbol"], "fault": fault });
    authorized(stage.serve, "POST /api/v1/simulator/faults", &body).map(drop)
}

/// Other users, in force.
fn reload(stage: &Stage, round: u64) -> anyhow::Result<()> {
    stage.write_users(round)?;
    authorized(stage.turn, "POST /api/v1/reload", &json!({})).map(drop)
}

/// A reader of every book who takes less than comes, for half a minute.
fn slow_reader(stage: &Stage, _: u64) -> anyhow::Result<()> {
    let mut stream = subscribe(stage.serve, "/ws/orderbook")?;
    let (started, mut buffer) = (Instant::now(), [0; SLOW.0]);
    while started.elapsed() < Duration::from_secs(30) && !stage.rest(SLOW.1) {
        // The server may end the stream of a reader that takes nothing.
        if stream.read(&mut buffer).is_ok_and(|length| length == 0) {
            return Ok(());
        }
    }
    Ok(())
}

/// The page and what it asks for, and a reader who leaves in the midst of a message.
fn page(stage: &Stage, round: u64) -> anyhow::Result<()> {
    let paths = ["/", "/metrics", "/api/v1/history"];
    let both = paths.iter().flat_map(|path| [(stage.serve, *path), (stage.turn, *path)]);
    for (http, path) in both.chain([(stage.serve, "/api/v1/market/status"), (stage.serve, "/api/v1/risk/verdicts")]) {
        let answer = get(http, path)?;
        ensure!(answer.status == 200, "{path}: {}", answer.status);
    }
    let path = ["/ws/orderbook?every=100ms", "/ws/trades", "/ws/ticker"][round as usize % 3];
    subscribe(stage.serve, path)?.read_exact(&mut [0; 1_000]).with_context(|| path.to_owned())
}

/// Opens a WebSocket (RFC 6455, section 4.1).
fn subscribe(http: SocketAddr, path: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(http)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let key = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: Upgrade\r\n{key}\r\n")?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    ensure!(head == *b"HTTP/1.1 101", "{path}: {}", String::from_utf8_lossy(&head));
    Ok(stream)
}

/// The gate refuses everything for a second.
fn kill(stage: &Stage, _: u64) -> anyhow::Result<()> {
    for mode in ["kill", "active"] {
        authorized(stage.serve, "POST /api/v1/risk/modes", &json!({ "scope": "global", "mode": mode }))?;
        stage.rest(Duration::from_secs(1));
    }
    Ok(())
}

/// Venues up to Kraken, in the order in which the simulator prints them.
const VENUES_READ: usize = 3;

/// Free TCP ports below the range from which the system gives ports to connections: none takes them between a kill and
/// the start after it.
fn lasting_ports() -> anyhow::Result<Vec<String>> {
    const LIMIT: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    let range = fs::read_to_string(LIMIT).context(LIMIT)?;
    let first: u16 = range.split_whitespace().next().context(LIMIT)?.parse().context(LIMIT)?;
    let free = (10_000..first).rev().filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let ports: Vec<_> = free.take(VENUES_READ).map(|port| port.to_string()).collect();
    ensure!(ports.len() == VENUES_READ, "no free ports below {first}");
    Ok(ports)
}

/// A simulated venue that ends by SIGKILL and comes back at the same addresses.
pub(super) struct Venue {
    program: Program,
    ports: Vec<String>,
    /// The WebSocket address of Kraken.
    pub(super) streams: String,
}

impl Venue {
    pub(super) fn start(path: &Path) -> anyhow::Result<Self> {
        let ports = lasting_ports()?;
        let mut venue = Self { program: Self::spawn(path, &ports)?, ports, streams: String::new() };
        venue.read_addresses()?;
        Ok(venue)
    }

    fn spawn(path: &Path, ports: &[String]) -> anyhow::Result<Program> {
        let mut arguments = vec!["simulate", "--json", "--instruments", "3", "--rate", "100"];
        for port in ports {
            arguments.extend(["--ports", port]);
        }
        Program::spawn(path, &arguments, Stdio::piped())
    }

    /// Reads a line for each venue, and leaves its faults unread.
    fn read_addresses(&mut self) -> anyhow::Result<()> {
        let mut lines = BufReader::new(self.program.child().stdout.take().context("no output")?).lines();
        let mut ports = Vec::new();
        while ports.len() < self.ports.len() || self.streams.is_empty() {
            let line: Value = serde_json::from_str(&lines.next().context("the simulator ended")??)?;
            let streams = line["streams"].as_str().context("no address")?;
            let port = streams.split(['/', ':']).nth(4).context("no port")?;
            ports.push(port.to_owned());
            if line["venue"] == "kraken" {
                streams.clone_into(&mut self.streams);
            }
        }
        self.ports = ports;
        Ok(())
    }

    /// Kills it and starts it again; the follower must notice, and have proven books again within a minute.
    pub(super) fn kill(&mut self, stage: &Stage) -> anyhow::Result<()> {
        self.program.kill();
        self.program = Self::spawn(&stage.program, &self.ports)?;
        self.read_addresses()?;
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(60) {
            if stage.rest(Duration::from_secs(1)) || get(stage.market, "/readyz")?.status == 200 {
                return Ok(());
            }
        }
        bail!("not ready a minute after a venue was killed: {}", get(stage.market, "/readyz")?.body)
    }
}
