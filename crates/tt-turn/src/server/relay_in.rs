//! From a peer to the client (RFC 8656 sections 11.3, 12.5 and 12.7).

use core::net::SocketAddr;

use tt_meter::{Probe, Stage};
use tt_model::{ByteRange, IpFamily, Nanos, Transport};

use super::Server;
use crate::drop_reason::DropReason;
use crate::emit::Emitter;
use crate::flow::canonical;
use crate::message::{Class, Method, TransactionId, attribute};
use crate::output::Output;
use crate::permission::Ports;
use crate::relay::PeerPath;

/// Longest payload of UDP over IPv4.
const UDP_PAYLOAD_MAX: usize = 65_507;
/// Longest payload of UDP, and of ChannelData.
const PAYLOAD_MAX: usize = 65_535;
/// Longest length in a STUN header: a multiple of four.
const STUN_LENGTH_MAX: usize = 65_532;

impl Server {
    /// Handles a packet of `len` bytes that a relay socket received.
    #[inline]
    pub(super) fn peer_datagram<P: Probe>(
        &mut self,
        now: Nanos,
        from: PeerPath,
        len: usize,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        probe.mark(Stage::Parse);
        if len > PAYLOAD_MAX {
            return Err(DropReason::TooLarge);
        }
        self.relay_in(now, from, ByteRange::new(0, len as u32), out, probe)
    }

    /// Relays a payload of at most [`PAYLOAD_MAX`] bytes to the client of the relay's allocation.
    #[inline]
    pub(super) fn relay_in<P: Probe>(
        &mut self,
        now: Nanos,
        from: PeerPath,
        payload: ByteRange,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        let peer = canonical(from.peer);
        let payload_len = payload.len();
        probe.mark(Stage::Validate);
        let front = self.relays.fronts.get(from.relay).ok_or(DropReason::RelayUnallocated)?;
        let index = front.live(IpFamily::of(peer.ip()), now).ok_or(DropReason::RelayUnallocated)?;
        if !front.may_admit(peer.ip()) {
            return Err(DropReason::NoPermission);
        }
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::RelayUnallocated)?;
        let client = allocation.flow;
        let channel = self.channels.find_peer(index, peer, allocation.last_channel, now);
        let number = match channel {
            Some(channel) => {
                allocation.last_channel = channel;
                let (_, ports) = self.channel_peer(channel, now)?;
                self.still_allowed(index, peer, ports)?;
                self.channels.get(channel).map(|channel| channel.number)
            }
            None => {
                self.permitted(index, peer, now)?;
                None
            }
        };
        probe.mark(Stage::LookUp);
        let padded_len = payload_len.next_multiple_of(4);
        let header_len = match number {
            Some(number) => channel_header(number, payload_len, out),
            None if data_attributes_len(peer, padded_len) > STUN_LENGTH_MAX => Err(DropReason::TooLarge),
            None => {
                let transaction_id = self.next_indication();
                let mut indication = Emitter::begin(out, Method::Data, Class::Indication, transaction_id);
                indication.xor_address(attribute::XOR_PEER_ADDRESS, peer);
                indication.finish_before_payload(payload_len).map(<[u8]>::len).ok_or(DropReason::OutBuffer)
            }
        }?;
        let padding = match (number, client.transport) {
            (Some(_), Transport::Udp) => 0,
            // RFC 8656 section 12.5: over a stream ChannelData is padded.
            (Some(_), Transport::Tcp | Transport::Tls) | (None, _) => padded_len - payload_len,
        };
        let message_len = header_len + payload_len + padding;
        if client.transport == Transport::Udp && message_len > UDP_PAYLOAD_MAX {
            return Err(DropReason::TooLarge);
        }
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::RelayUnallocated)?;
        self.shared.spend_traffic(&mut allocation.meter, now, client.client, message_len)?;
        allocation.bytes_to_client += payload_len as u64;
        allocation.packets_to_client += 1;
        probe.mark(Stage::Build);
        Ok(Output::ToClient { client, header_len, payload, padding_len: padding as u8 })
    }

    /// Checks the peer's permission: a packet without one is silently discarded (RFC 8656 section 11.3).
    fn permitted(&mut self, index: u32, peer: SocketAddr, now: Nanos) -> Result<(), DropReason> {
        let (_, permission) = self.permissions.find(index, peer.ip(), now).ok_or(DropReason::NoPermission)?;
        let ports = permission.ports;
        self.still_allowed(index, peer, ports)
    }

    /// Asks the policy about the port, if the permission does not cover every port.
    #[inline]
    fn still_allowed(&mut self, index: u32, peer: SocketAddr, ports: Ports) -> Result<(), DropReason> {
        match ports {
            Ports::AllocateRequest => self.decide_peer(index, peer).map(|_| ()).map_err(|_| DropReason::PeerDenied),
            Ports::All | Ports::Own => Ok(()),
        }
    }

    pub(super) fn next_indication(&mut self) -> TransactionId {
        self.indication = self.indication.wrapping_add(1);
        let mut id = [0; 12];
        id.copy_from_slice(&self.indication.to_le_bytes()[..12]);
        id
    }
}

/// Returns the length of a Data indication's attributes: XOR-PEER-ADDRESS, and DATA with `padded_len` bytes of payload
/// and padding.
fn data_attributes_len(peer: SocketAddr, padded_len: usize) -> usize {
    4 + (if peer.is_ipv4() { 8 } else { 20 }) + 4 + padded_len
}

/// Writes the four bytes before a payload on a channel (RFC 8656 section 12.4), and returns their number.
#[inline]
fn channel_header(number: u16, payload_len: usize, out: &mut [u8]) -> Result<usize, DropReason> {
    let length = u16::try_from(payload_len).map_err(|_| DropReason::TooLarge)?;
    let header = out.get_mut(..4).ok_or(DropReason::OutBuffer)?;
    header[..2].copy_from_slice(&number.to_be_bytes());
    header[2..].copy_from_slice(&length.to_be_bytes());
    Ok(header.len())
}
