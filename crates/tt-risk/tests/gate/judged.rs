//! Number, time and form of intents; cancels, replaces, stops and market orders.

use crate::numbered::{
    BTC, CAPACITY, FAST, INSTRUMENT, LIMITS, MARK, NOW, Numbered, RULES, assert_accepted, assert_rejected, buy, gate,
    gate_of, names, report, sell, unused_id,
};
use tt_meter::Off;
use tt_model::{
    InstrumentId, IntentFlags, IntentKind, Notes, Notional, OrderIntent, OrderSide, Price, Qty, Report, ReportKind,
    TimeInForce, Verdict,
};
use tt_risk::{
    Capacity, Controls, Gate, InstrumentLimits, InstrumentRules, InstrumentState, KillSwitch, Limits, Mark, Mode,
    Outcome, Rate, Rules,
};

/// Evaluates an intent as it is, without a number of the helper's.
fn raw(gate: &mut Numbered, now: u64, producer: u16, intent: &OrderIntent) -> Verdict {
    Gate::evaluate(gate, now, producer, intent, &mut Off)
}

fn cancel(order: &OrderIntent) -> OrderIntent {
    OrderIntent { kind: IntentKind::CANCEL, ..*order }
}

#[test]
fn case_k15_an_old_future_replayed_or_skipped_intent_is_refused() {
    let mut gate = gate_of(Capacity { producers: 2, ..CAPACITY }, &Limits { open_orders_max: 100, ..LIMITS });
    let order = |seq| OrderIntent { seq, ts_ns: NOW, ..buy(10_000, 20) };
    assert_rejected(raw(&mut gate, NOW, 0, &order(0)), &["SEQ_REPLAY"]);
    assert_rejected(raw(&mut gate, NOW, 0, &order(2)), &["SEQ_REPLAY"]);
    assert_accepted(raw(&mut gate, NOW, 0, &order(1)));
    assert_rejected(raw(&mut gate, NOW, 0, &order(1)), &["SEQ_REPLAY"]);
    // A number is used by what is rejected for another reason too.
    assert_rejected(raw(&mut gate, NOW, 0, &OrderIntent { qty: Qty(21), ..order(2) }), &["QTY_STEP"]);
    assert_rejected(raw(&mut gate, NOW, 0, &order(2)), &["SEQ_REPLAY"]);
    assert_accepted(raw(&mut gate, NOW, 0, &order(3)));
    // Another producer has its own numbers; one beyond the table has none.
    assert_accepted(raw(&mut gate, NOW, 1, &OrderIntent { strategy: 1, ..order(1) }));
    assert_rejected(raw(&mut gate, NOW, 2, &order(1)), &["NOT_PERMITTED", "SEQ_REPLAY"]);
    // A gap stays until `resume`, for cancels too.
    assert_rejected(raw(&mut gate, NOW, 0, &order(9)), &["SEQ_REPLAY"]);
    assert_rejected(raw(&mut gate, NOW, 0, &cancel(&order(9))), &["SEQ_REPLAY"]);
    gate.resume(0, 8).unwrap();
    let verdict = raw(&mut gate, NOW, 0, &order(9));
    assert_accepted(verdict);
    assert_eq!((verdict.intent_seq, verdict.producer), (9, 0));
}

#[test]
fn case_k15_an_intent_expires() {
    let at = |now: u64, ts_ns: u64, ttl_ms: u32| {
        let rules = Rules { intent_age_max_ns: 5_000_000, ..RULES };
        let mut gate = gate(&LIMITS);
        gate.set_rules(&rules);
        gate.set_instrument_limits(BTC, &InstrumentLimits { mark_age_max_ns: 1 << 40, ..INSTRUMENT }).unwrap();
        let intent = OrderIntent { seq: 1, ts_ns, ttl_ms, ..buy(10_000, 20) };
        names(&raw(&mut gate, now, 0, &intent))
    };
    const MS: u64 = 1_000_000;
    assert_eq!(at(NOW + MS - 1, NOW, 1), [""; 0]);
    assert_eq!(at(NOW + MS, NOW, 1), ["EXPIRED"]);
    // Without a time to live too.
    assert_eq!(at(NOW + 5 * MS, NOW, 0), [""; 0]);
    assert_eq!(at(NOW + 5 * MS + 1, NOW, 0), ["EXPIRED"]);
    assert_eq!(at(NOW + 5 * MS + 1, NOW, u32::MAX), ["EXPIRED"]);
    // From the future: a millisecond is the clocks' difference.
    assert_eq!(at(NOW, NOW + MS, 0), [""; 0]);
    assert_eq!(at(NOW, NOW + MS + 1, 0), ["EXPIRED"]);
    assert_eq!(at(NOW, u64::MAX, u32::MAX), ["EXPIRED"]);
}

