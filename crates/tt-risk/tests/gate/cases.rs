//! Named fault cases of a risk gate that fails closed, limits exactly met, and memory.

use crate::numbered::{
    BTC, CAPACITY, FAST, INSTRUMENT, LIMITS, MARK, NOW, Numbered, RULES, assert_accepted, assert_rejected, buy, fill,
    gate, gate_of, names, permit, report, sell, unused_id,
};
use std::sync::atomic::{AtomicBool, Ordering};
use tt_meter::Off;
use tt_model::{
    Breach, InstrumentId, IntentFlags, IntentKind, Notes, Notional, OrderIntent, OrderSide, Price, Qty, ReportKind,
};
use tt_risk::money::{Conversion, Ratio};
use tt_risk::tree::{Node, NodeLimits};
use tt_risk::{
    Capacity, Exposure, Gate, GateError, InstrumentLimits, InstrumentRules, InstrumentState, KillSwitch, Limits, Mark,
    OpenOrder, Rules,
};

#[test]
fn case_k01_a_product_beyond_64_bits_is_refused() {
    let mut wide = gate(&Limits { qty_max: Qty(1 << 61), enabled: Breach::NOTIONAL_MAX, ..LIMITS });
    // 2^35 * 2^30 wraps to 2 in 64 bits, and 2^32 * 2^32 to 0.
    for (px, qty) in [(1 << 35, 1 << 30), (1 << 32, 1 << 32), (i64::MAX, i64::MAX)] {
        let verdict = wide.judge(&buy(px, qty));
        assert!(verdict.reasons.contains(Breach::NOTIONAL_MAX), "{:?}", verdict.reasons);
        assert_eq!(verdict.accept, 0);
    }
}

#[test]
fn case_k02_k12_a_stale_future_absent_or_unproven_book_is_refused() {
    let mut gate = gate(&LIMITS);
    gate.set_rules(&Rules { id_window_ns: 0, ..RULES });
    let mut now = NOW;
    let mut at = |gate: &mut Numbered, later_ns: u64, mark: Option<Mark>| {
        now += later_ns;
        if let Some(mark) = mark {
            gate.set_reference(now, BTC, &Mark { ts_ns: now.wrapping_add(mark.ts_ns), ..mark }).unwrap();
        }
        let order = buy(10_000, 20);
        let verdict = gate.evaluate(now, &order);
        gate.apply(now, &report(ReportKind::REJECTED, &order));
        verdict
    };
    assert_accepted(at(&mut gate, 1_000, None));
    assert_rejected(at(&mut gate, 1, None), &["MD_STALE"]);

    // A mark of the future would never be too old.
    let mark = |ahead_ns| Some(Mark { ts_ns: ahead_ns, ..MARK });
    assert_accepted(at(&mut gate, 0, mark(1_000_000)));
    assert_rejected(at(&mut gate, 0, mark(1_000_001)), &["MD_STALE"]);
    assert_accepted(at(&mut gate, 1, None));
    assert_rejected(at(&mut gate, 0, mark(u64::MAX / 2)), &["MD_STALE"]);

    assert_rejected(at(&mut gate, 0, Some(Mark { is_verified: false, ts_ns: 0, ..MARK })), &["BOOK_UNVERIFIED"]);
    let none = Mark { ref_px: Price(0), ts_ns: 0, ..MARK };
    assert_rejected(at(&mut gate, 0, Some(none)), &["COLLAR_REF", "MD_STALE", "BOOK_UNVERIFIED"]);
}

