//! Strategies: what they ask for, right and wrong, and what they make of verdicts.

use std::collections::{BTreeMap, BTreeSet};

use tt_model::{
    Breach, InstrumentId, IntentFlags, IntentKind, OrderIntent, OrderSide, Price, Qty, TimeInForce, Verdict,
};
use tt_risk::Mark;

use super::setup::{CENTER, STRATEGIES};
use super::world::{Event, MS, World};
use crate::draw::Draw;

/// What the producer remembers. It dies with the producer.
#[derive(Default)]
pub(super) struct Strategies {
    /// The number of the last intent.
    pub(super) seq: u64,
    /// Intents without a verdict, by number.
    pub(super) waiting: BTreeMap<u64, OrderIntent>,
    /// Accepted orders, latest last.
    pub(super) orders: Vec<OrderIntent>,
    /// Orders for which a cancel has passed.
    pub(super) cancelled: BTreeSet<(u16, u64)>,
    /// Numbers of cancels of own orders with nothing wrong.
    cancels: BTreeSet<u64>,
    next_id: u64,
    /// A number was left out: the operator lets the producer continue.
    pub(super) has_gap: bool,
    /// Intents that were pushed, and those that died with a process.
    pub(super) pushed: u64,
}

impl Strategies {
    /// The process dies, with what had no verdict.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.cancels.clear();
        self.has_gap = false;
    }
}

