//! From a frame to the state that it changes.

use super::{Applied, Engine};
use crate::ConnectionId;
use crate::drop_reason::DropReason;
use core::mem;
use tt_meter::{Probe, Stage};
use tt_model::{InstrumentId, Nanos};
use tt_venue::Venue;
use tt_venue::event::{Control, Event, EventBuffer, InstrumentState};

impl Engine {
    /// Takes one WebSocket frame that `connection` received at `ts_recv` (Unix epoch).
    ///
    /// # Errors
    /// Why the frame was dropped. A frame that could not be understood, or did not fit a book, leaves the books that
    /// it may have been for `Stale`.
    #[inline]
    pub fn handle_frame(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        frame: &[u8],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        probe.begin();
        let venue = connection.venue();
        let counters = self.counters.venue_mut(venue);
        counters.frames += 1;
        counters.bytes += frame.len() as u64;
        let result = if self.connections.touch(connection, ts_recv) {
            let mut buffer = mem::take(&mut self.buffer);
            let event = venue.parse(frame, &mut buffer);
            probe.mark(Stage::Parse);
            self.counters.venue_mut(venue).general += u64::from(buffer.is_general());
            let followed = match buffer.message_number() {
                Some(number) => self.follow_connection(ts_recv, connection, number),
                None => Ok(()),
            };
            let result = match &event {
                Ok(event) => followed.and_then(|()| self.apply_event(ts_recv, connection, event, &buffer, probe)),
                Err(error) => followed.and(Err(DropReason::from(*error))),
            };
            self.buffer = buffer;
            result
        } else {
            Err(DropReason::OldConnection)
        };
        self.conclude(ts_recv, connection, result);
        probe.end();
        result
    }

    /// Takes one event that the caller parsed into `buffer`: all of [`handle_frame`](Self::handle_frame) but the
    /// parsing and what is counted of it, `bytes` and `general`.
    ///
    /// # Errors
    /// As [`handle_frame`](Self::handle_frame).
    #[inline]
    pub fn handle_event(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        event: &Event,
        buffer: &EventBuffer,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        probe.begin();
        self.counters.venue_mut(connection.venue()).frames += 1;
        let result = if self.connections.touch(connection, ts_recv) {
            match buffer.message_number() {
                Some(number) => self.follow_connection(ts_recv, connection, number),
                None => Ok(()),
            }
            .and_then(|()| self.apply_event(ts_recv, connection, event, buffer, probe))
        } else {
            Err(DropReason::OldConnection)
        };
        self.conclude(ts_recv, connection, result);
        probe.end();
        result
    }

    /// Takes the body of a REST snapshot that was asked for by [`Request::FetchSnapshot`](super::Request).
    ///
    /// # Errors
    /// Why the snapshot was dropped; where it was needed, it is asked for again after a while.
    pub fn handle_snapshot(
        &mut self,
        now: Nanos,
        instrument: InstrumentId,
        body: &[u8],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        probe.begin();
        let Some(known) = self.instruments.get(instrument.0 as usize) else { return Err(DropReason::UnknownSymbol) };
        let (venue, rule, follows_orders) = (known.spec.venue, known.rules.snapshot, known.follows_orders);
        let counters = self.counters.venue_mut(venue);
        counters.frames += 1;
        counters.bytes += body.len() as u64;
        let mut buffer = mem::take(&mut self.buffer);
        let snapshot = match rule {
            Some(rule) => (rule.parse)(body, &mut buffer).map_err(DropReason::from),
            None => Err(DropReason::UnexpectedSnapshot),
        };
        probe.mark(Stage::Parse);
        let result = snapshot.and_then(|snapshot| {
            if follows_orders {
                self.apply_rest_orders(now, instrument, &snapshot, buffer.book_orders(), probe)
            } else {
                self.apply_rest_snapshot(now, instrument, &snapshot, buffer.levels(), probe)
            }
        });
        self.buffer = buffer;
        if result.is_err() {
            self.snapshot_failed(instrument, now);
        }
        self.count(venue, result);
        probe.end();
        result
    }

    #[inline]
    fn conclude(&mut self, ts_recv: Nanos, connection: ConnectionId, result: Result<Applied, DropReason>) {
        self.count(connection.venue(), result);
        if result.is_err_and(DropReason::is_malformed) && self.connections.is_open(connection) {
            self.lose_connection_books(connection, ts_recv);
        }
    }

    #[inline]
    fn count(&mut self, venue: Venue, result: Result<Applied, DropReason>) {
        let counters = self.counters.venue_mut(venue);
        match result {
            Ok(_) => counters.applied += 1,
            Err(reason) => counters.drops[reason as usize] += 1,
        }
    }

    #[inline]
    fn apply_event(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        event: &Event,
        buffer: &EventBuffer,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let venue = connection.venue();
        match event {
            Event::BookTicker(ticker) => self.apply_book_ticker(ts_recv, venue, ticker, probe),
            Event::Tickers => self.apply_tickers(ts_recv, venue, buffer.tickers(), probe),
            Event::Trades => match buffer.taken_order() {
                None => self.apply_trades(ts_recv, venue, buffer.trades(), probe),
                Some(update) => self.apply_match(ts_recv, connection, update, buffer, probe),
            },
            Event::BookOrders(update) => {
                self.apply_book_orders(ts_recv, connection, update, buffer.book_orders(), probe)
            }
            Event::BookDelta(delta) => self.apply_delta(ts_recv, connection, delta, buffer.levels(), probe),
            Event::BookSnapshot(snapshot) => self.apply_snapshot(ts_recv, connection, snapshot, buffer.levels(), probe),
            Event::MarkPrice(mark) => self.apply_mark_price(ts_recv, venue, mark, probe),
            Event::OrderUpdates => self.apply_order_updates(venue, buffer.order_updates(), probe),
            Event::Account => self.apply_account(ts_recv, venue, buffer, probe),
            Event::Candles => self.apply_venue_candles(venue, buffer.candles()),
            Event::Liquidations => self.apply_liquidations(ts_recv, venue, buffer.liquidations()),
            Event::OrderList(list) => {
                self.find(venue, &list.symbol)?;
                Ok(Applied::Control)
            }
            Event::Control(control) => {
                self.counters.venue_mut(venue).controls += 1;
                match control {
                    Control::TestRequest => self.request_pong(connection),
                    Control::LoginExpired => self.ask_for_connection(connection, ts_recv),
                    Control::Ending => self.request_successor(connection),
                    Control::Instrument(InstrumentState { symbol, status }) => {
                        // It is sent of every instrument of the venue.
                        let known = self.symbols.find(venue, symbol);
                        let status = *status;
                        return Ok(known.map_or(Applied::Control, |instrument| Applied::Status { instrument, status }));
                    }
                    Control::ListChanged => return Ok(Applied::ListChanged),
                    Control::Session(session) => return Ok(Applied::Session(*session)),
                    Control::Accepted | Control::LoggedIn | Control::Heartbeat | Control::Pong | Control::Status => {}
                }
                Ok(Applied::Control)
            }
        }
    }
}
