//! The gate: the evaluator, the records of single orders, and what is known of accounts and producers.

mod judgement;
mod life;
mod terms;

use crate::{
    controls::Controls,
    counters::Counters,
    error::GateError,
    evaluator::Evaluator,
    exposure::Exposure,
    instrument::{InstrumentLimits, InstrumentRules, InstrumentState, Mark},
    limits::Limits,
    orders::{Bits, Orders, Phase, Record},
    rate::Rate,
};
use alloc::{boxed::Box, sync::Arc, vec};
use tt_model::{InstrumentId, IntentKind, OrderSide, Price, Qty};

/// Sizes of the gate's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Accounts, numbered from 0.
    pub accounts: u16,
    /// Instruments, numbered from 0.
    pub instruments: u32,
    /// Producers of intents, numbered from 0.
    pub producers: u16,
    /// Orders of an account that are open, or whose id is not forgotten yet; each takes about 300 bytes. An order beyond
    /// it is rejected with `CAPACITY`. One more in eight is kept for orders that the gate learns of from reports.
    pub orders: u32,
    /// Executions of all orders that are not forgotten; each takes 64 bytes. When fewer than one in eight is free, orders
    /// are rejected with `CAPACITY`.
    pub executions: u32,
}

/// Times that apply to every account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// For how long after the end of an order its client id counts as used, and its executions are remembered.
    pub id_window_ns: u64,
    /// Maximum age of an intent, whatever its time to live.
    pub intent_age_max_ns: u64,
    /// For how long after a cancel the next one of the same order is rejected.
    pub cancel_repeat_ns: u64,
    /// For how long the venue may have executed more than its fills show.
    pub gap_max_ns: u64,
    /// Maximum number of accepted orders of the same route, side, price, quantity and kind within `same_window_ns`.
    pub same_orders_max: u32,
    /// The window of `same_orders_max`, at most `id_window_ns`.
    pub same_window_ns: u64,
}

impl Rules {
    /// Rejects every intent that is not of this nanosecond, and forgets no id.
    const CLOSED: Self = Self {
        id_window_ns: u64::MAX,
        intent_age_max_ns: 0,
        cancel_repeat_ns: 0,
        gap_max_ns: 0,
        same_orders_max: 0,
        same_window_ns: u64::MAX,
    };
}

/// An open order of before a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// The strategy.
    pub strategy: u16,
    /// The client id of the order's intent.
    pub client_id: u64,
    /// Limit, market or stop.
    pub kind: IntentKind,
    /// The side.
    pub side: OrderSide,
    /// The limit price; of a market order any.
    pub limit_px: Price,
    /// The order's quantity.
    pub qty: Qty,
    /// The part that was executed.
    pub executed: Qty,
}

/// State of an account.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Orders with a record.
    records: u32,
    /// Whether its orders, executions or positions are in doubt.
    is_doubtful: bool,
}

/// What only the gate knows of an account in an instrument.
#[derive(Clone, Copy, Debug, Default)]
struct RowState {
    /// Open orders that were counted and not named yet.
    unnamed: u32,
}

/// A pre-trade gate: limits, exposures and orders of every account in every instrument.
#[derive(Debug)]
pub struct Gate {
    capacity: Capacity,
    core: Evaluator,
    orders: Orders,
    rows: Box<[RowState]>,
    /// By account; the last is for unknown accounts.
    accounts: Box<[Account]>,
    /// By producer: the next sequence number.
    next_seqs: Box<[u64]>,
    /// By instrument; the last is for unknown instruments.
    instruments: Box<[InstrumentRules]>,
    /// By instrument; the last is for unknown instruments.
    states: Box<[InstrumentState]>,
    /// By instrument: the epoch of its mark.
    mark_epochs: Box<[u32]>,
    /// Number of faults of the clock.
    epoch: u32,
    last_ns: u64,
    /// The latest time that was seen. Ids, executions and gaps have their times on it, so that none returns when the clock
    /// goes back.
    horizon_ns: u64,
    rules: Rules,
}

