//! `truetick risk`: evaluates the order intents in a file of JSON lines, and prints a verdict for each.

mod print;
mod served;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use gate_text::{EVENT_PRODUCER, EventLine, Moment};
use risk_gate::{Answer, Durability, DurableGate, Input, JournalConfig, LimitsFile, Modes};
use serde::Deserialize;
use tt_meter::{Clock, Off};
use tt_model::{OrderIntent, Verdict};
use tt_os::stdout;
use tt_risk::{KillSwitch, Mode};

use crate::config::Config;
use served::Shared;

/// Flags of `truetick risk`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TOML file with limits: accounts, instruments, rates
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// File in which kills and reduce modes are kept: read at the start, synced at each change
    #[arg(long, value_name = "FILE")]
    modes: Option<PathBuf>,
    /// Folder of the journal: every input is in it before its verdict is printed, and the next run continues from it
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// With --journal: wait for the disk before each verdict, instead of surviving the death of the process only
    #[arg(long)]
    durable: bool,
    /// Print the effective limits, including defaults, and exit
    #[arg(long)]
    print_limits: bool,
    /// Events as JSON lines: intents, marks, reports, kill (docs/risk-events.md); `-`: standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    events: PathBuf,
    /// Address of the JSON API that controls the gate, with the API token of [http] (docs/gate-control.md)
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Print JSON lines instead of text
    #[arg(long)]
    json: bool,
}

/// Judges every intent, prints its verdict, and the totals of all verdicts.
///
/// # Errors
/// A file that cannot be read, a limit or an event that makes no sense (the error names its line), or a standard
/// output that is gone.
pub fn run(args: Args, config: &Config) -> Result<()> {
    stdout::ignore_broken_pipe(evaluate(&args, config))
}

fn evaluate(args: &Args, config: &Config) -> Result<()> {
    let path = args
        .limits
        .as_ref()
        .or(config.risk.limits.as_ref())
        .context("no limits: use --limits FILE, or limits in [risk]")?;
    let limits = LimitsFile::read(path)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.print_limits {
        limits.gate().with_context(|| path.display().to_string())?;
        write!(out, "{}", limits.text())?;
        return out.flush().context("standard output");
    }
    let run = Shared::new(Run::start(args, config, limits, path)?);
    let http = args.http.map(|listen| run.serve(listen, config)).transpose()?;
    for (number, line) in (1..).zip(lines(&args.events)?) {
        let place = || format!("{}, line {number}", args.events.display());
        let line = line.with_context(place)?;
        if line.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(&line).with_context(place)?;
        ensure!(line.at_record.is_none(), "{}: at_record is for `truetick gate rehearse`", place());
        run.lock().line(number, line, &mut out).with_context(place)?;
        if args.events.as_os_str() == "-" {
            out.flush().context("standard output")?;
        }
    }
    if let Some(http) = http {
        http.stop();
    }
    print::total(&mut out, run.lock().gate.gate(), args.json)?;
    out.flush().context("standard output")?;
    run.lock().gate.write_snapshot();
    Ok(())
}

pub(crate) fn lines(path: &Path) -> Result<Box<dyn Iterator<Item = io::Result<String>>>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lines()));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::new(file).lines()))
}

/// One event with its time. All times may be zero.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    #[serde(default)]
    pub(crate) at_ms: u64,
    /// In a rehearsal: the number of a record, whose time is the event's.
    pub(crate) at_record: Option<u64>,
    #[serde(flatten)]
    event: EventLine,
}

/// An intent with its verdict, and the clock's cycles from one to the other.
#[cfg_attr(not(feature = "market"), expect(dead_code, reason = "a rehearsal reads it"))]
pub(crate) struct Judged {
    pub(crate) intent: OrderIntent,
    pub(crate) verdict: Verdict,
    pub(crate) cycles: u64,
}

/// A gate between its events and its rows.
pub(crate) struct Run {
    pub(crate) gate: DurableGate,
    pub(crate) limits: LimitsFile,
    modes: Option<Arc<Modes>>,
    /// The number of the last intent.
    seq: u64,
    /// The time of the latest event.
    now_ns: u64,
    as_json: bool,
    clock: Clock,
}

impl Run {
    /// A gate of `limits` without journal and modes.
    #[cfg(feature = "market")]
    pub(crate) fn rehearsed(limits: LimitsFile, as_json: bool) -> Result<Self> {
        let gate = DurableGate::of(&limits)?;
        Ok(Self { gate, limits, modes: None, seq: 0, now_ns: 0, as_json, clock: tt_os::clock::clock() })
    }

