//! A path as the TURN engine describes it, and its entry in the kernel's table.

use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;
use zerocopy::IntoBytes as _;

use crate::PathError;
use crate::layout::{Flow, INTERFACES, KIND_ADD, KIND_STRIP, Key4, Key6, NO_METER};

/// Which end of a channel sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client: the ChannelData header is removed (RFC 8656 section 12.6).
    ToPeer,
    /// From the peer: a ChannelData header is added (RFC 8656 section 12.7).
    ToClient,
}

/// The packets of a path, as they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathKey {
    /// Which end sends.
    pub direction: Direction,
    /// Number of the channel, 0x4000 to 0x7FFF: those of RFC 8656 end at 0x4FFF.
    pub channel: u16,
    /// Sender of the packet.
    pub from: SocketAddr,
    /// Receiver of the packet: a listener's address, or the relayed transport address.
    pub to: SocketAddr,
    /// Index of the interface at which it arrives.
    pub ifindex: u32,
}

/// A lease of one direction of one bound channel. It ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The packets of the path.
    pub key: PathKey,
    /// Sender of the packet that leaves: the relayed transport address, or the listener's address.
    pub new_from: SocketAddr,
    /// Receiver of the packet that leaves.
    pub new_to: SocketAddr,
    /// Index of the path's tally.
    pub path: u32,
    /// Index of the meter that its packets take bytes from.
    pub meter: Option<u32>,
    /// CLOCK_MONOTONIC at which the lease ends. The kernel's clock lags up to one tick (10 ms), so the caller subtracts
    /// that.
    pub until: Nanos,
    /// Epoch of the process. A flow of another epoch is not used.
    pub epoch: u32,
    /// Index of the next hop, below 256.
    pub hop: u16,
}

/// A key as the kernel's tables hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Of the table `flows4`.
    V4([u8; 16]),
    /// Of the table `flows6`.
    V6([u8; 40]),
}

impl PathKey {
    /// Returns the key of the kernel's tables.
    ///
    /// # Errors
    /// `Family` if both addresses are not of one family.
    pub fn to_key(self) -> Result<Key, PathError> {
        let (fport, tport) = (self.from.port().to_be_bytes(), self.to.port().to_be_bytes());
        let chan = match self.direction {
            Direction::ToPeer => self.channel.to_be_bytes(),
            Direction::ToClient => [0; 2],
        };
        let iface = (self.ifindex % INTERFACES) as u16;
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let key = Key4 { from: from.octets(), to: to.octets(), fport, tport, chan, iface };
                Ok(Key::V4(zerocopy::transmute!(key)))
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let key = Key6 { from: from.octets(), to: to.octets(), fport, tport, chan, iface };
                Ok(Key::V6(zerocopy::transmute!(key)))
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => Err(PathError::Family),
        }
    }
}

impl PathSpec {
    /// # Errors
    /// `Family` if the four addresses are not of one family.
    pub(crate) fn to_flow(self) -> Result<Flow, PathError> {
        let addresses = [self.key.from, self.key.to, self.new_from, self.new_to].map(|address| address.ip());
        let is_ipv4 = addresses[0].is_ipv4();
        if addresses.iter().any(|address| address.is_ipv4() != is_ipv4) {
            return Err(PathError::Family);
        }
        let [from, to, src, dst] = addresses.map(in_16_bytes);
        let [fport, tport] = [self.key.from, self.key.to].map(|address| address.port().to_be_bytes());
        let [sport, dport] = [self.new_from, self.new_to].map(|address| address.port().to_be_bytes());
        let channel = self.key.channel.to_be_bytes();
        let (kind, chan, removed) = match self.key.direction {
            Direction::ToPeer => (KIND_STRIP, [0; 2], channel),
            Direction::ToClient => (KIND_ADD, channel, [0; 2]),
        };
        let csum = difference(
            &[&src, &dst, &sport[..], &dport[..], &chan[..]],
            &[&from, &to, &fport[..], &tport[..], &removed[..]],
        );
        Ok(Flow {
            src,
            dst,
            sport,
            dport,
            chan,
            csum,
            path: self.path,
            meter: self.meter.unwrap_or(NO_METER),
            until: self.until.0,
            epoch: self.epoch,
            hop: self.hop,
            kind,
            family: if is_ipv4 { 4 } else { 6 },
        })
    }

