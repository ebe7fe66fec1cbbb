//! The sockets: one HTTP server a venue, WebSocket and REST on the same port.

mod binance;
mod connection;
mod kraken;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::Router;

use crate::{exchange::Exchange, instrument::Venue};

/// What the requests to one venue share.
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

/// The paths of `venue`.
pub(crate) fn router(venue: Venue, shared: Shared) -> Router {
    match venue {
        Venue::BinanceSpot => binance::spot(shared),
        Venue::BinanceUsdm => binance::usdm(shared),
        Venue::Kraken => kraken::router(shared),
    }
}
