//! The life of an order: each row of the table of reports.

use crate::numbered::{
    BTC, CAPACITY, INSTRUMENT, LIMITS, MARK, NOW, Numbered, RULES, STRATEGIES, assert_accepted, assert_rejected, buy,
    fill, gate, gate_of, names, report, sell,
};
use tt_model::{InstrumentId, IntentKind, Notes, Notional, OrderIntent, OrderSide, Price, Qty, Report, ReportKind};
use tt_risk::tree::{Node, NodeLimits};
use tt_risk::{
    Capacity, Exposure, InstrumentLimits, InstrumentRules, KillSwitch, Limits, Mark, Mode, Outcome, Rate, Rules,
};

const ROOMY: Limits = Limits { qty_min: Qty(1), qty_step: Qty(1), notional_min: Notional(0), ..LIMITS };

fn held(gate: &Numbered) -> (i64, i64, i64, u32) {
    let Exposure { position, open_buy_qty, open_sell_qty, open_orders } = gate.exposure(0, BTC).expect("known");
    (position.0, open_buy_qty.0, open_sell_qty.0, open_orders)
}

/// A gate in which `order` was accepted.
fn with(order: &OrderIntent) -> Numbered {
    let mut gate = gate(&ROOMY);
    assert_accepted(gate.evaluate(NOW, order));
    gate
}

fn ended(kind: ReportKind, order: &OrderIntent, executed: i64) -> Report {
    Report { executed: Qty(executed), ..report(kind, order) }
}

const ENDS: [ReportKind; 4] = [ReportKind::CANCELLED, ReportKind::REJECTED, ReportKind::EXPIRED, ReportKind::UNSENT];

/// The quantity that a cancel claims decides nothing: the record does.
#[test]
fn case_k11_an_end_frees_what_its_own_order_has_reserved() {
    for kind in ENDS {
        let (first, second) = (buy(10_000, 250), buy(10_000, 251));
        let mut gate = with(&first);
        assert_accepted(gate.evaluate(NOW, &second));
        assert_eq!(held(&gate), (0, 501, 0, 2));
        let end = Report { qty: Qty(500), order_qty: Qty(500), ..report(kind, &first) };
        assert_eq!(gate.apply(NOW, &end), Outcome::Applied);
        assert_eq!(held(&gate), (0, 251, 0, 1));
        assert_eq!(gate.apply(NOW, &end), Outcome::Duplicate);
        assert_eq!(held(&gate), (0, 251, 0, 1));
        assert!(!gate.is_doubtful(0));
    }
}

#[test]
fn a_request_to_cancel_frees_nothing() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    assert_accepted(gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..order }));
    assert_eq!(held(&gate), (0, 100, 0, 1));
    assert_eq!(gate.apply(NOW, &report(ReportKind::CANCEL_REJECTED, &order)), Outcome::Applied);
    assert_eq!(gate.apply(NOW, &report(ReportKind::CANCEL_REJECTED, &order)), Outcome::Duplicate);
    assert_eq!(held(&gate), (0, 100, 0, 1));
}

#[test]
fn case_k11_a_fill_applies_once() {
    let (order, sold) = (buy(10_000, 100), sell(10_005, 50));
    let mut gate = with(&order);
    assert_accepted(gate.evaluate(NOW, &sold));
    // Before the acknowledgement.
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 40)), Outcome::Applied);
    assert_eq!(held(&gate), (40, 60, 50, 2));
    assert_eq!(gate.apply(NOW, &report(ReportKind::ACK, &order)), Outcome::Duplicate);
    for _ in 0..3 {
        assert_eq!(gate.apply(NOW, &fill(&order, 1, 40)), Outcome::Duplicate);
    }
    assert_eq!(held(&gate), (40, 60, 50, 2));
    // The id belongs to the order: another order's first execution is another one.
    assert_eq!(gate.apply(NOW, &fill(&sold, 1, 50)), Outcome::Applied);
    assert_eq!(held(&gate), (-10, 60, 0, 1));
    // All 128 bits of it count.
    for (execution, position) in [(1 << 64 | 1, -9), (1 << 127 | 1, -8), (u128::MAX, -7)] {
        assert_eq!(gate.apply(NOW, &fill(&order, execution, 1)), Outcome::Applied);
        assert_eq!(held(&gate).0, position);
    }
    assert_eq!(gate.apply(NOW, &fill(&order, 2, 57)), Outcome::Applied);
    assert_eq!(held(&gate), (50, 0, 0, 0));
    assert_eq!(gate.apply(NOW, &fill(&order, 2, 57)), Outcome::Duplicate);
    assert_eq!(gate.counters().reports(Outcome::Duplicate), 5);
    assert_eq!(gate.counters().reports(Outcome::Applied), 6);
    assert!(!gate.is_doubtful(0));
}

#[test]
fn the_same_execution_with_other_content_is_not_applied() {
    let order = buy(10_000, 100);
    let others = [
        Report { qty: Qty(41), ..fill(&order, 1, 40) },
        Report { px: Price(9_999), ..fill(&order, 1, 40) },
        Report { side: OrderSide::Sell, ..fill(&order, 1, 40) },
    ];
    for other in others {
        let mut gate = with(&order);
        gate.apply(NOW, &fill(&order, 1, 40));
        assert_eq!(gate.apply(NOW, &other), Outcome::Conflict);
        assert_eq!(held(&gate), (40, 60, 0, 1));
        assert_rejected(gate.judge(&buy(10_000, 20)), &["UNRECONCILED"]);
        // Whatever the limits; a cancel passes.
        let cancel = gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..order });
        assert_accepted(cancel);
        assert!(cancel.notes.contains(Notes::FORCED));
        gate.adopt(0, NOW).unwrap();
        assert_accepted(gate.judge(&buy(10_000, 20)));
    }
}

