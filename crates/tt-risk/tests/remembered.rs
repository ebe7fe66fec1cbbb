//! What the gate remembers of single orders, against sets and maps of the standard library, on random streams.

use std::collections::{BTreeMap, HashMap};
use tt_meter::Off;
use tt_model::{Breach, InstrumentId, IntentKind, Notional, OrderIntent, OrderSide, Price, Qty, SplitMix64, Verdict};
use tt_risk::{Cancel, Capacity, Exposure, Fill, Gate, GateError, InstrumentLimits, Limits, Mark, OwnOrder, Rate};

const ACCOUNTS: u16 = 3;
const INSTRUMENTS: u32 = 2;
const WINDOW_NS: u64 = 40_000;
const OWN_ORDERS: u16 = 12;
const STEPS: u64 = 1_000_000;
const REMEMBERED: u64 = Breach::DUP_ID.0 | Breach::SELF_MATCH.0;

/// A seeded sequence.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// Few ids, in a row, far apart, or alike in their low bits.
    fn id(&mut self) -> u64 {
        let number = self.below(700);
        match number % 3 {
            0 => number,
            1 => number << 40,
            _ => u64::MAX - number,
        }
    }

    fn side(&mut self) -> OrderSide {
        if self.below(2) == 0 { OrderSide::Buy } else { OrderSide::Sell }
    }
}

#[derive(Clone, Copy)]
struct Open {
    client_id: u64,
    side: OrderSide,
    qty: i64,
    /// A market order has none.
    px: Option<i64>,
}

/// An account's orders in an instrument.
#[derive(Default)]
struct Desk {
    open: Vec<Open>,
    /// How many orders there are at a price.
    bids: BTreeMap<i64, u32>,
    asks: BTreeMap<i64, u32>,
}

impl Desk {
    fn prices(&mut self, side: OrderSide) -> &mut BTreeMap<i64, u32> {
        if side == OrderSide::Buy { &mut self.bids } else { &mut self.asks }
    }

    fn add(&mut self, order: Open) {
        if let Some(px) = order.px {
            *self.prices(order.side).entry(px).or_default() += 1;
        }
        self.open.push(order);
    }

    fn take(&mut self, index: usize) -> Open {
        let order = self.open.swap_remove(index);
        if let Some(px) = order.px {
            let prices = self.prices(order.side);
            let left = prices[&px] - 1;
            if left == 0 {
                prices.remove(&px)
            } else {
                prices.insert(px, left)
            };
        }
        order
    }

    /// The order that is meant by the id of the one at `index`: an id that counted no more may have been used again, and
    /// then the order leaves first that would be met last.
    fn named(&self, index: usize) -> usize {
        let Open { client_id, side, .. } = self.open[index];
        let rank =
            |order: &Open| (order.px.is_none(), order.px.map(|px| if side == OrderSide::Buy { -px } else { px }));
        let alike = |order: &Open| order.client_id == client_id && order.side == side;
        let of_id = (0..self.open.len()).filter(|other| alike(&self.open[*other]));
        of_id.max_by_key(|other| rank(&self.open[*other])).unwrap_or(index)
    }

    fn meets(&self, intent: &OrderIntent) -> bool {
        let px = intent.limit_px.0;
        let is_market = intent.kind == IntentKind::Market;
        match intent.side {
            OrderSide::Buy => self.asks.first_key_value().is_some_and(|(ask, _)| is_market || px >= *ask),
            OrderSide::Sell => self.bids.last_key_value().is_some_and(|(bid, _)| is_market || px <= *bid),
        }
    }
}

#[derive(Default)]
struct Model {
    /// When the account last used the id.
    used_ns: HashMap<(u16, u64), u64>,
    desks: HashMap<(u16, u32), Desk>,
}

