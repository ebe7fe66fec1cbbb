//! A WebSocket to a venue.

use std::time::Duration;

use anyhow::Context as _;
use hyper::Uri;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tt_meter::Clock;

use super::dial::{LastRead, Wire, dial};

/// The longest message that is taken; one that is longer closes the connection (1009). Kraken's list of instruments
/// is about 1 MB, its deepest book 80 kB.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Bytes that one `read(2)` asks for.
const READ_BYTES: usize = 64 << 10;

/// A venue upgrades a connection within this time, or is not there.
const UPGRADE_MAX: Duration = Duration::from_secs(10);

/// Opens a WebSocket at `uri`.
///
/// # Errors
/// No connection, or no WebSocket at the other end within 10 s.
pub(super) async fn open(uri: &Uri, clock: Clock) -> anyhow::Result<(WebSocketStream<Wire>, LastRead)> {
    let (wire, last_read) = dial(uri, clock).await?;
    let (socket, _) = upgrade(uri, wire).await?;
    Ok((socket, last_read))
}

/// Makes a WebSocket of a connection to the host of `uri`; with what the venue answered to that.
///
/// # Errors
/// No WebSocket at the other end within 10 s.
pub(super) async fn upgrade(uri: &Uri, wire: Wire) -> anyhow::Result<(WebSocketStream<Wire>, Response)> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let upgraded = tokio_tungstenite::client_async_with_config(uri, wire, Some(config));
    tokio::time::timeout(UPGRADE_MAX, upgraded)
        .await
        .with_context(|| format!("{uri}: no WebSocket within 10 s"))?
        .with_context(|| format!("{uri}"))
}
