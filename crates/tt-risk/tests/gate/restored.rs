//! The state of before a start, field by field, and what a gate says of itself.

use crate::numbered::{
    CAPACITY, INSTRUMENT, LIMITS, NOW, Numbered, RULES, STRATEGIES, buy, fill, gate_of, names, report,
};
use tt_meter::Off;
use tt_model::{Breach, InstrumentId, IntentKind, Notes, OrderIntent, OrderSide, Price, Qty, ReportKind, Verdict};
use tt_risk::money::{Contract, Ratio};
use tt_risk::tree::{Finding, Node};
use tt_risk::{Capacity, Gate, GateError, InstrumentLimits, KillSwitch, Mode, OpenOrder, Outcome, Rate};

const FIRST: InstrumentId = InstrumentId(0);
const SECOND: InstrumentId = InstrumentId(1);
const PAIRS: Capacity = Capacity { accounts: 2, instruments: 2, ..CAPACITY };

/// No field has the value that an empty record has.
const SALE: OpenOrder = OpenOrder {
    strategy: 3,
    client_id: 77,
    kind: IntentKind::STOP_MARKET,
    side: OrderSide::Sell,
    limit_px: Price(10_100),
    qty: Qty(500),
    executed: Qty(120),
};

fn restored() -> Numbered {
    let mut gate = gate_of(PAIRS, &LIMITS);
    gate.restore(1, SECOND, Qty(-70), 1).expect("known");
    gate.restore_order(1, SECOND, &SALE).expect("counted");
    gate
}

#[test]
fn an_order_of_before_a_start_is_the_one_that_it_was() {
    let mut gate = restored();
    assert_eq!(gate.open_order(1, SALE.client_id), Some((SECOND, SALE)));
    assert_eq!(gate.open_order(0, SALE.client_id), None);
    let strategy = Node::Strategy { account: 1, strategy: 3 };
    for node in [Node::Firm, Node::Account(1), strategy] {
        let held = gate.held(node, SECOND).expect("known");
        assert_eq!((held.open_buy_qty, held.open_sell_qty, held.open_orders), (Qty(0), Qty(380), 1), "{node:?}");
        assert_eq!(gate.held(node, FIRST).expect("known").open_orders, 0, "{node:?}");
    }
    let mut cancels = Vec::new();
    gate.cancel_scope(NOW, KillSwitch::Strategy(3), |cancel| cancels.push(cancel));
    let OpenOrder { strategy, client_id, side, limit_px, qty, .. } = SALE;
    let (account, instrument, kind, ts_ns) = (1, SECOND, IntentKind::CANCEL, NOW);
    let named = OrderIntent { account, instrument, kind, ts_ns, strategy, client_id, side, limit_px, qty, ..buy(0, 0) };
    assert_eq!(cancels, [named]);
    // Another order than the one that was counted is not known.
    assert_eq!(gate.restore_order(1, SECOND, &SALE), Err(GateError::UnknownOrder));
}

#[test]
fn every_open_order_of_a_row_is_listed() {
    let mut gate = restored();
    let orders = [9_900, 9_905, 9_910].map(|px| OrderIntent { account: 1, ..buy(px, 20) });
    for order in &orders {
        assert_eq!(gate.evaluate(NOW, order).accept, 1);
    }
    gate.apply(NOW, &report(ReportKind::CANCELLED, &orders[1]));
    let listed = |account, instrument| {
        let mut ids = Vec::new();
        gate.open_orders(account, instrument, |client_id| ids.push(client_id));
        ids.sort_unstable();
        ids
    };
    assert_eq!(listed(1, FIRST), [orders[0].client_id, orders[2].client_id]);
    assert_eq!((listed(1, SECOND), listed(0, FIRST)), (vec![SALE.client_id], vec![]));
}

#[test]
fn an_id_of_before_a_start_is_used_in_its_account_and_instrument() {
    let mut gate = gate_of(PAIRS, &LIMITS);
    gate.restore_id(1, SECOND, 9, NOW).expect("room");
    let order = |account: u16| OrderIntent { account, instrument: SECOND, client_id: 9, ..buy(10_000, 20) };
    assert_eq!(names(&gate.evaluate(NOW, &order(1))), ["DUP_ID"]);
    let outcome = |gate: &mut Numbered, instrument: InstrumentId| {
        gate.apply(NOW, &report(ReportKind::CANCELLED, &OrderIntent { instrument, ..order(1) }))
    };
    assert_eq!(outcome(&mut gate, SECOND), Outcome::Duplicate);
    assert_eq!(outcome(&mut gate, FIRST), Outcome::Unknown);
    assert!(gate.open_order(1, 9).is_none());
    assert_eq!(gate.evaluate(NOW, &order(0)).accept, 1);
}