#[test]
fn a_fill_beyond_the_order_moves_the_position_and_leaves_only_reducing() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 130)), Outcome::Overfill);
    assert_eq!(held(&gate), (130, 0, 0, 0));
    assert_eq!(gate.controls().mode(KillSwitch::Account(0)), Mode::Reduce);
    assert_rejected(gate.judge(&buy(10_000, 20)), &["REDUCE_ONLY_STATE"]);
    assert_rejected(gate.judge(&sell(10_000, 131)), &["REDUCE_ONLY_STATE"]);
    assert_accepted(gate.judge(&sell(10_000, 130)));
    assert_rejected(gate.judge(&sell(10_000, 20)), &["REDUCE_ONLY_STATE"]);
}

#[test]
fn a_fill_after_the_end_moves_the_position_and_is_counted_late() {
    for kind in ENDS {
        let order = buy(10_000, 100);
        let mut gate = with(&order);
        gate.apply(NOW, &fill(&order, 1, 30));
        assert_eq!(gate.apply(NOW, &ended(kind, &order, 30)), Outcome::Applied);
        assert_eq!(held(&gate), (30, 0, 0, 0));
        assert_eq!(gate.apply(NOW, &fill(&order, 2, 20)), Outcome::Late);
        assert_eq!(gate.apply(NOW, &fill(&order, 2, 20)), Outcome::Duplicate);
        assert_eq!(held(&gate), (50, 0, 0, 0));
    }
}

/// What the venue has executed beyond our fills stays reserved for them.
#[test]
fn an_end_that_comes_before_its_fills_keeps_their_lots_reserved() {
    for kind in ENDS {
        let order = sell(10_000, 100);
        let mut gate = with(&order);
        gate.apply(NOW, &fill(&order, 1, 10));
        assert_eq!(gate.apply(NOW, &ended(kind, &order, 60)), Outcome::Applied);
        assert_eq!(held(&gate), (-10, 0, 50, 0));
        assert_eq!(gate.apply(NOW + 100, &fill(&order, 2, 30)), Outcome::Late);
        assert_eq!(held(&gate), (-40, 0, 20, 0));
        gate.pass_time(NOW + 199);
        assert!(!gate.is_doubtful(0));
        assert_eq!(gate.apply(NOW + 199, &fill(&order, 3, 20)), Outcome::Late);
        assert_eq!(held(&gate), (-60, 0, 0, 0));
        gate.pass_time(NOW + 100_000);
        assert!(!gate.is_doubtful(0));
    }
}

#[test]
fn executions_that_never_come_put_the_account_in_doubt_and_stay_reserved() {
    let (order, other) = (sell(10_000, 100), buy(9_990, 7));
    let mut gate = with(&order);
    assert_accepted(gate.evaluate(NOW, &other));
    gate.apply(NOW, &ended(ReportKind::CANCELLED, &order, 60));
    // An open order that the venue has executed further than its fills show waits too.
    gate.apply(NOW + 50, &ended(ReportKind::ACK, &other, 2));
    gate.pass_time(NOW + 199);
    assert!(!gate.is_doubtful(0));
    gate.pass_time(NOW + 200);
    assert!(gate.is_doubtful(0));
    assert_eq!(held(&gate), (0, 7, 60, 1));
    gate.adopt(0, NOW + 200).unwrap();
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((0, 7, 0, 1), false));
    gate.pass_time(NOW + 10_000);
    assert!(!gate.is_doubtful(0), "both were adopted");
}

#[test]
fn an_end_that_states_less_than_was_filled_is_a_doubt() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    gate.apply(NOW, &fill(&order, 1, 40));
    assert_eq!(gate.apply(NOW, &ended(ReportKind::CANCELLED, &order, 39)), Outcome::Conflict);
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((40, 0, 0, 0), true));
}

#[test]
fn an_unknown_order_is_adopted_and_reserved() {
    let order = buy(9_990, 100);
    let mut gate = gate(&ROOMY);
    let ack = Report { order_qty: Qty(100), limit_px: Price(9_990), ..report(ReportKind::ACK, &order) };
    assert_eq!(gate.apply(NOW, &ack), Outcome::Adopted);
    assert_eq!(held(&gate), (0, 100, 0, 1));
    assert_rejected(gate.judge(&sell(9_990, 20)), &["SELF_MATCH", "UNRECONCILED"]);
    assert_rejected(gate.evaluate(NOW, &order), &["DUP_ID", "UNRECONCILED"]);
    assert_eq!(gate.apply(NOW, &ack), Outcome::Duplicate);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 100)), Outcome::Applied);
    assert_eq!(held(&gate), (100, 0, 0, 0));
    assert!(gate.is_doubtful(0));
}

