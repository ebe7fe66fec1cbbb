//! From a peer to the client (RFC 8656 sections 11.3, 12.5 and 12.7).

use core::net::SocketAddr;

use tt_meter::{Probe, Stage};
use tt_model::{Nanos, Transport};

use super::Server;
use crate::counters::DropReason;
use crate::emit::Emitter;
use crate::flow::canonical;
use crate::message::{Class, Method, TransactionId, attribute};
use crate::output::Output;
use crate::permission::Ports;
use crate::relay::{Family, PeerPath};

/// The most that a UDP datagram carries over IPv4.
const UDP_PAYLOAD_MAX: usize = 65_507;
/// The most that a UDP datagram carries at all, and the most that ChannelData's length can say.
const PAYLOAD_MAX: usize = 65_535;
/// The largest multiple of four that a STUN header's length can say.
const STUN_LENGTH_MAX: usize = 65_532;
const ZEROS: &[u8; 3] = &[0; 3];

impl Server {
    #[inline]
    pub(super) fn relay_in<'a, P: Probe>(
        &mut self,
        now: Nanos,
        from: PeerPath,
        datagram: &'a [u8],
        out: &'a mut [u8],
        probe: &mut P,
    ) -> Result<Output<'a>, DropReason> {
        let peer = canonical(from.peer);
        probe.mark(Stage::Parse);
        if datagram.len() > PAYLOAD_MAX {
            return Err(DropReason::TooLarge);
        }
        probe.mark(Stage::Validate);
        let index = self.relays.serving(from.relay).ok_or(DropReason::RelayUnallocated)?;
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::RelayUnallocated)?;
        if allocation.leg(Family::of(peer.ip()), now).is_none_or(|leg| leg.relay != from.relay) {
            return Err(DropReason::RelayUnallocated);
        }
        let client = allocation.flow;
        let channel = self.channels.find_peer(index, peer, allocation.last_channel, now);
        let number = match channel {
            Some(channel) => {
                allocation.last_channel = channel;
                let (_, ports) = self.channel_peer(channel, now)?;
                self.still_allowed(peer, ports)?;
                self.channels.get(channel).map(|channel| channel.number)
            }
            None => {
                self.permitted(index, peer, now)?;
                None
            }
        };
        probe.mark(Stage::LookUp);
        let padded_len = datagram.len().next_multiple_of(4);
        let header = match number {
            Some(number) => channel_header(number, datagram.len(), out),
            None if data_attributes_len(peer, padded_len) > STUN_LENGTH_MAX => Err(DropReason::TooLarge),
            None => {
                let transaction_id = self.next_indication();
                let mut indication = Emitter::begin(out, Method::Data, Class::Indication, transaction_id);
                indication.xor_address(attribute::XOR_PEER_ADDRESS, peer);
                indication.finish_before_payload(datagram.len()).ok_or(DropReason::OutBuffer)
            }
        }?;
        let padding = match (number, client.transport) {
            (Some(_), Transport::Udp) => 0,
            // RFC 8656 section 12.5: over a stream ChannelData is padded.
            (Some(_), Transport::Tcp | Transport::Tls) | (None, _) => padded_len - datagram.len(),
        };
        if client.transport == Transport::Udp && header.len() + datagram.len() + padding > UDP_PAYLOAD_MAX {
            return Err(DropReason::TooLarge);
        }
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::RelayUnallocated)?;
        if !self.shared.spend_bandwidth(allocation.meter, now, datagram.len()) {
            return Err(DropReason::UserBandwidth);
        }
        allocation.bytes_to_client += datagram.len() as u64;
        probe.mark(Stage::Build);
        Ok(Output::ToClient { client, header, payload: datagram, padding: &ZEROS[..padding] })
    }

    /// RFC 8656 section 11.3: a packet from an address without a permission is silently discarded.
    fn permitted(&mut self, index: u32, peer: SocketAddr, now: Nanos) -> Result<(), DropReason> {
        let (_, permission) = self.permissions.find(index, peer.ip(), now).ok_or(DropReason::NoPermission)?;
        let ports = permission.ports;
        self.still_allowed(peer, ports)
    }

    /// The policy's word on a port, where a permission does not speak for every one.
    #[inline]
    fn still_allowed(&mut self, peer: SocketAddr, ports: Ports) -> Result<(), DropReason> {
        match ports {
            Ports::Asked => self.judge_peer(peer).map(|_| ()).map_err(|_| DropReason::PeerDenied),
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

/// Length of a Data indication's attributes: XOR-PEER-ADDRESS, and DATA with `padded_len` bytes of payload and padding.
fn data_attributes_len(peer: SocketAddr, padded_len: usize) -> usize {
    4 + (if peer.is_ipv4() { 8 } else { 20 }) + 4 + padded_len
}

/// The four bytes before a payload on a channel (RFC 8656 section 12.4).
#[inline]
fn channel_header(number: u16, payload_len: usize, out: &mut [u8]) -> Result<&[u8], DropReason> {
    let length = u16::try_from(payload_len).map_err(|_| DropReason::TooLarge)?;
    let header = out.get_mut(..4).ok_or(DropReason::OutBuffer)?;
    header[..2].copy_from_slice(&number.to_be_bytes());
    header[2..].copy_from_slice(&length.to_be_bytes());
    Ok(header)
}
