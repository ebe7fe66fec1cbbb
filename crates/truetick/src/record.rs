//! `truetick record`: writes all inputs of the market engine to a file.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hyper::Uri;
use market_feed::{FeedConfig, MarketConfig, Reader, RecordingConfig, Unreached};
use serde_json::json;
use tt_journal::Progress;
use tt_venue::Venue;

use crate::market::{self, SubscribeOptions, launch};
use crate::simulated_venues as venues;
use tt_os::shutdown::Shutdown;
use tt_os::stdout;

/// Interval between two lines of progress.
const EVERY: Duration = Duration::from_secs(1);

/// Flags of `truetick record`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Recording to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Append to FILE if it exists; an incomplete record at its end is cut off
    #[arg(long)]
    append: bool,
    /// Venue [default: every venue of the built-in simulator]
    #[arg(long, value_name = "VENUE", value_parser = market::venue)]
    venue: Option<Venue>,
    /// Symbols as the venue writes them [default: all of the simulator]
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "venue")]
    symbols: Vec<String>,
    /// Record the venue at its public addresses instead of the built-in simulator
    #[arg(long, requires = "venue")]
    live: bool,
    /// WebSocket address to record
    #[arg(long, value_name = "URL", requires = "venue", conflicts_with = "live")]
    url: Option<Uri>,
    /// REST address [default: the host of --url]
    #[arg(long, value_name = "URL", requires = "url")]
    rest_url: Option<Uri>,
    /// Levels per side, at venues that take a depth [default: the venue's usual depth]
    #[arg(long, value_name = "N", requires = "venue")]
    depth: Option<u32>,
    /// Further subscriptions.
    #[command(flatten)]
    options: SubscribeOptions,
    /// Sync to disk at most this much later: the data that a power failure may cost
    #[arg(long, value_name = "MS", default_value_t = 10)]
    sync_ms: u64,
    /// Compress blocks of records with LZ4
    #[arg(long)]
    packed: bool,
    /// Instruments per simulated venue
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    instruments: u32,
    /// Book updates per second and simulated venue
    #[arg(long, value_name = "PER_SECOND", default_value_t = 200.0)]
    rate: f64,
    /// Seed of the simulated market
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// Records until a signal or `--seconds` stops it.
///
/// # Errors
/// Startup fails, or the recording cannot be written.
pub fn run(args: Args) -> Result<()> {
    ensure!(args.rate.is_finite() && args.rate >= 0.0, "--rate must be zero or more, not {}", args.rate);
    let most = args.seconds.map(Duration::try_from_secs_f64).transpose().context("--seconds")?;
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    let (feeds, simulator) = sources(&args)?;
    let recording = RecordingConfig {
        path: args.out.clone(),
        append: args.append,
        sync_every: Duration::from_millis(args.sync_ms),
        packed: args.packed,
    };
    let market = MarketConfig { feeds, recording: Some(recording), ..MarketConfig::default() };
    let done = follow(market, &args, &shutdown, most);
    drop(simulator);
    let Some(progress) = done? else { return Ok(()) };
    match &progress.failure {
        Some(failure) => anyhow::bail!("{}: recording stopped: {}", args.out.display(), failure.reason),
        None => Ok(()),
    }
}