#[test]
fn case_k11_a_fill_of_an_unknown_order_moves_the_position_once() {
    let order = buy(9_990, 100);
    let mut gate = gate(&ROOMY);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 30)), Outcome::UnknownFill);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 30)), Outcome::Duplicate);
    assert_eq!(gate.apply(NOW, &fill(&order, 2, 5)), Outcome::UnknownFill);
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((35, 0, 0, 0), true));
    // Its acknowledgement comes later: what is left of it is reserved.
    let ack = Report { order_qty: Qty(100), limit_px: Price(9_990), ..report(ReportKind::ACK, &order) };
    assert_eq!(gate.apply(NOW, &ack), Outcome::Adopted);
    assert_eq!(held(&gate), (35, 65, 0, 1));
    assert_eq!(gate.apply(NOW, &fill(&order, 2, 5)), Outcome::Duplicate);
    assert_eq!(gate.apply(NOW, &ended(ReportKind::CANCELLED, &order, 35)), Outcome::Applied);
    assert_eq!(held(&gate), (35, 0, 0, 0));
}

#[test]
fn other_reports_of_unknown_orders_change_nothing() {
    let order = buy(9_990, 100);
    for kind in [ReportKind::CANCELLED, ReportKind::REJECTED, ReportKind::CANCEL_REJECTED, ReportKind::REPLACE_REJECTED]
    {
        let mut gate = gate(&ROOMY);
        assert_eq!(gate.apply(NOW, &report(kind, &order)), Outcome::Unknown);
        assert_eq!((held(&gate), gate.is_doubtful(0)), ((0, 0, 0, 0), false));
        assert_eq!(gate.apply(NOW, &ended(kind, &order, 1)), Outcome::Unknown);
        assert!(gate.is_doubtful(0), "the venue has executed something");
    }
}

#[test]
fn a_bust_undoes_its_fill_once() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    gate.apply(NOW, &fill(&order, 1, 40));
    gate.apply(NOW, &fill(&order, 2, 10));
    let bust = Report { undone_id: 1, ..report(ReportKind::BUST, &order) };
    assert_eq!(gate.apply(NOW, &bust), Outcome::Applied);
    assert_eq!(held(&gate), (10, 50, 0, 1));
    assert_eq!(gate.apply(NOW, &bust), Outcome::Duplicate);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 40)), Outcome::Duplicate);
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((10, 50, 0, 1), false));
    assert_eq!(gate.apply(NOW, &fill(&order, 3, 50)), Outcome::Applied);
    assert_eq!(held(&gate), (60, 0, 0, 0));
    // After the end too.
    assert_eq!(gate.apply(NOW, &Report { undone_id: 3, ..bust }), Outcome::Applied);
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((10, 0, 0, 0), false));
    assert_eq!(gate.apply(NOW, &Report { undone_id: 9, ..bust }), Outcome::Unknown);
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((10, 0, 0, 0), true));
}

#[test]
fn a_correction_replaces_its_fill_once() {
    let order = sell(10_000, 100);
    let mut gate = with(&order);
    gate.apply(NOW, &fill(&order, 1, 40));
    let correct = Report {
        undone_id: 1,
        execution_id: 2,
        qty: Qty(30),
        px: Price(10_001),
        ..report(ReportKind::CORRECT, &order)
    };
    assert_eq!(gate.apply(NOW, &correct), Outcome::Applied);
    assert_eq!(held(&gate), (-30, 0, 60, 1));
    assert_eq!(gate.apply(NOW, &correct), Outcome::Duplicate);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 40)), Outcome::Duplicate);
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((-30, 0, 60, 1), false));
    assert_eq!(gate.apply(NOW, &Report { qty: Qty(31), ..correct }), Outcome::Conflict);
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((-30, 0, 60, 1), true));
    gate.adopt(0, NOW).unwrap();
    assert_eq!(gate.apply(NOW, &Report { undone_id: 7, execution_id: 8, ..correct }), Outcome::Unknown);
    assert!(gate.is_doubtful(0));
}

fn replace(order: &OrderIntent, px: i64, qty: i64) -> OrderIntent {
    OrderIntent { kind: IntentKind::REPLACE, limit_px: Price(px), qty: Qty(qty), ..*order }
}

#[test]
fn a_replace_reserves_the_larger_quantity_until_it_is_answered() {
    let rules = InstrumentRules { replaces_atomically: true, ..Default::default() };
    for (adds, asked, pending) in [(true, 150, 150), (true, 60, 100), (false, 150, 250), (false, 60, 160)] {
        for answer in [ReportKind::REPLACED, ReportKind::REPLACE_REJECTED, ReportKind::CANCELLED] {
            let order = buy(10_000, 100);
            let mut gate = with(&order);
            gate.set_instrument_rules(BTC, &InstrumentRules { replaces_atomically: adds, ..rules }).unwrap();
            assert_accepted(gate.evaluate(NOW, &replace(&order, 9_995, asked)));
            assert_eq!(held(&gate), (0, pending, 0, 1), "{adds} {asked}");
            assert_eq!(gate.apply(NOW, &report(answer, &order)), Outcome::Applied);
            let left = match answer {
                ReportKind::REPLACED => (0, asked, 0, 1),
                ReportKind::REPLACE_REJECTED => (0, 100, 0, 1),
                _ => (0, 0, 0, 0),
            };
            assert_eq!(held(&gate), left, "{adds} {asked} {answer:?}");
        }
    }
}