#[test]
fn a_strategy_has_the_position_of_before_a_start() {
    let mut gate = restored();
    gate.restore_strategy(1, 3, SECOND, Qty(-40)).expect("it has a route");
    let position = |node: Node| gate.held(node, SECOND).expect("known").position;
    let of = |account: u16, strategy: u16| position(Node::Strategy { account, strategy });
    assert_eq!([of(1, 3), of(1, 2), of(0, 3)], [Qty(-40), Qty(0), Qty(0)]);
    assert_eq!([position(Node::Firm), position(Node::Account(1)), position(Node::Account(0))], [-70, -70, 0].map(Qty));
    assert_eq!(gate.restore_strategy(1, STRATEGIES, SECOND, Qty(0)), Err(GateError::Unknown));
    assert_eq!(gate.restore_strategy(1, 3, SECOND, Qty(i64::MAX)), Err(GateError::QtyOutOfRange));
}

#[test]
fn a_gate_names_its_routes_and_contracts() {
    let mut gate = gate_of(PAIRS, &LIMITS);
    let has = |account, strategy, instrument| gate.has_route(account, strategy, InstrumentId(instrument));
    assert!(has(0, 0, 0) && has(1, STRATEGIES - 1, 1));
    assert!(!has(2, 0, 0) && !has(0, STRATEGIES, 0) && !has(0, 0, 2) && !has(u16::MAX, 0, u32::MAX));
    assert_eq!(gate.routes_left(), PAIRS.routes - 4 * u32::from(STRATEGIES));
    let contract = Contract { value: Ratio { num: 3, den: 7 }, ..Contract::default() };
    gate.set_contract(SECOND, &contract).expect("known");
    assert_eq!(gate.contract(SECOND), Some(&contract));
    assert_eq!(gate.contract(FIRST), Some(&Contract::default()));
    assert_eq!(gate.contract(InstrumentId(2)), None);
}

/// The verdict on an intent that is answered without a record, whole.
#[test]
fn an_unrecorded_answer_has_every_field_of_its_intent() {
    let gate = gate_of(PAIRS, &LIMITS);
    gate.controls().set_mode(KillSwitch::Strategy(8), Mode::Reduce);
    let order = OrderIntent { seq: 5, account: 1, instrument: SECOND, ..buy(10_000, 20) };
    let answer = |intent: &OrderIntent, in_turn| gate.answer_unrecorded(NOW + 7, 0, intent, in_turn);
    let rejected = |intent: &OrderIntent, reasons: Breach| Verdict {
        intent_seq: 5,
        client_id: intent.client_id,
        reasons,
        now_ns: NOW + 7,
        generation: gate.controls().generation(),
        limits_version: gate.controls().limits_version(),
        first_bit: reasons.0.trailing_zeros() as u8,
        ..Verdict::default()
    };
    assert!(gate.controls().generation() > 0 && gate.controls().limits_version() > 0);
    assert_eq!(answer(&order, true), rejected(&order, Breach::JOURNAL));
    assert_eq!(answer(&order, false), rejected(&order, Breach::JOURNAL.union(Breach::SEQ_REPLAY)));
    let cancel = OrderIntent { kind: IntentKind::CANCEL, ..order };
    let passed = Verdict { accept: 1, notes: Notes::ORDER_UNKNOWN, ..rejected(&cancel, Breach::NONE) };
    assert_eq!(answer(&cancel, true), passed);
    assert_eq!(gate.answer_unrecorded(NOW, 3, &order, true).producer, 3);
}