#[test]
fn case_k14_what_has_no_meaning_is_refused() {
    let fine = buy(10_000, 20);
    let malformed = [
        OrderIntent { kind: IntentKind(6), ..fine },
        OrderIntent { kind: IntentKind(255), ..fine },
        OrderIntent { tif: TimeInForce(3), ..fine },
        OrderIntent { flags: IntentFlags(8), ..fine },
        OrderIntent { flags: IntentFlags(128), ..fine },
        // A trigger without a stop.
        OrderIntent { trigger_px: Price(5), ..fine },
        OrderIntent { kind: IntentKind::MARKET, trigger_px: Price(999_999_999), ..fine },
        OrderIntent { kind: IntentKind::CANCEL, flags: IntentFlags(8), ..fine },
    ];
    for intent in malformed {
        assert_rejected(gate(&LIMITS).judge(&intent), &["MALFORMED"]);
    }
    for qty in [0, -20, i64::MIN] {
        for kind in [IntentKind::LIMIT, IntentKind::MARKET, IntentKind::REPLACE] {
            let verdict = gate(&LIMITS).judge(&OrderIntent { kind, qty: Qty(qty), ..fine });
            assert!(names(&verdict).contains(&"QTY_MIN") && verdict.accept == 0, "{qty} {:?}", names(&verdict));
        }
    }
    let every = [IntentFlags::REDUCE_ONLY, IntentFlags::POST_ONLY, IntentFlags::CLOSE_POSITION];
    assert_eq!(every.iter().fold(0, |all, flag| all | flag.0), IntentFlags::ALL.0);
}

#[test]
fn a_clock_that_goes_back_is_a_fault_until_marks_are_new() {
    let mut gate = gate(&LIMITS);
    let order = buy(10_000, 20);
    assert_accepted(gate.evaluate(NOW + 1, &order));
    assert_rejected(gate.evaluate(NOW, &buy(10_000, 20)), &["CLOCK_FAULT"]);
    assert_rejected(gate.evaluate(NOW + 5, &buy(10_000, 20)), &["CLOCK_FAULT"]);
    assert_accepted(gate.evaluate(NOW + 5, &cancel(&order)));
    gate.set_reference(NOW, BTC, &MARK).unwrap();
    assert_accepted(gate.evaluate(NOW + 5, &buy(10_000, 20)));
}

/// A mark of before the clock stood still may be older than it looks.
#[test]
fn a_clock_that_stood_still_is_a_fault_until_a_mark_of_the_same_time() {
    let mut gate = gate(&LIMITS);
    assert_accepted(gate.evaluate(NOW, &buy(10_000, 20)));
    gate.suspect_clock(NOW + 5);
    assert_rejected(gate.evaluate(NOW + 5, &buy(10_000, 20)), &["CLOCK_FAULT"]);
    gate.set_reference(NOW + 6, BTC, &Mark { ts_ns: NOW + 4, ..MARK }).unwrap();
    assert_rejected(gate.evaluate(NOW + 6, &buy(10_000, 20)), &["CLOCK_FAULT"]);
    gate.set_reference(NOW + 6, BTC, &Mark { ts_ns: NOW + 5, ..MARK }).unwrap();
    assert_accepted(gate.evaluate(NOW + 6, &buy(10_000, 20)));
}

