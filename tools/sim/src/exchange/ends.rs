//! Ends of connections that the venue announces.

use crate::{exchange::Exchange, instrument::Venue};

impl Exchange {
    /// The frames of the connection have the name of their stream around them.
    pub(crate) fn wrap(&mut self, connection: u64) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.is_wrapped = true;
        }
    }

    /// The connection's times are in microseconds.
    pub(crate) fn send_microseconds(&mut self, connection: u64) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.has_microseconds = true;
        }
    }

    pub(super) fn has_microseconds(&self, connection: u64) -> bool {
        self.connections.get(&connection).is_some_and(|connection| connection.has_microseconds)
    }

    /// Announces the end of every open connection, where the venue does that.
    pub(crate) fn announce_end(&mut self) {
        let ms = self.now_us() / 1000;
        let open: Vec<(u64, bool)> =
            self.connections.iter_mut().map(|(id, connection)| (*id, connection.announce())).collect();
        for (id, is_wrapped) in open {
            let shutdown = format!("{{\"e\":\"serverShutdown\",\"E\":{ms}}}");
            match self.venue {
                Venue::BinanceSpot | Venue::BinanceUsdm if is_wrapped => {
                    self.send(id, format!("{{\"stream\":\"!serverShutdown\",\"data\":{shutdown}}}"));
                }
                Venue::BinanceSpot | Venue::BinanceUsdm => self.send(id, shutdown),
                Venue::Okx => {
                    let notice = format!(
                        "{{\"event\":\"notice\",\"code\":\"64008\",\"msg\":\"The connection will soon be closed for a service \
                         upgrade. Please reconnect.\",\"connId\":\"{id:08x}\"}}"
                    );
                    self.send(id, notice);
                }
                Venue::Deribit if self.connections.get(&id).is_some_and(|open| open.has_platform_state) => {
                    let data = r#"{"channel":"platform_state","data":{"maintenance":true}}"#;
                    self.send(id, format!("{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{data}}}"));
                }
                Venue::Kraken | Venue::Bybit | Venue::Deribit => {}
            }
        }
    }

    /// Closes the connections whose end was announced.
    pub(crate) fn end_announced(&mut self) {
        let ending = self.connections.iter().filter(|(_, connection)| connection.is_ending).map(|(id, _)| *id);
        let ending: Vec<u64> = ending.collect();
        ending.into_iter().for_each(|connection| self.disconnect(connection));
    }
}

impl super::Connection {
    /// Its end is announced; returns whether its frames are wrapped.
    const fn announce(&mut self) -> bool {
        self.is_ending = true;
        self.is_wrapped
    }
}
