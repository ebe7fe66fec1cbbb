//! Events in text, one JSON object each: docs/risk-events.md describes them.

mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use gate_limits::{Instrument, LimitsFile};
use risk_gate::{Input, StatedOrder, Statement};
use serde::Deserialize;
use tt_model::{
    InstrumentId, IntentFlags, IntentKind, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, TimeInForce,
};
use tt_risk::{InstrumentState, KillSwitch, Mark, Mode};

pub use words::{INTENT_KINDS, REPORT_KINDS};
use words::{TIFS, number_of, report_kind};

/// An event in text: an intent, a report, a mark, or an order of an operator.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct EventLine(Event);

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
struct RateLine {
    currency: String,
    rate: String,
}

/// `{"account": 0, "currency": "USDT", "total": "1000"}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BalanceLine {
    account: u16,
    currency: String,
    total: String,
}

/// `{"account": 0, "total": "1000"}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EquityLine {
    account: u16,
    total: String,
}

/// `{"account": 0, "strategy": 1}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnableLine {
    account: u16,
    strategy: u16,
}

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
    #[serde(default)]
    proof_age_ms: u64,
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
    #[serde(default)]
    fee: i64,
    version: Option<Id>,
}

/// An execution's id: a number, or decimal text for one beyond 64 bits.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Id {
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
struct StatementLine {
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

/// The one producer of intents in text.
pub const EVENT_PRODUCER: u16 = 0;

/// When an event comes.
#[derive(Debug)]
pub struct Moment<'a> {
    /// Its time.
    pub now_ns: u64,
    /// The number of its line.
    pub number: u64,
    /// The number of the last intent.
    pub seq: &'a mut u64,
}

impl EventLine {
    /// Returns the limits file that is to be loaded.
    #[must_use]
    pub fn load(&self) -> Option<&Path> {
        if let Event::Load(path) = &self.0 { Some(path) } else { None }
    }

    /// Returns the gate's input; `None` for the change of a mode and for a load.
    ///
    /// # Errors
    /// The limits have no such instrument or currency, or a number cannot be read.
    pub fn input(self, limits: &LimitsFile, moment: Moment<'_>) -> Result<Option<Input>> {
        let report =
            |line: &ReportLine, kind| Ok(Some(Input::Report(line.resolve_or_malformed(limits, &moment, kind))));
        Ok(Some(match self.0 {
            Event::Kill(_) | Event::Reduce(_) | Event::Revive(_) | Event::Load(_) => return Ok(None),
            Event::Report(line) => return report(&line, report_kind(&line.kind)),
            Event::Fill(line) => return report(&line, ReportKind::FILL),
            Event::Cancel(line) => return report(&line, ReportKind::CANCELLED),
            Event::Intent(intent) => {
                let intent = intent.resolve(limits, moment);
                Input::Intent { producer: EVENT_PRODUCER, generation: 0, intent }
            }
            Event::Mark(mark) => mark.resolve(limits, moment.now_ns)?,
            Event::State(line) => Input::State(limits.find(&line.symbol)?.0, line.state.into()),
            Event::Adopt(account) => Input::Adopt(account),
            Event::Reconcile(line) => Input::Reconcile(line.resolve(limits)?),
            Event::Resume(last_seq) => {
                *moment.seq = last_seq;
                Input::Resume(EVENT_PRODUCER, last_seq)
            }
            Event::Time(Empty {}) => Input::Time,
            Event::Rate(line) => {
                let (currency, conversion) = limits.conversion(&line.currency, &line.rate, moment.now_ns)?;
                Input::Conversion(currency, conversion)
            }
            Event::Balance(line) => {
                let (currency, total) = limits.amount(&line.currency, &line.total)?;
                Input::Balance(line.account, currency, total)
            }
            Event::Equity(line) => Input::Equity(line.account, limits.money(&line.total)?),
            Event::Day(Empty {}) => Input::Day,
            Event::Enable(line) => Input::Enable(line.account, line.strategy),
        }))
    }

    /// Returns the symbol of an intent, else nothing.
    #[must_use]
    pub fn symbol(&self) -> &str {
        if let Event::Intent(intent) = &self.0 { &intent.symbol } else { "" }
    }

    /// Returns whether the event is a mark.
    #[must_use]
    pub const fn is_mark(&self) -> bool {
        matches!(self.0, Event::Mark(_))
    }

    /// Returns the change of a mode, if the event is one.
    ///
    /// # Errors
    /// The limits have no such instrument.
    pub fn switch(&self, limits: &LimitsFile) -> Result<Option<(KillSwitch, Mode)>> {
        let (switch, mode) = match &self.0 {
            Event::Kill(switch) => (switch, Mode::Kill),
            Event::Reduce(switch) => (switch, Mode::Reduce),
            Event::Revive(switch) => (switch, Mode::Active),
            Event::Intent(_)
            | Event::Mark(_)
            | Event::Report(_)
            | Event::Fill(_)
            | Event::Cancel(_)
            | Event::State(_)
            | Event::Adopt(_)
            | Event::Reconcile(_)
            | Event::Resume(_)
            | Event::Time(_)
            | Event::Load(_)
            | Event::Rate(_)
            | Event::Balance(_)
            | Event::Equity(_)
            | Event::Day(_)
            | Event::Enable(_) => return Ok(None),
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
        let kind = IntentKind(number_of(&self.kind, &INTENT_KINDS));
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
