//! Named fault cases of a risk gate that fails closed, limits exactly met, and memory.

use std::sync::atomic::{AtomicBool, Ordering};
use tt_meter::Off;
use tt_model::{Breach, InstrumentId, IntentFlags, IntentKind, Notional, OrderIntent, OrderSide, Price, Qty, Verdict};
use tt_risk::{Cancel, Capacity, Exposure, Fault, Fill, Gate, InstrumentLimits, KillSwitch, Limits, Mark, Rate};

const NOW: u64 = 1_000_000_000;
const BTC: InstrumentId = InstrumentId(0);
const FAST: Rate = Rate::UNLIMITED;

const LIMITS: Limits = Limits {
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

const INSTRUMENT: InstrumentLimits = InstrumentLimits { collar_bps: 500, mark_age_max_ns: 1_000, rate: FAST };
const MARK: Mark = Mark { ref_px: Price(10_000), ts_ns: NOW, is_verified: true };

/// A gate through which [`buy`] passes.
fn gate(limits: &Limits) -> Gate {
    let mut gate = Gate::new(Capacity { accounts: 1, instruments: 1 });
    gate.set_limits(0, BTC, limits).expect("a gate takes sound limits");
    gate.set_instrument_limits(BTC, &INSTRUMENT).expect("a gate takes sound limits");
    gate.set_account_rate(0, FAST).expect("a gate takes sound limits");
    gate.set_global_rate(FAST);
    gate.restore(0, BTC, &Exposure::default()).expect("a gate takes sound limits");
    gate.set_reference(BTC, &MARK).expect("a gate takes sound limits");
    gate
}

fn buy(px: i64, qty: i64) -> OrderIntent {
    OrderIntent { limit_px: Price(px), qty: Qty(qty), ..OrderIntent::default() }
}

fn sell(px: i64, qty: i64) -> OrderIntent {
    OrderIntent { side: OrderSide::Sell, ..buy(px, qty) }
}

fn judge(gate: &mut Gate, intent: &OrderIntent) -> Verdict {
    gate.evaluate(NOW, intent, &mut Off)
}

#[track_caller]
fn assert_accepted(verdict: Verdict) {
    assert_eq!((verdict.accept, verdict.reasons, verdict.first_bit), (1, Breach::NONE, 64));
}

#[track_caller]
fn assert_refused(verdict: Verdict, reasons: &[&str]) {
    assert_eq!(verdict.reasons.names().collect::<Vec<_>>(), reasons);
    assert_eq!((verdict.accept, u32::from(verdict.first_bit)), (0, verdict.reasons.0.trailing_zeros()));
}

#[test]
fn case_k01_a_product_beyond_64_bits_is_refused() {
    let mut wide = gate(&Limits { qty_max: Qty(1 << 61), enabled: Breach::NOTIONAL_MAX, ..LIMITS });
    // 2^35 * 2^30 wraps to 2 in 64 bits, and 2^32 * 2^32 to 0.
    for (px, qty) in [(1 << 35, 1 << 30), (1 << 32, 1 << 32), (i64::MAX, i64::MAX)] {
        let verdict = judge(&mut wide, &buy(px, qty));
        assert!(verdict.reasons.contains(Breach::NOTIONAL_MAX), "{:?}", verdict.reasons);
        assert_eq!(verdict.accept, 0);
    }
}

#[test]
fn case_k02_a_stale_absent_or_unproven_book_is_refused() {
    let mut gate = gate(&LIMITS);
    assert_accepted(gate.evaluate(NOW + 1_000, &buy(10_000, 20), &mut Off));
    assert_refused(gate.evaluate(NOW + 1_001, &buy(10_000, 20), &mut Off), &["MD_STALE"]);

    gate.set_reference(BTC, &Mark { is_verified: false, ..MARK }).unwrap();
    assert_refused(judge(&mut gate, &buy(10_000, 20)), &["BOOK_UNVERIFIED"]);

    gate.set_reference(BTC, &Mark { ref_px: Price(0), ..MARK }).unwrap();
    assert_refused(judge(&mut gate, &buy(10_000, 20)), &["COLLAR_REF", "MD_STALE", "BOOK_UNVERIFIED"]);
}

/// For each limit an order that meets it exactly, and one that is one unit beyond.
#[test]
fn case_k03_an_exact_limit_passes_and_one_unit_more_does_not() {
    let with = |exposure: Exposure| {
        let mut gate = gate(&LIMITS);
        gate.restore(0, BTC, &exposure).unwrap();
        gate
    };
    let flat = Exposure::default();
    let long = |position| Exposure { position: Qty(position), ..flat };
    let one_lot = Limits { qty_step: Qty(1), px_step: Price(1), ..LIMITS };
    let fine = || gate(&one_lot);

    assert_accepted(judge(&mut with(flat), &buy(10_000, 20)));
    assert_refused(judge(&mut with(flat), &buy(10_001, 20)), &["PRICE_TICK"]);
    assert_refused(judge(&mut with(flat), &buy(10_000, 21)), &["QTY_STEP"]);
    assert_refused(judge(&mut fine(), &buy(10_000, 19)), &["QTY_MIN"]);
    assert_accepted(judge(&mut fine(), &buy(10_000, 1_000)));
    assert_refused(judge(&mut fine(), &buy(9_985, 1_001)), &["QTY_MAX"]);
    assert_refused(judge(&mut fine(), &buy(10_001, 1_000)), &["NOTIONAL_MAX"]);

    let mut small = gate(&Limits { qty_step: Qty(1), qty_min: Qty(1), ..LIMITS });
    assert_accepted(judge(&mut small, &buy(10_000, 5)));
    assert_refused(judge(&mut small, &buy(9_995, 5)), &["NOTIONAL_MIN"]);

    assert_accepted(judge(&mut with(flat), &buy(10_500, 20)));
    assert_accepted(judge(&mut with(flat), &buy(9_500, 20)));
    assert_refused(judge(&mut with(flat), &buy(10_505, 20)), &["COLLAR_REF"]);
    assert_refused(judge(&mut with(flat), &buy(9_495, 20)), &["COLLAR_REF"]);

    assert_accepted(judge(&mut with(long(1_980)), &buy(10_000, 20)));
    assert_refused(judge(&mut with(long(1_981)), &buy(10_000, 20)), &["POS_LONG"]);
    assert_accepted(judge(&mut with(long(-1_480)), &sell(10_000, 20)));
    assert_refused(judge(&mut with(long(-1_481)), &sell(10_000, 20)), &["POS_SHORT"]);
    assert_accepted(judge(&mut with(long(1 << 60)), &sell(10_000, 20)));

    let open = |qty| Exposure { open_buy_qty: Qty(qty), ..long(-1_000) };
    assert_accepted(judge(&mut with(open(1_880)), &buy(10_000, 20)));
    assert_refused(judge(&mut with(open(1_881)), &buy(10_000, 20)), &["OPEN_QTY"]);
    assert_accepted(judge(&mut with(Exposure { open_orders: 3, ..flat }), &buy(10_000, 20)));
    assert_refused(judge(&mut with(Exposure { open_orders: 4, ..flat }), &buy(10_000, 20)), &["OPEN_ORDERS"]);
}

/// Limits change as a whole between two evaluations, and every verdict names the version that it was made with.
#[test]
fn case_k04_a_change_of_limits_is_never_seen_in_part() {
    let mut gate = gate(&LIMITS);
    let controls = gate.controls();
    // Under either set 1 of the two orders passes; a mixture of both would pass none or both.
    let sets = [
        Limits { qty_min: Qty(20), qty_max: Qty(100), ..LIMITS },
        Limits { qty_min: Qty(110), qty_max: Qty(200), ..LIMITS },
    ];
    for round in 0..1_000 {
        let version = gate.set_limits(0, BTC, &sets[round % 2]).unwrap();
        assert_eq!(controls.limits_version(), version);
        gate.restore(0, BTC, &Exposure::default()).unwrap();
        let verdicts = [50, 150].map(|qty| judge(&mut gate, &buy(10_000, qty)));
        assert_eq!(verdicts.map(|verdict| verdict.limits_version), [version; 2]);
        assert_eq!(verdicts.map(|verdict| verdict.accept), [u8::from(round % 2 == 0), u8::from(round % 2 == 1)]);
    }
}

#[test]
fn case_k05_a_kill_switch_is_seen_by_the_next_evaluation() {
    let switches = [
        (KillSwitch::Global, "KILL_GLOBAL"),
        (KillSwitch::Account(0), "KILL_ACCOUNT"),
        (KillSwitch::Strategy(9), "KILL_STRATEGY"),
        (KillSwitch::Instrument(BTC), "KILL_INSTRUMENT"),
    ];
    let mut gate = gate(&Limits { open_orders_max: 100, ..LIMITS });
    let controls = gate.controls();
    let order = OrderIntent { strategy: 9, ..buy(10_000, 20) };
    for (switch, name) in switches {
        assert_accepted(judge(&mut gate, &order));
        // From another thread, which has ended before the next evaluation begins.
        std::thread::scope(|scope| scope.spawn(|| assert!(controls.kill(switch))).join().unwrap());
        assert!(!controls.kill(switch) && controls.is_killed(switch));
        assert_refused(judge(&mut gate, &order), &[name]);
        assert_accepted(judge(&mut gate, &OrderIntent { kind: IntentKind::Cancel, ..order }));
        assert!(controls.revive(switch) && !controls.revive(switch));
    }
    for other in [KillSwitch::Account(1), KillSwitch::Account(64), KillSwitch::Strategy(8), KillSwitch::Strategy(73)] {
        assert!(controls.kill(other));
        assert_accepted(judge(&mut gate, &order));
    }
    assert!(!controls.kill(KillSwitch::Instrument(InstrumentId(u32::MAX))));
}

/// A switch that is set while evaluations run on another thread: once `kill` has returned, none that begins is accepted.
#[test]
fn case_k05_holds_between_threads() {
    let mut gate = gate(&Limits {
        open_orders_max: u32::MAX,
        position_long_max: Qty(1 << 60),
        open_qty_max: Qty(1 << 60),
        ..LIMITS
    });
    let controls = gate.controls();
    let is_killed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while gate_accepted(&controls) {}
            controls.kill(KillSwitch::Account(0));
            is_killed.store(true, Ordering::SeqCst);
        });
        let mut accepted_after = 0;
        for round in 0.. {
            let was_killed = is_killed.load(Ordering::SeqCst);
            let verdict = judge(&mut gate, &buy(10_000, 20));
            accepted_after += u32::from(was_killed && verdict.accept == 1);
            if round == 1_000 {
                // Lets the other thread go on.
                gate.set_global_rate(FAST);
            }
            if was_killed {
                assert_refused(verdict, &["KILL_ACCOUNT"]);
                break;
            }
        }
        assert_eq!(accepted_after, 0);
    });
}