impl Model {
    /// What is to be found against `intent`.
    fn expect(&mut self, now: u64, intent: &OrderIntent) -> u64 {
        let used = self.used_ns.get(&(intent.account, intent.client_id));
        let is_used = used.is_some_and(|used| now < used + WINDOW_NS);
        let desk = self.desks.entry((intent.account, intent.instrument.0)).or_default();
        let meets = desk.meets(intent) || desk.open.len() == usize::from(OWN_ORDERS);
        (u64::from(is_used) * Breach::DUP_ID.0) | (u64::from(meets) * Breach::SELF_MATCH.0)
    }

    fn accept(&mut self, now: u64, intent: &OrderIntent) {
        self.used_ns.insert((intent.account, intent.client_id), now);
        let px = (intent.kind == IntentKind::Limit).then_some(intent.limit_px.0);
        let order = Open { client_id: intent.client_id, side: intent.side, qty: intent.qty.0, px };
        self.desks.entry((intent.account, intent.instrument.0)).or_default().add(order);
    }
}

fn gate() -> Gate {
    let limits = Limits {
        px_step: Price(1),
        qty_step: Qty(1),
        qty_min: Qty(1),
        qty_max: Qty(1 << 40),
        notional_min: Notional(0),
        notional_max: Notional(i128::MAX),
        position_long_max: Qty(1 << 60),
        position_short_max: Qty(1 << 60),
        open_qty_max: Qty(1 << 60),
        open_orders_max: u32::MAX,
        enabled: Limits::CHECKED,
    };
    let instrument_limits = InstrumentLimits { collar_bps: 10_000, mark_age_max_ns: u64::MAX, rate: Rate::UNLIMITED };
    let capacity = Capacity { accounts: ACCOUNTS, instruments: INSTRUMENTS, client_ids: 4_096, own_orders: OWN_ORDERS };
    let mut gate = Gate::new(capacity);
    gate.set_id_window(WINDOW_NS);
    gate.set_global_rate(Rate::UNLIMITED);
    for instrument in (0..INSTRUMENTS).map(InstrumentId) {
        gate.set_instrument_limits(instrument, &instrument_limits).expect("within the gate");
        gate.set_reference(instrument, &Mark { ref_px: Price(1_000), ts_ns: 0, is_verified: true }).expect("known");
        for account in 0..ACCOUNTS {
            gate.set_limits(account, instrument, &limits).expect("within the gate");
            gate.restore(account, instrument, &Exposure::default()).expect("within the gate");
        }
    }
    for account in 0..ACCOUNTS {
        gate.set_account_rate(account, Rate::UNLIMITED).expect("within the gate");
    }
    gate
}

/// Ends one of the open orders, or a part of it; now and then a stranger's.
fn end_one(random: &mut Random, gate: &mut Gate, model: &mut Model, key: (u16, u32)) {
    let (account, instrument) = (key.0, InstrumentId(key.1));
    let desk = model.desks.entry(key).or_default();
    if desk.open.is_empty() {
        return;
    }
    let index = desk.named(random.below(desk.open.len() as u64) as usize);
    let Open { client_id, side, qty, .. } = desk.open[index];
    let fill = Fill { account, instrument, client_id, side, qty: Qty(qty), is_last: true };
    match random.below(8) {
        0 if qty > 1 => {
            gate.apply_fill(&Fill { qty: Qty(1), is_last: false, ..fill }).expect("so much is open");
            desk.open[index].qty -= 1;
        }
        1 => {
            // Nobody's id: what is looked out for stays, and so do the counts here, which are given back.
            let stranger = Fill { client_id: 1 << 20, ..fill };
            assert_eq!(gate.apply_fill(&stranger), Err(GateError::UnknownOrder));
            restore(gate, desk, account, instrument);
        }
        2..5 => {
            desk.take(index);
            gate.apply_cancel(&Cancel { account, instrument, client_id, side, qty: Qty(qty) }).expect("it is open");
        }
        _ => {
            desk.take(index);
            gate.apply_fill(&fill).expect("it is open");
        }
    }
}

