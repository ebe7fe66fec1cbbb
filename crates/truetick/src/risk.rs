//! `truetick risk`: evaluates the order intents in a file of JSON lines, and prints a verdict for each.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use risk_gate::{Instrument, LimitsFile, Modes};
use serde::Deserialize;
use serde_json::json;
use tt_meter::Off;
use tt_model::{IntentFlags, IntentKind, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, TimeInForce, Verdict};
use tt_os::stdout;
use tt_risk::{Gate, InstrumentState, KillSwitch, Mark, Mode, Outcome};

use crate::config::Config;

/// Flags of `truetick risk`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TOML file with limits: accounts, instruments, rates
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// File in which kills and reduce modes are kept: read at the start, synced at each change
    #[arg(long, value_name = "FILE")]
    modes: Option<PathBuf>,
    /// Print the effective limits, including defaults, and exit
    #[arg(long)]
    print_limits: bool,
    /// Events as JSON lines: intents, marks, reports, kill (docs/risk-events.md); `-`: standard input
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
    Report(ReportLine),
    Fill(ReportLine),
    Cancel(ReportLine),
    Kill(Switch),
    Reduce(Switch),
    Revive(Switch),
    State(StateLine),
    Adopt(u16),
    Resume(u64),
    Time(Empty),
}

/// `{"symbol": "BTC/USDT", "state": "halted"}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateLine {
    symbol: String,
    state: State,
}

/// [`InstrumentState`] as text.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Unknown,
    PreOpen,
    Open,
    Auction,
    Halted,
    Closed,
    Expired,
}

impl From<State> for InstrumentState {
    fn from(state: State) -> Self {
        match state {
            State::Unknown => Self::Unknown,
            State::PreOpen => Self::PreOpen,
            State::Open => Self::Open,
            State::Auction => Self::Auction,
            State::Halted => Self::Halted,
            State::Closed => Self::Closed,
            State::Expired => Self::Expired,
        }
    }
}

/// `{}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Intent {
    /// Default: one more than the last one.
    seq: Option<u64>,
    /// Default: the time of the line.
    made_ms: Option<u64>,
    #[serde(default)]
    ttl_ms: u32,
    /// Default: the number of the line.
    client_id: Option<u64>,
    #[serde(default)]
    account: u16,
    #[serde(default)]
    strategy: u16,
    symbol: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    tif: String,
    side: Option<Side>,
    px: Option<String>,
    trigger_px: Option<String>,
    qty: Option<String>,
    #[serde(default)]
    reduce_only: bool,
    #[serde(default)]
    post_only: bool,
    #[serde(default)]
    close_position: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MarkLine {
    symbol: String,
    px: String,
    bid: Option<String>,
    ask: Option<String>,
    #[serde(default)]
    is_verified: bool,
}

/// A report; the keys are those of [`Report`]. `fill` and `cancel` are reports of the kinds `fill` and `cancelled`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportLine {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    account: u16,
    client_id: u64,
    symbol: String,
    side: Option<Side>,
    /// Default: the number of the line.
    execution_id: Option<Id>,
    undone_id: Option<Id>,
    qty: Option<String>,
    px: Option<String>,
    executed: Option<String>,
    order_qty: Option<String>,
    limit_px: Option<String>,
    trigger_px: Option<String>,
}

/// An execution's id: a number, or decimal text for one beyond 64 bits.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
}

