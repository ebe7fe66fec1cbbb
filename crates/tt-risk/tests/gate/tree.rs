//! Firm, account and strategy: each judges each order; and the money of a node.

use crate::numbered::{
    BTC, CAPACITY, LIMITS, MARK, NOW, Numbered, RULES, assert_accepted, assert_rejected, buy, fill, gate_of, names,
    report, sell, unused_id,
};
use tt_model::{InstrumentId, IntentFlags, IntentKind, Notes, Notional, OrderIntent, Price, Qty, Report, ReportKind};
use tt_risk::money::{Bracket, Contract, Conversion, CurrencyLimits, Payoff, Ratio, Spot};
use tt_risk::tree::{Node, NodeLimits, Route, RowLimits};
use tt_risk::{Capacity, InstrumentLimits, InstrumentRules, KillSwitch, Limits, Mark, Mode, Outcome, Rules};

const WIDE: Limits = Limits {
    qty_step: Qty(1),
    qty_min: Qty(1),
    notional_min: Notional(0),
    notional_max: Notional(1 << 100),
    qty_max: Qty(1 << 40),
    position_long_max: Qty(1 << 40),
    position_short_max: Qty(1 << 40),
    open_qty_max: Qty(1 << 40),
    open_orders_max: 1_000,
    ..LIMITS
};

const OFF: NodeLimits = NodeLimits::OFF;

/// Two accounts and two instruments, with wide limits. The second instrument has no mark.
fn wide() -> Numbered {
    let mut gate = gate_of(Capacity { accounts: 2, instruments: 2, ..CAPACITY }, &WIDE);
    gate.set_reference(NOW, ETH, &Mark { ref_px: Price(0), ..MARK }).expect("known");
    gate
}

const ETH: InstrumentId = InstrumentId(1);
const ACCOUNT: Node = Node::Account(0);
const STRATEGY: Node = Node::Strategy { account: 0, strategy: 0 };

fn with(node: Node, limits: NodeLimits) -> Numbered {
    let mut gate = wide();
    gate.set_node_limits(node, &limits).expect("known");
    gate
}

fn filled(gate: &mut Numbered, order: &OrderIntent) {
    assert_accepted(gate.evaluate(NOW, order));
    let fill = fill(order, unused_id().into(), order.qty.0);
    assert_eq!(gate.apply(NOW, &fill), Outcome::Applied);
}

#[test]
fn each_level_of_the_tree_has_its_own_limits_in_an_instrument() {
    let limits = RowLimits {
        qty_max: Qty(100),
        market_qty_max: Qty(50),
        notional_max: Notional(900_000),
        position_long_max: Qty(80),
        position_short_max: Qty(70),
        open_qty_max: Qty(75),
        open_orders_max: 1,
    };
    let route = Route { producer: 0, account: 0, strategy: 0, instrument: BTC };
    for level in [1, 3] {
        let fresh = || {
            let mut gate = wide();
            match level {
                1 => gate.set_firm_limits(BTC, &limits).unwrap(),
                _ => gate.set_route(&route, &limits).unwrap(),
            };
            gate
        };
        let judged = |order: OrderIntent| {
            let verdict = fresh().judge(&order);
            assert_eq!(verdict.first_level, if verdict.accept == 1 { 0 } else { level });
            names(&verdict)
        };
        let market = |qty| OrderIntent { kind: IntentKind::MARKET, limit_px: Price(0), ..buy(0, qty) };
        assert_eq!(judged(buy(10_000, 75)), [""; 0]);
        assert_eq!(judged(buy(10_000, 76)), ["OPEN_QTY"]);
        assert_eq!(judged(buy(10_000, 91)), ["NOTIONAL_MAX", "POS_LONG", "OPEN_QTY"]);
        assert_eq!(judged(buy(10_000, 101)), ["QTY_MAX", "NOTIONAL_MAX", "POS_LONG", "OPEN_QTY"]);
        assert_eq!(judged(sell(10_000, 71)), ["POS_SHORT"]);
        assert_eq!(judged(market(50)), [""; 0]);
        assert_eq!(judged(market(51)), ["QTY_MAX"]);
        let mut gate = fresh();
        assert_accepted(gate.judge(&buy(10_000, 1)));
        assert_rejected(gate.judge(&buy(10_000, 1)), &["OPEN_ORDERS"]);
        // The firm sums over accounts, a strategy does not.
        let other = gate.judge(&OrderIntent { account: 1, ..buy(10_000, 1) });
        assert_eq!(names(&other), if level == 1 { vec!["OPEN_ORDERS"] } else { vec![] });
        let other = gate.judge(&OrderIntent { strategy: 1, ..buy(10_000, 1) });
        assert_eq!(names(&other), if level == 1 { vec!["OPEN_ORDERS"] } else { vec![] });
        // In another instrument the limits are others.
        gate.set_reference(NOW, ETH, &MARK).unwrap();
        assert_accepted(gate.judge(&OrderIntent { instrument: ETH, ..buy(10_000, 1) }));
    }
}

