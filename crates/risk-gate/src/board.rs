//! What the gate publishes to other threads. Writers never wait for readers.

use std::sync::{Arc, Mutex, PoisonError};

use gate_limits::LimitsFile;
use tt_meter::{Histogram, Stages};
use tt_model::{Breach, Decimal, InstrumentId, OrderIntent, OrderSide, Price, Qty, Verdict, sort_short_by_key};
use tt_risk::tree::Node;
use tt_risk::{Exposure, Limits};
use tt_sync::seqlock::{self, Reader, TableReader, TableWriter, Writer};

use crate::levels::{Levels, LevelsWriter, levels};
use crate::quote::Quote;

/// Verdicts that are kept for readers.
pub(crate) const VERDICTS_KEPT: usize = 64;

/// Words of a verdict's cell.
const VERDICT_WORDS: usize = 10;

/// Words of a row's cell: exposure and limits.
const STATUS_WORDS: usize = 8;

/// Reasons that are counted, by bit.
pub(crate) const REASONS: usize = Breach::NAMES.len();

/// Words of the tally's cell.
const TALLY_WORDS: usize = 6 + REASONS;

/// An account in an instrument on the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardRow {
    /// The account.
    pub account: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The normalised symbol.
    pub symbol: String,
    /// The venue's name.
    pub venue: &'static str,
    /// The price step.
    pub tick_size: Decimal,
    /// The quantity step.
    pub lot_size: Decimal,
    /// The limits that the gate starts with; `None` if the gate has them already or gets them later.
    pub limits: Option<Limits>,
    /// The instrument's collar, as set in the gate.
    pub collar_bps: u32,
    /// The account's message rate, as set in the gate.
    pub rate_per_s: u32,
}

impl BoardRow {
    /// Returns the row of `account` in an instrument of `limits`, which the gate has.
    #[must_use]
    pub fn of(limits: &LimitsFile, account: u16, instrument: InstrumentId) -> Option<Self> {
        let of = limits.instrument(instrument)?;
        Some(Self {
            account,
            instrument,
            symbol: of.symbol.clone(),
            venue: "",
            tick_size: of.px_unit(),
            lot_size: of.qty_unit(),
            limits: None,
            collar_bps: of.all_accounts().collar_bps,
            rate_per_s: limits.account_rate(account).map_or(0, |rate| rate.per_second),
        })
    }
}

/// Counts since the gate started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Intents evaluated: `accepted + rejected`.
    pub intents: u64,
    /// Accepted intents.
    pub accepted: u64,
    /// Rejected intents.
    pub rejected: u64,
    /// Reports applied.
    pub updates: u64,
    /// Reports that the gate did not expect, such as those of unknown orders.
    pub update_errors: u64,
    /// Intents that were not evaluated, because there was no room for their verdicts.
    pub unjudged: u64,
    /// Reasons in rejected intents, by bit; an intent can have several.
    pub reasons: [u64; REASONS],
}

impl Tally {
    pub(crate) const ZERO: Self =
        Self { intents: 0, accepted: 0, rejected: 0, updates: 0, update_errors: 0, unjudged: 0, reasons: [0; REASONS] };

    pub(crate) fn count(&mut self, verdict: &Verdict) {
        self.intents += 1;
        if verdict.accept == 1 {
            self.accepted += 1;
            return;
        }
        self.rejected += 1;
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
            self.rejected,
            self.updates,
            self.update_errors,
            self.unjudged,
        ]);
        reasons.copy_from_slice(&self.reasons);
        words
    }

    fn from_words(words: &[u64; TALLY_WORDS]) -> Self {
        let mut reasons = [0; REASONS];
        reasons.copy_from_slice(&words[6..]);
        let [intents, accepted, rejected, updates, update_errors, unjudged] = words[..6] else {
            return Self::ZERO;
        };
        Self { intents, accepted, rejected, updates, update_errors, unjudged, reasons }
    }
}

/// A verdict with its intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The gate's sequence number, from 1.
    pub seq: u64,
    /// When the verdict was made, Unix epoch, nanoseconds.
    pub at_ns: u64,
    /// The account.
    pub account: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The side.
    pub side: OrderSide,
    /// The limit price.
    pub px: Price,
    /// The quantity.
    pub qty: Qty,
    /// Whether the intent was accepted.
    pub is_accepted: bool,
    /// Every reason that was found.
    pub reasons: Breach,
    /// Time from [`OrderIntent::ts_ns`] to the verdict.
    pub journey_ns: u64,
    /// [`Quote::update_id`] of the quote that the gate read for the intent; zero without one.
    pub book_update_id: u64,
    /// When that book was received, Unix epoch, nanoseconds; zero without one.
    pub book_ns: u64,
}

