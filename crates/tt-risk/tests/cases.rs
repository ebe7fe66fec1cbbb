//! Named fault cases of a risk gate that fails closed, limits exactly met, and memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tt_meter::Off;
use tt_model::{Breach, InstrumentId, IntentFlags, IntentKind, Notional, OrderIntent, OrderSide, Price, Qty, Verdict};
use tt_risk::{
    Cancel, Capacity, Exposure, Fill, Gate, GateError, InstrumentLimits, KillSwitch, Limits, Mark, OwnOrder, Rate,
};

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

const CAPACITY: Capacity = Capacity { accounts: 1, instruments: 1, client_ids: 4_096, own_orders: 16 };

/// A gate through which [`buy`] passes.
fn gate(limits: &Limits) -> Gate {
    let mut gate = Gate::new(CAPACITY);
    gate.set_limits(0, BTC, limits).expect("a gate takes sound limits");
    gate.set_instrument_limits(BTC, &INSTRUMENT).expect("a gate takes sound limits");
    gate.set_account_rate(0, FAST).expect("a gate takes sound limits");
    gate.set_global_rate(FAST);
    gate.restore(0, BTC, &Exposure::default()).expect("a gate takes sound limits");
    gate.set_reference(BTC, &MARK).expect("a gate takes sound limits");
    gate
}

fn buy(px: i64, qty: i64) -> OrderIntent {
    OrderIntent { client_id: unused_id(), limit_px: Price(px), qty: Qty(qty), ..OrderIntent::default() }
}

/// Returns a client id that no other order has.
fn unused_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 32);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn sell(px: i64, qty: i64) -> OrderIntent {
    OrderIntent { side: OrderSide::Sell, ..buy(px, qty) }
}

/// Returns the verdict on `intent` with an unused client id.
fn judge(gate: &mut Gate, intent: &OrderIntent) -> Verdict {
    gate.evaluate(NOW, &OrderIntent { client_id: unused_id(), ..*intent }, &mut Off)
}

#[track_caller]
fn assert_accepted(verdict: Verdict) {
    assert_eq!((verdict.accept, verdict.reasons, verdict.first_bit), (1, Breach::NONE, 64));
}

#[track_caller]
fn assert_rejected(verdict: Verdict, reasons: &[&str]) {
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
    assert_rejected(gate.evaluate(NOW + 1_001, &buy(10_000, 20), &mut Off), &["MD_STALE"]);

    // A mark of the future would never be too old.
    gate.set_reference(BTC, &Mark { ts_ns: NOW + 1_000_000, ..MARK }).unwrap();
    assert_accepted(judge(&mut gate, &buy(10_000, 20)));
    gate.set_reference(BTC, &Mark { ts_ns: NOW + 1_000_001, ..MARK }).unwrap();
    assert_rejected(judge(&mut gate, &buy(10_000, 20)), &["MD_STALE"]);
    assert_accepted(gate.evaluate(NOW + 1, &buy(10_000, 20), &mut Off));
    gate.set_reference(BTC, &Mark { ts_ns: u64::MAX, ..MARK }).unwrap();
    assert_rejected(judge(&mut gate, &buy(10_000, 20)), &["MD_STALE"]);

    gate.set_reference(BTC, &Mark { is_verified: false, ..MARK }).unwrap();
    assert_rejected(judge(&mut gate, &buy(10_000, 20)), &["BOOK_UNVERIFIED"]);

    gate.set_reference(BTC, &Mark { ref_px: Price(0), ..MARK }).unwrap();
    assert_rejected(judge(&mut gate, &buy(10_000, 20)), &["COLLAR_REF", "MD_STALE", "BOOK_UNVERIFIED"]);
}