    fn start(args: &Args, config: &Config, limits: LimitsFile, path: &Path) -> Result<Self> {
        let journal = args.journal.as_ref().or(config.risk.journal.as_ref()).map(|folder| JournalConfig {
            folder: folder.clone(),
            durability: if args.durable || config.risk.durable { Durability::Durable } else { Durability::Process },
            segment_bytes: config.risk.journal_segment_bytes,
        });
        let (mut gate, seq) = match &journal {
            Some(journal) => {
                let (gate, recovered) = DurableGate::open(&limits, journal, 0)?;
                if recovered.records > 0 || recovered.cut_bytes > 0 {
                    let (records, snapshot) = (recovered.records, recovered.snapshot_records);
                    let cut_bytes = recovered.cut_bytes;
                    tracing::info!(
                        records,
                        snapshot,
                        cut_bytes,
                        "risk: restored from the journal; reconcile or adopt accounts"
                    );
                }
                (gate, recovered.last_seq)
            }
            None => {
                let gate = DurableGate::of(&limits).with_context(|| path.display().to_string())?;
                (gate, 0)
            }
        };
        let path = args.modes.as_ref().or(config.risk.modes.as_ref());
        let modes = path.map(|path| Modes::open(path, gate.switches(), limits.symbols()).map(Arc::new)).transpose()?;
        if let Some(modes) = &modes {
            gate.keep_modes(Arc::clone(modes));
        }
        let clock = tt_os::clock::clock();
        Ok(Self { gate, limits, modes, seq, now_ns: 0, as_json: args.json, clock })
    }

    /// Performs an event at its time in milliseconds.
    fn line(&mut self, number: u64, line: Line, out: &mut impl Write) -> Result<()> {
        let now_ns = line.at_ms.saturating_mul(1_000_000);
        self.event((number, now_ns), line, out).map(drop)
    }

    /// Performs the event of line `number` at `now_ns`, prints its row, and returns the verdict on an intent.
    pub(crate) fn event(
        &mut self,
        (number, now_ns): (u64, u64),
        line: Line,
        out: &mut impl Write,
    ) -> Result<Option<Judged>> {
        self.now_ns = self.now_ns.max(now_ns);
        if let Some((switch, mode)) = line.event.switch(&self.limits)? {
            return self.set_mode(switch, mode).map(|()| None);
        }
        if let Some(path) = line.event.load() {
            return self.load(now_ns, path, out).map(|()| None);
        }
        let moment = Moment { now_ns, number, seq: &mut self.seq };
        let symbol = line.event.symbol().to_owned();
        let is_mark = line.event.is_mark();
        let input = match line.event.input(&self.limits, moment) {
            Ok(Some(input)) => input,
            Ok(None) => return Ok(None),
            // A feed may know more instruments than the limits.
            Err(error) if is_mark => {
                print::ignored(out, number, &error, self.as_json)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if let Input::Intent { intent, .. } = &input {
            let begin = self.clock.start();
            let verdict = self.gate.evaluate(now_ns, EVENT_PRODUCER, intent, &mut Off);
            let mut judged = [(*intent, verdict)];
            self.gate.commit(now_ns, &mut judged);
            let cycles = self.clock.end().since(begin);
            let [(intent, verdict)] = judged;
            let instrument = self.limits.instrument(intent.instrument);
            print::verdict(out, &verdict, (&symbol, instrument), self.as_json)?;
            return Ok(Some(Judged { intent, verdict, cycles }));
        }
        if let Input::Report(report) = &input {
            let outcome = self.gate.apply(now_ns, report);
            self.gate.commit(now_ns, &mut []);
            print::report(out, report, outcome, self.as_json)?;
            return Ok(None);
        }
        let answer = self.gate.perform(now_ns, &input);
        self.gate.commit(now_ns, &mut []);
        match (&input, answer) {
            (Input::Reconcile(statement), Answer::Differences(found)) => {
                print::differences(out, statement.account, &found, &self.limits, self.as_json)?;
            }
            (_, Answer::Applied(applied)) => applied?,
            (_, Answer::Verdict(_) | Answer::Outcome(_) | Answer::Differences(_)) => {}
        }
        Ok(None)
    }

    /// Prints the totals.
    #[cfg(feature = "market")]
    pub(crate) fn total(&self, out: &mut impl Write) -> Result<()> {
        Ok(print::total(out, self.gate.gate(), self.as_json)?)
    }

    /// Replaces the limits. Those that are refused leave the running ones in force.
    fn load(&mut self, now_ns: u64, path: &Path, out: &mut impl Write) -> Result<()> {
        let loaded = LimitsFile::read(path).and_then(|limits| self.gate.load(now_ns, limits));
        if let (Ok(_), Some(limits)) = (&loaded, self.gate.limits()) {
            self.limits = limits.clone();
        }
        Ok(print::load(out, path, &loaded, &self.limits, self.as_json)?)
    }

    /// Sets a mode, in the file first if there is one.
    fn set_mode(&self, switch: KillSwitch, mode: Mode) -> Result<()> {
        match &self.modes {
            Some(modes) => modes.set(switch, mode).map(drop),
            None => {
                self.gate.switches().set_mode(switch, mode);
                Ok(())
            }
        }
    }
}