impl Judgement {
    fn to_words(self) -> [u64; VERDICT_WORDS] {
        let side = u64::from(self.side == OrderSide::Sell);
        [
            self.seq,
            self.at_ns,
            u64::from(self.instrument.0),
            side | u64::from(self.is_accepted) << 1 | u64::from(self.account) << 2,
            self.px.0.cast_unsigned(),
            self.qty.0.cast_unsigned(),
            self.reasons.0,
            self.journey_ns,
            self.book_update_id,
            self.book_ns,
        ]
    }

    fn from_words(words: [u64; VERDICT_WORDS]) -> Self {
        let [seq, at_ns, instrument, bits, px, qty, reasons, journey_ns, book_update_id, book_ns] = words;
        Self {
            seq,
            at_ns,
            account: (bits >> 2) as u16,
            instrument: InstrumentId(u32::try_from(instrument).unwrap_or(u32::MAX)),
            side: if bits & 1 == 1 { OrderSide::Sell } else { OrderSide::Buy },
            px: Price(px.cast_signed()),
            qty: Qty(qty.cast_signed()),
            is_accepted: bits >> 1 & 1 == 1,
            reasons: Breach(reasons),
            journey_ns,
            book_update_id,
            book_ns,
        }
    }
}

/// Exposure and limits of a row. Quantities are in lots; limits are zero before they are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountStatus {
    /// Position.
    pub position: i64,
    /// Open orders.
    pub open_orders: u32,
    /// Maximum quantity of an order.
    pub qty_max: i64,
    /// Maximum notional of an order, in price steps times lots; saturates.
    pub notional_max: u64,
    /// Maximum long position.
    pub position_long_max: i64,
    /// Maximum short position, as a positive number.
    pub position_short_max: i64,
    /// Maximum open quantity per side.
    pub open_qty_max: i64,
    /// Maximum number of open orders.
    pub open_orders_max: u32,
}

impl AccountStatus {
    fn of(exposure: &Exposure, limits: Option<&Limits>) -> Self {
        let status = Self { position: exposure.position.0, open_orders: exposure.open_orders, ..Self::default() };
        limits.map_or(status, |limits| Self {
            qty_max: limits.qty_max.0,
            notional_max: u64::try_from(limits.notional_max.0).unwrap_or(u64::MAX),
            position_long_max: limits.position_long_max.0,
            position_short_max: limits.position_short_max.0,
            open_qty_max: limits.open_qty_max.0,
            open_orders_max: limits.open_orders_max,
            ..status
        })
    }

    fn to_words(self) -> [u64; STATUS_WORDS] {
        [
            self.position.cast_unsigned(),
            u64::from(self.open_orders),
            self.qty_max.cast_unsigned(),
            self.notional_max,
            self.position_long_max.cast_unsigned(),
            self.position_short_max.cast_unsigned(),
            self.open_qty_max.cast_unsigned(),
            u64::from(self.open_orders_max),
        ]
    }

    fn from_words(words: [u64; STATUS_WORDS]) -> Self {
        let [position, open_orders, qty_max, notional_max, long, short, open_qty, open_orders_max] = words;
        Self {
            position: position.cast_signed(),
            open_orders: open_orders as u32,
            qty_max: qty_max.cast_signed(),
            notional_max,
            position_long_max: long.cast_signed(),
            position_short_max: short.cast_signed(),
            open_qty_max: open_qty.cast_signed(),
            open_orders_max: open_orders_max as u32,
        }
    }
}

/// Times of evaluations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Stages and passes of the evaluation, in cycles.
    pub stages: Stages,
    /// Times from [`OrderIntent::ts_ns`] to the verdict, in nanoseconds.
    pub journey: Histogram,
}

