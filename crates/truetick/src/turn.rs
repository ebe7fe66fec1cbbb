//! `truetick turn`: flags, banner and signals around the STUN/TURN server.

mod args;
mod database;
mod origin;
pub(crate) mod reloaded;
mod signals;
mod turnserver;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};

use anyhow::Context as _;
use control::{Admin, HttpSection, State, kept_report};
use libsystemd::daemon::{self, NotifyState};
use tt_os::{shutdown, stdout};
use tt_status::Reading;
use turn_server::{ExternalUsers, PassedSockets, PeerRange, RecordOutput, Running, Totals, TurnConfig, TurnSection};

use crate::config::Config;
use crate::reload::Requests;
use crate::{control_state, stun};
use database::Opened;
use origin::Origin;
use signals::SignalLoop;

pub use args::{Args, Only};
pub(crate) use origin::{Permissions, import_coturn, import_eturnal};
pub(crate) use turnserver::main as turnserver_main;

/// Runs until a signal stops it, and returns the exit status: 0, or 3 if allocations were left at the end of a drain.
///
/// # Errors
/// The server cannot start; the error names the flag or key.
pub fn run(args: Args, config: &Config) -> anyhow::Result<ExitCode> {
    let origin = match &args.coturn {
        Some(file) => Origin::coturn(Some(file.clone()), Vec::new(), config)?,
        None => Origin::Own(Box::new(config.clone())),
    };
    run_from(args, &origin)
}

/// The same with a configuration from `origin`.
fn run_from(mut args: Args, origin: &Origin) -> anyhow::Result<ExitCode> {
    let mut passed = passed_sockets()?;
    let loaded = origin.load()?;
    if let Some(asked) = stun::external_ips(&args.over(&loaded.config.turn), args.stun_server.as_deref())? {
        args.external_ip = asked;
    }
    let section = args.over(&loaded.config.turn);
    if args.only.print_config {
        let config = &loaded.config;
        let metrics_names = args.metrics_names.unwrap_or(config.http.metrics_names);
        let http = HttpSection { listen: args.http.or(config.http.listen), metrics_names, ..config.http.clone() };
        return print_config(&section, http, config).map(|()| ExitCode::SUCCESS);
    }
    let turn = loaded.turn(&section)?;
    let database = database::open(&section, &turn, loaded.database_password())?;
    let messages = database::message_output(&section, loaded.stats_database_password())?;
    let config = loaded.into_config();
    let token = control_state::api_token(args.api_token_file.as_deref(), &config.http)?;
    let report = config.http.report.as_deref().map(|path| kept_report::read(kept_report::FIGURES, path)).transpose()?;
    let http = args.http.or(config.http.listen);
    let passed_http = http.and_then(|addr| passed.take_http(addr));
    if args.only.check_config {
        turn_server::check(&turn, passed)?;
        let http = http.filter(|_| passed_http.is_none());
        http.map_or(Ok(()), |addr| check_http(addr).with_context(|| format!("cannot listen on {addr}")))?;
        let database = database.as_ref().map(Opened::summary).transpose()?;
        let lines = database.into_iter().chain(peer_lines(&turn)?).map(|line| line + "\n");
        stdout::ignore_broken_pipe(stdout::print(&lines.collect::<String>()).map_err(Into::into))?;
        return print_checked().map(|()| ExitCode::SUCCESS);
    }
    turn_server::reserve_descriptors(&turn)?;
    let (sender, events) = mpsc::channel();
    shutdown::send_signals(sender.clone()).context("turn: cannot catch signals")?;
    let running = turn_server::start_with(&turn, passed, messages)?;
    let follow = |database: Opened| database.follow(running.credential_sink()).context("turn: cannot start a thread");
    let database = database.map(follow).transpose()?;
    let state = State {
        machine: Some(control_state::machine()),
        turn: Some(running.reading()),
        database: database.as_ref().map(|database| Arc::new(database.reading()) as Reading<_>),
        admin: Some(Admin { allocations: running.allocation_admin(), operator: running.operator() }),
        reload: Some(Arc::new(Requests(sender))),
        token,
        allowed_hosts: config.http.allowed_hosts.clone(),
        metrics_names: args.metrics_names.unwrap_or(config.http.metrics_names),
        report,
        ..State::default()
    };
    let control = match (passed_http, http) {
        (Some(listener), _) => Some(control::start_on(listener, state)?),
        (None, addr) => addr.map(|addr| control::start(addr, state)).transpose()?,
    };
    warn(&section, &turn);
    let announce = if turn.cdr == Some(RecordOutput::Stdout) { announce_on_stderr } else { stdout::write };
    let banner = banner(&turn, &running, control.as_ref().map(control::Running::listen));
    let (workers, drain_timeout) = (turn.workers, turn.drain_timeout);
    // The passwords leave memory before the server says that it serves; only derived keys are kept.
    drop(turn);
    announce(&banner);
    notify_ready();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), workers, "serving");
    let database = database.as_ref();
    let signal_loop = SignalLoop { running: &running, args: &args, origin, started: &config, drain_timeout, database };
    let status = signal_loop.run(&events);
    // Restore the default handler: the next signal kills the process.
    drop(events);
    if let Some(control) = control {
        control.stop();
    }
    announce(&farewell(&running.stop()));
    Ok(status)
}

