//! Headers of the PROXY protocol, read a second time as its specification describes them, and cut at every byte.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tt_net::stream::{PROXY_HEADER_LEN_MAX, Proxied, ProxyFault, ProxyHeader};

/// Meaning of the first bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Meaning {
    /// More bytes are needed.
    Open,
    /// No header.
    Other,
    /// A header that breaks the specification, or is too long.
    False,
    /// A header of this length.
    Header(usize, Option<(SocketAddr, SocketAddr)>),
}

/// Compares the parser with the specification, on every prefix of the input.
///
/// # Panics
/// They disagree.
pub fn run(data: &[u8]) {
    let whole = compared(data);
    for len in 0..data.len().min(256) {
        let part = compared(&data[..len]);
        assert!(part == Meaning::Open || part == whole, "{len} of {data:?}: {part:?}, then {whole:?}");
    }
}

fn compared(data: &[u8]) -> Meaning {
    let expected = if b"PROXY ".starts_with(&data[..data.len().min(6)]) { line(data) } else { binary(data) };
    let ends = |proxied: Proxied| (proxied.source, proxied.destination);
    let found = match ProxyHeader::parse(data) {
        Ok(None) => Meaning::Open,
        Ok(Some(header)) => Meaning::Header(header.len, header.proxied.map(ends)),
        Err(ProxyFault::Missing) => Meaning::Other,
        Err(ProxyFault::Invalid | ProxyFault::TooLong | ProxyFault::Unlisted) => Meaning::False,
    };
    assert_eq!(found, expected, "{data:?}");
    found
}

/// Section 2.1.
fn line(data: &[u8]) -> Meaning {
    if data.len() < 6 {
        return Meaning::Open;
    }
    let mut end = 0;
    while !data[end..].starts_with(b"\r\n") {
        end += 1;
        if end >= data.len() {
            return Meaning::Open;
        }
        if end + 2 > 107 {
            return Meaning::False;
        }
    }
    let len = end + 2;
    let unknown = &data[6..end];
    if unknown == b"UNKNOWN" || unknown.starts_with(b"UNKNOWN ") {
        return Meaning::Header(len, None);
    }
    let text: String = data[..end].iter().map(|byte| char::from(*byte)).collect();
    let words: Vec<&str> = text.split(' ').collect();
    let &[_, family, source, destination, source_port, destination_port] = &words[..] else { return Meaning::False };
    let ports = [source_port, destination_port]
        .map(|port| port.parse::<u16>().ok().filter(|number| number.to_string() == port));
    let [Some(source_port), Some(destination_port)] = ports else { return Meaning::False };
    let ends = match family {
        "TCP4" => {
            source.parse::<Ipv4Addr>().ok().zip(destination.parse::<Ipv4Addr>().ok()).map(|(source, destination)| {
                (SocketAddr::from((source, source_port)), SocketAddr::from((destination, destination_port)))
            })
        }
        "TCP6" => source
            .parse::<Ipv6Addr>()
            .ok()
            .zip(destination.parse::<Ipv6Addr>().ok())
            .map(|(source, destination)| (plain(source, source_port), plain(destination, destination_port))),
        _ => None,
    };
    ends.map_or(Meaning::False, |ends| Meaning::Header(len, Some(ends)))
}

/// ::ffff:0:0/96 carries IPv4.
fn plain(ip: Ipv6Addr, port: u16) -> SocketAddr {
    match ip.to_ipv4_mapped() {
        Some(ip) => SocketAddr::from((ip, port)),
        None => SocketAddr::from((ip, port)),
    }
}

/// Section 2.2.
fn binary(data: &[u8]) -> Meaning {
    let signature = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
    if data.iter().zip(signature).any(|(byte, wanted)| *byte != wanted) {
        return Meaning::Other;
    }
    if data.len() < 16 {
        return Meaning::Open;
    }
    let is_local = data[12] == 0x20;
    let length = usize::from(data[14]) * 256 + usize::from(data[15]);
    let sizes = [0, 2 * 4 + 2 * 2, 2 * 16 + 2 * 2, 2 * 108];
    let (family, protocol) = (usize::from(data[13] / 16), data[13] % 16);
    let is_known = data[12] == 0x21 && family <= 3 && protocol <= 2 && length >= sizes[family];
    if !(is_local || is_known) || 16 + length > PROXY_HEADER_LEN_MAX {
        return Meaning::False;
    }
    if data.len() < 16 + length {
        return Meaning::Open;
    }
    let port = |at: usize| u16::from(data[at]) * 256 + u16::from(data[at + 1]);
    let ipv6 = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&data[at..at + 16]).expect("16 bytes"));
    let ends = match data[13] {
        _ if is_local => None,
        0x11 => {
            let ipv4 = |at: usize| Ipv4Addr::new(data[at], data[at + 1], data[at + 2], data[at + 3]);
            Some((SocketAddr::from((ipv4(16), port(24))), SocketAddr::from((ipv4(20), port(26)))))
        }
        0x21 => Some((plain(ipv6(16), port(48)), plain(ipv6(32), port(50)))),
        _ => None,
    };
    Meaning::Header(16 + length, ends)
}
