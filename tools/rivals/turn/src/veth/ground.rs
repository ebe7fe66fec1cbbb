//! The two namespaces, the veth devices between them, and the kernel's threads that receive in the server's.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, ensure};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::unistd::Pid;

use crate::rivals::Places;
use crate::stage::Addresses;

/// Where the server listens, and from where it relays.
pub(super) const LISTEN: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 2);
pub(super) const RELAY: Ipv4Addr = Ipv4Addr::new(10, 201, 0, 2);
/// The range of the peers.
pub(super) const PEERS: &str = "10.128.0.0/10";
/// The page of truetick in its namespace.
pub(super) const HTTP: &str = "127.0.0.1:9641";

pub(super) const ADDRESSES: Addresses = Addresses {
    asker: Ipv4Addr::new(10, 200, 0, 1),
    clients: 0x0a40_0000..0x0a80_0000,
    peers: 0x0a80_0000..0x0ac0_0000,
};

/// The devices of the server, which are also the beginnings of the names of the threads that receive for them.
const SERVERS: [&str; 2] = ["ttsc", "ttsp"];
const GENERATORS: [&str; 2] = ["ttgc", "ttgp"];

/// The namespaces; gone when dropped.
pub(super) struct Ground {
    generator: String,
    pub(super) server: String,
    cpus: [usize; 2],
    /// The object of the smallest program.
    pub(super) xdp_echo: Option<PathBuf>,
}

/// What a program has done, all with its name together.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramTime {
    pub(super) time_ns: u64,
    pub(super) runs: u64,
}

impl Ground {
    /// Makes the namespaces. `cpus`: of the generator, and of the server and of what receives for it.
    pub(super) fn make(places: &Places, cpus: [usize; 2]) -> anyhow::Result<Self> {
        let id = std::process::id();
        let xdp_echo = compile(places).inspect_err(|error| println!("xdp_echo is left out: {error:#}")).ok();
        let ground = Self { generator: format!("ttg{id}"), server: format!("tts{id}"), cpus, xdp_echo };
        let (g, s) = (&ground.generator, &ground.server);
        let [sc, sp] = SERVERS;
        let [gc, gp] = GENERATORS;
        for name in [g, s] {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
            sysctl(name, "net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0")?;
        }
        for (own, other, number, range) in [(gc, sc, 200, "10.64.0.0/10"), (gp, sp, 201, PEERS)] {
            ip(&format!("-n {g} link add {own} type veth peer name {other} netns {s}"))?;
            ip(&format!("-n {g} addr add 10.{number}.0.1/24 dev {own}"))?;
            ip(&format!("-n {s} addr add 10.{number}.0.2/24 dev {other}"))?;
            // A packet of a program needs a receiver with NAPI, and whole checksums.
            for (name, device) in [(g, own), (s, other)] {
                inside(name, &["ethtool", "-K", device, "gro", "on", "tx", "off"])?;
                ip(&format!("-n {name} link set {device} up"))?;
                let threaded = format!("echo 1 > /sys/class/net/{device}/threaded");
                inside(name, &["sh", "-c", &threaded])?;
            }
            if let Some(object) = &ground.xdp_echo {
                attach(g, own, object, "pass")?;
            }
            // Every address of the range is the generator's.
            ip(&format!("-n {g} route add local {range} dev lo"))?;
            ip(&format!("-n {s} route add {range} via 10.{number}.0.1"))?;
        }
        ground.pin_receivers()?;
        Ok(ground)
    }

    pub(super) const fn server_cpu(&self) -> usize {
        self.cpus[1]
    }

    /// Moves this thread, and those that it starts, to the generator.
    pub(super) fn enter(&self) -> anyhow::Result<()> {
        let namespace = File::open(format!("/run/netns/{}", self.generator))?;
        setns(namespace, CloneFlags::CLONE_NEWNET).context("cannot enter a network namespace")
    }

    /// Pins the kernel's threads that receive, which are new after a change of a device.
    pub(super) fn pin_receivers(&self) -> anyhow::Result<()> {
        for (devices, cpu) in [(GENERATORS, self.cpus[0]), (SERVERS, self.cpus[1])] {
            let mut set = CpuSet::new();
            set.set(cpu)?;
            for number in receivers(devices) {
                sched_setaffinity(Pid::from_raw(number), &set).context("cannot pin a thread of the kernel")?;
            }
        }
        Ok(())
    }