#[test]
fn a_proof_may_be_as_old_as_the_instrument_permits() {
    let at = |later_ns: u64, proof_ns: u64, age_max_ns: Option<u64>| {
        let mut gate = gate(&LIMITS);
        let rules = InstrumentRules { proof_age_max_ns: age_max_ns, ..InstrumentRules::default() };
        gate.set_instrument_rules(BTC, &rules).unwrap();
        gate.set_reference(NOW, BTC, &Mark { ts_ns: NOW + later_ns, proof_ns, ..MARK }).unwrap();
        names(&gate.evaluate(NOW + later_ns, &buy(10_000, 20)))
    };
    // The mark is new each time.
    assert_eq!(at(700, NOW, Some(700)), [""; 0]);
    assert_eq!(at(701, NOW, Some(700)), ["BOOK_UNVERIFIED"]);
    assert_eq!(at(701, NOW, None), [""; 0]);
    // Without a time, and of the future.
    assert_eq!(at(0, 0, Some(700)), ["BOOK_UNVERIFIED"]);
    assert_eq!(at(0, NOW + 1_000_000, Some(700)), [""; 0]);
    assert_eq!(at(0, NOW + 1_000_001, Some(700)), ["BOOK_UNVERIFIED"]);
    // Where unverified books pass, an old proof does, too.
    let mut gate = gate(&Limits { enabled: Breach(Limits::CHECKED.0 & !Breach::BOOK_UNVERIFIED.0), ..LIMITS });
    let rules = InstrumentRules { proof_age_max_ns: Some(0), ..InstrumentRules::default() };
    gate.set_instrument_rules(BTC, &rules).unwrap();
    gate.set_reference(NOW, BTC, &Mark { proof_ns: NOW - 1, ..MARK }).unwrap();
    let verdict = gate.judge(&buy(10_000, 20));
    assert_eq!((verdict.accept, verdict.reasons), (1, Breach::BOOK_UNVERIFIED));
}

/// A gate with `position` and open orders of these sides and quantities, far from the market.
fn with(limits: &Limits, position: i64, open: &[(OrderSide, i64)]) -> Numbered {
    let mut gate = gate(limits);
    gate.restore(0, BTC, Qty(position), open.len() as u32).expect("a known row");
    for (side, qty) in open {
        let px = if *side == OrderSide::Buy { 5 } else { 100_000 };
        gate.restore_order(0, BTC, &resting(unused_id(), *side, px, *qty)).expect("room for it");
    }
    gate
}

fn resting(client_id: u64, side: OrderSide, px: i64, qty: i64) -> OpenOrder {
    let (limit_px, qty) = (Price(px), Qty(qty));
    OpenOrder { strategy: 0, client_id, kind: IntentKind::LIMIT, side, limit_px, qty, executed: Qty(0) }
}

