//! The gate: tables of limits and exposures, and the evaluation.

use crate::{
    client_ids::{ClientIds, IdPlace},
    controls::Controls,
    counters::Counters,
    error::GateError,
    exposure::{Cancel, Exposure, Fill, State},
    instrument::{InstrumentLimits, Mark, Market},
    limits::{LOTS_CEILING, Limits, Prepared},
    own_orders::{Own, OwnOrder, OwnOrders, OwnPlace},
    rate::{Bucket, Rate},
};
use alloc::{boxed::Box, sync::Arc, vec};
use core::hint::select_unpredictable;
use tt_meter::{Probe, Stage};
use tt_model::{Breach, InstrumentId, IntentFlags, IntentKind, OrderIntent, Price, Qty, Verdict};

/// Sizes of the gate's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Accounts, numbered from 0.
    pub accounts: u16,
    /// Instruments, numbered from 0.
    pub instruments: u32,
    /// Client ids that an account uses within the window of [`Gate::set_id_window`]; each takes 128 bytes. At this number
    /// about one further order in 100,000 does not fit: it is rejected with `DUP_ID` and counted. With zero, `DUP_ID`
    /// rejects every order.
    pub client_ids: u32,
    /// Open orders of an account in an instrument, below 65,535; each takes 32 bytes. If the table is full, `SELF_MATCH`
    /// rejects and counts every further order; with zero it rejects every order.
    pub own_orders: u16,
}

/// Limits and state of one account in one instrument: three adjacent cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Row {
    limits: Prepared,
    state: State,
}

const _: () = assert!(size_of::<Row>() == 192);

/// Reasons that apply to an intent, by its kind: limit, market, cancel. A market order has no limit price, so neither
/// the price step nor the collar applies.
const CONCERNS: [u64; 3] = [
    Limits::CHECKED.0,
    Limits::CHECKED.0 & !(Breach::PRICE_TICK.0 | Breach::COLLAR_REF.0),
    Breach::INSTRUMENT_UNKNOWN.0 | Breach::NOT_PERMITTED.0,
];

/// Every message rate.
const RATES: u64 = Breach::RATE_ACCOUNT.0 | Breach::RATE_INSTRUMENT.0 | Breach::RATE_GLOBAL.0;

/// A pre-trade gate: limits and exposures of every account in every instrument.
#[derive(Debug)]
pub struct Gate {
    capacity: Capacity,
    controls: Arc<Controls>,
    /// By account, then instrument; the last row is for unknown accounts and instruments.
    rows: Box<[Row]>,
    /// By instrument; the last is for unknown instruments.
    markets: Box<[Market]>,
    /// By account; the last is for unknown accounts.
    account_rates: Box<[Bucket]>,
    global_rate: Bucket,
    limits_version: u32,
    counters: Counters,
    client_ids: ClientIds,
    /// By row.
    own_orders: OwnOrders,
    /// The source of `markets`.
    marks: Box<[(InstrumentLimits, Mark)]>,
}

