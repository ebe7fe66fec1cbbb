//! A WebSocket to a venue, with every size bounded.

mod handshake;

use std::time::Duration;

use anyhow::Context as _;
use hyper::Uri;
use hyper::header::HeaderMap;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tt_meter::Clock;

use handshake::{Upgraded, handshake};

use super::dial::{LastRead, Wire, dial};
use super::unpack::{Fault, Unpacker, Unpacking};

pub(super) use handshake::Refused;

/// The longest message; a longer one closes the connection (1009). Lists of instruments are about 1 MB, whole books up
/// to tens of thousands of levels of 100 bytes. A recording holds a message of this length.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Bytes that one `read(2)` asks for. tungstenite zeroes as many before each.
const READ_BYTES: usize = 16 << 10;

/// Bytes that wait to be written. Beyond, requests wait and other answers are left out until the venue reads.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// What collects before it is written.
const WRITE_BYTES: usize = 16 << 10;

/// A venue upgrades a connection within this time, or is not there.
const UPGRADE_MAX: Duration = Duration::from_secs(10);

/// An open WebSocket.
pub(super) type Socket = WebSocketStream<Unpacking<Wire>>;

/// Opens a WebSocket at `uri`, on which nothing is packed.
///
/// # Errors
/// No connection, or no WebSocket at the other end within 10 s.
pub(super) async fn open(uri: &Uri, clock: Clock) -> anyhow::Result<(Socket, LastRead)> {
    open_packed(uri, false, clock).await
}

/// As [`open`]; where `is_packed`, the venue may pack what it sends (permessage-deflate, RFC 7692).
///
/// # Errors
/// As `open`.
pub(super) async fn open_packed(uri: &Uri, is_packed: bool, clock: Clock) -> anyhow::Result<(Socket, LastRead)> {
    let (wire, last_read) = dial(uri, clock).await?;
    let (socket, _) = upgrade(uri, wire, is_packed).await?;
    Ok((socket, last_read))
}

/// Makes a WebSocket of a connection to the host of `uri`, on which the venue may pack what it sends where
/// `is_packed`; with the header of the venue's answer.
///
/// # Errors
/// No WebSocket at the other end within 10 s.
pub(super) async fn upgrade(uri: &Uri, wire: Wire, is_packed: bool) -> anyhow::Result<(Socket, HeaderMap)> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_write_buffer_size(UNSENT_BYTES_MAX)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let stream = Unpacking::new(wire, Unpacker::new(is_packed, MESSAGE_BYTES_MAX));
    let Upgraded { stream, early, headers } = tokio::time::timeout(UPGRADE_MAX, handshake(uri, stream, is_packed))
        .await
        .with_context(|| format!("{uri}: no WebSocket within 10 s"))?
        .with_context(|| format!("{uri}"))?;
    Ok((WebSocketStream::from_partially_read(stream, early, Role::Client, Some(config)).await, headers))
}

/// Close code for an error of the venue (RFC 6455 section 7.4.1); `None` if the connection is lost.
pub(super) fn close_code(error: &tungstenite::Error) -> Option<CloseCode> {
    let fault = if let tungstenite::Error::Io(error) = error {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>())
    } else {
        None
    };
    match fault {
        Some(Fault::TooLong) => return Some(CloseCode::Size),
        Some(Fault::Corrupt) => return Some(CloseCode::Invalid),
        Some(Fault::Head | Fault::Extension) => return Some(CloseCode::Protocol),
        None => {}
    }
    if let tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. }) = error {
        return Some(CloseCode::Size);
    }
    if let tungstenite::Error::Utf8(_) = error {
        return Some(CloseCode::Invalid);
    }
    let is_lost = |error: &ProtocolError| *error == ProtocolError::ResetWithoutClosingHandshake;
    let is_reported = matches!(error, tungstenite::Error::Protocol(error) if !is_lost(error));
    is_reported.then_some(CloseCode::Protocol)
}
