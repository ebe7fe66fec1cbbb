//! The shipped program for an hour: `serve` with every engine, and calls through `turn`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::{Arguments, cargo};

/// Until memory is what it will be.
const WARMUP: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Growth of the resident set after the warm-up.
const GROWTH_KIB_MAX: u64 = 4 << 10;
/// Milliseconds between two payloads of a call, as coturn's client counts.
const PAYLOAD_EVERY_MS: u64 = 20;

/// The program's control plane, on a port that no other program of this machine should have.
pub(super) const HTTP: &str = "127.0.0.1:19641";
const TURN_PORT: &str = "13478";
/// Interval between two questions whether the program is ready.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// Clock ticks a second in `/proc`: Linux has the same number on all of its architectures.
const TICKS_PER_S: u64 = 100;
const START_MAX: Duration = Duration::from_secs(60);

/// A started program; ended when dropped.
pub(super) struct Program(Child);

impl Program {
    /// Builds `truetick`, starts it with `arguments` and waits until it is ready.
    fn start(root: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let build = ["build", "--release", "--locked", "--package", "truetick"];
        ensure!(cargo(root, &build).status().context("cargo")?.success(), "the program does not build");
        Self::start_at(root, arguments, HTTP.parse()?)
    }

    /// Starts the built `truetick` with `arguments` and its control plane at `http`, and waits until it is ready.
    pub(super) fn start_at(root: &Path, arguments: &[&str], http: SocketAddr) -> anyhow::Result<Self> {
        let mut command = Command::new(root.join("target/release/truetick"));
        let program = Self(command.args(arguments).args(["--http", &http.to_string()]).stdout(Stdio::null()).spawn()?);
        let started = Instant::now();
        while !get(http, "/readyz").is_ok_and(|status| status.contains(" 200 ")) {
            ensure!(started.elapsed() < START_MAX, "the program is not ready after {START_MAX:?}");
            thread::sleep(ASK_EVERY);
        }
        Ok(program)
    }

    /// Returns the processor time of all threads (`proc_pid_stat(5)`: fields 14 and 15).
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, after_name) = stat.rsplit_once(')').context("/proc/PID/stat")?;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = fields.get(11..13).context("fields")?.iter().map(|field| field.parse::<u64>());
        let ticks = ticks.sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_S))
    }

    pub(super) fn resident_kib(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The status line of a GET.
fn get(http: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(http)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response.lines().next().unwrap_or_default().to_owned())
}

pub(super) fn serve(root: &Path, arguments: &Arguments) -> anyhow::Result<String> {
    let program = Program::start(root, &["serve", "--turn-listen", "127.0.0.1:0"])?;
    let (started, length) = (Instant::now(), Duration::from_secs(arguments.minutes * 60));
    let (mut first, mut highest) = (None, 0);
    while started.elapsed() < length {
        thread::sleep(LOOK_EVERY);
        let ready = get(HTTP.parse()?, "/readyz").context("the program does not answer")?;
        ensure!(ready.contains(" 200 "), "after {:?}: {ready}", started.elapsed());
        if started.elapsed() >= WARMUP {
            let resident = program.resident_kib()?;
            let first = *first.get_or_insert(resident);
            highest = highest.max(resident);
            ensure!(resident <= first + GROWTH_KIB_MAX, "{first} KiB became {resident} KiB");
        }
    }
    Ok(format!(
        "{} min ready; {} KiB resident after the warm-up, {highest} KiB at most",
        arguments.minutes,
        first.unwrap_or(0)
    ))
}

pub(super) fn calls(root: &Path, arguments: &Arguments) -> anyhow::Result<String> {
    let listen = format!("127.0.0.1:{TURN_PORT}");
    let flags = ["turn", "--listen", &listen, "--user", "ann:secret", "--allow-own-host", "127.0.0.0/8"];
    let _program = Program::start(root, &flags)?;
    let payloads = arguments.minutes * 60 * 1_000 / PAYLOAD_EVERY_MS;
    let mut reports = Vec::new();
    for transport in [&[][..], &["-t"]] {
        let mut client = Command::new("turnutils_uclient");
        client.args(["-u", "ann", "-w", "secret", "-m", "4", "-l", "170", "-y", "-c", "-p", TURN_PORT]).args(transport);
        client.args(["-z", &PAYLOAD_EVERY_MS.to_string(), "-n", &payloads.to_string(), "127.0.0.1"]);
        let output = client.output().context("turnutils_uclient (Debian package coturn)")?;
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        let lost = report.lines().rev().find(|line| line.contains("Total lost packets"));
        let lost = lost.with_context(|| format!("no report: {report}"))?;
        ensure!(output.status.success() && lost.contains("packets 0 "), "{lost}");
        reports.push(lost.split("Total").nth(1).unwrap_or_default().trim().to_owned());
    }
    Ok(format!("4 calls of {} min over UDP, then over TCP: {}", arguments.minutes, reports.join("; ")))
}
