//! The branch-free core: tables of limits, exposures, marks and rates, and the checks that need no single order.

use crate::{
    controls::Controls,
    counters::Counters,
    error::GateError,
    exposure::{Exposure, State},
    instrument::{Book, InstrumentLimits, Mark, Market, Quoted},
    limits::{Limits, Prepared},
    outcome::Outcome,
    rate::{Bucket, Rate},
};
use alloc::{boxed::Box, sync::Arc, vec};
use core::hint::select_unpredictable;
use tt_meter::{Probe, Stage};
use tt_model::{Breach, InstrumentId, IntentFlags, IntentKind, Notes, OrderIntent, Verdict};
use tt_simd::prefetch_lines;

/// Limits and state of one account in one instrument: three adjacent cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Row {
    pub(crate) limits: Prepared,
    pub(crate) state: State,
}

const _: () = assert!(size_of::<Row>() == 192);

/// Reasons that apply to an intent, by the low bits of its kind: limit, market, cancel, limit. A market order has no
/// limit price, so neither the price step nor the collar applies.
const CONCERNS: [u64; 4] = [
    Limits::PLAIN.0,
    Limits::PLAIN.0 & !(Breach::PRICE_TICK.0 | Breach::COLLAR_REF.0),
    Breach::INSTRUMENT_UNKNOWN.0 | Breach::NOT_PERMITTED.0,
    Limits::PLAIN.0,
];

/// Every message rate.
const RATES: u64 = Breach::RATE_ACCOUNT.0 | Breach::RATE_INSTRUMENT.0 | Breach::RATE_GLOBAL.0;

/// The part of the gate that stores no single order, without a data-dependent branch.
///
/// It is what the published rows `evaluator` time. [`Gate`](crate::Gate) adds orders, reports, ids and modes to it, and is
/// the one to put in front of a venue.
#[derive(Debug)]
pub struct Evaluator {
    accounts: u16,
    instruments: u32,
    pub(crate) controls: Arc<Controls>,
    /// By account, then instrument; the last row is for unknown accounts and instruments.
    pub(crate) rows: Box<[Row]>,
    /// By instrument; the last is for unknown instruments.
    pub(crate) markets: Box<[Market]>,
    /// By account; the last is for unknown accounts.
    pub(crate) account_rates: Box<[Bucket]>,
    pub(crate) global_rate: Bucket,
    limits_version: u32,
    counters: Counters,
    /// The source of `markets`.
    marks: Box<[(InstrumentLimits, Mark)]>,
}

impl Evaluator {
    /// Creates an evaluator that rejects every order. Only this function allocates.
    ///
    /// # Panics
    /// The tables do not fit into the address space.
    #[must_use]
    pub fn new(accounts: u16, instruments: u32) -> Self {
        let known = usize::from(accounts).checked_mul(instruments as usize);
        let known = known.expect("accounts times instruments fit into memory");
        let row = |barred| Row { limits: Prepared::NONE, state: State::barred(barred) };
        let mut rows = vec![row(Breach::NOT_PERMITTED); known + 1];
        rows[known] = row(Breach::INSTRUMENT_UNKNOWN.union(Breach::NOT_PERMITTED));
        let limits = InstrumentLimits { collar_bps: 0, mark_age_max_ns: 0, rate: Rate { per_second: 0, burst: 0 } };
        let mark = Mark::default();
        Self {
            accounts,
            instruments,
            controls: Arc::new(Controls::new(instruments)),
            rows: rows.into_boxed_slice(),
            markets: vec![Market::UNKNOWN; instruments as usize + 1].into_boxed_slice(),
            account_rates: vec![Bucket::CLOSED; usize::from(accounts) + 1].into_boxed_slice(),
            global_rate: Bucket::CLOSED,
            limits_version: 0,
            counters: Counters::ZERO,
            marks: vec![(limits, mark); instruments as usize].into_boxed_slice(),
        }
    }

