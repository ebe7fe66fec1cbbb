//! The evaluator against a reference that shares no code with it, on random intents with many extreme values. The
//! gate with its orders is compared with another one, in `histories.rs`.

mod reference;

use reference::{Reference, Schedule};
use tt_meter::Off;
use tt_model::{
    Breach, InstrumentId, IntentFlags, IntentKind, Notional, OrderIntent, OrderSide, Price, Qty, SplitMix64,
    TimeInForce,
};
use tt_risk::{Evaluator, Exposure, InstrumentLimits, KillSwitch, Limits, Mark, Rate};

const ACCOUNT: u16 = 1;
const STRATEGY: u16 = 3;
const INSTRUMENT: InstrumentId = InstrumentId(2);
const WORLDS: u64 = 4_000;
const STEPS: u64 = 750;

/// A seeded sequence.
struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A number of a random size, now and then an extreme one.
    fn wild(&mut self) -> i64 {
        let edges =
            [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, 1 << 31, 1 << 32, 1 << 61, (1 << 61) + 1, i64::MAX - 1, i64::MAX];
        if self.one_in(2) { self.pick(&edges) } else { (self.next() >> self.below(64)).cast_signed() }
    }

    fn up_to(&mut self, bits: u64) -> i64 {
        (self.next() >> (64 - 1 - self.below(bits))).cast_signed()
    }

    fn rate(&mut self) -> Rate {
        let per_second = if self.one_in(30) { 0 } else { self.below(1_000_000) as u32 };
        let burst_bits = self.below(20);
        let burst = if self.one_in(30) { 0 } else { self.below(1 << burst_bits) as u32 };
        Rate { per_second, burst }
    }

    fn limits(&mut self) -> Limits {
        let lots = |random: &mut Self| Qty(random.up_to(61));
        let subset = self.next() | self.next();
        Limits {
            px_step: Price(self.pick(&[1, 1, 2, 5, 10, 24, 25, 1 << 20, i64::MAX])),
            qty_step: Qty(self.pick(&[1, 1, 3, 8, 100, 1 << 40])),
            qty_min: Qty(self.up_to(8).max(1)),
            qty_max: lots(self),
            notional_min: Notional(i128::from(self.up_to(12))),
            notional_max: Notional(i128::from(self.up_to(62)) * i128::from(self.up_to(62).max(1))),
            position_long_max: lots(self),
            position_short_max: lots(self),
            open_qty_max: lots(self),
            open_orders_max: self.below(400) as u32,
            enabled: if self.one_in(3) { Breach(subset) } else { Limits::CHECKED },
        }
    }

    fn mark(&mut self, now: u64) -> Mark {
        let ref_px = if self.one_in(9) { self.wild() } else { self.up_to(40).max(1) };
        let ts_ns = if self.one_in(9) { self.next() } else { now.saturating_sub(self.below(5_000)) };
        Mark { ref_px: Price(ref_px), ts_ns, is_verified: !self.one_in(5), ..Mark::default() }
    }

    fn intent(&mut self, world: &Reference) -> OrderIntent {
        let reference = world.mark.map_or(1, |mark| mark.ref_px.0.max(1));
        let near = reference.saturating_add((self.next() >> 52).cast_signed() - 2048);
        let px_step = world.limits.px_step.0;
        let qty_step = world.limits.qty_step.0;
        let px = if self.one_in(6) { self.wild() } else { near - if self.one_in(4) { 0 } else { near % px_step } };
        let edge = self.pick(&[
            world.limits.qty_max.0,
            world.limits.qty_min.0,
            world.limits.open_qty_max.0,
            world.limits.position_long_max.0 - world.position as i64,
            (world.limits.notional_max.0 / i128::from(px.max(1))).min(i128::from(i64::MAX)) as i64,
        ]);
        let small = 1 + self.below(9).cast_signed();
        let qty = match self.below(8) {
            0 => self.wild(),
            1 => edge.wrapping_add(self.below(3).cast_signed() - 1),
            2 => small,
            _ => small.saturating_mul(qty_step),
        };
        OrderIntent {
            seq: self.next(),
            ts_ns: self.next(),
            client_id: self.next(),
            limit_px: Price(px),
            qty: Qty(qty),
            trigger_px: Price(self.wild()),
            account: ACCOUNT,
            strategy: STRATEGY,
            instrument: INSTRUMENT,
            kind: self.pick(&[
                IntentKind::LIMIT,
                IntentKind::LIMIT,
                IntentKind::LIMIT,
                IntentKind::MARKET,
                IntentKind::CANCEL,
            ]),
            side: self.pick(&[OrderSide::Buy, OrderSide::Sell]),
            tif: self.pick(&[
                TimeInForce::GOOD_TILL_CANCEL,
                TimeInForce::IMMEDIATE_OR_CANCEL,
                TimeInForce::FILL_OR_KILL,
            ]),
            flags: IntentFlags((self.next() & self.next()) as u8),
            ttl_ms: 0,
        }
    }
}