/// For each limit an order that meets it exactly, and one that is one unit beyond.
#[test]
fn case_k03_an_exact_limit_passes_and_one_unit_more_does_not() {
    const BUY: OrderSide = OrderSide::Buy;
    let one_lot = Limits { qty_step: Qty(1), px_step: Price(1), ..LIMITS };
    let fine = || gate(&one_lot);
    let long = |position| with(&LIMITS, position, &[]);

    assert_accepted(long(0).judge(&buy(10_000, 20)));
    assert_rejected(long(0).judge(&buy(10_001, 20)), &["PRICE_TICK"]);
    assert_rejected(long(0).judge(&buy(10_000, 21)), &["QTY_STEP"]);
    assert_rejected(fine().judge(&buy(10_000, 19)), &["QTY_MIN"]);
    assert_accepted(fine().judge(&buy(10_000, 1_000)));
    assert_rejected(fine().judge(&buy(9_985, 1_001)), &["QTY_MAX"]);
    assert_rejected(fine().judge(&buy(10_001, 1_000)), &["NOTIONAL_MAX"]);

    let mut small = gate(&Limits { qty_step: Qty(1), qty_min: Qty(1), ..LIMITS });
    assert_accepted(small.judge(&buy(10_000, 5)));
    assert_rejected(small.judge(&buy(9_995, 5)), &["NOTIONAL_MIN"]);

    assert_accepted(long(0).judge(&buy(10_500, 20)));
    assert_accepted(long(0).judge(&buy(9_500, 20)));
    assert_rejected(long(0).judge(&buy(10_505, 20)), &["COLLAR_REF"]);
    assert_rejected(long(0).judge(&buy(9_495, 20)), &["COLLAR_REF"]);

    assert_accepted(long(1_980).judge(&buy(10_000, 20)));
    assert_rejected(long(1_981).judge(&buy(10_000, 20)), &["POS_LONG"]);
    assert_accepted(long(-1_480).judge(&sell(10_000, 20)));
    assert_rejected(long(-1_481).judge(&sell(10_000, 20)), &["POS_SHORT"]);
    assert_accepted(long(1 << 60).judge(&sell(10_000, 20)));

    assert_accepted(with(&LIMITS, -1_000, &[(BUY, 1_880)]).judge(&buy(10_000, 20)));
    assert_rejected(with(&LIMITS, -1_000, &[(BUY, 1_881)]).judge(&buy(10_000, 20)), &["OPEN_QTY"]);
    assert_accepted(with(&LIMITS, 0, &[(BUY, 1); 3]).judge(&buy(10_000, 20)));
    assert_rejected(with(&LIMITS, 0, &[(BUY, 1); 4]).judge(&buy(10_000, 20)), &["OPEN_ORDERS"]);
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

/// For each field of [`Limits`] a position, open buys, an order that [`LIMITS`] accept, and the reason for which
/// [`STRICTER`] do not.
fn distinguishing_orders() -> Vec<(i64, Vec<i64>, OrderIntent, &'static str)> {
    vec![
        (0, vec![], buy(10_000, 20), "PRICE_TICK"),
        (0, vec![], buy(10_000, 100), "QTY_STEP"),
        (0, vec![], buy(10_000, 20), "QTY_MIN"),
        (0, vec![], buy(10_000, 950), "QTY_MAX"),
        (0, vec![], buy(10_000, 20), "NOTIONAL_MIN"),
        (0, vec![], buy(10_000, 900), "NOTIONAL_MAX"),
        (1_500, vec![], buy(10_000, 20), "POS_LONG"),
        (-1_400, vec![], sell(10_000, 20), "POS_SHORT"),
        (-1_000, vec![1_500], buy(10_000, 20), "OPEN_QTY"),
        (0, vec![1, 1, 1], buy(10_000, 20), "OPEN_ORDERS"),
    ]
}

/// Every field of a change is in force with the next evaluation, and none of a change that is rejected.
#[test]
fn case_k04_a_change_of_limits_is_never_seen_in_part() {
    let before = LIMITS;
    let mut gate = gate(&before);
    let controls = gate.controls();
    let judge_at = |gate: &mut Numbered, (position, open): (i64, &[i64]), order: &OrderIntent| {
        gate.restore(0, BTC, Qty(position), open.len() as u32).unwrap();
        for qty in open {
            gate.restore_order(0, BTC, &resting(unused_id(), OrderSide::Buy, 5, *qty)).unwrap();
        }
        gate.judge(order)
    };
    for (position, open, order, reason) in distinguishing_orders() {
        let held = (position, &open[..]);
        let version = gate.set_limits(0, BTC, &before).unwrap();
        assert_eq!(controls.limits_version(), version);
        let verdict = judge_at(&mut gate, held, &order);
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
            let verdict = judge_at(&mut gate, held, &order);
            assert_eq!((verdict.accept, verdict.limits_version), (1, version), "{reason}: {wrong:?}");
        }

        let version = gate.set_limits(0, BTC, &STRICTER).unwrap();
        let verdict = judge_at(&mut gate, held, &order);
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
        assert_accepted(gate.judge(&order));
        // From another thread, which has ended before the next evaluation begins.
        std::thread::scope(|scope| scope.spawn(|| assert!(controls.kill(switch))).join().unwrap());
        assert!(!controls.kill(switch) && controls.is_killed(switch));
        assert_rejected(gate.judge(&order), &[name]);
        let cancel = gate.judge(&OrderIntent { kind: IntentKind::CANCEL, ..order });
        assert_accepted(cancel);
        assert!(cancel.notes.contains(Notes::FORCED), "{:?}", cancel.notes);
        assert!(controls.revive(switch) && !controls.revive(switch));
    }
    for other in [KillSwitch::Account(1), KillSwitch::Account(64), KillSwitch::Strategy(8), KillSwitch::Strategy(73)] {
        assert!(controls.kill(other));
        assert_accepted(gate.judge(&order));
    }
    assert!(!controls.kill(KillSwitch::Instrument(InstrumentId(u32::MAX))));
}

