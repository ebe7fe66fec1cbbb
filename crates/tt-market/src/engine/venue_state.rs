//! State that venues compute themselves: their own candles, and liquidations.

use super::{Applied, Engine};
use crate::drop_reason::DropReason;
use crate::venue_state::{LiquidationState, VenueCandleState};
use tt_model::{InstrumentId, Nanos};
use tt_venue::Venue;
use tt_venue::event::{Liquidation, VenueCandle};

impl Engine {
    /// Every candle of a known instrument counts; those of the engine's own timeframes are shown. One that is older
    /// than what is shown is history. The first reason why one was not taken is the frame's.
    pub(super) fn apply_venue_candles(&mut self, venue: Venue, candles: &[VenueCandle]) -> Result<Applied, DropReason> {
        let mut result = Ok(Applied::Candles);
        for candle in candles {
            match self.find(venue, &candle.symbol) {
                Ok(index) => self.apply_venue_candle(index, candle),
                Err(reason) => result = result.and(Err(reason)),
            }
        }
        result
    }

    fn apply_venue_candle(&mut self, index: usize, candle: &VenueCandle) {
        let id = InstrumentId(index as u32);
        self.counters.venue_mut(self.instruments[index].spec.venue).candles += 1;
        let lengths = &self.capacity.timeframes[..self.timeframes];
        let Some(timeframe) = lengths.iter().position(|length| *length == candle.timeframe) else { return };
        let shown = self.board.venue_candle(id, timeframe);
        if shown.is_none_or(|shown| shown.ts_open <= candle.ts_open) {
            self.writer.store_venue_candle(id, timeframe, VenueCandleState::new(candle));
        }
    }

    pub(super) fn apply_liquidations(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        liquidations: &[Liquidation],
    ) -> Result<Applied, DropReason> {
        let mut result = Ok(Applied::Liquidations);
        self.changes.begin_liquidations();
        for liquidation in liquidations {
            match self.find(venue, &liquidation.symbol) {
                Ok(index) => {
                    let instrument = &mut self.instruments[index];
                    instrument.liquidations += 1;
                    let last = LiquidationState::new(liquidation, ts_recv, instrument.liquidations);
                    self.writer.store_liquidation(InstrumentId(index as u32), last);
                    self.changes.note_liquidation(InstrumentId(index as u32), last);
                    self.counters.venue_mut(venue).liquidations += 1;
                }
                Err(reason) => result = result.and(Err(reason)),
            }
        }
        result
    }
}