/// Returns the feeds to record, and the simulator if they are simulated.
fn sources(args: &Args) -> Result<(Vec<FeedConfig>, Option<sim::Running>)> {
    let Some((venue, url)) = args.venue.map(|venue| (venue, args.url.clone())) else {
        let simulator = venues::start(args.instruments, args.rate, args.seed)?;
        return Ok((venues::feeds(&simulator)?, Some(simulator)));
    };
    ensure!(args.live || args.options.region.is_none(), "--region names addresses of the venue: it needs --live");
    if !args.live && url.is_none() {
        let simulator = venues::start(args.instruments, args.rate, args.seed)?;
        let mut feeds = venues::feeds(&simulator)?;
        feeds.retain(|feed| feed.venue == venue);
        ensure!(!feeds.is_empty(), "the built-in simulator has no {}: use --live or --url", venue.name());
        for feed in feeds.iter_mut().filter(|_| !args.symbols.is_empty()) {
            feed.symbols.clone_from(&args.symbols);
            feed.positions.retain(|position| args.symbols.contains(&position.symbol));
        }
        feeds.iter_mut().try_for_each(|feed| args.options.apply_to(feed, Some(venues::account())))?;
        return Ok((feeds, Some(simulator)));
    }
    ensure!(!args.symbols.is_empty(), "no symbols: use --symbols A,B");
    let mut feed = match url {
        Some(url) => FeedConfig::at(venue, url, args.symbols.clone()),
        None => FeedConfig::public(venue, args.symbols.clone()),
    };
    args.options.apply_to(&mut feed, None)?;
    feed.rest = args.rest_url.clone().or(feed.rest);
    feed.ask_depth(args.depth)?;
    Ok((vec![feed], None))
}

fn follow(market: MarketConfig, args: &Args, shutdown: &Shutdown, most: Option<Duration>) -> Result<Option<Progress>> {
    let unreached = |Unreached { venue, url, error, .. }: &Unreached| {
        eprintln!("record: {} at {url} cannot be reached: {error}", venue.name());
        Ok(())
    };
    let Some(running) = launch(market, shutdown.clone().requested(), unreached)? else { return Ok(None) };
    if let Some(reopened) = running.reopened() {
        let why = reopened.tail.map_or_else(String::new, |tail| format!(": {}", tail.text()));
        let (records, cut) = (reopened.records, reopened.cut_bytes);
        eprintln!("record: {}: appending after {records} records; removed {cut} bytes{why}", args.out.display());
    }
    let (path, sync_ms) = (args.out.display(), args.sync_ms);
    eprintln!("record: {path}: press Ctrl-C to stop; a power failure may cost the last {sync_ms} ms");
    let started = Instant::now();
    let reader = running.reader();
    let is_terminal = io::stderr().is_terminal();
    let mut shown = Ok(());
    while shown.is_ok() && !shutdown.is_requested() {
        let progress = running.recording().unwrap_or_default();
        if progress.failure.is_some() {
            break;
        }
        if args.json {
            shown = stdout::print(&line(&reader, &progress, started, true)).context("standard output");
        } else if is_terminal {
            eprint!("\r{}\x1b[K", line(&reader, &progress, started, false).trim_end());
        }
        let left = most.map_or(EVERY, |most| most.saturating_sub(started.elapsed()).min(EVERY));
        if left.is_zero() {
            break;
        }
        reader.wait_until(Instant::now() + left, || {
            shutdown.is_requested() || running.recording().is_some_and(|progress| progress.failure.is_some())
        });
    }
    let progress = running.stop().unwrap_or_default();
    if !args.json && is_terminal {
        eprintln!();
    }
    shown.and_then(|()| stdout::print(&line(&reader, &progress, started, args.json)).context("standard output"))?;
    Ok(Some(progress))
}

fn line(reader: &Reader, progress: &Progress, started: Instant, as_json: bool) -> String {
    let seconds = started.elapsed().as_secs_f64();
    let frames: u64 = (0..reader.feeds_len()).map(|feed| reader.counters(feed).frames).sum();
    let Progress { offered, written, bytes, .. } = progress;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = if as_json {
        let failure = progress.failure.as_ref().map(|failure| &failure.reason);
        let line = json!({
            "seconds": seconds, "frames": frames, "records_offered": offered, "records_written": written,
            "bytes": bytes, "dropped": progress.dropped(), "dropped_full": progress.dropped_full,
            "dropped_stopped": progress.dropped_stopped, "dropped_long": progress.dropped_long, "failure": failure,
        });
        writeln!(text, "{line}")
    } else {
        let (mb, dropped) = (*bytes as f64 / 1e6, progress.dropped());
        writeln!(text, "{seconds:.1} s, {frames} frames, {written} records, {mb:.2} MB, {dropped} dropped")
    };
    text
}
