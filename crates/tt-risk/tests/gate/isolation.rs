//! Two accounts in two instruments of one gate, with different values in every field: each limit, rate, switch and event
//! applies to its own account and instrument only.

use crate::numbered::{MARK, Numbered, RULES, fill, permit, report};
use tt_model::{Breach, InstrumentId, IntentKind, Notional, OrderIntent, OrderSide, Price, Qty, ReportKind};
use tt_risk::{
    Capacity, Exposure, Gate, InstrumentLimits, InstrumentState, KillSwitch, Limits, Mark, OpenOrder, Rate, Rules,
};

const NOW: u64 = 1_000_000_000;
const PAIRS: [(u16, InstrumentId); 4] =
    [(0, InstrumentId(0)), (0, InstrumentId(1)), (1, InstrumentId(0)), (1, InstrumentId(1))];

/// No two fields and no two pairs have the same value.
const LIMITS: [Limits; 4] = [
    limits([2, 13, 29, 1_009, 5_003, 7_000_003, 2_003, 3_001, 4_001, 3]),
    limits([3, 17, 31, 1_013, 5_009, 7_000_033, 2_011, 3_011, 4_003, 5]),
    limits([5, 19, 37, 1_019, 5_011, 7_000_037, 2_017, 3_019, 4_007, 7]),
    limits([7, 23, 41, 1_021, 5_021, 7_000_061, 2_027, 3_023, 4_013, 9]),
];

const INSTRUMENTS: [(InstrumentLimits, Mark); 2] = [
    (
        InstrumentLimits { collar_bps: 211, mark_age_max_ns: 1_103, rate: Rate { per_second: 1, burst: 16 } },
        Mark { ref_px: Price(100_000), bid_px: Price(99_999), ask_px: Price(100_001), ts_ns: NOW, ..MARK },
    ),
    (
        InstrumentLimits { collar_bps: 307, mark_age_max_ns: 1_201, rate: Rate { per_second: 1, burst: 19 } },
        Mark { ref_px: Price(200_000), bid_px: Price(1), ask_px: Price(200_002), ts_ns: NOW - 50, ..MARK },
    ),
];

const ACCOUNT_RATES: [Rate; 2] = [Rate { per_second: 1, burst: 11 }, Rate { per_second: 1, burst: 13 }];

const fn limits(values: [i64; 10]) -> Limits {
    let [px_step, qty_step, qty_min, qty_max, notional_min, notional_max, long, short, open_qty, open_orders] = values;
    Limits {
        px_step: Price(px_step),
        qty_step: Qty(qty_step),
        qty_min: Qty(qty_min),
        qty_max: Qty(qty_max),
        notional_min: Notional(notional_min as i128),
        notional_max: Notional(notional_max as i128),
        position_long_max: Qty(long),
        position_short_max: Qty(short),
        open_qty_max: Qty(open_qty),
        open_orders_max: open_orders as u32,
        enabled: Limits::CHECKED,
    }
}

fn gate() -> Numbered {
    let capacity =
        Capacity { accounts: 2, instruments: 2, producers: 1, orders: 128, executions: 64, routes: 640, currencies: 0 };
    let mut gate = Gate::new(capacity);
    gate.set_rules(&Rules { intent_age_max_ns: 1 << 40, ..RULES });
    gate.set_global_rate(Rate::UNLIMITED);
    permit(&mut gate, capacity);
    for (instrument, (limits, mark)) in (0..).map(InstrumentId).zip(&INSTRUMENTS) {
        gate.set_instrument_limits(instrument, limits).expect("known");
        gate.set_reference(0, instrument, mark).expect("known");
        gate.set_state(instrument, InstrumentState::Open).expect("known");
    }
    for (account, rate) in (0..).zip(ACCOUNT_RATES) {
        gate.set_account_rate(account, rate).expect("known");
    }
    for ((account, instrument), limits) in PAIRS.into_iter().zip(&LIMITS) {
        gate.set_limits(account, instrument, limits).expect("sound limits");
        gate.restore(account, instrument, Qty(0), 0).expect("known");
    }
    Numbered::new(gate)
}

fn order((account, instrument): (u16, InstrumentId), side: OrderSide, px: i64, qty: i64) -> OrderIntent {
    OrderIntent { account, instrument, side, limit_px: Price(px), qty: Qty(qty), ..OrderIntent::default() }
}

/// One limit: its reason, the exposure, and the price and quantity at the limit and one unit beyond.
struct Probe {
    reason: Breach,
    side: OrderSide,
    exposures: [Exposure; 2],
    orders: [(i64, i64); 2],
}

