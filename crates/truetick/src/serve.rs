//! `truetick serve`: all engines and the page, on the configured feeds or on simulated venues.
//!
//! ```text
//! browsers --UDP, TCP---> TURN server                                  \
//! simulator --WebSocket-> market engine --cells-> gate <-ring- strategy -+-> control plane (HTTP)
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use control::{Admin, HttpSection, State, kept_report};
use market_feed::{FeedConfig, Feeds, MarketConfig, Publishing};
use risk_gate::LimitsFile;
use risk_gate::config::RiskSection;
use turn_server::{TurnConfig, TurnSection};

use crate::config::Config;
use crate::market::admin::Admin as FeedAdmin;
use crate::market::{Followed, connecting};
use crate::{control_state, results, simulated_venues as venues, turn};
use tt_os::clock::unix_now;
use tt_os::shutdown::Shutdown;
use tt_os::stdout;

mod addresses;
mod credential;
mod demonstrated;
mod reload;
mod strategy;
mod summary;
mod visitor_faults;

use credential::Credential;
pub(crate) use demonstrated::Demonstrated;
use sim::Fault;
use sim::faults::{self, Kind};
use strategy::{Flags, Starter, Strategy};
use visitor_faults::VisitorFaults;

/// One pass in this many is timed; traffic is low here, so more than elsewhere.
const SAMPLED_ONE_IN: u32 = 8;

/// The faults of `serve`: a lost update, a changed digit, two swapped updates, a repeated update.
const FAULTS: [Kind; 4] = [
    Kind::Update(Fault::Drop),
    Kind::Update(Fault::FlipDigit),
    Kind::Update(Fault::Swap),
    Kind::Update(Fault::Duplicate),
];

/// Flags of `truetick serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address of the page, metrics and JSON API [default: 127.0.0.1:9641]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Address of the TURN server, UDP and TCP; repeatable; port 0: any free port [default: 127.0.0.1:3478]
    #[arg(long, value_name = "ADDR:PORT")]
    turn_listen: Vec<SocketAddr>,
    /// Listen and relay on this machine's non-loopback addresses too
    #[arg(long, conflicts_with = "turn_listen")]
    lan: bool,
    /// Book updates per second and simulated venue, over all its instruments [default: 200]
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Instruments per simulated venue [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    instruments: Option<u32>,
    /// Least number of levels on each side of a simulated book; each venue is asked for a depth with them [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(60..=100_000))]
    levels: Option<u32>,
    /// Interval between injected faults of simulated venues (an update lost, repeated, swapped, or with a changed
    /// digit); 0: none [default: 15]
    #[arg(long, value_name = "SECONDS")]
    fault_every: Option<f64>,
    /// Order intents per second of the demonstration strategy
    #[arg(long, value_name = "PER_SECOND", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    intents: u32,
    /// Longest time until an order of the demonstration is filled or ends at its venue by itself
    #[arg(long, value_name = "SECONDS", default_value_t = 2.5)]
    order_lifetime: f64,
    /// Put the demonstration strategy into reduce mode when it is silent for this long [default: never]
    #[arg(long, value_name = "SECONDS")]
    silent_after: Option<f64>,
    /// Bench report (report.json) to show on the page [default: the newest in target/bench]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Seed of the simulated market and the strategy
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Actions on the configuration instead of serving.
    #[command(flatten)]
    only: turn::Only,
}

/// Everything that `serve` runs.
struct Running {
    control: control::Running,
    turn: turn_server::Running,
    /// Without configured feeds.
    simulated: Option<SimulatedVenues>,
    feeds: Feeds,
    starter: Starter,
}