/// Killed, stale, not restored, no rate left, in doubt, an unknown order: what takes risk off passes.
#[test]
fn cancels_pass_whatever_the_state() {
    let order = buy(10_000, 20);
    let with_order = || {
        let mut gate = gate(&LIMITS);
        assert_accepted(gate.evaluate(NOW, &order));
        gate
    };
    let forced = |mut gate: Numbered, now: u64| {
        let verdict = gate.evaluate(now, &cancel(&order));
        assert_accepted(verdict);
        verdict.notes
    };
    assert_eq!(forced(with_order(), NOW), Notes(0));
    for switch in [KillSwitch::Global, KillSwitch::Account(0), KillSwitch::Strategy(0), KillSwitch::Instrument(BTC)] {
        for mode in [Mode::Reduce, Mode::Kill] {
            let gate = with_order();
            gate.controls().set_mode(switch, mode);
            assert_eq!(forced(gate, NOW), Notes::FORCED);
        }
    }
    assert_eq!(forced(with_order(), NOW + (1 << 40)), Notes(0), "the mark is stale");
    let mut doubtful = with_order();
    doubtful.apply(NOW, &report(ReportKind(99), &order));
    assert_eq!(forced(doubtful, NOW), Notes::FORCED);
    let mut slow = with_order();
    slow.set_account_rate(0, Rate { per_second: 1, burst: 1 }).unwrap();
    slow.set_global_rate(Rate { per_second: 0, burst: 0 });
    assert_eq!(forced(slow, NOW), Notes(0));
    // Nothing is restored; there are not even limits.
    let unrestored = Numbered::new(Gate::new(CAPACITY));
    assert_eq!(forced(unrestored, NOW), Notes(Notes::FORCED.0 | Notes::ORDER_UNKNOWN.0));
    let mut ended = with_order();
    ended.apply(NOW, &report(ReportKind::CANCELLED, &order));
    assert_eq!(forced(ended, NOW), Notes::ORDER_UNKNOWN);
    // An old one, and one without a quantity.
    let mut gate = with_order();
    let old = OrderIntent { seq: 2, ts_ns: 0, qty: Qty(0), ttl_ms: 1, ..cancel(&order) };
    assert_accepted(raw(&mut gate, NOW, 0, &old));
}

#[test]
fn a_cancel_of_anothers_order_or_a_repeated_one_is_refused() {
    let order = OrderIntent { strategy: 3, ..buy(10_000, 20) };
    let mut gate = gate_of(Capacity { instruments: 2, ..CAPACITY }, &LIMITS);
    assert_accepted(gate.evaluate(NOW, &order));
    assert_rejected(gate.evaluate(NOW, &OrderIntent { strategy: 4, ..cancel(&order) }), &["NOT_PERMITTED"]);
    let elsewhere = OrderIntent { instrument: InstrumentId(1), ..cancel(&order) };
    assert_rejected(gate.evaluate(NOW, &elsewhere), &["NOT_PERMITTED"]);
    assert_accepted(gate.evaluate(NOW, &cancel(&order)));
    assert_rejected(gate.evaluate(NOW + 99, &cancel(&order)), &["RATE_INSTRUMENT"]);
    assert_accepted(gate.evaluate(NOW + 100, &cancel(&order)));
    // The answer ends the wait.
    gate.apply(NOW + 101, &report(ReportKind::CANCEL_REJECTED, &order));
    assert_accepted(gate.evaluate(NOW + 102, &cancel(&order)));
}

/// Cancels and replaces count, and only cancels overdraw.
#[test]
fn every_accepted_message_counts_against_the_rates() {
    let mut gate = gate(&LIMITS);
    gate.set_account_rate(0, Rate { per_second: 1, burst: 3 }).unwrap();
    let order = buy(10_000, 20);
    assert_accepted(gate.evaluate(NOW, &order));
    let replace = OrderIntent { kind: IntentKind::REPLACE, limit_px: Price(10_005), ..order };
    assert_accepted(gate.evaluate(NOW, &replace));
    assert_accepted(gate.evaluate(NOW, &cancel(&order)));
    assert_rejected(gate.judge(&buy(10_000, 20)), &["RATE_ACCOUNT"]);
    for _ in 0..5 {
        assert_accepted(gate.judge(&cancel(&order)));
    }
    // Three messages at once, and six more seconds for the rest.
    assert_eq!(gate.evaluate(NOW + 5_999_999_999, &buy(10_000, 20)).reasons.names().next(), Some("MD_STALE"));
    gate.set_reference(NOW, BTC, &Mark { ts_ns: NOW + 6_000_000_000, ..MARK }).unwrap();
    assert_accepted(gate.evaluate(NOW + 6_000_000_000, &buy(10_000, 20)));
    assert_rejected(gate.evaluate(NOW + 6_000_000_000, &buy(10_000, 20)), &["RATE_ACCOUNT"]);
}

fn replace(order: &OrderIntent, px: i64, qty: i64) -> OrderIntent {
    OrderIntent { kind: IntentKind::REPLACE, limit_px: Price(px), qty: Qty(qty), ..*order }
}