impl Id {
    fn value(&self) -> Result<u128> {
        match self {
            Self::Number(id) => Ok((*id).into()),
            Self::Text(text) => text.parse().with_context(|| format!("`{text}` is not an id of 128 bits")),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Switch {
    Global,
    Account(u16),
    Strategy(u16),
    Instrument(String),
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
    let path = args.modes.as_ref().or(config.risk.modes.as_ref());
    let modes = path.map(|path| Modes::open(path, gate.controls(), limits.symbols())).transpose()?;
    let mut seq = 0;
    for (number, line) in (1..).zip(lines(&args.events)?) {
        let place = || format!("{}, line {number}", args.events.display());
        let line = line.with_context(place)?;
        if line.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(&line).with_context(place)?;
        let now_ns = line.at_ms.saturating_mul(1_000_000);
        if let Some((switch, mode)) = line.event.switch(&limits).with_context(place)? {
            set_mode(&gate, modes.as_ref(), switch, mode).with_context(place)?;
            continue;
        }
        match apply(&mut gate, &limits, Moment { now_ns, number, seq: &mut seq }, line.event).with_context(place)? {
            Answer::Verdict(verdict, instrument) => print_verdict(&mut out, &verdict, instrument, args.json)?,
            Answer::Report(report, outcome) => print_report(&mut out, &report, outcome, args.json)?,
            Answer::None => {}
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

/// When an event comes: its time, the number of its line, and the number of the last intent.
struct Moment<'a> {
    now_ns: u64,
    number: u64,
    seq: &'a mut u64,
}

/// Result of an event.
enum Answer<'a> {
    Verdict(Verdict, &'a Instrument),
    Report(Report, Outcome),
    None,
}

/// The one producer of the file's intents.
const PRODUCER: u16 = 0;

fn apply<'a>(gate: &mut Gate, limits: &'a LimitsFile, moment: Moment<'_>, event: Event) -> Result<Answer<'a>> {
    let now_ns = moment.now_ns;
    match event {
        Event::Intent(intent) => {
            let (intent, instrument) = intent.resolve(limits, moment)?;
            return Ok(Answer::Verdict(gate.evaluate(now_ns, PRODUCER, &intent, &mut Off), instrument));
        }
        Event::Report(line) => {
            let kind = report_kind(&line.kind);
            return report(gate, limits, &moment, &line, kind);
        }
        Event::Fill(line) => return report(gate, limits, &moment, &line, ReportKind::FILL),
        Event::Cancel(line) => return report(gate, limits, &moment, &line, ReportKind::CANCELLED),
        Event::Mark(mark) => {
            let (id, instrument) = limits.find(&mark.symbol)?;
            let px = |text: &Option<String>| text.as_deref().map_or(Ok(Price(0)), |text| instrument.px(text));
            let (bid_px, ask_px) = (px(&mark.bid)?, px(&mark.ask)?);
            let ref_px = instrument.px(&mark.px)?;
            gate.set_reference(id, &Mark { ref_px, bid_px, ask_px, ts_ns: now_ns, is_verified: mark.is_verified })?;
        }
        Event::Kill(_) | Event::Reduce(_) | Event::Revive(_) => {}
        Event::State(line) => gate.set_state(limits.find(&line.symbol)?.0, line.state.into())?,
        Event::Adopt(account) => gate.adopt(account, now_ns)?,
        Event::Resume(last_seq) => {
            gate.resume(PRODUCER, last_seq)?;
            *moment.seq = last_seq;
        }
        Event::Time(Empty {}) => gate.pass_time(now_ns),
    }
    Ok(Answer::None)
}

fn report<'a>(
    gate: &mut Gate,
    limits: &LimitsFile,
    moment: &Moment<'_>,
    line: &ReportLine,
    kind: ReportKind,
) -> Result<Answer<'a>> {
    let (instrument, known) = limits.find(&line.symbol)?;
    let qty = |text: &Option<String>, absent| text.as_deref().map_or(Ok(absent), |text| known.qty(text));
    let px = |text: &Option<String>| text.as_deref().map_or(Ok(Price(0)), |text| known.px(text));
    let id = |id: &Option<Id>, absent: u64| id.as_ref().map_or(Ok(absent.into()), Id::value);
    let report = Report {
        kind,
        side: line.side.unwrap_or(Side::Buy).into(),
        account: line.account,
        instrument,
        client_id: line.client_id,
        execution_id: id(&line.execution_id, moment.number)?,
        undone_id: id(&line.undone_id, 0)?,
        qty: qty(&line.qty, Qty(0))?,
        px: px(&line.px)?,
        executed: qty(&line.executed, Report::NOT_STATED)?,
        order_qty: qty(&line.order_qty, Qty(0))?,
        limit_px: px(&line.limit_px)?,
        trigger_px: px(&line.trigger_px)?,
    };
    Ok(Answer::Report(report, gate.apply(moment.now_ns, &report)))
}

/// The kinds of intents, times in force and kinds of reports, by number. Another word is a byte that the gate rejects.
const KINDS: [&str; 6] = ["limit", "market", "cancel", "replace", "stop_market", "stop_limit"];
const TIFS: [&str; 3] = ["good_till_cancel", "immediate_or_cancel", "fill_or_kill"];
const REPORTS: [&str; 12] = [
    "ack",
    "fill",
    "cancelled",
    "rejected",
    "expired",
    "unsent",
    "bust",
    "correct",
    "cancel_rejected",
    "replace_rejected",
    "replaced",
    "restated",
];

/// Returns the number of `word`: 0 for none, 255 for one that is not in `words`.
fn number_of(word: &str, words: &[&str]) -> u8 {
    if word.is_empty() {
        return 0;
    }
    words.iter().position(|known| *known == word).map_or(u8::MAX, |index| index as u8)
}

fn report_kind(word: &str) -> ReportKind {
    ReportKind(if word.is_empty() { u8::MAX } else { number_of(word, &REPORTS) })
}

/// Sets a mode, in the file first if there is one.
fn set_mode(gate: &Gate, modes: Option<&Modes>, switch: KillSwitch, mode: Mode) -> Result<()> {
    match modes {
        Some(modes) => modes.set(switch, mode).map(drop),
        None => {
            gate.controls().set_mode(switch, mode);
            Ok(())
        }
    }
}

impl Event {
    /// Returns the change of a mode, if the event is one.
    fn switch(&self, limits: &LimitsFile) -> Result<Option<(KillSwitch, Mode)>> {
        let (switch, mode) = match self {
            Self::Kill(switch) => (switch, Mode::Kill),
            Self::Reduce(switch) => (switch, Mode::Reduce),
            Self::Revive(switch) => (switch, Mode::Active),
            Self::Intent(_)
            | Self::Mark(_)
            | Self::Report(_)
            | Self::Fill(_)
            | Self::Cancel(_)
            | Self::State(_)
            | Self::Adopt(_)
            | Self::Resume(_)
            | Self::Time(_) => return Ok(None),
        };
        Ok(Some((switch.resolve(limits)?, mode)))
    }
}

impl Switch {
    fn resolve(&self, limits: &LimitsFile) -> Result<KillSwitch> {
        Ok(match self {
            Self::Global => KillSwitch::Global,
            Self::Account(account) => KillSwitch::Account(*account),
            Self::Strategy(strategy) => KillSwitch::Strategy(*strategy),
            Self::Instrument(symbol) => KillSwitch::Instrument(limits.find(symbol)?.0),
        })
    }
}

impl Intent {
    fn resolve<'a>(self, limits: &'a LimitsFile, moment: Moment<'_>) -> Result<(OrderIntent, &'a Instrument)> {
        let (instrument, known) = limits.find(&self.symbol)?;
        let flag = |is_set: bool, flag: IntentFlags| if is_set { flag.0 } else { 0 };
        let flags = flag(self.reduce_only, IntentFlags::REDUCE_ONLY)
            | flag(self.post_only, IntentFlags::POST_ONLY)
            | flag(self.close_position, IntentFlags::CLOSE_POSITION);
        let kind = IntentKind(number_of(&self.kind, &KINDS));
        let seq = self.seq.unwrap_or(*moment.seq + 1);
        *moment.seq = seq.max(*moment.seq);
        let is_cancel = kind == IntentKind::CANCEL;
        anyhow::ensure!(is_cancel || self.side.is_some(), "missing field `side`");
        anyhow::ensure!(is_cancel || self.qty.is_some(), "missing field `qty`");
        let intent = OrderIntent {
            seq,
            ts_ns: self.made_ms.map_or(moment.now_ns, |made_ms| made_ms.saturating_mul(1_000_000)),
            client_id: self.client_id.unwrap_or(moment.number),
            limit_px: known.px(self.px.as_deref().unwrap_or("0"))?,
            qty: known.qty(self.qty.as_deref().unwrap_or("0"))?,
            trigger_px: known.px(self.trigger_px.as_deref().unwrap_or("0"))?,
            account: self.account,
            strategy: self.strategy,
            instrument,
            kind,
            side: self.side.unwrap_or(Side::Buy).into(),
            tif: TimeInForce(number_of(&self.tif, &TIFS)),
            flags: IntentFlags(flags),
            ttl_ms: self.ttl_ms,
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

fn print_report(out: &mut impl Write, report: &Report, outcome: Outcome, as_json: bool) -> io::Result<()> {
    let kind = REPORTS.get(usize::from(report.kind.0)).unwrap_or(&"malformed");
    let Report { account, client_id, .. } = *report;
    if as_json {
        let row = json!({ "report": kind, "account": account, "client_id": client_id, "outcome": outcome.name() });
        return writeln!(out, "{row}");
    }
    writeln!(out, "{:>6}  client id {client_id:<8} {kind:12} {}", "report", outcome.name())
}

fn print_total(out: &mut impl Write, gate: &Gate, as_json: bool) -> io::Result<()> {
    let counters = gate.counters();
    let (intents, accepted, rejected) = (counters.intents(), counters.accepted(), counters.rejected());
    let reports: Vec<_> = Outcome::NAMES.iter().map(|(name, outcome)| (*name, counters.reports(*outcome))).collect();
    let seen = reports.iter().filter(|(_, count)| *count > 0);
    if as_json {
        let reports: serde_json::Map<_, _> = seen.map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        let total = json!({ "intents": intents, "accepted": accepted, "rejected": rejected, "reports": reports });
        return writeln!(out, "{total}");
    }
    writeln!(out, "{intents} intents = {accepted} accepted + {rejected} rejected")?;
    let seen: Vec<_> = seen.map(|(name, count)| format!("{count} {name}")).collect();
    if !seen.is_empty() {
        writeln!(out, "reports: {}", seen.join(", "))?;
    }
    Ok(())
}