#[test]
fn a_replace_counts_fills_that_cross_it() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    gate.set_instrument_rules(BTC, &InstrumentRules { replaces_atomically: true, ..Default::default() }).unwrap();
    assert_accepted(gate.evaluate(NOW, &replace(&order, 10_005, 150)));
    // The old terms are filled; the replace is still under way.
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 100)), Outcome::Applied);
    assert_eq!(held(&gate), (100, 50, 0, 1));
    assert_eq!(gate.apply(NOW, &report(ReportKind::REPLACE_REJECTED, &order)), Outcome::Applied);
    assert_eq!(held(&gate), (100, 0, 0, 0));
}

/// The venue has enlarged the order and executed more than it had before; the end overtakes both reports.
#[test]
fn an_end_before_the_answer_to_a_replace_reserves_what_the_replaced_order_has_executed() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    gate.set_instrument_rules(BTC, &InstrumentRules { replaces_atomically: true, ..Default::default() }).unwrap();
    assert_accepted(gate.evaluate(NOW, &replace(&order, 9_995, 150)));
    let ended = Report { executed: Qty(130), order_qty: Qty(150), ..report(ReportKind::CANCELLED, &order) };
    assert_eq!(gate.apply(NOW, &ended), Outcome::Applied);
    assert_eq!(held(&gate), (0, 130, 0, 0));
    // The executions are the order's: no overfill.
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 130)), Outcome::Late);
    assert_eq!(held(&gate), (130, 0, 0, 0));
}

#[test]
fn both_prices_of_a_pending_replace_are_own_prices() {
    let order = buy(9_980, 100);
    let mut gate = with(&order);
    gate.set_instrument_rules(BTC, &InstrumentRules { replaces_atomically: true, ..Default::default() }).unwrap();
    assert_accepted(gate.judge(&sell(9_990, 20)));
    let mut gate = with(&order);
    assert_accepted(gate.evaluate(NOW, &replace(&order, 9_990, 100)));
    assert_rejected(gate.judge(&sell(9_990, 20)), &["SELF_MATCH"]);
    gate.apply(NOW, &report(ReportKind::REPLACED, &order));
    assert_rejected(gate.judge(&sell(9_990, 20)), &["SELF_MATCH"]);
    assert_accepted(gate.evaluate(NOW, &replace(&order, 9_970, 100)));
    assert_rejected(gate.judge(&sell(9_990, 20)), &["SELF_MATCH"]);
    gate.apply(NOW, &report(ReportKind::REPLACED, &order));
    assert_accepted(gate.judge(&sell(9_975, 20)));
    assert_rejected(gate.judge(&sell(9_970, 20)), &["SELF_MATCH"]);
}

#[test]
fn a_restatement_releases_or_reserves_and_a_larger_one_is_an_alarm() {
    let order = buy(10_000, 100);
    let restated = |qty| Report { order_qty: Qty(qty), ..report(ReportKind::RESTATED, &order) };
    let mut gate = with(&order);
    assert_eq!(gate.apply(NOW, &restated(70)), Outcome::Applied);
    assert_eq!(held(&gate), (0, 70, 0, 1));
    assert_eq!(gate.apply(NOW, &restated(120)), Outcome::Enlarged);
    assert_eq!(held(&gate), (0, 120, 0, 1));
    // An answer that is larger than what was asked for.
    assert_accepted(gate.evaluate(NOW, &replace(&order, 9_990, 80)));
    let larger = Report { order_qty: Qty(90), ..report(ReportKind::REPLACED, &order) };
    assert_eq!(gate.apply(NOW, &larger), Outcome::Enlarged);
    assert_eq!(held(&gate), (0, 90, 0, 1));
    assert_eq!(gate.apply(NOW, &report(ReportKind::CANCELLED, &order)), Outcome::Applied);
    assert_eq!(gate.apply(NOW, &restated(200)), Outcome::Late);
    assert_eq!(held(&gate), (0, 0, 0, 0));
}

/// Seed 54703 of the gate world: the venue makes an order larger and smaller, and its reports come twice or in another
/// order. Without versions the smaller quantity is believed as long as nothing has made the order larger.
#[test]
fn a_smaller_restatement_that_may_be_old_releases_nothing() {
    let order = buy(10_000, 100);
    let restated = |qty| Report { order_qty: Qty(qty), ..report(ReportKind::RESTATED, &order) };
    let mut gate = with(&order);
    assert_eq!(gate.apply(NOW, &restated(70)), Outcome::Applied);
    assert_eq!(gate.apply(NOW, &restated(120)), Outcome::Enlarged);
    assert_eq!(gate.apply(NOW, &restated(70)), Outcome::Overtaken, "it comes again");
    assert_eq!((held(&gate), gate.is_doubtful(0)), ((0, 120, 0, 1), false));
    // Its price may be old, too.
    assert_eq!(gate.apply(NOW, &Report { limit_px: Price(9_000), ..restated(70) }), Outcome::Overtaken);
    assert_eq!(gate.open_order(0, order.client_id).expect("open").1.limit_px, order.limit_px);
    // What it says of executions counts.
    let states_more = Report { executed: Qty(130), ..restated(70) };
    assert_eq!(gate.apply(NOW, &states_more), Outcome::Overtaken);
    // A query says what the venue has now; reports from before may still come.
    let queried = |qty| Report { version: Report::CURRENT, ..restated(qty) };
    assert_eq!(gate.apply(NOW, &queried(60)), Outcome::Applied);
    assert_eq!(held(&gate), (0, 60, 0, 1));
    assert_eq!(gate.apply(NOW, &restated(50)), Outcome::Overtaken);
    assert_eq!(held(&gate), (0, 60, 0, 1));
    // A replace that was answered makes an order larger, too.
    let mut gate = with(&order);
    assert_accepted(gate.evaluate(NOW, &replace(&order, 10_000, 150)));
    assert_eq!(
        gate.apply(NOW, &Report { order_qty: Qty(150), ..report(ReportKind::REPLACED, &order) }),
        Outcome::Applied
    );
    assert_eq!(gate.apply(NOW, &restated(70)), Outcome::Overtaken);
    assert_eq!(held(&gate), (0, 150, 0, 1));
}

