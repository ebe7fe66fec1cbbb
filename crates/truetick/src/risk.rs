//! `truetick risk`: evaluates the order intents in a file of JSON lines, and prints a verdict for each.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use risk_gate::{Instrument, LimitsFile};
use serde::Deserialize;
use serde_json::json;
use tt_meter::Off;
use tt_model::{IntentFlags, IntentKind, OrderIntent, OrderSide, TimeInForce, Verdict};
use tt_os::stdout;
use tt_risk::{Cancel, Fill, Gate, KillSwitch, Mark};

use crate::config::Config;

/// Flags of `truetick risk`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TOML file with limits: accounts, instruments, rates
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Print the effective limits, including defaults, and exit
    #[arg(long)]
    print_limits: bool,
    /// Events as JSON lines: intents, marks, fills, cancels, kill; `-`: standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    events: PathBuf,
    /// Print JSON lines instead of text
    #[arg(long)]
    json: bool,
}

/// One event with its time. All times may be zero.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    at_ms: u64,
    #[serde(flatten)]
    event: Event,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Intent(Intent),
    Mark(MarkLine),
    Fill(Change),
    Cancel(Change),
    Kill(Switch),
    Revive(Switch),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Intent {
    /// Default: the number of the line.
    client_id: Option<u64>,
    #[serde(default)]
    account: u16,
    #[serde(default)]
    strategy: u16,
    symbol: String,
    #[serde(default)]
    kind: Kind,
    side: Side,
    #[serde(default)]
    px: Option<String>,
    qty: String,
    #[serde(default)]
    reduce_only: bool,
    #[serde(default)]
    close_position: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MarkLine {
    symbol: String,
    px: String,
    #[serde(default)]
    is_verified: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    #[serde(default)]
    account: u16,
    /// The client id of the order's intent.
    client_id: u64,
    symbol: String,
    side: Side,
    qty: String,
    #[serde(default)]
    is_last: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Switch {
    Global,
    Account(u16),
    Strategy(u16),
    Instrument(String),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Limit,
    Market,
    Cancel,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Side {
    Buy,
    Sell,
}

impl From<Side> for OrderSide {
    fn from(side: Side) -> Self {
        match side {
            Side::Buy => Self::Buy,
            Side::Sell => Self::Sell,
        }
    }
}

/// Judges every intent, prints its verdict, and what the verdicts came to.
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
    let mut gate = limits.gate().with_context(|| path.display().to_string())?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.print_limits {
        write!(out, "{}", limits.text()?)?;
        return out.flush().context("standard output");
    }
    for (number, line) in (1..).zip(lines(&args.events)?) {
        let place = || format!("{}, line {number}", args.events.display());
        let line = line.with_context(place)?;
        if line.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(&line).with_context(place)?;
        let now_ns = line.at_ms.saturating_mul(1_000_000);
        if let Some((verdict, instrument)) =
            apply(&mut gate, &limits, Moment { now_ns, number }, line.event).with_context(place)?
        {
            print_verdict(&mut out, &verdict, instrument, args.json)?;
        }
    }
    print_total(&mut out, &gate, args.json)?;
    out.flush().context("standard output")
}

fn lines(path: &Path) -> Result<Box<dyn Iterator<Item = io::Result<String>>>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lines()));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::new(file).lines()))
}

/// When an event comes: its time, and the number of its line.
#[derive(Clone, Copy)]
struct Moment {
    now_ns: u64,
    number: u64,
}

