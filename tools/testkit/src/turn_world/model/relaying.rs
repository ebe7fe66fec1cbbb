//! What must become of payloads, and of errors about them (RFC 8656 sections 11 and 12).

use std::net::SocketAddr;

use tt_model::Nanos;
use tt_turn::relay::IcmpError;

use super::policy::Ownership;
use super::{Alive, Expected, Flow, Leg, Model, RelayPlace, alive, unknown_required};
use crate::turn_world::wire::{self, Reading};

impl Model {
    /// RFC 8656 section 11.2: discarded without both attributes or a permission.
    pub(super) fn send<'a>(&self, now: Nanos, flow: &Flow, message: &Reading<'a>) -> Expected<'a> {
        let (Some(claim), Some(peer), Some(payload)) =
            (self.claims.get(flow), message.address(wire::PEER_ADDRESS), message.get(wire::DATA))
        else {
            return Expected::Silence;
        };
        let Some(leg) = claim.leg_of(peer).filter(|_| !unknown_required(message)) else { return Expected::Silence };
        let sure = alive(leg.expires, now).min(leg.permission(peer.ip(), now)).min(self.may_reach(now, peer));
        to_peer(sure, leg, peer, payload)
    }

    /// RFC 8656 section 12.6; without a permission too, unless the operator wants one.
    pub(super) fn channel_data<'a>(&self, now: Nanos, flow: &Flow, bytes: &'a [u8]) -> Expected<'a> {
        let (Some(claim), Some((number, payload))) = (self.claims.get(flow), wire::channel_payload(bytes)) else {
            return Expected::Silence;
        };
        let bound = claim.channel(number);
        let Some((peer, expires, leg)) = bound.and_then(|(peer, end)| Some((peer, end, claim.leg_of(peer)?))) else {
            return Expected::Silence;
        };
        let permitted = if self.rules.strict_permissions { leg.permission(peer.ip(), now) } else { Alive::Yes };
        let sure = alive(leg.expires, now).min(alive(expires, now)).min(permitted).min(self.may_reach(now, peer));
        to_peer(sure, leg, peer, payload)
    }

    /// What must become of a datagram that arrives at a relay (RFC 8656 section 11.3).
    pub(in crate::turn_world) fn expect_of_peer(
        &self,
        now: Nanos,
        relay: RelayPlace,
        peer: SocketAddr,
    ) -> Expected<'static> {
        let flow = self.by_relay.get(&relay);
        let Some((flow, leg)) = flow.and_then(|flow| Some((flow, self.claims.get(flow)?.leg_of(peer)?))) else {
            return Expected::Silence;
        };
        let channels = leg.channels_of(peer).map(|(number, expires)| (number, alive(expires, now)));
        // A channel relays without a permission, unless the operator wants one.
        let bound = leg.channels_of(peer).map(|(_, expires)| alive(expires, now)).max().unwrap_or(Alive::No);
        let bound = if self.rules.strict_permissions { Alive::No } else { bound };
        let permitted = leg.permission(peer.ip(), now).max(bound);
        let sure = alive(leg.expires, now).min(permitted).min(self.may_reach(now, peer));
        match sure {
            Alive::No => Expected::Silence,
            Alive::Maybe | Alive::Yes => Expected::ToClient { sure, flow: *flow, channels: channels.collect(), peer },
        }
    }

    /// What an ICMP error's Data indication says (RFC 8656 sections 11.5 and 18.13), and to whom it goes.
    pub(in crate::turn_world) fn expect_of_error(
        &self,
        now: Nanos,
        relay: RelayPlace,
        error: &IcmpError,
    ) -> Option<([u8; 8], Expected<'static>)> {
        let peer = error.peer;
        let has_mtu = match (peer.is_ipv4(), error.kind) {
            (true, 3) => error.code == 4,
            (false, 2) => true,
            (true, 11) | (false, 1 | 3) => false,
            _ => return None,
        };
        let flow = self.by_relay.get(&relay)?;
        let leg = self.claims.get(flow)?.leg_of(peer).filter(|leg| leg.relay == relay)?;
        let sure = alive(leg.expires, now).min(leg.permission(peer.ip(), now));
        let type_and_code = (u16::from(error.kind) << 9 | u16::from(error.code)).to_be_bytes();
        let mtu = if has_mtu { error.mtu } else { 0 }.to_be_bytes();
        let value = [0, 0, type_and_code[0], type_and_code[1], mtu[0], mtu[1], mtu[2], mtu[3]];
        let expected = Expected::ToClient { sure, flow: *flow, channels: Vec::new(), peer };
        (sure != Alive::No).then_some((value, expected))
    }

    /// Whether an allocation has the relayed address.
    pub(in crate::turn_world) fn is_relayed(&self, addr: SocketAddr) -> bool {
        self.relayed.contains_key(&addr)
    }

    /// Whether packets may be exchanged with the peer: by the policy, and among our own only with a live relay.
    pub(super) fn may_reach(&self, now: Nanos, peer: SocketAddr) -> Alive {
        if self.policy.denies_port(peer) {
            return Alive::No;
        }
        let allows = |ownership| self.policy.allows(peer.ip(), peer.port(), ownership);
        if !self.policy.is_own(peer.ip()) {
            return if allows(Ownership::Foreign) { Alive::Yes } else { Alive::No };
        }
        let claim = self.relayed.get(&peer).and_then(|flow| self.claims.get(flow));
        let leg = claim.and_then(|claim| claim.leg_of(peer));
        match (leg.map_or(Alive::No, |leg| alive(leg.expires, now)), allows(Ownership::Live), allows(Ownership::Idle)) {
            (Alive::Yes, true, _) | (Alive::No, _, true) | (Alive::Maybe, true, true) => Alive::Yes,
            (Alive::Yes, false, _) | (Alive::No, _, false) | (Alive::Maybe, false, false) => Alive::No,
            (Alive::Maybe, _, _) => Alive::Maybe,
        }
    }
}

fn to_peer<'a>(sure: Alive, leg: &Leg, peer: SocketAddr, payload: &'a [u8]) -> Expected<'a> {
    match sure {
        Alive::No => Expected::Silence,
        Alive::Maybe | Alive::Yes => Expected::ToPeer { sure, relay: leg.relay, peer, payload },
    }
}