#[test]
fn a_producer_without_a_route_is_not_permitted() {
    let mut gate = gate_of(Capacity { producers: 2, ..CAPACITY }, &WIDE);
    let order = OrderIntent { strategy: 1, ..buy(10_000, 20) };
    assert_rejected(gate.judge(&order), &["NOT_PERMITTED"]);
    let unknown = OrderIntent { strategy: 77, ..buy(10_000, 20) };
    assert_rejected(gate.judge(&unknown), &["NOT_PERMITTED"]);
    // Nor may it cancel the order of another producer; its own is fine.
    let own = buy(10_000, 20);
    assert_accepted(gate.evaluate(NOW, &own));
    let cancel = |order: &OrderIntent| OrderIntent { kind: IntentKind::CANCEL, ..*order };
    let foreign = OrderIntent { seq: 1, ts_ns: NOW, ..cancel(&own) };
    let verdict = tt_risk::Gate::evaluate(&mut gate, NOW, 1, &foreign, &mut tt_meter::Off);
    assert_rejected(verdict, &["NOT_PERMITTED"]);
    assert_accepted(gate.evaluate(NOW, &cancel(&own)));
}

/// All ended gives zero, and children sum to parents.
#[test]
fn sums_go_up_the_tree_and_return_to_zero() {
    let mut gate = wide();
    let orders = [
        buy(10_000, 10),
        OrderIntent { strategy: 1, ..buy(10_000, 20) },
        OrderIntent { account: 1, ..buy(10_000, 40) },
    ];
    for order in &orders {
        assert_accepted(gate.evaluate(NOW, order));
    }
    let open = |gate: &Numbered, node| gate.totals(node).map(|totals| totals.open_value);
    let strategy = |account, strategy| Node::Strategy { account, strategy };
    assert_eq!(open(&gate, strategy(0, 0)), Some(100_000));
    assert_eq!(open(&gate, strategy(0, 1)), Some(200_000));
    assert_eq!(open(&gate, ACCOUNT), Some(300_000));
    assert_eq!(open(&gate, Node::Account(1)), Some(400_000));
    assert_eq!(open(&gate, Node::Firm), Some(700_000));
    for order in &orders {
        assert_eq!(gate.apply(NOW, &report(ReportKind::CANCELLED, order)), Outcome::Applied);
    }
    for node in [Node::Firm, ACCOUNT, Node::Account(1), strategy(0, 0), strategy(0, 1), strategy(1, 0)] {
        assert_eq!(gate.totals(node), Some(tt_risk::tree::Totals::default()), "{node:?}");
    }
    assert_eq!(gate.totals(Node::Account(2)), None);
}

const NODES: [(Node, u8); 3] = [(Node::Firm, 1), (ACCOUNT, 2), (STRATEGY, 3)];

/// The reasons against `order` after a position of 100 lots at 10,000.
fn after_a_hundred(node: Node, limits: NodeLimits, order: &OrderIntent) -> Vec<&'static str> {
    let mut gate = wide();
    filled(&mut gate, &buy(10_000, 100));
    gate.set_node_limits(node, &limits).expect("known");
    names(&gate.judge(order))
}

/// A gate with a position in an instrument whose mark is gone.
fn without_a_mark(node: Node, limits: NodeLimits) -> Numbered {
    let mut gate = wide();
    gate.set_reference(NOW, ETH, &MARK).expect("known");
    filled(&mut gate, &OrderIntent { instrument: ETH, ..buy(10_000, 10) });
    filled(&mut gate, &buy(10_000, 10));
    gate.set_reference(NOW, ETH, &Mark { ref_px: Price(0), ..MARK }).expect("known");
    gate.set_node_limits(node, &limits).expect("known");
    gate
}

