//! `cargo xtask soak`: every engine of the shipped program for a long time, under faults, reloads, kills and slow
//! readers. What a process holds must not grow.

mod fill;
mod players;
mod plot;
mod program;
mod trend;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::workspace_root;
use players::{PLAYERS, Stage, Venue};
use plot::Panel;
pub(crate) use program::{Program, get, processor_time};
use trend::Trend;

/// The control planes, on ports that no other program of this machine should have.
pub(crate) const HTTP: &str = "127.0.0.1:19641";
const MARKET_HTTP: &str = "127.0.0.1:19642";
const TURN_HTTP: &str = "127.0.0.1:19643";
const TURN_PORT: u16 = 13_478;
const LOOK_EVERY: Duration = Duration::from_secs(10);
const SAY_EVERY: Duration = Duration::from_secs(300);
const KILL_EVERY: Duration = Duration::from_secs(120);
/// Ledgers of the engines: what went in and was neither passed on nor dropped by name has no explanation.
const LEDGERS: [&str; 3] = ["/api/v1/turn/drops", "/api/v1/market/drops", "/api/v1/risk/verdicts"];
/// Share of a player's rounds that may fail: a machine that is busy with other work is slow.
const FAILED_MAX: f64 = 0.02;

/// Arguments of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Minutes. The second half is judged; a history of an hour is full after an hour.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(8..))]
    minutes: u64,
}

/// A program under watch, and what it held at each look: a series for each quantity, of (minutes, value).
struct Watched {
    name: &'static str,
    program: Program,
    http: &'static str,
    series: BTreeMap<&'static str, Vec<(f64, f64)>>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    println!("soak: {}", soak(&workspace_root(), arguments.minutes)?);
    Ok(ExitCode::SUCCESS)
}

/// Plays for `minutes`, writes samples and plots into target/soak, and returns the result in one line.
pub(crate) fn soak(root: &Path, minutes: u64) -> anyhow::Result<String> {
    let built = Program::build(root)?;
    let results = root.join("target/soak");
    fs::create_dir_all(&results)?;
    let folder = results.join("files");
    fs::create_dir_all(&folder)?;
    let program = results.join("truetick");
    fs::copy(built, &program)?;
    let stage = Stage {
        program,
        folder,
        serve: HTTP.parse()?,
        turn: TURN_HTTP.parse()?,
        market: MARKET_HTTP.parse()?,
        turn_port: TURN_PORT,
        is_over: AtomicBool::new(false),
        played: Mutex::default(),
    };
    let mut venue = Venue::start(&stage.program)?;
    let mut watched = start(&stage, &venue)?;
    let turn = watched.iter().find(|it| it.name == "turn").context("no turn")?;
    fill::receive_buffers(&turn.program, (Ipv4Addr::LOCALHOST, TURN_PORT).into())?;
    let outcome = thread::scope(|scope| {
        for player in PLAYERS {
            scope.spawn(|| stage.play(player));
        }
        scope.spawn(|| {
            while !stage.rest(KILL_EVERY) {
                let outcome = venue.kill(&stage);
                stage.count("kills of venues", outcome);
            }
        });
        let outcome = watch(&mut watched, Duration::from_secs(minutes * 60));
        stage.is_over.store(true, Ordering::Relaxed);
        outcome
    });
    let report = judge(&watched, &stage, minutes);
    write_results(&watched, minutes, &results)?;
    println!("{}", report.lines.join("\n"));
    outcome?;
    ensure!(report.broken.is_empty(), "{}", report.broken.join("; "));
    Ok(report.summary)
}

fn start(stage: &Stage, venue: &Venue) -> anyhow::Result<Vec<Watched>> {
    let config = stage.write_files()?;
    let listen = format!("127.0.0.1:{TURN_PORT}");
    let quiet = ["--log-level", "off", "--config", &config];
    let serve = [&quiet[..], &["serve", "--turn-listen", "127.0.0.1:0", "--fault-every", "0"]].concat();
    let turn = [&quiet[..], &["turn", "--listen", &listen]].concat();
    let market = ["--log-level", "off", "market", "--venue", "kraken", "--symbols", "BTC/USD,ETH/USD", "--url"];
    let market = [&market[..], &[&venue.streams]].concat();
    let watched = |name, arguments: &[&str], http: &'static str| -> anyhow::Result<Watched> {
        let program = Program::start_at(&stage.program, arguments, http.parse()?).with_context(|| name)?;
        Ok(Watched { name, program, http, series: BTreeMap::new() })
    };
    Ok(vec![
        watched("serve", &serve, HTTP)?,
        watched("turn", &turn, TURN_HTTP)?,
        watched("market", &market, MARKET_HTTP)?,
    ])
}

