//! From the network to the client: ICMP errors about datagrams to a peer (RFC 8656 sections 11.5 and 18.13).

use tt_meter::{Probe, Stage};
use tt_model::{ByteRange, IpFamily, Nanos};

use super::Server;
use crate::config::IcmpIndications;
use crate::drop_reason::DropReason;
use crate::emit::Emitter;
use crate::flow::canonical;
use crate::message::{Class, Known, Message, Method, attribute};
use crate::output::Output;
use crate::relay::IcmpError;

const V4_UNREACHABLE: u8 = 3;
const V4_TIME_EXCEEDED: u8 = 11;
const V4_FRAGMENTATION_NEEDED: u8 = 4;
const V6_UNREACHABLE: u8 = 1;
const V6_TOO_BIG: u8 = 2;
const V6_TIME_EXCEEDED: u8 = 3;

impl Server {
    pub(super) fn icmp_in<P: Probe>(
        &mut self,
        now: Nanos,
        error: IcmpError,
        out: &mut [u8],
        probe: &mut P,
    ) -> Result<Output, DropReason> {
        let peer = canonical(error.peer);
        probe.mark(Stage::Parse);
        let mtu = error_bytes(&error, peer.is_ipv4()).ok_or(DropReason::IcmpType)?;
        probe.mark(Stage::Validate);
        let index = self.relays.serving(error.relay).ok_or(DropReason::RelayUnallocated)?;
        let allocation = self.allocations.get(index).ok_or(DropReason::RelayUnallocated)?;
        let leg = allocation.live_legs(now).find(|leg| leg.relay == error.relay);
        let leg = leg.ok_or(DropReason::RelayUnallocated)?;
        let (client, knows_rfc8656) = (allocation.flow, allocation.knows_rfc8656);
        if IpFamily::of(leg.relayed.ip()) != IpFamily::of(peer.ip()) {
            return Err(DropReason::NoPermission);
        }
        // The inner destination's address alone is compared, whoever sent the error.
        self.permissions.find(index, peer.ip(), now).ok_or(DropReason::NoPermission)?;
        probe.mark(Stage::LookUp);
        match self.config.icmp_indications {
            IcmpIndications::Always => {}
            IcmpIndications::Auto if knows_rfc8656 => {}
            IcmpIndications::Auto | IcmpIndications::Never => return Err(DropReason::IcmpClient),
        }
        let transaction_id = self.next_indication();
        let mut indication = Emitter::begin(out, Method::Data, Class::Indication, transaction_id);
        indication.xor_address(attribute::XOR_PEER_ADDRESS, peer);
        // RFC 8656 figure 11: 16 reserved bits, 7 of the type, 9 of the code, then the error data.
        let type_and_code = u16::from(error.kind) << 9 | u16::from(error.code);
        let ([t0, t1], [m0, m1, m2, m3]) = (type_and_code.to_be_bytes(), mtu.to_be_bytes());
        indication.attribute(attribute::ICMP, &[0, 0, t0, t1, m0, m1, m2, m3]);
        let header_len = indication.finish().map(<[u8]>::len).ok_or(DropReason::OutBuffer)?;
        let allocation = self.allocations.get_mut(index).ok_or(DropReason::RelayUnallocated)?;
        self.shared.spend_traffic(&mut allocation.meter, now, client.client, header_len)?;
        probe.mark(Stage::Build);
        Ok(Output::ToClient { client, header_len, payload: ByteRange::EMPTY, padding_len: 0 })
    }
}

/// Returns the error data of a relayed error: the MTU, or 0 if the type and code define none.
fn error_bytes(error: &IcmpError, is_ipv4: bool) -> Option<u32> {
    let has_mtu = match (is_ipv4, error.kind) {
        (true, V4_UNREACHABLE) => error.code == V4_FRAGMENTATION_NEEDED,
        (false, V6_TOO_BIG) => true,
        (true, V4_TIME_EXCEEDED) | (false, V6_UNREACHABLE | V6_TIME_EXCEEDED) => false,
        (true | false, _) => return None,
    };
    Some(if has_mtu { error.mtu } else { 0 })
}

/// Returns whether a message has an attribute that came with RFC 8489 or RFC 8656, in a place where only a client that
/// knows it puts it.
pub(super) fn shows_rfc8656(message: &Message<'_>) -> bool {
    let added = [attribute::ADDITIONAL_ADDRESS_FAMILY, attribute::ADDRESS_ERROR_CODE, attribute::ICMP];
    shows_rfc8489(message) || message.attributes().any(|(kind, _)| added.contains(&kind))
}

/// Returns whether a message has an attribute that came with RFC 8489.
#[inline]
pub(super) fn shows_rfc8489(message: &Message<'_>) -> bool {
    let added = [Known::IntegritySha256, Known::UserHash, Known::PasswordAlgorithm, Known::PasswordAlgorithms];
    added.into_iter().any(|attribute| message.has(attribute))
}