/// Whether the limits are still those that the gate began with.
fn gate_accepted(controls: &tt_risk::Controls) -> bool {
    std::thread::yield_now();
    controls.limits_version() == 4
}

#[test]
fn case_k06_a_rate_grants_no_more_when_the_clock_steps_back_or_ends() {
    const RATE: Rate = Rate { per_second: 1_000, burst: 5 };
    let limits = Limits { enabled: Breach::RATE_ACCOUNT, ..LIMITS };
    let granted = |gate: &mut Gate, times: &mut dyn Iterator<Item = u64>| {
        let order = OrderIntent { kind: IntentKind::Limit, ..buy(10_000, 20) };
        gate.restore(0, BTC, &Exposure::default()).unwrap();
        times
            .map(|now| {
                gate.restore(0, BTC, &Exposure::default()).unwrap();
                u64::from(gate.evaluate(now, &order, &mut Off).accept)
            })
            .sum::<u64>()
    };
    let fresh = || {
        let mut gate = gate(&limits);
        gate.set_account_rate(0, RATE).unwrap();
        gate
    };
    let at = |now, count| std::iter::repeat_n(now, count);

    let mut steady = fresh();
    assert_eq!(granted(&mut steady, &mut at(NOW, 100)), 5);
    assert_eq!(granted(&mut steady, &mut at(NOW + 999_999, 100)), 0);
    assert_eq!(granted(&mut steady, &mut at(NOW + 1_000_000, 100)), 1);
    // Five at once and one each millisecond, of which six are gone.
    assert_eq!(granted(&mut steady, &mut (NOW..NOW + 1_000_000_000).step_by(100_000).skip(11)), 5 + 999 - 6);

    let mut back = fresh();
    assert_eq!(granted(&mut back, &mut at(NOW, 100)), 5);
    assert_eq!(granted(&mut back, &mut at(NOW - 500_000_000, 100)), 0);
    assert_eq!(granted(&mut back, &mut at(NOW, 100)), 0);
    let zigzag = (0..10_000_u64).map(|n| NOW + 10_000_000 + (n % 7) * 1_000);
    assert_eq!(granted(&mut back, &mut { zigzag }), 5);

    let mut end = fresh();
    assert!(granted(&mut end, &mut at(u64::MAX, 100)) == 0);
    assert_eq!(granted(&mut end, &mut at(0, 100)), 5);
    let mut wrap = fresh();
    assert_eq!(granted(&mut wrap, &mut at((1 << 63) - 10_000_000, 100)), 5);
    assert_eq!(granted(&mut wrap, &mut (0..1_000).map(|n| n * 1_000_000)), 0);

    for closed in [Rate { per_second: 0, burst: 5 }, Rate { per_second: 5, burst: 0 }] {
        let mut gate = fresh();
        gate.set_account_rate(0, closed).unwrap();
        assert_eq!(granted(&mut gate, &mut [0, NOW, u64::MAX].into_iter()), 0);
    }
}

