//! The sockets: one HTTP server a venue, WebSocket and REST on the same port.

mod binance;
mod bybit;
mod connection;
mod deribit;
mod kraken;
mod okx;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::Router;

use crate::{
    exchange::{Exchange, half},
    instrument::Venue,
    market::SnapshotFault,
    script::Script,
};
use connection::Answer;

/// State shared by the requests to one venue.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) exchange: Arc<Mutex<Exchange>>,
    /// The time between two ping frames; a client that leaves three unanswered is cut off.
    pub(crate) ping_every: Duration,
}

impl Shared {
    /// The venue. A panic while it was locked leaves nothing half done that matters to a simulation.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles a request on the socket of `venue`.
pub(crate) const fn answer(venue: Venue) -> Answer {
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm => binance::answer_wrapped,
        Venue::Kraken => kraken::take,
        Venue::Okx => okx::take,
        Venue::Bybit => bybit::take,
        Venue::Deribit => deribit::take,
    }
}

/// The body of a snapshot by REST, with what goes wrong with it; `None` where the venue serves none.
pub(crate) fn rest_book(exchange: &mut Exchange, index: usize, limit: usize) -> Option<String> {
    let fault = exchange.markets[index].snapshot_faults.pop_front();
    let body = match exchange.venue {
        Venue::BinanceSpot | Venue::BinanceUsdm => binance::snapshot(exchange, index, limit, fault),
        Venue::Okx => okx::snapshot(exchange, index, limit, fault),
        Venue::Bybit => bybit::snapshot(exchange, index, limit, fault),
        Venue::Kraken | Venue::Deribit => return None,
    };
    exchange.stats.snapshots += 1;
    match fault {
        Some(SnapshotFault::Partial) => Some(half(&body)),
        Some(SnapshotFault::Stale) | None => Some(body),
    }
}

/// The script of an instrument as it stood when the venue last had a stale snapshot of it.
fn stale_script(exchange: &Exchange, index: usize) -> Script {
    let market = &exchange.markets[index];
    let mut script = Script::new(&market.instrument, exchange.seed());
    let update_id = market.earlier_update_id();
    // A script that is played again passes through every step of the one that was played.
    script.play_to(update_id);
    script
}

/// The paths of `venue`.
pub(crate) fn router(venue: Venue, shared: Shared) -> Router {
    match venue {
        Venue::BinanceSpot => binance::spot(shared),
        Venue::BinanceUsdm => binance::usdm(shared),
        Venue::Kraken => kraken::router(shared),
        Venue::Okx => okx::router(shared),
        Venue::Bybit => bybit::router(shared),
        Venue::Deribit => deribit::router(shared),
    }
}