/// Runs until a signal stops it.
///
/// # Errors
/// An invalid flag, an address in use, or a missing system resource.
pub fn run(args: Args, config: &Config) -> Result<()> {
    let silent_after = args.silent_after.map(Duration::try_from_secs_f64).transpose().context("--silent-after")?;
    let open_max = Duration::try_from_secs_f64(args.order_lifetime).context("--order-lifetime")?;
    let limits = limits(&config.risk)?;
    let configs = config.market.feeds()?;
    let simulation = if configs.is_empty() { Some(Simulation::new(&args)?) } else { no_simulation(&args)? };
    let http_listen = args.http.or(config.http.listen).unwrap_or(control::DEFAULT_LISTEN);
    if args.only.print_config {
        let report = args.report.clone().or_else(|| config.http.report.clone());
        let http = HttpSection { listen: Some(http_listen), report, ..config.http.clone() };
        return turn::print_config(&turn_section(&args, config)?, http, config);
    }
    let token = control_state::api_token(None, &config.http)?;
    let (args, credential) = (Arc::new(args), Arc::new(Credential::fresh()?));
    let turn_config = turn_config(&args, config, &credential)?;
    let report = report(&args, config)?;
    if args.only.check_config {
        return turn::print_checked();
    }
    turn_server::reserve_descriptors(&turn_config)?;
    let shutdown = Shutdown::on_signals().context("serve: cannot catch signals")?;

    let turn = turn_server::start(&turn_config)?;
    let simulated = simulation.map(Simulation::start).transpose()?;
    let configs = simulated.as_ref().map_or(Ok(configs), |simulated| venues::feeds(&simulated.venues))?;
    let publishing = Publishing { is_simulated: simulated.is_some(), candles: config.market.candles() };
    let (feeds, ids) = follow(configs, publishing)?;
    let flags = Flags { limits, intents_per_s: args.intents, open_max, silent_after, seed: args.seed };
    let starter = Starter::start(feeds.clone(), flags)?;
    let ice_servers = credential.ice_servers(&addresses::urls(&turn, args.lan));
    let mut state = state(&turn, &feeds, starter.strategy(), ice_servers.clone());
    state.simulated = simulated.is_some();
    let simulator = simulated.as_ref().map(|simulated| Arc::clone(&simulated.venues));
    state.simulator = simulator.map(|venues| Arc::new(VisitorFaults(venues)) as Arc<_>);
    // A real venue among simulated ones would be called simulated.
    state.feeds = simulated.is_none().then(|| Arc::new(FeedAdmin(feeds.clone())) as Arc<_>);
    state.admin = Some(Admin { allocations: turn.allocation_admin(), operator: turn.operator() });
    state.reload = reload::follow(reload::Parts {
        args,
        started: config.clone(),
        credential,
        turn: turn.reloader(),
        feeds: simulated.is_none().then(|| Followed::new(feeds.clone(), config, ids)),
    })?;
    state.token = token;
    state.report = report;
    state.why = kept_report::newest(kept_report::ANSWER, &results::folder());
    state.allowed_hosts.clone_from(&config.http.allowed_hosts);
    state.metrics_names = config.http.metrics_names;
    if simulated.is_some() {
        starter.wait(|| shutdown.is_requested());
    }
    // Simulated venues end with this function; nothing should miss them.
    let control = control::start(http_listen, state).inspect_err(|_| drop(feeds.stop()))?;
    let running = Running { control, turn, simulated, feeds, starter };
    let banner = summary::banner(&running, &turn_config, &ice_servers);
    // The passwords of `[turn]` leave memory; only derived keys are kept.
    drop(turn_config);
    stdout::write(&banner);
    shutdown.wait().context("serve: cannot wait for signals")?;
    stdout::write(&running.stop());
    Ok(())
}

impl Running {
    /// Stops everything, sources before sinks, and returns the final accounting.
    fn stop(self) -> String {
        let venues = self.simulated.map(|simulated| {
            simulated.faults.stop();
            simulated.venues
        });
        self.control.stop();
        let risk = self.starter.stop();
        let market = self.feeds.stop();
        // The last reference: the simulator's thread ends here.
        drop(venues);
        let turn = self.turn.stop().accounting();
        summary::farewell(&[turn, market.ledger, risk.ledger])
    }
}

/// The simulator's flags.
struct Simulation {
    venues: sim::Config,
    fault_pace: faults::Pace,
}

impl Simulation {
    fn new(args: &Args) -> Result<Self> {
        let rate_hz = args.rate.unwrap_or(200.0);
        ensure!(rate_hz.is_finite() && rate_hz >= 0.0, "--rate must be zero or more, not {rate_hz}");
        let every = faults::every(args.fault_every.unwrap_or(15.0))
            .map_err(|reason| anyhow::anyhow!("--fault-every {reason}"))?;
        let fault_pace = faults::Pace { every, silence: Duration::ZERO };
        let (instruments, levels) = (args.instruments.unwrap_or(3), args.levels);
        let venues = sim::Config { instruments, rate_hz, levels, seed: args.seed, ..sim::Config::default() };
        Ok(Self { venues, fault_pace })
    }