/// A switch that is set while evaluations run on another thread: once `kill` has returned, none that begins is accepted.
#[test]
fn case_k05_holds_between_threads() {
    let mut gate = gate(&LIMITS);
    gate.set_instrument_limits(BTC, &InstrumentLimits { mark_age_max_ns: u64::MAX, ..INSTRUMENT }).unwrap();
    let controls = gate.controls();
    let before = controls.limits_version();
    let is_killed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while controls.limits_version() == before {
                std::thread::yield_now();
            }
            controls.kill(KillSwitch::Account(0));
            is_killed.store(true, Ordering::SeqCst);
        });
        for round in 0.. {
            let was_killed = is_killed.load(Ordering::SeqCst);
            let (now, order) = (NOW + 1_000 * round, buy(10_000, 20));
            let verdict = gate.evaluate(now, &order);
            gate.apply(now, &report(ReportKind::REJECTED, &order));
            if round == 10_000 {
                // Lets the other thread go on.
                gate.set_global_rate(FAST);
            }
            if was_killed {
                assert_rejected(verdict, &["KILL_ACCOUNT"]);
                break;
            }
        }
    });
}

/// A gate of two accounts that allows anything small, of `capacity`.
fn roomy(capacity: Capacity) -> Numbered {
    let limits =
        Limits { position_long_max: Qty(1 << 40), open_qty_max: Qty(1 << 40), open_orders_max: 1_000, ..LIMITS };
    let mut gate = gate_of(Capacity { accounts: 2, ..capacity }, &limits);
    let instrument = InstrumentLimits { mark_age_max_ns: 1 << 40, ..INSTRUMENT };
    gate.set_instrument_limits(BTC, &instrument).expect("a known instrument");
    gate
}

fn named(client_id: u64) -> OrderIntent {
    OrderIntent { client_id, ..buy(10_000, 20) }
}

#[test]
fn case_k07_a_client_id_that_was_used_is_refused() {
    let mut gate = roomy(CAPACITY);
    for id in [0, 1, 7, 1 << 32, u64::MAX] {
        assert_accepted(gate.evaluate(NOW, &named(id)));
        assert_rejected(gate.evaluate(NOW, &named(id)), &["DUP_ID"]);
        let elsewhere = OrderIntent { side: OrderSide::Sell, limit_px: Price(10_005), ..named(id) };
        assert_rejected(gate.evaluate(NOW, &elsewhere), &["DUP_ID"]);
        assert_accepted(gate.evaluate(NOW, &OrderIntent { account: 1, ..named(id) }));
        assert_accepted(gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..named(id) }));
    }
    // An order that is open uses its id, however long ago it was accepted.
    assert_rejected(gate.evaluate(NOW + 3_600_000_000, &named(7)), &["DUP_ID"]);
    // An order that was rejected has used nothing, nor has a cancel.
    let mut gate = roomy(CAPACITY);
    assert_rejected(gate.evaluate(NOW, &OrderIntent { limit_px: Price(10_001), ..named(8) }), &["PRICE_TICK"]);
    assert_accepted(gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..named(8) }));
    assert_accepted(gate.evaluate(NOW, &named(8)));
    // The window begins with the end of the order.
    gate.apply(NOW + 1_000, &report(ReportKind::CANCELLED, &named(8)));
    assert_rejected(gate.evaluate(NOW + 1_499, &named(8)), &["DUP_ID"]);
    assert_accepted(gate.evaluate(NOW + 1_500, &named(8)));
}