/// Logs what an operator should change.
fn warn(section: &TurnSection, turn: &TurnConfig) {
    for (former, name) in section.key_sources.deprecated() {
        tracing::warn!(former, name, "deprecated key in [turn]");
    }
    for overlap in turn.peer_overlaps() {
        tracing::warn!(overlap, "peer rules overlap");
    }
    if !section.user.is_empty() || section.realms.iter().any(|realm| !realm.user.is_empty()) {
        tracing::warn!("passwords on the command line or in the configuration are for tests only; use --user-file");
    }
}

/// Takes the sockets that systemd has bound, if a socket unit starts the server.
fn passed_sockets() -> anyhow::Result<PassedSockets> {
    let passed = tt_os::passed_sockets::take().context("turn")?;
    PassedSockets::new(passed.into_iter().map(|passed| (passed.name, passed.descriptor)))
}

/// Reports the start to systemd, for units with `Type=notify` such as that of Debian's coturn.
fn notify_ready() {
    if let Err(error) = daemon::notify(false, &[NotifyState::Ready]) {
        tracing::debug!(%error, "systemd was not notified");
    }
}

/// Prints `text` on standard error: standard output has the allocation records.
fn announce_on_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Checks that the control plane can listen on `addr`.
fn check_http(addr: SocketAddr) -> io::Result<()> {
    TcpListener::bind(addr).map(drop)
}

/// Returns the effective table of peer rules, and what overlaps in them.
fn peer_lines(turn: &TurnConfig) -> anyhow::Result<Vec<String>> {
    let table = turn.peer_table().context("turn: cannot read the addresses of this machine")?;
    let overlaps = turn.peer_overlaps().into_iter().map(|overlap| format!("warning: {overlap}"));
    Ok(table.into_iter().chain(overlaps).collect())
}

/// Prints `config` with the effective sections `turn` and `http`, and the table of peer rules as comments.
pub(crate) fn print_config(turn: &TurnSection, http: HttpSection, config: &Config) -> anyhow::Result<()> {
    let (section, turn) = TurnConfig::printed(turn)?;
    let mut config = config.clone();
    (config.turn, config.http) = (section, http);
    let comments = peer_lines(&turn)?.into_iter().map(|line| format!("# {line}\n"));
    let text = config.to_toml()? + "\n" + &comments.collect::<String>();
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(Into::into))
}

/// Prints the result of `--check-config`.
pub(crate) fn print_checked() -> anyhow::Result<()> {
    stdout::ignore_broken_pipe(stdout::print("the configuration is valid\n").map_err(Into::into))
}