/// The same world twice: in the gate, and in the reference.
fn world(random: &mut Random) -> (Evaluator, Reference) {
    let limits = random.limits();
    let instrument = InstrumentLimits {
        collar_bps: random.pick(&[0, 1, 50, 500, 9_999, 10_000, 20_000, u32::MAX]),
        mark_age_max_ns: random.pick(&[0, 1_000, 1_000_000, u64::MAX]),
        rate: random.rate(),
    };
    let [account_rate, global_rate] = [random.rate(), random.rate()];
    let exposure = Exposure {
        position: Qty(random.up_to(61) * if random.one_in(2) { -1 } else { 1 }),
        open_buy_qty: Qty(random.up_to(40)),
        open_sell_qty: Qty(random.up_to(40)),
        open_orders: random.below(10) as u32,
    };
    let mut gate = Evaluator::new(2, 4);
    gate.set_limits(ACCOUNT, INSTRUMENT, &limits).expect("the world is within range");
    gate.set_instrument_limits(INSTRUMENT, &instrument).expect("the world is within range");
    gate.set_account_rate(ACCOUNT, account_rate).expect("the world is within range");
    gate.set_global_rate(global_rate);
    gate.restore(ACCOUNT, INSTRUMENT, &exposure).expect("the world is within range");
    let reference = Reference {
        limits,
        instrument,
        mark: None,
        position: exposure.position.0.into(),
        open_buy: exposure.open_buy_qty.0.into(),
        open_sell: exposure.open_sell_qty.0.into(),
        open_orders: exposure.open_orders.into(),
        account_rate: Schedule::new(account_rate),
        instrument_rate: Schedule::new(instrument.rate),
        global_rate: Schedule::new(global_rate),
        killed: Breach::NONE,
    };
    (gate, reference)
}

fn event(random: &mut Random, now: u64, gate: &mut Evaluator, reference: &mut Reference) {
    let switches = [
        (KillSwitch::Global, Breach::KILL_GLOBAL),
        (KillSwitch::Account(ACCOUNT), Breach::KILL_ACCOUNT),
        (KillSwitch::Strategy(STRATEGY), Breach::KILL_STRATEGY),
        (KillSwitch::Instrument(INSTRUMENT), Breach::KILL_INSTRUMENT),
    ];
    match random.below(6) {
        0 | 1 => {
            let mark = random.mark(now);
            gate.set_reference(INSTRUMENT, &mark).expect("the world is within range");
            reference.mark = Some(mark);
        }
        2 => {
            let (switch, reason) = random.pick(&switches);
            assert_eq!(gate.controls().kill(switch), !reference.killed.contains(reason));
            reference.killed = reference.killed.union(reason);
        }
        3 => {
            for (switch, reason) in switches {
                assert_eq!(gate.controls().revive(switch), reference.killed.contains(reason));
            }
            reference.killed = Breach::NONE;
        }
        _ => {
            // Orders ended, and the position moved.
            let part = |open: i128, random: &mut Random| (open >> random.below(8)) as i64;
            let exposure = Exposure {
                position: Qty((reference.position as i64 / 2).saturating_add(random.below(40).cast_signed() - 20)),
                open_buy_qty: Qty(part(reference.open_buy, random)),
                open_sell_qty: Qty(part(reference.open_sell, random)),
                open_orders: part(reference.open_orders, random) as u32,
            };
            gate.restore(ACCOUNT, INSTRUMENT, &exposure).expect("the world is within range");
            reference.position = exposure.position.0.into();
            reference.open_buy = exposure.open_buy_qty.0.into();
            reference.open_sell = exposure.open_sell_qty.0.into();
            reference.open_orders = exposure.open_orders.into();
        }
    }
}

