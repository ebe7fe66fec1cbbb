//! The events of `truetick risk`: docs/risk-events.md.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use risk_gate::{Input, Instrument, LimitsFile, StatedOrder, Statement};
use serde::Deserialize;
use tt_model::{
    InstrumentId, IntentFlags, IntentKind, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, TimeInForce,
};
use tt_risk::{InstrumentState, KillSwitch, Mark, Mode};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
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
    Reconcile(StatementLine),
    Resume(u64),
    Time(Empty),
    Load(PathBuf),
    Rate(RateLine),
    Balance(BalanceLine),
    Equity(EquityLine),
    Day(Empty),
    Enable(EnableLine),
}

/// `{"currency": "BTC", "rate": "60000"}`: the price of one in the currency of limits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateLine {
    currency: String,
    rate: String,
}

/// `{"account": 0, "currency": "USDT", "total": "1000"}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BalanceLine {
    account: u16,
    currency: String,
    total: String,
}

/// `{"account": 0, "total": "1000"}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EquityLine {
    account: u16,
    total: String,
}

/// `{"account": 0, "strategy": 1}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnableLine {
    account: u16,
    strategy: u16,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateLine {
    symbol: String,
    state: State,
}

/// [`InstrumentState`] as text.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
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
pub(super) struct Empty {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Intent {
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
    pub(super) symbol: String,
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
pub(super) struct MarkLine {
    symbol: String,
    px: String,
    bid: Option<String>,
    ask: Option<String>,
    #[serde(default)]
    is_verified: bool,
    #[serde(default)]
    proof_age_ms: u64,
}

/// A report; the keys are those of [`Report`]. `fill` and `cancel` are reports of the kinds `fill` and `cancelled`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportLine {
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
    #[serde(default)]
    fee: i64,
    version: Option<Id>,
}

/// An execution's id: a number, or decimal text for one beyond 64 bits.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Id {
    Number(u64),
    Text(String),
}

impl Id {
    fn version(&self) -> Result<u64> {
        let is_current = matches!(self, Self::Text(text) if text == "current");
        if is_current { Ok(Report::CURRENT) } else { u64::try_from(self.value()?).context("a version beyond 64 bits") }
    }

    fn value(&self) -> Result<u128> {
        match self {
            Self::Number(id) => Ok((*id).into()),
            Self::Text(text) => text.parse().with_context(|| format!("`{text}` is not an id of 128 bits")),
        }
    }
}

/// What the venue says of an account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatementLine {
    account: u16,
    #[serde(default)]
    orders: Vec<OrderLine>,
    #[serde(default)]
    positions: Vec<PositionLine>,
}

/// An open order at the venue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderLine {
    client_id: u64,
    symbol: String,
    side: Side,
    qty: String,
    #[serde(default)]
    executed: Option<String>,
}