#[test]
fn case_k09_a_fat_finger_or_a_missing_price_is_refused() {
    let mut gate = gate(&Limits { notional_max: Notional(1 << 100), ..LIMITS });
    assert_refused(judge(&mut gate, &buy(100_000, 20)), &["COLLAR_REF"]);
    let market = OrderIntent { kind: IntentKind::Market, ..buy(0, 20) };
    let verdict = judge(&mut gate, &market);
    assert_accepted(verdict);
    assert_eq!((verdict.ref_px, verdict.worst_pos), (10_000, 20));
    gate.set_reference(BTC, &Mark { ref_px: Price(-1), ..MARK }).unwrap();
    let without = ["PRICE_NONPOS", "NOTIONAL_MIN", "MD_STALE", "BOOK_UNVERIFIED"];
    assert_refused(judge(&mut gate, &market), &without);
}

#[test]
fn case_k10_everything_is_refused_until_positions_are_restored() {
    let mut gate = Gate::new(Capacity { accounts: 1, instruments: 1 });
    gate.set_limits(0, BTC, &LIMITS).unwrap();
    gate.set_instrument_limits(BTC, &INSTRUMENT).unwrap();
    gate.set_account_rate(0, FAST).unwrap();
    gate.set_global_rate(FAST);
    gate.set_reference(BTC, &MARK).unwrap();
    assert_refused(judge(&mut gate, &buy(10_000, 20)), &["NOT_PERMITTED"]);
    gate.restore(0, BTC, &Exposure::default()).unwrap();
    assert_accepted(judge(&mut gate, &buy(10_000, 20)));
}

