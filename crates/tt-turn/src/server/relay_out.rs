//! From the client to its peers: Send indications and ChannelData (RFC 8656 sections 11.2 and 12.6).

use core::net::SocketAddr;

use tt_meter::{Probe, Stage};
use tt_model::{FiveTuple, Nanos};

use super::{Request, Server};
use crate::counters::DropReason;
use crate::flow::FlowKey;
use crate::message::{Known, XorAddress};
use crate::output::{Fragmentation, IpFields, Output};
use crate::permission::Ports;
use crate::relay::Family;

impl Server {
    pub(super) fn send<'a, P: Probe>(
        &mut self,
        request: &Request<'a, '_>,
        probe: &mut P,
    ) -> Result<Output<'a>, DropReason> {
        let index = request.allocation.ok_or(DropReason::NoAllocation)?;
        let message = &request.message;
        if self.unknown_required(message) > 0 {
            return Err(DropReason::SendUnsupported);
        }
        let (Some(peer), Some(payload)) = (message.value(Known::XorPeerAddress), message.value(Known::Data)) else {
            return Err(DropReason::SendMalformed);
        };
        let peer = XorAddress::decode(peer, &message.transaction_id()).ok_or(DropReason::SendMalformed)?;
        let allocation = self.allocations.get(index).ok_or(DropReason::NoAllocation)?;
        let leg = allocation.leg(Family::of(peer.ip()), request.now).ok_or(DropReason::SendMalformed)?;
        let relay = leg.relay;
        let Some((_, permission)) = self.permissions.find(index, peer.ip(), request.now) else {
            return Err(DropReason::NoPermission);
        };
        let ports = permission.ports;
        if ports == Ports::Asked || peer.port() == 0 {
            self.judge_peer(peer).map_err(|_| DropReason::PeerDenied)?;
        }
        self.account_to_peer(index, payload.len(), request.now)?;
        let mut ip = IpFields::from_client(request.from.transport);
        if message.has(Known::DontFragment) {
            ip.fragmentation = Fragmentation::Forbidden;
        }
        probe.mark(Stage::Build);
        Ok(Output::ToPeer { relay, peer, payload, ip })
    }

    /// Counts a payload towards the allocation's bytes and the user's bandwidth.
    #[inline]
    fn account_to_peer(&mut self, index: u32, len: usize, now: Nanos) -> Result<(), DropReason> {
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::NoAllocation)?;
        if !self.shared.spend_bandwidth(allocation.meter, now, len) {
            return Err(DropReason::UserBandwidth);
        }
        allocation.bytes_to_peers += len as u64;
        Ok(())
    }

    #[inline]
    pub(super) fn channel_data<'a, P: Probe>(
        &mut self,
        now: Nanos,
        from: &FiveTuple,
        datagram: &'a [u8],
        probe: &mut P,
    ) -> Result<Output<'a>, DropReason> {
        let Some(([n0, n1, l0, l1], rest)) = datagram.split_first_chunk::<4>() else {
            return Err(DropReason::Short);
        };
        let number = u16::from_be_bytes([*n0, *n1]);
        probe.mark(Stage::Parse);
        // Over UDP padding may follow (RFC 8656 section 12.5).
        let payload = rest.get(..usize::from(u16::from_be_bytes([*l0, *l1]))).ok_or(DropReason::ChannelLength)?;
        probe.mark(Stage::Validate);
        let flow = FlowKey::of(from);
        let found = self.look_up(&flow, now);
        probe.mark(Stage::LookUp);
        if let Some(owner) = self.other_owner(&flow, found) {
            return Ok(Output::HandOver(owner));
        }
        let index = found.ok_or(DropReason::NoAllocation)?;
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::NoAllocation)?;
        let bound = self.channels.find_number(index, number, allocation.last_channel, now);
        let channel = bound.ok_or(DropReason::ChannelUnbound)?;
        allocation.last_channel = channel;
        let peer = self.channel_peer(channel, now)?;
        self.account_to_peer(index, payload.len(), now)?;
        let allocation = self.allocations.get(index).ok_or(DropReason::NoAllocation)?;
        let relay = allocation.leg(Family::of(peer.ip()), now).ok_or(DropReason::NoAllocation)?.relay;
        probe.mark(Stage::Build);
        Ok(Output::ToPeer { relay, peer, payload, ip: IpFields::from_client(from.transport) })
    }

    /// The channel's peer, if its permission is alive and the policy still allows the port.
    #[inline]
    pub(super) fn channel_peer(&mut self, channel: u32, now: Nanos) -> Result<SocketAddr, DropReason> {
        let bound = self.channels.get(channel).ok_or(DropReason::ChannelUnbound)?;
        let (allocation, peer) = (bound.allocation, bound.peer);
        let ports = match self.permissions.recall(bound.permission, allocation, peer.ip(), now) {
            Some(permission) => permission.ports,
            None => {
                let found = self.permissions.find(allocation, peer.ip(), now);
                let (place, permission) = found.ok_or(DropReason::NoPermission)?;
                self.channels.remember(channel, place);
                permission.ports
            }
        };
        if ports == Ports::Asked {
            self.judge_peer(peer).map_err(|_| DropReason::PeerDenied)?;
        }
        Ok(peer)
    }
}