fn probes(limits: &Limits) -> Vec<Probe> {
    let flat = Exposure::default();
    let probe = |reason, orders| Probe { reason, side: OrderSide::Buy, exposures: [flat; 2], orders };
    let long = Exposure { position: Qty(limits.position_long_max.0 - 10), ..flat };
    let short = Exposure { position: Qty(10 - limits.position_short_max.0), ..flat };
    let open = Exposure { open_buy_qty: Qty(limits.open_qty_max.0 - 10), open_orders: 1, ..flat };
    let count = |open_orders| Exposure { open_orders, ..flat };
    let (px_step, qty_step) = (limits.px_step.0, limits.qty_step.0);
    let (notional_min, notional_max) = (limits.notional_min.0 as i64, limits.notional_max.0 as i64);
    vec![
        probe(Breach::PRICE_TICK, [(1_000 * px_step, 1), (1_000 * px_step + 1, 1)]),
        probe(Breach::QTY_STEP, [(1, 10 * qty_step), (1, 10 * qty_step + 1)]),
        probe(Breach::QTY_MIN, [(1, limits.qty_min.0), (1, limits.qty_min.0 - 1)]),
        probe(Breach::QTY_MAX, [(1, limits.qty_max.0), (1, limits.qty_max.0 + 1)]),
        probe(Breach::NOTIONAL_MIN, [(notional_min, 1), (notional_min - 1, 1)]),
        probe(Breach::NOTIONAL_MAX, [(notional_max, 1), (notional_max + 1, 1)]),
        Probe { exposures: [long; 2], ..probe(Breach::POS_LONG, [(1, 10), (1, 11)]) },
        Probe { exposures: [short; 2], side: OrderSide::Sell, ..probe(Breach::POS_SHORT, [(1, 10), (1, 11)]) },
        Probe { exposures: [open; 2], ..probe(Breach::OPEN_QTY, [(1, 10), (1, 11)]) },
        Probe {
            exposures: [count(limits.open_orders_max - 1), count(limits.open_orders_max)],
            ..probe(Breach::OPEN_ORDERS, [(1, 1); 2])
        },
    ]
}

/// Restores `exposure` as a position and orders of one lot and of the rest.
fn restore(gate: &mut Numbered, pair: (u16, InstrumentId), exposure: &Exposure) {
    gate.restore(pair.0, pair.1, exposure.position, exposure.open_orders).expect("known");
    for n in 0..exposure.open_orders {
        let qty = if n == 0 { exposure.open_buy_qty.0.max(1) } else { 1 };
        let order = OpenOrder {
            strategy: 0,
            client_id: 1_000 + u64::from(n),
            kind: IntentKind::LIMIT,
            side: OrderSide::Buy,
            limit_px: Price(1),
            qty: Qty(qty),
            executed: Qty(0),
        };
        gate.restore_order(pair.0, pair.1, &order).expect("known");
    }
}

#[test]
fn each_limit_of_each_account_and_instrument_is_its_own() {
    for (pair, limits) in PAIRS.into_iter().zip(&LIMITS) {
        for Probe { reason, side, exposures, orders } in probes(limits) {
            for (beyond, (exposure, (px, qty))) in exposures.iter().zip(orders).enumerate() {
                let mut gate = gate();
                restore(&mut gate, pair, exposure);
                let verdict = gate.evaluate(NOW, &order(pair, side, px, qty));
                let names: Vec<_> = reason.names().collect();
                assert_eq!(verdict.reasons.contains(reason), beyond == 1, "{pair:?} {names:?}: {px} x {qty}");
            }
        }
    }
}

#[test]
fn each_instrument_has_its_own_collar_and_mark() {
    for (pair, reason) in PAIRS.into_iter().flat_map(|pair| [(pair, Breach::COLLAR_REF), (pair, Breach::MD_STALE)]) {
        let (limits, mark) = INSTRUMENTS[pair.1.0 as usize];
        let width = mark.ref_px.0 * i64::from(limits.collar_bps) / 10_000;
        let expires = mark.ts_ns + limits.mark_age_max_ns;
        for beyond in [0, 1] {
            let (px, now) = match reason {
                Breach::COLLAR_REF => (mark.ref_px.0 + width + beyond, NOW),
                _ => (mark.ref_px.0, expires + beyond.unsigned_abs()),
            };
            let verdict = gate().evaluate(now, &order(pair, OrderSide::Buy, px, 50));
            assert_eq!(verdict.reasons.contains(reason), beyond == 1, "{pair:?} {px} at {now}");
        }
    }
}

/// Limits that every order of [`accepted`] meets.
fn widen(gate: &mut Numbered) {
    for (account, instrument) in PAIRS {
        let wide = limits([1, 1, 1, 1 << 20, 0, 1 << 50, 1 << 40, 1 << 40, 1 << 40, 1_000]);
        gate.set_limits(account, instrument, &wide).expect("sound limits");
    }
}

fn accepted(gate: &mut Numbered, pair: (u16, InstrumentId), client_id: u64) -> bool {
    let px = INSTRUMENTS[pair.1.0 as usize].1.ref_px.0;
    let intent = OrderIntent { client_id, ..order(pair, OrderSide::Buy, px, 1) };
    gate.evaluate(NOW, &intent).accept == 1
}