/// A position at the venue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PositionLine {
    symbol: String,
    qty: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Switch {
    Global,
    Account(u16),
    Strategy(u16),
    Instrument(String),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Side {
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

/// The kinds of intents, times in force and kinds of reports, by number. Another word is a byte that the gate rejects.
pub(crate) const KINDS: [&str; 6] = ["limit", "market", "cancel", "replace", "stop_market", "stop_limit"];
const TIFS: [&str; 3] = ["good_till_cancel", "immediate_or_cancel", "fill_or_kill"];
pub(crate) const REPORTS: [&str; 12] = [
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

/// The one producer of the file's intents.
pub(super) const PRODUCER: u16 = 0;

/// When an event comes: its time, the number of its line, and the number of the last intent.
pub(super) struct Moment<'a> {
    pub(super) now_ns: u64,
    pub(super) number: u64,
    pub(super) seq: &'a mut u64,
}

impl Event {
    /// Returns the limits file that is to be loaded.
    pub(super) fn load(&self) -> Option<&Path> {
        if let Self::Load(path) = self { Some(path) } else { None }
    }

    /// Returns the gate's input; `None` for the change of a mode and for a load.
    pub(super) fn input(self, limits: &LimitsFile, moment: Moment<'_>) -> Result<Option<Input>> {
        let report =
            |line: &ReportLine, kind| Ok(Some(Input::Report(line.resolve_or_malformed(limits, &moment, kind))));
        Ok(Some(match self {
            Self::Kill(_) | Self::Reduce(_) | Self::Revive(_) | Self::Load(_) => return Ok(None),
            Self::Report(line) => return report(&line, report_kind(&line.kind)),
            Self::Fill(line) => return report(&line, ReportKind::FILL),
            Self::Cancel(line) => return report(&line, ReportKind::CANCELLED),
            Self::Intent(intent) => {
                let intent = intent.resolve(limits, moment);
                Input::Intent { producer: PRODUCER, generation: 0, intent }
            }
            Self::Mark(mark) => mark.resolve(limits, moment.now_ns)?,
            Self::State(line) => Input::State(limits.find(&line.symbol)?.0, line.state.into()),
            Self::Adopt(account) => Input::Adopt(account),
            Self::Reconcile(line) => Input::Reconcile(line.resolve(limits)?),
            Self::Resume(last_seq) => {
                *moment.seq = last_seq;
                Input::Resume(PRODUCER, last_seq)
            }
            Self::Time(Empty {}) => Input::Time,
            Self::Rate(line) => {
                let (currency, conversion) = limits.conversion(&line.currency, &line.rate, moment.now_ns)?;
                Input::Conversion(currency, conversion)
            }
            Self::Balance(line) => {
                let (currency, total) = limits.amount(&line.currency, &line.total)?;
                Input::Balance(line.account, currency, total)
            }
            Self::Equity(line) => Input::Equity(line.account, limits.money(&line.total)?),
            Self::Day(Empty {}) => Input::Day,
            Self::Enable(line) => Input::Enable(line.account, line.strategy),
        }))
    }

    /// Returns the symbol of an intent, else nothing.
    pub(super) fn symbol(&self) -> &str {
        if let Self::Intent(intent) = self { &intent.symbol } else { "" }
    }

    /// Returns whether the event is a mark.
    pub(super) const fn is_mark(&self) -> bool {
        matches!(self, Self::Mark(_))
    }

    /// Returns the change of a mode, if the event is one.
    pub(super) fn switch(&self, limits: &LimitsFile) -> Result<Option<(KillSwitch, Mode)>> {
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
            | Self::Reconcile(_)
            | Self::Resume(_)
            | Self::Time(_)
            | Self::Load(_)
            | Self::Rate(_)
            | Self::Balance(_)
            | Self::Equity(_)
            | Self::Day(_)
            | Self::Enable(_) => return Ok(None),
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

/// An instrument that no gate has.
const UNKNOWN: InstrumentId = InstrumentId(u32::MAX);

impl Intent {
    /// Returns the intent. A symbol without an instrument is an unknown instrument; what cannot be read is malformed.
    fn resolve(self, limits: &LimitsFile, moment: Moment<'_>) -> OrderIntent {
        let found = limits.find(&self.symbol).ok();
        let known = found.map(|(_, instrument)| instrument);
        let flag = |is_set: bool, flag: IntentFlags| if is_set { flag.0 } else { 0 };
        let flags = flag(self.reduce_only, IntentFlags::REDUCE_ONLY)
            | flag(self.post_only, IntentFlags::POST_ONLY)
            | flag(self.close_position, IntentFlags::CLOSE_POSITION);
        let kind = IntentKind(number_of(&self.kind, &KINDS));
        let seq = self.seq.unwrap_or(*moment.seq + 1);
        *moment.seq = seq.max(*moment.seq);
        let is_cancel = kind == IntentKind::CANCEL;
        let mut is_malformed = !is_cancel && (self.side.is_none() || self.qty.is_none());
        let mut steps = |text: &Option<String>, read: fn(&Instrument, &str) -> Result<i64>| {
            let value = match (text, known) {
                (Some(text), Some(known)) => read(known, text),
                _ => Ok(0),
            };
            is_malformed |= value.is_err();
            value.unwrap_or(0)
        };
        let px = |of: &Instrument, text: &str| of.px(text).map(|px| px.0);
        let qty = |of: &Instrument, text: &str| of.qty(text).map(|qty| qty.0);
        let (limit_px, trigger_px) = (Price(steps(&self.px, px)), Price(steps(&self.trigger_px, px)));
        let qty = Qty(steps(&self.qty, qty));
        OrderIntent {
            seq,
            ts_ns: self.made_ms.map_or(moment.now_ns, |made_ms| made_ms.saturating_mul(1_000_000)),
            client_id: self.client_id.unwrap_or(moment.number),
            limit_px,
            qty,
            trigger_px,
            account: self.account,
            strategy: self.strategy,
            instrument: found.map_or(UNKNOWN, |(id, _)| id),
            kind,
            side: self.side.unwrap_or(Side::Buy).into(),
            tif: TimeInForce(if is_malformed { u8::MAX } else { number_of(&self.tif, &TIFS) }),
            flags: IntentFlags(flags),
            ttl_ms: self.ttl_ms,
        }
    }
}

impl ReportLine {
    /// Returns the report. One that cannot be read is malformed: its account is in doubt.
    fn resolve_or_malformed(&self, limits: &LimitsFile, moment: &Moment<'_>, kind: ReportKind) -> Report {
        self.resolve(limits, moment, kind).unwrap_or_else(|_| Report {
            kind: ReportKind(u8::MAX),
            account: self.account,
            instrument: limits.find(&self.symbol).map_or(UNKNOWN, |(id, _)| id),
            client_id: self.client_id,
            ..Report::default()
        })
    }

    fn resolve(&self, limits: &LimitsFile, moment: &Moment<'_>, kind: ReportKind) -> Result<Report> {
        let (instrument, known) = limits.find(&self.symbol)?;
        let qty = |text: &Option<String>, absent| text.as_deref().map_or(Ok(absent), |text| known.qty(text));
        let px = |text: &Option<String>| text.as_deref().map_or(Ok(Price(0)), |text| known.px(text));
        let id = |id: &Option<Id>, absent: u64| id.as_ref().map_or(Ok(absent.into()), Id::value);
        Ok(Report {
            kind,
            side: self.side.unwrap_or(Side::Buy).into(),
            account: self.account,
            instrument,
            client_id: self.client_id,
            execution_id: id(&self.execution_id, moment.number)?,
            undone_id: id(&self.undone_id, 0)?,
            qty: qty(&self.qty, Qty(0))?,
            px: px(&self.px)?,
            executed: qty(&self.executed, Report::NOT_STATED)?,
            order_qty: qty(&self.order_qty, Qty(0))?,
            limit_px: px(&self.limit_px)?,
            trigger_px: px(&self.trigger_px)?,
            fee: self.fee,
            version: self.version.as_ref().map_or(Ok(0), Id::version)?,
        })
    }
}

impl MarkLine {
    fn resolve(&self, limits: &LimitsFile, now_ns: u64) -> Result<Input> {
        let (id, instrument) = limits.find(&self.symbol)?;
        let px = |text: &Option<String>| text.as_deref().map_or(Ok(Price(0)), |text| instrument.px(text));
        let (bid_px, ask_px, ref_px) = (px(&self.bid)?, px(&self.ask)?, instrument.px(&self.px)?);
        let proof_ns = now_ns.saturating_sub(self.proof_age_ms.saturating_mul(1_000_000));
        Ok(Input::Mark(id, Mark { ref_px, bid_px, ask_px, ts_ns: now_ns, is_verified: self.is_verified, proof_ns }))
    }
}

impl StatementLine {
    fn resolve(&self, limits: &LimitsFile) -> Result<Statement> {
        let order = |line: &OrderLine| {
            let (instrument, known) = limits.find(&line.symbol)?;
            let executed = line.executed.as_deref().map_or(Ok(Qty(0)), |text| known.qty(text))?;
            let (client_id, side, qty) = (line.client_id, line.side.into(), known.qty(&line.qty)?);
            Ok(StatedOrder { client_id, instrument, side, qty, executed })
        };
        let position = |line: &PositionLine| {
            let (instrument, known) = limits.find(&line.symbol)?;
            Ok((instrument, known.qty(&line.qty)?))
        };
        Ok(Statement {
            account: self.account,
            orders: self.orders.iter().map(order).collect::<Result<_>>()?,
            positions: self.positions.iter().map(position).collect::<Result<_>>()?,
        })
    }
}
