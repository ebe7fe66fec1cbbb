//! Values of positions and orders do not depend on how a contract writes its ratio.

use crate::numbered::{BTC, CAPACITY, LIMITS, MARK, NOW, Numbered, buy, fill, gate_of, report, sell, unused_id};
use tt_model::{Notional, Price, Qty, Report, ReportKind, SplitMix64};
use tt_risk::money::{Bracket, Contract, Ratio};
use tt_risk::tree::{Node, NodeLimits};
use tt_risk::{Limits, Mark};

const EQUITY: i64 = 1 << 60;

/// A gate that checks every sum.
fn checked(value: Ratio, lot_value_min: i64) -> Numbered {
    let limits = Limits {
        px_step: Price(1),
        qty_step: Qty(1),
        qty_min: Qty(1),
        qty_max: Qty(1 << 40),
        notional_min: Notional(0),
        notional_max: Notional(1 << 100),
        position_long_max: Qty(1 << 40),
        position_short_max: Qty(1 << 40),
        open_qty_max: Qty(1 << 40),
        open_orders_max: 10_000,
        ..LIMITS
    };
    let mut gate = gate_of(CAPACITY, &limits);
    let bracket = |value_max, bps| Bracket { value_max, bps };
    let last = bracket(i64::MAX, 9_999);
    let brackets = [bracket(70_001, 101), bracket(9_000_007, 253), bracket(1 << 55, 1_007), last];
    let contract = Contract { value, lot_value_min, brackets, ..Contract::default() };
    gate.set_contract(BTC, &contract).expect("unused");
    gate.set_equity(0, EQUITY, NOW).expect("known");
    let all = NodeLimits {
        gross_max: Some(EQUITY),
        net_max: Some(EQUITY),
        open_value_max: Some(EQUITY),
        daily_loss_max: Some(EQUITY / 1_000),
        drawdown_max: Some(EQUITY / 1_000),
        ..NodeLimits::OFF
    };
    let account = NodeLimits { checks_margin: true, leverage_max_pct: Some(90), ..all };
    for (node, limits) in [(Node::Firm, all), (Node::Account(0), account), (STRATEGY, all)] {
        gate.set_node_limits(node, &limits).expect("known");
    }
    gate
}

const STRATEGY: Node = Node::Strategy { account: 0, strategy: 0 };

/// Plays orders, fills, cancels and marks to both gates, which answer alike; returns the numbers of accepted and rejected
/// orders, and of comparisons in which a sum was not known.
fn play(gates: &mut [Numbered; 2], lots_bits: usize) -> [u32; 3] {
    let mut random = SplitMix64::new(lots_bits as u64);
    let mut seen = [0; 3];
    let mut open = Vec::new();
    for _ in 0..1_500 {
        let (px, bits) = (9_900 + random.index(200) as i64, random.index(lots_bits) as u32);
        let qty = 1 + random.index(1 << bits) as i64;
        match random.index(8) {
            0 => {
                // Without a mark no position has a value.
                let px = if random.index(8) == 0 { 0 } else { px };
                let mark = Mark { ref_px: Price(px), ..MARK };
                gates.iter_mut().for_each(|gate| gate.set_reference(NOW, BTC, &mark).expect("known"));
            }
            1..=3 if !open.is_empty() => {
                let order = open.swap_remove(random.index(open.len()));
                let of = if random.index(3) == 0 {
                    report(ReportKind::CANCELLED, &order)
                } else {
                    Report { fee: 3, ..fill(&order, unused_id().into(), order.qty.0) }
                };
                let [plain, other] = gates.each_mut().map(|gate| gate.apply(NOW, &of));
                assert_eq!(plain, other);
            }
            _ => {
                let order = if random.index(2) == 0 { buy(px, qty) } else { sell(px, qty) };
                let [plain, other] = gates.each_mut().map(|gate| gate.evaluate(NOW, &order));
                assert_eq!(plain, other, "{order:?}");
                seen[usize::from(plain.accept == 0)] += 1;
                if plain.accept == 1 {
                    open.push(order);
                }
            }
        }
        for node in [Node::Firm, Node::Account(0), STRATEGY] {
            let [plain, other] = gates.each_ref().map(|gate| gate.totals(node));
            assert_eq!(plain, other, "{node:?}");
            seen[2] += u32::from(plain.is_none());
        }
    }
    seen
}

/// A ratio with the denominator 1 is calculated in 64 bits while its values fit, any other one in 128 bits.
#[test]
fn a_ratio_has_the_same_value_however_it_is_written() {
    for (num, lot_value_min) in [(1, 0), (1_000, 0), (7_000_003, 80_000_000_000), (1 << 40, 0)] {
        let ratios = [Ratio { num, den: 1 }, Ratio { num: 2 * num, den: 2 }];
        for lots_bits in [4, 20, 40] {
            let mut gates = ratios.map(|ratio| checked(ratio, lot_value_min));
            let [accepted, rejected, unknown] = play(&mut gates, lots_bits);
            assert!(accepted > 5 && unknown > 0, "{num} {lots_bits}: {accepted}, {rejected}, {unknown}");
        }
    }
}