/// Restores what is open, order by order, without market orders, which have no price.
fn restore(gate: &mut Gate, desk: &mut Desk, account: u16, instrument: InstrumentId) {
    desk.open.retain(|order| order.px.is_some());
    let open = |side| Qty(desk.open.iter().filter(|order| order.side == side).map(|order| order.qty).sum());
    let exposure = Exposure {
        position: Qty(0),
        open_buy_qty: open(OrderSide::Buy),
        open_sell_qty: open(OrderSide::Sell),
        open_orders: desk.open.len() as u32,
    };
    gate.restore(account, instrument, &exposure).expect("within the gate");
    for Open { client_id, side, px, .. } in &desk.open {
        let order = OwnOrder { client_id: *client_id, side: *side, limit_px: Price(px.expect("a limit order")) };
        gate.restore_order(account, instrument, &order).expect("as many as were counted");
    }
}

/// Runs the stream of `seed`; every verdict agrees with the model.
fn run(seed: u64, steps: u64) -> Vec<Verdict> {
    let mut random = Random(SplitMix64::new(seed));
    let (mut gate, mut model) = (gate(), Model::default());
    let mut now = 1_000_000;
    let (mut accepted, mut verdicts) = (0, Vec::new());
    let mut found = [0_u32; 2];
    for step in 0..steps {
        now = if random.below(50) == 0 { now - random.below(2_000) } else { now + random.below(200) };
        let account = random.below(u64::from(ACCOUNTS)) as u16;
        let instrument = random.below(u64::from(INSTRUMENTS)) as u32;
        if random.below(2) == 0 {
            end_one(&mut random, &mut gate, &mut model, (account, instrument));
        }
        let side = random.side();
        // Bids mostly below offers, so that books of own orders grow.
        let px = 1_000 + random.below(60).cast_signed() - if side == OrderSide::Buy { 45 } else { 15 };
        let intent = OrderIntent {
            seq: step,
            client_id: random.id(),
            limit_px: Price(if random.below(200) == 0 { 0 } else { px }),
            qty: Qty(1 + random.below(5).cast_signed()),
            account,
            instrument: InstrumentId(instrument),
            kind: match random.below(30) {
                0 => IntentKind::Market,
                1 => IntentKind::Cancel,
                _ => IntentKind::Limit,
            },
            side,
            ..OrderIntent::default()
        };
        let is_cancel = intent.kind == IntentKind::Cancel;
        let expected = if is_cancel { 0 } else { model.expect(now, &intent) };
        let verdict = gate.evaluate(now, &intent, &mut Off);
        assert_eq!(verdict.reasons.0 & REMEMBERED, expected, "step {step} of {seed}: {intent:?}");
        let is_priced = intent.limit_px.0 > 0 || intent.kind != IntentKind::Limit;
        assert_eq!(verdict.accept == 1, expected == 0 && is_priced, "step {step} of {seed}: {:?}", verdict.reasons);
        if verdict.accept == 1 && !is_cancel {
            model.accept(now, &intent);
            accepted += 1;
        }
        found[0] += u32::from(expected & Breach::DUP_ID.0 != 0);
        found[1] += u32::from(expected & Breach::SELF_MATCH.0 != 0);
        verdicts.push(verdict);
    }
    assert_eq!(gate.counters().ids_full(), 0);
    let enough = (steps / 20) as u32;
    assert!(found[0] > enough && found[1] > enough && accepted > enough, "{found:?}, {accepted} accepted");
    verdicts
}

#[test]
fn case_k07_k08_agrees_with_sets_and_maps_on_a_million_orders() {
    run(1, STEPS);
}

#[test]
fn the_same_stream_gives_the_same_verdicts_bit_for_bit() {
    for seed in 2..6 {
        assert!(run(seed, 20_000) == run(seed, 20_000));
    }
}