#[test]
fn a_replace_is_judged_by_its_new_terms_and_the_sums_by_the_difference() {
    let atomic = InstrumentRules { replaces_atomically: true, ..InstrumentRules::default() };
    let limits = Limits { open_orders_max: 1, ..LIMITS };
    let order = buy(9_990, 900);
    let with = |rules: InstrumentRules| {
        let mut gate = gate(&limits);
        gate.set_instrument_rules(BTC, &rules).unwrap();
        gate.restore(0, BTC, Qty(1_000), 0).unwrap();
        assert_accepted(gate.evaluate(NOW, &order));
        gate
    };
    // The order is the one that is open, and 100 lots more are allowed.
    let verdict = with(atomic).evaluate(NOW, &replace(&order, 9_995, 1_000));
    assert_accepted(verdict);
    assert_eq!(verdict.worst_pos, 2_000);
    assert_rejected(
        with(atomic).evaluate(NOW, &replace(&order, 9_995, 1_010)),
        &["QTY_MAX", "NOTIONAL_MAX", "POS_LONG"],
    );
    // Old and new at once where the venue works both.
    let both = with(InstrumentRules::default()).evaluate(NOW, &replace(&order, 9_995, 900));
    assert_rejected(both, &["POS_LONG"]);
    assert_rejected(with(atomic).evaluate(NOW, &replace(&order, 9_996, 900)), &["PRICE_TICK"]);
    assert_rejected(with(atomic).evaluate(NOW, &replace(&order, 11_000, 900)), &["COLLAR_REF"]);
    let unknown = OrderIntent { client_id: unused_id(), ..replace(&order, 9_980, 20) };
    assert_rejected(gate(&LIMITS).evaluate(NOW, &unknown), &["ORDER_UNKNOWN"]);
    // A second one waits for the answer to the first.
    let mut gate = with(atomic);
    assert_accepted(gate.evaluate(NOW, &replace(&order, 9_985, 900)));
    assert_rejected(gate.evaluate(NOW, &replace(&order, 9_985, 900)), &["ORDER_UNKNOWN"]);
    gate.apply(NOW, &report(ReportKind::REPLACED, &order));
    assert_accepted(gate.evaluate(NOW, &replace(&order, 9_985, 900)));
    let mut gate = with(atomic);
    let other = OrderIntent { strategy: 9, ..replace(&order, 9_985, 900) };
    assert_rejected(gate.evaluate(NOW, &other), &["NOT_PERMITTED"]);
}

/// Less quantity at no more aggressive a price takes risk off.
#[test]
fn a_replace_that_only_lowers_is_judged_as_a_cancel() {
    for (side, calmer, keener) in [(OrderSide::Buy, 9_985, 9_995), (OrderSide::Sell, 10_015, 10_005)] {
        let order = OrderIntent { side, ..buy(if side == OrderSide::Buy { 9_990 } else { 10_010 }, 100) };
        let with_order = || {
            let mut gate = gate(&LIMITS);
            assert_accepted(gate.evaluate(NOW, &order));
            gate.controls().kill(KillSwitch::Global);
            gate
        };
        let px = order.limit_px.0;
        for (px, qty) in [(px, 50), (calmer, 100), (calmer, 1)] {
            assert_accepted(with_order().evaluate(NOW + (1 << 40), &replace(&order, px, qty)));
        }
        for (px, qty) in [(px, 110), (keener, 100), (keener, 50)] {
            let verdict = with_order().evaluate(NOW, &replace(&order, px, qty));
            assert!(names(&verdict).contains(&"KILL_GLOBAL") && verdict.accept == 0, "{px} {qty}");
        }
    }
}

