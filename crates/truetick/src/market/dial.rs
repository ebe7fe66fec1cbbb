//! A TCP connection to a venue, with TLS where the address asks for it, that remembers when `read(2)` last returned.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use hyper::Uri;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tt_meter::{Clock, Stamp};

/// A venue answers a TCP and TLS handshake within this time, or is not there.
const DIAL_MAX: Duration = Duration::from_secs(10);

/// When the last `read(2)` of a connection returned bytes.
#[derive(Clone, Debug)]
pub(super) struct LastRead(Rc<Cell<Stamp>>);

impl LastRead {
    pub(super) fn stamp(&self) -> Stamp {
        self.0.get()
    }
}

/// A plain TCP stream that stamps its reads.
#[derive(Debug)]
pub(super) struct Stamped {
    stream: TcpStream,
    clock: Clock,
    last_read: LastRead,
}

/// Bytes to and from a venue.
#[derive(Debug)]
pub(super) enum Wire {
    /// `ws`, `http`.
    Plain(Stamped),
    /// `wss`, `https`.
    Tls(Box<TlsStream<Stamped>>),
}

/// Connects to the host of `uri`.
///
/// # Errors
/// No such host, refused, no answer within 10 s, or a certificate that is not the host's.
pub(super) async fn dial(uri: &Uri, clock: Clock) -> anyhow::Result<(Wire, LastRead)> {
    tokio::time::timeout(DIAL_MAX, dial_host(uri, clock)).await.context("no answer within 10 s")?
}

/// The host of `uri`, and whether it is spoken to through TLS.
///
/// # Errors
/// No address of a venue, whether reached or not.
pub(super) fn check(uri: &Uri) -> anyhow::Result<(&str, bool)> {
    let host = uri.host().with_context(|| format!("{uri} names no host"))?;
    match uri.scheme_str() {
        Some("ws" | "http") => Ok((host, false)),
        Some("wss" | "https") => Ok((host, true)),
        other => anyhow::bail!("{uri}: {} is no scheme of a venue", other.unwrap_or("none")),
    }
}

async fn dial_host(uri: &Uri, clock: Clock) -> anyhow::Result<(Wire, LastRead)> {
    let (host, tls) = check(uri)?;
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let bare_host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((bare_host, port)).await.with_context(|| format!("{host}:{port}"))?;
    stream.set_nodelay(true)?;
    let last_read = LastRead(Rc::new(Cell::new(clock.end())));
    let stamped = Stamped { stream, clock, last_read: last_read.clone() };
    if !tls {
        return Ok((Wire::Plain(stamped), last_read));
    }
    let name = ServerName::try_from(bare_host.to_owned()).context("the host is no name for a certificate")?;
    let stream = connector().connect(name, stamped).await.with_context(|| format!("TLS with {host}"))?;
    Ok((Wire::Tls(Box::new(stream)), last_read))
}

fn connector() -> TlsConnector {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    TlsConnector::from(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

impl AsyncRead for Stamped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if read.is_ready() {
            this.last_read.0.set(this.clock.end());
        }
        read
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