    fn start(self) -> Result<SimulatedVenues> {
        let venues = Arc::new(venues::start_with(self.venues)?);
        let (kinds, pace) = (FAULTS.to_vec(), self.fault_pace);
        let faults = faults::start(Arc::clone(&venues), &sim::Venue::ALL, kinds, pace, |_, _, _| {})?;
        Ok(SimulatedVenues { venues, faults })
    }
}

/// Venues on loopback, and the faults that befall them.
struct SimulatedVenues {
    venues: Arc<sim::Running>,
    faults: faults::Running,
}

/// Begins to follow the feeds, without waiting for a venue. Returns them with their numbers.
fn follow(configs: Vec<FeedConfig>, publishing: Publishing) -> Result<(Feeds, Vec<u32>)> {
    let publishing = Some(publishing);
    let market = MarketConfig { sample_one_in: SAMPLED_ONE_IN, publishing, ..MarketConfig::default() };
    let feeds = Feeds::new(market, |venue| {
        // Whoever reads nothing may still use the page.
        let _ = stdout::print(&connecting(venue, false));
    });
    let ids = configs.into_iter().map(|config| feeds.add(config)).collect::<Result<Vec<u32>>>()?;
    Ok((feeds, ids))
}

/// Reads the limits of the gate, if a file is configured. It keeps nothing over a restart.
fn limits(section: &RiskSection) -> Result<Option<LimitsFile>> {
    ensure!(
        *section == RiskSection { limits: section.limits.clone(), ..RiskSection::default() },
        "[risk]: journal, modes and their settings are for `truetick risk`: the gate of `serve` takes limits only"
    );
    section.limits.as_deref().map(LimitsFile::read).transpose()
}

/// Feeds are configured: flags of the simulator do not apply.
fn no_simulation(args: &Args) -> Result<Option<Simulation>> {
    let flags = [
        ("--rate", args.rate.is_some()),
        ("--instruments", args.instruments.is_some()),
        ("--levels", args.levels.is_some()),
        ("--fault-every", args.fault_every.is_some()),
    ];
    for (flag, is_present) in flags {
        ensure!(!is_present, "{flag} is for simulated venues, but [[market.feeds]] in --config has others");
    }
    Ok(None)
}

/// Reads the configured report, or the newest one of a bench.
fn report(args: &Args, config: &Config) -> Result<Option<Arc<str>>> {
    match args.report.as_ref().or(config.http.report.as_ref()) {
        Some(path) => kept_report::read(kept_report::FIGURES, path).map(Some),
        None => Ok(kept_report::newest(kept_report::FIGURES, &results::folder())),
    }
}

/// `[turn]` with the flags.
fn turn_section(args: &Args, config: &Config) -> Result<TurnSection> {
    let mut section = config.turn.clone();
    if args.lan {
        (section.listen, section.relay_ip) = addresses::lan()?;
    } else if !args.turn_listen.is_empty() {
        section.listen.clone_from(&args.turn_listen);
    } else if section.listen.is_empty() {
        section.listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, addresses::TURN_PORT))];
    }
    Ok(section)
}

/// The same, with a fresh random user.
fn turn_config(args: &Args, config: &Config, credential: &Credential) -> Result<TurnConfig> {
    let section = turn_section(args, config)?;
    for (key, is_set) in
        [("database", section.database.is_some()), ("stats_database", section.stats_database.is_some())]
    {
        let name = section.key_sources.name(key, 0);
        ensure!(!is_set, "{name} is for `truetick turn`: `serve` has no database");
    }
    let mut turn = TurnConfig::new(&section)?;
    turn.sample_one_in = SAMPLED_ONE_IN;
    turn.users.push(credential.user());
    Ok(turn)
}

fn state(
    turn: &turn_server::Running,
    feeds: &Feeds,
    strategy: Strategy,
    ice_servers: tt_status::turn::IceServers,
) -> State {
    let shown = feeds.clone();
    State {
        machine: Some(control_state::machine()),
        turn: Some(turn.reading()),
        market: Some(Arc::new(move || shown.snapshot(unix_now(), SAMPLED_ONE_IN))),
        market_streams: Some(feeds.streams()),
        risk: Some(strategy.reading()),
        gate: Some(Arc::new(strategy)),
        ice_servers: Some(ice_servers),
        ..State::default()
    }
}