impl Gate {
    /// Creates a gate that rejects every order. Only this function allocates.
    ///
    /// # Panics
    /// The tables do not fit into the address space.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        let accounts = usize::from(capacity.accounts);
        let instruments = capacity.instruments as usize;
        let known = accounts.checked_mul(instruments).expect("accounts times instruments fit into memory");
        let row = |barred| Row { limits: Prepared::NONE, state: State::barred(barred) };
        let mut rows = vec![row(Breach::NOT_PERMITTED); known + 1];
        rows[known] = row(Breach::INSTRUMENT_UNKNOWN.union(Breach::NOT_PERMITTED));
        let limits = InstrumentLimits { collar_bps: 0, mark_age_max_ns: 0, rate: Rate { per_second: 0, burst: 0 } };
        let mark = Mark { ref_px: Price(0), ts_ns: 0, is_verified: false };
        Self {
            capacity,
            controls: Arc::new(Controls::new(capacity.instruments)),
            rows: rows.into_boxed_slice(),
            markets: vec![Market::UNKNOWN; instruments + 1].into_boxed_slice(),
            account_rates: vec![Bucket::CLOSED; accounts + 1].into_boxed_slice(),
            global_rate: Bucket::CLOSED,
            limits_version: 0,
            counters: Counters::ZERO,
            client_ids: ClientIds::new(capacity.accounts, capacity.client_ids),
            own_orders: OwnOrders::new(known + 1, capacity.own_orders),
            marks: vec![(limits, mark); instruments].into_boxed_slice(),
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
        if account >= self.capacity.accounts {
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

    /// Sets how long a client id counts as used after its order was accepted; returns the new version of the limits.
    ///
    /// The default is forever. The window applies to orders that are accepted from now on.
    pub fn set_id_window(&mut self, window_ns: u64) -> u32 {
        self.client_ids.window_ns = window_ns;
        self.next_version()
    }

    /// Sets the exposure of `account` in `instrument`; orders are rejected before the first call.
    ///
    /// This clears the account's open orders in the instrument. Pass each of `exposure.open_orders` orders to
    /// [`restore_order`](Self::restore_order); until then every order has the reason `SELF_MATCH`.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::QtyOutOfRange`].
    pub fn restore(&mut self, account: u16, instrument: InstrumentId, exposure: &Exposure) -> Result<(), GateError> {
        let index = self.known_row(account, instrument)?;
        let state = &mut self.rows[index].state;
        state.restore(exposure)?;
        self.own_orders.clear(index, &mut state.own, exposure.open_orders);
        Ok(())
    }

    /// Adds one of the open orders that [`restore`](Self::restore) counted.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::UnknownOrder`] if no counted order is left, [`GateError::Full`].
    pub fn restore_order(&mut self, account: u16, instrument: InstrumentId, order: &OwnOrder) -> Result<(), GateError> {
        let index = self.known_row(account, instrument)?;
        self.own_orders.restore(index, &mut self.rows[index].state.own, order)
    }

    /// Marks `client_id` as used by `account` at `used_ns`, on the clock of [`evaluate`](Self::evaluate).
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::Full`].
    pub fn restore_id(&mut self, account: u16, client_id: u64, used_ns: u64) -> Result<(), GateError> {
        if account >= self.capacity.accounts {
            return Err(GateError::Unknown);
        }
        self.client_ids.restore(account, client_id, used_ns)
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

    /// Applies a fill: moves its quantity from open to the position.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::QtyOutOfRange`], [`GateError::MoreThanOpen`], [`GateError::UnknownOrder`].
    pub fn apply_fill(&mut self, fill: &Fill) -> Result<(), GateError> {
        check_lots(fill.qty)?;
        let index = self.known_row(fill.account, fill.instrument)?;
        let state = &mut self.rows[index].state;
        let filled = state.fill(fill);
        if !fill.is_last || filled == Err(GateError::QtyOutOfRange) {
            return filled;
        }
        filled.and(self.own_orders.remove(index, &mut state.own, fill.client_id, fill.side))
    }

    /// Applies a cancel: removes the order's quantity from open.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::QtyOutOfRange`], [`GateError::MoreThanOpen`], [`GateError::UnknownOrder`].
    pub fn apply_cancel(&mut self, cancel: &Cancel) -> Result<(), GateError> {
        check_lots(cancel.qty)?;
        let index = self.known_row(cancel.account, cancel.instrument)?;
        let state = &mut self.rows[index].state;
        let closed = state.close(cancel.side, cancel.qty.0, 1);
        closed.and(self.own_orders.remove(index, &mut state.own, cancel.client_id, cancel.side))
    }

    /// Evaluates `intent` at `now_ns`; an accepted intent is added to the exposure and the rates.
    ///
    /// `now_ns` is on the clock of [`Mark::ts_ns`]. If the clock steps back, the rates become stricter, never wider.
    #[inline(always)]
    pub fn evaluate(&mut self, now_ns: u64, intent: &OrderIntent, probe: &mut impl Probe) -> Verdict {
        self.evaluate_profile::<{ Limits::CHECKED.0 }>(now_ns, intent, probe)
    }

    /// Evaluates `intent` for the reasons in `PROFILE` and [`Limits::CORE`] only; the others cost nothing.
    ///
    /// A rate that is not in `PROFILE` does not count the intent either.
    #[inline(always)]
    pub fn evaluate_profile<const PROFILE: u64>(
        &mut self,
        now_ns: u64,
        intent: &OrderIntent,
        probe: &mut impl Probe,
    ) -> Verdict {
        probe.begin();
        let side = intent.side as usize;
        let concerns = CONCERNS[intent.kind as usize] & (PROFILE | Limits::CORE.0);
        probe.mark(Stage::Parse);

        let (index, _) = self.row_index(intent.account, intent.instrument);
        let account = usize::from(intent.account.min(self.capacity.accounts));
        let instrument = intent.instrument.0.min(self.capacity.instruments) as usize;
        probe.mark(Stage::Validate);

        let row = &mut self.rows[index];
        let market = &mut self.markets[instrument];
        let account_rate = &mut self.account_rates[account];
        let kills = self.controls.kill_bits(intent.account, intent.strategy, instrument);
        let ids = (PROFILE & Breach::DUP_ID.0 != 0).then_some(&mut self.client_ids);
        let own_orders = (PROFILE & Breach::SELF_MATCH.0 != 0).then_some(&mut self.own_orders);
        let slots = Slots {
            id: ids.map(|ids| ids.place(account, intent.client_id, now_ns)),
            own: own_orders.map(|orders| orders.place(index, &row.state.own)),
        };
        probe.mark(Stage::LookUp);

        let checks = OrderChecks::of(row, market, intent);
        let now = Found::NONE
            .add(self.global_rate.is_early(now_ns), Breach::RATE_GLOBAL)
            .add(market.rate.is_early(now_ns), Breach::RATE_INSTRUMENT)
            .add(account_rate.is_early(now_ns), Breach::RATE_ACCOUNT)
            .add(market.is_stale(now_ns), Breach::MD_STALE);
        let ended = (now_ns.cast_signed() >> 63).cast_unsigned() & RATES;
        let found = checks.found | now.mask() | ended | row.state.barred | market.unverified() | kills;
        let found = found | slots.found(&row.state.own, intent);
        let reasons = found & concerns;
        let rejecting = reasons & row.limits.enabled;
        // All ones if the intent becomes an open order, else zero: nothing changes.
        let takes = (u64::from(rejecting == 0) & concerns & Breach::KILL_GLOBAL.0).wrapping_neg();
        slots.count(concerns & Breach::KILL_GLOBAL.0, &mut self.counters);
        slots.keep(&mut row.state.own, intent, takes);
        row.state.open_qty[side] = row.state.open_qty[side].wrapping_add(intent.qty.0 & takes.cast_signed());
        row.state.open_orders = row.state.open_orders.wrapping_sub(takes as u32);
        let counts = |rate: Breach| takes & u64::from(PROFILE & rate.0 != 0).wrapping_neg();
        account_rate.count(now_ns, counts(Breach::RATE_ACCOUNT));
        market.rate.count(now_ns, counts(Breach::RATE_INSTRUMENT));
        self.global_rate.count(now_ns, counts(Breach::RATE_GLOBAL));
        probe.mark(Stage::Build);

        let first_bit = rejecting.trailing_zeros();
        let verdict = Verdict {
            seq: self.counters.count(first_bit),
            client_id: intent.client_id,
            reasons: Breach(reasons),
            ts_in: intent.ts_ns,
            ts_out: now_ns,
            ref_px: market.ref_px,
            worst_pos: checks.worst_pos,
            limits_version: self.limits_version,
            first_bit: first_bit as u8,
            accept: u8::from(rejecting == 0),
            pad: 0,
        };
        probe.mark(Stage::Serialize);
        probe.end();
        verdict
    }

    /// Returns the row's index and whether it is known; else the index of the row for unknowns.
    #[inline(always)]
    fn row_index(&self, account: u16, instrument: InstrumentId) -> (usize, bool) {
        let known = (account < self.capacity.accounts) & (instrument.0 < self.capacity.instruments);
        let index =
            usize::from(account).wrapping_mul(self.capacity.instruments as usize).wrapping_add(instrument.0 as usize);
        let unknown = self.rows.len() - 1;
        (unknown ^ ((unknown ^ index) & usize::from(known).wrapping_neg()), known)
    }

    fn known_row(&self, account: u16, instrument: InstrumentId) -> Result<usize, GateError> {
        let (index, known) = self.row_index(account, instrument);
        if known { Ok(index) } else { Err(GateError::Unknown) }
    }

    fn next_version(&mut self) -> u32 {
        self.limits_version = self.limits_version.wrapping_add(1);
        self.controls.publish_limits_version(self.limits_version);
        self.limits_version
    }
}

/// Where an order is stored, as far as the profile needs it.
struct Slots<'a> {
    id: Option<IdPlace<'a>>,
    own: Option<OwnPlace<'a>>,
}