/// Result of an event: a verdict if it was an intent.
fn apply<'a>(
    gate: &mut Gate,
    limits: &'a LimitsFile,
    moment: Moment,
    event: Event,
) -> Result<Option<(Verdict, &'a Instrument)>> {
    let now_ns = moment.now_ns;
    match event {
        Event::Intent(intent) => {
            let (intent, instrument) = intent.resolve(limits, moment)?;
            return Ok(Some((gate.evaluate(now_ns, &intent, &mut Off), instrument)));
        }
        Event::Mark(mark) => {
            let (id, instrument) = limits.find(&mark.symbol)?;
            let ref_px = instrument.px(&mark.px)?;
            let mark = Mark { ref_px, ts_ns: now_ns, is_verified: mark.is_verified };
            gate.set_reference(id, &mark)?;
        }
        Event::Fill(Change { account, client_id, symbol, side, qty, is_last }) => {
            let (instrument, known) = limits.find(&symbol)?;
            let fill = Fill { account, instrument, client_id, side: side.into(), qty: known.qty(&qty)?, is_last };
            gate.apply_fill(&fill)?;
        }
        Event::Cancel(Change { account, client_id, symbol, side, qty, is_last: _ }) => {
            let (instrument, known) = limits.find(&symbol)?;
            let cancel = Cancel { account, instrument, client_id, side: side.into(), qty: known.qty(&qty)? };
            gate.apply_cancel(&cancel)?;
        }
        Event::Kill(switch) => drop(gate.controls().kill(switch.resolve(limits)?)),
        Event::Revive(switch) => drop(gate.controls().revive(switch.resolve(limits)?)),
    }
    Ok(None)
}

impl Switch {
    fn resolve(self, limits: &LimitsFile) -> Result<KillSwitch> {
        Ok(match self {
            Self::Global => KillSwitch::Global,
            Self::Account(account) => KillSwitch::Account(account),
            Self::Strategy(strategy) => KillSwitch::Strategy(strategy),
            Self::Instrument(symbol) => KillSwitch::Instrument(limits.find(&symbol)?.0),
        })
    }
}

impl Intent {
    fn resolve(self, limits: &LimitsFile, moment: Moment) -> Result<(OrderIntent, &Instrument)> {
        let (instrument, known) = limits.find(&self.symbol)?;
        let reduce_only = if self.reduce_only { IntentFlags::REDUCE_ONLY.0 } else { 0 };
        let close_position = if self.close_position { IntentFlags::CLOSE_POSITION.0 } else { 0 };
        let intent = OrderIntent {
            ts_ns: moment.now_ns,
            client_id: self.client_id.unwrap_or(moment.number),
            limit_px: known.px(self.px.as_deref().unwrap_or("0"))?,
            qty: known.qty(&self.qty)?,
            account: self.account,
            strategy: self.strategy,
            instrument,
            kind: match self.kind {
                Kind::Limit => IntentKind::Limit,
                Kind::Market => IntentKind::Market,
                Kind::Cancel => IntentKind::Cancel,
            },
            side: self.side.into(),
            tif: TimeInForce::GoodTillCancel,
            flags: IntentFlags(reduce_only | close_position),
            ..OrderIntent::default()
        };
        Ok((intent, known))
    }
}

fn print_verdict(out: &mut impl Write, verdict: &Verdict, instrument: &Instrument, as_json: bool) -> io::Result<()> {
    let accept = verdict.accept == 1;
    let reasons: Vec<_> = verdict.reasons.names().collect();
    let worst_position = instrument.qty_text(verdict.worst_pos);
    if as_json {
        let row = json!({
            "seq": verdict.seq, "client_id": verdict.client_id, "symbol": instrument.symbol, "accept": accept,
            "reasons": reasons, "worst_position": worst_position, "limits_version": verdict.limits_version,
        });
        return writeln!(out, "{row}");
    }
    let word = if accept { "accepted" } else { "rejected" };
    let row = format!(
        "{:>6}  client id {:<8} {:12} {word:8}  worst position {worst_position:>14}  {}",
        verdict.seq,
        verdict.client_id,
        instrument.symbol,
        reasons.join(" ")
    );
    writeln!(out, "{}", row.trim_end())
}

fn print_total(out: &mut impl Write, gate: &Gate, as_json: bool) -> io::Result<()> {
    let counters = gate.counters();
    let (intents, accepted, rejected) = (counters.intents(), counters.accepted(), counters.rejected());
    let (ids_full, own_orders_full) = (counters.ids_full(), counters.own_orders_full());
    if as_json {
        let total = json!({
            "intents": intents, "accepted": accepted, "rejected": rejected,
            "ids_full": ids_full, "own_orders_full": own_orders_full,
        });
        return writeln!(out, "{total}");
    }
    writeln!(out, "{intents} intents = {accepted} accepted + {rejected} rejected")?;
    if ids_full + own_orders_full > 0 {
        writeln!(out, "tables were full for {ids_full} client ids and {own_orders_full} open orders")?;
    }
    Ok(())
}