#[test]
fn versions_of_restatements_say_which_is_later() {
    let order = buy(10_000, 100);
    let restated = |qty, version| Report { order_qty: Qty(qty), version, ..report(ReportKind::RESTATED, &order) };
    let mut gate = with(&order);
    assert_eq!(gate.apply(NOW, &restated(120, 6)), Outcome::Enlarged);
    assert_eq!(gate.apply(NOW, &restated(70, 5)), Outcome::Overtaken);
    assert_eq!(gate.apply(NOW, &restated(200, 5)), Outcome::Overtaken, "larger once");
    assert_eq!(held(&gate), (0, 120, 0, 1));
    // Two changes in one millisecond: the larger one counts.
    assert_eq!(gate.apply(NOW, &restated(70, 6)), Outcome::Overtaken);
    assert_eq!(gate.apply(NOW, &restated(130, 6)), Outcome::Enlarged);
    assert_eq!(held(&gate), (0, 130, 0, 1));
    assert_eq!(gate.apply(NOW, &restated(80, 7)), Outcome::Applied);
    assert_eq!(held(&gate), (0, 80, 0, 1));
    // An old one opens no order that its fills have ended.
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 80)), Outcome::Applied);
    assert_eq!(gate.apply(NOW, &restated(130, 6)), Outcome::Overtaken);
    assert_eq!(held(&gate), (80, 0, 0, 0));
    assert_eq!(gate.apply(NOW, &restated(110, 9)), Outcome::Enlarged);
    assert_eq!(held(&gate), (80, 30, 0, 1));
}

#[test]
fn the_answer_to_an_earlier_replace_does_not_answer_a_pending_one() {
    for versions in [[0, 0], [4, 6], [4, 4]] {
        let order = buy(10_000, 100);
        let answer = |qty, version| Report { order_qty: Qty(qty), version, ..report(ReportKind::REPLACED, &order) };
        let mut gate = with(&order);
        gate.set_instrument_rules(BTC, &InstrumentRules { replaces_atomically: true, ..Default::default() }).unwrap();
        assert_accepted(gate.evaluate(NOW, &replace(&order, 10_000, 80)));
        assert_eq!(gate.apply(NOW, &answer(80, versions[0])), Outcome::Applied);
        assert_accepted(gate.evaluate(NOW, &replace(&order, 10_000, 150)));
        gate.apply(NOW, &answer(80, versions[0]));
        assert_eq!(held(&gate), (0, 150, 0, 1), "{versions:?}");
        assert_eq!(gate.apply(NOW, &answer(150, versions[1])), Outcome::Applied);
        assert_eq!(held(&gate), (0, 150, 0, 1));
    }
}

/// A bust takes its lots from the order, a correction adds the difference. Terms that the venue has stated later include
/// both.
#[test]
fn terms_count_busts_and_corrections_once() {
    let order = buy(10_000, 100);
    let restated = |qty, version| Report { order_qty: Qty(qty), version, ..report(ReportKind::RESTATED, &order) };
    let bust = |version| Report { undone_id: 1, version, ..report(ReportKind::BUST, &order) };
    let correct = |version| {
        let of = Report { undone_id: 1, version, ..report(ReportKind::CORRECT, &order) };
        Report { execution_id: 2, qty: Qty(60), px: Price(10_000), ..of }
    };
    let filled = || {
        let mut gate = with(&order);
        assert_eq!(gate.apply(NOW, &fill(&order, 1, 50)), Outcome::Applied);
        gate
    };
    // In order: 100, less 50, then 80 in total.
    let mut gate = filled();
    gate.apply(NOW, &bust(5));
    assert_eq!(held(&gate), (0, 50, 0, 1));
    gate.apply(NOW, &restated(80, 6));
    assert_eq!(held(&gate), (0, 80, 0, 1));
    // The later terms come first: the bust is in them. Without versions it may be.
    for (bust_at, terms_at) in [(5, 6), (6, 6), (0, 0)] {
        let mut gate = filled();
        gate.apply(NOW, &restated(80, terms_at));
        gate.apply(NOW, &bust(bust_at));
        assert_eq!(held(&gate), (0, 80, 0, 1), "{bust_at} {terms_at}");
    }
    let mut gate = filled();
    gate.apply(NOW, &correct(5));
    assert_eq!(held(&gate), (60, 50, 0, 1));
    gate.apply(NOW, &restated(120, 6));
    assert_eq!(held(&gate), (60, 60, 0, 1));
    let mut gate = filled();
    gate.apply(NOW, &restated(120, 6));
    gate.apply(NOW, &correct(5));
    assert_eq!(held(&gate), (60, 60, 0, 1));
    // Terms from before the correction, late: its ten lots come on top.
    for (correct_at, terms_at) in [(6, 5), (6, 6), (0, 0)] {
        let mut gate = filled();
        gate.apply(NOW, &correct(correct_at));
        assert_eq!(gate.apply(NOW, &restated(120, terms_at)), Outcome::Enlarged);
        assert_eq!(held(&gate), (60, 70, 0, 1), "{correct_at} {terms_at}");
    }
}

