//! ChannelBind (RFC 8656 section 12.2).

use core::net::SocketAddr;

use tt_model::Nanos;

use super::reply::Granted;
use super::{Request, Server};
use crate::channel::Pair;
use crate::config::ChannelNumbers;
use crate::credential::User;
use crate::error::ErrorCode;
use crate::message::{Known, XorAddress};
use crate::refusal::Refusal;
use crate::relay::Family;

impl Server {
    pub(super) fn channel_bind(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, ErrorCode> {
        let index = self.owned(request, user)?;
        let message = &request.message;
        let number = match message.value(Known::ChannelNumber) {
            Some([a, b, _, _]) => u16::from_be_bytes([*a, *b]),
            Some(_) | None => return Err(ErrorCode::BadRequest),
        };
        let last = match self.config.channel_numbers {
            ChannelNumbers::Rfc8656 => 0x4FFF,
            ChannelNumbers::Rfc5766 => 0x7FFF,
        };
        let peer = message.value(Known::XorPeerAddress).ok_or(ErrorCode::BadRequest)?;
        let peer = XorAddress::decode(peer, &message.transaction_id()).ok_or(ErrorCode::BadRequest)?;
        if !(0x4000..=last).contains(&number) {
            return Err(ErrorCode::BadRequest);
        }
        let bound = self.bound(index, number, peer, request.now)?;
        self.same_family(request.now, index, peer)?;
        let ports = self.judge_channel(peer).map_err(|rule| self.peer_refused(rule))?;
        let new_permission = !self.permissions.is_recorded(index, peer.ip());
        self.room_for_permissions(index, usize::from(new_permission))?;
        if bound.is_none() {
            self.room_for_a_channel(index)?;
        }
        let permission = self.install_permission(request, index, peer.ip(), ports)?;
        let leg = self.allocations.leg_mut(index, Family::of(peer.ip())).ok_or(ErrorCode::AllocationMismatch)?;
        let channel = self
            .channels
            .bind(request.now, (index, &mut leg.channels), number, peer, bound)
            .ok_or(ErrorCode::InsufficientCapacity)?;
        self.channels.remember(channel, permission);
        Ok(Granted::Done)
    }

    /// The channel of this very pair, or `None` where both are unused; expired ones in the way are ended.
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

    /// Brings nearer what a ChannelBind will look at, while its credentials are checked: a handful of tables too large
    /// for the caches of a core.
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
        let Some(leg) = allocation.leg(Family::of(peer.ip()), now) else { return };
        self.channels.prefetch((index, &leg.channels), u16::from_be_bytes([*a, *b]), peer);
        self.permissions.prefetch((index, &leg.permissions), peer.ip());
    }

    fn room_for_a_channel(&mut self, allocation: u32) -> Result<(), ErrorCode> {
        let used = self.allocations.get(allocation).map_or(0, |allocation| allocation.used().1);
        if used >= self.capacity.channels_per_allocation {
            return Err(self.refused(Refusal::ChannelsPerAllocation));
        }
        if self.channels.room() == 0 {
            return Err(self.refused(Refusal::Channels));
        }
        Ok(())
    }
}
