//! Events of orders' lives through the gate: one kind alone, or the mix.

use anyhow::{Context as _, ensure};
use risk_gate::Durability;
use tt_model::{
    Breach, InstrumentId, IntentKind, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, SplitMix64, Verdict,
};
use tt_risk::Outcome;

use super::limits::MIDDLE_PX;
use super::rig::Rig;
use crate::harness::operation::Operation;

/// Orders of a row of one kind, and of one whose orders wait for the disk.
const ORDERS: u32 = 1 << 12;
const DURABLE_ORDERS: u32 = 64;

/// Intents and reports of the mix.
const MIXED: usize = 1 << 14;

/// Marks for each event of the mix.
const MARKS_PER_EVENT: usize = 5;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    New,
    Cancel,
    Replace,
    Fill,
    Mark,
    /// 60 % new, 20 % cancel, 15 % fill, 5 % replace; five marks before each.
    Mix,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    New(u32),
    Cancel(u32),
    Replace(u32),
    Fill(u32),
    Mark(u32, i64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    instrument: u32,
    side: OrderSide,
    px: i64,
    qty: i64,
    pub(super) is_refused: bool,
}

impl Order {
    /// Draws an order of an instrument below `instruments`: buys below the marks, sells above.
    pub(super) fn draw(random: &mut SplitMix64, number: usize, instruments: u32, refused_in_100: u32) -> Self {
        let is_refused = (random.index(100) as u32) < refused_in_100;
        let away = MIDDLE_PX / 1_000 * if is_refused { 30 } else { 1 } + random.index(40_000) as i64;
        let (side, px) = match number % 2 {
            0 => (OrderSide::Buy, MIDDLE_PX - away),
            _ => (OrderSide::Sell, MIDDLE_PX + away),
        };
        let (instrument, qty) = (random.index(instruments as usize) as u32, 1 + random.index(100) as i64);
        Self { instrument, side, px, qty, is_refused }
    }

    /// Its intent; a replace is for one lot more.
    #[inline]
    pub(super) fn intent(&self, client_id: u64, kind: IntentKind) -> OrderIntent {
        let Self { instrument, side, px, qty, .. } = *self;
        let qty = Qty(qty + i64::from(kind == IntentKind::REPLACE));
        OrderIntent {
            client_id,
            limit_px: Price(px),
            qty,
            strategy: 1,
            instrument: InstrumentId(instrument),
            kind,
            side,
            ..OrderIntent::default()
        }
    }

    /// A report on it; a fill is of all of it.
    #[inline]
    pub(super) fn report(&self, client_id: u64, kind: ReportKind) -> Report {
        let Self { instrument, side, px, qty, .. } = *self;
        let filled = Qty(if kind == ReportKind::FILL { qty } else { 0 });
        Report {
            kind,
            side,
            instrument: InstrumentId(instrument),
            client_id,
            execution_id: u128::from(client_id),
            qty: filled,
            px: Price(px),
            executed: filled,
            ..Report::default()
        }
    }
}

/// Events whose orders have ended, or are ended by `rewind`, when all were performed.
pub(super) struct Stream {
    rig: Rig,
    orders: Vec<Order>,
    /// Performed before the timed events.
    before: Vec<Event>,
    events: Vec<Event>,
    /// Orders that are open after all events.
    open: Vec<u32>,
    /// The client id of order 0.
    first_id: u64,
    /// Timed events that were performed since the last rewind.
    done: usize,
    /// Untimed events with another answer than the expected one.
    wrong: u64,
    refused_in_100: u32,
}

/// What the events of a [`Stream`] are, and the gate that they go through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) kind: Kind,
    pub(super) instruments: u32,
    /// Orders that are open all the time, in the first instrument.
    pub(super) resting: u32,
    pub(super) refused_in_100: u32,
    /// The key of a check that is off.
    pub(super) without: Option<&'static str>,
    pub(super) durability: Durability,
}