#[test]
fn case_k07_ids_of_before_a_start_can_be_restored() {
    let mut gate = roomy(Capacity { orders: 4, ..CAPACITY });
    for id in 1..=8 {
        gate.restore_id(0, BTC, id, NOW - 400 + id).unwrap();
        gate.restore_id(0, BTC, id, NOW - 400 + id).unwrap();
    }
    // Two accounts of four, and one in eight for what reports bring.
    gate.restore_id(1, BTC, 9, NOW).unwrap();
    gate.restore_id(1, BTC, 10, NOW).unwrap();
    assert_eq!(gate.restore_id(0, BTC, 11, NOW), Err(GateError::Full));
    assert_eq!(gate.restore_id(2, BTC, 9, NOW), Err(GateError::Unknown));
    assert_rejected(gate.evaluate(NOW, &named(8)), &["DUP_ID", "CAPACITY"]);
    // Each event forgets four records at most.
    gate.pass_time(NOW + 107);
    assert_rejected(gate.evaluate(NOW + 107, &named(8)), &["DUP_ID"]);
    assert_accepted(gate.evaluate(NOW + 108, &named(8)));
}

/// Cancels and reports have room where orders have none.
#[test]
fn case_k16_a_full_table_rejects_orders_and_takes_cancels_and_reports() {
    let mut gate = roomy(Capacity { orders: 8, ..CAPACITY });
    let orders: Vec<_> = (1..=8).map(named).collect();
    for order in &orders {
        assert_accepted(gate.evaluate(NOW, order));
    }
    assert_rejected(gate.evaluate(NOW, &named(9)), &["CAPACITY"]);
    assert_accepted(gate.evaluate(NOW, &OrderIntent { account: 1, ..named(9) }));
    assert_accepted(gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..orders[0] }));
    gate.apply(NOW, &report(ReportKind::CANCELLED, &orders[0]));
    // Its id counts as used for 500 ns more.
    assert_rejected(gate.evaluate(NOW + 499, &named(9)), &["CAPACITY"]);
    assert_accepted(gate.evaluate(NOW + 500, &named(9)));

    let mut none = roomy(Capacity { orders: 0, ..CAPACITY });
    assert_rejected(none.judge(&buy(10_000, 20)), &["CAPACITY"]);

    // Of 16 executions two are kept for orders that are open.
    let mut gate = roomy(Capacity { executions: 16, ..CAPACITY });
    let order = buy(10_000, 200);
    assert_accepted(gate.evaluate(NOW, &order));
    for execution in 0..14 {
        assert_accepted(gate.judge(&buy(10_000, 20)));
        gate.apply(NOW, &fill(&order, execution, 1));
    }
    assert_rejected(gate.judge(&buy(10_000, 20)), &["CAPACITY"]);
    for execution in 14..17 {
        gate.apply(NOW, &fill(&order, execution, 1));
    }
    // The seventeenth could not be distinguished from a repetition: the account is in doubt.
    assert_eq!(gate.exposure(0, BTC).unwrap().position, Qty(16));
    assert_rejected(gate.judge(&buy(10_000, 20)), &["UNRECONCILED", "CAPACITY"]);
}

#[test]
fn case_k08_an_order_that_would_meet_an_own_one_is_refused() {
    let both = [(OrderSide::Buy, OrderSide::Sell, 1), (OrderSide::Sell, OrderSide::Buy, -1)];
    for (resting_side, side, away) in both {
        let mut gate = roomy(CAPACITY);
        let resting = |px| OrderIntent { side: resting_side, ..buy(px, 20) };
        let order = |px| OrderIntent { side, ..buy(px, 20) };
        let (near, far) = (resting(10_000), resting(10_000 - 20 * away));
        assert_accepted(gate.evaluate(NOW, &far));
        assert_accepted(gate.evaluate(NOW, &near));
        assert_rejected(gate.judge(&order(10_000)), &["SELF_MATCH"]);
        assert_rejected(gate.judge(&order(10_000 - 5 * away)), &["SELF_MATCH"]);
        let market = OrderIntent { kind: IntentKind::MARKET, ..order(0) };
        assert_rejected(gate.judge(&market), &["SELF_MATCH"]);
        assert_accepted(gate.judge(&OrderIntent { account: 1, ..order(10_000) }));
        let behind = order(10_000 + 5 * away);
        assert_accepted(gate.evaluate(NOW, &behind));

        // A part of it is still open after a fill that is not the last, and while a cancel is not answered.
        gate.apply(NOW, &fill(&near, 1, 10));
        assert_rejected(gate.judge(&order(10_000)), &["SELF_MATCH"]);
        assert_accepted(gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..near }));
        assert_rejected(gate.judge(&order(10_000)), &["SELF_MATCH"]);
        gate.apply(NOW, &fill(&near, 2, 10));
        assert_accepted(gate.judge(&order(10_000)));
        assert_rejected(gate.judge(&order(10_000 - 20 * away)), &["SELF_MATCH"]);
        assert_rejected(gate.judge(&market), &["SELF_MATCH"]);
        gate.apply(NOW, &report(ReportKind::CANCELLED, &far));
        assert_accepted(gate.judge(&order(10_000 - 20 * away)));
        // A market order rests nowhere, so that nothing meets it.
        assert_accepted(gate.judge(&market));
    }
}