#[test]
fn case_k19_a_market_order_on_a_thin_book_is_refused() {
    let market = |qty| OrderIntent { kind: IntentKind::MARKET, ..buy(0, qty) };
    let with = |rules: InstrumentRules, mark: Mark| {
        let mut gate = gate(&LIMITS);
        gate.set_instrument_rules(BTC, &rules).unwrap();
        gate.set_reference(NOW, BTC, &mark).unwrap();
        gate
    };
    let open = InstrumentRules { touch_bps: Some(10), ..InstrumentRules::default() };
    assert_accepted(with(open, MARK).judge(&market(20)));
    // No opposite side, and one that is outside the collar.
    let empty = Mark { ask_px: Price(0), ..MARK };
    assert_rejected(with(open, empty).judge(&market(20)), &["COLLAR_REF", "COLLAR_TOUCH"]);
    let far = |ask| Mark { ask_px: Price(ask), ..MARK };
    assert_accepted(with(open, far(10_500)).judge(&market(20)));
    assert_rejected(with(open, far(10_501)).judge(&market(20)), &["COLLAR_REF", "COLLAR_TOUCH"]);
    // The side that it does not meet is not looked at.
    assert_accepted(with(open, Mark { bid_px: Price(0), ..MARK }).judge(&market(20)));

    // It is valued at the collar's edge, 10,500, or at the price that protects it.
    assert_accepted(with(open, MARK).judge(&market(950)));
    assert_rejected(with(open, MARK).judge(&market(960)), &["NOTIONAL_MAX"]);
    let protected = InstrumentRules { slip_bps: Some(100), ..open };
    assert_accepted(with(protected, MARK).judge(&market(990)));
    assert_rejected(with(protected, MARK).judge(&market(1_000)), &["NOTIONAL_MAX"]);
    let beyond = InstrumentRules { slip_bps: Some(501), ..open };
    assert_rejected(with(beyond, MARK).judge(&market(20)), &["COLLAR_REF"]);
    // With protection it meets only own orders up to its price.
    let mut gate = with(protected, MARK);
    assert_accepted(gate.judge(&sell(10_105, 20)));
    assert_accepted(gate.judge(&market(20)));
    assert_accepted(gate.judge(&sell(10_100, 20)));
    assert_rejected(gate.judge(&market(20)), &["SELF_MATCH"]);
}

#[test]
fn a_limit_price_far_beyond_the_touch_is_refused() {
    let rules = InstrumentRules { touch_bps: Some(10), ..InstrumentRules::default() };
    let with = |rules| {
        let mut gate = gate(&LIMITS);
        gate.set_instrument_rules(BTC, &rules).unwrap();
        gate
    };
    // The offer is 10,005 and ten points of it are 10.005; the bid is 9,995, and 9.995.
    assert_accepted(with(rules).judge(&buy(10_015, 20)));
    assert_rejected(with(rules).judge(&buy(10_020, 20)), &["COLLAR_TOUCH"]);
    assert_accepted(with(rules).judge(&sell(9_990, 20)));
    assert_rejected(with(rules).judge(&sell(9_985, 20)), &["COLLAR_TOUCH"]);
    assert_accepted(with(InstrumentRules::default()).judge(&buy(10_020, 20)));
    let mut empty = with(rules);
    empty.set_reference(NOW, BTC, &Mark { ask_px: Price(0), ..MARK }).unwrap();
    assert_rejected(empty.judge(&buy(10_000, 20)), &["COLLAR_TOUCH"]);
    assert_accepted(empty.judge(&sell(10_000, 20)));
}

#[test]
fn a_stop_is_held_to_its_trigger() {
    let rules = InstrumentRules { trigger_bps: 300, ..InstrumentRules::default() };
    let with = |rules| {
        let mut gate = gate(&LIMITS);
        gate.set_instrument_rules(BTC, &rules).unwrap();
        gate
    };
    let stop = |kind, trigger, px| OrderIntent { kind, trigger_px: Price(trigger), ..buy(px, 20) };
    let limit = |trigger, px| stop(IntentKind::STOP_LIMIT, trigger, px);
    assert_accepted(with(rules).judge(&limit(10_300, 10_815)));
    assert_rejected(with(rules).judge(&limit(10_305, 10_815)), &["COLLAR_REF"]);
    assert_rejected(with(rules).judge(&limit(10_300, 10_820)), &["COLLAR_REF"]);
    assert_accepted(with(rules).judge(&limit(9_700, 9_700)));
    assert_rejected(with(rules).judge(&limit(9_695, 9_695)), &["COLLAR_REF"]);
    assert_rejected(with(rules).judge(&limit(10_301, 10_300)), &["PRICE_TICK", "COLLAR_REF"]);
    assert_rejected(with(rules).judge(&limit(0, 10_300)), &["PRICE_NONPOS", "COLLAR_REF"]);
    let market = |trigger| stop(IntentKind::STOP_MARKET, trigger, 0);
    assert_accepted(with(rules).judge(&market(10_300)));
    assert_rejected(with(rules).judge(&market(10_305)), &["COLLAR_REF"]);
    let protected = InstrumentRules { slip_bps: Some(500), ..rules };
    assert_accepted(with(protected).judge(&market(10_300)));
    assert_rejected(with(InstrumentRules { slip_bps: Some(501), ..rules }).judge(&market(10_300)), &["COLLAR_REF"]);
}

