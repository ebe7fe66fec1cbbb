//! `truetick serve`: all three engines and the page, with nothing to configure.
//!
//! ```text
//! browsers --UDP, TCP---> TURN server                                  \
//! simulator --WebSocket-> market engine --cells-> gate <-ring- strategy -+-> control plane (HTTP)
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use ipnet::IpNet;
use tt_model::Nanos;

use crate::config::{Config, HttpSection, TurnSection};
use crate::http::{self, snapshot};
use crate::market::MarketConfig;
use crate::shutdown::Shutdown;
use crate::{bench, faults, market, output, risk, turn};

mod addresses;
mod credential;
mod summary;
pub(crate) mod venues;

use credential::Credential;

/// One pass in so many is timed: more than elsewhere, since little happens here.
const SAMPLED_ONE_IN: u32 = 8;

/// Flags of `truetick serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address and TCP port of the page, the metrics and the JSON interfaces [default: 127.0.0.1:9641]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Address and port of the TURN server, UDP and TCP; may repeat. Port 0 takes a free one [default: 127.0.0.1:3478]
    #[arg(long, value_name = "ADDR:PORT")]
    turn_listen: Vec<SocketAddr>,
    /// The TURN server listens on this machine's other addresses, too, and relays on them
    #[arg(long, conflicts_with = "turn_listen")]
    lan: bool,
    /// Book updates per second of each simulated venue, all its instruments together
    #[arg(long, value_name = "PER_SECOND", default_value_t = 200.0)]
    rate: f64,
    /// Instruments of each simulated venue
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    instruments: u32,
    /// Seconds between two faults of a simulated venue (an update lost, doubled, swapped, or with a wrong digit); 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    fault_every: f64,
    /// Order intents per second of the demonstration strategy
    #[arg(long, value_name = "PER_SECOND", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    intents: u32,
    /// report.json of a bench on this machine, for the page's figures [default: the newest in target/bench]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Market and strategy follow from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What to do with the configuration instead of serving.
    #[command(flatten)]
    only: turn::Only,
}

/// Everything that runs.
struct Running {
    control: http::Running,
    turn: turn::Running,
    venues: Arc<sim::Running>,
    faults: faults::Running,
    market: market::Running,
    risk: risk::Running,
}

/// Runs until a signal ends it.
///
/// # Errors
/// A flag without sense, an address in use, or what the system lacks; one line.
pub fn run(args: Args, config: &Config) -> Result<()> {
    ensure!(args.rate.is_finite() && args.rate >= 0.0, "--rate must be zero or more, not {}", args.rate);
    let fault_pace = faults::Pace { every: faults::every(args.fault_every)?, silence: Duration::ZERO };
    let http_listen = args.http.or(config.http.listen).unwrap_or(http::DEFAULT_LISTEN);
    if args.only.print_config {
        let section = turn::TurnConfig::printed(&turn::Args::default(), &turn_section(&args, config)?)?;
        let report = args.report.clone().or_else(|| config.http.report.clone());
        let http = HttpSection { listen: Some(http_listen), report, ..config.http.clone() };
        return turn::print_config(section, http, config);
    }
    let token = http::ApiToken::of(None, config)?;
    let credential = Credential::fresh()?;
    let turn_config = turn_config(&args, config, &credential)?;
    let report = report(&args, config)?;
    if args.only.check_config {
        return turn::tell_checked();
    }
    let shutdown = Shutdown::on_signals().context("serve: cannot catch signals")?;

    let turn = turn::start(&turn_config)?;
    let venues = Arc::new(venues::start(args.instruments, args.rate, args.seed)?);
    let feeds = venues::feeds(&venues)?;
    let market = market::start(MarketConfig { feeds, sample_one_in: SAMPLED_ONE_IN, ..MarketConfig::default() })?;
    let risk = risk::start(risk_config(&args, &market.reader()))?;
    let ice_servers = credential.ice_servers(&addresses::urls(&turn, args.lan));
    let mut state = state(&turn, &market, &risk, ice_servers.clone());
    state.admin = Some(http::Admin { desk: turn.desk(), token });
    state.report = report;
    let control = http::start(http_listen, state)?;
    let faults = faults::start(Arc::clone(&venues), &venues::ALL, faults::SHOWN.to_vec(), fault_pace, |_, _, _| {})?;

    let running = Running { control, turn, venues, faults, market, risk };
    output::tell(&summary::banner(&running, &turn_config, &ice_servers));
    shutdown.wait().context("serve: cannot wait for signals")?;
    output::tell(&running.stop());
    Ok(())
}