impl Stream {
    /// Events as `setup` says.
    ///
    /// # Errors
    /// The gate cannot be made.
    pub(super) fn new(setup: &Setup) -> anyhow::Result<Self> {
        let Setup { kind, instruments, resting, refused_in_100, without, durability } = *setup;
        let mut stream = Self {
            rig: Rig::new(instruments, without, durability)?,
            orders: Vec::new(),
            before: Vec::new(),
            events: Vec::new(),
            open: Vec::new(),
            first_id: 1,
            done: 0,
            wrong: 0,
            refused_in_100,
        };
        let mut random = SplitMix64::new(0x6761_7465);
        for _ in 0..resting {
            let order = stream.draw(&mut random, 1, 0);
            stream.before.push(Event::New(order));
            stream.open.push(order);
        }
        if kind == Kind::Mix {
            stream.mix(&mut random, instruments);
        } else {
            let orders = if durability == Durability::Process { ORDERS } else { DURABLE_ORDERS };
            stream.alone((kind, orders), &mut random, instruments);
        }
        stream.done = stream.events.len();
        Ok(stream)
    }

    fn draw(&mut self, random: &mut SplitMix64, instruments: u32, refused_in_100: u32) -> u32 {
        let number = self.orders.len();
        self.orders.push(Order::draw(random, number, instruments, refused_in_100));
        number as u32
    }

    fn alone(&mut self, (kind, orders): (Kind, u32), random: &mut SplitMix64, instruments: u32) {
        let refused = if kind == Kind::New { self.refused_in_100 } else { 0 };
        for _ in 0..orders {
            if kind == Kind::Mark {
                let event = mark(random, instruments);
                self.events.push(event);
                continue;
            }
            let order = self.draw(random, instruments, refused);
            let then = match kind {
                Kind::Cancel => Some(Event::Cancel(order)),
                Kind::Replace => Some(Event::Replace(order)),
                Kind::Fill => Some(Event::Fill(order)),
                Kind::New | Kind::Mark | Kind::Mix => None,
            };
            match then {
                Some(event) => {
                    self.before.push(Event::New(order));
                    self.events.push(event);
                }
                None => self.events.push(Event::New(order)),
            }
            if kind != Kind::Fill && !self.orders[order as usize].is_refused {
                self.open.push(order);
            }
        }
    }

    fn mix(&mut self, random: &mut SplitMix64, instruments: u32) {
        // Orders that were accepted and neither filled nor cancelled nor replaced yet; those with a pending cancel.
        let (mut fresh, mut touched) = (Vec::new(), Vec::new());
        for _ in 0..MIXED {
            for _ in 0..MARKS_PER_EVENT {
                let event = mark(random, instruments);
                self.events.push(event);
            }
            let draw = random.index(100);
            let take = |fresh: &mut Vec<u32>, random: &mut SplitMix64| {
                (fresh.len() > 64).then(|| fresh.swap_remove(random.index(fresh.len())))
            };
            let event = match draw {
                60..80 => take(&mut fresh, random).map(|order| (Event::Cancel(order), true)),
                80..95 => take(&mut fresh, random).map(|order| (Event::Fill(order), false)),
                95.. => take(&mut fresh, random).map(|order| (Event::Replace(order), true)),
                _ => None,
            };
            if let Some((event, stays_open)) = event {
                if let (Event::Cancel(order) | Event::Replace(order), true) = (event, stays_open) {
                    touched.push(order);
                }
                self.events.push(event);
                continue;
            }
            let order = self.draw(random, instruments, self.refused_in_100);
            self.events.push(Event::New(order));
            if !self.orders[order as usize].is_refused {
                fresh.push(order);
            }
        }
        self.open.extend(fresh.into_iter().chain(touched));
    }

    #[inline]
    fn intent(&self, number: u32, kind: IntentKind) -> OrderIntent {
        self.orders[number as usize].intent(self.first_id + u64::from(number), kind)
    }

    #[inline]
    fn report_on(&self, number: u32, kind: ReportKind) -> Report {
        self.orders[number as usize].report(self.first_id + u64::from(number), kind)
    }

    #[inline]
    fn perform(&mut self, at: usize) -> u64 {
        let event = self.events[at];
        self.perform_event(event)
    }

    #[inline]
    fn perform_event(&mut self, event: Event) -> u64 {
        let kind = match event {
            Event::New(_) => IntentKind::LIMIT,
            Event::Cancel(_) => IntentKind::CANCEL,
            Event::Replace(_) => IntentKind::REPLACE,
            Event::Fill(order) => {
                let report = self.report_on(order, ReportKind::FILL);
                return self.rig.report(&report);
            }
            Event::Mark(instrument, px) => return self.rig.mark(InstrumentId(instrument), px),
        };
        let (Event::New(order) | Event::Cancel(order) | Event::Replace(order)) = event else { return 0 };
        let intent = self.intent(order, kind);
        digest(&self.rig.judge(&intent))
    }