/// For each limit an order that meets it exactly, and one that is one unit beyond.
#[test]
fn case_k03_an_exact_limit_passes_and_one_unit_more_does_not() {
    let with = |exposure: Exposure| {
        let mut gate = gate(&LIMITS);
        gate.restore(0, BTC, &exposure).unwrap();
        for _ in 0..exposure.open_orders {
            let far = OwnOrder { client_id: unused_id(), side: OrderSide::Buy, limit_px: Price(5) };
            gate.restore_order(0, BTC, &far).unwrap();
        }
        gate
    };
    let flat = Exposure::default();
    let long = |position| Exposure { position: Qty(position), ..flat };
    let one_lot = Limits { qty_step: Qty(1), px_step: Price(1), ..LIMITS };
    let fine = || gate(&one_lot);

    assert_accepted(judge(&mut with(flat), &buy(10_000, 20)));
    assert_rejected(judge(&mut with(flat), &buy(10_001, 20)), &["PRICE_TICK"]);
    assert_rejected(judge(&mut with(flat), &buy(10_000, 21)), &["QTY_STEP"]);
    assert_rejected(judge(&mut fine(), &buy(10_000, 19)), &["QTY_MIN"]);
    assert_accepted(judge(&mut fine(), &buy(10_000, 1_000)));
    assert_rejected(judge(&mut fine(), &buy(9_985, 1_001)), &["QTY_MAX"]);
    assert_rejected(judge(&mut fine(), &buy(10_001, 1_000)), &["NOTIONAL_MAX"]);

    let mut small = gate(&Limits { qty_step: Qty(1), qty_min: Qty(1), ..LIMITS });
    assert_accepted(judge(&mut small, &buy(10_000, 5)));
    assert_rejected(judge(&mut small, &buy(9_995, 5)), &["NOTIONAL_MIN"]);

    assert_accepted(judge(&mut with(flat), &buy(10_500, 20)));
    assert_accepted(judge(&mut with(flat), &buy(9_500, 20)));
    assert_rejected(judge(&mut with(flat), &buy(10_505, 20)), &["COLLAR_REF"]);
    assert_rejected(judge(&mut with(flat), &buy(9_495, 20)), &["COLLAR_REF"]);

    assert_accepted(judge(&mut with(long(1_980)), &buy(10_000, 20)));
    assert_rejected(judge(&mut with(long(1_981)), &buy(10_000, 20)), &["POS_LONG"]);
    assert_accepted(judge(&mut with(long(-1_480)), &sell(10_000, 20)));
    assert_rejected(judge(&mut with(long(-1_481)), &sell(10_000, 20)), &["POS_SHORT"]);
    assert_accepted(judge(&mut with(long(1 << 60)), &sell(10_000, 20)));

    let open = |qty| Exposure { open_buy_qty: Qty(qty), ..long(-1_000) };
    assert_accepted(judge(&mut with(open(1_880)), &buy(10_000, 20)));
    assert_rejected(judge(&mut with(open(1_881)), &buy(10_000, 20)), &["OPEN_QTY"]);
    assert_accepted(judge(&mut with(Exposure { open_orders: 3, ..flat }), &buy(10_000, 20)));
    assert_rejected(judge(&mut with(Exposure { open_orders: 4, ..flat }), &buy(10_000, 20)), &["OPEN_ORDERS"]);
}

/// Other limits than [`LIMITS`] in every field, each of them stricter.
const STRICTER: Limits = Limits {
    px_step: Price(7),
    qty_step: Qty(30),
    qty_min: Qty(40),
    qty_max: Qty(900),
    notional_min: Notional(300_000),
    notional_max: Notional(8_000_000),
    position_long_max: Qty(1_000),
    position_short_max: Qty(900),
    open_qty_max: Qty(1_100),
    open_orders_max: 2,
    enabled: Limits::CHECKED,
};

