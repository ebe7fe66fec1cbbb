//! Ports and sockets for relays.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tt_net::UdpSocket;
use turn_config::PortRange;

/// Random ports that are tried for one socket before the range is searched from a random port.
const DRAWS: usize = 16;
/// Ports of the range that are searched.
const SEARCHED_MAX: u32 = 1_024;

/// Ports that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    Any,
    Even,
}

pub(super) fn port_at(ports: PortRange, offset: u32) -> u16 {
    let span = u32::from(ports.high - ports.low) + 1;
    ports.low + (offset % span) as u16
}

fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(addr)?;
    socket.enable_gro()?;
    socket.enable_icmp_errors()?;
    Ok(socket)
}

/// Binds a socket to an unpredictable port of `range`.
pub(super) fn bind_random(ip: IpAddr, range: PortRange, ports: Ports) -> io::Result<UdpSocket> {
    find_port(range, ports, |port| bind(SocketAddr::new(ip, port)))
}

/// Returns the result of `take` for an unpredictable port of `range` for which it is not `AddrInUse`.
pub(super) fn find_port<T>(range: PortRange, ports: Ports, take: impl Fn(u16) -> io::Result<T>) -> io::Result<T> {
    let span = u32::from(range.high - range.low) + 1;
    let start = random()?;
    let drawn = (0..DRAWS).map(|_| random());
    let searched = (0..span.min(SEARCHED_MAX)).map(|step| Ok(start.wrapping_add(step)));
    for offset in drawn.chain(searched) {
        let port = port_at(range, offset?);
        if ports == Ports::Even && !port.is_multiple_of(2) {
            continue;
        }
        match take(port) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Binds two sockets, to an unpredictable even port of `ports` and to the next port (RFC 8656 section 7.2).
pub(super) fn bind_random_pair(ip: IpAddr, ports: PortRange) -> io::Result<[UdpSocket; 2]> {
    let at = |port| bind(SocketAddr::new(ip, port));
    find_pair(ports, |even| at(even).and_then(|low| Ok([low, at(even + 1)?])))
}

/// Returns the result of `take` for an unpredictable even port for which it is not `AddrInUse`; the next port is of the
/// range, too.
pub(super) fn find_pair<T>(ports: PortRange, take: impl Fn(u16) -> io::Result<T>) -> io::Result<T> {
    let first = u32::from(ports.low).next_multiple_of(2);
    let pairs = (u32::from(ports.high) + 1).saturating_sub(first) / 2;
    let draws = if pairs == 0 { 0 } else { DRAWS };
    for _ in 0..draws {
        match take((first + 2 * (random()? % pairs)) as u16) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Random bytes that one system call gets.
const DRAWN_LEN: usize = 256;

thread_local! {
    /// Random bytes of this thread that are left, at the end.
    static DRAWN: RefCell<([u8; DRAWN_LEN], usize)> = const { RefCell::new(([0; DRAWN_LEN], DRAWN_LEN)) };
}

/// Returns an unpredictable number.
pub(super) fn random() -> io::Result<u32> {
    DRAWN.with_borrow_mut(|(bytes, used)| {
        if *used == DRAWN_LEN {
            getrandom::fill(bytes).map_err(io::Error::other)?;
            *used = 0;
        }
        let mut number = [0; size_of::<u32>()];
        let taken = &mut bytes[*used..*used + number.len()];
        number.copy_from_slice(taken);
        // What was used is not kept.
        taken.fill(0);
        *used += number.len();
        Ok(u32::from_ne_bytes(number))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_number_is_drawn_twice() {
        let numbers: BTreeSet<u32> = (0..DRAWN_LEN).map(|_| random().unwrap()).collect();
        // Two of 256 are equal once in 130,000 runs, and more than two never.
        assert!(numbers.len() >= DRAWN_LEN - 1, "{}", numbers.len());
    }
}
