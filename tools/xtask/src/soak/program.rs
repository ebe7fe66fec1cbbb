//! The shipped program under watch.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// Interval between two questions whether the program is ready.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// Clock ticks a second in `/proc`: Linux has the same number on all of its architectures.
const TICKS_PER_S: u64 = 100;
const START_MAX: Duration = Duration::from_secs(60);
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A started program; ended when dropped.
#[derive(Debug)]
pub(crate) struct Program(Child);

impl Program {
    /// Builds the release build of `truetick`, and returns its path.
    pub(crate) fn build(root: &Path) -> anyhow::Result<PathBuf> {
        let build = ["build", "--release", "--locked", "--package", "truetick"];
        let status = Command::new("cargo").args(build).current_dir(root).status().context("cargo")?;
        ensure!(status.success(), "the program does not build");
        Ok(root.join("target/release/truetick"))
    }

    /// Starts `truetick` at `path` with `arguments`.
    pub(super) fn spawn(path: &Path, arguments: &[&str], stdout: Stdio) -> anyhow::Result<Self> {
        let child = Command::new(path).args(arguments).stdout(stdout).spawn();
        Ok(Self(child.with_context(|| path.display().to_string())?))
    }

    /// Starts `truetick` at `path` with `arguments` and its control plane at `http`, and waits until it is ready.
    pub(crate) fn start_at(path: &Path, arguments: &[&str], http: SocketAddr) -> anyhow::Result<Self> {
        ensure!(get(http, "/readyz").is_err(), "another program serves {http}");
        let address = http.to_string();
        let mut program = Self::spawn(path, &[arguments, &["--http", &address]].concat(), Stdio::null())?;
        let started = Instant::now();
        while !get(http, "/readyz").is_ok_and(|answer| answer.status == 200) {
            let ended = program.0.try_wait()?;
            ensure!(ended.is_none(), "the program ended before it was ready: {ended:?}");
            ensure!(started.elapsed() < START_MAX, "the program is not ready after {START_MAX:?}");
            thread::sleep(ASK_EVERY);
        }
        Ok(program)
    }

    /// Kills it, and returns when its ports are free.
    pub(super) fn kill(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Returns the number of the process.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// The child itself, for its output.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Returns the processor time of all threads.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(u64::from(self.0.id()))
    }

    pub(crate) fn resident_kib(&self) -> anyhow::Result<u64> {
        self.status("VmRSS")
    }

    /// A number of `/proc/PID/status` (`proc_pid_status(5)`), memory in KiB.
    pub(super) fn status(&self, name: &str) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let line = line.with_context(|| name.to_owned())?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    pub(super) fn descriptors(&self) -> anyhow::Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.0.id()))?.count())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the processor time of all threads of a process (`proc_pid_stat(5)`: fields 14 and 15).
pub(crate) fn processor_time(process: u64) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, after_name) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = fields.get(11..13).context("fields")?.iter().map(|field| field.parse::<u64>());
    let ticks = ticks.sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_S))
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

pub(crate) fn get(http: SocketAddr, path: &str) -> anyhow::Result<Answer> {
    ask(http, &format!("GET {path}"), "", "")
}

/// Sends a request, `METHOD PATH`, with additional header lines and a body, and reads the answer.
pub(super) fn ask(http: SocketAddr, request: &str, headers: &str, body: &str) -> anyhow::Result<Answer> {
    let mut stream = TcpStream::connect(http)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let length = body.len();
    let fixed = format!("Host: {http}\r\nConnection: close\r\nContent-Length: {length}\r\n");
    write!(stream, "{request} HTTP/1.1\r\n{fixed}{headers}\r\n{body}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no head")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Answer { status, body: body.to_owned() })
}
