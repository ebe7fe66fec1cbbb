//! This program as a child: the server that is measured, and the echo server that it is compared with.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::reader::{Kind, Reader};
use crate::harness::cpus;

/// The book is served within this time, or something is wrong.
const SERVED_MAX: Duration = Duration::from_secs(30);

/// A child that ends with this bench.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[String]) -> anyhow::Result<(Process, BufReader<ChildStdout>)> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    let child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = Process(child.context("cannot start a child")?);
    let output = child.0.stdout.take().context("a child without output")?;
    Ok((child, BufReader::new(output)))
}

/// `truetick market --http`.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    pub(super) address: SocketAddr,
}

impl Server {
    pub(super) fn start(arguments: &[String]) -> anyhow::Result<Self> {
        let (process, mut output) = start(arguments)?;
        let address = loop {
            let mut line = String::new();
            ensure!(output.read_line(&mut line)? > 0, "the server has ended");
            let page: Option<serde_json::Value> = serde_json::from_str(&line).ok();
            let page = page.as_ref().and_then(|line| line["page"].as_str());
            if let Some(host) = page.and_then(|page| page.strip_prefix("http://")) {
                break host.trim_end_matches('/').parse().context("the server's address")?;
            }
        };
        // What it prints from here on is read, so that it does not wait.
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            let _ = std::io::copy(&mut output, &mut std::io::sink());
        })?;
        Ok(Self { process, address })
    }

    /// Waits until the book is there and follows its venue.
    pub(super) fn wait_for_book(&self) -> anyhow::Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < SERVED_MAX {
            let Ok(mut reader) = Reader::connect(self.address) else {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            while let Some(message) = reader.wait_for(Duration::from_millis(500))? {
                if message.kind == Kind::Delta {
                    return Ok(());
                }
            }
        }
        bail!("no update of the book within {} s", SERVED_MAX.as_secs())
    }

    /// Time on a CPU of all its threads so far, user and system.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.process.0.id()))?;
        // Fields 14 and 15 of proc_pid_stat(5); the second is the name, in brackets.
        let (_, fields) = text.rsplit_once(") ").context("no such fields")?;
        let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        let per_second = sysconf(SysconfVar::CLK_TCK)?.context("no clock of processes")?;
        Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
    }
}

/// The echo server.
#[derive(Debug)]
pub(super) struct Echo {
    _process: Process,
    pub(super) reader: Reader,
}

impl Echo {
    pub(super) fn start(arguments: &[String]) -> anyhow::Result<Self> {
        let (process, mut output) = start(arguments)?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the echo server printed {line:?}"))?;
        Ok(Self { _process: process, reader: Reader::connect(address)? })
    }
}

/// Lets this thread run on every CPU of the process again.
pub(super) fn unpin() -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    cpus::available().into_iter().try_for_each(|cpu| set.set(cpu))?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