    /// Returns the kill switches and the version of the limits, for other threads.
    #[must_use]
    pub fn controls(&self) -> Arc<Controls> {
        Arc::clone(&self.controls)
    }

    /// Returns the counts of verdicts since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Replaces all limits of `account` in `instrument`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::LimitOutOfRange`].
    pub fn set_limits(&mut self, account: u16, instrument: InstrumentId, limits: &Limits) -> Result<u32, GateError> {
        let prepared = Prepared::of(limits)?;
        let index = self.known_row(account, instrument)?;
        let row = &mut self.rows[index];
        row.limits = prepared;
        row.state.set_limited();
        Ok(self.next_version())
    }

    /// Replaces the limits of `instrument` for all accounts; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_instrument_limits(
        &mut self,
        instrument: InstrumentId,
        limits: &InstrumentLimits,
    ) -> Result<u32, GateError> {
        let (kept, mark) = self.marks.get_mut(instrument.0 as usize).ok_or(GateError::Unknown)?;
        let market = self.markets.get_mut(instrument.0 as usize).ok_or(GateError::Unknown)?;
        *kept = *limits;
        market.rate.set(limits.rate);
        market.set(mark, limits);
        Ok(self.next_version())
    }

    /// Replaces the message rate of `account`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_account_rate(&mut self, account: u16, rate: Rate) -> Result<u32, GateError> {
        if account >= self.accounts {
            return Err(GateError::Unknown);
        }
        self.account_rates[usize::from(account)].set(rate);
        Ok(self.next_version())
    }

    /// Replaces the message rate of all accounts together; returns the new version of the limits.
    pub fn set_global_rate(&mut self, rate: Rate) -> u32 {
        self.global_rate.set(rate);
        self.next_version()
    }

    /// Sets the exposure of `account` in `instrument`; orders are rejected before the first call.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::QtyOutOfRange`].
    pub fn restore(&mut self, account: u16, instrument: InstrumentId, exposure: &Exposure) -> Result<(), GateError> {
        let index = self.known_row(account, instrument)?;
        self.rows[index].state.restore(exposure)
    }

    /// Returns the exposure of `account` in `instrument`; `None` outside the capacity.
    #[must_use]
    pub fn exposure(&self, account: u16, instrument: InstrumentId) -> Option<Exposure> {
        let (index, known) = self.row_index(account, instrument);
        known.then(|| self.rows[index].state.exposure())
    }

    /// Sets the reference price of `instrument`.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_reference(&mut self, instrument: InstrumentId, mark: &Mark) -> Result<(), GateError> {
        let (limits, kept) = self.marks.get_mut(instrument.0 as usize).ok_or(GateError::Unknown)?;
        *kept = *mark;
        self.markets[instrument.0 as usize].set(mark, limits);
        Ok(())
    }

    /// Evaluates `intent` at `now_ns` for the reasons in `PROFILE` and [`Limits::CORE`] only; the others cost nothing.
    ///
    /// An accepted intent is added to the exposure and the rates. A rate that is not in `PROFILE` does not count the intent
    /// either. `now_ns` is on the clock of [`Mark::ts_ns`]. If the clock steps back, the rates become stricter, never wider.
    #[inline(always)]
    pub fn evaluate_profile<const PROFILE: u64>(
        &mut self,
        now_ns: u64,
        intent: &OrderIntent,
        probe: &mut impl Probe,
    ) -> Verdict {
        const { assert!(PROFILE & !Limits::PLAIN.0 == 0, "the evaluator stores no orders") };
        probe.begin();
        let concerns = CONCERNS[usize::from(intent.kind.0 & 3)] & (PROFILE | Limits::CORE.0);
        probe.mark(Stage::Parse);

        let (index, _) = self.row_index(intent.account, intent.instrument);
        let account = self.account_index(intent.account);
        let instrument = self.instrument_index(intent.instrument);
        probe.mark(Stage::Validate);

        let kills = self.controls.kill_bits(intent.account, intent.strategy, instrument);
        probe.mark(Stage::LookUp);

        let is_market = intent.kind == IntentKind::MARKET;
        let px = select_unpredictable(is_market, self.markets[instrument].ref_px, intent.limit_px.0);
        let row = &mut self.rows[index];
        let market = &mut self.markets[instrument];
        let account_rate = &mut self.account_rates[account];
        let checks = OrderChecks::of(row, market, intent, Priced { px, adds: intent.qty.0 });
        let now = rates(now_ns, &self.global_rate, market, account_rate);
        let found = checks.found | now | row.state.barred | market.unverified() | kills;
        let reasons = found & concerns;
        let rejecting = reasons & row.limits.enabled;
        // All ones if the intent becomes an open order, else zero: nothing changes.
        let takes = (u64::from(rejecting == 0) & concerns & Breach::KILL_GLOBAL.0).wrapping_neg();
        row.state.take(intent, takes);
        let counts = |rate: Breach| takes & u64::from(PROFILE & rate.0 != 0).wrapping_neg();
        account_rate.count(now_ns, counts(Breach::RATE_ACCOUNT));
        market.rate.count(now_ns, counts(Breach::RATE_INSTRUMENT));
        self.global_rate.count(now_ns, counts(Breach::RATE_GLOBAL));
        probe.mark(Stage::Build);

        let first_bit = rejecting.trailing_zeros();
        let verdict = Verdict {
            seq: self.counters.count(first_bit),
            intent_seq: intent.seq,
            client_id: intent.client_id,
            reasons: Breach(reasons),
            now_ns,
            worst_pos: checks.worst_pos,
            generation: 0,
            limits_version: self.limits_version,
            first_bit: first_bit as u8,
            first_level: 0,
            accept: u8::from(rejecting == 0),
            notes: Notes(0),
            producer: 0,
            zero: 0,
        };
        probe.mark(Stage::Serialize);
        probe.end();
        verdict
    }

    /// Returns the reasons of the core against an order that adds lots to its side, and its worst position; changes nothing.
    /// Reasons from prices and sizes are missing: they depend on the order's kind.
    #[inline(always)]
    pub(crate) fn find(&self, now_ns: u64, intent: &OrderIntent, adds: i64) -> Checked {
        let (index, _) = self.row_index(intent.account, intent.instrument);
        let instrument = self.instrument_index(intent.instrument);
        let (row, market) = (&self.rows[index], &self.markets[instrument]);
        let Row { limits, .. } = row;
        let worst = Worst::of(&row.state, intent, adds);
        let is_off_step = !limits.qty_step.divides(limits.qty_zeros, intent.qty.0.unsigned_abs());
        let checks = Found::NONE.add(is_off_step, Breach::QTY_STEP).mask() | worst.found(row, intent, adds);
        let now = rates(now_ns, &self.global_rate, market, &self.account_rates[self.account_index(intent.account)]);
        let kills = self.controls.kill_bits(intent.account, intent.strategy, instrument);
        Checked {
            reasons: checks | now | row.state.barred | market.unverified() | kills,
            worst: worst.lots,
            worst_pos: worst.position(),
        }
    }

    /// Asks for what [`find`](Self::find) reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: usize, instrument: usize) {
        prefetch_lines(&self.rows[row]);
        prefetch_lines(&self.markets[instrument]);
        prefetch_lines(&self.marks[instrument]);
        self.controls.prefetch(instrument);
    }

    /// Returns the mark and the book of the instrument at `index`.
    pub(crate) fn quoted(&self, index: usize) -> Quoted<'_> {
        let book = self.marks.get(index).map(|(limits, mark)| Book {
            bid_px: mark.bid_px.0,
            ask_px: mark.ask_px.0,
            collar_bps: limits.collar_bps,
            proof_ns: mark.proof_ns,
        });
        Quoted { market: &self.markets[index], book: book.unwrap_or_default() }
    }

    /// Counts a verdict under its first reason; returns its number.
    pub(crate) fn count(&mut self, first_bit: u32) -> u64 {
        self.counters.count(first_bit)
    }

    /// Counts a report under its outcome.
    pub(crate) fn count_report(&mut self, outcome: Outcome) {
        self.counters.reports[outcome as usize] += 1;
    }

    /// Counts an accepted message against every rate.
    pub(crate) fn count_message(&mut self, now_ns: u64, intent: &OrderIntent) {
        let (account, instrument) = (self.account_index(intent.account), self.instrument_index(intent.instrument));
        self.account_rates[account].count(now_ns, u64::MAX);
        self.markets[instrument].rate.count(now_ns, u64::MAX);
        self.global_rate.count(now_ns, u64::MAX);
    }

    #[inline(always)]
    pub(crate) fn account_index(&self, account: u16) -> usize {
        usize::from(account.min(self.accounts))
    }

    #[inline(always)]
    pub(crate) fn instrument_index(&self, instrument: InstrumentId) -> usize {
        instrument.0.min(self.instruments) as usize
    }

    /// Returns the version of the limits.
    pub(crate) const fn limits_version(&self) -> u32 {
        self.limits_version
    }

    /// Returns the row's index and whether it is known; else the index of the row for unknowns.
    #[inline(always)]
    pub(crate) fn row_index(&self, account: u16, instrument: InstrumentId) -> (usize, bool) {
        let known = (account < self.accounts) & (instrument.0 < self.instruments);
        let index = usize::from(account).wrapping_mul(self.instruments as usize).wrapping_add(instrument.0 as usize);
        let unknown = self.rows.len() - 1;
        (unknown ^ ((unknown ^ index) & usize::from(known).wrapping_neg()), known)
    }

    pub(crate) fn known_row(&self, account: u16, instrument: InstrumentId) -> Result<usize, GateError> {
        let (index, known) = self.row_index(account, instrument);
        if known { Ok(index) } else { Err(GateError::Unknown) }
    }

    pub(crate) fn next_version(&mut self) -> u32 {
        self.set_version(self.limits_version.wrapping_add(1));
        self.limits_version
    }

    pub(crate) fn set_version(&mut self, version: u32) {
        self.limits_version = version;
        self.controls.publish_limits_version(version);
    }
}