fn assert_closed_without_a_mark(limits: NodeLimits, reason: &str) {
    for (node, level) in NODES {
        let mut gate = without_a_mark(node, limits);
        let verdict = gate.judge(&buy(10_000, 1));
        assert_eq!((names(&verdict), verdict.first_level), (vec![reason], level), "{node:?}");
        assert_accepted(gate.judge(&sell(10_000, 10)));
    }
}

#[test]
fn reason_22_gross_exposure() {
    for (node, level) in NODES {
        let limits = NodeLimits { gross_max: Some(1_500_000), ..OFF };
        assert_eq!(after_a_hundred(node, limits, &buy(10_000, 50)), [""; 0], "equal");
        assert_eq!(after_a_hundred(node, limits, &buy(10_000, 51)), ["GROSS_EXPOSURE"]);
        // A short of 150 is as large, and beyond it larger.
        assert_eq!(after_a_hundred(node, limits, &sell(10_000, 250)), [""; 0]);
        assert_eq!(after_a_hundred(node, limits, &sell(10_000, 251)), ["GROSS_EXPOSURE"]);
        // What reduces passes any limit.
        assert_eq!(after_a_hundred(node, NodeLimits { gross_max: Some(0), ..OFF }, &sell(10_000, 100)), [""; 0]);
        let mut gate = with(node, NodeLimits { gross_max: Some(999_999), ..OFF });
        let verdict = gate.judge(&buy(10_000, 100));
        assert_eq!((names(&verdict), verdict.first_level), (vec!["GROSS_EXPOSURE"], level));
    }
    assert_closed_without_a_mark(NodeLimits { gross_max: Some(i64::MAX), ..OFF }, "GROSS_EXPOSURE");
}

#[test]
fn reason_23_net_exposure() {
    for (node, _) in NODES {
        let limits = NodeLimits { net_max: Some(1_500_000), ..OFF };
        assert_eq!(after_a_hundred(node, limits, &buy(10_000, 50)), [""; 0], "equal");
        assert_eq!(after_a_hundred(node, limits, &buy(10_000, 51)), ["NET_EXPOSURE"]);
        assert_eq!(after_a_hundred(node, limits, &sell(10_000, 250)), [""; 0]);
        assert_eq!(after_a_hundred(node, limits, &sell(10_000, 251)), ["NET_EXPOSURE"]);
        // A short in one instrument offsets a long in another, which gross exposure does not.
        let mut gate = wide();
        gate.set_reference(NOW, ETH, &MARK).unwrap();
        filled(&mut gate, &buy(10_000, 100));
        filled(&mut gate, &OrderIntent { instrument: ETH, ..sell(10_000, 90) });
        gate.set_node_limits(node, &limits).unwrap();
        assert_accepted(gate.judge(&buy(10_000, 140)));
        assert_rejected(gate.judge(&buy(10_000, 1)), &["NET_EXPOSURE"]);
    }
    assert_closed_without_a_mark(NodeLimits { net_max: Some(i64::MAX), ..OFF }, "NET_EXPOSURE");
}

#[test]
fn reason_26_open_notional() {
    for (node, level) in NODES {
        let mut gate = with(node, NodeLimits { open_value_max: Some(1_500_000), ..OFF });
        let first = buy(10_000, 50);
        assert_accepted(gate.evaluate(NOW, &first));
        // At their own prices, of both sides together.
        let verdict = gate.judge(&sell(10_005, 100));
        assert_eq!((names(&verdict), verdict.first_level), (vec!["OPEN_NOTIONAL"], level));
        assert_accepted(gate.judge(&buy(9_995, 100)));
        let held = gate.totals(node).map(|totals| totals.open_value);
        assert_eq!(held, Some(1_499_500));
        assert_rejected(gate.judge(&buy(9_995, 1)), &["OPEN_NOTIONAL"]);
        // An end gives its value back.
        gate.apply(NOW, &report(ReportKind::CANCELLED, &first));
        assert_accepted(gate.judge(&buy(10_000, 50)));
    }
    assert_closed_without_a_mark(NodeLimits { open_value_max: Some(i64::MAX), ..OFF }, "OPEN_NOTIONAL");
}

