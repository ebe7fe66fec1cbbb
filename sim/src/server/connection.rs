//! One WebSocket connection: requests in, frames out, pings and silence.

use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use futures_util::{SinkExt, StreamExt};
use tokio::{sync::mpsc, time};

use super::Shared;

/// The longest request that a client may send, in bytes.
pub(super) const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Frames that are written before the socket is flushed.
const BATCH_FRAMES: usize = 256;

/// What a venue makes of a request's text: it answers through [`Exchange::send`](crate::exchange::Exchange::send).
pub(super) type Answer = fn(&Shared, u64, &str);

/// Serves `socket` until either end closes it.
pub(super) async fn serve(
    socket: WebSocket,
    shared: Shared,
    connection: u64,
    mut frames: mpsc::Receiver<Utf8Bytes>,
    answer: Answer,
    heartbeat: Option<&'static str>,
) {
    let (mut sink, mut requests) = socket.split();
    let mut pings = time::interval(shared.ping_every);
    let mut heartbeats = time::interval(Duration::from_secs(1));
    let mut unanswered = 0_u32;
    let mut batch = Vec::with_capacity(BATCH_FRAMES);
    pings.tick().await;
    loop {
        let sent = tokio::select! {
            request = requests.next() => match request {
                Some(Ok(Message::Text(text))) => {
                    answer(&shared, connection, &text);
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
            _ = heartbeats.tick(), if heartbeat.is_some() => {
                if let Some(text) = heartbeat {
                    shared.lock().send(connection, text);
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