impl Slots<'_> {
    #[inline(always)]
    fn found(&self, own: &Own, intent: &OrderIntent) -> u64 {
        self.id.as_ref().map_or(0, IdPlace::found) | self.own.as_ref().map_or(0, |place| place.found(own, intent))
    }

    #[inline(always)]
    fn count(&self, is_order: u64, counters: &mut Counters) {
        if let Some(place) = &self.id {
            place.count(is_order, counters);
        }
        if let Some(place) = &self.own {
            place.count(is_order, counters);
        }
    }

    #[inline(always)]
    fn keep(self, own: &mut Own, intent: &OrderIntent, takes: u64) {
        if let Some(place) = self.id {
            place.keep(takes);
        }
        if let Some(place) = self.own {
            place.keep(own, intent, takes);
        }
    }
}

/// Reasons from price, quantity and position.
struct OrderChecks {
    found: u64,
    worst_pos: i64,
}

impl OrderChecks {
    #[inline(always)]
    fn of(row: &Row, market: &Market, intent: &OrderIntent) -> Self {
        let Row { limits, state } = row;
        let side = intent.side as usize;
        let qty = intent.qty.0;
        let px = select_unpredictable(intent.kind == IntentKind::Market, market.ref_px, intent.limit_px.0);
        let notional = u128::from(px.unsigned_abs()) * u128::from(qty.unsigned_abs());

        // From the order's side: a buy adds to a long position, a sell to a short one.
        let flip = -(side as i64);
        let own = (state.position ^ flip).wrapping_sub(flip);
        let open_qty = state.open_qty[side];
        let worst = own.wrapping_add(open_qty).saturating_add(qty);
        let opens = worst > 0;
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
        let open = Found::NONE
            .add(open_qty.wrapping_add(qty).cast_unsigned() > limits.open_qty_max.cast_unsigned(), Breach::OPEN_QTY)
            .add(state.open_orders >= limits.open_orders_max, Breach::OPEN_ORDERS);
        let position = Found::NONE.add(worst > limits.position_max[side], Breach::POS_LONG).mask() << side;
        let found = size.mask() | order.mask() | open.mask() | position;
        Self { found, worst_pos: (worst ^ flip).wrapping_sub(flip) }
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

fn check_lots(qty: Qty) -> Result<(), GateError> {
    match qty.0 {
        1..=LOTS_CEILING => Ok(()),
        _ => Err(GateError::QtyOutOfRange),
    }
}