#[test]
fn each_account_and_each_instrument_has_its_own_rate() {
    let grants = |pair, gate: &mut Numbered| (0..100).filter(|id| accepted(gate, pair, 1_000 + id)).count() as u32;
    for pair in PAIRS {
        let mut gate = gate();
        widen(&mut gate);
        assert_eq!(grants(pair, &mut gate), ACCOUNT_RATES[usize::from(pair.0)].burst, "{pair:?}");
        // The other account still has its rate, less what this one has used of the instrument's.
        let other = (1 - pair.0, pair.1);
        let left = INSTRUMENTS[pair.1.0 as usize].0.rate.burst - ACCOUNT_RATES[usize::from(pair.0)].burst;
        assert_eq!(grants(other, &mut gate), left.min(ACCOUNT_RATES[usize::from(other.0)].burst), "{other:?}");
    }
}

#[test]
fn each_kill_switch_stops_its_own_orders() {
    let mut gate = gate();
    widen(&mut gate);
    let controls = gate.controls();
    let mut id = 0;
    for (index, pair) in PAIRS.into_iter().enumerate() {
        let strategy = index as u16;
        for switch in [KillSwitch::Account(pair.0), KillSwitch::Instrument(pair.1), KillSwitch::Strategy(strategy)] {
            assert!(controls.kill(switch));
            for (other_index, other) in PAIRS.into_iter().enumerate() {
                let stops = match switch {
                    KillSwitch::Account(account) => account == other.0,
                    KillSwitch::Instrument(instrument) => instrument == other.1,
                    KillSwitch::Strategy(_) | KillSwitch::Global => other_index == index,
                };
                id += 1;
                let px = INSTRUMENTS[other.1.0 as usize].1.ref_px.0;
                let strategy = other_index as u16;
                let intent = OrderIntent { client_id: id, strategy, ..order(other, OrderSide::Buy, px, 0) };
                let reasons = gate.evaluate(NOW, &intent).reasons;
                let kills = Breach::KILL_ACCOUNT.union(Breach::KILL_INSTRUMENT).union(Breach::KILL_STRATEGY);
                assert_eq!(reasons.0 & kills.0 != 0, stops, "{switch:?} {other:?}: {reasons:?}");
            }
            assert!(controls.revive(switch));
        }
    }
}

#[test]
fn fills_cancels_and_client_ids_change_their_own_account_and_instrument() {
    let mut gate = gate();
    widen(&mut gate);
    let mut expected = [(); 4].map(|()| Exposure::default());
    for (index, pair) in PAIRS.into_iter().enumerate() {
        let (account, instrument) = pair;
        // The same client ids in each account; an id that the account has used is a duplicate in every instrument.
        let ids = if instrument.0 == 0 { [1, 2, 3] } else { [4, 5, 6] };
        for client_id in ids {
            assert!(accepted(&mut gate, pair, client_id), "{pair:?}");
        }
        let other_instrument = (account, InstrumentId(1 - instrument.0));
        assert!(!accepted(&mut gate, other_instrument, ids[0]), "{pair:?}: the id is used");
        let order = OrderIntent { client_id: ids[0], ..order(pair, OrderSide::Buy, 1, 1) };
        gate.apply(NOW, &fill(&order, 1, 1));
        gate.apply(NOW, &report(ReportKind::CANCELLED, &OrderIntent { client_id: ids[1], ..order }));
        expected[index] = Exposure { position: Qty(1), open_buy_qty: Qty(1), open_sell_qty: Qty(0), open_orders: 1 };
        assert_eq!(PAIRS.map(|(account, instrument)| gate.exposure(account, instrument)), expected.map(Some));
    }
}

/// Memory that is asked for ahead is a hint: it changes no word of the gate, whatever the intents are.
#[test]
fn a_prefetch_changes_nothing() {
    let words = |gate: &mut Gate| {
        let mut words = Vec::new();
        assert!(gate.visit(&mut |_, word| words.push(*word)));
        words
    };
    let mut gate = gate();
    let mut intents = vec![OrderIntent::default()];
    for (client_id, (account, instrument)) in (1..).zip(PAIRS) {
        intents.push(OrderIntent { client_id, account, instrument, ..OrderIntent::default() });
    }
    for kind in [0, 1, 2, 3, 4, 5, u8::MAX].map(IntentKind) {
        for (account, instrument) in
            [(0, 0), (1, 1), (2, 0), (u16::MAX, 1), (0, 2), (0, u32::MAX), (u16::MAX, u32::MAX)]
        {
            let instrument = InstrumentId(instrument);
            intents.push(OrderIntent { kind, account, instrument, client_id: 1, ..OrderIntent::default() });
        }
    }
    let before = words(&mut gate);
    gate.prefetch(&[]);
    gate.prefetch(&intents);
    // More intents than the gate has records.
    gate.prefetch(&vec![intents[0]; 1_000]);
    assert_eq!(words(&mut gate), before);
}