#[test]
fn case_k08_open_orders_of_before_a_start_are_to_be_named() {
    let mut gate = roomy(CAPACITY);
    gate.restore(0, BTC, Qty(0), 2).unwrap();
    let open = |client_id, px| resting(client_id, OrderSide::Buy, px, 20);
    for order in [open(1, 9_990), open(2, 9_980)] {
        assert_rejected(gate.judge(&sell(10_000, 20)), &["SELF_MATCH"]);
        gate.restore_order(0, BTC, &order).unwrap();
    }
    assert_eq!(gate.restore_order(0, BTC, &open(3, 9_970)), Err(GateError::UnknownOrder));
    let exposure = Exposure { open_buy_qty: Qty(40), open_orders: 2, ..Exposure::default() };
    assert_eq!(gate.exposure(0, BTC), Some(exposure));
    assert_rejected(gate.judge(&sell(9_990, 20)), &["SELF_MATCH"]);
    assert_accepted(gate.judge(&sell(9_995, 20)));
    gate.apply(NOW, &report(ReportKind::CANCELLED, &OrderIntent { client_id: 1, ..buy(9_990, 20) }));
    assert_accepted(gate.judge(&sell(9_985, 20)));
}

#[test]
fn case_k09_a_fat_finger_or_a_missing_price_is_refused() {
    let mut gate = gate(&Limits { notional_max: Notional(1 << 100), ..LIMITS });
    assert_rejected(gate.judge(&buy(100_000, 20)), &["COLLAR_REF"]);
    let market = OrderIntent { kind: IntentKind::MARKET, ..buy(0, 20) };
    let verdict = gate.judge(&market);
    assert_accepted(verdict);
    assert_eq!(verdict.worst_pos, 20);
    gate.set_reference(NOW, BTC, &Mark { ref_px: Price(-1), ..MARK }).unwrap();
    let without = ["NOTIONAL_MIN", "NOTIONAL_MAX", "COLLAR_REF", "MD_STALE", "BOOK_UNVERIFIED"];
    assert_rejected(gate.judge(&market), &without);
}

#[test]
fn case_k10_everything_is_refused_until_positions_are_restored() {
    let mut gate = Gate::new(CAPACITY);
    gate.set_limits(0, BTC, &LIMITS).unwrap();
    gate.set_instrument_limits(BTC, &INSTRUMENT).unwrap();
    gate.set_account_rate(0, FAST).unwrap();
    gate.set_global_rate(FAST);
    gate.set_rules(&RULES);
    gate.set_reference(NOW, BTC, &MARK).unwrap();
    gate.set_state(BTC, InstrumentState::Open).unwrap();
    permit(&mut gate, CAPACITY);
    let mut gate = Numbered::new(gate);
    assert_rejected(gate.judge(&buy(10_000, 20)), &["NOT_PERMITTED"]);
    gate.restore(0, BTC, Qty(0), 0).unwrap();
    assert_accepted(gate.judge(&buy(10_000, 20)));
}

