//! ChannelBind (RFC 8656 section 12.2).

use core::net::SocketAddr;

use tt_model::{IpFamily, Nanos};

use super::pooled::Units;
use super::reply::Granted;
use super::{Request, Server};
use crate::channel::Pair;
use crate::config::ChannelNumbers;
use crate::credential::User;
use crate::error::ErrorCode;
use crate::message::{Known, XorAddress};
use crate::rejection::{RejectReason, Rejection};

impl Server {
    pub(super) fn channel_bind(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, Rejection> {
        let index = self.owned(request, user)?;
        let message = &request.message;
        let number = match message.value(Known::ChannelNumber) {
            Some([a, b, _, _]) => u16::from_be_bytes([*a, *b]),
            Some(_) | None => return Err(ErrorCode::BadRequest.into()),
        };
        let last = match self.config.channel_numbers {
            ChannelNumbers::Rfc8656 => 0x4FFF,
            ChannelNumbers::Rfc5766 => 0x7FFF,
        };
        let peer = message.value(Known::XorPeerAddress).ok_or(ErrorCode::BadRequest)?;
        let peer = XorAddress::decode(peer, &message.transaction_id()).ok_or(ErrorCode::BadRequest)?;
        if !(0x4000..=last).contains(&number) {
            return Err(ErrorCode::BadRequest.into());
        }
        let bound = self.bound(index, number, peer, request.now)?;
        self.same_family(request.now, index, peer)?;
        let ports = self.decide_channel(peer).map_err(Rejection::peer_denied)?;
        let new_permission = !self.permissions.is_recorded(index, peer.ip());
        self.permissions_fit(index, usize::from(new_permission))?;
        if bound.is_none() {
            self.room_for_a_channel(index)?;
        }
        let units = Units { permissions: u32::from(new_permission), channels: u32::from(bound.is_none()) };
        self.take_pooled(index, units)?;
        let permission = self.install_permission(request, index, peer.ip(), ports)?;
        let leg = self.allocations.leg_mut(index, IpFamily::of(peer.ip())).ok_or(ErrorCode::AllocationMismatch)?;
        let channel = self
            .channels
            .bind(request.now, (index, &mut leg.channels), number, peer, bound)
            .ok_or(ErrorCode::InsufficientCapacity)?;
        self.channels.remember(channel, permission);
        self.touch_paths(index);
        if bound.is_none() {
            self.origins.add_peer(index, peer);
        }
        Ok(Granted::Done)
    }

    /// Returns the channel of `number` and `peer`, or `None` if both are unused. Ends expired channels that use one of
    /// them.
    fn bound(&mut self, index: u32, number: u16, peer: SocketAddr, now: Nanos) -> Result<Option<u32>, ErrorCode> {
        loop {
            match self.channels.pair(index, number, peer, now) {
                Pair::Free => return Ok(None),
                Pair::Bound(channel) => return Ok(Some(channel)),
                Pair::Taken => return Err(ErrorCode::BadRequest),
                Pair::Expired(channel) => self.end_channel(channel, index),
            }
        }
    }

    /// Prefetches the table entries that a ChannelBind reads, while its credentials are checked.
    pub(super) fn prefetch_channel(&self, request: &Request<'_, '_>) {
        let message = &request.message;
        let Some(index) = request.allocation else { return };
        let Some(allocation) = self.allocations.get(index) else { return };
        let now = request.now;
        let (Some([a, b, _, _]), Some(peer)) =
            (message.value(Known::ChannelNumber), message.value(Known::XorPeerAddress))
        else {
            return;
        };
        let Some(peer) = XorAddress::decode(peer, &message.transaction_id()) else { return };
        let Some(leg) = allocation.leg(IpFamily::of(peer.ip()), now) else { return };
        self.channels.prefetch((index, &leg.channels), u16::from_be_bytes([*a, *b]), peer);
        self.permissions.prefetch((index, &leg.permissions), peer.ip());
    }

    fn room_for_a_channel(&self, allocation: u32) -> Result<(), RejectReason> {
        let used = self.allocations.get(allocation).map_or(0, |allocation| allocation.used().1);
        if used >= self.capacity.channels_per_allocation {
            return Err(RejectReason::ChannelsPerAllocation);
        }
        if self.channels.room() == 0 {
            return Err(RejectReason::Channels);
        }
        Ok(())
    }
}