/// The venue enlarges an order and executes it; the report of its new quantity comes last.
#[test]
fn a_late_restatement_reserves_what_still_rests() {
    for filled in [100, 130] {
        let order = buy(10_000, 100);
        let restated = |qty| Report { order_qty: Qty(qty), ..report(ReportKind::RESTATED, &order) };
        let mut gate = with(&order);
        let outcome = if filled == 100 { Outcome::Applied } else { Outcome::Overfill };
        assert_eq!(gate.apply(NOW, &fill(&order, 1, filled)), outcome);
        assert_eq!(held(&gate), (filled, 0, 0, 0));
        assert_eq!(gate.apply(NOW, &restated(filled)), Outcome::Late);
        assert_eq!(gate.apply(NOW, &restated(150)), Outcome::Enlarged);
        assert_eq!(held(&gate), (filled, 150 - filled, 0, 1));
        assert!(!gate.is_doubtful(0));
        // It stays reserved for as long as it is open, whatever the window of ids.
        let later = NOW + 10 * RULES.id_window_ns;
        gate.pass_time(later);
        let (instrument, open) = gate.open_order(0, order.client_id).expect("open");
        assert_eq!((instrument, open.qty, open.executed, open.limit_px), (BTC, Qty(150), Qty(filled), order.limit_px));
        // Its own price is known again.
        assert!(names(&gate.evaluate(later, &sell(10_000, 20))).contains(&"SELF_MATCH"));
        assert_eq!(gate.apply(later, &fill(&order, 2, 150 - filled)), Outcome::Applied);
        assert_eq!(held(&gate), (150, 0, 0, 0));
        assert_eq!(gate.apply(later, &restated(150)), Outcome::Late);
        // The id counts as used from the second end on.
        gate.pass_time(later + RULES.id_window_ns - 1);
        assert_eq!(gate.apply(later + RULES.id_window_ns - 1, &fill(&order, 2, 150 - filled)), Outcome::Duplicate);
        assert_eq!(gate.apply(later + RULES.id_window_ns, &fill(&order, 3, 10)), Outcome::UnknownFill);
    }
}

/// A report of the venue that ends an order is final, before and after its fills.
#[test]
fn a_late_restatement_opens_no_order_that_the_venue_has_ended() {
    for kind in ENDS {
        let order = buy(10_000, 100);
        let restated = Report { order_qty: Qty(150), ..report(ReportKind::RESTATED, &order) };
        let mut gate = with(&order);
        assert_eq!(gate.apply(NOW, &fill(&order, 1, 100)), Outcome::Applied);
        assert_eq!(gate.apply(NOW, &ended(kind, &order, 100)), Outcome::Duplicate);
        assert_eq!(gate.apply(NOW, &restated), Outcome::Late);
        assert_eq!(held(&gate), (100, 0, 0, 0));
        let mut gate = with(&order);
        assert_eq!(gate.apply(NOW, &ended(kind, &order, 100)), Outcome::Applied);
        assert_eq!(gate.apply(NOW, &fill(&order, 1, 100)), Outcome::Late);
        assert_eq!(gate.apply(NOW, &restated), Outcome::Late);
        assert_eq!(held(&gate), (100, 0, 0, 0));
    }
}

/// An acknowledgement or an answer to a replace may be an old one that comes again.
#[test]
fn only_an_unasked_restatement_opens_a_filled_order() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    assert_accepted(gate.evaluate(NOW, &replace(&order, 10_000, 60)));
    assert_eq!(gate.apply(NOW, &report(ReportKind::REPLACED, &order)), Outcome::Applied);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 60)), Outcome::Applied);
    for kind in [ReportKind::ACK, ReportKind::REPLACED] {
        assert_eq!(gate.apply(NOW, &Report { order_qty: Qty(100), ..report(kind, &order) }), Outcome::Late);
    }
    assert_eq!(held(&gate), (60, 0, 0, 0));
}

#[test]
fn terms_of_an_order_that_only_fills_have_shown_are_adopted() {
    for kind in [ReportKind::ACK, ReportKind::REPLACED, ReportKind::RESTATED] {
        let order = buy(10_000, 100);
        let mut gate = gate(&ROOMY);
        assert_eq!(gate.apply(NOW, &fill(&order, 1, 40)), Outcome::UnknownFill);
        let stated = |qty| Report { order_qty: Qty(qty), limit_px: Price(9_990), ..report(kind, &order) };
        assert_eq!(gate.apply(NOW, &stated(40)), Outcome::Late);
        assert_eq!(gate.apply(NOW, &stated(90)), Outcome::Adopted);
        assert_eq!(held(&gate), (40, 50, 0, 1));
        assert!(gate.is_doubtful(0));
    }
}

