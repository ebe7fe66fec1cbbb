//! The pre-trade gate on the caller's thread.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use risk_gate::{Instrument, LimitsFile};
use tt_meter::Off;
use tt_model::{InstrumentId, IntentFlags, IntentKind, OrderIntent, OrderSide, Price, Report, ReportKind, TimeInForce};
use tt_risk::Mark;

const KINDS: [(&str, IntentKind); 6] = [
    ("limit", IntentKind::LIMIT),
    ("market", IntentKind::MARKET),
    ("cancel", IntentKind::CANCEL),
    ("replace", IntentKind::REPLACE),
    ("stop-market", IntentKind::STOP_MARKET),
    ("stop-limit", IntentKind::STOP_LIMIT),
];
const SIDES: [(&str, OrderSide); 2] = [("buy", OrderSide::Buy), ("sell", OrderSide::Sell)];
const TIMES_IN_FORCE: [(&str, TimeInForce); 3] = [
    ("gtc", TimeInForce::GOOD_TILL_CANCEL),
    ("ioc", TimeInForce::IMMEDIATE_OR_CANCEL),
    ("fok", TimeInForce::FILL_OR_KILL),
];
const REPORTS: [(&str, ReportKind); 5] = [
    ("fill", ReportKind::FILL),
    ("cancelled", ReportKind::CANCELLED),
    ("rejected", ReportKind::REJECTED),
    ("expired", ReportKind::EXPIRED),
    ("unsent", ReportKind::UNSENT),
];

/// The value called `name`.
fn named<T: Copy>(what: &str, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!("{what} must be one of {}, not {name:?}", names.join(", ")))
    })
}

/// Fields of `truetick.Intent`, numbers as decimal text.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct IntentFields {
    symbol: String,
    side: String,
    quantity: String,
    price: Option<String>,
    trigger: Option<String>,
    client_id: u64,
    kind: String,
    account: String,
    strategy: u16,
    tif: String,
    reduce_only: bool,
    post_only: bool,
    close_position: bool,
    ttl_ms: u32,
}

/// Fields of a report of the venue, numbers as decimal text.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ReportFields {
    kind: String,
    symbol: String,
    account: String,
    client_id: u64,
    side: String,
    quantity: String,
    price: String,
    executed: Option<String>,
    execution_id: u64,
}

/// A gate with the limits of a file, on the caller's thread.
#[pyclass(frozen, module = "truetick._truetick", name = "GateCore")]
pub(crate) struct Gate {
    limits: LimitsFile,
    state: Mutex<State>,
}

struct State {
    gate: tt_risk::Gate,
    next_seq: u64,
}

fn wrong(error: &anyhow::Error) -> PyErr {
    PyValueError::new_err(format!("{error:#}"))
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, symbol: &str) -> PyResult<(InstrumentId, &Instrument)> {
        self.limits.find(symbol).map_err(|_| PyKeyError::new_err(format!("{symbol} is not in the limits")))
    }

    /// The number of an account's name or number.
    fn account(&self, name: &str) -> PyResult<u16> {
        let number = self.limits.account(name).or_else(|| name.parse().ok());
        number.ok_or_else(|| PyKeyError::new_err(format!("account {name} is not in the limits")))
    }

    fn intent(&self, fields: &IntentFields) -> PyResult<OrderIntent> {
        let (instrument, listed) = self.find(&fields.symbol)?;
        let price = |text: &Option<String>| match text {
            Some(text) => listed.px(text).map_err(|error| wrong(&error)),
            None => Ok(Price(0)),
        };
        let flags = [
            (fields.reduce_only, IntentFlags::REDUCE_ONLY),
            (fields.post_only, IntentFlags::POST_ONLY),
            (fields.close_position, IntentFlags::CLOSE_POSITION),
        ];
        Ok(OrderIntent {
            client_id: fields.client_id,
            limit_px: price(&fields.price)?,
            qty: listed.qty(&fields.quantity).map_err(|error| wrong(&error))?,
            trigger_px: price(&fields.trigger)?,
            account: self.account(&fields.account)?,
            strategy: fields.strategy,
            instrument,
            kind: named("kind", &fields.kind, &KINDS)?,
            side: named("side", &fields.side, &SIDES)?,
            tif: named("tif", &fields.tif, &TIMES_IN_FORCE)?,
            flags: IntentFlags(flags.iter().filter(|(is_set, _)| *is_set).fold(0, |bits, (_, flag)| bits | flag.0)),
            ttl_ms: fields.ttl_ms,
            ..OrderIntent::default()
        })
    }
}