/// What the gate publishes, for any thread.
#[derive(Debug)]
pub struct Board {
    pub(crate) rows: Vec<BoardRow>,
    pub(crate) ring_slots: usize,
    pub(crate) sample_one_in: u32,
    tally: Reader<TALLY_WORDS>,
    pushes: Reader<2>,
    verdicts: TableReader<VERDICT_WORDS>,
    account_statuses: TableReader<STATUS_WORDS>,
    pub(crate) levels: Levels,
    timings: Arc<Mutex<Timings>>,
}

/// The gate's side of the board.
pub(crate) struct BoardWriter {
    rows: Vec<(u16, InstrumentId, Option<Limits>)>,
    tally: Writer<TALLY_WORDS>,
    verdicts: TableWriter<VERDICT_WORDS>,
    account_statuses: TableWriter<STATUS_WORDS>,
    levels: LevelsWriter,
    timings: Arc<Mutex<Timings>>,
}

/// Creates the gate's side, the intent sender's side (pushes, and pushes into a full ring), and the readers' side.
pub(crate) fn board(
    rows: Vec<BoardRow>,
    limits: Option<&LimitsFile>,
    ring_slots: usize,
    sample_one_in: u32,
) -> (BoardWriter, Writer<2>, Board) {
    let (levels_writer, levels) = levels(rows.iter().map(|row| row.instrument).collect(), limits);
    let (tally_writer, tally) = seqlock::cell([0; TALLY_WORDS]);
    let (pushes_writer, pushes) = seqlock::cell([0; 2]);
    let (verdicts_writer, verdicts) = seqlock::table(VERDICTS_KEPT, [0; VERDICT_WORDS]);
    let (statuses_writer, account_statuses) = seqlock::table(rows.len(), [0; STATUS_WORDS]);
    let timings = Arc::new(Mutex::new(Timings::default()));
    let writer = BoardWriter {
        rows: rows.iter().map(|row| (row.account, row.instrument, row.limits)).collect(),
        tally: tally_writer,
        verdicts: verdicts_writer,
        account_statuses: statuses_writer,
        levels: levels_writer,
        timings: Arc::clone(&timings),
    };
    (
        writer,
        pushes_writer,
        Board { rows, ring_slots, sample_one_in, tally, pushes, verdicts, account_statuses, levels, timings },
    )
}

impl BoardWriter {
    pub(crate) fn store_verdict(&mut self, verdict: &Verdict, intent: &OrderIntent, quote: &Quote, journey_ns: u64) {
        let judgement = Judgement {
            seq: verdict.seq,
            at_ns: verdict.now_ns,
            account: intent.account,
            instrument: intent.instrument,
            side: intent.side,
            px: intent.limit_px,
            qty: intent.qty,
            is_accepted: verdict.accept == 1,
            reasons: verdict.reasons,
            journey_ns,
            book_update_id: quote.update_id,
            book_ns: quote.ts_recv.0,
        };
        self.verdicts.store(verdict.seq as usize % VERDICTS_KEPT, &judgement.to_words());
    }

    pub(crate) fn store_tally(&mut self, tally: &Tally) {
        self.tally.store(&tally.to_words());
    }

    /// Sets the limits of a row; the next [`store_account_statuses`](Self::store_account_statuses) publishes them.
    pub(crate) fn set_limits(&mut self, account: u16, instrument: InstrumentId, limits: &Limits) {
        for row in self.rows.iter_mut().filter(|row| (row.0, row.1) == (account, instrument)) {
            row.2 = Some(*limits);
        }
    }

    /// Sets the limits of every row as [`set_limits`](Self::set_limits) does.
    pub(crate) fn replace_limits(&mut self, limits: &LimitsFile, now_ns: u64) {
        for (account, instrument, of) in &mut self.rows {
            *of = limits.limits_of(*account, *instrument, now_ns);
        }
        self.levels.replace_limits(limits, now_ns);
    }

    /// Sets the limits of the rows that have none.
    pub(crate) fn fill_limits(&mut self, limits: &LimitsFile, now_ns: u64) {
        for (account, instrument, of) in self.rows.iter_mut().filter(|row| row.2.is_none()) {
            *of = limits.limits_of(*account, *instrument, now_ns);
        }
        self.levels.replace_limits(limits, now_ns);
    }

    pub(crate) fn store_levels(&mut self, held: impl Fn(Node, InstrumentId) -> Option<Exposure>) {
        self.levels.store(held);
    }

