//! `truetick turn`: the STUN/TURN server over UDP, TCP and TLS.
//!
//! [`start`] binds everything and starts one thread for each worker: a listener of its own on every address, a pool of
//! relay sockets and one engine. [`Running`] reads what they count and ends them.

mod credentials;
mod launch;
mod ledger;
mod listeners;
mod operated;
mod orders;
mod records;
mod relays;
mod reload;
mod settings;
mod streams;
mod supervisor;
mod worker;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tt_net::{IoFault, Waker};
use tt_turn::Shared;

use crate::config::{Config, HttpSection, TurnSection};
use crate::http::{self, snapshot};
use crate::output;
use crate::shutdown;
use crate::timing;
use launch::Blueprint;
use ledger::Published;
use operated::Operated;
use orders::Post;
use streams::Certificates;

pub use credentials::{AuthSecret, User};
pub(crate) use credentials::{secret_in, secret_text};
pub use launch::start;
pub use ledger::Totals;
pub use orders::{Cursor, Desk, Unanswered};
pub use settings::{Args, Only, RelayIp, TurnConfig};
pub use streams::{CertificateFiles, StreamLimits};

/// A running server. Dropping it without [`Running::stop`] leaves the threads to the end of the process.
#[derive(Debug)]
pub struct Running {
    listen: Vec<SocketAddr>,
    streams: Vec<StreamAddr>,
    certificates: Option<Arc<Certificates>>,
    stop: Arc<AtomicBool>,
    wakers: Vec<Waker>,
    threads: Vec<JoinHandle<()>>,
    posts: Arc<[Post]>,
    blueprint: Arc<Blueprint>,
    readings: Readings,
}

/// Where connections are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamAddr {
    /// The address and TCP port, with the port that the kernel chose where 0 was asked for.
    pub addr: SocketAddr,
    /// Whether plain TCP is taken there.
    pub tcp: bool,
    /// Whether TLS is taken there.
    pub tls: bool,
}

/// What the workers count, for any thread to read.
#[derive(Clone, Debug)]
struct Readings {
    workers: Arc<[Arc<Published>]>,
    listens: Vec<String>,
    realm: String,
    allocations_max: u32,
    sample_one_in: u32,
    shared: Arc<Shared>,
}

impl Running {
    /// Where it listens, each with the transport.
    #[must_use]
    pub fn listens(&self) -> &[String] {
        &self.readings.listens
    }

    /// The addresses that clients connect to.
    #[must_use]
    pub fn streams(&self) -> &[StreamAddr] {
        &self.streams
    }

    /// Reads the certificate's files again: handshakes from now on use what they hold, connections that live stay.
    ///
    /// # Errors
    /// A file that cannot be read or used, named; the certificate in force stays.
    pub fn reload_certificates(&self) -> anyhow::Result<()> {
        self.certificates.as_ref().map_or(Ok(()), |certificates| certificates.reload())
    }

    /// The addresses that clients send datagrams to, with the port that the kernel chose where 0 was asked for.
    #[must_use]
    pub fn listen(&self) -> &[SocketAddr] {
        &self.listen
    }

    /// What has been counted so far, at most 100 ms ago.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.readings.totals()
    }

    /// What the control plane shows of it.
    #[must_use]
    pub fn reading(&self) -> http::Reading<snapshot::Turn> {
        let readings = self.readings.clone();
        Arc::new(move || readings.snapshot())
    }

    /// Live allocations of all workers, for the control plane.
    #[must_use]
    pub fn desk(&self) -> Desk {
        Desk::new(Arc::clone(&self.posts))
    }

    /// Makes no allocation from now on; those that live go on.
    pub fn drain(&self) {
        self.readings.shared.drain();
    }

    /// Allocations that live at present.
    #[must_use]
    pub fn allocations(&self) -> u32 {
        self.readings.shared.allocations()
    }

    fn realm(&self) -> &str {
        &self.readings.realm
    }

    /// Puts the users, secrets and peer rules of `config` in force, in every worker or in none; nothing else of it.
    ///
    /// # Errors
    /// What the system lacks; what was in force stays.
    pub fn reload(&self, config: TurnConfig) -> anyhow::Result<()> {
        self.blueprint.reload(config, &self.posts)
    }

    /// Ends the workers after their present round, and returns what they have counted in all.
    pub fn stop(self) -> Totals {
        self.stop.store(true, Ordering::Relaxed);
        self.wakers.iter().for_each(Waker::wake);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a worker has panicked");
            }
        }
        self.readings.totals().settle()
    }
}

impl Readings {
    fn each(&self) -> impl Iterator<Item = &Published> {
        self.workers.iter().map(Arc::as_ref)
    }

    fn totals(&self) -> Totals {
        Totals::of(self.each())
    }

    fn snapshot(&self) -> snapshot::Turn {
        let totals = self.totals();
        snapshot::Turn {
            listens: self.listens.clone(),
            realm: self.realm.clone(),
            workers: self.workers.len(),
            ledger: totals.ledger(),
            stages: timing::stages(&ledger::stages(self.each()), self.sample_one_in),
            allocations: totals.allocations(self.allocations_max),
            streams: totals.streams(),
            draining: self.shared.is_draining(),
            workers_down: self.each().filter(|worker| worker.is_down.load(Ordering::Relaxed)).count(),
            panics: self.each().map(|worker| worker.panics.load(Ordering::Relaxed)).sum(),
            kernel_lost: totals.kernel_lost(),
            faults: totals.faults().into_iter().map(fault).collect(),
            errors: totals.errors(),
            refusals: totals.refusals(),
            denied: ledger::rules(self.each()),
        }
    }
}

