//! Headers of the specification, whole, cut at every byte, and false.

use super::*;

const SIGNATURE: [u8; 12] = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];

fn binary(version_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).unwrap();
    [&SIGNATURE[..], &[version_command, family], &len.to_be_bytes(), rest].concat()
}

fn proxied(source: &str, destination: &str) -> Option<Proxied> {
    Some(Proxied { source: source.parse().unwrap(), destination: destination.parse().unwrap() })
}

/// 192.0.2.1:56324 to 198.51.100.2:443.
const IPV4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 0x01, 0xbb];

fn ipv6() -> Vec<u8> {
    let (source, destination): (Ipv6Addr, Ipv6Addr) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    [&source.octets()[..], &destination.octets(), &IPV4[8..]].concat()
}

/// Whole headers with their meaning.
fn whole() -> Vec<(Vec<u8>, Option<Proxied>)> {
    let ipv4 = proxied("192.0.2.1:56324", "198.51.100.2:443");
    let from_ipv6 = proxied("[2001:db8::1]:56324", "[2001:db8::2]:443");
    // Types 0x04 (no operation, 3 bytes) and 0x02 (authority).
    let tlvs = [&IPV4[..], &[4, 0, 3, 0, 0, 0], &[2, 0, 4], b"turn"].concat();
    let lines = [
        ("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n", ipv4),
        ("PROXY TCP6 2001:db8::1 2001:DB8::2 56324 443\r\n", from_ipv6),
        ("PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 56324 443\r\n", ipv4),
        (
            "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
            proxied("255.255.255.255:65535", "255.255.255.255:65535"),
        ),
        ("PROXY TCP4 192.0.2.1 198.51.100.2 0 0\r\n", proxied("192.0.2.1:0", "198.51.100.2:0")),
        ("PROXY UNKNOWN\r\n", None),
        (
            "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            None,
        ),
    ];
    let binaries = [
        (binary(0x21, 0x11, &IPV4), ipv4),
        (binary(0x21, 0x21, &ipv6()), from_ipv6),
        (binary(0x21, 0x11, &tlvs), ipv4),
        (binary(0x20, 0x00, &[]), None),
        (binary(0x20, 0x11, &IPV4), None),
        (binary(0x20, 0xff, b"of no meaning"), None),
        (binary(0x21, 0x00, &[]), None),
        (binary(0x21, 0x00, &IPV4), None),
        (binary(0x21, 0x12, &IPV4), None),
        (binary(0x21, 0x31, &[0; 216]), None),
        (binary(0x21, 0x11, &[&IPV4[..], &[0; PROXY_HEADER_LEN_MAX - 28]].concat()), ipv4),
    ];
    lines.into_iter().map(|(line, proxied)| (line.as_bytes().to_vec(), proxied)).chain(binaries).collect()
}

#[test]
fn headers_of_the_specification_are_read_whatever_follows_them() {
    for (header, proxied) in whole() {
        let expected = Ok(Some(ProxyHeader { len: header.len(), proxied }));
        assert_eq!(ProxyHeader::parse(&header), expected, "{header:?}");
        for after in [&b"\x00\x01"[..], b"PROXY UNKNOWN\r\n", &[0x16, 3, 1]] {
            assert_eq!(ProxyHeader::parse(&[&header, after].concat()), expected, "{header:?}");
        }
    }
}

#[test]
fn a_header_that_is_cut_at_any_byte_is_incomplete() {
    for (header, _) in whole() {
        for len in 0..header.len() {
            assert_eq!(ProxyHeader::parse(&header[..len]), Ok(None), "{:?}", &header[..len]);
        }
    }
}

#[test]
fn bytes_that_are_no_header_are_missing_from_the_first_that_differs() {
    let others = [
        &b"\x00\x01\x00\x00\x21\x12\xa4\x42"[..],
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\n",
        b"proxy TCP4 ",
        b"\r\n\r\n\0\r\nQUIX",
    ];
    for other in others {
        assert_eq!(ProxyHeader::parse(other), Err(ProxyFault::Missing), "{other:?}");
    }
    assert_eq!(ProxyHeader::parse(b"\r\n\r\n\0\r\nQUI"), Ok(None));
    assert_eq!(ProxyHeader::parse(b"PROXY\t"), Err(ProxyFault::Missing));
}

