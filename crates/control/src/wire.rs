//! WebSockets whose frames are written by this crate, and read by tungstenite.

use std::io::{self, Read, Write};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// The longest message of a client, and the longest frame.
const MESSAGE_MAX: usize = 1024;
/// Messages of a client that are read before others get their turn.
const MESSAGES_PER_TURN: usize = 64;

/// A frame of the server (RFC 6455 section 5.2): not masked, one for a whole message.
#[derive(Debug)]
pub(crate) struct Frame {
    head: [u8; 10],
    head_len: u8,
    payload: Arc<[u8]>,
}

impl Frame {
    /// A text message.
    pub(crate) fn text(message: Arc<str>) -> Self {
        let mut head = [0; 10];
        head[0] = 0x81;
        let len = message.len();
        let head_len = match len {
            0..126 => {
                head[1] = len as u8;
                2
            }
            126..=0xffff => {
                head[1] = 126;
                head[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                4
            }
            _ => {
                head[1] = 127;
                head[2..].copy_from_slice(&(len as u64).to_be_bytes());
                10
            }
        };
        Self { head, head_len, payload: message.into() }
    }

    /// A close frame without a reason.
    pub(crate) fn close() -> Self {
        Self::raw(vec![0x88, 0])
    }

    /// Frames as they are.
    fn raw(bytes: Vec<u8>) -> Self {
        Self { head: [0; 10], head_len: 0, payload: bytes.into() }
    }

    /// The bytes of the frame, in two parts.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        [&self.head[..usize::from(self.head_len)], &self.payload]
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.head_len) + self.payload.len()
    }
}

/// A request for a WebSocket, which tungstenite's rules accept.
pub(crate) struct Upgrade {
    accept: HeaderValue,
    on_upgrade: OnUpgrade,
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let on_upgrade = parts.extensions.get::<OnUpgrade>().cloned();
        // Its checks are all that is needed of it.
        let checked = WebSocketUpgrade::from_request_parts(parts, state).await;
        drop(checked.map_err(WebSocketUpgradeRejection::into_response)?);
        let key = parts.headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
        let accept = key.and_then(|key| HeaderValue::from_str(&key).ok());
        let (accept, on_upgrade) = accept.zip(on_upgrade).ok_or_else(|| StatusCode::BAD_REQUEST.into_response())?;
        Ok(Self { accept, on_upgrade })
    }
}

impl Upgrade {
    /// Answers, and hands the connection to `serve` when the answer is sent.
    pub(crate) fn accept<F: Future<Output = ()> + Send + 'static>(
        self,
        serve: impl FnOnce(Arc<TcpStream>, Incoming) -> F + Send + 'static,
    ) -> Response {
        tokio::spawn(async move {
            // The client has gone meanwhile.
            let Ok(upgraded) = self.on_upgrade.await else { return };
            let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
                return tracing::error!("http: a WebSocket on no TCP connection");
            };
            let socket = Arc::new(parts.io.into_inner());
            let incoming = Incoming::new(Arc::clone(&socket), parts.read_buf.to_vec());
            serve(socket, incoming).await;
        });
        let upgrade = HeaderValue::from_static("websocket");
        let connection = HeaderValue::from_static("upgrade");
        let headers =
            [(header::UPGRADE, upgrade), (header::CONNECTION, connection), (header::SEC_WEBSOCKET_ACCEPT, self.accept)];
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }
}

/// The frames of the client, and tungstenite's answers to them.
pub(crate) struct Incoming(WebSocket<Wire>);

/// Reads from the socket without waiting, and collects what is written.
struct Wire {
    socket: Arc<TcpStream>,
    answers: Vec<u8>,
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.try_read(into)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answers.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Incoming {
    fn new(socket: Arc<TcpStream>, read: Vec<u8>) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(4 * MESSAGE_MAX)
            .max_message_size(Some(MESSAGE_MAX))
            .max_frame_size(Some(MESSAGE_MAX));
        let wire = Wire { socket, answers: Vec::new() };
        Self(WebSocket::from_partially_read(wire, read, Role::Server, Some(config)))
    }

    /// Reads what is there: pings are answered, and nothing else is expected. Returns whether the stream goes on.
    pub(crate) fn read(&mut self) -> bool {
        for _ in 0..MESSAGES_PER_TURN {
            match self.0.read() {
                Ok(Message::Close(_)) => {
                    // Its answer is collected.
                    let _ = self.0.flush();
                    return false;
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        self.0.flush().is_ok()
    }

    /// Answers that are to be written; none twice.
    pub(crate) fn take_answers(&mut self) -> Option<Frame> {
        let answers = std::mem::take(&mut self.0.get_mut().answers);
        (!answers.is_empty()).then(|| Frame::raw(answers))
    }
}