fn fault((call, fault, count): (&'static str, IoFault, u64)) -> snapshot::Fault {
    snapshot::Fault { call, fault: fault.name(), count }
}

/// Runs until a signal ends it, and returns the status of the process: 0, or 3 where allocations were left at the end of
/// a drain.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(args: Args, config: &Config) -> anyhow::Result<ExitCode> {
    if args.only.print_config {
        let section = TurnConfig::printed(&args, &config.turn)?;
        let http = HttpSection { listen: args.http.or(config.http.listen), ..config.http.clone() };
        return print_config(section, http, config).map(|()| ExitCode::SUCCESS);
    }
    let turn = TurnConfig::new(&args, &config.turn)?;
    let token = http::ApiToken::of(args.api_token_file.as_deref(), config)?;
    let report = config.http.report.as_deref().map(http::KeptReport::read).transpose()?;
    if args.only.check_config {
        if let Some(files) = &turn.certificate {
            Certificates::read(files)?;
        }
        return tell_checked().map(|()| ExitCode::SUCCESS);
    }
    let signals = shutdown::signals().context("turn: cannot catch signals")?;
    let running = start(&turn)?;
    let desk = Some(http::Admin { desk: running.desk(), token });
    let state = http::State { turn: Some(running.reading()), admin: desk, report, ..http::State::default() };
    let control = args.http.or(config.http.listen).map(|addr| http::start(addr, state)).transpose()?;
    if !(args.user.is_empty() && config.turn.user.is_empty()) {
        tracing::warn!("a password on the command line or in the configuration is for trying out; use --user-file");
    }
    output::tell(&banner(&turn, &running, control.as_ref().map(http::Running::listen)));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), workers = turn.workers, "serving");
    let operated = Operated {
        running: &running,
        args: &args,
        file: config.turn.source.path(),
        config: config.clone(),
        drain_timeout: turn.drain_timeout,
    };
    // With it go the passwords: from here on there are keys.
    drop(turn);
    let status = operated.follow(&signals);
    // The next one stops the process at once.
    drop(signals);
    if let Some(control) = control {
        control.stop();
    }
    output::tell(&farewell(&running.stop()));
    Ok(status)
}

/// Prints `config` with `turn` and `http` in force.
pub(crate) fn print_config(turn: TurnSection, http: HttpSection, config: &Config) -> anyhow::Result<()> {
    let config = Config { turn, http, ..config.clone() };
    output::unless_unread(output::print(&config.to_toml()?).map_err(Into::into))
}

pub(crate) fn tell_checked() -> anyhow::Result<()> {
    output::unless_unread(output::print("the configuration is good\n").map_err(Into::into))
}

/// What a user must know at the start, a fact a line.
fn banner(config: &TurnConfig, running: &Running, http: Option<SocketAddr>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for addr in running.listen() {
        let _ = writeln!(text, "listening on udp {addr}");
    }
    for listen in running.listens().iter().filter(|listen| !listen.starts_with("udp ")) {
        let _ = writeln!(text, "listening on {listen}");
    }
    let _ = writeln!(text, "realm {:?}, {}, {} workers", config.realm, credentials_of(config), config.workers);
    for relay in &config.relay_ips {
        let told = if relay.external == relay.bound { String::new() } else { format!(", told as {}", relay.external) };
        let ports = config.relay_ports;
        let _ = writeln!(text, "relaying on {} ports {}-{}{told}", relay.bound, ports.low, ports.high);
    }
    let nets = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        text,
        "peers denied by default: private, loopback, link-local, carrier-grade NAT, multicast, reserved and cloud \
         metadata addresses, also inside of IPv6 ones"
    );
    if !config.allow_peers.is_empty() {
        let _ = writeln!(text, "peers allowed: {}", nets(&config.allow_peers));
    }
    if !config.deny_peers.is_empty() {
        let _ = writeln!(text, "peers denied too: {}", nets(&config.deny_peers));
    }
    if let Some(addr) = http {
        let _ = writeln!(text, "http://{addr}");
    }
    let _ = writeln!(text, "ready");
    text
}

fn credentials_of(config: &TurnConfig) -> String {
    match (config.users.len(), config.auth_secrets.len()) {
        (0, 0) => "nobody may relay (no user, no secret): Binding only".into(),
        (users, secrets) => format!("{users} users, {secrets} secrets"),
    }
}

fn farewell(totals: &Totals) -> String {
    let ledger = totals.ledger();
    let mut text = format!("datagrams: in {} = out {} + dropped {}", ledger.input, ledger.out, ledger.dropped);
    for drop in ledger.drops.iter().filter(|drop| drop.count > 0) {
        let _ = write!(text, ", {} {}", drop.name, drop.count);
    }
    if totals.kernel_lost() > 0 {
        let _ = write!(text, "; lost before they came in {}", totals.kernel_lost());
    }
    if totals.trains_refused() > 0 {
        let _ = write!(text, "; trains of datagrams that the kernel refused {}", totals.trains_refused());
    }
    for (what, fault, count) in totals.faults() {
        let _ = write!(text, "; {what} failed: {} {count}", fault.name());
    }
    let _ = writeln!(text, "{}", if ledger.closes { "" } else { " (does not close)" });
    text
}

#[cfg(test)]
mod tests;