/// The price at which an order is checked, and the lots by which it raises the reservation of its side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priced {
    pub(crate) px: i64,
    pub(crate) adds: i64,
}

/// What [`Evaluator::find`] found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) reasons: u64,
    /// The worst position as seen from the order's side.
    pub(crate) worst: i64,
    /// The worst position, negative if short.
    pub(crate) worst_pos: i64,
}

/// Reasons from the time: rates, and the age of the mark.
#[inline(always)]
pub(crate) fn rates(now_ns: u64, global: &Bucket, market: &Market, account: &Bucket) -> u64 {
    let found = Found::NONE
        .add(global.is_early(now_ns), Breach::RATE_GLOBAL)
        .add(market.rate.is_early(now_ns), Breach::RATE_INSTRUMENT)
        .add(account.is_early(now_ns), Breach::RATE_ACCOUNT)
        .add(market.is_stale(now_ns), Breach::MD_STALE);
    found.mask() | (now_ns.cast_signed() >> 63).cast_unsigned() & RATES
}

/// The worst position with an order and all open orders of its side.
#[derive(Clone, Copy)]
struct Worst {
    /// As seen from the order's side.
    lots: i64,
    /// -1 for a sell, else 0.
    flip: i64,
    open_qty: i64,
}

impl Worst {
    #[inline(always)]
    fn of(state: &State, intent: &OrderIntent, adds: i64) -> Self {
        let side = intent.side as usize;
        // From the order's side: a buy adds to a long position, a sell to a short one.
        let flip = -(side as i64);
        let own = (state.position ^ flip).wrapping_sub(flip);
        let open_qty = state.open_qty[side];
        Self { lots: own.wrapping_add(open_qty).saturating_add(adds), flip, open_qty }
    }

