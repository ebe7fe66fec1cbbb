//! ChannelBind (RFC 8656 section 12.2).

use tt_model::{IpFamily, Nanos};

use super::pooled::Units;
use super::reply::Granted;
use super::{Request, Server};
use crate::channel::{Binding, Pair};
use crate::config::ChannelNumbers;
use crate::credential::User;
use crate::error::ErrorCode;
use crate::message::{Known, XorAddress};
use crate::rejection::{RejectReason, Rejection};

impl Server {
    /// Decides a ChannelBind, whose `binding` has been read already if it could be.
    pub(super) fn channel_bind(
        &mut self,
        request: &Request<'_, '_>,
        user: &User,
        binding: Option<Binding>,
    ) -> Result<Granted, Rejection> {
        let index = self.owned(request, user)?;
        let binding = binding.or_else(|| self.read_binding(request, index)).ok_or(ErrorCode::BadRequest)?;
        let (number, peer) = (binding.number, binding.peer);
        let last = match self.config.channel_numbers {
            ChannelNumbers::Rfc8656 => 0x4FFF,
            ChannelNumbers::Rfc5766 => 0x7FFF,
        };
        if !(0x4000..=last).contains(&number) {
            return Err(ErrorCode::BadRequest.into());
        }
        let bound = self.bound(index, &binding, request.now)?;
        self.same_family(request.now, index, peer)?;
        let ports = self.decide_channel(index, peer).map_err(Rejection::peer_denied)?;
        let place = self.permissions.place(index, peer.ip());
        let new_permission = !place.is_recorded();
        let (account, has) = self.account_of(index).ok_or(ErrorCode::AllocationMismatch)?;
        self.permissions_fit(has, usize::from(new_permission))?;
        if bound.is_none() {
            self.room_for_a_channel(has)?;
        }
        let units = Units { permissions: u32::from(new_permission), channels: u32::from(bound.is_none()) };
        self.take_pooled((account, has), units)?;
        let permission = self.install_permission(request.now, index, (peer.ip(), place), ports)?;
        let leg = self.allocations.leg_mut(index, IpFamily::of(peer.ip())).ok_or(ErrorCode::AllocationMismatch)?;
        let channel = self
            .channels
            .bind(request.now, &binding, &mut leg.channels, bound)
            .ok_or(ErrorCode::InsufficientCapacity)?;
        self.channels.remember(channel, permission);
        self.touch_paths(index);
        if bound.is_none() {
            self.origins.add_peer(index, peer);
        }
        Ok(Granted::Done)
    }

    /// Returns the channel of a number and a peer, or `None` if both are unused. Ends expired channels that use one of
    /// them.
    fn bound(&mut self, index: u32, binding: &Binding, now: Nanos) -> Result<Option<u32>, ErrorCode> {
        loop {
            match self.channels.pair(binding, now) {
                Pair::Free => return Ok(None),
                Pair::Bound(channel) => return Ok(Some(channel)),
                Pair::Taken => return Err(ErrorCode::BadRequest),
                Pair::Expired(channel) => self.end_channel(channel, index),
            }
        }
    }

    /// Prefetches the table entries that a ChannelBind reads, while its credentials are checked. Returns what it reads.
    pub(super) fn prefetch_channel(&self, request: &Request<'_, '_>) -> Option<Binding> {
        let index = request.allocation?;
        let binding = self.read_binding(request, index)?;
        self.origins.prefetch_peers(index);
        if let Some(leg) = self.allocations.get(index)?.leg(IpFamily::of(binding.peer.ip()), request.now) {
            self.channels.prefetch(&binding, &leg.channels);
            self.permissions.prefetch((index, &leg.permissions), binding.peer.ip());
        }
        Some(binding)
    }

    /// Reads the number and the peer of a ChannelBind; `None` if one of them is absent or invalid.
    fn read_binding(&self, request: &Request<'_, '_>, index: u32) -> Option<Binding> {
        let message = &request.message;
        let number = match message.value(Known::ChannelNumber) {
            Some([a, b, _, _]) => u16::from_be_bytes([*a, *b]),
            Some(_) | None => return None,
        };
        let peer = XorAddress::decode(message.value(Known::XorPeerAddress)?, &message.transaction_id())?;
        Some(self.channels.binding(index, number, peer))
    }

    #[inline]
    fn room_for_a_channel(&self, has: Units) -> Result<(), RejectReason> {
        if has.channels >= self.capacity.channels_per_allocation {
            return Err(RejectReason::ChannelsPerAllocation);
        }
        if self.channels.room() == 0 {
            return Err(RejectReason::Channels);
        }
        Ok(())
    }
}