#[test]
fn a_price_may_be_negative_where_the_instrument_says_so() {
    let limits = Limits { notional_min: Notional(0), ..LIMITS };
    let mut gate = gate(&limits);
    let verdict = gate.judge(&buy(-5, 20));
    assert!(names(&verdict).contains(&"PRICE_NONPOS"));
    gate.set_instrument_rules(BTC, &InstrumentRules { may_be_negative: true, ..InstrumentRules::default() }).unwrap();
    assert_eq!(names(&gate.judge(&buy(-5, 20))), ["COLLAR_REF"]);
}

#[test]
fn an_account_in_doubt_reduces_only_where_the_venue_enforces_it() {
    for enforces_reduce_only in [false, true] {
        let mut gate = gate(&LIMITS);
        gate.set_instrument_rules(BTC, &InstrumentRules { enforces_reduce_only, ..InstrumentRules::default() })
            .unwrap();
        gate.restore(0, BTC, Qty(100), 0).unwrap();
        gate.apply(NOW, &Report { kind: ReportKind(77), ..report(ReportKind::ACK, &buy(1, 1)) });
        assert!(gate.is_doubtful(0));
        let plain = sell(10_000, 20);
        assert_rejected(gate.judge(&plain), &["UNRECONCILED"]);
        let marked = OrderIntent { flags: IntentFlags::REDUCE_ONLY, ..plain };
        let verdict = gate.judge(&marked);
        assert_eq!(verdict.accept == 1, enforces_reduce_only);
        let flips = OrderIntent { qty: Qty(110), ..marked };
        assert_rejected(gate.judge(&flips), &["REDUCE_ONLY_FLIP", "UNRECONCILED"]);
        gate.adopt(0, NOW).unwrap();
        gate.set_global_rate(FAST);
        assert_accepted(gate.judge(&plain));
    }
}

#[test]
fn a_state_takes_its_kinds_of_orders_and_every_cancel() {
    use InstrumentState::{Auction, Closed, Expired, Halted, Open, PreOpen, Unknown};
    let order = buy(10_000, 20);
    let market = OrderIntent { kind: IntentKind::MARKET, ..order };
    for (state, limits, markets) in [
        (Unknown, false, false),
        (PreOpen, true, false),
        (Open, true, true),
        (Auction, true, false),
        (Halted, false, false),
        (Closed, false, false),
        (Expired, false, false),
    ] {
        let mut gate = gate(&LIMITS);
        assert_accepted(gate.evaluate(NOW, &order));
        gate.set_state(BTC, state).unwrap();
        for (intent, passes) in [(&buy(9_995, 20), limits), (&market, markets)] {
            let verdict = gate.judge(intent);
            if passes { assert_accepted(verdict) } else { assert_rejected(verdict, &["INSTRUMENT_HALTED"]) }
        }
        assert_accepted(gate.evaluate(NOW, &cancel(&order)));
    }
    assert_eq!(gate(&LIMITS).set_state(InstrumentId(1), Open), Err(tt_risk::GateError::Unknown));
}

/// The same order under other ids: a strategy that repeats itself.
#[test]
fn the_same_order_too_often_in_a_moment_is_refused() {
    let rules = Rules { same_orders_max: 2, same_window_ns: 50, ..RULES };
    let mut gate =
        gate_of(Capacity { accounts: 2, instruments: 2, ..CAPACITY }, &Limits { open_orders_max: 99, ..LIMITS });
    gate.set_rules(&rules);
    let order = OrderIntent { strategy: 1, ..buy(10_000, 20) };
    let mut at = |now, order: OrderIntent| gate.evaluate(now, &OrderIntent { client_id: unused_id(), ..order });
    assert_accepted(at(NOW, order));
    assert_accepted(at(NOW + 10, order));
    assert_rejected(at(NOW + 49, order), &["DUP_ORDER"]);
    // Each part of it makes another order.
    for other in [
        OrderIntent { strategy: 2, ..order },
        OrderIntent { account: 1, ..order },
        OrderIntent { instrument: InstrumentId(1), ..order },
        OrderIntent { limit_px: Price(9_995), ..order },
        OrderIntent { qty: Qty(30), ..order },
        OrderIntent { kind: IntentKind::STOP_LIMIT, trigger_px: Price(10_000), ..order },
    ] {
        assert_accepted(at(NOW + 49, other));
    }
    let sold = OrderIntent { side: OrderSide::Sell, limit_px: Price(10_005), ..order };
    assert_accepted(at(NOW + 49, sold));
    // What was rejected does not count; the first is 50 ns old.
    assert_accepted(at(NOW + 50, order));
    assert_rejected(at(NOW + 59, order), &["DUP_ORDER"]);
    assert_accepted(at(NOW + 60, order));
    gate.set_rules(&Rules { same_orders_max: 0, ..rules });
    assert_rejected(gate.judge(&buy(9_990, 20)), &["DUP_ORDER", "CLOCK_FAULT"]);
}