/// For each field of [`Limits`] an exposure, an order that [`LIMITS`] accept, and the reason for which [`STRICTER`] do not.
fn distinguishing_orders() -> Vec<(Exposure, OrderIntent, &'static str)> {
    let flat = Exposure::default();
    let long = |position| Exposure { position: Qty(position), ..flat };
    vec![
        (flat, buy(10_000, 20), "PRICE_TICK"),
        (flat, buy(10_000, 100), "QTY_STEP"),
        (flat, buy(10_000, 20), "QTY_MIN"),
        (flat, buy(10_000, 950), "QTY_MAX"),
        (flat, buy(10_000, 20), "NOTIONAL_MIN"),
        (flat, buy(10_000, 900), "NOTIONAL_MAX"),
        (long(1_500), buy(10_000, 20), "POS_LONG"),
        (long(-1_400), sell(10_000, 20), "POS_SHORT"),
        (Exposure { open_buy_qty: Qty(1_500), ..long(-1_000) }, buy(10_000, 20), "OPEN_QTY"),
        (Exposure { open_orders: 3, ..flat }, buy(10_000, 20), "OPEN_ORDERS"),
        // Only the enabled reasons differ for it.
        (flat, buy(11_025, 60), "COLLAR_REF"),
    ]
}

/// Every field of a change is in force with the next evaluation, and none of a change that is rejected.
#[test]
fn case_k04_a_change_of_limits_is_never_seen_in_part() {
    let before = Limits { enabled: Breach(Limits::CHECKED.0 & !Breach::COLLAR_REF.0), ..LIMITS };
    let mut gate = gate(&before);
    let controls = gate.controls();
    let judge_at = |gate: &mut Gate, exposure: &Exposure, order: &OrderIntent| {
        gate.restore(0, BTC, exposure).unwrap();
        for _ in 0..exposure.open_orders {
            let far = OwnOrder { client_id: unused_id(), side: OrderSide::Buy, limit_px: Price(5) };
            gate.restore_order(0, BTC, &far).unwrap();
        }
        judge(gate, order)
    };
    for (exposure, order, reason) in distinguishing_orders() {
        let version = gate.set_limits(0, BTC, &before).unwrap();
        assert_eq!(controls.limits_version(), version);
        let verdict = judge_at(&mut gate, &exposure, &order);
        assert_eq!((verdict.accept, verdict.limits_version), (1, version), "{reason}: {:?}", verdict.reasons);

        let wrong = [
            Limits { px_step: Price(0), ..STRICTER },
            Limits { qty_step: Qty(-1), ..STRICTER },
            Limits { qty_min: Qty(0), ..STRICTER },
            Limits { qty_max: Qty(-1), ..STRICTER },
            Limits { notional_min: Notional(-1), ..STRICTER },
            Limits { notional_max: Notional(-1), ..STRICTER },
            Limits { position_long_max: Qty(i64::MAX), ..STRICTER },
            Limits { position_short_max: Qty(i64::MAX), ..STRICTER },
            Limits { open_qty_max: Qty(i64::MAX), ..STRICTER },
        ];
        for wrong in &wrong {
            assert_eq!(gate.set_limits(0, BTC, wrong), Err(GateError::LimitOutOfRange));
            let verdict = judge_at(&mut gate, &exposure, &order);
            assert_eq!((verdict.accept, verdict.limits_version), (1, version), "{reason}: {wrong:?}");
        }

        let version = gate.set_limits(0, BTC, &STRICTER).unwrap();
        let verdict = judge_at(&mut gate, &exposure, &order);
        assert!(verdict.reasons.names().any(|name| name == reason), "{reason}: {:?}", verdict.reasons);
        assert_eq!((verdict.accept, verdict.limits_version, controls.limits_version()), (0, version, version));
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
        assert_rejected(judge(&mut gate, &order), &[name]);
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
            // More orders than anybody could remember.
            let verdict = gate.evaluate_profile::<{ Limits::PLAIN.0 }>(NOW, &buy(10_000, 20), &mut Off);
            accepted_after += u32::from(was_killed && verdict.accept == 1);
            if round == 1_000 {
                // Lets the other thread go on.
                gate.set_global_rate(FAST);
            }
            if was_killed {
                assert_rejected(verdict, &["KILL_ACCOUNT"]);
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
                u64::from(gate.evaluate(now, &OrderIntent { client_id: unused_id(), ..order }, &mut Off).accept)
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

/// A gate of two accounts that allows anything small; what it remembers is bounded by `capacity`.
fn roomy(capacity: Capacity) -> Gate {
    let limits =
        Limits { position_long_max: Qty(1 << 40), open_qty_max: Qty(1 << 40), open_orders_max: 1_000, ..LIMITS };
    let mut gate = Gate::new(Capacity { accounts: 2, ..capacity });
    gate.set_instrument_limits(BTC, &InstrumentLimits { mark_age_max_ns: 1 << 40, ..INSTRUMENT })
        .expect("a gate takes sound limits");
    gate.set_global_rate(FAST);
    for account in 0..2 {
        gate.set_limits(account, BTC, &limits).expect("a gate takes sound limits");
        gate.set_account_rate(account, FAST).expect("a gate takes sound limits");
        gate.restore(account, BTC, &Exposure::default()).expect("a gate takes sound limits");
    }
    gate.set_reference(BTC, &MARK).expect("a gate takes sound limits");
    gate
}

fn named(client_id: u64) -> OrderIntent {
    OrderIntent { client_id, ..buy(10_000, 20) }
}

#[test]
fn case_k07_a_client_id_that_was_used_is_refused() {
    let mut gate = roomy(CAPACITY);
    let at = |gate: &mut Gate, now: u64, intent: &OrderIntent| gate.evaluate(now, intent, &mut Off);
    for id in [0, 1, 7, 1 << 32, u64::MAX] {
        assert_accepted(at(&mut gate, NOW, &named(id)));
        assert_rejected(at(&mut gate, NOW, &named(id)), &["DUP_ID"]);
        let elsewhere = OrderIntent { side: OrderSide::Sell, limit_px: Price(10_005), ..named(id) };
        assert_rejected(at(&mut gate, NOW, &elsewhere), &["DUP_ID"]);
        assert_accepted(at(&mut gate, NOW, &OrderIntent { account: 1, ..named(id) }));
        assert_accepted(at(&mut gate, NOW, &OrderIntent { kind: IntentKind::Cancel, ..named(id) }));
        assert_rejected(at(&mut gate, NOW + 3_600_000_000, &named(id)), &["DUP_ID"]);
    }
    // An order that was refused has used nothing, nor has a cancel.
    assert_rejected(at(&mut gate, NOW, &OrderIntent { limit_px: Price(10_001), ..named(8) }), &["PRICE_TICK"]);
    assert_accepted(at(&mut gate, NOW, &OrderIntent { kind: IntentKind::Cancel, ..named(8) }));
    assert_accepted(at(&mut gate, NOW, &named(8)));

    let mut gate = roomy(CAPACITY);
    gate.set_id_window(500);
    assert_accepted(at(&mut gate, NOW, &named(7)));
    assert_rejected(at(&mut gate, NOW + 499, &named(7)), &["DUP_ID"]);
    assert_rejected(at(&mut gate, NOW - 1_000_000, &named(7)), &["DUP_ID"]);
    assert_accepted(at(&mut gate, NOW + 500, &named(7)));
    assert_rejected(at(&mut gate, NOW + 999, &named(7)), &["DUP_ID"]);
    assert_eq!(gate.counters().ids_full(), 0);
}

/// An id that does not fit is rejected, because a duplicate of it could not be found.
#[test]
fn case_k07_an_id_without_room_is_refused_and_counted() {
    let mut gate = roomy(Capacity { client_ids: 1, ..CAPACITY });
    gate.set_id_window(500);
    for id in 1..=8 {
        assert_accepted(gate.evaluate(NOW, &named(id), &mut Off));
    }
    assert_rejected(gate.evaluate(NOW + 499, &named(9), &mut Off), &["DUP_ID"]);
    assert_eq!(gate.counters().ids_full(), 1);
    assert_accepted(gate.evaluate(NOW + 499, &OrderIntent { account: 1, ..named(9) }, &mut Off));
    assert_accepted(gate.evaluate(NOW + 500, &named(9), &mut Off));

    let mut none = roomy(Capacity { client_ids: 0, ..CAPACITY });
    assert_rejected(none.evaluate(NOW, &named(1), &mut Off), &["DUP_ID"]);
    let allowed = Breach(Limits::CHECKED.0 & !Breach::DUP_ID.0);
    none.set_limits(0, BTC, &Limits { enabled: allowed, ..LIMITS }).unwrap();
    let verdict = none.evaluate(NOW, &named(1), &mut Off);
    assert_eq!((verdict.accept, verdict.reasons), (1, Breach::DUP_ID), "found, and not refused");
}

#[test]
fn case_k07_ids_of_before_a_start_can_be_restored() {
    let mut gate = roomy(Capacity { client_ids: 1, ..CAPACITY });
    gate.set_id_window(500);
    for id in 1..=8 {
        gate.restore_id(0, id, NOW - 400 + id).unwrap();
        gate.restore_id(0, id, NOW - 400 + id).unwrap();
    }
    assert_eq!(gate.restore_id(0, 9, NOW), Err(GateError::Full));
    assert_eq!(gate.restore_id(2, 9, NOW), Err(GateError::Unknown));
    assert_rejected(gate.evaluate(NOW, &named(8), &mut Off), &["DUP_ID"]);
    assert_rejected(gate.evaluate(NOW + 107, &named(8), &mut Off), &["DUP_ID"]);
    assert_accepted(gate.evaluate(NOW + 108, &named(8), &mut Off));
}

#[test]
fn case_k08_an_order_that_would_meet_an_own_one_is_refused() {
    let both = [(OrderSide::Buy, OrderSide::Sell, 1), (OrderSide::Sell, OrderSide::Buy, -1)];
    for (resting_side, side, away) in both {
        let mut gate = roomy(CAPACITY);
        let resting = |px| OrderIntent { side: resting_side, ..buy(px, 20) };
        let order = |px| OrderIntent { side, ..buy(px, 20) };
        let (near, far) = (resting(10_000), resting(10_000 - 20 * away));
        assert_accepted(gate.evaluate(NOW, &far, &mut Off));
        assert_accepted(gate.evaluate(NOW, &near, &mut Off));
        assert_rejected(judge(&mut gate, &order(10_000)), &["SELF_MATCH"]);
        assert_rejected(judge(&mut gate, &order(10_000 - 5 * away)), &["SELF_MATCH"]);
        let market = OrderIntent { kind: IntentKind::Market, ..order(0) };
        assert_rejected(judge(&mut gate, &market), &["SELF_MATCH"]);
        assert_accepted(judge(&mut gate, &OrderIntent { account: 1, ..order(10_000) }));
        let behind = order(10_000 + 5 * away);
        assert_accepted(gate.evaluate(NOW, &behind, &mut Off));

        // A part of it is still open after a fill that is not the last.
        gate.apply_fill(&fill_of(&near, 10, false)).unwrap();
        assert_rejected(judge(&mut gate, &order(10_000)), &["SELF_MATCH"]);
        gate.apply_fill(&fill_of(&near, 10, true)).unwrap();
        assert_accepted(judge(&mut gate, &order(10_000)));
        assert_rejected(judge(&mut gate, &order(10_000 - 20 * away)), &["SELF_MATCH"]);
        assert_rejected(judge(&mut gate, &market), &["SELF_MATCH"]);
        gate.apply_cancel(&cancel_of(&far)).unwrap();
        assert_accepted(judge(&mut gate, &order(10_000 - 20 * away)));
        // A market order rests nowhere, so that nothing meets it.
        assert_accepted(judge(&mut gate, &market));
        gate.apply_cancel(&cancel_of(&behind)).unwrap();
    }
}

#[test]
fn case_k08_what_is_not_known_of_own_orders_is_refused() {
    let mut gate = roomy(Capacity { own_orders: 2, ..CAPACITY });
    let (first, second) = (buy(9_990, 20), buy(9_980, 20));
    assert_accepted(gate.evaluate(NOW, &first, &mut Off));
    assert_accepted(gate.evaluate(NOW, &second, &mut Off));
    assert_rejected(judge(&mut gate, &buy(9_990, 20)), &["SELF_MATCH"]);
    assert_eq!(gate.counters().own_orders_full(), 1);
    // The end of an unknown order leaves the stored orders unchanged.
    let stranger = OrderIntent { client_id: unused_id(), ..first };
    assert_eq!(gate.apply_cancel(&cancel_of(&stranger)), Err(GateError::UnknownOrder));
    let other_side = OrderIntent { side: OrderSide::Sell, ..first };
    assert_eq!(gate.apply_fill(&fill_of(&other_side, 20, true)), Err(GateError::MoreThanOpen));
    gate.apply_cancel(&cancel_of(&second)).unwrap_err();
    assert_rejected(judge(&mut gate, &sell(9_990, 20)), &["SELF_MATCH"]);
    assert_accepted(judge(&mut gate, &sell(9_995, 20)));

    let mut none = roomy(Capacity { own_orders: 0, ..CAPACITY });
    assert_rejected(judge(&mut none, &buy(9_990, 20)), &["SELF_MATCH"]);

    // Where the reason refuses nothing, what finds no room is unknown from then on.
    let mut gate = roomy(Capacity { own_orders: 1, ..CAPACITY });
    let allowed = Breach(Limits::CHECKED.0 & !Breach::SELF_MATCH.0);
    gate.set_limits(0, BTC, &Limits { enabled: allowed, ..LIMITS }).unwrap();
    let kept = buy(9_990, 20);
    assert_accepted(gate.evaluate(NOW, &kept, &mut Off));
    assert_eq!(judge(&mut gate, &buy(9_980, 20)).accept, 1);
    gate.apply_cancel(&cancel_of(&kept)).unwrap();
    gate.set_limits(0, BTC, &LIMITS).unwrap();
    assert_rejected(judge(&mut gate, &sell(9_990, 20)), &["SELF_MATCH"]);
    gate.restore(0, BTC, &Exposure::default()).unwrap();
    assert_accepted(judge(&mut gate, &sell(9_990, 20)));
}

#[test]
fn case_k08_open_orders_of_before_a_start_are_to_be_named() {
    let mut gate = roomy(Capacity { own_orders: 3, ..CAPACITY });
    let exposure = Exposure { open_buy_qty: Qty(40), open_orders: 2, ..Exposure::default() };
    gate.restore(0, BTC, &exposure).unwrap();
    let open = |client_id, px| OwnOrder { client_id, side: OrderSide::Buy, limit_px: Price(px) };
    for order in [open(1, 9_990), open(2, 9_980)] {
        assert_rejected(judge(&mut gate, &sell(10_000, 20)), &["SELF_MATCH"]);
        gate.restore_order(0, BTC, &order).unwrap();
    }
    assert_eq!(gate.restore_order(0, BTC, &open(3, 9_970)), Err(GateError::UnknownOrder));
    assert_rejected(judge(&mut gate, &sell(9_990, 20)), &["SELF_MATCH"]);
    assert_accepted(judge(&mut gate, &sell(9_995, 20)));
    let first = OrderIntent { client_id: 1, ..buy(9_990, 20) };
    gate.apply_cancel(&cancel_of(&first)).unwrap();
    assert_accepted(judge(&mut gate, &sell(9_985, 20)));
    gate.restore(0, BTC, &Exposure { open_orders: 4, ..exposure }).unwrap();
    for id in 1..=3 {
        gate.restore_order(0, BTC, &open(id, 9_990)).unwrap();
    }
    assert_eq!(gate.restore_order(0, BTC, &open(4, 9_990)), Err(GateError::Full));
}

#[test]
fn case_k09_a_fat_finger_or_a_missing_price_is_refused() {
    let mut gate = gate(&Limits { notional_max: Notional(1 << 100), ..LIMITS });
    assert_rejected(judge(&mut gate, &buy(100_000, 20)), &["COLLAR_REF"]);
    let market = OrderIntent { kind: IntentKind::Market, ..buy(0, 20) };
    let verdict = judge(&mut gate, &market);
    assert_accepted(verdict);
    assert_eq!((verdict.ref_px, verdict.worst_pos), (10_000, 20));
    gate.set_reference(BTC, &Mark { ref_px: Price(-1), ..MARK }).unwrap();
    let without = ["PRICE_NONPOS", "NOTIONAL_MIN", "MD_STALE", "BOOK_UNVERIFIED"];
    assert_rejected(judge(&mut gate, &market), &without);
}

#[test]
fn case_k10_everything_is_refused_until_positions_are_restored() {
    let mut gate = Gate::new(CAPACITY);
    gate.set_limits(0, BTC, &LIMITS).unwrap();
    gate.set_instrument_limits(BTC, &INSTRUMENT).unwrap();
    gate.set_account_rate(0, FAST).unwrap();
    gate.set_global_rate(FAST);
    gate.set_reference(BTC, &MARK).unwrap();
    assert_rejected(judge(&mut gate, &buy(10_000, 20)), &["NOT_PERMITTED"]);
    gate.restore(0, BTC, &Exposure::default()).unwrap();
    assert_accepted(judge(&mut gate, &buy(10_000, 20)));
}

#[test]
fn nothing_passes_a_new_gate_and_nothing_unknown_any_gate() {
    let mut new = Gate::new(CAPACITY);
    assert_eq!(judge(&mut new, &buy(10_000, 20)).accept, 0);
    assert_eq!(
        judge(&mut Gate::new(Capacity { accounts: 0, instruments: 0, client_ids: 0, own_orders: 0 }), &buy(10_000, 20))
            .accept,
        0
    );
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
    assert_eq!(gate.set_limits(1, BTC, &LIMITS), Err(GateError::Unknown));
    assert_eq!(gate.set_reference(InstrumentId(1), &MARK), Err(GateError::Unknown));
    assert_eq!(gate.set_account_rate(1, FAST), Err(GateError::Unknown));
    assert_eq!(gate.exposure(0, InstrumentId(1)), None);
}

#[test]
fn an_order_that_closes_may_be_small_and_one_that_only_reduces_may_not_turn() {
    let mut gate = gate(&Limits { qty_step: Qty(1), ..LIMITS });
    gate.restore(0, BTC, &Exposure { position: Qty(3), ..Exposure::default() }).unwrap();
    let close = OrderIntent { flags: IntentFlags::CLOSE_POSITION, ..sell(10_000, 3) };
    assert_rejected(judge(&mut gate, &sell(10_000, 3)), &["QTY_MIN", "NOTIONAL_MIN"]);
    assert_rejected(judge(&mut gate, &OrderIntent { qty: Qty(4), ..close }), &["QTY_MIN", "NOTIONAL_MIN"]);
    assert_rejected(judge(&mut gate, &OrderIntent { qty: Qty(0), ..close }), &["QTY_MIN"]);
    assert_accepted(judge(&mut gate, &close));
    // The three lots are spoken for.
    assert_rejected(judge(&mut gate, &close), &["QTY_MIN", "NOTIONAL_MIN"]);
    let reduce = OrderIntent { flags: IntentFlags::REDUCE_ONLY, ..sell(10_000, 20) };
    assert_rejected(judge(&mut gate, &reduce), &["REDUCE_ONLY_FLIP"]);
}

fn fill_of(order: &OrderIntent, qty: i64, is_last: bool) -> Fill {
    let OrderIntent { account, instrument, client_id, side, .. } = *order;
    Fill { account, instrument, client_id, side, qty: Qty(qty), is_last }
}

fn cancel_of(order: &OrderIntent) -> Cancel {
    let OrderIntent { account, instrument, client_id, side, qty, .. } = *order;
    Cancel { account, instrument, client_id, side, qty }
}

#[test]
fn fills_and_cancels_move_what_an_order_opened() {
    let mut gate = gate(&LIMITS);
    let (bought, sold) = (buy(10_000, 100), sell(10_005, 50));
    assert_accepted(gate.evaluate(NOW, &bought, &mut Off));
    assert_accepted(gate.evaluate(NOW, &sold, &mut Off));
    let exposure = |position, buy, sell, open_orders| Exposure {
        position: Qty(position),
        open_buy_qty: Qty(buy),
        open_sell_qty: Qty(sell),
        open_orders,
    };
    assert_eq!(gate.exposure(0, BTC), Some(exposure(0, 100, 50, 2)));
    let fill = fill_of(&bought, 40, false);
    gate.apply_fill(&fill).unwrap();
    assert_eq!(gate.exposure(0, BTC), Some(exposure(40, 60, 50, 2)));
    gate.apply_fill(&Fill { qty: Qty(60), is_last: true, ..fill }).unwrap();
    assert_eq!(gate.exposure(0, BTC), Some(exposure(100, 0, 50, 1)));
    gate.apply_cancel(&cancel_of(&sold)).unwrap();
    assert_eq!(gate.exposure(0, BTC), Some(exposure(100, 0, 0, 0)));

    assert_eq!(gate.apply_fill(&fill), Err(GateError::MoreThanOpen));
    assert_eq!(gate.exposure(0, BTC), Some(exposure(140, 0, 0, 0)));
    assert_eq!(gate.apply_fill(&Fill { qty: Qty(0), ..fill }), Err(GateError::QtyOutOfRange));
    assert_eq!(gate.apply_fill(&Fill { qty: Qty(1 << 61), ..fill }), Err(GateError::QtyOutOfRange));
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
        assert_eq!(gate.set_limits(0, BTC, &limits), Err(GateError::LimitOutOfRange));
    }
    let beyond = Exposure { position: Qty(i64::MIN), ..Exposure::default() };
    assert_eq!(gate.restore(0, BTC, &beyond), Err(GateError::QtyOutOfRange));
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
    assert!(whole.counters().by_reason().eq(profile.counters().by_reason()));
    assert_eq!(whole.counters().accepted(), profile.counters().accepted());
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
    assert_eq!((counters.intents(), counters.accepted(), counters.rejected()), (5, 2, 3));
}

#[test]
fn nothing_is_allocated_after_new() {
    let mut gate = Gate::new(Capacity { accounts: 8, instruments: 64, ..CAPACITY });
    let allocations = allocation_counter::measure(|| {
        for n in 0..10_000_u64 {
            let (account, instrument) = ((n % 9) as u16, InstrumentId(n as u32 % 70));
            let _ = gate.set_limits(account, instrument, &LIMITS);
            let _ = gate.set_instrument_limits(instrument, &INSTRUMENT);
            let _ = gate.set_account_rate(account, FAST);
            let _ = gate.restore(account, instrument, &Exposure::default());
            let _ = gate.set_reference(instrument, &MARK);
            let order = OrderIntent { account, instrument, ..buy(10_000, 20) };
            assert!(gate.evaluate(NOW, &order, &mut Off).seq > n);
            let _ = gate.apply_fill(&fill_of(&order, 20, true));
            let _ = gate.restore_id(account, n, NOW);
        }
    });
    assert_eq!(allocations.count_total, 0);
}
