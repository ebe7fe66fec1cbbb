//! A connection to a server over one transport.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::target::Transport;

/// Longest datagram and message.
const LEN_MAX: usize = 65_535;
const HEADER_LEN: usize = 20;
/// Time until a connection is there.
const CONNECT: Duration = Duration::from_secs(5);

/// A connection.
pub(crate) enum Link {
    Udp(UdpSocket),
    Tcp(TcpStream, Vec<u8>),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>, Vec<u8>),
}

/// Returns the authorities of the web, and those of `pem`.
///
/// # Errors
/// The text is no PEM with certificates.
pub fn roots_of(pem: Option<&[u8]>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for certificate in pem.into_iter().flat_map(CertificateDer::pem_slice_iter) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

impl Link {
    /// Connects to the first address of `host` that answers.
    pub(crate) fn open(transport: Transport, host: &str, port: u16, roots: &Arc<RootCertStore>) -> io::Result<Self> {
        let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        for addr in (host, port).to_socket_addrs()? {
            result = Self::connect(transport, host, addr, roots);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn connect(transport: Transport, host: &str, addr: SocketAddr, roots: &Arc<RootCertStore>) -> io::Result<Self> {
        let stream = || {
            let stream = TcpStream::connect_timeout(&addr, CONNECT)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(CONNECT))?;
            stream.set_write_timeout(Some(CONNECT))?;
            Ok::<_, io::Error>(stream)
        };
        match transport {
            Transport::Udp => {
                let any = if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
                Self::udp(addr, any)
            }
            Transport::Tcp => Ok(Self::Tcp(stream()?, Vec::new())),
            Transport::Tls => {
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
                let config =
                    config.map_err(io::Error::other)?.with_root_certificates(Arc::clone(roots)).with_no_client_auth();
                let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
                let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
                let mut tls = StreamOwned::new(connection, stream()?);
                while tls.conn.is_handshaking() {
                    tls.conn.complete_io(&mut tls.sock)?;
                }
                Ok(Self::Tls(Box::new(tls), Vec::new()))
            }
        }
    }

    /// Opens a UDP socket at `from` that receives datagrams and ICMP errors of `addr` alone.
    pub(crate) fn udp(addr: SocketAddr, from: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((from, 0))?;
        socket.connect(addr)?;
        Ok(Self::Udp(socket))
    }

    /// Returns the connection of TLS.
    pub(crate) fn tls(&self) -> Option<&ClientConnection> {
        match self {
            Self::Tls(tls, _) => Some(&tls.conn),
            Self::Udp(_) | Self::Tcp(..) => None,
        }
    }

    /// Returns the address of this end.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(socket) => socket.local_addr(),
            Self::Tcp(stream, _) => stream.local_addr(),
            Self::Tls(tls, _) => tls.sock.local_addr(),
        }
    }

    /// Returns the address of the server.
    pub(crate) fn server_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(socket) => socket.peer_addr(),
            Self::Tcp(stream, _) => stream.peer_addr(),
            Self::Tls(tls, _) => tls.sock.peer_addr(),
        }
    }

    /// Returns whether messages may get lost.
    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.send(message).map(drop),
            Self::Tcp(stream, _) => stream.write_all(message),
            Self::Tls(tls, _) => tls.write_all(message).and_then(|()| tls.flush()),
        }
    }

    /// Receives the next STUN message; `None` if none comes before `deadline`.
    pub(crate) fn receive(&mut self, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Self::Tcp(_, buffer) | Self::Tls(_, buffer) = self
                && let Some(message) = take_message(buffer)
            {
                return Ok(Some(message));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut bytes = vec![0; LEN_MAX];
            let read = match self {
                Self::Udp(socket) => socket.set_read_timeout(Some(left)).and_then(|()| socket.recv(&mut bytes)),
                Self::Tcp(stream, _) => stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut bytes)),
                Self::Tls(tls, _) => tls.sock.set_read_timeout(Some(left)).and_then(|()| tls.read(&mut bytes)),
            };
            let length = match read {
                Ok(length) => length,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            match self {
                Self::Udp(_) => {
                    bytes.truncate(length);
                    return Ok(Some(bytes));
                }
                Self::Tcp(..) | Self::Tls(..) if length == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Self::Tcp(_, buffer) | Self::Tls(_, buffer) => {
                    buffer.extend_from_slice(bytes.get(..length).unwrap_or(&[]))
                }
            }
        }
    }
}

/// Takes the first whole message out of `buffer` (RFC 8489 section 6.2.2, RFC 8656 section 12.5).
fn take_message(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes([*buffer.get(2)?, *buffer.get(3)?]));
    let is_channel_data = buffer.first()? & 0xC0 == 0x40;
    let length = if is_channel_data { (4 + length).next_multiple_of(4) } else { HEADER_LEN + length };
    (buffer.len() >= length).then(|| buffer.drain(..length).collect())
}