/// A verdict names the generation of the switches that it was made under.
#[test]
fn a_change_of_a_switch_has_another_generation() {
    let mut gate = gate(&LIMITS);
    let controls = gate.controls();
    let first = gate.judge(&buy(10_000, 20)).generation;
    assert_eq!(first, controls.generation());
    assert!(controls.kill(KillSwitch::Strategy(7)));
    assert!(!controls.kill(KillSwitch::Strategy(7)), "it is killed already");
    assert_eq!((controls.generation(), gate.judge(&buy(10_000, 20)).generation), (first + 1, first + 1));
    assert!(!controls.reduce(KillSwitch::Strategy(7)), "a kill stays a kill");
    assert_eq!(controls.mode(KillSwitch::Strategy(7)), Mode::Kill);
    assert!(controls.revive(KillSwitch::Strategy(7)) && controls.reduce(KillSwitch::Strategy(7)));
    assert_eq!((controls.mode(KillSwitch::Strategy(7)), controls.generation()), (Mode::Reduce, first + 3));
}

/// Without a journal, orders are rejected and risk can be taken off: cancels, and replaces that lower the quantity.
#[test]
fn a_lost_journal_rejects_orders_and_passes_cancels() {
    let mut gate = gate(&LIMITS);
    let order = buy(10_000, 40);
    assert_accepted(gate.evaluate(NOW, &order));
    gate.set_journal_lost(true);
    assert_rejected(gate.judge(&buy(10_000, 20)), &["JOURNAL"]);
    let replace = |qty| OrderIntent { kind: IntentKind::REPLACE, qty: Qty(qty), ..order };
    assert_rejected(gate.evaluate(NOW, &replace(50)), &["JOURNAL"]);
    assert_accepted(gate.evaluate(NOW, &replace(20)));
    assert_accepted(gate.evaluate(NOW, &cancel(&order)));
    gate.set_journal_lost(false);
    assert_accepted(gate.judge(&buy(10_000, 20)));
}

#[test]
fn after_a_restart_every_account_is_in_doubt_until_it_is_adopted() {
    let mut gate = gate_of(Capacity { accounts: 2, ..CAPACITY }, &LIMITS);
    let order = OrderIntent { account: 1, ..buy(10_000, 20) };
    assert_accepted(gate.evaluate(NOW, &order));
    let (instrument, open) = gate.open_order(1, order.client_id).expect("it is open");
    assert_eq!((instrument, open.client_id, open.limit_px, open.qty), (BTC, order.client_id, Price(10_000), Qty(20)));
    assert_eq!((open.side, open.kind, open.strategy), (OrderSide::Buy, IntentKind::LIMIT, order.strategy));
    assert_eq!((open.executed, gate.open_order(0, order.client_id)), (Qty(0), None));
    gate.doubt_all();
    assert!(gate.is_doubtful(0) && gate.is_doubtful(1));
    assert_rejected(gate.judge(&buy(10_000, 20)), &["UNRECONCILED"]);
    gate.adopt(0, NOW).unwrap();
    assert_accepted(gate.judge(&buy(10_000, 20)));
    assert_rejected(gate.judge(&OrderIntent { account: 1, ..buy(10_000, 20) }), &["UNRECONCILED"]);
    assert_eq!(gate.apply(NOW, &report(ReportKind::REJECTED, &order)), Outcome::Applied);
    assert_eq!(gate.open_order(1, order.client_id), None);
}

