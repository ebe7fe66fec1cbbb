//! One WebSocket connection: requests in, frames out, pings and silence.

use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use futures_util::{SinkExt, StreamExt};
use tokio::{sync::mpsc, time};

use super::Shared;
use crate::exchange::Exchange;

/// The longest request that a client may send, in bytes.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Bytes that one `read(2)` asks for. tungstenite zeroes as many before each.
const READ_BYTES: usize = 2 << 10;

/// Frames that are written before the socket is flushed.
const BATCH_FRAMES: usize = 256;

/// Handles a request's text; replies go through [`Exchange::send`](crate::exchange::Exchange::send).
pub(crate) type Answer = fn(&mut Exchange, u64, &str);

/// How long a half-open connection is kept: every client has given up by then.
const HALF_OPEN_MAX: Duration = Duration::from_secs(300);

/// Runs once a second; returns whether the connection continues.
pub(super) type Beat = fn(&mut Exchange, u64) -> bool;

/// Returns `upgrade` with the bounds of every connection.
pub(super) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade.max_message_size(REQUEST_BYTES_MAX).read_buffer_size(READ_BYTES)
}

/// Serves `socket` until either end closes it.
pub(super) async fn serve(
    socket: WebSocket,
    shared: Shared,
    connection: u64,
    mut frames: mpsc::Receiver<Utf8Bytes>,
    answer: Answer,
    beat: Option<Beat>,
) {
    let (mut sink, mut requests) = socket.split();
    let mut pings = time::interval(shared.ping_every);
    let mut seconds = time::interval(Duration::from_secs(1));
    let mut unanswered = 0_u32;
    let mut batch = Vec::with_capacity(BATCH_FRAMES);
    pings.tick().await;
    loop {
        if shared.lock().is_half_open(connection) {
            // Open, and deaf and dumb, until the exchange forgets it. A client that has given up is not heard either.
            let _ = time::timeout(HALF_OPEN_MAX, async { while frames.recv().await.is_some() {} }).await;
            break;
        }
        let sent = tokio::select! {
            request = requests.next() => match request {
                Some(Ok(Message::Text(text))) => {
                    let exchange = &mut *shared.lock();
                    exchange.hear(connection);
                    answer(exchange, connection, &text);
                    Ok(())
                }
                Some(Ok(Message::Pong(_))) => {
                    unanswered = 0;
                    Ok(())
                }
                // Pings are answered by the library.
                Some(Ok(Message::Ping(_) | Message::Binary(_))) => Ok(()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
            },
            taken = frames.recv_many(&mut batch, BATCH_FRAMES) => {
                if taken == 0 {
                    // The exchange forgot the connection: it was cut off.
                    break;
                }
                let mut sent = Ok(());
                for frame in batch.drain(..) {
                    sent = sent.and(sink.feed(Message::Text(frame)).await);
                }
                sent.and(sink.flush().await)
            },
            _ = pings.tick(), if unanswered < 3 => {
                unanswered += 1;
                sink.send(Message::Ping(Vec::new().into())).await
            },
            _ = seconds.tick(), if beat.is_some() => {
                if !beat.is_none_or(|beat| beat(&mut shared.lock(), connection)) {
                    break;
                }
                Ok(())
            },
        };
        if sent.is_err() || unanswered == 3 {
            break;
        }
    }
    shared.lock().disconnect(connection);
}
