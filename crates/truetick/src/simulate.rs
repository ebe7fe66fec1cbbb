//! `truetick simulate`: simulated venues on loopback.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use sim::Venue;

use crate::config::Config;
use sim::faults::{self, Kind, Pace};
use tt_os::shutdown::Shutdown;
use tt_os::stdout;

/// Flags of `truetick simulate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Instruments per venue
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    instruments: u32,
    /// Book updates per second and venue, over all its instruments
    #[arg(long, value_name = "PER_SECOND", default_value_t = 200.0)]
    rate: f64,
    /// Least number of levels on each side of a book, as far as there are prices [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(60..=100_000))]
    levels: Option<u32>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// Ports, in the order in which the venues are printed; 0: any free port
    #[arg(long, value_name = "PORT", num_args = 1..=Venue::COUNT)]
    ports: Vec<u16>,
    /// Fault to inject at each venue in turn; repeatable: drop, duplicate, reorder, delay, truncate, half-open,
    /// checksum, flip-digit, reset, silence, disconnect, stale-snapshot, partial-snapshot, refuse-snapshots
    #[arg(long, value_name = "KIND")]
    fault: Vec<Kind>,
    /// Seconds between two faults
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, requires = "fault")]
    fault_every: f64,
    /// Duration of the fault `silence`
    #[arg(long, value_name = "SECONDS", default_value_t = 75.0, requires = "fault")]
    silence: f64,
    /// Topic that every venue accepts and does not send; repeatable: book, best-levels, trades, ticker, mark-price,
    /// candles
    #[arg(long, value_name = "TOPIC", value_parser = ["book", "best-levels", "trades", "ticker", "mark-price", "candles"])]
    withhold: Vec<String>,
    /// Seed of the simulated market
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// Runs until a signal stops it.
///
/// # Errors
/// An invalid rate, or an address in use.
pub fn run(args: Args, _config: &Config) -> anyhow::Result<()> {
    anyhow::ensure!(args.rate.is_finite() && args.rate >= 0.0, "--rate must be zero or more, not {}", args.rate);
    let mut ports = [0; Venue::COUNT];
    ports.iter_mut().zip(&args.ports).for_each(|(port, &wanted)| *port = wanted);
    let silence = Duration::try_from_secs_f64(args.silence);
    let silence = silence.ok().with_context(|| format!("--silence must be seconds, not {}", args.silence))?;
    let pace = Pace {
        every: faults::every(args.fault_every).map_err(|reason| anyhow::anyhow!("--fault-every {reason}"))?,
        silence,
    };
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    let running = Arc::new(
        sim::start(sim::Config {
            ip: args.listen,
            ports,
            instruments: args.instruments,
            rate_hz: args.rate,
            seed: args.seed,
            levels: args.levels,
            ..sim::Config::default()
        })
        .context("simulate")?,
    );
    Venue::ALL.iter().for_each(|venue| running.withhold(*venue, &args.withhold));
    let started = Instant::now();
    stdout::write(&addresses(&running, &args));
    let json = args.json;
    let report = move |kind, venue, symbol: &str| stdout::write(&fault_line(kind, venue, symbol, json));
    let faults = faults::start(Arc::clone(&running), &Venue::ALL, args.fault.clone(), pace, report)?;
    shutdown.wait().context("cannot wait for a signal")?;
    faults.stop();
    stdout::write(&totals(&running, started.elapsed().as_secs_f64(), &args));
    // The last reference: the simulator's thread ends here.
    drop(running);
    Ok(())
}

fn addresses(running: &sim::Running, args: &Args) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for venue in Venue::ALL {
        let (name, streams) = (venue.name(), venue.streams_path());
        let address = running.address(venue);
        let symbols: Vec<String> = running.instruments(venue).into_iter().map(|listed| listed.symbol).collect();
        let streams = format!("ws://{address}{streams}");
        let snapshots = venue.snapshots_path().map(|path| format!("http://{address}{path}"));
        if args.json {
            let line = json!({"venue": name, "streams": streams, "snapshots": snapshots, "symbols": symbols});
            let _ = writeln!(text, "{line}");
        } else {
            let first = symbols[..symbols.len().min(8)].join(",");
            let snapshots = snapshots.unwrap_or_default();
            let _ = writeln!(text, "{name:13} {streams:34} {snapshots:42} {} instruments: {first}", symbols.len());
        }
    }
    text
}

/// Returns the line for an injected fault.
fn fault_line(kind: Kind, venue: Venue, symbol: &str, json: bool) -> String {
    let name = venue.name();
    if json {
        format!("{}\n", json!({"venue": name, "fault": kind.to_string(), "symbol": symbol}))
    } else {
        format!("{name:13} {symbol}: {kind}\n")
    }
}

fn totals(running: &sim::Running, seconds: f64, args: &Args) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for venue in Venue::ALL {
        let name = venue.name();
        let stats = running.stats(venue);
        let achieved = stats.updates as f64 / seconds;
        if args.json {
            let line = json!({
                "venue": name, "offered_per_s": args.rate, "achieved_per_s": achieved, "updates": stats.updates,
                "updates_late": stats.steps_late, "frames": stats.frames, "connections": stats.opened,
                "cut_off": stats.cut_off, "snapshots": stats.snapshots,
            });
            let _ = writeln!(text, "{line}");
        } else {
            let _ = writeln!(
                text,
                "{name:13} offered {:.0}/s, achieved {achieved:.1}/s: {} updates ({} late), {} frames to {} connections",
                args.rate, stats.updates, stats.steps_late, stats.frames, stats.opened
            );
        }
    }
    text
}