#[test]
fn a_rate_that_was_never_set_is_empty() {
    let verdict = Numbered::new(Gate::new(CAPACITY)).judge(&buy(10_000, 20));
    let found = names(&verdict);
    assert!(["RATE_ACCOUNT", "RATE_INSTRUMENT", "RATE_GLOBAL"].iter().all(|rate| found.contains(rate)), "{found:?}");
}

#[test]
fn nothing_passes_a_new_gate_and_nothing_unknown_any_gate() {
    let mut new = Numbered::new(Gate::new(CAPACITY));
    assert_eq!(new.judge(&buy(10_000, 20)).accept, 0);
    let none =
        Capacity { accounts: 0, instruments: 0, producers: 0, orders: 0, executions: 0, routes: 0, currencies: 0 };
    assert_eq!(Numbered::new(Gate::new(none)).judge(&buy(10_000, 20)).accept, 0);
    let mut gate = gate(&LIMITS);
    let unknown = [
        OrderIntent { account: 1, ..buy(10_000, 20) },
        OrderIntent { account: u16::MAX, ..buy(10_000, 20) },
        OrderIntent { instrument: InstrumentId(1), ..buy(10_000, 20) },
        OrderIntent { instrument: InstrumentId(u32::MAX), ..buy(10_000, 20) },
    ];
    for intent in unknown {
        let verdict = gate.judge(&intent);
        assert!(verdict.reasons.contains(Breach::INSTRUMENT_UNKNOWN.union(Breach::NOT_PERMITTED)));
        assert_eq!((verdict.accept, verdict.first_bit), (0, 6));
        assert_eq!(gate.judge(&OrderIntent { kind: IntentKind::CANCEL, ..intent }).accept, 0);
    }
    assert_eq!(gate.set_limits(1, BTC, &LIMITS), Err(GateError::Unknown));
    assert_eq!(gate.set_reference(NOW, InstrumentId(1), &MARK), Err(GateError::Unknown));
    assert_eq!(gate.set_instrument_rules(InstrumentId(1), &InstrumentRules::default()), Err(GateError::Unknown));
    assert_eq!(gate.set_account_rate(1, FAST), Err(GateError::Unknown));
    assert_eq!((gate.resume(1, 7), gate.adopt(1, NOW)), (Err(GateError::Unknown), Err(GateError::Unknown)));
    assert_eq!(gate.exposure(0, InstrumentId(1)), None);
}

#[test]
fn an_order_that_closes_may_be_small_and_one_that_only_reduces_may_not_turn() {
    let limits = Limits { qty_step: Qty(1), ..LIMITS };
    let small = |order: &OrderIntent| with(&limits, 3, &[]).judge(order);
    let close = OrderIntent { flags: IntentFlags::CLOSE_POSITION, ..sell(10_000, 3) };
    // It closes all, with the flag or without.
    assert_accepted(small(&close));
    assert_accepted(small(&sell(10_000, 3)));
    // It reduces, and leaves a rest.
    assert_rejected(small(&sell(10_000, 2)), &["QTY_MIN"]);
    assert_rejected(small(&OrderIntent { qty: Qty(0), ..close }), &["QTY_MIN"]);
    let over = ["REDUCE_ONLY_FLIP", "QTY_MIN", "NOTIONAL_MIN"];
    assert_rejected(small(&OrderIntent { qty: Qty(4), ..close }), &over);
    // The three lots are spoken for.
    let mut gate = with(&limits, 3, &[]);
    assert_accepted(gate.judge(&close));
    assert_rejected(gate.judge(&close), &over);
    let reduce = OrderIntent { flags: IntentFlags::REDUCE_ONLY, ..sell(10_000, 20) };
    assert_rejected(gate.judge(&reduce), &["REDUCE_ONLY_FLIP"]);
    // A whole position may be closed at once, however large.
    let mut large = with(&LIMITS, 5_000, &[]);
    assert_rejected(large.judge(&sell(10_000, 5_000)), &["QTY_MAX", "NOTIONAL_MAX", "OPEN_QTY"]);
    let close = OrderIntent { flags: IntentFlags::CLOSE_POSITION, ..sell(10_000, 5_000) };
    assert_rejected(large.judge(&close), &["OPEN_QTY"]);
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
    assert_eq!(gate.restore(0, BTC, Qty(i64::MIN), 0), Err(GateError::QtyOutOfRange));
    assert_eq!(gate.controls().limits_version(), version);
    assert_accepted(gate.judge(&buy(10_000, 20)));
}