    /// Returns the value of the kernel's tables.
    ///
    /// # Errors
    /// `Family` if the four addresses are not of one family.
    pub fn to_value(self) -> Result<[u8; 64], PathError> {
        let mut value = [0; 64];
        value.copy_from_slice(self.to_flow()?.as_bytes());
        Ok(value)
    }
}

/// The address, an IPv4 address in the last four bytes.
fn in_16_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[12..].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// Returns the ones' complement sum of `new` without `old`, of words in memory order (RFC 1071, RFC 1624).
fn difference(new: &[&[u8]], old: &[&[u8]]) -> u16 {
    let words = |parts: &[&[u8]]| -> Vec<u16> {
        parts.iter().flat_map(|part| part.chunks_exact(2)).map(|word| u16::from_ne_bytes([word[0], word[1]])).collect()
    };
    let added: u32 = words(new).into_iter().map(u32::from).sum();
    let mut sum = added + words(old).into_iter().map(|word| u32::from(!word)).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(from: &str, to: &str) -> PathKey {
        let parse = |text: &str| text.parse().unwrap();
        PathKey { direction: Direction::ToPeer, channel: 0x4001, from: parse(from), to: parse(to), ifindex: 70 }
    }

    #[test]
    fn keys_hold_network_order_and_the_slot_of_the_interface() {
        let Key::V4(bytes) = key("192.0.2.1:258", "198.51.100.2:3478").to_key().unwrap() else { panic!("IPv4") };
        let slot = 6_u16.to_ne_bytes();
        assert_eq!(bytes, [192, 0, 2, 1, 198, 51, 100, 2, 1, 2, 0x0d, 0x96, 0x40, 1, slot[0], slot[1]]);
        let Key::V6(bytes) = key("[2001:db8::1]:258", "[2001:db8::2]:3478").to_key().unwrap() else { panic!("IPv6") };
        assert_eq!((bytes[15], bytes[31], &bytes[32..38]), (1, 2, &[1, 2, 0x0d, 0x96, 0x40, 1][..]));
        let back = PathKey { direction: Direction::ToClient, ..key("192.0.2.1:258", "198.51.100.2:3478") };
        let Key::V4(bytes) = back.to_key().unwrap() else { panic!("IPv4") };
        assert_eq!(&bytes[12..14], [0, 0]);
    }

    #[test]
    fn mixed_families_are_rejected() {
        assert!(matches!(key("192.0.2.1:1", "[2001:db8::2]:2").to_key(), Err(PathError::Family)));
        let spec = PathSpec {
            key: key("192.0.2.1:1", "192.0.2.2:2"),
            new_from: "192.0.2.3:3".parse().unwrap(),
            new_to: "[2001:db8::2]:2".parse().unwrap(),
            path: 0,
            meter: None,
            until: Nanos(1),
            epoch: 1,
            hop: 0,
        };
        assert!(matches!(spec.to_flow(), Err(PathError::Family)));
    }

    /// RFC 1624 section 4: a header's checksum is 0xDD2F, and a word changes from 0x5555 to 0x3285: the new one is 0x0000.
    #[test]
    fn the_difference_is_that_of_rfc_1624() {
        let difference = difference(&[&[0x32, 0x85]], &[&[0x55, 0x55]]);
        let sum = u32::from(!u16::from_ne_bytes([0xDD, 0x2F])) + u32::from(difference);
        assert_eq!(!((sum & 0xffff) + (sum >> 16)) as u16, 0);
    }
}
