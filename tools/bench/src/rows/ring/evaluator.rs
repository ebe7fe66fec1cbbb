//! The evaluator alone, in a tight loop.

use crate::loops::ablation::GateSetup;
use crate::report::{Published, Statistic, Unit};
use anyhow::ensure;
use tt_meter::{Off, Sampler};
use tt_model::{
    Breach, InstrumentId, IntentFlags, IntentKind, Notional, OrderIntent, OrderSide, OrderTerms, Price, Qty, SplitMix64,
};
use tt_risk::{Evaluator as Core, Exposure, Limits, Rate};

use super::ENGINE;
use super::reference::Reference;
use crate::harness::operation::{Label, Operation};
use crate::harness::stages::{Pass, StageRows};

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
        "Evaluator::evaluate_profile on 65,536 orders of 4 accounts in 16 instruments, one in three refused: kill, tick size, \
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

fn label(name: &'static str, rate_name: &'static str, what: &'static str) -> Label {
    let published = Published {
        value: 52.7,
        unit: Unit::MillionPerS,
        statistic: Statistic::Mean,
        what: "NullRing in C++ on Windows: its evaluator of eight checks alone, tight loop, one core".to_owned(),
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
    limits: LIMITS,
    collar_bps: COLLAR_BPS,
    rate: Rate { per_second: 1_000_000_000, burst: 1_000 },
    reference_px,
};

/// A gate in which everything is allowed that [`LIMITS`] allows.
pub(crate) fn gate() -> Core {
    GATE_SETUP.gate()
}

/// No position, nothing open.
pub(crate) fn reset(gate: &mut Core) {
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
            kind: if random.index(10) == 0 { IntentKind::MARKET } else { IntentKind::LIMIT },
            side: if random.index(2) == 0 { OrderSide::Buy } else { OrderSide::Sell },
            flags: IntentFlags::default(),
            ..OrderTerms::default()
        }
    };
    (0..count).map(one).collect()
}

/// `Evaluator::evaluate_profile` with the reasons of `PROFILE`.
pub(crate) struct Evaluator<const PROFILE: u64> {
    gate: Core,
    intents: Vec<OrderIntent>,
    reference: Reference,
    now_ns: u64,
    accepted: usize,
}

impl<const PROFILE: u64> Evaluator<PROFILE> {
    pub(crate) fn new() -> Self {
        let intents = orders(527, INPUTS).into_iter().zip(0..).map(|(terms, seq)| terms.numbered(seq)).collect();
        Self { gate: gate(), intents, reference: Reference::default(), now_ns: 1_000_000, accepted: 0 }
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
        let (reasons, worst_pos) = self.reference.evaluate(&intent);
        let accept = u8::from(reasons.0 == 0);
        let reasons = Breach(reasons.0 & PROFILE);
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
    }
}

/// The stages of an order's pass through the evaluator.
pub(crate) const STAGES: StageRows = StageRows {
    name: "evaluator_stages",
    engine: ENGINE,
    prefix: "evaluator_stage_",
    what: "Evaluator::evaluate_profile on an order, as evaluator_ns",
    published: |_| None,
};

impl<const PROFILE: u64> Pass for Evaluator<PROFILE> {
    #[inline(always)]
    fn run_watched(&mut self, index: usize, probe: &mut Sampler) -> u64 {
        self.now_ns += STEP_NS;
        let verdict = self.gate.evaluate_profile::<PROFILE>(self.now_ns, &self.intents[index], probe);
        digest(verdict.reasons.0, verdict.accept, verdict.worst_pos)
    }
}

#[inline(always)]
pub(crate) fn digest(reasons: u64, accept: u8, worst_pos: i64) -> u64 {
    reasons ^ u64::from(accept) << 63 ^ worst_pos.cast_unsigned().rotate_left(20)
}