#[pymethods]
impl Gate {
    /// A gate with the limits of TOML `text`.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let limits = LimitsFile::parse(text).map_err(|error| wrong(&error))?;
        let gate = limits.gate().map_err(|error| wrong(&error))?;
        Ok(Self { limits, state: Mutex::new(State { gate, next_seq: 1 }) })
    }

    /// A gate with the limits of a file.
    #[staticmethod]
    fn from_toml(path: PathBuf) -> PyResult<Self> {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| {
            PyOSError::new_err((error.raw_os_error(), format!("cannot read {}: {error}", path.display())))
        })?;
        Self::new(&text)
    }

    /// The symbols of the limits.
    #[getter]
    fn symbols(&self) -> Vec<String> {
        self.limits.symbols()
    }

    /// Sets the reference price of an instrument.
    fn mark(&self, symbol: &str, bid: &str, ask: &str, ts: Option<u64>, is_verified: bool) -> PyResult<()> {
        let (instrument, listed) = self.find(symbol)?;
        let px = |text: &str| listed.px(text).map_err(|error| wrong(&error));
        let (bid_px, ask_px) = (px(bid)?, px(ask)?);
        let ref_px = Price(bid_px.0.midpoint(ask_px.0));
        let mark = Mark { ref_px, bid_px, ask_px, ts_ns: moment(ts), is_verified, proof_ns: moment(ts) };
        let set = self.lock().gate.set_reference(moment(ts), instrument, &mark);
        set.map_err(|error| PyValueError::new_err(format!("{symbol}: {error}")))
    }

    /// Judges an intent: whether it is accepted, the names of all reasons, and the verdict's number.
    fn check(&self, intent: IntentFields, ts: Option<u64>) -> PyResult<(bool, Vec<&'static str>, u64)> {
        let (intent, now_ns) = (self.intent(&intent)?, moment(ts));
        let State { gate, next_seq } = &mut *self.lock();
        let intent = OrderIntent { seq: *next_seq, ts_ns: now_ns, ..intent };
        *next_seq += 1;
        let verdict = gate.evaluate(now_ns, 0, &intent, &mut Off);
        Ok((verdict.accept == 1, verdict.reasons.names().collect(), verdict.seq))
    }

    /// Applies a report of the venue about an order; returns what became of it.
    fn report(&self, report: ReportFields, ts: Option<u64>) -> PyResult<String> {
        let (instrument, listed) = self.find(&report.symbol)?;
        let qty = |text: &str| listed.qty(text).map_err(|error| wrong(&error));
        let report = Report {
            kind: named("kind", &report.kind, &REPORTS)?,
            side: named("side", &report.side, &SIDES)?,
            account: self.account(&report.account)?,
            instrument,
            client_id: report.client_id,
            execution_id: report.execution_id.into(),
            qty: qty(&report.quantity)?,
            px: listed.px(&report.price).map_err(|error| wrong(&error))?,
            executed: report.executed.as_deref().map_or(Ok(Report::NOT_STATED), qty)?,
            ..Report::default()
        };
        let outcome = self.lock().gate.apply(moment(ts), &report);
        Ok(format!("{outcome:?}").to_lowercase())
    }
}

/// `ts`, or now.
fn moment(ts: Option<u64>) -> u64 {
    ts.unwrap_or_else(|| tt_os::clock::unix_now().0)
}
