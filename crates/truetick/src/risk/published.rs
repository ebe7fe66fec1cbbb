//! What the gate and the strategy show to other threads. Writers never wait.

use std::sync::{Arc, Mutex, PoisonError};

use tt_meter::{Histogram, Stages};
use tt_model::{Breach, InstrumentId, OrderIntent, OrderSide, Price, Qty, Verdict};
use tt_risk::{Exposure, Limits};
use tt_sync::seqlock::{self, Reader, TableReader, TableWriter, Writer};

use super::Tradable;

/// Verdicts that are kept for readers.
pub(super) const VERDICTS_KEPT: usize = 64;

/// Words of a verdict's cell.
const VERDICT_WORDS: usize = 8;

/// Words of an exposure's cell: exposure, and the limits that are shown beside it.
const EXPOSURE_WORDS: usize = 7;

/// Reasons that are counted, by bit.
pub(super) const REASONS: usize = Breach::NAMES.len();

/// Words of the tally's cell.
const TALLY_WORDS: usize = 6 + REASONS;

/// What the gate has done since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Intents judged: `accepted + refused`.
    pub intents: u64,
    /// Intents that may go on.
    pub accepted: u64,
    /// Intents that may not.
    pub refused: u64,
    /// Fills and cancels taken in.
    pub outcomes: u64,
    /// Fills and cancels that did not fit what was open.
    pub outcome_faults: u64,
    /// Verdicts that found their ring full.
    pub verdicts_lost: u64,
    /// Reasons found in refused intents, by bit; one intent may have several.
    pub reasons: [u64; REASONS],
}

impl Tally {
    pub(super) const ZERO: Self = Self {
        intents: 0,
        accepted: 0,
        refused: 0,
        outcomes: 0,
        outcome_faults: 0,
        verdicts_lost: 0,
        reasons: [0; REASONS],
    };

    pub(super) fn count(&mut self, verdict: &Verdict) {
        self.intents += 1;
        if verdict.accept == 1 {
            self.accepted += 1;
            return;
        }
        self.refused += 1;
        for (bit, count) in self.reasons.iter_mut().enumerate() {
            *count += verdict.reasons.0 >> bit & 1;
        }
    }

    fn to_words(self) -> [u64; TALLY_WORDS] {
        let mut words = [0; TALLY_WORDS];
        let (head, reasons) = words.split_at_mut(6);
        head.copy_from_slice(&[
            self.intents,
            self.accepted,
            self.refused,
            self.outcomes,
            self.outcome_faults,
            self.verdicts_lost,
        ]);
        reasons.copy_from_slice(&self.reasons);
        words
    }

    fn from_words(words: &[u64; TALLY_WORDS]) -> Self {
        let mut reasons = [0; REASONS];
        reasons.copy_from_slice(&words[6..]);
        let [intents, accepted, refused, outcomes, outcome_faults, verdicts_lost] = words[..6] else {
            return Self::ZERO;
        };
        Self { intents, accepted, refused, outcomes, outcome_faults, verdicts_lost, reasons }
    }
}

/// A verdict with what a reader wants to know of its intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The gate's sequence number, from 1.
    pub seq: u64,
    /// When it was made, Unix epoch, nanoseconds.
    pub at_ns: u64,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The side.
    pub side: OrderSide,
    /// The limit price.
    pub px: Price,
    /// The quantity.
    pub qty: Qty,
    /// Whether the intent may go on.
    pub is_accepted: bool,
    /// Every reason found.
    pub reasons: Breach,
    /// From the strategy's push to the verdict.
    pub journey_ns: u64,
}

impl Judgement {
    fn to_words(self) -> [u64; VERDICT_WORDS] {
        let side = u64::from(self.side == OrderSide::Sell);
        [
            self.seq,
            self.at_ns,
            u64::from(self.instrument.0),
            side | u64::from(self.is_accepted) << 1,
            self.px.0.cast_unsigned(),
            self.qty.0.cast_unsigned(),
            self.reasons.0,
            self.journey_ns,
        ]
    }

    fn from_words([seq, at_ns, instrument, bits, px, qty, reasons, journey_ns]: [u64; VERDICT_WORDS]) -> Self {
        Self {
            seq,
            at_ns,
            instrument: InstrumentId(u32::try_from(instrument).unwrap_or(u32::MAX)),
            side: if bits & 1 == 1 { OrderSide::Sell } else { OrderSide::Buy },
            px: Price(px.cast_signed()),
            qty: Qty(qty.cast_signed()),
            is_accepted: bits >> 1 & 1 == 1,
            reasons: Breach(reasons),
            journey_ns,
        }
    }
}

/// An account's exposure in an instrument beside its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The position in lots.
    pub position: i64,
    /// Open orders.
    pub open_orders: u32,
    /// The largest quantity of an order, in lots; zero before there are limits.
    pub qty_max: i64,
    /// The largest notional of an order, in price steps times lots; saturates.
    pub notional_max: u64,
    /// The longest and the shortest position, in lots.
    pub position_max: i64,
    /// Open orders at most.
    pub open_orders_max: u32,
}

/// What was timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// The gate's stages and passes, in cycles.
    pub stages: Stages,
    /// From the strategy's push to the verdict, in nanoseconds.
    pub journey: Histogram,
}

/// What other threads can read.
#[derive(Debug)]
pub struct Published {
    pub(super) tradables: Vec<Tradable>,
    tally: Reader<TALLY_WORDS>,
    pushes: Reader<2>,
    verdicts: TableReader<VERDICT_WORDS>,
    standings: TableReader<EXPOSURE_WORDS>,
    timings: Arc<Mutex<Timings>>,
}

