//! The evaluator alone, in a tight loop.

use crate::loops::ablation::GateSetup;
use crate::report::{Published, Statistic, Unit};
use anyhow::ensure;
use tt_meter::Off;
use tt_model::{
    Breach, InstrumentId, IntentFlags, IntentKind, Notional, OrderIntent, OrderSide, OrderTerms, Price, Qty, SplitMix64,
};
use tt_risk::{Exposure, Gate, Limits, Rate};

use super::ENGINE;
use super::reference::{Reference, Remembered};
use crate::harness::operation::{Label, Operation};

/// Different orders.
const INPUTS: usize = 1 << 16;
pub(crate) const ACCOUNTS: u16 = 4;
pub(crate) const INSTRUMENTS: u32 = 16;
/// Nanoseconds from one order to the next on the gate's clock.
const STEP_NS: u64 = 100;

/// The row of every check that remembers no single order.
pub(crate) fn all_checks() -> Label {
    label(
        "evaluator_ns",
        "evaluator",
        "Gate::evaluate on 65,536 orders of 4 accounts in 16 instruments, one in three refused: kill, tick size, \
         quantity, notional by 128-bit product, collar, position, open orders, rates, age and proof of the book; full \
         reason mask, state committed",
    )
}

/// The row of the eight checks that others publish.
pub(crate) fn eight_checks() -> Label {
    label(
        "evaluator_eight_ns",
        "evaluator_eight",
        "the same evaluator and orders with the eight checks that others publish: kill, tick size, quantity, notional by \
         128-bit product, collar, position, open orders, one message rate; full reason mask, state committed",
    )
}

/// The checks without memory, and the check of client ids.
pub(crate) const IDS: u64 = Limits::PLAIN.0 | Breach::DUP_ID.0;
/// The checks without memory, and the check of own orders.
pub(crate) const OWN: u64 = Limits::PLAIN.0 | Breach::SELF_MATCH.0;

/// The row of a profile that remembers orders.
pub(crate) fn remembering(profile: u64) -> Label {
    let (name, what) = match profile {
        IDS => (
            "evaluator_ids_ns",
            "the evaluator with the check of client ids: 65,536 orders, one in 16 under an id of the last thousand, each \
             account's ids of 30,000 orders in buckets of eight; full reason mask, state committed",
        ),
        OWN => (
            "evaluator_own_ns",
            "the evaluator with the check of own orders: 65,536 orders that rest on their side of the reference price, \
             but one in 16, held against the best opposite one of the same account; full reason mask, state committed",
        ),
        _ => ("evaluator_remembering_ns", "the evaluator with both checks that remember orders, on the same orders"),
    };
    Label { name, engine: ENGINE, what, published: Vec::new(), rate: None }
}

fn label(name: &'static str, rate_name: &'static str, what: &'static str) -> Label {
    let published = Published {
        value: 52.7,
        unit: Unit::MillionPerS,
        statistic: Statistic::Mean,
        what: "NullRing on Windows: evaluator alone, tight loop".to_owned(),
    };
    Label { name, engine: ENGINE, what, published: Vec::new(), rate: Some((rate_name, published)) }
}

/// The limits that every account has in every instrument.
pub(crate) const LIMITS: Limits = Limits {
    px_step: Price(5),
    qty_step: Qty(10),
    qty_min: Qty(10),
    qty_max: Qty(5_000),
    notional_min: Notional(500_000),
    notional_max: Notional(480_000_000),
    position_long_max: Qty(2_300_000),
    position_short_max: Qty(2_300_000),
    open_qty_max: Qty(2_400_000),
    open_orders_max: 1_000,
    enabled: Limits::CHECKED,
};

pub(crate) const COLLAR_BPS: u32 = 100;

pub(crate) const fn reference_px(instrument: u32) -> i64 {
    100_000 + 1_000 * instrument as i64
}

/// Input of every gate of these rows.
pub(crate) const GATE_SETUP: GateSetup = GateSetup {
    accounts: ACCOUNTS,
    instruments: INSTRUMENTS,
    client_ids: 0,
    own_orders: 0,
    limits: LIMITS,
    collar_bps: COLLAR_BPS,
    rate: Rate { per_second: 1_000_000_000, burst: 1_000 },
    reference_px,
};

/// For how long a client id counts as used: less than the pass over all orders takes on the gate's clock.
pub(crate) const ID_WINDOW_NS: u64 = 30_000 * STEP_NS;

/// The checks that remember orders.
const REMEMBERING: u64 = Limits::CHECKED.0 & !Limits::PLAIN.0;

/// A gate in which everything is allowed that [`LIMITS`] allows.
pub(crate) fn gate() -> Gate {
    GATE_SETUP.gate()
}

/// No position, nothing open.
pub(crate) fn reset(gate: &mut Gate) {
    for account in 0..ACCOUNTS {
        for instrument in (0..INSTRUMENTS).map(InstrumentId) {
            gate.restore(account, instrument, &Exposure::default()).expect("the row is in the table");
        }
    }
}

