//! The opening handshake of a WebSocket (RFC 6455 section 4.1), by the HTTP client that REST uses.

use std::fmt;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::dial::Wire;
use crate::random;
use crate::unpack::Unpacking;

/// What is kept of a refusal's body, bytes.
const WORDS_MAX: usize = 4 << 10;

/// What a venue adds to the key to show that it knows WebSockets (RFC 6455 section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What is offered for packed messages (RFC 7692).
const PACKED: &str = "permessage-deflate; client_no_context_takeover";

/// An answer that is no WebSocket.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    /// The venue's words, or their beginning.
    pub(crate) body: Bytes,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP error: {}", self.status)
    }
}

impl std::error::Error for Refused {}

/// A connection that carries frames from here on.
pub(super) struct Upgraded {
    pub(super) stream: Unpacking<Wire>,
    /// What came behind the answer.
    pub(super) early: Vec<u8>,
    /// The answer's header.
    pub(super) headers: HeaderMap,
}

/// Requests a WebSocket at `uri`, and packed messages where `is_packed`.
///
/// # Errors
/// [`Refused`]; an answer of something that knows no WebSocket; no connection.
pub(super) async fn handshake(uri: &Uri, stream: Unpacking<Wire>, is_packed: bool) -> anyhow::Result<Upgraded> {
    let key = STANDARD.encode(random::bytes::<16>().context("no random bytes")?);
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::get(path)
        .header(header::HOST, host)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key);
    if is_packed {
        request = request.header(header::SEC_WEBSOCKET_EXTENSIONS, PACKED);
    }
    let request = request.body(Empty::<Bytes>::new())?;
    let (mut sender, connection) =
        http1::Builder::new().title_case_headers(true).handshake(TokioIo::new(stream)).await?;
    let answer = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            let body = Limited::new(answer.into_body(), WORDS_MAX).collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            return Err(Refused { status, body }.into());
        }
        check(answer.headers(), &key)?;
        Ok(answer.headers().clone())
    };
    let upgraded = async { connection.without_shutdown().await.map_err(anyhow::Error::new) };
    let (headers, parts) = tokio::try_join!(answer, upgraded)?;
    Ok(Upgraded { stream: parts.io.into_inner(), early: parts.read_buf.to_vec(), headers })
}

/// Whether the answer is that of a WebSocket to the request with `key`. The extensions are looked at where messages are
/// unpacked.
fn check(headers: &HeaderMap, key: &str) -> anyhow::Result<()> {
    let has_word = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
    };
    ensure!(has_word(header::UPGRADE, "websocket"), "no WebSocket: the answer has no `Upgrade: websocket`");
    ensure!(has_word(header::CONNECTION, "upgrade"), "no WebSocket: the answer has no `Connection: Upgrade`");
    let accepted = headers.get(header::SEC_WEBSOCKET_ACCEPT).map(|value| value.as_bytes());
    ensure!(accepted == Some(accept(key).as_bytes()), "no WebSocket: the answer is not one to this request");
    ensure!(!headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL), "no WebSocket: a subprotocol that was not offered");
    Ok(())
}

/// What a WebSocket answers to `key` (RFC 6455 section 4.2.2).
fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key and the answer of RFC 6455 section 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    #[test]
    fn only_the_answer_to_the_key_is_a_websocket() {
        let answer = |lines: &[(&'static str, &'static str)]| -> HeaderMap {
            let named = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), header::HeaderValue::from_static(value))
            };
            lines.iter().map(named).collect()
        };
        let good = [("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade"), ("sec-websocket-accept", ACCEPT)];
        check(&answer(&good), KEY).unwrap();
        for without in 0..good.len() {
            let others: Vec<_> = (0..good.len()).filter(|index| *index != without).map(|index| good[index]).collect();
            assert!(check(&answer(&others), KEY).is_err(), "without {}", good[without].0);
        }
        assert!(check(&answer(&good), "x3JJHMbDL1EzLkh9GBhXDw==").is_err(), "another key");
        let spoken = [good[0], good[1], good[2], ("sec-websocket-protocol", "chat")];
        assert!(check(&answer(&spoken), KEY).is_err(), "a subprotocol");
    }
}