#[test]
fn nothing_passes_a_new_gate_and_nothing_unknown_any_gate() {
    let mut new = Gate::new(Capacity { accounts: 1, instruments: 1 });
    assert_eq!(judge(&mut new, &buy(10_000, 20)).accept, 0);
    assert_eq!(judge(&mut Gate::new(Capacity { accounts: 0, instruments: 0 }), &buy(10_000, 20)).accept, 0);
    let mut gate = gate(&LIMITS);
    let unknown = [
        OrderIntent { account: 1, ..buy(10_000, 20) },
        OrderIntent { account: u16::MAX, ..buy(10_000, 20) },
        OrderIntent { instrument: InstrumentId(1), ..buy(10_000, 20) },
        OrderIntent { instrument: InstrumentId(u32::MAX), ..buy(10_000, 20) },
    ];
    for intent in unknown {
        let verdict = judge(&mut gate, &intent);
        assert!(verdict.reasons.contains(Breach::INSTRUMENT_UNKNOWN.union(Breach::NOT_PERMITTED)));
        assert_eq!((verdict.accept, verdict.first_bit), (0, 6));
        assert_eq!(judge(&mut gate, &OrderIntent { kind: IntentKind::Cancel, ..intent }).accept, 0);
    }
    assert_eq!(gate.set_limits(1, BTC, &LIMITS), Err(Fault::Unknown));
    assert_eq!(gate.set_reference(InstrumentId(1), &MARK), Err(Fault::Unknown));
    assert_eq!(gate.set_account_rate(1, FAST), Err(Fault::Unknown));
    assert_eq!(gate.exposure(0, InstrumentId(1)), None);
}