    pub(crate) fn store_account_statuses(&mut self, exposure: impl Fn(u16, InstrumentId) -> Option<Exposure>) {
        for (index, (account, instrument, limits)) in self.rows.iter().enumerate() {
            let exposure = exposure(*account, *instrument).unwrap_or_default();
            self.account_statuses.store(index, &AccountStatus::of(&exposure, limits.as_ref()).to_words());
        }
    }

    /// Publishes `stages` and `journey` unless a reader holds the lock.
    pub(crate) fn try_store_timings(&self, stages: &Stages, journey: &Histogram) {
        if let Ok(mut timings) = self.timings.try_lock() {
            *timings = Timings { stages: *stages, journey: *journey };
        }
    }
}

impl Board {
    /// Returns the counts since the gate started.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally::from_words(&self.tally.load())
    }

    /// Returns the number of intents pushed into the ring, and of pushes into a full ring.
    #[must_use]
    pub fn pushes(&self) -> (u64, u64) {
        let [pushed, full] = self.pushes.load();
        (pushed, full)
    }

    /// Returns the latest verdicts, newest first.
    #[must_use]
    pub fn judgements(&self) -> Vec<Judgement> {
        let cells = (0..self.verdicts.len()).filter_map(|index| self.verdicts.load(index));
        let mut judgements: Vec<_> = cells.map(Judgement::from_words).filter(|judgement| judgement.seq > 0).collect();
        sort_short_by_key(&mut judgements, |judgement| core::cmp::Reverse(judgement.seq));
        judgements
    }

    /// Returns each row with its exposure and limits, in the order of [`GateConfig::rows`](crate::GateConfig::rows).
    pub fn account_statuses(&self) -> impl Iterator<Item = (&BoardRow, AccountStatus)> {
        let status = |index| self.account_statuses.load(index).map(AccountStatus::from_words);
        self.rows.iter().enumerate().filter_map(move |(index, row)| Some((row, status(index)?)))
    }

    /// Returns the times of evaluations.
    #[must_use]
    pub fn timings(&self) -> Timings {
        *self.timings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_is_read_as_written() {
        let judgement = Judgement {
            seq: 7,
            at_ns: 1 << 60,
            account: u16::MAX - 1,
            instrument: InstrumentId(3),
            side: OrderSide::Sell,
            px: Price(-5),
            qty: Qty(9),
            is_accepted: true,
            reasons: Breach::KILL_GLOBAL,
            journey_ns: 11,
            book_update_id: 13,
            book_ns: u64::MAX - 17,
        };
        assert_eq!(Judgement::from_words(judgement.to_words()), judgement);
    }

    #[test]
    fn a_tally_counts_every_reason_and_is_read_as_written() {
        let mut tally = Tally::ZERO;
        let reasons = Breach::PRICE_TICK.union(Breach::SEQ_REPLAY);
        tally.count(&Verdict { reasons, ..Verdict::default() });
        tally.count(&Verdict { accept: 1, ..Verdict::default() });
        assert_eq!((tally.intents, tally.accepted, tally.rejected), (2, 1, 1));
        assert_eq!((tally.reasons[9], tally.reasons[41], tally.reasons.iter().sum::<u64>()), (1, 1, 2));
        assert_eq!(Tally::from_words(&tally.to_words()), tally);
    }

    /// Every field has another value.
    #[test]
    fn a_standing_has_every_field_of_exposure_and_limits() {
        let limits = Limits {
            px_step: Price(1),
            qty_step: Qty(2),
            qty_min: Qty(3),
            qty_max: Qty(4),
            notional_min: tt_model::Notional(5),
            notional_max: tt_model::Notional(6),
            position_long_max: Qty(7),
            position_short_max: Qty(8),
            open_qty_max: Qty(9),
            open_orders_max: 10,
            enabled: Limits::CHECKED,
        };
        let exposure = Exposure { position: Qty(-11), open_buy_qty: Qty(12), open_sell_qty: Qty(13), open_orders: 14 };
        let status = AccountStatus::of(&exposure, Some(&limits));
        let expected = AccountStatus {
            position: -11,
            open_orders: 14,
            qty_max: 4,
            notional_max: 6,
            position_long_max: 7,
            position_short_max: 8,
            open_qty_max: 9,
            open_orders_max: 10,
        };
        assert_eq!(status, expected);
        assert_eq!(AccountStatus::from_words(status.to_words()), expected);
    }
}