impl Gate {
    /// Creates a gate that rejects every order. Only this function allocates.
    ///
    /// # Panics
    /// The tables do not fit into the address space.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        let core = Evaluator::new(capacity.accounts, capacity.instruments);
        let rows = core.rows.len();
        let ordered = u64::from(capacity.orders) * u64::from(capacity.accounts);
        let records = ordered + ordered / 8 + 1;
        let records = u32::try_from(records).ok().filter(|records| *records < 1 << 30);
        let instruments = capacity.instruments as usize + 1;
        Self {
            capacity,
            orders: Orders::new(rows, records.expect("fewer than 2^30 orders"), capacity.executions),
            core,
            rows: vec![RowState::default(); rows].into_boxed_slice(),
            accounts: vec![Account::default(); usize::from(capacity.accounts) + 1].into_boxed_slice(),
            next_seqs: vec![1; usize::from(capacity.producers)].into_boxed_slice(),
            instruments: vec![InstrumentRules::default(); instruments].into_boxed_slice(),
            states: vec![InstrumentState::Unknown; instruments].into_boxed_slice(),
            mark_epochs: vec![0; instruments].into_boxed_slice(),
            epoch: 0,
            last_ns: 0,
            horizon_ns: 0,
            rules: Rules::CLOSED,
        }
    }

    /// Returns the kill switches and the version of the limits, for other threads.
    #[must_use]
    pub fn controls(&self) -> Arc<Controls> {
        self.core.controls()
    }

    /// Returns the counts of verdicts and reports since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        self.core.counters()
    }

    /// Replaces all limits of `account` in `instrument`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::LimitOutOfRange`].
    pub fn set_limits(&mut self, account: u16, instrument: InstrumentId, limits: &Limits) -> Result<u32, GateError> {
        self.core.set_limits(account, instrument, limits)
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
        self.core.set_instrument_limits(instrument, limits)
    }

    /// Replaces the rules of `instrument`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_instrument_rules(
        &mut self,
        instrument: InstrumentId,
        rules: &InstrumentRules,
    ) -> Result<u32, GateError> {
        if instrument.0 >= self.capacity.instruments {
            return Err(GateError::Unknown);
        }
        self.instruments[instrument.0 as usize] = *rules;
        Ok(self.core.next_version())
    }

    /// Replaces the message rate of `account`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_account_rate(&mut self, account: u16, rate: Rate) -> Result<u32, GateError> {
        self.core.set_account_rate(account, rate)
    }

    /// Replaces the message rate of all accounts together; returns the new version of the limits.
    pub fn set_global_rate(&mut self, rate: Rate) -> u32 {
        self.core.set_global_rate(rate)
    }

    /// Replaces the times that apply to every account; returns the new version of the limits.
    pub fn set_rules(&mut self, rules: &Rules) -> u32 {
        self.rules = *rules;
        self.core.next_version()
    }

    /// Sets the reference price of `instrument`.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_reference(&mut self, instrument: InstrumentId, mark: &Mark) -> Result<(), GateError> {
        self.core.set_reference(instrument, mark)?;
        self.mark_epochs[instrument.0 as usize] = self.epoch;
        Ok(())
    }

    /// Sets the trading state of `instrument`.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_state(&mut self, instrument: InstrumentId, state: InstrumentState) -> Result<(), GateError> {
        if instrument.0 >= self.capacity.instruments {
            return Err(GateError::Unknown);
        }
        self.states[instrument.0 as usize] = state;
        Ok(())
    }

    /// Continues the numbers of `producer`: its next intent has the number `last_seq` + 1.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn resume(&mut self, producer: u16, last_seq: u64) -> Result<(), GateError> {
        let next = self.next_seqs.get_mut(usize::from(producer)).ok_or(GateError::Unknown)?;
        *next = last_seq.wrapping_add(1);
        Ok(())
    }

    /// Sets the position of `account` in `instrument`, and the number of its open orders; orders are rejected before the
    /// first call.
    ///
    /// Pass each of the `open_orders` orders to [`restore_order`](Self::restore_order); until then every order has the
    /// reason `SELF_MATCH`. Orders that the gate knows as open are forgotten.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::QtyOutOfRange`].
    pub fn restore(
        &mut self,
        account: u16,
        instrument: InstrumentId,
        position: Qty,
        open_orders: u32,
    ) -> Result<(), GateError> {
        let row = self.core.known_row(account, instrument)?;
        self.core.rows[row].state.restore(&Exposure { position, ..Exposure::default() })?;
        while let Some(slot) = self.orders.first_open(row) {
            let record = &mut self.orders.records[slot as usize];
            record.qty = record.executed;
            record.venue_executed = 0;
            self.orders.close(row, slot);
            self.orders.update_gap(slot, 0);
            self.orders.keep_until(slot, 0);
        }
        self.rows[row].unnamed = open_orders;
        Ok(())
    }

    /// Adds one of the open orders that [`restore`](Self::restore) counted.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::QtyOutOfRange`], [`GateError::UnknownOrder`] if no counted order is left,
    /// [`GateError::Full`].
    pub fn restore_order(
        &mut self,
        account: u16,
        instrument: InstrumentId,
        order: &OpenOrder,
    ) -> Result<(), GateError> {
        let row = self.core.known_row(account, instrument)?;
        let OpenOrder { strategy, client_id, kind, side, limit_px, qty, executed } = *order;
        let is_order = kind.is_known() && kind != IntentKind::CANCEL && kind != IntentKind::REPLACE;
        if !is_order || !terms::are_lots(qty) || !(0..qty.0).contains(&executed.0) {
            return Err(GateError::QtyOutOfRange);
        }
        let unnamed = self.rows[row].unnamed.checked_sub(1).ok_or(GateError::UnknownOrder)?;
        let record = Record {
            client_id,
            limit_px: limit_px.0,
            qty: qty.0,
            executed: executed.0,
            venue_executed: executed.0,
            account,
            strategy,
            instrument,
            phase: Phase::Live,
            kind,
            side,
            ..Record::FREE
        };
        self.add_record(row, record).ok_or(GateError::Full)?;
        self.rows[row].unnamed = unnamed;
        Ok(())
    }

    /// Marks `client_id` as used by an order of `account` in `instrument` that ended at `used_ns`, on the gate's clock.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::Full`].
    pub fn restore_id(
        &mut self,
        account: u16,
        instrument: InstrumentId,
        client_id: u64,
        used_ns: u64,
    ) -> Result<(), GateError> {
        let row = self.core.known_row(account, instrument)?;
        if self.orders.find(used_ns, account, client_id).is_some() {
            return Ok(());
        }
        let record = Record { client_id, account, instrument, phase: Phase::Ended, ..Record::FREE };
        let slot = self.add_record(row, record).ok_or(GateError::Full)?;
        self.orders.keep_until(slot, used_ns.saturating_add(self.rules.id_window_ns));
        Ok(())
    }

    /// Declares the orders, executions and position of `account` true, as an operator has found them: ends its doubt, and
    /// frees what ended orders still reserve for executions that never came.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn adopt(&mut self, account: u16, now_ns: u64) -> Result<(), GateError> {
        if account >= self.capacity.accounts {
            return Err(GateError::Unknown);
        }
        self.pass_time(now_ns);
        self.accounts[usize::from(account)].is_doubtful = false;
        for slot in 0..self.orders.records.len() as u32 {
            let record = self.orders.records[slot as usize];
            let is_open_ended = record.gap() > 0 || record.bits.has(Bits::UNKNOWN_TERMS);
            if record.account != account || record.phase == Phase::Free || !is_open_ended {
                continue;
            }
            let (row, _) = self.core.row_index(account, record.instrument);
            let before = record.reserved();
            let record = &mut self.orders.records[slot as usize];
            record.venue_executed = record.executed;
            record.bits.clear(Bits::UNKNOWN_TERMS);
            self.settle(row, slot, before);
        }
        Ok(())
    }

    /// Returns whether the orders, executions or positions of `account` are in doubt.
    #[must_use]
    pub fn is_doubtful(&self, account: u16) -> bool {
        self.accounts.get(usize::from(account)).is_some_and(|account| account.is_doubtful)
    }

    /// Returns the exposure of `account` in `instrument`; `None` outside the capacity.
    #[must_use]
    pub fn exposure(&self, account: u16, instrument: InstrumentId) -> Option<Exposure> {
        self.core.exposure(account, instrument)
    }

    /// Calls `see` with the client id of each open order of `account` in `instrument`.
    pub fn open_orders(&self, account: u16, instrument: InstrumentId, mut see: impl FnMut(u64)) {
        let (row, _) = self.core.row_index(account, instrument);
        let mut next = self.orders.first_open(row);
        while let Some(slot) = next {
            see(self.orders.records[slot as usize].client_id);
            next = self.orders.next_open(slot);
        }
    }

    /// Advances the gate's clock to `now_ns`: forgets old ids, and doubts accounts that lack executions. Every evaluation
    /// and every report does so too; an idle gate needs it from time to time.
    pub fn pass_time(&mut self, now_ns: u64) {
        if now_ns < self.last_ns {
            self.epoch = self.epoch.wrapping_add(1);
        }
        self.last_ns = now_ns;
        self.horizon_ns = self.horizon_ns.max(now_ns);
        let horizon_ns = self.horizon_ns;
        while let Some(slot) = self.orders.poll_gap(horizon_ns) {
            let account = self.orders.records[slot as usize].account;
            self.doubt(account);
        }
        let accounts = &mut self.accounts;
        self.orders.clean(horizon_ns, |account| accounts[usize::from(account)].records -= 1);
    }

    /// Marks the account as in doubt.
    fn doubt(&mut self, account: u16) {
        let account = self.core.account_index(account);
        self.accounts[account].is_doubtful = true;
    }

    /// Adds `record` of `row` and what it reserves; `None` without room.
    fn add_record(&mut self, row: usize, record: Record) -> Option<u32> {
        let slot = self.orders.add(row, record)?;
        let account = self.core.account_index(record.account);
        self.accounts[account].records += 1;
        let state = &mut self.core.rows[row].state;
        state.reserve(record.side, 0, record.reserved());
        state.open_orders += u32::from(record.is_open());
        Some(slot)
    }

    /// Brings sums and queues up to date after a change of the record at `slot`, which reserved `before`.
    fn settle(&mut self, row: usize, slot: u32, before: i64) {
        let record = &self.orders.records[slot as usize];
        let (side, after) = (record.side, record.reserved());
        self.core.rows[row].state.reserve(side, before, after);
        self.orders.update_gap(slot, self.horizon_ns.saturating_add(self.rules.gap_max_ns));
        let record = &self.orders.records[slot as usize];
        let is_settled = record.gap() == 0 && !record.bits.has(Bits::UNKNOWN_TERMS);
        if record.phase == Phase::Ended && is_settled && !record.bits.has(Bits::END_QUEUED) {
            self.orders.keep_until(slot, self.horizon_ns.saturating_add(self.rules.id_window_ns));
        }
    }

    /// Ends the open order at `slot`; the caller settles.
    fn end(&mut self, row: usize, slot: u32) {
        self.orders.close(row, slot);
        let state = &mut self.core.rows[row].state;
        state.open_orders = state.open_orders.saturating_sub(1);
    }
}