/// A gate whose switches follow others sees each change once.
/// An operator's cancel reaches the orders of every producer in its scope, also those that only reports have shown; a
/// producer's own reaches no order of another.
#[test]
fn a_cancel_of_a_scope_reaches_the_orders_of_all_producers() {
    let capacity = Capacity { accounts: 2, instruments: 2, producers: 3, ..CAPACITY };
    let mut gate = gate_of(capacity, &LIMITS);
    let [first, second] = [0, 1].map(InstrumentId);
    let orders: Vec<OrderIntent> = [(0, 0, first), (0, 1, first), (0, 2, second), (1, 1, first), (1, 2, second)]
        .into_iter()
        .zip(0..)
        .map(|((account, strategy, instrument), number)| {
            // No two orders have a price or a quantity in common.
            OrderIntent { account, strategy, instrument, ..buy(9_990 - 5 * number, 100 + 10 * number) }
        })
        .collect();
    for (order, seq) in orders.iter().zip([1, 1, 1, 2, 2]) {
        let intent = OrderIntent { seq, ts_ns: NOW, ..*order };
        assert_accepted(raw(&mut gate, NOW, order.strategy, &intent));
    }
    let foreign = OrderIntent { seq: 3, ts_ns: NOW, kind: IntentKind::CANCEL, ..orders[0] };
    assert_rejected(raw(&mut gate, NOW, 1, &foreign), &["NOT_PERMITTED"]);
    let adopted = OrderIntent { account: 1, instrument: second, ..buy(9_990, 100) };
    gate.apply(NOW, &Report { order_qty: Qty(100), ..report(ReportKind::ACK, &adopted) });

    let mut now = NOW;
    // The order that a report has shown belongs to no strategy.
    let scopes: [(KillSwitch, &[usize]); 6] = [
        (KillSwitch::Account(0), &[0, 1, 2]),
        (KillSwitch::Strategy(0), &[0]),
        (KillSwitch::Strategy(1), &[1, 3]),
        (KillSwitch::Instrument(second), &[2, 4, 5]),
        (KillSwitch::Global, &[0, 1, 2, 3, 4, 5]),
        (KillSwitch::Account(7), &[]),
    ];
    for (scope, expected) in scopes {
        now += RULES.cancel_repeat_ns;
        let id = |index: &usize| orders.get(*index).unwrap_or(&adopted).client_id;
        let mut expected: Vec<u64> = expected.iter().map(id).collect();
        expected.sort_unstable();
        let (mut cancelled, mut again, mut open) = (Vec::new(), 0, Vec::new());
        gate.cancel_scope(now, scope, |cancel| {
            let order = orders.iter().find(|order| order.client_id == cancel.client_id);
            let named = OrderIntent { kind: IntentKind::CANCEL, seq: 0, ts_ns: now, ..*order.unwrap_or(&adopted) };
            // A report without terms shows no price.
            let limit_px = if order.is_some() { named.limit_px } else { Price(0) };
            assert_eq!(cancel, OrderIntent { limit_px, ..named });
            cancelled.push(cancel.client_id);
        });
        gate.cancel_scope(now + RULES.cancel_repeat_ns - 1, scope, |_| again += 1);
        gate.open_in(scope, |_, client_id| open.push(client_id));
        cancelled.sort_unstable();
        open.sort_unstable();
        assert_eq!((&cancelled, &open, again), (&expected, &expected, 0), "{scope:?}");
        now += RULES.cancel_repeat_ns;
    }
    // A request frees nothing; the report of an end does.
    let held = |gate: &Numbered| gate.exposure(0, first).expect("known").open_buy_qty;
    assert_eq!(held(&gate), Qty(100 + 110));
    assert_eq!(gate.apply(now, &report(ReportKind::CANCELLED, &orders[0])), Outcome::Applied);
    assert_eq!(held(&gate), Qty(110));
    let mut left = 0;
    gate.open_in(KillSwitch::Global, |_, _| left += 1);
    assert_eq!(left, 5);
}

#[test]
fn switches_follow_others() {
    let (own, others) = (Controls::new(2), Controls::new(2));
    let last = InstrumentId(1);
    let changes = [
        (KillSwitch::Global, Mode::Reduce),
        (KillSwitch::Account(u16::MAX), Mode::Kill),
        (KillSwitch::Strategy(0), Mode::Kill),
        (KillSwitch::Instrument(last), Mode::Reduce),
    ];
    for (switch, mode) in changes {
        others.set_mode(switch, mode).unwrap();
    }
    let follow = || {
        let mut seen = Vec::new();
        own.follow(&others, |switch, mode| seen.push((switch, mode)));
        seen
    };
    assert_eq!(follow(), changes);
    assert_eq!((follow(), own.generation()), (Vec::new(), 4));
    assert!(changes.iter().all(|(switch, mode)| own.mode(*switch) == *mode));
    others.revive(KillSwitch::Strategy(0));
    others.set_mode(KillSwitch::Global, Mode::Kill);
    assert_eq!(follow(), [(KillSwitch::Global, Mode::Kill), (KillSwitch::Strategy(0), Mode::Active)]);
}
