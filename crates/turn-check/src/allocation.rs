//! An allocation over UDP, and the public address of a socket, for programs that try a server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tt_turn::codec::{Method, attribute};

use crate::client::{Attribute, Client, Login, Response};
use crate::link::Link;

/// Value of REQUESTED-TRANSPORT for UDP (RFC 8656 section 18.7).
const UDP: [u8; 4] = [17, 0, 0, 0];

/// The response of a STUN server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedAddress {
    /// Source address of the request as the server received it.
    pub addr: SocketAddr,
    /// Time from the first request to the response.
    pub round_trip: Duration,
}

/// Asks the STUN server at `server`, from the address `from`, which address it sees. Takes up to 5 s.
///
/// # Errors
/// The network's; `TimedOut` without a response; `InvalidData` if the server rejects the request.
pub fn mapped_address(server: SocketAddr, from: IpAddr) -> io::Result<MappedAddress> {
    let mut client = Client::new(Link::udp(server, from)?, None);
    let begun = Instant::now();
    let response = success(client.ask(Method::Binding, &[])?)?;
    let addr = address(&response, attribute::XOR_MAPPED_ADDRESS)?;
    Ok(MappedAddress { addr, round_trip: begun.elapsed() })
}

/// An allocation over UDP. It ends by itself, after its lifetime.
pub struct Allocation {
    client: Client,
    relayed: SocketAddr,
}

impl Allocation {
    /// Allocates at `server`, from the address `from` (RFC 8656 section 7).
    ///
    /// # Errors
    /// The network's; `TimedOut` without a response; `InvalidData` if the server rejects the request.
    pub fn new(server: SocketAddr, from: IpAddr, login: &Login) -> io::Result<Self> {
        let mut client = Client::new(Link::udp(server, from)?, Some(login));
        let transport = Attribute::Bytes(attribute::REQUESTED_TRANSPORT, &UDP);
        let response = success(client.request(Method::Allocate, &[transport])?)?;
        let relayed = address(&response, attribute::XOR_RELAYED_ADDRESS)?;
        Ok(Self { client, relayed })
    }

    /// The relayed address: what peers send to reaches this client.
    #[must_use]
    pub fn relayed(&self) -> SocketAddr {
        self.relayed
    }

    /// Permits `peer` for 300 s (RFC 8656 section 10).
    ///
    /// # Errors
    /// The network's; `TimedOut` without a response; `InvalidData` if the server rejects the request.
    pub fn permit(&mut self, peer: IpAddr) -> io::Result<()> {
        let peer = Attribute::Address(attribute::XOR_PEER_ADDRESS, SocketAddr::new(peer, 0));
        success(self.client.request(Method::CreatePermission, &[peer])?).map(drop)
    }

    /// Sends `payload` to `peer` through the server; it may be lost.
    ///
    /// # Errors
    /// The network's; `InvalidData` if the payload does not fit into a message of 2,048 bytes.
    pub fn send(&mut self, peer: SocketAddr, payload: &[u8]) -> io::Result<()> {
        Ok(self.client.send(peer, payload)?)
    }

    /// Waits up to `most` for data of a peer; `None` if there are none.
    ///
    /// # Errors
    /// The network's.
    pub fn receive(&mut self, most: Duration) -> io::Result<Option<Vec<u8>>> {
        Ok(self.client.data(Instant::now() + most)?)
    }
}

fn success(response: Response) -> io::Result<Response> {
    match response.code {
        0 => Ok(response),
        code => Err(io::Error::new(io::ErrorKind::InvalidData, format!("the server rejects the request: {code}"))),
    }
}

fn address(response: &Response, kind: u16) -> io::Result<SocketAddr> {
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "the response has no address");
    response.address(kind).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread;

    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Answers one request by hand: the bytes of RFC 8489 section 5 and 14.2, without the codec.
    fn answer(change: fn(&mut Vec<u8>)) -> io::Result<MappedAddress> {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = server.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let mut request = [0; 100];
            let (len, from) = server.recv_from(&mut request).unwrap();
            assert_eq!((len, &request[..8]), (20, &[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42][..]));
            let mut response = vec![1, 1, 0, 12, 0x21, 0x12, 0xA4, 0x42];
            response.extend(&request[8..20]);
            // 192.0.2.7:32853, each XORed with the cookie.
            response.extend([0, 0x20, 0, 8, 0, 1, 0xA1, 0x47, 0xC0 ^ 0x21, 0x12, 0x02 ^ 0xA4, 0x07 ^ 0x42]);
            // One with another transaction and another port comes first.
            let mut stranger = response.clone();
            stranger[8] ^= 1;
            stranger[27] ^= 1;
            server.send_to(&stranger, from).unwrap();
            change(&mut response);
            server.send_to(&response, from).unwrap();
        });
        let mapped = mapped_address(addr, LOOPBACK);
        thread.join().unwrap();
        mapped
    }

    #[test]
    fn returns_the_address_in_the_response_to_its_request() {
        assert_eq!(answer(|_| {}).unwrap().addr, "192.0.2.7:32853".parse().unwrap());
    }

    #[test]
    fn an_error_response_is_an_error() {
        let error = answer(|response| response[0..2].copy_from_slice(&[1, 0x11])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_closed_port_is_an_error_at_once() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = mapped_address(closed, LOOPBACK).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
