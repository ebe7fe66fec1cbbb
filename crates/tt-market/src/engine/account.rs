//! The account: own orders, executions, balances and positions.

use super::{Applied, Engine};
use crate::drop_reason::DropReason;
use crate::fills::FillState;
use crate::mark::PositionOrigin;
use crate::mark::{Position, PositionMark};
use crate::orders::OrderState;
use tt_meter::{Probe, Stage};
use tt_model::{InstrumentId, Nanos};
use tt_venue::Venue;
use tt_venue::event::{Balance, EventBuffer, Execution, Fill, OrderUpdate, PositionLeg, PositionUpdate};

impl Engine {
    /// Every update of the frame that can be applied is; the first reason why one was not is the frame's.
    pub(super) fn apply_order_updates(
        &mut self,
        venue: Venue,
        updates: &[OrderUpdate],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let mut result = Ok(Applied::Orders);
        for update in updates {
            match self.apply_order_update(venue, update) {
                Ok(()) => self.counters.venue_mut(venue).order_updates += 1,
                Err(reason) => result = result.and(Err(reason)),
            }
        }
        probe.mark(Stage::Build);
        result
    }

    fn apply_order_update(&mut self, venue: Venue, update: &OrderUpdate) -> Result<(), DropReason> {
        let instrument = match &update.symbol {
            Some(symbol) => Some(InstrumentId(self.find(venue, symbol)? as u32)),
            None => None,
        };
        if let Some(fill) = &update.fill {
            self.note_update_fill(venue, instrument, update, fill);
        }
        self.orders.apply(venue, instrument, update)
    }

    /// A late execution counts like any other.
    #[inline(never)]
    fn note_update_fill(&mut self, venue: Venue, instrument: Option<InstrumentId>, update: &OrderUpdate, fill: &Fill) {
        let known = self.orders.get(venue, &update.order_id);
        let state = FillState {
            venue,
            instrument: instrument.or(known.and_then(|order| order.instrument)),
            order_id: update.order_id,
            side: update.side.or(known.and_then(|order| order.side)),
            fill: *fill,
            ts_event: update.ts_event,
        };
        self.note_fill(&state);
    }

    fn note_fill(&mut self, state: &FillState) {
        let counters = self.counters.venue_mut(state.venue);
        if self.fills.note(state) {
            counters.executions += 1;
        } else {
            counters.duplicate_executions += 1;
        }
    }

    /// Everything of the account that a frame lists. What can be applied is; the first reason why something was not is
    /// the frame's.
    pub(super) fn apply_account(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        buffer: &EventBuffer,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let (orders, positions) = (buffer.orders_coverage(), buffer.positions_coverage());
        self.orders.begin_listing(venue, orders);
        let mut result = self.apply_order_updates(venue, buffer.order_updates(), probe).map(|_| Applied::Account);
        self.counters.venue_mut(venue).orders_ended += self.orders.end_listing(venue, orders);
        for execution in buffer.executions() {
            result = result.and(self.apply_execution(venue, execution));
        }
        for balance in buffer.balances() {
            match self.apply_balance(venue, balance) {
                Ok(()) => self.counters.venue_mut(venue).balances += 1,
                Err(reason) => result = result.and(Err(reason)),
            }
        }
        self.position_listings.begin(venue, positions);
        for position in buffer.positions() {
            match self.apply_position(ts_recv, venue, position) {
                Ok(()) => self.counters.venue_mut(venue).positions += 1,
                Err(reason) => result = result.and(Err(reason)),
            }
        }
        if self.position_listings.end(venue, positions) {
            self.close_unlisted_positions(ts_recv, venue);
        }
        probe.mark(Stage::Build);
        result
    }

    fn apply_execution(&mut self, venue: Venue, execution: &Execution) -> Result<Applied, DropReason> {
        let instrument = Some(InstrumentId(self.find(venue, &execution.symbol)? as u32));
        let Execution { order_id, execution_id, side, px, qty, fee, fee_asset, is_maker, ts_event, .. } = *execution;
        let fill = Fill { trade_id: execution_id, px, qty, fee, fee_asset, is_maker };
        self.note_fill(&FillState { venue, instrument, order_id, side: Some(side), fill, ts_event });
        Ok(Applied::Account)
    }

