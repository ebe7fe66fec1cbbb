//! A venue without sockets, in virtual time: what a world or a recording is made with.

use axum::extract::ws::Utf8Bytes;
use tokio::sync::mpsc;

use crate::{
    exchange::{Exchange, Stats},
    instrument::{Instrument, Venue},
    kraken,
    market::{Fault, SnapshotFault},
    script::{Script, TrueBook},
    server,
};

/// Frames received by a client of an [`Offline`] venue and not yet read.
#[derive(Debug)]
pub struct Received {
    connection: u64,
    frames: mpsc::Receiver<Utf8Bytes>,
}

impl Received {
    /// The next frame; `None` where there is none yet.
    pub fn take(&mut self) -> Option<String> {
        self.frames.try_recv().ok().map(|frame| frame.as_str().to_owned())
    }

    /// Whether the venue closed the connection and nothing is left to take.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.frames.is_closed() && self.frames.is_empty()
    }
}

/// One venue whose time is an argument.
pub struct Offline {
    exchange: Exchange,
}

impl Offline {
    /// `instruments` instruments of `venue` under `seed`; its time is `unix_us`, microseconds of the Unix epoch.
    #[must_use]
    pub fn new(venue: Venue, instruments: u32, seed: u64, unix_us: u64) -> Self {
        let mut exchange = Exchange::new(venue, instruments, seed);
        exchange.set_clock(unix_us);
        Self { exchange }
    }

    /// The instruments.
    #[must_use]
    pub fn instruments(&self) -> Vec<Instrument> {
        self.exchange.markets.iter().map(|market| market.instrument.clone()).collect()
    }

    /// Opens a connection.
    pub fn connect(&mut self) -> Received {
        let (connection, frames) = self.exchange.connect();
        if self.exchange.venue == Venue::Kraken {
            self.exchange.send(connection, kraken::status(connection));
        }
        Received { connection, frames }
    }

    /// The client closes its connection.
    pub fn close(&mut self, client: &Received) {
        self.exchange.disconnect(client.connection);
    }

    /// The venue closes all connections.
    pub fn disconnect_all(&mut self) {
        self.exchange.disconnect_all();
    }

    /// The venue announces the end of every open connection, if it is one that does.
    pub fn announce_end(&mut self) {
        self.exchange.announce_end();
    }

    /// The venue closes the connections whose end it announced.
    pub fn end_announced(&mut self) {
        self.exchange.end_announced();
    }

    /// The client says `text` on its socket.
    pub fn request(&mut self, client: &Received, text: &str) {
        if !self.exchange.is_half_open(client.connection) {
            server::answer(self.exchange.venue)(&mut self.exchange, client.connection, text);
        }
    }

    /// The body of an instrument's snapshot by REST; `None` where the venue serves none, or refuses.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn rest_book(&mut self, index: usize, limit: usize) -> Option<String> {
        if self.exchange.refusals > 0 {
            self.exchange.refusals -= 1;
            return None;
        }
        server::rest_book(&mut self.exchange, index, limit)
    }

    /// Makes one step of an instrument at `unix_us` and sends it to its subscribers.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn step(&mut self, index: usize, unix_us: u64) {
        self.exchange.set_clock(unix_us);
        self.exchange.step(index, unix_us);
    }

    /// The true book of an instrument, and its update id.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn truth(&self, index: usize) -> (u64, &TrueBook) {
        let script = &self.exchange.markets[index].script;
        (script.update_id(), script.book())
    }

    /// The script of an instrument from its beginning.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn script(&self, index: usize) -> Script {
        Script::new(&self.exchange.markets[index].instrument, self.exchange.seed())
    }

    /// As [`Running::update_id_at`](crate::Running::update_id_at).
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn update_id_at(&self, index: usize, unix_us: u64) -> Option<u64> {
        self.exchange.markets[index].update_id_at(unix_us)
    }

    /// As [`Running::update_id_of`](crate::Running::update_id_of).
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    #[must_use]
    pub fn update_id_of(&self, index: usize, depth: u32, id: u64) -> Option<u64> {
        self.exchange.markets[index].chains.get(&depth)?.update_id(id)
    }

    /// Injects `fault` into the next book update of an instrument.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn fault(&mut self, index: usize, fault: Fault) {
        self.exchange.markets[index].faults.push_back(fault);
    }

    /// Injects `fault` into the next snapshot of an instrument.
    ///
    /// # Panics
    /// `index` is not an instrument of the venue.
    pub fn snapshot_fault(&mut self, index: usize, fault: SnapshotFault) {
        self.exchange.markets[index].snapshot_faults.push_back(fault);
    }

    /// Rejects the next `count` snapshot requests.
    pub const fn refuse_snapshots(&mut self, count: u32) {
        self.exchange.refusals = count;
    }

    /// Silences the venue with its connections open (`true`), or lets it send again.
    pub const fn mute(&mut self, mute: bool) {
        self.exchange.mute = mute;
    }

    /// Nothing more goes wrong: faults that still wait are forgotten. Half-open connections stay as they are.
    pub fn heal(&mut self) {
        self.exchange.refusals = 0;
        self.exchange.mute = false;
        for market in &mut self.exchange.markets {
            market.faults.clear();
            market.snapshot_faults.clear();
        }
    }

    /// Returns the venue's counters.
    #[must_use]
    pub const fn stats(&self) -> Stats {
        self.exchange.stats
    }
}