#[test]
fn every_intent_is_counted_under_one_heading() {
    let mut gate = gate(&LIMITS);
    let intents = [buy(10_000, 20), buy(10_001, 20), buy(10_001, 21), buy(10_000, 21), buy(10_000, 20)];
    let numbers = intents.map(|intent| gate.judge(&intent).seq);
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let counters = gate.counters();
    let counted: Vec<_> = counters.by_reason().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(Breach::PRICE_TICK, 2), (Breach::QTY_STEP, 1)]);
    assert_eq!((counters.intents(), counters.accepted(), counters.rejected()), (5, 2, 3));
}

/// Every check of a node, with limits that are never met.
const ALL_LIMITS: NodeLimits = NodeLimits {
    gross_max: Some(1 << 60),
    net_max: Some(1 << 60),
    open_value_max: Some(1 << 60),
    daily_loss_max: Some(1 << 60),
    drawdown_max: Some(1 << 60),
    checks_margin: true,
    leverage_max_pct: Some(1_000),
    checks_balance: true,
    cancels_per_fill_max_pct: Some(1 << 30),
    executions_stop: None,
};

#[test]
fn nothing_is_allocated_after_new() {
    let capacity = Capacity {
        accounts: 8,
        instruments: 64,
        producers: 1,
        orders: 1_000,
        executions: 1_000,
        routes: 6_000,
        currencies: 2,
    };
    let mut gate = Gate::new(capacity);
    permit(&mut gate, capacity);
    for account in 0..8 {
        gate.set_node_limits(Node::Account(account), &ALL_LIMITS).expect("known");
    }
    gate.set_rules(&Rules { id_window_ns: 50, ..RULES });
    gate.set_global_rate(FAST);
    let mut accepted = 0;
    let allocations = allocation_counter::measure(|| {
        for n in 0..10_000_u64 {
            let (account, instrument) = ((n % 9) as u16, InstrumentId(n as u32 % 70));
            let _ = gate.set_limits(account, instrument, &LIMITS);
            let _ = gate.set_instrument_limits(instrument, &INSTRUMENT);
            let _ = gate.set_account_rate(account, FAST);
            let _ = gate.set_state(instrument, InstrumentState::Open);
            let _ = gate.restore(account, instrument, Qty(0), 0);
            let now = NOW + n;
            let _ = gate.set_equity(account, 1 << 40, now);
            let _ = gate.set_balance(account, 1, 1 << 40);
            let _ = gate.set_conversion(1, &Conversion { rate: Ratio::ONE, ts_ns: now });
            let _ = gate.poll_mode_change();
            let _ = gate.set_reference(now, instrument, &Mark { ts_ns: now, ..MARK });
            let order = OrderIntent { account, instrument, seq: 3 * n + 1, ts_ns: now, ..buy(10_000, 20) };
            let replace = OrderIntent { kind: IntentKind::REPLACE, qty: Qty(40), seq: 3 * n + 2, ..order };
            let cancel = OrderIntent { kind: IntentKind::CANCEL, seq: 3 * n + 3, ..order };
            for intent in [order, replace, cancel] {
                accepted += u64::from(gate.evaluate(now, 0, &intent, &mut Off).accept);
            }
            let _ = gate.apply(now, &fill(&order, u128::from(n), 5));
            let _ = gate.apply(now, &report(ReportKind::REPLACED, &order));
            let _ = gate.apply(now, &report(ReportKind::CANCELLED, &order));
        }
    });
    assert_eq!(allocations.count_total, 0);
    assert!(accepted > 5_000, "{accepted}");
}