    /// CPU time of the threads that receive for the server.
    pub(super) fn receiving_ns(&self) -> anyhow::Result<u64> {
        let numbers = receivers(SERVERS);
        ensure!(numbers.len() >= SERVERS.len(), "no threaded NAPI: Linux 5.12 or later is needed");
        let read = |number: &i32| -> anyhow::Result<u64> {
            let text = fs::read_to_string(format!("/proc/{number}/schedstat"))?;
            text.split(' ').next().and_then(|word| word.parse().ok()).context("no schedstat")
        };
        numbers.iter().map(read).sum()
    }

    /// Payloads that truetick's kernel path has relayed, and its channels in the kernel.
    pub(super) fn kernel_path(&self) -> anyhow::Result<[u64; 2]> {
        let namespace = File::open(format!("/run/netns/{}", self.server))?;
        let ask = move || -> anyhow::Result<String> {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            let mut stream = TcpStream::connect(HTTP)?;
            let head = format!("GET /api/v1/turn/kernel-path HTTP/1.1\r\nHost: {HTTP}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = thread::spawn(ask).join().map_err(|_| anyhow::anyhow!("the asking thread panicked"))??;
        let number = |key: &str| number_after(&text, &format!("\"{key}\":"));
        let [to_peers, to_clients, open] = ["to_peers", "to_clients", "open"].map(number);
        let missing = || format!("no kernel path: {}", text.lines().next().unwrap_or_default());
        Ok([to_peers.with_context(missing)? + to_clients.with_context(missing)?, open.with_context(missing)?])
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for name in [&self.generator, &self.server] {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn number_after(text: &str, key: &str) -> Option<u64> {
    let (_, rest) = text.split_once(key)?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The kernel's threads that receive for `devices`.
fn receivers(devices: [&str; 2]) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let receives = |number: &i32| {
        let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        devices.iter().any(|device| name.starts_with(&format!("napi/{device}-")))
    };
    numbers.filter(receives).collect()
}

/// Time and runs of the loaded programs called `name`, if the kernel counts them (`kernel.bpf_stats_enabled`).
pub(super) fn programs(name: Option<&str>) -> Option<ProgramTime> {
    let output = Command::new("bpftool").args(["-j", "prog", "show", "name", name?]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let sum = |key: &str| -> u64 { text.split(&format!("\"{key}\":")).skip(1).filter_map(first_number).sum() };
    let (time_ns, runs) = (sum("run_time_ns"), sum("run_cnt"));
    (runs > 0).then_some(ProgramTime { time_ns, runs })
}

fn first_number(text: &str) -> Option<u64> {
    number_after(&format!("={text}"), "=")
}

fn compile(places: &Places) -> anyhow::Result<PathBuf> {
    let object = places.built.join("xdp_echo.o");
    let mut clang = Command::new("clang");
    clang.args(["-target", "bpf", "-mcpu=v2", "-O2", "-g", "-nostdinc", "-I"]);
    clang.arg(places.root.join("crates/tt-path/bpf")).arg("-c");
    clang.arg(places.root.join("tools/rivals/turn/rivals/xdp_echo/xdp_echo.c")).arg("-o").arg(&object);
    let status = clang.stdin(Stdio::null()).status().context("clang")?;
    ensure!(status.success(), "clang: {status}");
    Ok(object)
}

/// Runs a command in a namespace.
fn inside(name: &str, words: &[&str]) -> anyhow::Result<()> {
    run(Command::new("ip").args(["netns", "exec", name]).args(words))
}

/// Attaches the program of a section of `object`.
pub(super) fn attach(name: &str, device: &str, object: &Path, section: &str) -> anyhow::Result<()> {
    ip(&format!("-n {name} link set dev {device} xdp obj {} sec {section}", object.display()))
}

fn sysctl(name: &str, settings: &str) -> anyhow::Result<()> {
    inside(name, &[&["sysctl", "-q", "-w"][..], &settings.split(' ').collect::<Vec<_>>()].concat())
}

pub(super) fn ip(line: &str) -> anyhow::Result<()> {
    run(Command::new("ip").args(line.split(' ')))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let output = command.stdin(Stdio::null()).output().context("ip (Debian package iproute2)")?;
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "ip {}: {error}", words.join(" "));
    Ok(())
}
