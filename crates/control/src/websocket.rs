//! WebSocket streams of the market for programs.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use serde_json::Value;
use tt_status::market::MarketStatus;
use tt_status::market_streams::{MarketStreams, Sink, StreamKind};

use crate::answer::absent;
use crate::live::{Listener, too_many};
use crate::market::{StreamQuestion, Which, candles, derivatives, tickers};
use crate::state::{App, Shared};
use crate::streams::{self, Queue};
use crate::wire::Upgrade;

/// Time limit for a client to accept a snapshot.
const SEND_MAX: Duration = Duration::from_secs(5);

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/ws/ticker", get(ws_ticker))
        .route("/ws/orderbook", get(ws_orderbook))
        .route("/ws/ohlcv", get(ws_ohlcv))
        .route("/ws/trades", get(ws_trades))
        .route("/ws/derivatives", get(ws_derivatives))
        .route("/ws/liquidations", get(ws_liquidations))
}

async fn ws_ticker(app: App, which: Which, upgrade: WebSocketUpgrade) -> Response {
    let simulated = app.state.simulated;
    ws(&app, which, upgrade, move |market, which| tickers(market, which, simulated))
}

async fn ws_derivatives(app: App, which: Which, upgrade: WebSocketUpgrade) -> Response {
    let simulated = app.state.simulated;
    ws(&app, which, upgrade, move |market, which| derivatives(market, which, simulated))
}

async fn ws_orderbook(app: App, question: StreamQuestion, upgrade: Upgrade) -> Response {
    let instruments = question.instruments(&app);
    stream(&app, upgrade, move |streams, sink| streams.subscribe(&instruments, question.kind, sink))
}

async fn ws_ohlcv(app: App, which: Which, upgrade: WebSocketUpgrade) -> Response {
    let simulated = app.state.simulated;
    ws(&app, which, upgrade, move |market, which| candles(market, which, simulated))
}

async fn ws_trades(app: App, which: Which, upgrade: Upgrade) -> Response {
    let instruments = which.instruments(&app);
    stream(&app, upgrade, move |streams, sink| streams.subscribe(&instruments, StreamKind::Trades, sink))
}

async fn ws_liquidations(app: App, which: Which, upgrade: Upgrade) -> Response {
    let instruments = which.instruments(&app);
    stream(&app, upgrade, move |streams, sink| streams.subscribe(&instruments, StreamKind::Liquidations, sink))
}

/// Sends what `subscribe` subscribes to, until either side ends.
pub(crate) fn stream(
    shared: &Shared,
    upgrade: Upgrade,
    subscribe: impl FnOnce(&dyn MarketStreams, &Arc<dyn Sink>) + Send + 'static,
) -> Response {
    let Some(streams) = shared.state.market_streams.clone() else { return absent("market") };
    let Ok(place) = Arc::clone(&shared.streams).try_acquire_owned() else { return too_many() };
    let (readers, stopping) = (Arc::clone(&shared.readers), shared.stopping.clone());
    upgrade.accept(move |socket, incoming| {
        let queue = Arc::new(Queue::new(socket, &readers));
        let sink: Arc<dyn Sink> = Arc::clone(&queue) as Arc<dyn Sink>;
        subscribe(&*streams, &sink);
        sink.flush();
        drop(sink);
        streams::serve(queue, incoming, stopping, place)
    })
}

/// Sends the value that `of` returns for each snapshot, unless it is `null`.
pub(crate) fn ws(
    shared: &Shared,
    which: Which,
    upgrade: WebSocketUpgrade,
    of: impl FnMut(&MarketStatus, &Which) -> Value + Send + 'static,
) -> Response {
    let Some(listener) = Listener::new(shared) else { return too_many() };
    upgrade.max_message_size(1024).on_upgrade(move |socket| send_all(socket, listener, which, of))
}

/// Sends the market part of every snapshot until either side ends.
async fn send_all(
    mut socket: WebSocket,
    mut listener: Listener,
    which: Which,
    mut of: impl FnMut(&MarketStatus, &Which) -> Value + Send,
) {
    loop {
        let everything = tokio::select! {
            next = listener.next() => match next {
                Some(everything) => everything,
                None => break,
            },
            received = socket.recv() => match received {
                Some(Ok(_)) => continue, // pings are answered inside; nothing else is expected
                Some(Err(_)) | None => return,
            },
        };
        let Some(market) = &everything.market else { break };
        let value = of(market, &which);
        if value.is_null() {
            continue;
        }
        match tokio::time::timeout(SEND_MAX, socket.send(Message::text(value.to_string()))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
    let _ = tokio::time::timeout(SEND_MAX, socket.send(Message::Close(None))).await;
}
