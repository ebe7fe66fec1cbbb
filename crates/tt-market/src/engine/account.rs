//! The account: own orders, executions, balances and positions.

use super::{Applied, Engine};
use crate::{Balance, EventBuffer, Fault, OrderUpdate, Position, PositionUpdate, Venue};
use tt_meter::{Probe, Stage};
use tt_model::InstrumentId;

impl Engine {
    /// Every update of the frame that can be applied is; the first reason why one was not is the frame's.
    pub(super) fn apply_order_updates(
        &mut self,
        venue: Venue,
        updates: &[OrderUpdate],
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        let mut result = Ok(Applied::Orders);
        for update in updates {
            match self.apply_order_update(venue, update) {
                Ok(()) => self.counters.venue_mut(venue).order_updates += 1,
                Err(fault) => result = result.and(Err(fault)),
            }
        }
        probe.mark(Stage::Build);
        result
    }

    fn apply_order_update(&mut self, venue: Venue, update: &OrderUpdate) -> Result<(), Fault> {
        let instrument = match &update.symbol {
            Some(symbol) => Some(InstrumentId(self.find(venue, symbol)? as u32)),
            None => None,
        };
        self.orders.apply(venue, instrument, update).map(|_| ())
    }

    /// Everything of the account that a frame lists. What can be applied is; the first reason why something was not is
    /// the frame's.
    pub(super) fn apply_account(
        &mut self,
        venue: Venue,
        buffer: &EventBuffer,
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        let mut result = self.apply_order_updates(venue, buffer.order_updates(), probe).map(|_| Applied::Account);
        for execution in buffer.executions() {
            match self.find(venue, &execution.symbol) {
                Ok(_) => self.counters.venue_mut(venue).executions += 1,
                Err(fault) => result = result.and(Err(fault)),
            }
        }
        for balance in buffer.balances() {
            match self.apply_balance(venue, balance) {
                Ok(()) => self.counters.venue_mut(venue).balances += 1,
                Err(fault) => result = result.and(Err(fault)),
            }
        }
        for position in buffer.positions() {
            match self.apply_position(venue, position) {
                Ok(()) => self.counters.venue_mut(venue).positions += 1,
                Err(fault) => result = result.and(Err(fault)),
            }
        }
        probe.mark(Stage::Build);
        result
    }

    /// Takes over what the message tells of an asset; a mere change is added to a known total.
    fn apply_balance(&mut self, venue: Venue, update: &Balance) -> Result<(), Fault> {
        let known = self.balances.iter_mut().find(|(of, known)| *of == venue && known.asset == update.asset);
        let Some((_, known)) = known else {
            if self.balances.len() == self.balances.capacity() {
                return Err(Fault::BalancesFull);
            }
            self.balances.push((venue, *update));
            return Ok(());
        };
        if known.ts_event > update.ts_event {
            return Err(Fault::Duplicate);
        }
        let total = match (update.total, update.change, known.total) {
            (None, Some(change), Some(total)) => Some(total.sum(change)?),
            (total, _, known) => total.or(known),
        };
        *known = Balance { total, free: update.free.or(known.free), ..*update };
        Ok(())
    }

    /// Takes over a position, so that the next mark price values it. One that is closed leaves its slot empty.
    fn apply_position(&mut self, venue: Venue, update: &PositionUpdate) -> Result<(), Fault> {
        let index = self.find(venue, &update.symbol)?;
        let instrument = InstrumentId(index as u32);
        let lots = self.instruments[index].signed_lots(update.qty)?;
        let mut slots = self.positions.iter().zip(&self.position_legs);
        let held = slots.position(|(slot, leg)| {
            *leg == update.leg && slot.is_some_and(|position| position.instrument == instrument)
        });
        let Some(slot) = held.or_else(|| self.positions.iter().position(Option::is_none)) else {
            return if lots == 0 { Ok(()) } else { Err(Fault::PositionsFull) };
        };
        let known = self.positions[slot];
        let entry_px = update.entry_px.or(known.map(|known| known.entry_px));
        self.position_legs[slot] = update.leg;
        self.positions[slot] = match entry_px {
            Some(entry_px) if lots != 0 => {
                Some(Position { instrument, account: known.map_or(0, |known| known.account), lots, entry_px })
            }
            Some(_) | None => None,
        };
        Ok(())
    }

    /// What the account holds of an asset, as the venue last told.
    #[must_use]
    pub fn balance(&self, venue: Venue, asset: &crate::Symbol) -> Option<&Balance> {
        self.balances.iter().find(|(of, balance)| *of == venue && balance.asset == *asset).map(|(_, balance)| balance)
    }

    /// The position in slot `index`, as set or as the venue last told.
    #[must_use]
    pub fn position(&self, index: usize) -> Option<&Position> {
        self.positions.get(index)?.as_ref()
    }
}