#[test]
fn an_order_that_closes_may_be_small_and_one_that_only_reduces_may_not_turn() {
    let mut gate = gate(&Limits { qty_step: Qty(1), ..LIMITS });
    gate.restore(0, BTC, &Exposure { position: Qty(3), ..Exposure::default() }).unwrap();
    let close = OrderIntent { flags: IntentFlags::CLOSE_POSITION, ..sell(10_000, 3) };
    assert_refused(judge(&mut gate, &sell(10_000, 3)), &["QTY_MIN", "NOTIONAL_MIN"]);
    assert_refused(judge(&mut gate, &OrderIntent { qty: Qty(4), ..close }), &["QTY_MIN", "NOTIONAL_MIN"]);
    assert_refused(judge(&mut gate, &OrderIntent { qty: Qty(0), ..close }), &["QTY_MIN"]);
    assert_accepted(judge(&mut gate, &close));
    // The three lots are spoken for.
    assert_refused(judge(&mut gate, &close), &["QTY_MIN", "NOTIONAL_MIN"]);
    let reduce = OrderIntent { flags: IntentFlags::REDUCE_ONLY, ..sell(10_000, 20) };
    assert_refused(judge(&mut gate, &reduce), &["REDUCE_ONLY_FLIP"]);
}

#[test]
fn fills_and_cancels_move_what_an_order_opened() {
    let mut gate = gate(&LIMITS);
    assert_accepted(judge(&mut gate, &buy(10_000, 100)));
    assert_accepted(judge(&mut gate, &sell(10_000, 50)));
    let exposure = |position, buy, sell, open_orders| Exposure {
        position: Qty(position),
        open_buy_qty: Qty(buy),
        open_sell_qty: Qty(sell),
        open_orders,
    };
    assert_eq!(gate.exposure(0, BTC), Some(exposure(0, 100, 50, 2)));
    let fill = Fill { account: 0, instrument: BTC, side: OrderSide::Buy, qty: Qty(40), is_last: false };
    gate.apply_fill(&fill).unwrap();
    assert_eq!(gate.exposure(0, BTC), Some(exposure(40, 60, 50, 2)));
    gate.apply_fill(&Fill { qty: Qty(60), is_last: true, ..fill }).unwrap();
    assert_eq!(gate.exposure(0, BTC), Some(exposure(100, 0, 50, 1)));
    gate.apply_cancel(&Cancel { account: 0, instrument: BTC, side: OrderSide::Sell, qty: Qty(50) }).unwrap();
    assert_eq!(gate.exposure(0, BTC), Some(exposure(100, 0, 0, 0)));

    assert_eq!(gate.apply_fill(&fill), Err(Fault::MoreThanOpen));
    assert_eq!(gate.exposure(0, BTC), Some(exposure(140, 0, 0, 0)));
    assert_eq!(gate.apply_fill(&Fill { qty: Qty(0), ..fill }), Err(Fault::QtyOutOfRange));
    assert_eq!(gate.apply_fill(&Fill { qty: Qty(1 << 61), ..fill }), Err(Fault::QtyOutOfRange));
    assert_eq!(gate.exposure(0, BTC), Some(exposure(140, 0, 0, 0)));
}

