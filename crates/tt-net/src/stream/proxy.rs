//! The PROXY protocol, versions 1 and 2: a balancer says for whom it has connected.
//!
//! The specification is [proxy-protocol.txt](https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). Optional
//! fields of version 2 (TLVs) are skipped, the checksum among them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The longest accepted header, bytes. Version 1 has at most 107, version 2 rarely more than 536.
pub const PROXY_HEADER_LEN_MAX: usize = 4_096;

/// Section 2.1: the longest line, with its end.
const LINE_LEN_MAX: usize = 107;
const SIGNATURE_1: &[u8] = b"PROXY ";
const SIGNATURE_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Section 2.2: the bytes of version 2 in front of the addresses.
const FIXED_LEN: usize = 16;
/// The longer one of both signatures.
pub(super) const SIGNATURE_LEN_MAX: usize = SIGNATURE_2.len();

/// A whole header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Length, bytes.
    pub len: usize,
    /// Both ends of the client's connection. `None` if it is the balancer's own (`LOCAL`, a health check), or no TCP
    /// over IP (`UNKNOWN`, `AF_UNSPEC`, `AF_UNIX`, UDP): then the addresses of the connection itself count.
    pub proxied: Option<Proxied>,
}

/// Both ends of a client's connection to a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxied {
    /// The client.
    pub source: SocketAddr,
    /// The address that the client has connected to.
    pub destination: SocketAddr,
}

/// Why a connection has no header that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// It begins with something else.
    Missing,
    /// The header breaks the specification.
    Invalid,
    /// The header is longer than [`PROXY_HEADER_LEN_MAX`], or a line longer than 107 bytes.
    TooLong,
    /// A header from an address that may send none, or a second one.
    Unlisted,
}

/// Result of [`read_proxy_header`](super::Connection::read_proxy_header).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderProgress {
    /// The header is incomplete; the poller returns the key when more arrives.
    Waiting,
    /// The header has been read, and nothing behind it.
    Done,
}

/// How bytes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With the signature of a header.
    Signature,
    /// All of them are the beginning of a signature.
    Part,
    /// Otherwise.
    Other,
}

impl Start {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let starts = [SIGNATURE_1, SIGNATURE_2].map(|signature| {
            let is_same = bytes.iter().zip(signature).all(|(byte, wanted)| byte == wanted);
            (is_same, bytes.len() >= signature.len())
        });
        match (starts.contains(&(true, true)), starts.contains(&(true, false))) {
            (true, _) => Self::Signature,
            (false, true) => Self::Part,
            (false, false) => Self::Other,
        }
    }
}

impl ProxyHeader {
    /// Reads the header in front of `bytes`; `None` if it is incomplete.
    ///
    /// # Errors
    /// [`ProxyFault::Missing`], [`ProxyFault::Invalid`], [`ProxyFault::TooLong`], as soon as no further byte can change
    /// it.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, ProxyFault> {
        match Start::of(bytes) {
            Start::Other => Err(ProxyFault::Missing),
            Start::Part => Ok(None),
            Start::Signature if bytes.starts_with(SIGNATURE_1) => line(bytes),
            Start::Signature => binary(bytes),
        }
    }
}

/// Section 2.1.
fn line(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyFault> {
    let head = &bytes[..bytes.len().min(LINE_LEN_MAX)];
    let Some(end) = head.windows(2).position(|two| two == b"\r\n") else {
        return if bytes.len() < LINE_LEN_MAX { Ok(None) } else { Err(ProxyFault::TooLong) };
    };
    let mut words = head[SIGNATURE_1.len()..end].split(|byte| *byte == b' ');
    let proxied = match words.next() {
        Some(b"TCP4") => Some(addresses::<Ipv4Addr>(words).ok_or(ProxyFault::Invalid)?),
        Some(b"TCP6") => Some(addresses::<Ipv6Addr>(words).ok_or(ProxyFault::Invalid)?),
        Some(b"UNKNOWN") => None,
        Some(_) | None => return Err(ProxyFault::Invalid),
    };
    Ok(Some(ProxyHeader { len: end + 2, proxied }))
}

fn addresses<'a, T: FromStr + Into<IpAddr>>(words: impl Iterator<Item = &'a [u8]>) -> Option<Proxied> {
    let words: Option<Vec<&str>> = words.map(|word| std::str::from_utf8(word).ok()).collect();
    let words: [&str; 4] = words?.try_into().ok()?;
    let [source, destination, source_port, destination_port] = words;
    let ip = |text: &str| text.parse::<T>().ok().map(Into::into);
    let source = socket_addr(ip(source)?, port(source_port)?);
    Some(Proxied { source, destination: socket_addr(ip(destination)?, port(destination_port)?) })
}

/// A number without a sign and without leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_canonical)
}

/// Section 2.2.
fn binary(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyFault> {
    const LOCAL: u8 = 0;
    const PROXY: u8 = 1;
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_LEN>() else { return Ok(None) };
    let (version, command, family, transport) = (fixed[12] >> 4, fixed[12] & 0xf, fixed[13] >> 4, fixed[13] & 0xf);
    let rest_len = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    let addresses_len = match (version, command, family, transport) {
        // The rest is skipped, whatever it is.
        (2, LOCAL, ..) | (2, PROXY, 0, 0..=2) => 0,
        (2, PROXY, 1, 0..=2) => 12,
        (2, PROXY, 2, 0..=2) => 36,
        (2, PROXY, 3, 0..=2) => 216,
        _ => return Err(ProxyFault::Invalid),
    };
    let len = FIXED_LEN + rest_len;
    if rest_len < addresses_len {
        return Err(ProxyFault::Invalid);
    }
    if len > PROXY_HEADER_LEN_MAX {
        return Err(ProxyFault::TooLong);
    }
    let Some(rest) = rest.get(..rest_len) else { return Ok(None) };
    let proxied = match (command, family, transport) {
        (PROXY, 1, 1) => ends::<4>(rest),
        (PROXY, 2, 1) => ends::<16>(rest),
        _ => None,
    };
    Ok(Some(ProxyHeader { len, proxied }))
}

/// Source and destination, then their ports.
fn ends<const LEN: usize>(rest: &[u8]) -> Option<Proxied>
where
    IpAddr: From<[u8; LEN]>,
{
    let (source, rest) = rest.split_first_chunk::<LEN>()?;
    let (destination, rest) = rest.split_first_chunk::<LEN>()?;
    let ports = rest.first_chunk::<4>()?;
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    let source = socket_addr((*source).into(), port(0));
    Some(Proxied { source, destination: socket_addr((*destination).into(), port(2)) })
}

/// An IPv4 address that IPv6 carries is one of IPv4.
fn socket_addr(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), port)
}

#[cfg(test)]
mod tests;
