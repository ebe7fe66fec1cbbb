//! Ports that the system or other programs have.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use turn_config::PortRange;

const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";
const SOCKETS: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// Returns an error if the system gives ports of `ports` to programs that ask for any: both settings are for IPv6, too.
pub(super) fn check(ports: PortRange) -> io::Result<()> {
    let (ephemeral, reserved) = (fs::read_to_string(EPHEMERAL)?, fs::read_to_string(RESERVED)?);
    if are_reserved(ports, &ephemeral, &reserved) {
        return Ok(());
    }
    let PortRange { low, high } = ports;
    Err(io::Error::other(format!(
        "the system gives ports of {low}-{high} to other programs: sysctl net.ipv4.ip_local_reserved_ports={low}-{high}"
    )))
}

fn are_reserved(ports: PortRange, ephemeral: &str, reserved: &str) -> bool {
    let mut ends = ephemeral.split_whitespace().map(str::parse::<u16>);
    let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) else { return false };
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some((low.parse::<u16>().ok()?, high.parse::<u16>().ok()?))
    };
    let reserved: Vec<_> = reserved.trim().split(',').filter_map(range).collect();
    (ports.low.max(first)..=ports.high.min(last))
        .all(|port| reserved.iter().any(|(low, high)| (*low..=*high).contains(&port)))
}

/// Returns the ports of `ports` to which programs have bound sockets, whatever their address.
///
/// # Errors
/// The lists cannot be read.
pub(super) fn in_use(ports: PortRange) -> io::Result<BTreeSet<u16>> {
    let mut bound = BTreeSet::new();
    for path in SOCKETS {
        match fs::read_to_string(path) {
            Ok(list) => bound.extend(bound_in(&list).filter(|port| (ports.low..=ports.high).contains(port))),
            // A system without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bound)
}

/// Reads the local ports of `/proc/net/udp`: the second column is `ADDRESS:PORT` in hexadecimal.
fn bound_in(list: &str) -> impl Iterator<Item = u16> {
    let local = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    list.lines().skip(1).filter_map(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_that_the_system_gives_away_is_to_be_reserved() {
        let ports = PortRange { low: 49_152, high: 65_535 };
        let cases = [
            ("32768\t60999\n", "\n", false),
            ("32768\t60999\n", "49152-65535\n", true),
            ("32768\t60999\n", "8080,49152-50000,50001,50002-60999\n", true),
            ("32768\t60999\n", "49152-60998\n", false),
            ("32768\t60999\n", "49153-60999\n", false),
            ("32768\t49151\n", "\n", true),
            ("", "49152-65535", false),
        ];
        for (ephemeral, reserved, expected) in cases {
            assert_eq!(are_reserved(ports, ephemeral, reserved), expected, "{ephemeral} {reserved}");
        }
    }

    #[test]
    fn a_bound_port_is_in_use() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(in_use(PortRange { low: port, high: port }).unwrap().contains(&port));
        let list = "  sl  local_address rem_address\n 7: 0100007F:C350 00000000:0000 07\n 8: no:PORT\n";
        assert_eq!(bound_in(list).collect::<Vec<_>>(), [50_000]);
    }
}