/// The gate's side.
pub(super) struct BoardWriter {
    tally: Writer<TALLY_WORDS>,
    verdicts: TableWriter<VERDICT_WORDS>,
    standings: TableWriter<EXPOSURE_WORDS>,
    timings: Arc<Mutex<Timings>>,
}

/// The gate's side, the strategy's side (intents pushed, pushes refused), and the readers'.
pub(super) fn board(tradables: &[Tradable]) -> (BoardWriter, Writer<2>, Published) {
    let (tally_writer, tally) = seqlock::cell([0; TALLY_WORDS]);
    let (pushes_writer, pushes) = seqlock::cell([0; 2]);
    let (verdicts_writer, verdicts) = seqlock::table(VERDICTS_KEPT, [0; VERDICT_WORDS]);
    let (standings_writer, standings) = seqlock::table(tradables.len(), [0; EXPOSURE_WORDS]);
    let timings = Arc::new(Mutex::new(Timings::default()));
    let writer = BoardWriter {
        tally: tally_writer,
        verdicts: verdicts_writer,
        standings: standings_writer,
        timings: Arc::clone(&timings),
    };
    let tradables = tradables.to_vec();
    (writer, pushes_writer, Published { tradables, tally, pushes, verdicts, standings, timings })
}

impl BoardWriter {
    pub(super) fn store_verdict(&mut self, verdict: &Verdict, intent: &OrderIntent, journey_ns: u64) {
        let judgement = Judgement {
            seq: verdict.seq,
            at_ns: verdict.ts_out,
            instrument: intent.instrument,
            side: intent.side,
            px: intent.limit_px,
            qty: intent.qty,
            is_accepted: verdict.accept == 1,
            reasons: verdict.reasons,
            journey_ns,
        };
        self.verdicts.store(verdict.seq as usize % VERDICTS_KEPT, &judgement.to_words());
    }

    pub(super) fn store_tally(&mut self, tally: &Tally) {
        self.tally.store(&tally.to_words());
    }

    pub(super) fn store_standing(&mut self, slot_index: usize, exposure: &Exposure, limits: Option<&Limits>) {
        let mut words = [exposure.position.0.cast_unsigned(), u64::from(exposure.open_orders), 0, 0, 0, 0, 0];
        if let Some(limits) = limits {
            words[2] = limits.qty_max.0.cast_unsigned();
            words[3] = u64::try_from(limits.notional_max.0).unwrap_or(u64::MAX);
            words[4] = limits.position_long_max.0.cast_unsigned();
            words[5] = u64::from(limits.open_orders_max);
        }
        self.standings.store(slot_index, &words);
    }

    /// Shows `stages` and `journey` unless a reader is copying just then.
    pub(super) fn try_store_timings(&self, stages: &Stages, journey: &Histogram) {
        if let Ok(mut timings) = self.timings.try_lock() {
            *timings = Timings { stages: *stages, journey: *journey };
        }
    }
}

impl Published {
    /// What the gate has done since it started.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally::from_words(&self.tally.load())
    }

    /// Intents pushed into the ring, and pushes that found it full.
    #[must_use]
    pub fn pushes(&self) -> (u64, u64) {
        let [pushed, full] = self.pushes.load();
        (pushed, full)
    }

    /// The latest verdicts, newest first.
    #[must_use]
    pub fn judgements(&self) -> Vec<Judgement> {
        let cells = (0..self.verdicts.len()).filter_map(|index| self.verdicts.load(index));
        let mut judgements: Vec<_> = cells.map(Judgement::from_words).filter(|judgement| judgement.seq > 0).collect();
        judgements.sort_unstable_by_key(|judgement| core::cmp::Reverse(judgement.seq));
        judgements
    }

    /// The account's exposure in every tradable instrument, in the order of [`super::RiskConfig::tradables`].
    pub fn standings(&self) -> impl Iterator<Item = (&Tradable, Standing)> {
        self.tradables.iter().enumerate().filter_map(|(index, tradable)| {
            let [position, open_orders, qty_max, notional_max, position_max, open_orders_max, _] =
                self.standings.load(index)?;
            let standing = Standing {
                position: position.cast_signed(),
                open_orders: open_orders as u32,
                qty_max: qty_max.cast_signed(),
                notional_max,
                position_max: position_max.cast_signed(),
                open_orders_max: open_orders_max as u32,
            };
            Some((tradable, standing))
        })
    }

    /// What was timed, a quarter of a second ago at most.
    #[must_use]
    pub fn timings(&self) -> Timings {
        *self.timings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_survives_its_words() {
        let judgement = Judgement {
            seq: 7,
            at_ns: 1 << 60,
            instrument: InstrumentId(3),
            side: OrderSide::Sell,
            px: Price(-5),
            qty: Qty(9),
            is_accepted: true,
            reasons: Breach::KILL_GLOBAL,
            journey_ns: 11,
        };
        assert_eq!(Judgement::from_words(judgement.to_words()), judgement);
    }

    #[test]
    fn a_tally_counts_every_reason_of_a_refusal_and_survives_its_words() {
        let mut tally = Tally::ZERO;
        let reasons = Breach::PRICE_TICK.union(Breach::SEQ_REPLAY);
        tally.count(&Verdict { reasons, ..Verdict::default() });
        tally.count(&Verdict { accept: 1, ..Verdict::default() });
        assert_eq!((tally.intents, tally.accepted, tally.refused), (2, 1, 1));
        assert_eq!((tally.reasons[9], tally.reasons[41], tally.reasons.iter().sum::<u64>()), (1, 1, 2));
        assert_eq!(Tally::from_words(&tally.to_words()), tally);
    }
}