/// Returns what the operator sees at the start.
fn banner(config: &TurnConfig, running: &Running, http: Option<SocketAddr>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for addr in running.listen() {
        let _ = writeln!(text, "listening on udp {addr}");
    }
    for listen in running.listens().iter().filter(|listen| !listen.starts_with("udp ")) {
        let _ = writeln!(text, "listening on {listen}");
    }
    let _ =
        writeln!(text, "realm {:?}, {}, {}", config.realm, credentials_of(config), counted(config.workers, "worker"));
    for realm in &config.realms {
        let _ = writeln!(text, "realm {:?}, {}", realm.name, counted_of(realm.users.len(), realm.auth_secrets.len()));
    }
    for relay in &config.relay_ips {
        let public =
            if relay.external == relay.bound { String::new() } else { format!(", advertised as {}", relay.external) };
        let ports = config.relay_ports;
        let _ = writeln!(text, "relaying on {} ports {}-{}{public}", relay.bound, ports.low, ports.high);
    }
    if let Some(max) = config.memory_bound() {
        let source = if config.memory_max.is_none() { " (90 % of memory.max of the control group)" } else { "" };
        let _ = writeln!(text, "no new allocations above {max} of resident memory{source}");
    }
    let ranges = |ranges: &[PeerRange]| ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        text,
        "peers denied by default: private, loopback, link-local, carrier-grade NAT, multicast, reserved and cloud \
         metadata addresses, also embedded in IPv6 addresses; all addresses of this host"
    );
    if !config.allow_own_hosts.is_empty() {
        let _ = writeln!(text, "peers allowed of this host: {}", ranges(&config.allow_own_hosts));
    }
    if !config.allow_peers.is_empty() {
        let _ = writeln!(text, "peers allowed: {}", ranges(&config.allow_peers));
    }
    if !config.deny_peers.is_empty() {
        let _ = writeln!(text, "further peers denied: {}", ranges(&config.deny_peers));
    }
    if let Some(addr) = http {
        let _ = writeln!(text, "http://{addr}");
    }
    let _ = writeln!(text, "ready");
    text
}

fn credentials_of(config: &TurnConfig) -> String {
    match (config.users.len(), config.auth_secrets.len()) {
        (0, 0) if config.external_users == ExternalUsers::Provided => "users of the database".into(),
        (0, 0) => "no users and no secrets: STUN Binding only".into(),
        (users, secrets) => counted_of(users, secrets),
    }
}

fn counted_of(users: usize, secrets: usize) -> String {
    match (users, secrets) {
        (users, 0) => counted(users, "user"),
        (0, secrets) => counted(secrets, "secret"),
        (users, secrets) => format!("{}, {}", counted(users, "user"), counted(secrets, "secret")),
    }
}

/// Returns `1 user`, `2 users`.
fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns what the operator sees at the end.
fn farewell(totals: &Totals) -> String {
    let datagrams = totals.accounting();
    let mut text = format!("datagrams: in {} = out {} + dropped {}", datagrams.input, datagrams.out, datagrams.dropped);
    for drop in datagrams.drops.iter().filter(|drop| drop.count > 0) {
        let _ = write!(text, ", {} {}", drop.name, drop.count);
    }
    if totals.kernel_lost() > 0 {
        let _ = write!(text, "; dropped by the kernel {}", totals.kernel_lost());
    }
    if totals.gso_batches_rejected() > 0 {
        let _ = write!(text, "; GSO batches rejected by the kernel {}", totals.gso_batches_rejected());
    }
    if totals.no_free_port() > 0 {
        let attempts = counted(usize::try_from(totals.no_free_port()).unwrap_or(usize::MAX), "attempt");
        let _ = write!(text, "; relay pool: no free port in {attempts}");
    }
    for (call, error, count) in totals.faults() {
        let _ = write!(text, "; {call} failed: {} {count}", error.name());
    }
    let _ = writeln!(text, "{}", if datagrams.closes { "" } else { " (does not add up)" });
    text
}

#[cfg(test)]
mod tests;