#[test]
fn limits_that_mean_nothing_are_not_taken() {
    let mut gate = gate(&LIMITS);
    let nonsense = [
        Limits { px_step: Price(0), ..LIMITS },
        Limits { qty_step: Qty(-1), ..LIMITS },
        Limits { qty_min: Qty(0), ..LIMITS },
        Limits { qty_max: Qty((1 << 61) + 1), ..LIMITS },
        Limits { notional_max: Notional(-1), ..LIMITS },
        Limits { position_short_max: Qty(-1), ..LIMITS },
        Limits { open_qty_max: Qty(i64::MAX), ..LIMITS },
    ];
    let version = gate.controls().limits_version();
    for limits in nonsense {
        assert_eq!(gate.set_limits(0, BTC, &limits), Err(Fault::LimitOutOfRange));
    }
    let beyond = Exposure { position: Qty(i64::MIN), ..Exposure::default() };
    assert_eq!(gate.restore(0, BTC, &beyond), Err(Fault::QtyOutOfRange));
    assert_eq!(gate.controls().limits_version(), version);
    assert_accepted(judge(&mut gate, &buy(10_000, 20)));
}

/// A profile answers as the whole evaluation does under limits that enable no more.
#[test]
fn a_profile_finds_the_same_of_what_it_looks_for() {
    const EIGHT: u64 = Limits::EIGHT.0;
    let limits = Limits { enabled: Limits::EIGHT, open_orders_max: 300, ..LIMITS };
    let (mut whole, mut profile) = (gate(&limits), gate(&limits));
    let mut accepted = 0;
    for n in 0..20_000_i64 {
        let px = 9_400 + (n * 37) % 1_300;
        let order = if n % 3 == 0 { sell(px, 5 * (n % 300)) } else { buy(px / 5 * 5, 10 * (n % 120)) };
        let order = OrderIntent { flags: IntentFlags((n % 8) as u8), ..order };
        let now = NOW + n.unsigned_abs();
        let [expected, got] =
            [whole.evaluate(now, &order, &mut Off), profile.evaluate_profile::<EIGHT>(now, &order, &mut Off)];
        assert_eq!(got, Verdict { reasons: Breach(expected.reasons.0 & EIGHT), ..expected });
        assert_eq!(whole.exposure(0, BTC), profile.exposure(0, BTC));
        accepted += u32::from(got.accept);
        if n % 50 == 0 {
            for gate in [&mut whole, &mut profile] {
                gate.restore(0, BTC, &Exposure { position: Qty(n % 4_000 - 2_000), ..Exposure::default() }).unwrap();
            }
        }
    }
    assert!(accepted > 1_000, "{accepted}");
    assert_eq!(whole.counters(), profile.counters());
}

#[test]
fn every_intent_is_counted_under_one_heading() {
    let mut gate = gate(&LIMITS);
    let intents = [buy(10_000, 20), buy(10_001, 20), buy(10_001, 21), buy(10_000, 21), buy(10_000, 20)];
    let numbers = intents.map(|intent| judge(&mut gate, &intent).seq);
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let counters = gate.counters();
    let counted: Vec<_> = counters.by_reason().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(Breach::PRICE_TICK, 2), (Breach::QTY_STEP, 1)]);
    assert_eq!((counters.intents(), counters.accepted(), counters.refused()), (5, 2, 3));
}

#[test]
fn nothing_is_allocated_after_new() {
    let mut gate = Gate::new(Capacity { accounts: 8, instruments: 64 });
    let allocations = allocation_counter::measure(|| {
        for n in 0..10_000_u64 {
            let (account, instrument) = ((n % 9) as u16, InstrumentId(n as u32 % 70));
            let _ = gate.set_limits(account, instrument, &LIMITS);
            let _ = gate.set_instrument_limits(instrument, &INSTRUMENT);
            let _ = gate.set_account_rate(account, FAST);
            let _ = gate.restore(account, instrument, &Exposure::default());
            let _ = gate.set_reference(instrument, &MARK);
            let verdict = judge(&mut gate, &OrderIntent { account, instrument, ..buy(10_000, 20) });
            assert!(verdict.seq > n);
            let _ = gate.apply_fill(&Fill { account, instrument, side: OrderSide::Buy, qty: Qty(20), is_last: true });
        }
    });
    assert_eq!(allocations.count_total, 0);
}
