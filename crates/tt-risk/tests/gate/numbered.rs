//! A gate whose only producer numbers and stamps its intents.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use tt_meter::Off;
use tt_model::{Breach, InstrumentId, Notional, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, Verdict};
use tt_risk::tree::{Route, RowLimits};
use tt_risk::{Capacity, Gate, InstrumentLimits, InstrumentRules, InstrumentState, Limits, Mark, Rate, Rules};

pub(crate) const NOW: u64 = 1_000_000_000;
pub(crate) const BTC: InstrumentId = InstrumentId(0);
pub(crate) const FAST: Rate = Rate::UNLIMITED;

pub(crate) const LIMITS: Limits = Limits {
    px_step: Price(5),
    qty_step: Qty(10),
    qty_min: Qty(20),
    qty_max: Qty(1_000),
    notional_min: Notional(50_000),
    notional_max: Notional(10_000_000),
    position_long_max: Qty(2_000),
    position_short_max: Qty(1_500),
    open_qty_max: Qty(1_900),
    open_orders_max: 4,
    enabled: Limits::CHECKED,
};

pub(crate) const INSTRUMENT: InstrumentLimits =
    InstrumentLimits { collar_bps: 500, mark_age_max_ns: 1_000, rate: FAST };

pub(crate) const RULES: Rules = Rules {
    id_window_ns: 500,
    intent_age_max_ns: 1_000,
    cancel_repeat_ns: 100,
    gap_max_ns: 200,
    same_orders_max: u32::MAX,
    same_window_ns: 50,
    refusal_rate: FAST,
    cancel_window_ns: 800,
    exec_window_ns: 800,
    revalue_max_ns: u64::MAX,
    equity_age_max_ns: 1_000,
};

pub(crate) const MARK: Mark = Mark {
    ref_px: Price(10_000),
    bid_px: Price(9_995),
    ask_px: Price(10_005),
    ts_ns: NOW,
    is_verified: true,
    proof_ns: NOW,
};

pub(crate) const CAPACITY: Capacity = Capacity {
    accounts: 1,
    instruments: 1,
    producers: 1,
    orders: 4_096,
    executions: 4_096,
    routes: 640,
    currencies: 3,
};

/// A gate whose only producer numbers and stamps its intents.
pub(crate) struct Numbered {
    gate: Gate,
    seq: u64,
}

impl Numbered {
    pub(crate) fn new(gate: Gate) -> Self {
        Self { gate, seq: 0 }
    }

    /// Evaluates `intent` as made at `now_ns` under the next number.
    pub(crate) fn evaluate(&mut self, now_ns: u64, intent: &OrderIntent) -> Verdict {
        self.seq += 1;
        self.gate.evaluate(now_ns, 0, &OrderIntent { seq: self.seq, ts_ns: now_ns, ..*intent }, &mut Off)
    }

    /// Evaluates `intent` under an unused client id at [`NOW`].
    pub(crate) fn judge(&mut self, intent: &OrderIntent) -> Verdict {
        self.evaluate(NOW, &OrderIntent { client_id: unused_id(), ..*intent })
    }
}

impl Deref for Numbered {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.gate
    }
}

impl DerefMut for Numbered {
    fn deref_mut(&mut self) -> &mut Gate {
        &mut self.gate
    }
}

/// Strategies of every account that have a route. Each is sent by the producer of its number, or else by producer 0.
pub(crate) const STRATEGIES: u16 = 10;

/// Permits every strategy in every instrument.
pub(crate) fn permit(gate: &mut Gate, capacity: Capacity) {
    for instrument in (0..capacity.instruments).map(InstrumentId) {
        gate.set_firm_limits(instrument, &RowLimits::UNLIMITED).expect("known");
        for account in 0..capacity.accounts {
            for strategy in 0..STRATEGIES {
                let producer = if strategy < capacity.producers { strategy } else { 0 };
                let route = Route { producer, account, strategy, instrument };
                gate.set_route(&route, &RowLimits::UNLIMITED).expect("room");
                gate.set_strategy_rate(account, strategy, FAST).expect("known");
            }
        }
    }
}

/// A gate of `capacity` with `limits` everywhere, through which [`buy`] passes.
pub(crate) fn gate_of(capacity: Capacity, limits: &Limits) -> Numbered {
    let mut gate = Gate::new(capacity);
    gate.set_global_rate(FAST);
    gate.set_rules(&RULES);
    permit(&mut gate, capacity);
    for instrument in (0..capacity.instruments).map(InstrumentId) {
        gate.set_instrument_limits(instrument, &INSTRUMENT).expect("a gate takes sound limits");
        gate.set_instrument_rules(instrument, &InstrumentRules::default()).expect("a gate takes sound limits");
        gate.set_state(instrument, InstrumentState::Open).expect("a gate takes sound limits");
        gate.set_reference(0, instrument, &MARK).expect("a gate takes sound limits");
        for account in 0..capacity.accounts {
            gate.set_limits(account, instrument, limits).expect("a gate takes sound limits");
            gate.set_account_rate(account, FAST).expect("a gate takes sound limits");
            gate.restore(account, instrument, Qty(0), 0).expect("a gate takes sound limits");
        }
    }
    Numbered::new(gate)
}

/// A gate of one account through which [`buy`] passes.
pub(crate) fn gate(limits: &Limits) -> Numbered {
    gate_of(CAPACITY, limits)
}

pub(crate) fn buy(px: i64, qty: i64) -> OrderIntent {
    OrderIntent { client_id: unused_id(), limit_px: Price(px), qty: Qty(qty), ..OrderIntent::default() }
}

pub(crate) fn sell(px: i64, qty: i64) -> OrderIntent {
    OrderIntent { side: OrderSide::Sell, ..buy(px, qty) }
}

/// Returns a client id that no other order has.
pub(crate) fn unused_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 32);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns a report of `kind` on `order`.
pub(crate) fn report(kind: ReportKind, order: &OrderIntent) -> Report {
    let OrderIntent { account, instrument, client_id, side, .. } = *order;
    Report { kind, side, account, instrument, client_id, executed: Report::NOT_STATED, ..Report::default() }
}

/// Returns the fill `execution_id` of `order` at its limit price.
pub(crate) fn fill(order: &OrderIntent, execution_id: u128, qty: i64) -> Report {
    Report { execution_id, qty: Qty(qty), px: order.limit_px, ..report(ReportKind::FILL, order) }
}

#[track_caller]
pub(crate) fn assert_accepted(verdict: Verdict) {
    assert_eq!((verdict.accept, verdict.reasons, verdict.first_bit), (1, Breach::NONE, 64), "{:?}", names(&verdict));
}

#[track_caller]
pub(crate) fn assert_rejected(verdict: Verdict, reasons: &[&str]) {
    assert_eq!(names(&verdict), reasons);
    assert_eq!((verdict.accept, u32::from(verdict.first_bit)), (0, verdict.reasons.0.trailing_zeros()));
}

pub(crate) fn names(verdict: &Verdict) -> Vec<&'static str> {
    verdict.reasons.names().collect()
}