impl World<'_> {
    /// A price as the feed has it, right or wrong.
    pub(super) fn mark(&self, draw: &mut Draw) -> Mark {
        let width = draw.pick(&[3, 30, 120]);
        let reference = CENTER - width + draw.below(2 * width.cast_unsigned() + 1).cast_signed();
        let side = |away: i64, draw: &mut Draw| reference + away * draw.between(0, 5).cast_signed();
        let (bid, ask) = (side(-1, draw), side(1, draw));
        let (mut reference, mut bid, mut ask) = (reference, bid, ask);
        let mut ts_ns = self.clock() - draw.below(200_000);
        let mut is_verified = true;
        match draw.below(30) {
            0 => (reference, bid, ask) = (0, 0, 0),
            1 => ts_ns += draw.between(1, 20) * MS,
            2 => ts_ns -= draw.between(1, 50) * MS,
            3 => is_verified = false,
            4 => ask = 0,
            5 => bid = 0,
            _ => {}
        }
        // Updates prove the book now and then, up to 18 ms ago.
        let proof_ns = ts_ns.saturating_sub(reference.unsigned_abs() % 7 * 3 * MS);
        let [ref_px, bid_px, ask_px] = [reference, bid, ask].map(Price);
        Mark { ref_px, bid_px, ask_px, ts_ns, is_verified, proof_ns }
    }

    fn fresh(&mut self, draw: &mut Draw) -> OrderIntent {
        let setup = self.setup();
        let account = draw.below(setup.accounts.into()) as u16;
        let instrument = draw.below(setup.instruments.into()) as u32;
        let row = &setup.settings.rows[usize::from(account)][instrument as usize];
        let (px_step, qty_step) = (row.px_step as i64, row.qty_step as i64);
        self.strategies.next_id += 1;
        let away = draw.pick(&[4, 20, 60, 400]);
        let px = CENTER - away + draw.below(2 * away.cast_unsigned() + 1).cast_signed();
        let steps = draw.pick(&[6, 30, 90]) / qty_step.cast_unsigned() + 1;
        let qty = qty_step * draw.between(1, steps).cast_signed();
        OrderIntent {
            client_id: self.strategies.next_id,
            limit_px: Price(px / px_step * px_step),
            qty: Qty(qty),
            account,
            strategy: draw.below(STRATEGIES.into()) as u16,
            instrument: InstrumentId(instrument),
            side: if draw.chance(1, 2) { OrderSide::Buy } else { OrderSide::Sell },
            flags: IntentFlags(draw.pick(&[0, 0, 0, 0, 1, 2, 4, 5])),
            tif: TimeInForce(draw.pick(&[0, 0, 0, 1, 2])),
            ..OrderIntent::default()
        }
    }

    /// An intent with nothing wrong that a limit does not forbid.
    fn draw_intent(&mut self, draw: &mut Draw) -> OrderIntent {
        let fresh = self.fresh(draw);
        let recent = self.strategies.orders.len().min(8) as u64;
        let old = (recent > 0).then(|| {
            let back = draw.below(recent) as usize;
            self.strategies.orders[self.strategies.orders.len() - 1 - back]
        });
        let trigger_px = Price(CENTER - 100 + draw.below(201).cast_signed());
        match (draw.below(16), old) {
            (0..4, Some(old)) => OrderIntent { kind: IntentKind::CANCEL, ..old },
            (4..6, Some(old)) => {
                let OrderIntent { limit_px, qty, .. } = if draw.chance(1, 3) { old } else { fresh };
                OrderIntent { kind: IntentKind::REPLACE, limit_px, qty, ..old }
            }
            (6, Some(old)) => OrderIntent { client_id: fresh.client_id, ..old },
            (7, _) => OrderIntent { kind: IntentKind::MARKET, limit_px: Price(0), ..fresh },
            (8, _) => OrderIntent { kind: IntentKind::STOP_LIMIT, trigger_px, ..fresh },
            (9, _) if draw.chance(1, 2) => {
                OrderIntent { kind: IntentKind::STOP_MARKET, limit_px: Price(0), trigger_px, ..fresh }
            }
            _ => fresh,
        }
    }

    /// Something that must be noticed.
    fn spoil(&self, intent: OrderIntent, draw: &mut Draw) -> OrderIntent {
        let old = self.strategies.orders.last().map_or(1, |order| order.client_id);
        match draw.below(18) {
            0 => OrderIntent { kind: IntentKind(draw.between(6, 255) as u8), ..intent },
            1 => OrderIntent { tif: TimeInForce(3), ..intent },
            2 => OrderIntent { flags: IntentFlags(8), ..intent },
            3 => OrderIntent { qty: Qty(-(draw.below(3).cast_signed())), ..intent },
            4 => OrderIntent { limit_px: Price(draw.below(60).cast_signed() - 50), ..intent },
            5 => OrderIntent { limit_px: Price(intent.limit_px.0 * 10), ..intent },
            6 => OrderIntent { qty: Qty(intent.qty.0 * 100), ..intent },
            7 => OrderIntent { ts_ns: intent.ts_ns.saturating_sub(draw.between(1, 40) * MS), ..intent },
            8 => OrderIntent { ts_ns: intent.ts_ns + draw.between(1, 9) * MS, ..intent },
            9 => OrderIntent { ttl_ms: 1, ts_ns: intent.ts_ns - MS, ..intent },
            10 => OrderIntent { strategy: STRATEGIES + draw.below(2) as u16, ..intent },
            11 => OrderIntent { account: 9, ..intent },
            12 => OrderIntent { instrument: InstrumentId(9), ..intent },
            13 => OrderIntent { client_id: old, ..intent },
            14 => OrderIntent { trigger_px: Price(CENTER), ..intent },
            15 => OrderIntent { strategy: 1 - intent.strategy.min(1), ..intent },
            16 => OrderIntent { limit_px: Price(intent.limit_px.0 + 1), qty: Qty(intent.qty.0 + 1), ..intent },
            _ => OrderIntent { client_id: 1 << 40 | draw.below(9), ..intent },
        }
    }

    pub(super) fn send_intent(&mut self, draw: &mut Draw) {
        let intent = self.draw_intent(draw);
        let intent = OrderIntent { ts_ns: self.clock() - draw.below(100_000), ttl_ms: 0, ..intent };
        let is_clean = draw.chance(9, 10);
        let intent = if is_clean { intent } else { self.spoil(intent, draw) };
        let seq = match draw.below(60) {
            0 => draw.below(self.strategies.seq + 1),
            1 => {
                self.strategies.has_gap = true;
                self.strategies.seq + 2
            }
            _ => self.strategies.seq + 1,
        };
        self.push(OrderIntent { seq, ..intent }, is_clean);
    }

    /// Pushes an intent; a full ring takes nothing.
    pub(super) fn push(&mut self, intent: OrderIntent, is_clean: bool) {
        if self.host.is_none() || self.rings.intents.push(intent).is_err() {
            return;
        }
        let is_next = intent.seq == self.strategies.seq + 1;
        self.strategies.seq = self.strategies.seq.max(intent.seq);
        self.strategies.pushed += 1;
        if is_next && is_clean && intent.kind == IntentKind::CANCEL {
            self.strategies.cancels.insert(intent.seq);
        }
        self.strategies.waiting.insert(intent.seq, intent);
        let at = self.luck().between(10_000, 300_000);
        self.later(at, Event::Gate);
    }

    /// A cancel of the strategy's own order passes, unless it repeats an earlier one.
    pub(super) fn cancel_passed(
        &mut self,
        intent: &OrderIntent,
        verdict: &Verdict,
        was_cancelled: bool,
    ) -> Result<(), (u8, String)> {
        if !self.strategies.cancels.remove(&intent.seq) {
            return Ok(());
        }
        let is_own = self.strategies.orders.iter().any(|order| {
            let of = |intent: &OrderIntent| (intent.account, intent.strategy, intent.instrument, intent.client_id);
            of(order) == of(intent)
        });
        if !is_own || verdict.reasons.contains(Breach::SEQ_REPLAY) {
            return Ok(());
        }
        self.tally.cancels += u64::from(verdict.accept);
        let is_repeat = was_cancelled && verdict.reasons == Breach::RATE_INSTRUMENT;
        if verdict.accept == 1 || is_repeat {
            return Ok(());
        }
        Err((6, format!("{intent:?}: {:?}", verdict.reasons.names().collect::<Vec<_>>())))
    }

    /// Strategies read their verdicts, and hand accepted intents to the sender.
    pub(super) fn take_verdicts(&mut self) {
        while let Some(verdict) = self.rings.verdicts_out.pop() {
            let Some(intent) = self.strategies.waiting.remove(&verdict.intent_seq) else { continue };
            if verdict.client_id != intent.client_id {
                continue;
            }
            if verdict.accept == 1 {
                self.wire.outbox.push_back((intent, verdict));
                self.later(50_000, Event::Write);
                if Self::is_order(&intent) {
                    let is_it =
                        |order: &OrderIntent| (order.account, order.client_id) == (intent.account, intent.client_id);
                    self.strategies.orders.retain(|order| !is_it(order));
                    self.strategies.orders.push(intent);
                }
            }
        }
        if self.rings.intents.occupancy() > 0 {
            self.later(20_000, Event::Gate);
        }
    }

    /// The producer dies, and another one resumes behind the last number that was judged.
    pub(super) fn lose_producer(&mut self) {
        let Some(last) = self.judged.last().copied() else { return };
        if self.rings.intents.occupancy() > 0 || !self.strategies.waiting.is_empty() {
            // What is in the ring is still judged.
            return;
        }
        self.strategies.seq = last;
        self.perform(&risk_gate::Input::Resume(0, last));
    }
}
