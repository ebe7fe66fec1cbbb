//! A TCP connection to a venue, with TLS where the address asks for it, that remembers when `read(2)` last returned.

use std::cell::Cell;
use std::io;
use std::path::Path;
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
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
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

/// Where an address leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// A name, or an IP address without brackets.
    pub(super) host: String,
    /// The port, the scheme's own where the address has none.
    pub(super) port: u16,
    /// Whether it is spoken to through TLS.
    pub(super) is_tls: bool,
}

impl Target {
    /// Where `uri` leads.
    ///
    /// # Errors
    /// No address of a venue, whether reached or not.
    pub(super) fn of(uri: &Uri) -> anyhow::Result<Self> {
        let host = uri.host().with_context(|| format!("{uri} names no host"))?;
        let is_tls = match uri.scheme_str() {
            Some("ws" | "http") => false,
            Some("wss" | "https") => true,
            other => anyhow::bail!("{uri}: {} is no scheme of a venue", other.unwrap_or("none")),
        };
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { host: host.trim_start_matches('[').trim_end_matches(']').to_owned(), port, is_tls })
    }

    /// Bytes to and from the other end of `stream`, through TLS where the address asks for it.
    ///
    /// # Errors
    /// A certificate that is not the host's, or is not trusted; no TLS at the other end.
    pub(super) async fn speak(&self, stream: TcpStream, clock: Clock) -> anyhow::Result<(Wire, LastRead)> {
        stream.set_nodelay(true)?;
        let last_read = LastRead(Rc::new(Cell::new(clock.end())));
        let stamped = Stamped { stream, clock, last_read: last_read.clone() };
        if !self.is_tls {
            return Ok((Wire::Plain(stamped), last_read));
        }
        Ok((secured(stamped, &self.host, trusted()?).await?, last_read))
    }
}

async fn dial_host(uri: &Uri, clock: Clock) -> anyhow::Result<(Wire, LastRead)> {
    let target = Target::of(uri)?;
    let (host, port) = (target.host.as_str(), target.port);
    let stream = TcpStream::connect((host, port)).await.with_context(|| format!("{host}:{port}"))?;
    target.speak(stream, clock).await
}

/// The certificates that browsers trust, and those in the file that `SSL_CERT_FILE` names (PEM).
fn trusted() -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = std::env::var_os("SSL_CERT_FILE") {
        let unreadable = || format!("SSL_CERT_FILE: {}", Path::new(&path).display());
        for certificate in CertificateDer::pem_file_iter(&path).with_context(unreadable)? {
            roots.add(certificate.with_context(unreadable)?).with_context(unreadable)?;
        }
    }
    Ok(roots)
}

/// TLS with `host`, whose certificate has to be its own, in date, and of one of `roots`.
async fn secured(stream: Stamped, host: &str, roots: RootCertStore) -> anyhow::Result<Wire> {
    let name = ServerName::try_from(host.to_owned()).context("the host is no name for a certificate")?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    Ok(Wire::Tls(Box::new(connected.with_context(|| format!("TLS with {host}"))?)))
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

#[cfg(test)]
mod tests;