/// A replace reserves the larger value, or both where the venue works both.
/// A replace must not name an order of another instrument: what that order reserves there says nothing of this one.
#[test]
fn a_replace_of_another_instruments_order_is_valued_as_a_new_one() {
    let mut gate = gate_of(Capacity { instruments: 2, ..CAPACITY }, &LIMITS);
    let order = buy(10_000, 100);
    assert_accepted(gate.evaluate(NOW, &order));
    let firm = NodeLimits { open_value_max: Some(2_900_000), ..NodeLimits::OFF };
    gate.set_node_limits(Node::Firm, &firm).expect("known");
    let replace = OrderIntent { kind: IntentKind::REPLACE, qty: Qty(200), instrument: InstrumentId(1), ..order };
    let verdict = gate.evaluate(NOW, &replace);
    assert_rejected(verdict, &["NOT_PERMITTED", "OPEN_NOTIONAL"]);
}

#[test]
fn a_replace_reserves_the_larger_value() {
    for (replaces_atomically, value) in [(true, 1_005_000), (false, 2_005_000)] {
        let mut gate = with(ACCOUNT, NodeLimits { open_value_max: Some(value), ..OFF });
        let rules = InstrumentRules { replaces_atomically, ..InstrumentRules::default() };
        gate.set_instrument_rules(BTC, &rules).unwrap();
        let order = buy(10_000, 100);
        assert_accepted(gate.evaluate(NOW, &order));
        let replace = |px| OrderIntent { kind: IntentKind::REPLACE, limit_px: Price(px), ..order };
        assert_rejected(gate.evaluate(NOW, &replace(10_055)), &["OPEN_NOTIONAL"]);
        assert_accepted(gate.evaluate(NOW, &replace(10_050)));
        assert_eq!(gate.totals(ACCOUNT).map(|totals| totals.open_value), Some(value.into()));
        // Without a version it may answer an earlier replace.
        let replaced = Report { order_qty: Qty(60), ..report(ReportKind::REPLACED, &order) };
        assert_eq!(gate.apply(NOW, &replaced), Outcome::Applied);
        assert!(gate.totals(ACCOUNT).is_some_and(|totals| totals.open_value >= 1_005_000));
        assert_eq!(gate.apply(NOW, &Report { version: 1, ..replaced }), Outcome::Applied);
        assert_eq!(gate.totals(ACCOUNT).map(|totals| totals.open_value), Some(60 * 10_050));
    }
}

#[test]
fn reason_30_cancel_ratio() {
    let fresh = || {
        let mut gate = wide();
        gate.set_rules(&Rules { cancel_repeat_ns: 0, ..RULES });
        gate
    };
    let rules = InstrumentRules { cancels_per_fill_max_pct: Some(300), ..InstrumentRules::default() };
    for level in [2, 4] {
        let mut gate = fresh();
        match level {
            2 => gate.set_node_limits(ACCOUNT, &NodeLimits { cancels_per_fill_max_pct: Some(300), ..OFF }).unwrap(),
            _ => gate.set_instrument_rules(BTC, &rules).unwrap(),
        };
        let order = buy(10_000, 50);
        assert_accepted(gate.evaluate(NOW, &order));
        let cancel = OrderIntent { kind: IntentKind::CANCEL, ..order };
        for _ in 0..2 {
            assert_accepted(gate.evaluate(NOW, &cancel));
        }
        assert_accepted(gate.judge(&buy(10_000, 1)));
        let replace = OrderIntent { kind: IntentKind::REPLACE, qty: Qty(49), ..order };
        assert_accepted(gate.evaluate(NOW, &replace));
        // Exactly three for each, and then four.
        assert_accepted(gate.judge(&buy(10_000, 1)));
        assert_accepted(gate.evaluate(NOW, &cancel));
        let verdict = gate.judge(&buy(10_000, 1));
        assert_eq!((names(&verdict), verdict.first_level), (vec!["CANCEL_RATIO"], level));
        // It stops new orders only; a fill gives room for three more; and the window passes.
        assert_accepted(gate.evaluate(NOW, &cancel));
        assert_eq!(gate.apply(NOW, &fill(&order, 1, 1)), Outcome::Applied);
        assert_accepted(gate.judge(&buy(10_000, 1)));
        for _ in 0..2 {
            assert_accepted(gate.evaluate(NOW, &cancel));
        }
        assert_rejected(gate.judge(&buy(10_000, 1)), &["CANCEL_RATIO"]);
        assert_accepted(gate.evaluate(NOW + 800, &buy(10_000, 1)));
    }
}