    /// The answer, by the making of the event.
    fn expected(&self, event: Event) -> u64 {
        let is_refused = |order: u32| self.orders[order as usize].is_refused;
        match event {
            Event::New(order) if is_refused(order) => Breach::COLLAR_REF.0 << 1,
            Event::New(_) | Event::Cancel(_) | Event::Replace(_) => 1,
            Event::Fill(_) => Outcome::Applied as u64,
            Event::Mark(..) => 1,
        }
    }

    fn perform_untimed(&mut self, event: Event) {
        let expected = self.expected(event);
        self.wrong += u64::from(self.perform_event(event) != expected);
    }
}

/// New orders in batches whose memory is asked for before the first of them is evaluated.
pub(super) struct Batches(pub(super) Stream);

/// Orders of a batch.
const BATCH: usize = 16;

impl Batches {
    #[inline(always)]
    fn judge(&mut self, index: usize) -> u64 {
        let Stream { rig, events, .. } = &self.0;
        let intents: [OrderIntent; BATCH] = std::array::from_fn(|at| match events[index * BATCH + at] {
            Event::New(order) => self.0.intent(order, IntentKind::LIMIT),
            // Batches are of new orders.
            Event::Cancel(_) | Event::Replace(_) | Event::Fill(_) | Event::Mark(..) => OrderIntent::default(),
        });
        rig.prefetch(&intents);
        let digests = intents.iter().map(|intent| digest(&self.0.rig.judge(intent)));
        let sum = digests.fold(0, u64::wrapping_add);
        self.0.done = (index + 1) * BATCH;
        sum
    }
}

impl Operation for Batches {
    fn per_run(&self) -> u32 {
        BATCH as u32
    }

    fn inputs(&self) -> usize {
        self.0.events.len() / BATCH
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.judge(index)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let events = &self.0.events[index * BATCH..][..BATCH];
        let expected = events.iter().map(|event| self.0.expected(*event)).fold(0, u64::wrapping_add);
        let found = self.judge(index);
        ensure!(found == expected, "batch {index}: {found} instead of {expected}");
        Ok(expected)
    }

    fn rewind(&mut self) {
        self.0.rewind();
    }

    fn note(&self) -> Option<String> {
        self.0.note()
    }
}

#[inline]
fn digest(verdict: &Verdict) -> u64 {
    verdict.reasons.0 << 1 | u64::from(verdict.accept)
}

fn mark(random: &mut SplitMix64, instruments: u32) -> Event {
    Event::Mark(random.index(instruments as usize) as u32, MIDDLE_PX - 500 + random.index(1_000) as i64)
}

impl Operation for Stream {
    fn inputs(&self) -> usize {
        self.events.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.done = index + 1;
        self.perform(index)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        ensure!(self.wrong == 0, "{} events before the timed ones had another answer", self.wrong);
        let event = self.events[index];
        self.done = index + 1;
        let (found, expected) = (self.perform_event(event), self.expected(event));
        let reasons: Vec<_> = Breach(found >> 1).names().collect();
        ensure!(found == expected, "event {index}, {event:?}: {found} {reasons:?} instead of {expected}");
        Ok(expected)
    }

    /// Ends every order, lets its id be forgotten, and performs what comes before the timed events.
    fn rewind(&mut self) {
        for index in self.done..self.events.len() {
            let event = self.events[index];
            self.perform_untimed(event);
        }
        if self.first_id > 1 {
            for at in 0..self.open.len() {
                let report = self.report_on(self.open[at], ReportKind::CANCELLED);
                self.wrong += u64::from(self.rig.report(&report) != Outcome::Applied as u64);
            }
        }
        self.first_id += 1 << 20;
        if self.rig.rest().context("the gate of the bench").is_err() {
            self.wrong += 1;
        }
        for at in 0..self.before.len() {
            let event = self.before[at];
            self.perform_untimed(event);
        }
        self.done = 0;
    }

    fn note(&self) -> Option<String> {
        let (events, before) = (self.events.len(), self.before.len());
        Some(format!("{events} events, {before} before them; {} of 100 orders refused", self.refused_in_100))
    }
}