    /// Applies an asset's balance. A change without a total is noted, and the total is left to the message
    /// that has it: venues send both, in either order.
    fn apply_balance(&mut self, venue: Venue, update: &Balance) -> Result<(), DropReason> {
        let known = self.balances.iter_mut().find(|(of, known)| *of == venue && known.asset == update.asset);
        let Some((_, known)) = known else {
            if self.balances.len() == self.balances.capacity() {
                return Err(DropReason::BalancesFull);
            }
            self.balances.push((venue, *update));
            return Ok(());
        };
        if known.ts_event > update.ts_event && update.ts_event.0 != 0 {
            return Err(DropReason::Duplicate);
        }
        *known = Balance {
            total: update.total.or(known.total),
            free: update.free.or(known.free),
            locked: update.locked.or(known.locked),
            ..*update
        };
        Ok(())
    }

    /// Takes over a position, and values it at the last mark price. One that is closed leaves its slot empty.
    fn apply_position(&mut self, ts_recv: Nanos, venue: Venue, update: &PositionUpdate) -> Result<(), DropReason> {
        let index = self.find(venue, &update.symbol)?;
        let instrument = InstrumentId(index as u32);
        let lots = self.instruments[index].signed_lots(update.qty)?;
        let mut slots = self.positions.iter().zip(&self.position_origins);
        let held = slots.position(|(slot, origin)| {
            origin.leg == update.leg && slot.is_some_and(|position| position.instrument == instrument)
        });
        if lots == 0 {
            if let Some(slot) = held {
                self.close_position(slot, ts_recv);
            }
            return Ok(());
        }
        let free = held.or_else(|| self.positions.iter().position(Option::is_none));
        let slot = free.ok_or(DropReason::PositionsFull)?;
        let known = self.positions.get(slot).copied();
        let Some(entry_px) = update.entry_px.or(known.map(|known| known.entry_px)) else { return Ok(()) };
        let position = Position { instrument, account: known.map_or(0, |known| known.account), lots, entry_px };
        let listing = self.position_listings.number(venue);
        self.position_origins[slot] = PositionOrigin { leg: update.leg, is_reported: true, listing };
        self.positions.set(slot, Some(position));
        let known = &self.instruments[index];
        if let Some(mark) = &known.mark {
            let value = PositionMark::of_contract(&position, known.spec.lot_size, known.unit, mark)?;
            self.writer.store_position(slot, &value);
        }
        Ok(())
    }

    /// Empties a slot, and shows that nothing is held there any more.
    fn close_position(&mut self, slot: usize, ts_recv: Nanos) {
        let Some(Position { instrument, account, .. }) = self.positions.set(slot, None) else { return };
        self.position_origins[slot] = PositionOrigin::default();
        let closed = PositionMark { instrument, account, lots: 0, pnl_mantissa: 0, pnl_decimals: 0, ts_recv };
        self.writer.store_position(slot, &closed);
    }

    /// Closes the venue's positions that its complete list did not name; those that the caller set stay.
    fn close_unlisted_positions(&mut self, ts_recv: Nanos, venue: Venue) {
        let number = self.position_listings.number(venue);
        for slot in 0..self.positions.len() {
            let PositionOrigin { is_reported, listing, .. } = self.position_origins[slot];
            let is_venues = self
                .positions
                .get(slot)
                .is_some_and(|position| self.instruments[position.instrument.0 as usize].spec.venue == venue);
            if is_reported && is_venues && listing != number {
                self.close_position(slot, ts_recv);
            }
        }
    }

    /// The newest own executions, oldest first, each once; as many as the capacity allows.
    pub fn fills(&self) -> impl Iterator<Item = &FillState> {
        self.fills.iter()
    }

    /// The account's open orders, in no order.
    pub fn orders(&self) -> impl Iterator<Item = &OrderState> {
        self.orders.iter()
    }

    /// The account's balances with their venues.
    pub fn balances(&self) -> impl Iterator<Item = &(Venue, Balance)> {
        self.balances.iter()
    }

    /// The positions that are held, with their slots.
    pub fn positions(&self) -> impl Iterator<Item = (usize, &Position, PositionLeg)> {
        let slots = self.positions.iter().zip(&self.position_origins).enumerate();
        slots.filter_map(|(slot, (position, origin))| Some((slot, position.as_ref()?, origin.leg)))
    }

    /// The account's balance of an asset, as the venue last sent it.
    #[must_use]
    pub fn balance(&self, venue: Venue, asset: &tt_venue::Symbol) -> Option<&Balance> {
        self.balances.iter().find(|(of, balance)| *of == venue && balance.asset == *asset).map(|(_, balance)| balance)
    }

    /// The position in slot `index`, as set or as the venue last sent it.
    #[must_use]
    pub fn position(&self, index: usize) -> Option<&Position> {
        self.positions.get(index)
    }
}