/// Spot: a buy costs the quote currency, a sale the base currency; both with the worst fee.
#[test]
fn case_k20_reason_34_balance() {
    let contract = Contract {
        currency: 1,
        spot: Some(Spot { base: 2, per_lot: Ratio { num: 3, den: 2 } }),
        fee_bps: 10,
        ..Contract::default()
    };
    let fresh = || {
        let mut gate = with(ACCOUNT, NodeLimits { checks_balance: true, ..OFF });
        gate.set_contract(BTC, &contract).unwrap();
        gate
    };
    assert_rejected(fresh().judge(&buy(10_000, 1)), &["BALANCE"]);
    assert_rejected(fresh().judge(&sell(10_000, 1)), &["BALANCE"]);
    // 100 lots at 10,000, and 0.1 %.
    for (total, reasons) in [(1_001_000, &[][..]), (1_000_999, &["BALANCE"][..])] {
        let mut gate = fresh();
        gate.set_balance(0, 1, total).unwrap();
        let order = buy(10_000, 100);
        let verdict = gate.evaluate(NOW, &order);
        assert_eq!(names(&verdict), reasons);
        // What is held is not there for the next order, until the first one ends.
        let next = names(&gate.judge(&buy(10_000, 1)));
        assert_eq!(next, if reasons.is_empty() { &["BALANCE"][..] } else { &[] });
    }
    let mut gate = fresh();
    gate.set_balance(0, 2, 152).unwrap();
    // 101 lots are 151.5 of the base currency, rounded up, and a fee rounded up.
    assert_rejected(gate.judge(&sell(10_000, 101)), &["BALANCE"]);
    let sale = sell(10_000, 100);
    assert_accepted(gate.evaluate(NOW, &sale));
    // A fill moves both balances at once.
    assert_eq!(gate.apply(NOW, &fill(&sale, 1, 100)), Outcome::Applied);
    assert_rejected(gate.judge(&sell(10_000, 2)), &["BALANCE"]);
    assert_accepted(gate.judge(&buy(10_000, 99)));
    assert_rejected(gate.judge(&buy(10_000, 1)), &["BALANCE"]);
}

#[test]
fn reasons_35_and_36_margin_and_leverage() {
    let bracket = |value_max, bps| Bracket { value_max, bps };
    let brackets = [bracket(1_000_000, 1_000), bracket(2_000_000, 5_000), bracket(3_000_000, 10_000), bracket(0, 0)];
    let of = |limits: NodeLimits, equity: Option<i64>, order: &OrderIntent| {
        let mut gate = with(ACCOUNT, limits);
        gate.set_contract(BTC, &Contract { brackets, ..Contract::default() }).unwrap();
        if let Some(equity) = equity {
            gate.set_equity(0, equity, NOW).unwrap();
        }
        names(&gate.judge(order))
    };
    let margin = NodeLimits { checks_margin: true, ..OFF };
    // 10 % of the first million, and half of the next half million.
    assert_eq!(of(margin, Some(350_000), &buy(10_000, 150)), [""; 0]);
    assert_eq!(of(margin, Some(349_999), &buy(10_000, 150)), ["MARGIN"]);
    assert_eq!(of(margin, None, &buy(10_000, 1)), ["MARGIN"]);
    assert_eq!(of(margin, Some(i64::MAX), &buy(10_000, 301)), ["MARGIN"], "no bracket");
    let leverage = NodeLimits { leverage_max_pct: Some(500), ..OFF };
    assert_eq!(of(leverage, Some(300_000), &buy(10_000, 150)), [""; 0]);
    assert_eq!(of(leverage, Some(299_999), &buy(10_000, 150)), ["LEVERAGE"]);
    for equity in [Some(0), Some(-1), None] {
        assert_eq!(of(leverage, equity, &buy(10_000, 1)), ["LEVERAGE"], "{equity:?}");
    }
    for (limits, reason) in [(margin, "MARGIN"), (leverage, "LEVERAGE")] {
        let mut gate = with(ACCOUNT, limits);
        let slow = InstrumentLimits { mark_age_max_ns: 1 << 40, ..crate::numbered::INSTRUMENT };
        gate.set_instrument_limits(BTC, &slow).unwrap();
        filled(&mut gate, &OrderIntent { account: 1, ..buy(10_000, 1) });
        gate.set_equity(0, 1 << 40, NOW).unwrap();
        assert_accepted(gate.evaluate(NOW + 1_000, &buy(10_000, 1)));
        assert_rejected(gate.evaluate(NOW + 1_001, &buy(10_000, 1)), &[reason]);
        // From the future.
        gate.set_equity(0, 1 << 40, NOW + 1_001 + 1_000_001).unwrap();
        assert_rejected(gate.evaluate(NOW + 1_001, &buy(10_000, 1)), &[reason]);
    }
    assert_eq!(after_a_hundred(ACCOUNT, margin, &sell(10_000, 100)), [""; 0], "what reduces passes");
    assert_eq!(after_a_hundred(ACCOUNT, leverage, &sell(10_000, 100)), [""; 0]);
}