/// Takes a sample of every program each [`LOOK_EVERY`].
fn watch(watched: &mut [Watched], length: Duration) -> anyhow::Result<()> {
    let (started, mut said) = (Instant::now(), Duration::ZERO);
    while started.elapsed() < length {
        thread::sleep(LOOK_EVERY);
        let minutes = started.elapsed().as_secs_f64() / 60.0;
        for it in &mut *watched {
            it.look(minutes).with_context(|| format!("{} after {minutes:.1} min", it.name))?;
        }
        if started.elapsed() - said >= SAY_EVERY {
            said = started.elapsed();
            let left = length.saturating_sub(said).as_secs() / 60;
            let held: Vec<_> = watched.iter().map(Watched::last).collect();
            println!("{minutes:.0} min, {left} left: {}", held.join("; "));
        }
    }
    Ok(())
}

impl Watched {
    fn look(&mut self, minutes: f64) -> anyhow::Result<()> {
        let http = self.http.parse()?;
        ensure!(get(http, "/healthz")?.status == 200, "not healthy");
        let mut unexplained = 0.0;
        for path in LEDGERS {
            let answer = get(http, path)?;
            if answer.status == 404 {
                continue;
            }
            let value: Value = serde_json::from_str(&answer.body)?;
            let ledger = value.get("ledger").unwrap_or(&value);
            let count = |name: &str| ledger[name].as_f64().with_context(|| format!("no {name} in {path}"));
            unexplained += (count("in")? - count("out")? - count("dropped")?).abs();
        }
        let held = [
            ("memory, KiB", self.program.status("RssAnon")? as f64),
            ("descriptors", self.program.descriptors()? as f64),
            ("threads", self.program.status("Threads")? as f64),
            ("unexplained", unexplained),
        ];
        for (quantity, value) in held {
            self.series.entry(quantity).or_default().push((minutes, value));
        }
        Ok(())
    }

    /// The newest sample in words.
    fn last(&self) -> String {
        let newest = self.series.iter().filter_map(|(name, samples)| Some((name, samples.last()?.1)));
        let held: Vec<_> = newest.map(|(name, value)| format!("{name} {value}")).collect();
        format!("{} {}", self.name, held.join(", "))
    }
}

struct Report {
    lines: Vec<String>,
    broken: Vec<String>,
    summary: String,
}

/// Judges the second half of the samples, and the players.
fn judge(watched: &[Watched], stage: &Stage, minutes: u64) -> Report {
    let mut report = Report { lines: Vec::new(), broken: Vec::new(), summary: format!("{minutes} min") };
    for it in watched {
        for (quantity, samples) in &it.series {
            let judged: Vec<_> =
                samples[samples.len() / 2..].iter().map(|(minutes, value)| (minutes / 60.0, *value)).collect();
            let name = format!("{} {quantity}", it.name);
            let Some(trend) = Trend::of(&judged) else {
                report.broken.push(format!("{name}: too few samples"));
                continue;
            };
            report.lines.push(format!("{name}: {trend}"));
            let _ = write!(
                report.summary,
                "; {name} {:.0} {:+.1} +/- {:.1} an hour",
                trend.mean, trend.slope, trend.margin
            );
            if trend.grows() {
                report.broken.push(format!("{name} grows: {trend}"));
            }
        }
    }
    for (name, played) in &*stage.played.lock().expect("a player panicked") {
        let (rounds, failed) = (played.rounds, played.failed);
        report.lines.push(format!("{name}: {rounds} rounds, {failed} failed {}", played.last_failure));
        let _ = write!(report.summary, "; {name} {rounds}, {failed} failed");
        if failed as f64 > rounds as f64 * FAILED_MAX {
            report.broken.push(format!("{name}: {failed} of {rounds} failed, such as: {}", played.last_failure));
        }
    }
    report
}

fn write_results(watched: &[Watched], minutes: u64, results: &Path) -> anyhow::Result<()> {
    let mut csv = "program,quantity,minutes,value\n".to_owned();
    let mut panels = Vec::new();
    for it in watched {
        for (quantity, samples) in &it.series {
            for (minutes, value) in samples {
                let _ = writeln!(csv, "{},\"{quantity}\",{minutes:.2},{value}", it.name);
            }
            panels.push(Panel { title: format!("{}: {quantity}", it.name), samples: samples.clone() });
        }
    }
    fs::write(results.join("samples.csv"), csv)?;
    fs::write(results.join("soak.svg"), plot::svg(&panels, minutes as f64 / 2.0)?)?;
    println!("samples and plots: {}", results.display());
    Ok(())
}