#[test]
fn agrees_with_the_reference_on_three_million_intents() {
    let mut random = Random(SplitMix64::new(20_260_101));
    let mut seen = Breach::NONE;
    let (mut accepted_total, mut intents_total) = (0, 0);
    for _ in 0..WORLDS {
        let (mut gate, mut reference) = world(&mut random);
        let mut now = if random.one_in(9) { (1 << 63) - random.below(100_000) } else { random.below(1 << 40) };
        let mut accepted = 0;
        for _ in 0..STEPS {
            now = if random.one_in(60) {
                now.saturating_sub(random.below(9_000))
            } else {
                now.saturating_add(random.below(3_000))
            };
            if random.one_in(12) {
                event(&mut random, now, &mut gate, &mut reference);
            }
            let intent = random.intent(&reference);
            let before = reference.clone();
            let expected = reference.evaluate(now, &intent);
            let verdict = gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now, &intent, &mut Off);
            let got = (verdict.accept == 1, verdict.reasons, verdict.worst_pos);
            assert_eq!(
                got,
                (expected.accept, expected.reasons, expected.worst_pos as i64),
                "{now} {intent:?} {before:?}"
            );
            assert_eq!((verdict.client_id, verdict.intent_seq, verdict.now_ns), (intent.client_id, intent.seq, now));
            accepted += u64::from(expected.accept);
            seen = seen.union(expected.reasons);
        }
        let exposure = gate.exposure(ACCOUNT, INSTRUMENT).unwrap();
        let got = [exposure.position, exposure.open_buy_qty, exposure.open_sell_qty].map(|qty| i128::from(qty.0));
        assert_eq!(got, [reference.position, reference.open_buy, reference.open_sell]);
        assert_eq!(i128::from(exposure.open_orders), reference.open_orders);
        let counters = gate.counters();
        assert_eq!((counters.intents(), counters.accepted()), (STEPS, accepted));
        assert_eq!(counters.accepted() + counters.rejected(), counters.intents());
        accepted_total += accepted;
        intents_total += STEPS;
    }
    let never = Breach::INSTRUMENT_UNKNOWN.union(Breach::NOT_PERMITTED);
    assert_eq!(seen.union(never), Limits::PLAIN, "a reason that never came up was not compared");
    assert!(accepted_total * 20 > intents_total, "{accepted_total} accepted of {intents_total}: too few to compare");
}

/// A screen finds against each order what the reference finds against it alone, in lanes and one by one.
#[test]
fn a_screen_agrees_with_the_reference_on_each_order_alone() {
    const ORDERS: usize = 40;
    let mut random = Random(SplitMix64::new(20_261_130));
    let (mut seen, mut seen_in_lanes) = (Breach::NONE, Breach::NONE);
    for _ in 0..WORLDS {
        let (mut gate, mut reference) = world(&mut random);
        let mut now = random.below(1 << 40);
        for _ in 0..8 {
            now = now.saturating_add(random.below(3_000));
            event(&mut random, now, &mut gate, &mut reference);
            let intent = random.intent(&reference);
            let taken = reference.evaluate(now, &intent).accept;
            assert_eq!(gate.evaluate_profile::<{ Limits::PLAIN.0 }>(now, &intent, &mut Off).accept == 1, taken);

            // Orders of more than 31 bits are not checked in lanes, nor are others of the same sixteen.
            let is_narrow = random.one_in(2);
            let side = random.pick(&[OrderSide::Buy, OrderSide::Sell]);
            let orders: Vec<OrderIntent> = (0..ORDERS)
                .map(|_| {
                    let drawn = random.intent(&reference);
                    let cut = |value: i64| if is_narrow { value & (i64::MAX >> 32) } else { value };
                    let (limit_px, qty) = (Price(cut(drawn.limit_px.0)), Qty(cut(drawn.qty.0)));
                    OrderIntent { limit_px, qty, side, kind: IntentKind::LIMIT, flags: IntentFlags(0), ..drawn }
                })
                .collect();
            let (px, qty): (Vec<_>, Vec<_>) = orders.iter().map(|order| (order.limit_px, order.qty)).unzip();
            let mut reasons = [Breach::NONE; ORDERS];
            gate.screen(now, ACCOUNT, STRATEGY, INSTRUMENT, side).check(&px, &qty, &mut reasons);
            for (order, reasons) in orders.iter().zip(reasons) {
                let expected = Breach(reference.clone().evaluate(now, order).reasons.0 & Limits::EIGHT.0);
                assert_eq!(reasons, expected, "{now} {order:?} {reference:?}");
                seen = seen.union(expected);
                if is_narrow {
                    seen_in_lanes = seen_in_lanes.union(expected);
                }
            }
        }
    }
    let never = Breach::INSTRUMENT_UNKNOWN.union(Breach::NOT_PERMITTED);
    assert_eq!([seen, seen_in_lanes].map(|seen| seen.union(never)), [Limits::EIGHT; 2], "a reason was not compared");
}