fn moved(gate: &mut Numbered, px: i64) {
    gate.set_reference(NOW, BTC, &Mark { ref_px: Price(px), bid_px: Price(px - 5), ask_px: Price(px + 5), ..MARK })
        .expect("known");
    // An event values 32 rows.
    for _ in 0..4 {
        gate.pass_time(NOW);
    }
}

#[test]
fn reasons_37_and_38_losses_put_the_node_into_reduce_mode() {
    let day = NodeLimits { daily_loss_max: Some(10_000), ..OFF };
    let drawdown = NodeLimits { drawdown_max: Some(10_000), ..OFF };
    let switches = [KillSwitch::Global, KillSwitch::Account(0), KillSwitch::Strategy(0)];
    for ((node, _), switch) in NODES.into_iter().zip(switches) {
        for (limits, reason) in [(day, "DAILY_LOSS"), (drawdown, "DRAWDOWN")] {
            let mut gate = with(node, limits);
            filled(&mut gate, &buy(10_000, 100));
            // 100 lots, and a fall of 100: exactly the limit.
            moved(&mut gate, 9_900);
            assert_accepted(gate.judge(&buy(9_900, 1)));
            moved(&mut gate, 9_895);
            let verdict = gate.judge(&buy(9_895, 1));
            assert_eq!(names(&verdict), ["REDUCE_ONLY_STATE", reason], "{node:?}");
            assert_eq!(gate.controls().mode(switch), Mode::Reduce);
            assert_eq!((gate.poll_mode_change(), gate.poll_mode_change()), (Some((switch, Mode::Reduce)), None));
            assert_accepted(gate.judge(&sell(10_350, 50)));
            // The mode outlasts the loss, the reason does not.
            moved(&mut gate, 10_100);
            assert_rejected(gate.judge(&buy(10_100, 1)), &["REDUCE_ONLY_STATE"]);
            gate.controls().revive(switch);
            assert_accepted(gate.judge(&buy(10_100, 1)));
            moved(&mut gate, 10_000);
            let verdict = gate.judge(&buy(10_000, 1));
            if reason == "DRAWDOWN" {
                assert_eq!((names(&verdict), verdict.first_level), (vec![""; 0], 0), "10,000 below the peak");
                moved(&mut gate, 9_995);
                assert_rejected(gate.judge(&buy(9_995, 1)), &["REDUCE_ONLY_STATE", reason]);
            } else {
                assert_accepted(verdict);
                // The next day counts from there.
                gate.start_day(NOW);
                moved(&mut gate, 9_900);
                assert_accepted(gate.judge(&buy(9_900, 1)));
                gate.controls().revive(switch);
                moved(&mut gate, 9_895);
                let verdict = gate.judge(&buy(9_895, 1));
                assert_eq!(names(&verdict), ["REDUCE_ONLY_STATE", reason]);
            }
        }
    }
    for (limits, reason) in [(day, "DAILY_LOSS"), (drawdown, "DRAWDOWN")] {
        assert_closed_without_a_mark(limits, reason);
    }
    // Fees count.
    let mut gate = with(ACCOUNT, NodeLimits { daily_loss_max: Some(9), ..OFF });
    let order = buy(10_000, 1);
    assert_accepted(gate.evaluate(NOW, &order));
    gate.apply(NOW, &Report { fee: 10, ..fill(&order, 1, 1) });
    assert_rejected(gate.judge(&buy(10_000, 1)), &["REDUCE_ONLY_STATE", "DAILY_LOSS"]);
}

