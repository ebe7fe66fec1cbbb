//! The gate alone on one core: one order at a time, or each order depending on the verdict before it.

use std::hint::black_box;

use anyhow::ensure;
use tt_meter::{Calibration, Off};
use tt_model::{Breach, OrderIntent};
use tt_risk::{Evaluator, Limits};

use crate::early_out::{Answer, EarlyOut};
use crate::orders::{self, BEGIN_NS, LARGE, ORDERS, SMALL, STEP_NS, Size};

const EIGHT: u64 = Limits::EIGHT.0;
const PLAIN: u64 = Limits::PLAIN.0;

/// Which checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Those that others publish figures for.
    Eight,
    /// All that need not remember single orders.
    All,
}

/// How orders follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The next order is known before the verdict is.
    One,
    /// Where the next order lies depends on the verdict.
    Dependent,
}

/// Who judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    Gate,
    GateAgain,
    EarlyOut,
}

pub(crate) const JUDGES: [Judge; 3] = [Judge::Gate, Judge::GateAgain, Judge::EarlyOut];

impl Judge {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::GateAgain => "gate_again",
            Self::EarlyOut => "early_out",
        }
    }
}

/// Orders, and both judges, who hold the same limits.
pub(crate) struct Bench {
    gate: Evaluator,
    early_out: EarlyOut,
    intents: Vec<OrderIntent>,
    size: Size,
    /// The judges' clock, which never goes back: their rates remember.
    now_ns: u64,
}

impl Bench {
    /// For a gate that fits into the caches, or one that does not.
    pub(crate) fn new(is_large: bool) -> Self {
        let size = if is_large { LARGE } else { SMALL };
        let terms = orders::orders(527, ORDERS, size);
        let intents = terms.into_iter().zip(0..).map(|(terms, seq)| terms.numbered(seq)).collect();
        Self { gate: orders::gate(size), early_out: EarlyOut::new(size), intents, size, now_ns: BEGIN_NS }
    }

    /// Both judges agree on every order: the same ones pass, and the rival's reason is among the gate's.
    ///
    /// # Errors
    /// They do not.
    pub(crate) fn verify(&mut self) -> anyhow::Result<()> {
        self.verify_profile::<EIGHT>()?;
        self.verify_profile::<PLAIN>()
    }

    fn verify_profile<const PROFILE: u64>(&mut self) -> anyhow::Result<()> {
        self.rewind();
        let mut accepted = 0;
        for intent in &self.intents {
            self.now_ns += STEP_NS;
            let verdict = self.gate.evaluate_profile::<PROFILE>(self.now_ns, intent, &mut Off);
            let Answer { reason, worst_pos } = self.early_out.evaluate::<PROFILE>(self.now_ns, intent);
            let is_accepted = reason == Breach::NONE;
            ensure!(
                (verdict.accept == 1) == is_accepted
                    && verdict.reasons.contains(reason)
                    && (!is_accepted || verdict.worst_pos == worst_pos),
                "order {}: the gate says {:?}, the rival {:?}",
                intent.seq,
                verdict.reasons.names().collect::<Vec<_>>(),
                reason.names().collect::<Vec<_>>()
            );
            accepted += usize::from(is_accepted);
        }
        ensure!((ORDERS / 2..ORDERS * 4 / 5).contains(&accepted), "{accepted} orders accepted");
        Ok(())
    }

    fn rewind(&mut self) {
        orders::reset(&mut self.gate, self.size);
        self.early_out.reset();
    }

    /// Nanoseconds an order, in the mean of one pass over all orders.
    pub(crate) fn run(&mut self, judge: Judge, profile: Profile, manner: Manner, calibration: &Calibration) -> f64 {
        self.rewind();
        match profile {
            Profile::Eight => self.run_profile::<EIGHT>(judge, manner, calibration),
            Profile::All => self.run_profile::<PLAIN>(judge, manner, calibration),
        }
    }

    fn run_profile<const PROFILE: u64>(&mut self, judge: Judge, manner: Manner, calibration: &Calibration) -> f64 {
        let Self { gate, early_out, intents, now_ns, .. } = self;
        let clock = calibration.clock;
        let begin = clock.start();
        let folded = match judge {
            Judge::Gate | Judge::GateAgain => {
                let mut judge = |now_ns, intent: &OrderIntent| {
                    let verdict = gate.evaluate_profile::<PROFILE>(now_ns, intent, &mut Off);
                    verdict.reasons.0
                        ^ u64::from(verdict.accept) << 63
                        ^ verdict.worst_pos.cast_unsigned().rotate_left(20)
                };
                pass(intents, now_ns, manner, &mut judge)
            }
            Judge::EarlyOut => {
                let mut judge = |now_ns, intent: &OrderIntent| {
                    let Answer { reason, worst_pos } = early_out.evaluate::<PROFILE>(now_ns, intent);
                    reason.0 ^ worst_pos.cast_unsigned().rotate_left(20)
                };
                pass(intents, now_ns, manner, &mut judge)
            }
        };
        let elapsed = clock.end().since(begin);
        black_box(folded);
        calibration.scale.ns_f64(elapsed as f64) / intents.len() as f64
    }
}

/// All orders once; the sum of what `judge` said.
#[inline(always)]
fn pass(
    intents: &[OrderIntent],
    clock_ns: &mut u64,
    manner: Manner,
    judge: &mut impl FnMut(u64, &OrderIntent) -> u64,
) -> u64 {
    let mut now_ns = *clock_ns;
    let mut folded = 0_u64;
    match manner {
        Manner::One => {
            for intent in black_box(intents) {
                now_ns += STEP_NS;
                folded = folded.wrapping_add(judge(now_ns, intent));
            }
        }
        Manner::Dependent => {
            // Zero, but only at run time: the address of each order waits for the verdict on the one before.
            let zero = black_box(0_usize);
            let mut last = 0;
            for index in 0..intents.len() {
                now_ns += STEP_NS;
                last = judge(now_ns, &intents[index + (last as usize & zero)]);
                folded = folded.wrapping_add(last);
            }
        }
    }
    *clock_ns = now_ns;
    folded
}
