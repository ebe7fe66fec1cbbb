//! Messages about the platform and about its instruments: Deribit's, and Bybit's empty books.

use super::Exchange;
use crate::bybit;
use crate::instrument::{Standing, Venue};
use crate::market::{Topic, Window};

impl Exchange {
    /// The connection follows the state of the platform, or no longer.
    pub(crate) fn follow_platform_state(&mut self, connection: u64, follows: bool) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.has_platform_state = follows;
        }
    }

    /// The connection follows the states of all instruments, or no longer.
    pub(crate) fn follow_instrument_states(&mut self, connection: u64, follows: bool) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.has_instrument_states = follows;
        }
    }

    /// Announces what becomes of an instrument, where the venue does that.
    pub(super) fn announce_state(&mut self, index: usize, standing: Standing) {
        match self.venue {
            Venue::Deribit => {}
            Venue::Bybit if standing == Standing::Delisted => return self.empty_books(index),
            Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Kraken | Venue::Okx | Venue::Bybit => return,
        }
        let state = match standing {
            Standing::Trading => "open",
            Standing::Suspended => "halted",
            Standing::Delisted => "delivered",
        };
        let (ms, symbol) = (self.now_us() / 1000, &self.markets[index].instrument.symbol);
        let data = format!("{{\"timestamp\":{ms},\"state\":\"{state}\",\"instrument_name\":\"{symbol}\"}}");
        self.notify("instrument.state.any.any", &data, |connection| connection.has_instrument_states);
    }

    /// The last message of a book of Bybit that was delisted: no levels, and the number 1.
    fn empty_books(&mut self, index: usize) {
        let market = &self.markets[index];
        let printer = bybit::Printer { instrument: &market.instrument, unix_us: self.now_us() };
        let seq = market.script.update_id();
        let depths = market.windows.keys().copied();
        let frame = |depth| (Topic::Book(depth), printer.book("snapshot", depth, &Window::default(), 1, seq));
        let frames: Vec<(Topic, String)> = depths.map(frame).collect();
        for (topic, frame) in frames {
            self.publish(index, topic, &frame);
        }
    }

    /// Locks the currency of an instrument, or unlocks it: its state is in the list alone, as documented.
    pub(crate) fn lock(&mut self, index: usize, is_locked: bool) {
        let instrument = &mut self.markets[index].instrument;
        instrument.standing = if is_locked { Standing::Suspended } else { Standing::Trading };
        let index = format!("{}_{}", instrument.base, instrument.quote).to_lowercase();
        let data = format!("{{\"price_index\":\"{index}\",\"locked\":{is_locked}}}");
        self.notify("platform_state", &data, |connection| connection.has_platform_state);
    }

    fn notify(&mut self, channel: &str, data: &str, follows: fn(&super::Connection) -> bool) {
        let followers = self.connections.iter().filter(|(_, connection)| follows(connection));
        let followers: Vec<u64> = followers.map(|(id, _)| *id).collect();
        for id in followers {
            let params = format!("{{\"channel\":\"{channel}\",\"data\":{data}}}");
            self.send(id, format!("{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{params}}}"));
        }
    }
}