    /// Returns the reasons from it, and from the open orders.
    #[inline(always)]
    fn found(self, Row { limits, state }: &Row, intent: &OrderIntent, adds: i64) -> u64 {
        let side = intent.side as usize;
        let open_qty = self.open_qty.wrapping_add(adds);
        let open = Found::NONE
            .add(open_qty.cast_unsigned() > limits.open_qty_max.cast_unsigned(), Breach::OPEN_QTY)
            .add(state.open_orders >= limits.open_orders_max, Breach::OPEN_ORDERS);
        open.mask() | Found::NONE.add(self.lots > limits.position_max[side], Breach::POS_LONG).mask() << side
    }

    /// Returns it negative if short.
    #[inline(always)]
    const fn position(self) -> i64 {
        (self.lots ^ self.flip).wrapping_sub(self.flip)
    }
}

/// Reasons from price, quantity and position.
pub(crate) struct OrderChecks {
    pub(crate) found: u64,
    worst_pos: i64,
}

impl OrderChecks {
    #[inline(always)]
    pub(crate) fn of(row: &Row, market: &Market, intent: &OrderIntent, Priced { px, adds }: Priced) -> Self {
        let Row { limits, .. } = row;
        let qty = intent.qty.0;
        let notional = u128::from(px.unsigned_abs()) * u128::from(qty.unsigned_abs());
        let worst = Worst::of(&row.state, intent, adds);
        let opens = worst.lots > 0;
        let closing = intent.flags.contains(IntentFlags::CLOSE_POSITION) & !opens;

        let size = Found::NONE
            .add((notional < limits.notional_min) & !closing, Breach::NOTIONAL_MIN)
            .add((qty <= limits.qty_above) & !closing | (qty <= 0), Breach::QTY_MIN)
            .add(intent.flags.contains(IntentFlags::REDUCE_ONLY) & opens, Breach::REDUCE_ONLY_FLIP);
        let order = Found::NONE
            .add(px.wrapping_sub(market.px_low).cast_unsigned() >= market.px_count, Breach::COLLAR_REF)
            .add(notional > limits.notional_max, Breach::NOTIONAL_MAX)
            .add(qty > limits.qty_max, Breach::QTY_MAX)
            .add(!limits.qty_step.divides(limits.qty_zeros, qty.unsigned_abs()), Breach::QTY_STEP)
            .add(px <= 0, Breach::PRICE_NONPOS)
            .add(!limits.px_step.divides(limits.px_zeros, px.unsigned_abs()), Breach::PRICE_TICK);
        let found = size.mask() | order.mask() | worst.found(row, intent, adds);
        Self { found, worst_pos: worst.position() }
    }
}

/// A mask of reasons, built from the highest bit down: each reason shifts the ones before it. This compiles to compare
/// and add with carry, half the instructions of `or` of shifted flags.
#[derive(Clone, Copy)]
struct Found {
    bits: u64,
    /// The bit number in the mask of bit 0 of `bits`.
    lowest: u32,
}

impl Found {
    const NONE: Self = Self { bits: 0, lowest: 63 };

    #[inline(always)]
    const fn add(self, found: bool, reason: Breach) -> Self {
        let lowest = reason.0.trailing_zeros();
        Self { bits: (self.bits << (self.lowest - lowest)) + found as u64, lowest }
    }

    #[inline(always)]
    const fn mask(self) -> u64 {
        self.bits << self.lowest
    }
}

crate::fields::visit!(Row: limits, state);
crate::fields::visit!(
    Evaluator: accounts, instruments, controls, rows, markets, account_rates, global_rate, limits_version, counters, marks
);
