//! Attributes of an Allocate request.

use tt_model::IpFamily;

use crate::error::ErrorCode;
use crate::message::{Known, Message, family_from_number, family_number};
use crate::relay::PortChoice;

/// Protocol number of UDP in REQUESTED-TRANSPORT.
const PROTOCOL_UDP: u8 = 17;
/// The R bit of EVEN-PORT: reserve the next port.
const RESERVE_NEXT: u8 = 0x80;

/// Attributes of an Allocate request.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct AllocateRequest {
    pub(in crate::server) relays: RequestedRelays,
    pub(in crate::server) lifetime_s: Option<u32>,
}

/// Relayed addresses that an Allocate requests.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) enum RequestedRelays {
    /// The one reserved under this token.
    Reserved(u64),
    /// One of a family.
    One { family: IpFamily, port: PortChoice },
    /// One of IPv4 and one of IPv6.
    Both { port: PortChoice },
    /// One of a family with an even port, and a reservation of the next port.
    Pair(IpFamily),
}

impl AllocateRequest {
    /// Reads the request; items 3 and 5 to 9 in the order of RFC 8656 section 7.2.
    pub(in crate::server) fn read(message: &Message<'_>) -> Result<Self, ErrorCode> {
        match message.value(Known::RequestedTransport) {
            Some([PROTOCOL_UDP, _, _, _]) => {}
            Some([_, _, _, _]) => return Err(ErrorCode::UnsupportedTransportProtocol),
            Some(_) | None => return Err(ErrorCode::BadRequest),
        }
        let wanted = wanted(message)?;
        Ok(Self { relays: wanted, lifetime_s: lifetime(message)? })
    }
}

fn wanted(message: &Message<'_>) -> Result<RequestedRelays, ErrorCode> {
    let even_port = message.value(Known::EvenPort);
    let requested = family(message.value(Known::RequestedAddressFamily))?;
    let additional = family(message.value(Known::AdditionalAddressFamily))?;
    if message.has(Known::ReservationToken) {
        let exclusive = even_port.is_none() && requested.is_none() && additional.is_none();
        let token = reservation_token(message).filter(|_| exclusive);
        return token.map(RequestedRelays::Reserved).ok_or(ErrorCode::BadRequest);
    }
    if requested.is_some() && additional.is_some() {
        return Err(ErrorCode::BadRequest);
    }
    let family = match requested {
        None => IpFamily::V4,
        Some(number) => family_from_number(number).ok_or(ErrorCode::AddressFamilyNotSupported)?,
    };
    let (port, reserves) = match even_port {
        None => (PortChoice::Any, false),
        Some([bits]) => (PortChoice::Even, bits & RESERVE_NEXT != 0),
        Some(_) => return Err(ErrorCode::BadRequest),
    };
    match additional {
        None if reserves => Ok(RequestedRelays::Pair(family)),
        None => Ok(RequestedRelays::One { family, port }),
        Some(number) if number == family_number(IpFamily::V6) && !reserves => Ok(RequestedRelays::Both { port }),
        Some(_) => Err(ErrorCode::BadRequest),
    }
}

/// Returns RESERVATION-TOKEN, if it is present and has its length.
fn reservation_token(message: &Message<'_>) -> Option<u64> {
    let token = message.value(Known::ReservationToken)?;
    <[u8; 8]>::try_from(token).ok().map(u64::from_be_bytes)
}

/// Returns the family number in REQUESTED-ADDRESS-FAMILY or ADDITIONAL-ADDRESS-FAMILY; 400 if the length is wrong.
pub(in crate::server) fn family(value: Option<&[u8]>) -> Result<Option<u8>, ErrorCode> {
    match value {
        None => Ok(None),
        Some([family, _, _, _]) => Ok(Some(*family)),
        Some(_) => Err(ErrorCode::BadRequest),
    }
}

/// Returns LIFETIME in seconds; 400 if the length is wrong.
pub(in crate::server) fn lifetime(message: &Message<'_>) -> Result<Option<u32>, ErrorCode> {
    match message.value(Known::Lifetime) {
        None => Ok(None),
        Some([a, b, c, d]) => Ok(Some(u32::from_be_bytes([*a, *b, *c, *d]))),
        Some(_) => Err(ErrorCode::BadRequest),
    }
}