impl Running {
    /// Ends everything, sources before sinks, and tells what it came to.
    fn stop(self) -> String {
        self.faults.stop();
        self.control.stop();
        let risk = self.risk.published();
        self.risk.stop();
        let reader = self.market.reader();
        self.market.stop();
        // The last holder: its thread ends here.
        drop(self.venues);
        let turn = self.turn.stop().ledger();
        summary::farewell(&[turn, reader.snapshot(now(), SAMPLED_ONE_IN).ledger, risk.snapshot().ledger])
    }
}

/// The report that was asked for, or else the newest one that a bench left.
fn report(args: &Args, config: &Config) -> Result<Option<http::KeptReport>> {
    match args.report.as_ref().or(config.http.report.as_ref()) {
        Some(path) => http::KeptReport::read(path).map(Some),
        None => Ok(http::KeptReport::newest(&bench::results_folder(), bench::REPORT_FILE)),
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

/// The same, and a user that nobody can know beforehand.
fn turn_config(args: &Args, config: &Config, credential: &Credential) -> Result<turn::TurnConfig> {
    let mut turn = turn::TurnConfig::new(&turn::Args::default(), &turn_section(args, config)?)?;
    turn.sample_one_in = SAMPLED_ONE_IN;
    turn.users.push(credential.user());
    // Two peers behind this relay reach each other through it, wherever it runs; nothing else is opened.
    turn.allow_peers.extend(turn.relay_ips.iter().flat_map(|relay| [relay.bound, relay.external]).map(IpNet::from));
    Ok(turn)
}

fn risk_config(args: &Args, reader: &market::Reader) -> risk::RiskConfig {
    let tradable = |listed: &market::Instrument| risk::Tradable {
        instrument: listed.id,
        symbol: listed.name.clone(),
        venue: listed.venue.name(),
        tick_size: listed.tick_size,
        lot_size: listed.lot_size,
    };
    let (quotes, listed) = (reader.clone(), reader.instruments().to_vec());
    risk::RiskConfig {
        tradables: reader.instruments().iter().map(tradable).collect(),
        quotes: Arc::new(move |instrument| {
            // The gate counts in the steps of the beginning: what has become finer is not traded.
            let known = listed.get(instrument.0 as usize)?;
            let top = quotes.steady(|list| {
                let now = list.get(instrument.0 as usize)?;
                let is_same = (now.tick_size, now.lot_size) == (known.tick_size, known.lot_size);
                quotes.top_of_book(instrument).filter(|_| is_same)
            })?;
            Some(risk::Quote {
                bid_px: top.bid.map_or(0, |level| level.px.0),
                ask_px: top.ask.map_or(0, |level| level.px.0),
                ts_recv: top.ts_recv,
                is_verified: top.standing.proof.is_verified(),
            })
        }),
        intents_per_s: args.intents,
        seed: args.seed,
    }
}

fn state(
    turn: &turn::Running,
    market: &market::Running,
    risk: &risk::Running,
    ice_servers: snapshot::IceServers,
) -> http::State {
    let (reader, published) = (market.reader(), risk.published());
    http::State {
        turn: Some(turn.reading()),
        market: Some(Arc::new(move || reader.snapshot(now(), SAMPLED_ONE_IN))),
        risk: Some(Arc::new(move || published.snapshot())),
        ice_servers: Some(ice_servers),
        admin: None,
        report: None,
    }
}

/// The Unix epoch's time, on the clock of the market engine's receive times.
fn now() -> Nanos {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}