/// Every reason of a node comes with the node, the value and the limit.
#[test]
fn findings_name_node_value_and_limit() {
    let mut gate = gate_of(PAIRS, &LIMITS);
    let order = OrderIntent { seq: 1, ts_ns: NOW, account: 1, instrument: SECOND, ..buy(10_000, 1_010) };
    let mut found = Vec::new();
    gate.findings(NOW, 0, &order, |finding| found.push(finding));
    let of = |reason, values| Finding { node: Some(Node::Account(1)), reason, values: Some(values) };
    let expected = [
        of(Breach::QTY_MAX, [1_010, LIMITS.qty_max.0.into()]),
        of(Breach::NOTIONAL_MAX, [10_100_000, LIMITS.notional_max.0]),
    ];
    assert_eq!(found, expected);
    let verdict = gate.evaluate(NOW, &order);
    assert_eq!(verdict.reasons, Breach::QTY_MAX.union(Breach::NOTIONAL_MAX));
}

/// A rate that is replaced still counts the messages of before, a closed one too.
#[test]
fn a_rate_that_was_closed_counts_earlier_messages() {
    let one = Rate { per_second: 1, burst: 1 };
    let mut gate = gate_of(PAIRS, &LIMITS);
    gate.set_global_rate(one);
    assert_eq!(gate.judge(&buy(10_000, 20)).accept, 1);
    gate.set_global_rate(Rate { per_second: 0, burst: 1 });
    gate.set_global_rate(one);
    assert_eq!(names(&gate.judge(&buy(10_000, 20))), ["RATE_GLOBAL"]);
}

fn words(gate: &mut Gate) -> Vec<u64> {
    let mut words = Vec::new();
    assert!(gate.visit(&mut |_, word| words.push(*word)));
    words
}

/// A gate whose words are replaced by those of another one is that gate: it has the same words and the same answers.
#[test]
fn words_of_a_gate_make_the_same_gate() {
    let busy = || {
        let mut gate = restored();
        gate.set_instrument_limits(FIRST, &InstrumentLimits { rate: Rate { per_second: 7, burst: 9 }, ..INSTRUMENT })
            .expect("known");
        let orders: Vec<_> = (0..4_i64)
            .map(|number| OrderIntent { strategy: number as u16, ..buy(9_900 + 5 * number, 20 + 10 * number) })
            .collect();
        for order in &orders {
            assert_eq!(gate.evaluate(NOW, order).accept, 1);
        }
        let replace = OrderIntent { kind: IntentKind::REPLACE, qty: Qty(90), ..orders[1] };
        assert_eq!(gate.evaluate(NOW, &replace).accept, 1);
        assert_eq!(gate.evaluate(NOW, &OrderIntent { kind: IntentKind::CANCEL, ..orders[2] }).accept, 1);
        assert_eq!(gate.apply(NOW, &fill(&orders[3], 1, 10)), Outcome::Applied);
        for switch in [KillSwitch::Account(1), KillSwitch::Strategy(2), KillSwitch::Instrument(SECOND)] {
            gate.controls().set_mode(switch, Mode::Kill);
        }
        (gate, orders)
    };
    let (mut from, orders) = busy();
    let taken = words(&mut from);
    let mut to = Gate::new(PAIRS);
    let mut next = taken.iter();
    assert!(to.visit(&mut |_, word| *word = *next.next().expect("as many words")));
    assert_eq!(next.next(), None, "as many words");
    assert_eq!(words(&mut to), taken);
    for (number, order) in orders.iter().enumerate() {
        for kind in [IntentKind::LIMIT, IntentKind::REPLACE, IntentKind::CANCEL] {
            let intent = OrderIntent { seq: 0, ts_ns: NOW + 1, kind, ..*order };
            let verdicts = [&mut *from, &mut to].map(|gate| gate.evaluate(NOW + 1, 0, &intent, &mut Off));
            assert_eq!(verdicts[0], verdicts[1], "{number} {kind:?}");
        }
        assert_eq!(from.open_order(0, order.client_id), to.open_order(0, order.client_id));
    }
    assert_eq!(words(&mut from), words(&mut to));
    assert_eq!(RULES.id_window_ns, 500, "every order is within the window of ids");

    // Not every word is a value of its field, and a gate of another size has other tables.
    assert!(!Gate::new(PAIRS).visit(&mut |_, word| *word = u64::MAX));
    let mut next = taken.iter().chain(std::iter::repeat(&0));
    let mut other = Gate::new(Capacity { orders: 64, ..PAIRS });
    assert!(!other.visit(&mut |_, word| *word = next.next().copied().unwrap_or(0)));
}