/// An order that somebody has placed at the venue: its first terms come after a correction that has enlarged it, and state
/// less than is executed by then. What is left of it is reserved.
#[test]
fn old_terms_of_an_unknown_order_are_adopted_with_what_was_added_since() {
    for kind in [ReportKind::ACK, ReportKind::REPLACED, ReportKind::RESTATED] {
        let order = buy(10_000, 6);
        let mut gate = gate(&ROOMY);
        let seen = Report { version: 2, ..fill(&order, 1, 3) };
        assert_eq!(gate.apply(NOW, &seen), Outcome::UnknownFill);
        let correct = Report { undone_id: 1, version: 3, ..report(ReportKind::CORRECT, &order) };
        let correct = Report { execution_id: 2, qty: Qty(13), px: Price(10_000), executed: Qty(13), ..correct };
        assert_eq!(gate.apply(NOW, &correct), Outcome::Applied);
        assert_eq!(held(&gate), (13, 0, 0, 0));
        let stated = |qty| Report { order_qty: Qty(qty), limit_px: Price(9_990), version: 1, ..report(kind, &order) };
        assert_eq!(gate.apply(NOW, &stated(3)), Outcome::Late, "13 of 13");
        assert_eq!(gate.apply(NOW, &stated(6)), Outcome::Adopted, "13 of 16");
        assert_eq!(held(&gate), (13, 3, 0, 1));
    }
}

#[test]
fn reports_without_a_meaning_change_nothing() {
    let order = buy(10_000, 100);
    let malformed = [
        report(ReportKind(12), &order),
        report(ReportKind(255), &order),
        fill(&order, 1, 0),
        fill(&order, 1, -5),
        fill(&order, 1, i64::MAX),
        Report { executed: Qty(-2), ..fill(&order, 1, 5) },
        Report { order_qty: Qty(-1), ..report(ReportKind::ACK, &order) },
    ];
    for report in malformed {
        let mut gate = with(&order);
        assert_eq!(gate.apply(NOW, &report), Outcome::Malformed, "{report:?}");
        assert_eq!((held(&gate), gate.is_doubtful(0)), ((0, 100, 0, 1), true));
    }
    let mut gate = with(&order);
    assert_eq!(gate.apply(NOW, &Report { account: 9, ..fill(&order, 1, 5) }), Outcome::Malformed);
    assert!(!gate.is_doubtful(0), "it is about another account");
}

/// A fill that comes after its order was forgotten cannot be distinguished from a repetition.
#[test]
fn a_fill_after_the_window_is_one_of_an_unknown_order() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    gate.apply(NOW, &fill(&order, 1, 100));
    assert_eq!(gate.apply(NOW + RULES.id_window_ns - 1, &fill(&order, 1, 100)), Outcome::Duplicate);
    assert_eq!(gate.apply(NOW + RULES.id_window_ns, &fill(&order, 1, 100)), Outcome::UnknownFill);
    assert_eq!((held(&gate).0, gate.is_doubtful(0)), (200, true));
}

/// Everything ended and forgotten, all tables are as empty as at the start.
#[test]
fn all_ended_gives_zero_and_all_room_comes_back() {
    let capacity = Capacity { orders: 64, executions: 256, ..CAPACITY };
    let mut gate = gate_of(capacity, &Limits { open_orders_max: 1_000, ..ROOMY });
    gate.set_instrument_limits(BTC, &InstrumentLimits { mark_age_max_ns: u64::MAX, ..INSTRUMENT }).unwrap();
    for round in 0..20 {
        let now = NOW + round * 10_000;
        let orders: Vec<_> = (0..64).map(|n| buy(9_500 + 5 * (n * 37 % 64), 10)).collect();
        for order in &orders {
            assert_accepted(gate.evaluate(now, order));
        }
        assert_rejected(gate.evaluate(now, &buy(9_500, 10)), &["CAPACITY"]);
        for (n, order) in orders.iter().enumerate() {
            gate.apply(now, &fill(order, 1, 3));
            gate.apply(now, &fill(order, 2, 7));
            for undone_id in if n % 2 == 0 { [2, 1] } else { [1, 2] } {
                gate.apply(now, &Report { undone_id, ..report(ReportKind::BUST, order) });
            }
        }
        assert_eq!(held(&gate), (0, 0, 0, 0));
        assert!(!gate.is_doubtful(0));
        for step in 0..200 {
            gate.pass_time(now + RULES.id_window_ns + step);
        }
    }
}

/// A fill at a price that no trade can have is not applied.
#[test]
fn case_k22_an_impossible_fill_price_puts_the_account_in_doubt() {
    let order = buy(10_000, 100);
    for px in [0, -1, i64::MIN] {
        let mut gate = with(&order);
        let fill = Report { px: Price(px), ..fill(&order, 1, 100) };
        assert_eq!(gate.apply(NOW, &fill), Outcome::Malformed);
        assert_eq!((held(&gate), gate.is_doubtful(0)), ((0, 100, 0, 1), true));
        assert_rejected(gate.judge(&buy(10_000, 20)), &["UNRECONCILED"]);
    }
    // Where prices may be negative, it is possible.
    let mut gate = with(&order);
    gate.set_instrument_rules(BTC, &InstrumentRules { may_be_negative: true, ..InstrumentRules::default() }).unwrap();
    assert_eq!(gate.apply(NOW, &Report { px: Price(-1), ..fill(&order, 1, 100) }), Outcome::Applied);
    // A value beyond 63 bits is not.
    let huge = Report { px: Price(i64::MAX), ..fill(&order, 2, 100) };
    assert_eq!(gate.apply(NOW, &huge), Outcome::Malformed);
}