#[test]
fn reason_39_repeated_executions_stop_a_strategy_until_it_is_enabled() {
    let mut gate = with(STRATEGY, NodeLimits { executions_stop: Some(3), ..OFF });
    let order = buy(10_000, 100);
    let other = OrderIntent { strategy: 1, ..buy(10_000, 1) };
    assert_accepted(gate.evaluate(NOW, &order));
    for execution in 0..2 {
        assert_eq!(gate.apply(NOW, &fill(&order, execution, 1)), Outcome::Applied);
        assert_accepted(gate.judge(&buy(10_000, 1)));
    }
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 1)), Outcome::Duplicate);
    assert_accepted(gate.judge(&buy(10_000, 1)));
    assert_eq!(gate.apply(NOW, &fill(&order, 2, 1)), Outcome::Applied);
    let verdict = gate.judge(&buy(10_000, 1));
    assert_eq!((names(&verdict), verdict.first_level), (vec!["REPEAT_EXEC"], 3));
    // Even what reduces is stopped; another strategy is not, and time changes nothing.
    assert_rejected(gate.judge(&sell(10_005, 1)), &["REPEAT_EXEC"]);
    assert_accepted(gate.judge(&other));
    assert_rejected(gate.evaluate(NOW + 900, &buy(10_000, 1)), &["REPEAT_EXEC"]);
    gate.enable(0, 0).unwrap();
    assert_accepted(gate.evaluate(NOW + 900, &buy(10_000, 1)));
    // Executions that are older than the window do not count.
    let mut gate = with(STRATEGY, NodeLimits { executions_stop: Some(3), ..OFF });
    assert_accepted(gate.evaluate(NOW, &order));
    for (execution, at) in [(0, 0), (1, 0), (2, 800)] {
        assert_eq!(gate.apply(NOW + at, &fill(&order, execution, 1)), Outcome::Applied);
    }
    assert_accepted(gate.evaluate(NOW + 800, &buy(10_000, 1)));
}

/// 70 and 90 % of a limit are notes.
#[test]
fn warnings_at_70_and_90_percent() {
    let notes = |node, limits: NodeLimits, qty| with(node, limits).judge(&buy(10_000, qty)).notes;
    let both = Notes(Notes::NEAR_LIMIT.0 | Notes::AT_LIMIT.0);
    for (node, _) in NODES {
        for limits in [
            NodeLimits { gross_max: Some(1_000_000), ..OFF },
            NodeLimits { net_max: Some(1_000_000), ..OFF },
            NodeLimits { open_value_max: Some(1_000_000), ..OFF },
        ] {
            let found = [69, 70, 89, 90, 100].map(|qty| notes(node, limits, qty));
            assert_eq!(found, [Notes(0), Notes::NEAR_LIMIT, Notes::NEAR_LIMIT, both, both], "{limits:?}");
        }
    }
    // Positions and open quantity of the account.
    let mut gate = gate_of(CAPACITY, &Limits { position_long_max: Qty(100), ..WIDE });
    assert_eq!(gate.judge(&buy(10_000, 69)).notes, Notes(0));
    assert_eq!(gate.judge(&buy(10_000, 1)).notes, Notes::NEAR_LIMIT);
    assert_eq!(gate.judge(&buy(10_000, 20)).notes, both);
    let mut gate = gate_of(CAPACITY, &Limits { open_orders_max: 2, ..WIDE });
    assert_eq!([gate.judge(&buy(10_000, 1)).notes, gate.judge(&buy(10_000, 1)).notes], [Notes(0), both]);
}