/// Orders of which about one in three breaks a limit, one in ten is a market order.
pub(crate) fn orders(seed: u64, count: usize) -> Vec<OrderTerms> {
    let mut random = SplitMix64::new(seed);
    let one = |index: usize| {
        let instrument = random.index(INSTRUMENTS as usize) as u32;
        let width = reference_px(instrument) * i64::from(COLLAR_BPS) / 10_000;
        let away = random.index(2 * width as usize + 100) as i64 - width - 50;
        let px = reference_px(instrument) + away;
        let qty = 10 * random.index(510) as i64;
        let exact = random.index(8) != 0;
        OrderTerms {
            client_id: index as u64,
            limit_px: Price(if exact { px / 5 * 5 } else { px }),
            qty: Qty(if random.index(16) == 0 { qty + 1 } else { qty }),
            account: random.index(usize::from(ACCOUNTS)) as u16,
            strategy: random.index(8) as u16,
            instrument: InstrumentId(instrument),
            kind: if random.index(10) == 0 { IntentKind::Market } else { IntentKind::Limit },
            side: if random.index(2) == 0 { OrderSide::Buy } else { OrderSide::Sell },
            flags: IntentFlags::default(),
            ..OrderTerms::default()
        }
    };
    (0..count).map(one).collect()
}

/// The same, one in 16 under the client id of one of the thousand before it, and on its own side of the reference price
/// but for one in 16.
fn remembered_orders(seed: u64, count: usize) -> Vec<OrderTerms> {
    let mut random = SplitMix64::new(seed + 1);
    let apart = |(index, terms): (usize, OrderTerms)| {
        let reference = reference_px(terms.instrument.0);
        let away = (terms.limit_px.0 - reference).abs();
        let is_apart = random.index(16) != 0;
        let own_side = if terms.side == OrderSide::Buy { reference - away } else { reference + away };
        let ago = if random.index(16) == 0 { 1 + random.index(1_000) } else { 0 };
        let limit_px = if is_apart { Price(own_side) } else { terms.limit_px };
        OrderTerms { client_id: index.saturating_sub(ago) as u64, limit_px, ..terms }
    };
    orders(seed, count).into_iter().enumerate().map(apart).collect()
}

/// `Gate::evaluate_profile` with the reasons of `PROFILE`.
pub(crate) struct Evaluator<const PROFILE: u64> {
    gate: Gate,
    intents: Vec<OrderIntent>,
    reference: Reference,
    remembered: Remembered,
    now_ns: u64,
    accepted: usize,
}

impl<const PROFILE: u64> Evaluator<PROFILE> {
    pub(crate) fn new() -> Self {
        let (desk, orders) = if PROFILE & REMEMBERING == 0 {
            (GATE_SETUP, orders(527, INPUTS))
        } else {
            // Every order of a pass may rest.
            let own_orders = LIMITS.open_orders_max as u16 + 1;
            (GateSetup { client_ids: 8_192, own_orders, ..GATE_SETUP }, remembered_orders(527, INPUTS))
        };
        let intents = orders.into_iter().zip(0..).map(|(terms, seq)| terms.numbered(seq)).collect();
        let mut gate = desk.gate();
        gate.set_id_window(ID_WINDOW_NS);
        let (reference, remembered) = (Reference::default(), Remembered::default());
        Self { gate, intents, reference, remembered, now_ns: 1_000_000, accepted: 0 }
    }
}

impl<const PROFILE: u64> Operation for Evaluator<PROFILE> {
    fn inputs(&self) -> usize {
        INPUTS
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.now_ns += STEP_NS;
        let verdict = self.gate.evaluate_profile::<PROFILE>(self.now_ns, &self.intents[index], &mut Off);
        digest(verdict.reasons.0, verdict.accept, verdict.worst_pos)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let intent = self.intents[index];
        self.now_ns += STEP_NS;
        let remembered = Breach(self.remembered.find(self.now_ns, &intent).0 & PROFILE);
        let (reasons, worst_pos) = self.reference.evaluate_with(&intent, remembered);
        let accept = u8::from(reasons.0 == 0);
        let reasons = Breach(reasons.0 & PROFILE);
        if accept == 1 {
            self.remembered.keep(self.now_ns, &intent);
        }
        let verdict = self.gate.evaluate_profile::<PROFILE>(self.now_ns, &intent, &mut Off);
        ensure!(
            verdict.reasons == reasons && verdict.accept == accept && verdict.worst_pos == worst_pos,
            "order {index}: {:?} for {:?}",
            verdict.reasons.names().collect::<Vec<_>>(),
            reasons.names().collect::<Vec<_>>()
        );
        self.accepted += usize::from(accept);
        if index + 1 == INPUTS {
            ensure!((INPUTS / 2..INPUTS * 4 / 5).contains(&self.accepted), "{} orders accepted", self.accepted);
        }
        Ok(digest(reasons.0, accept, worst_pos))
    }

    fn rewind(&mut self) {
        reset(&mut self.gate);
        // Nothing of the last pass counts as used.
        self.now_ns += ID_WINDOW_NS;
    }
}

#[inline(always)]
pub(crate) fn digest(reasons: u64, accept: u8, worst_pos: i64) -> u64 {
    reasons ^ u64::from(accept) << 63 ^ worst_pos.cast_unsigned().rotate_left(20)
}
