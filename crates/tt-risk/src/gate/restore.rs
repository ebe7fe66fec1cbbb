//! The state of before a start, and what operators declare true.

use super::{Gate, OpenOrder, Since, terms};
use crate::{
    error::GateError,
    exposure::Exposure,
    index::NIL,
    limits::LOTS_CEILING,
    orders::{Bits, Phase, Record},
};
use tt_model::{InstrumentId, IntentKind, Qty};

impl Gate {
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
        if position.0.unsigned_abs() > LOTS_CEILING.unsigned_abs() {
            return Err(GateError::QtyOutOfRange);
        }
        while let Some(slot) = self.orders.first_open(row) {
            let record = &mut self.orders.records[slot as usize];
            record.qty = record.executed;
            record.venue_executed = 0;
            self.orders.close(row, slot, Phase::Ended);
            self.settle_all(row, slot, Since { traded: None, opened: -1 });
            self.orders.keep_until(slot, 0);
        }
        let before = self.core.rows[row].state.exposure();
        self.core.rows[row].state.restore(&Exposure { position, ..before })?;
        let moved = position.0 - before.position.0;
        self.tree.change(self.tree.path(account, instrument, NIL), |held| {
            held.position = held.position.saturating_add(moved);
            held.is_based = false;
        });
        self.rows[row].unnamed = open_orders;
        Ok(())
    }

    /// Sets the part of an account's position in `instrument` that belongs to a strategy.
    ///
    /// # Errors
    /// [`GateError::Unknown`] without a route, [`GateError::QtyOutOfRange`].
    pub fn restore_strategy(
        &mut self,
        account: u16,
        strategy: u16,
        instrument: InstrumentId,
        position: Qty,
    ) -> Result<(), GateError> {
        let row = self.route_row(account, strategy, instrument);
        if row == NIL {
            return Err(GateError::Unknown);
        }
        if position.0.unsigned_abs() > LOTS_CEILING.unsigned_abs() {
            return Err(GateError::QtyOutOfRange);
        }
        self.tree.change([NIL, NIL, row], |held| (held.position, held.is_based) = (position.0, false));
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
            route: self.route_row(account, strategy, instrument),
            phase: Phase::Live,
            kind,
            side,
            ..Record::FREE
        };
        self.add_record(row, &record).ok_or(GateError::Full)?;
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
        let slot = self.add_record(row, &record).ok_or(GateError::Full)?;
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
            let record = &mut self.orders.records[slot as usize];
            record.venue_executed = record.executed;
            record.bits.clear(Bits::UNKNOWN_TERMS);
            self.settle(row, slot);
        }
        Ok(())
    }

    /// Puts every account in doubt until [`adopt`](Self::adopt), as after a restart: the venue may know more.
    pub fn doubt_all(&mut self) {
        let known = usize::from(self.capacity.accounts);
        self.accounts[..known].iter_mut().for_each(|account| account.is_doubtful = true);
    }
}
