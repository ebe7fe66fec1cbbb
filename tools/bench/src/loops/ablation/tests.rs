//! Every build judges alike, and every switch is the code that it says.

use super::early_gate::EarlyGate;
use super::{BuildPlan, GateSetup, Orders, Step, Switches, run_build};
use testkit::{Requirement, require, two_cpus};
use tt_meter::{Calibration, Clock, Off};
use tt_model::{InstrumentId, IntentFlags, IntentKind, Notional, OrderSide, OrderTerms, Price, Qty};
use tt_risk::{Limits, Rate};

const GATE_SETUP: GateSetup = GateSetup {
    accounts: 3,
    instruments: 5,
    limits: Limits {
        px_step: Price(5),
        qty_step: Qty(10),
        qty_min: Qty(20),
        qty_max: Qty(4_000),
        notional_min: Notional(2_000_000),
        notional_max: Notional(380_000_000),
        position_long_max: Qty(900_000),
        position_short_max: Qty(600_000),
        open_qty_max: Qty(700_000),
        open_orders_max: 400,
        enabled: Limits::CHECKED,
    },
    collar_bps: 100,
    rate: Rate { per_second: 12_000_000, burst: 3 },
    reference_px: |instrument| 100_000 + 1_000 * instrument as i64,
};

fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn orders(count: u64) -> Vec<OrderTerms> {
    let state = &mut 7;
    let mut one = |client_id| {
        let instrument = random(state, u64::from(GATE_SETUP.instruments) + 1) as u32;
        let px = (GATE_SETUP.reference_px)(instrument) + random(state, 2_400) as i64 - 1_200;
        let is_exact = random(state, 8) > 0;
        OrderTerms {
            client_id,
            limit_px: Price(if is_exact { px / 5 * 5 } else { px }),
            qty: Qty(random(state, 420) as i64 * 10 + i64::from(random(state, 16) == 0)),
            account: random(state, u64::from(GATE_SETUP.accounts) + 1) as u16,
            strategy: random(state, 8) as u16,
            instrument: InstrumentId(instrument),
            kind: [IntentKind::LIMIT, IntentKind::LIMIT, IntentKind::MARKET, IntentKind::CANCEL]
                [random(state, 4) as usize],
            side: if random(state, 3) == 0 { OrderSide::Sell } else { OrderSide::Buy },
            flags: IntentFlags([0, 0, 1, 4][random(state, 4) as usize]),
            ..OrderTerms::default()
        }
    };
    (0..count).map(&mut one).collect()
}

#[test]
fn every_evaluator_accepts_what_the_shipped_gate_accepts() {
    let orders = Orders::of(orders(60_000));
    let mut shipped = GATE_SETUP.gate();
    let (mut early, mut floats, mut branches) =
        (EarlyGate::<i64>::new(&GATE_SETUP), EarlyGate::<f64>::new(&GATE_SETUP), EarlyGate::<f64>::new(&GATE_SETUP));
    let (mut now_ns, mut accepted) = (1_000_000, 0);
    for (index, (fixed, float)) in orders.fixed.iter().zip(&orders.float).enumerate() {
        now_ns += 10 + index as u64 % 90;
        let (fixed, float) = (fixed.numbered(index as u64), float.numbered(index as u64));
        let expected = shipped.evaluate_profile::<{ Limits::PLAIN.0 }>(now_ns, &fixed, &mut Off);
        let reasons = expected.reasons.names().collect::<Vec<_>>();
        let expected = expected.accept != 0;
        assert_eq!(early.evaluate_until_refused(now_ns, &fixed), expected, "{index}: {reasons:?}, {fixed:?}");
        assert_eq!(branches.evaluate_until_refused(now_ns, &float), expected, "{index}: {reasons:?}");
        assert_eq!(floats.evaluate_wholly(now_ns, &float), expected, "{index}: {reasons:?}");
        accepted += u32::from(expected);
    }
    assert!((5_000..50_000).contains(&accepted), "{accepted}");
}

#[test]
fn every_build_runs_and_accepts_the_same_orders() {
    let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
    let cpus = tt_os::cpu::available().unwrap();
    let [first, second] = [cpus[0], cpus[1]];
    let origin = std::time::Instant::now();
    let mut os_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap();
    let calibration = Calibration::measure(Clock::new(|| 0), &mut os_ns, 1_000_000);
    let plan = BuildPlan {
        cpus: [first, second],
        fifo: None,
        may_lock: false,
        capacity: 64,
        warmup: 20,
        events: 300,
        time_max_ns: 30_000_000_000,
    };
    let orders = Orders::of(orders(1_000));
    let run = |switches| run_build(switches, &plan, &GATE_SETUP, &orders, &calibration).unwrap();
    let expected = run(Switches::FINAL).run.checksum;
    assert!(expected > 0);
    let steps = Step::ALL.into_iter();
    let builds = steps.flat_map(|step| [Switches::up_to(step), Switches::all_but(step)]);
    for switches in builds.chain([Switches::CONTROL]) {
        let build = run(switches);
        if build.run.is_complete {
            assert_eq!((build.run.faults, build.run.checksum), (0, expected), "{switches:?}");
        } else {
            // Threads that are not pinned may share a CPU all the time.
            assert!(!switches.has(Step::Affinity), "{switches:?} was cut short");
        }
    }
}

#[test]
fn no_build_keeps_the_next_slot() {
    assert_eq!(super::IDLE, crate::loops::Idle::Rests);
}