/// An inverse contract is worth fewer coins at a higher price; a quanto contract pays in another currency.
#[test]
fn inverse_and_quanto_contracts() {
    let inverse = Contract {
        payoff: Payoff::Inverse,
        value: Ratio { num: 1_000_000, den: 1 },
        face: Ratio { num: 100, den: 1 },
        currency: 1,
        ..Contract::default()
    };
    let rate = |num| Conversion { rate: Ratio { num, den: 1 }, ts_ns: NOW };
    let of = |contract: &Contract, limits: Limits| {
        let mut gate = gate_of(CAPACITY, &limits);
        gate.set_node_limits(ACCOUNT, &NodeLimits { gross_max: Some(1 << 60), ..OFF }).unwrap();
        gate.set_contract(BTC, contract).unwrap();
        gate.set_currency_limits(1, &CurrencyLimits { haircut_bps: 1_000, age_max_ns: 1_000 }).unwrap();
        gate
    };
    let mut gate = of(&inverse, WIDE);
    // Without a rate nothing that adds exposure passes.
    assert_rejected(gate.judge(&buy(10_000, 3)), &["GROSS_EXPOSURE"]);
    gate.set_conversion(1, &rate(50)).unwrap();
    let order = buy(10_000, 3);
    assert_accepted(gate.evaluate(NOW, &order));
    // 3 lots are 300 coins, worth 50 each, and a haircut of 10 %.
    assert_eq!(gate.totals(ACCOUNT).map(|of| (of.gross, of.open_value)), Some((16_500, 16_500)));
    assert_eq!(gate.apply(NOW, &fill(&order, 1, 3)), Outcome::Applied);
    moved(&mut gate, 9_000);
    // 333.3 coins: the loss is rounded up, and grows by the haircut.
    assert_rejected(gate.judge(&buy(9_900, 3)), &["COLLAR_REF"]);
    assert_eq!(gate.totals(ACCOUNT).map(|of| (of.gross, of.profit)), Some((334 * 55, -34 * 55)));
    // The notional is the face value: 100 each.
    let judged = |qty| {
        names(
            &of(&inverse, Limits { notional_min: Notional(200), notional_max: Notional(300), ..WIDE })
                .judge(&buy(10_000, qty)),
        )
    };
    assert_eq!(judged(1), ["NOTIONAL_MIN", "GROSS_EXPOSURE"]);
    assert_eq!(judged(2), ["GROSS_EXPOSURE"]);
    assert_eq!(judged(4), ["NOTIONAL_MAX", "GROSS_EXPOSURE"]);
    // Quanto: 2 coins for each step and lot, whatever the price of the coin was.
    let mut gate = of(&Contract { value: Ratio { num: 2, den: 1 }, currency: 1, ..Contract::default() }, WIDE);
    gate.set_conversion(1, &rate(1)).unwrap();
    assert_accepted(gate.judge(&buy(10_000, 3)));
    assert_eq!(gate.totals(ACCOUNT).map(|of| of.gross), Some(66_000));
    // An old rate is none.
    assert_rejected(gate.evaluate(NOW + 1_001, &buy(10_000, 1)), &["MD_STALE", "GROSS_EXPOSURE"]);
}

/// A value that is not brought up to date in time is an old mark.
#[test]
fn values_that_wait_for_too_long_are_stale() {
    let capacity = Capacity { accounts: 40, routes: 2_000, ..CAPACITY };
    let mut gate = gate_of(capacity, &WIDE);
    let slow = InstrumentLimits { mark_age_max_ns: 1 << 40, ..crate::numbered::INSTRUMENT };
    gate.set_instrument_limits(BTC, &slow).unwrap();
    // 441 rows follow the mark; an event values 32.
    for _ in 0..200 {
        gate.pass_time(NOW);
    }
    gate.set_rules(&Rules { revalue_max_ns: 100, ..RULES });
    gate.set_reference(NOW, BTC, &Mark { ref_px: Price(10_010), ..MARK }).unwrap();
    assert_accepted(gate.evaluate(NOW + 100, &buy(10_010, 1)));
    assert_rejected(gate.evaluate(NOW + 101, &buy(10_010, 1)), &["MD_STALE"]);
    for _ in 0..20 {
        gate.pass_time(NOW + 101);
    }
    assert_accepted(gate.evaluate(NOW + 101, &buy(10_010, 1)));
    let flag = OrderIntent { flags: IntentFlags::REDUCE_ONLY, ..sell(10_010, 1) };
    assert_rejected(gate.evaluate(NOW + 101, &flag), &["REDUCE_ONLY_FLIP", "SELF_MATCH"]);
}

/// The values wait from the mark on, not from the event before it.
#[test]
fn a_mark_after_an_idle_time_makes_no_value_stale() {
    let capacity = Capacity { accounts: 40, routes: 2_000, ..CAPACITY };
    let idle = 60_000_000_000;
    let later = NOW + idle;
    let fresh = |gate: &mut Numbered| {
        for _ in 0..200 {
            gate.pass_time(NOW);
        }
        let mark = Mark { ref_px: Price(10_010), ts_ns: later, ..MARK };
        gate.set_reference(later, BTC, &mark).unwrap();
    };
    let order = OrderIntent { ts_ns: later, ..buy(10_010, 1) };
    let mut gate = gate_of(capacity, &WIDE);
    gate.set_rules(&Rules { revalue_max_ns: 100, ..RULES });
    fresh(&mut gate);
    assert_accepted(gate.evaluate(later + 100, &order));
    assert_rejected(gate.evaluate(later + 101, &OrderIntent { client_id: unused_id(), ..order }), &["MD_STALE"]);
}