#[test]
fn lines_that_lie_are_invalid() {
    let lines = [
        "TCP4 192.0.2.1 198.51.100.2 56324",
        "TCP4 192.0.2.1 198.51.100.2 56324 443 1",
        "TCP4 192.0.2.1  198.51.100.2 56324 443",
        "TCP4 192.0.2.1 198.51.100.2 56324 443 ",
        "TCP4 192.0.2.1 198.51.100.2 65536 443",
        "TCP4 192.0.2.1 198.51.100.2 +1 443",
        "TCP4 192.0.2.1 198.51.100.2 01 443",
        "TCP4 192.0.2.1 198.51.100.2 -1 443",
        "TCP4 192.0.2.1 198.51.100.2  443",
        "TCP4 192.0.2.256 198.51.100.2 1 443",
        "TCP4 192.0.02.1 198.51.100.2 1 443",
        "TCP4 192.0.2 198.51.100.2 1 443",
        "TCP4 2001:db8::1 2001:db8::2 1 443",
        "TCP6 192.0.2.1 198.51.100.2 1 443",
        "TCP6 2001:db8::1%eth0 2001:db8::2 1 443",
        "TCP6 2001:db8::1::1 2001:db8::2 1 443",
        "TCP5 192.0.2.1 198.51.100.2 1 443",
        "UDP4 192.0.2.1 198.51.100.2 1 443",
        "tcp4 192.0.2.1 198.51.100.2 1 443",
        "UNKNOWNS",
        "TCP4",
        "",
        " TCP4 192.0.2.1 198.51.100.2 56324 443",
        "TCP4 192.0.2.1 198.51.100.2 56324 443\r",
        "TCP4 192.0.2.1 198.51.100.2 56324\n443",
        "TCP4 192.0.2.1 198.51.100.2 ٣ 443",
    ];
    for line in lines {
        let header = format!("PROXY {line}\r\n");
        assert_eq!(ProxyHeader::parse(header.as_bytes()), Err(ProxyFault::Invalid), "{line}");
    }
    let not_text = b"PROXY TCP4 192.0.2.1 198.51.100.2 \xff 443\r\n";
    assert_eq!(ProxyHeader::parse(not_text), Err(ProxyFault::Invalid));
}

#[test]
fn a_line_ends_within_107_bytes() {
    let line = |len: usize| [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; len - 16], b"\r\n".to_vec()].concat();
    assert_eq!(ProxyHeader::parse(&line(107)), Ok(Some(ProxyHeader { len: 107, proxied: None })));
    assert_eq!(ProxyHeader::parse(&line(108)), Err(ProxyFault::TooLong));
    assert_eq!(ProxyHeader::parse(&line(108)[..106]), Ok(None));
    assert_eq!(ProxyHeader::parse(&line(200)[..107]), Err(ProxyFault::TooLong));
    // A single CR or LF is no end.
    assert_eq!(ProxyHeader::parse(b"PROXY UNKNOWN\n"), Ok(None));
    assert_eq!(ProxyHeader::parse(b"PROXY UNKNOWN\r"), Ok(None));
}

#[test]
fn binary_headers_that_lie_are_invalid_as_soon_as_it_shows() {
    let lies = [
        binary(0x11, 0x11, &IPV4),
        binary(0x31, 0x11, &IPV4),
        binary(0x22, 0x11, &IPV4),
        binary(0x2f, 0x11, &IPV4),
        binary(0x21, 0x41, &IPV4),
        binary(0x21, 0x13, &IPV4),
        binary(0x21, 0x0f, &[]),
        binary(0x21, 0x11, &IPV4[..11]),
        binary(0x21, 0x11, &[]),
        binary(0x21, 0x21, &ipv6()[..35]),
        binary(0x21, 0x21, &IPV4),
        binary(0x21, 0x31, &[0; 215]),
    ];
    for lie in lies {
        assert_eq!(ProxyHeader::parse(&lie), Err(ProxyFault::Invalid), "{lie:?}");
        assert_eq!(ProxyHeader::parse(&lie[..16]), Err(ProxyFault::Invalid), "{lie:?}");
        assert_eq!(ProxyHeader::parse(&lie[..15]), Ok(None), "{lie:?}");
    }
    for (command, family) in [(0x21, 0x11), (0x20, 0)] {
        let long = binary(command, family, &[0; PROXY_HEADER_LEN_MAX - 15]);
        assert_eq!(ProxyHeader::parse(&long[..16]), Err(ProxyFault::TooLong));
    }
}
