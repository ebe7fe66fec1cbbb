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
use crate::relay::{Family, PeerPath, RelayId};
use crate::shared::RelayEnd;

impl Server {
    pub(super) fn send<'a, P: Probe>(
        &mut self,
        request: &Request<'a, '_>,
        out: &'a mut [u8],
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
        let end = self.way_to(peer, ports).map_err(|_| DropReason::PeerDenied)?;
        self.account_to_peer(index, payload.len(), request.now)?;
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
        out: &'a mut [u8],
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
        let (peer, ports) = self.channel_peer(channel, now)?;
        let end = match ports {
            Ports::All => None,
            Ports::Own | Ports::Asked => self.way_to(peer, ports).map_err(|_| DropReason::PeerDenied)?,
        };
        self.account_to_peer(index, payload.len(), now)?;
        let allocation = self.allocations.get(index).ok_or(DropReason::NoAllocation)?;
        let relay = allocation.leg(Family::of(peer.ip()), now).ok_or(DropReason::NoAllocation)?.relay;
        if let Some(end) = end {
            return self.hairpin(now, relay, end, (payload, out), probe);
        }
        probe.mark(Stage::Build);
        Ok(Output::ToPeer { relay, peer, payload, ip: IpFields::from_client(from.transport) })
    }

    /// The channel's peer and what its permission is worth, if that is alive.
    #[inline]
    pub(super) fn channel_peer(&mut self, channel: u32, now: Nanos) -> Result<(SocketAddr, Ports), DropReason> {
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
        Ok((peer, ports))
    }

    /// Hands a payload from `relay` to the relay of another allocation of this server, or of the same, as if it had
    /// travelled: what that one's permissions refuse is dropped. It goes to a client, and so no further.
    fn hairpin<'a, P: Probe>(
        &mut self,
        now: Nanos,
        relay: RelayId,
        end: RelayEnd,
        (payload, out): (&'a [u8], &'a mut [u8]),
        probe: &mut P,
    ) -> Result<Output<'a>, DropReason> {
        let peer = self.relays.address(relay).ok_or(DropReason::NoAllocation)?.external;
        let path = PeerPath { relay: end.relay, peer };
        self.counters.hairpinned += 1;
        if end.worker != self.worker {
            return Ok(Output::ToWorker { worker: end.worker, path, payload });
        }
        self.counters.relayed += 1;
        self.counters.bytes_to_peers += payload.len() as u64;
        self.counters.received += 1;
        self.relay_in(now, path, payload, out, probe)
    }
}
