//! The demonstration strategy: quotes around the market, with the slips that a gate is there for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use tt_model::{OrderIntent, OrderSide, Price, Qty};
use tt_sync::seqlock::Writer;

use super::clock::Clock;
use super::orders::Orders;
use super::policy::{self, ACCOUNT, STRATEGY};
use super::{Quote, Quotes, RiskConfig, StrategyEnds, Tradable};

/// How long the thread sleeps at most.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// A burst comes once in so many intents on average, and has so many.
const BURST_ONCE_IN: u64 = 150;
const BURST_INTENTS: u32 = 24;

/// For how many of its intents an instrument is rather bought than sold, or the other way round.
const LEANING_INTENTS: u64 = 40;

/// How many intents ago a client id was given that is used again: its verdict has come long since.
const IDS_AGO: u64 = 100;

/// Numbers that look random and follow from a seed (xorshift64*).
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    pub(super) fn between(&mut self, range: core::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }
}

/// What goes wrong with an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// Some percent away from the market.
    FatFinger,
    /// A zero too many.
    Oversized,
    /// Within the quantity's limit, beyond the notional's.
    Heavy,
    /// Between two price steps.
    OffStep,
    /// Under the client id of an order of a while ago.
    UsedId,
}

impl Slip {
    fn draw(random: &mut Random) -> Self {
        match random.below(100) {
            0..5 => Self::FatFinger,
            5..8 => Self::Oversized,
            8..12 => Self::Heavy,
            12..15 => Self::OffStep,
            15..17 => Self::UsedId,
            _ => Self::Nothing,
        }
    }
}

/// What the thread owns.
pub(super) struct Strategy {
    ends: StrategyEnds,
    pushes: Writer<2>,
    quotes: Quotes,
    tradables: Vec<Tradable>,
    orders: Orders,
    clock: Clock,
    random: Random,
    interval_ns: u64,
    burst_left: u32,
    made: u64,
    pushed: u64,
    full: u64,
}

impl Strategy {
    pub(super) fn new(config: &RiskConfig, ends: StrategyEnds, pushes: Writer<2>, clock: Clock) -> Self {
        Self {
            ends,
            pushes,
            quotes: config.quotes.clone(),
            tradables: config.tradables.clone(),
            orders: Orders::default(),
            clock,
            random: Random::new(config.seed),
            interval_ns: 1_000_000_000 / u64::from(config.intents_per_s.max(1)),
            burst_left: 0,
            made: 0,
            pushed: 0,
            full: 0,
        }
    }

    /// Runs until `ending` is set. Wakes `gate` after each push.
    pub(super) fn run(mut self, ending: &AtomicBool, gate: &Thread) {
        let mut due_ns = self.clock.now_ns();
        while !ending.load(Ordering::Acquire) {
            let now_ns = self.clock.now_ns();
            self.take_verdicts(now_ns);
            let mut woken = self.pass_outcomes(now_ns);
            if now_ns >= due_ns {
                woken |= self.send_next();
                due_ns = if self.burst_left > 0 { now_ns } else { now_ns + self.pause_ns() };
            }
            if woken {
                gate.unpark();
            }
            let next_ns = self.orders.poll_timeout().map_or(due_ns, |outcome_ns| outcome_ns.min(due_ns));
            let sleep = Duration::from_nanos(next_ns.saturating_sub(self.clock.now_ns()));
            thread::park_timeout(sleep.min(SLEEP_MAX));
        }
    }

    /// From half to one and a half of the mean interval.
    fn pause_ns(&mut self) -> u64 {
        self.interval_ns / 2 + self.random.below(self.interval_ns)
    }

    /// Lets accepted orders rest.
    fn take_verdicts(&mut self, now_ns: u64) {
        while let Some(verdict) = self.ends.verdicts.pop() {
            self.orders.judged(&verdict, now_ns, &mut self.random);
        }
    }

    fn pass_outcomes(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        // Room is looked for first: an outcome that is taken must arrive.
        while self.ends.outcomes.occupancy() < self.ends.outcomes.capacity() {
            let Some(outcome) = self.orders.poll_outcome(now_ns, &mut self.random) else { break };
            any |= self.ends.outcomes.push(outcome).is_ok();
        }
        any
    }

    /// Makes one intent and pushes it. Returns whether the gate has something to do.
    fn send_next(&mut self) -> bool {
        if self.burst_left > 0 {
            self.burst_left -= 1;
        } else if self.random.below(BURST_ONCE_IN) == 0 {
            self.burst_left = BURST_INTENTS;
        }
        let Some(mut intent) = self.next_intent() else {
            self.burst_left = 0;
            return false;
        };
        intent.ts_ns = self.clock.now_ns();
        let is_pushed = self.ends.intents.push(intent).is_ok();
        if is_pushed {
            self.pushed += 1;
            self.orders.sent(intent);
        } else {
            self.full += 1;
        }
        self.pushes.store(&[self.pushed, self.full]);
        is_pushed
    }

    /// An intent for an instrument that has a price; `None` as long as the drawn one has none.
    fn next_intent(&mut self) -> Option<OrderIntent> {
        let index = usize::try_from(self.random.below(self.tradables.len().max(1) as u64)).ok()?;
        let tradable = self.tradables.get(index)?;
        let quote = (self.quotes)(tradable.instrument).filter(|quote| quote.bid_px > 0 && quote.ask_px > 0)?;
        self.made += 1;
        let leans_to_buy = (self.made / LEANING_INTENTS + index as u64).is_multiple_of(2);
        let side = if (self.random.below(100) < 65) == leans_to_buy { OrderSide::Buy } else { OrderSide::Sell };
        let slip = Slip::draw(&mut self.random);
        Some(OrderIntent {
            seq: self.made,
            client_id: if slip == Slip::UsedId { self.made.saturating_sub(IDS_AGO) } else { self.made },
            limit_px: Price(limit_px(quote, side, slip, &mut self.random)),
            qty: Qty(qty(tradable, slip, &mut self.random)),
            account: ACCOUNT,
            strategy: STRATEGY,
            instrument: tradable.instrument,
            side,
            ..OrderIntent::default()
        })
    }
}

/// At the touch or some steps behind it, on a step of the account's.
fn limit_px(quote: Quote, side: OrderSide, slip: Slip, random: &mut Random) -> i64 {
    let step = policy::px_step(quote.bid_px.midpoint(quote.ask_px));
    let behind = step * random.below(4) as i64;
    let (touch, away) = match side {
        OrderSide::Buy => (quote.bid_px - behind, 1),
        OrderSide::Sell => (quote.ask_px + behind, -1),
    };
    let on_step = touch - touch.rem_euclid(step);
    match slip {
        Slip::Nothing | Slip::Oversized | Slip::Heavy | Slip::UsedId => on_step,
        Slip::FatFinger => {
            let far = on_step + away * on_step / 100 * random.between(2..9) as i64;
            far - far.rem_euclid(step)
        }
        Slip::OffStep => on_step + (step / 2).max(1),
    }
}

fn qty(tradable: &Tradable, slip: Slip, random: &mut Random) -> i64 {
    let ordinary = policy::qty_ordinary(tradable);
    match slip {
        Slip::Nothing | Slip::FatFinger | Slip::OffStep | Slip::UsedId => {
            (ordinary * random.between(20..100) as i64 / 100).max(1)
        }
        Slip::Oversized => ordinary * 10,
        Slip::Heavy => ordinary * 5 / 2,
    }
}