/// Time that the thread computes for the lives of 2,000 orders, while `open` others are open; the least of five tries.
fn life_ns(open: i64) -> u128 {
    let capacity = Capacity { orders: 80_000, executions: 80_000, ..CAPACITY };
    let mut gate = gate_of(capacity, &Limits { open_orders_max: 1 << 20, qty_max: Qty(100), ..ROOMY });
    let wide =
        Limits { open_qty_max: Qty(1 << 40), position_long_max: Qty(1 << 40), open_orders_max: 1 << 20, ..ROOMY };
    gate.set_limits(0, BTC, &wide).expect("known");
    for n in 0..open {
        assert_accepted(gate.evaluate(NOW, &buy(9_500 + 5 * (n % 90), 1)));
    }
    let mut try_once = || {
        let orders: Vec<_> = (0..2_000).map(|n| buy(9_500 + 5 * (n % 90), 2)).collect();
        let start = testkit::cpu_time();
        for order in &orders {
            assert_eq!(gate.evaluate(NOW, order).accept, 1);
            gate.apply(NOW, &fill(order, 1, 1));
            gate.apply(NOW, &report(ReportKind::CANCELLED, order));
        }
        (testkit::cpu_time() - start).as_nanos()
    };
    (0..5).map(|_| try_once()).min().expect("five tries")
}

/// A search among 60,000 orders would take hundreds of times longer; a cold cache line takes a few times longer.
#[test]
fn an_orders_life_takes_as_long_with_many_open_orders() {
    let (few, many) = (life_ns(16), life_ns(60_000));
    assert!(many < few * 20, "{many} ns with 60,000 open orders, {few} ns with 16");
}

/// A strategy's order that the gate knows from the venue alone, after a loss of records, can still be cancelled.
#[test]
fn every_strategy_may_cancel_an_order_that_only_reports_have_shown() {
    let mut gate = gate(&ROOMY);
    let order = OrderIntent { strategy: 3, ..buy(10_000, 100) };
    let ack = Report { order_qty: Qty(100), limit_px: order.limit_px, ..report(ReportKind::ACK, &order) };
    assert_eq!(gate.apply(NOW, &ack), Outcome::Adopted);
    assert_accepted(gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..order }));
}

#[test]
fn a_replace_that_reduces_names_an_instrument_beyond_the_table() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    let instrument = InstrumentId(9);
    let replace = OrderIntent { kind: IntentKind::REPLACE, qty: Qty(50), instrument, ..order };
    assert_rejected(gate.evaluate(NOW, &replace), &["INSTRUMENT_UNKNOWN", "NOT_PERMITTED"]);
}

#[test]
fn case_k22_an_impossible_fill_of_an_unknown_order_leaves_nothing() {
    let (order, unknown) = (buy(10_000, 100), buy(1, 1));
    let mut gate = with(&order);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 100)), Outcome::Applied);
    assert_eq!(gate.apply(NOW, &fill(&unknown, 1, 1 << 61)), Outcome::Malformed);
    assert_eq!(held(&gate), (100, 0, 0, 0));
    assert_eq!(gate.apply(NOW, &report(ReportKind::CANCELLED, &unknown)), Outcome::Unknown);
}

/// Limits of losses that are tightened below the present loss put their node into reduce mode.
#[test]
fn a_tighter_limit_of_losses_latches_without_a_change_of_the_profit() {
    let order = buy(10_000, 100);
    let mut gate = with(&order);
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 100)), Outcome::Applied);
    gate.set_reference(NOW, BTC, &Mark { ref_px: Price(9_900), ..MARK }).expect("known");
    gate.pass_time(NOW);
    gate.set_node_limits(Node::Account(0), &NodeLimits { daily_loss_max: Some(9_999), ..NodeLimits::OFF })
        .expect("known");
    gate.pass_time(NOW);
    assert_eq!(gate.controls().mode(KillSwitch::Account(0)), Mode::Reduce);
}

/// Losses reduce firm, account and strategy, and refusals kill every strategy, all in one event.
#[test]
fn every_mode_that_the_gate_sets_in_one_event_can_be_polled() {
    let mut gate = gate_of(Capacity { routes: STRATEGIES.into(), ..CAPACITY }, &ROOMY);
    gate.set_rules(&Rules { refusal_rate: Rate { per_second: 1, burst: 1 }, ..RULES });
    let order = buy(10_000, 100);
    assert_accepted(gate.evaluate(NOW, &order));
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 100)), Outcome::Applied);
    for node in [Node::Firm, Node::Account(0), Node::Strategy { account: 0, strategy: 0 }] {
        gate.set_node_limits(node, &NodeLimits { daily_loss_max: Some(0), ..NodeLimits::OFF }).expect("known");
    }
    let refused = OrderIntent { qty: Qty(0), ..buy(10_000, 1) };
    assert_eq!(gate.evaluate(NOW, &refused).accept, 0);
    assert_eq!(gate.poll_mode_change(), None);
    gate.set_reference(NOW, BTC, &Mark { ref_px: Price(9_900), ..MARK }).expect("known");
    assert_eq!(gate.evaluate(NOW, &refused).accept, 0);
    let changes = std::iter::from_fn(|| gate.poll_mode_change()).count();
    assert_eq!(changes, 3 + usize::from(STRATEGIES));
}
