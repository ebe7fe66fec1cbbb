//! From the client to its peers: Send indications and ChannelData (RFC 8656 sections 11.2 and 12.6).

use core::net::{IpAddr, SocketAddr};

use tt_meter::{Probe, Stage};
use tt_model::{ByteRange, FiveTuple, IpFamily, Nanos};

use super::{Request, Server};
use crate::config::LapsedPermissions;
use crate::drop_reason::DropReason;
use crate::flow::FlowKey;
use crate::message::{Known, XorAddress};
use crate::output::{Fragmentation, IpFields, Output};
use crate::permission::Ports;
use crate::relay::{PeerPath, RelayId};
use crate::shared::RelayEnd;

/// Bytes before a payload on a channel (RFC 8656 section 12.4).
const CHANNEL_HEADER_LEN: u32 = 4;

impl Server {
    pub(super) fn send<P: Probe>(
        &mut self,
        request: &Request<'_, '_>,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        let index = request.allocation.ok_or(DropReason::NoAllocation)?;
        let message = &request.message;
        if self.unknown_required(message) > 0 {
            return Err(DropReason::SendUnsupported);
        }
        let (Some(peer), Some(payload)) = (message.value(Known::XorPeerAddress), message.range(Known::Data)) else {
            return Err(DropReason::SendMalformed);
        };
        let peer = XorAddress::decode(peer, &message.transaction_id()).ok_or(DropReason::SendMalformed)?;
        let allocation = self.allocations.get(index).ok_or(DropReason::NoAllocation)?;
        let leg = allocation.leg(IpFamily::of(peer.ip()), request.now).ok_or(DropReason::SendMalformed)?;
        let relay = leg.relay;
        let Some((_, permission)) = self.permissions.find(index, peer.ip(), request.now) else {
            return Err(DropReason::NoPermission);
        };
        let ports = permission.ports;
        let end = self.way_to(index, peer, ports).map_err(|_| DropReason::PeerDenied)?;
        self.account_to_peer(index, peer, payload.len(), request.now)?;
        if let Some(end) = end {
            return self.hairpin(request.now, relay, end, (payload, out), probe);
        }
        let mut ip = IpFields::from_client(request.from.transport);
        if message.has(Known::DontFragment) {
            ip.fragmentation = Fragmentation::Forbidden;
        }
        probe.mark(Stage::Build);
        Ok(Output::ToPeer { relay, peer, payload, ip })
    }

    /// Adds a payload to the allocation's bytes, and its datagram to the traffic quotas.
    #[inline]
    fn account_to_peer(&mut self, index: u32, peer: SocketAddr, len: usize, now: Nanos) -> Result<(), DropReason> {
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::NoAllocation)?;
        self.shared.spend_traffic(&mut allocation.meter, now, peer, len)?;
        allocation.bytes_to_peers += len as u64;
        allocation.packets_to_peers += 1;
        Ok(())
    }

    #[inline]
    pub(super) fn channel_data<P: Probe>(
        &mut self,
        now: Nanos,
        from: &FiveTuple,
        datagram: &[u8],
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        let Some(([n0, n1, l0, l1], rest)) = datagram.split_first_chunk::<4>() else {
            return Err(DropReason::Short);
        };
        let number = u16::from_be_bytes([*n0, *n1]);
        probe.mark(Stage::Parse);
        // Over UDP padding may follow (RFC 8656 section 12.5).
        let length = u16::from_be_bytes([*l0, *l1]);
        if usize::from(length) > rest.len() {
            return Err(DropReason::ChannelLength);
        }
        let payload = ByteRange::new(CHANNEL_HEADER_LEN, CHANNEL_HEADER_LEN + u32::from(length));
        probe.mark(Stage::Validate);
        let flow = FlowKey::of(from);
        let found = self.look_up(&flow, now);
        probe.mark(Stage::LookUp);
        if let Some(owner) = self.other_owner(&flow, found) {
            return Ok(Output::HandOff(owner));
        }
        let index = found.ok_or(DropReason::NoAllocation)?;
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::NoAllocation)?;
        let bound = self.channels.find_number(index, number, allocation.last_channel, now);
        let channel = bound.ok_or(DropReason::ChannelUnbound)?;
        allocation.last_channel = channel;
        let (peer, ports) = self.channel_peer(channel, now)?;
        let end = match ports {
            Ports::All => None,
            Ports::Own | Ports::AllocateRequest => {
                self.way_to(index, peer, ports).map_err(|_| DropReason::PeerDenied)?
            }
        };
        self.account_to_peer(index, peer, payload.len(), now)?;
        let allocation = self.allocations.get(index).ok_or(DropReason::NoAllocation)?;
        let relay = allocation.leg(IpFamily::of(peer.ip()), now).ok_or(DropReason::NoAllocation)?.relay;
        if let Some(end) = end {
            return self.hairpin(now, relay, end, (payload, out), probe);
        }
        probe.mark(Stage::Build);
        Ok(Output::ToPeer { relay, peer, payload, ip: IpFields::from_client(from.transport) })
    }

    /// Returns the channel's peer and the ports of its permission.
    ///
    /// Without a live permission the policy decides about each datagram.
    #[inline]
    pub(super) fn channel_peer(&mut self, channel: u32, now: Nanos) -> Result<(SocketAddr, Ports), DropReason> {
        let bound = self.channels.get(channel).ok_or(DropReason::ChannelUnbound)?;
        let (allocation, peer) = (bound.allocation, bound.peer);
        let ports = match self.permissions.recall(bound.permission, allocation, peer.ip(), now) {
            Some(permission) => permission.ports,
            None => self.recall_again(channel, (allocation, peer.ip()), now)?,
        };
        Ok((peer, ports))
    }

    /// Searches the permission of a channel's peer.
    #[inline(never)]
    fn recall_again(
        &mut self,
        channel: u32,
        (allocation, peer): (u32, IpAddr),
        now: Nanos,
    ) -> Result<Ports, DropReason> {
        match (self.permissions.find(allocation, peer, now), self.config.lapsed_permissions) {
            (Some((place, permission)), _) => {
                self.channels.remember(channel, place);
                Ok(permission.ports)
            }
            (None, LapsedPermissions::ChannelRelays) => Ok(Ports::AllocateRequest),
            (None, LapsedPermissions::ChannelStops) => Err(DropReason::NoPermission),
        }
    }

    /// Gives a payload from `relay` to the relay of an allocation of this server, as if it came through the network.
    ///
    /// The permissions of that allocation apply. Its output goes to a client, so that a payload cannot loop. In this
    /// worker it counts as two datagrams, as it does between two workers.
    fn hairpin<P: Probe>(
        &mut self,
        now: Nanos,
        relay: RelayId,
        end: RelayEnd,
        (payload, out): (ByteRange, &mut [u8]),
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        let peer = self.relays.address(relay).ok_or(DropReason::NoAllocation)?.external;
        let path = PeerPath { relay: end.relay, peer };
        let first_hop = Output::ToWorker { worker: end.worker, path, payload };
        if end.worker != self.worker {
            return Ok(first_hop);
        }
        self.counters.count(&first_hop);
        self.relay_in(now, path, payload, out, probe)
    }
}
