//! Reading of STUN messages, without copying (RFC 8489 sections 5 and 14).

mod address;
mod kind;

pub use address::XorAddress;
pub(crate) use address::{family_from_number, family_number};
pub(crate) use kind::type_bits;
pub use kind::{Class, Method};

use tt_model::ByteRange;
use tt_simd::crc32;

use crate::drop_reason::DropReason;
use crate::integrity::{HmacSha1, HmacSha256};
use crate::wire::{FINGERPRINT_LEN, FINGERPRINT_XOR};

use crate::wire::{HEADER_LEN, MAGIC_COOKIE};

/// The 96 bits that pair a response with its request.
pub type TransactionId = [u8; 12];

/// Attribute types of RFC 8489 section 18.3 and RFC 8656 section 18, as on the wire.
pub mod attribute {
    /// MAPPED-ADDRESS.
    pub const MAPPED_ADDRESS: u16 = 0x0001;
    /// USERNAME.
    pub const USERNAME: u16 = 0x0006;
    /// MESSAGE-INTEGRITY.
    pub const MESSAGE_INTEGRITY: u16 = 0x0008;
    /// ERROR-CODE.
    pub const ERROR_CODE: u16 = 0x0009;
    /// UNKNOWN-ATTRIBUTES.
    pub const UNKNOWN_ATTRIBUTES: u16 = 0x000A;
    /// CHANNEL-NUMBER.
    pub const CHANNEL_NUMBER: u16 = 0x000C;
    /// LIFETIME.
    pub const LIFETIME: u16 = 0x000D;
    /// XOR-PEER-ADDRESS.
    pub const XOR_PEER_ADDRESS: u16 = 0x0012;
    /// DATA.
    pub const DATA: u16 = 0x0013;
    /// REALM.
    pub const REALM: u16 = 0x0014;
    /// NONCE.
    pub const NONCE: u16 = 0x0015;
    /// XOR-RELAYED-ADDRESS.
    pub const XOR_RELAYED_ADDRESS: u16 = 0x0016;
    /// REQUESTED-ADDRESS-FAMILY.
    pub const REQUESTED_ADDRESS_FAMILY: u16 = 0x0017;
    /// EVEN-PORT.
    pub const EVEN_PORT: u16 = 0x0018;
    /// REQUESTED-TRANSPORT.
    pub const REQUESTED_TRANSPORT: u16 = 0x0019;
    /// DONT-FRAGMENT.
    pub const DONT_FRAGMENT: u16 = 0x001A;
    /// MESSAGE-INTEGRITY-SHA256.
    pub const MESSAGE_INTEGRITY_SHA256: u16 = 0x001C;
    /// PASSWORD-ALGORITHM.
    pub const PASSWORD_ALGORITHM: u16 = 0x001D;
    /// USERHASH.
    pub const USERHASH: u16 = 0x001E;
    /// XOR-MAPPED-ADDRESS.
    pub const XOR_MAPPED_ADDRESS: u16 = 0x0020;
    /// RESERVATION-TOKEN.
    pub const RESERVATION_TOKEN: u16 = 0x0022;
    /// ADDITIONAL-ADDRESS-FAMILY.
    pub const ADDITIONAL_ADDRESS_FAMILY: u16 = 0x8000;
    /// PASSWORD-ALGORITHMS.
    pub const PASSWORD_ALGORITHMS: u16 = 0x8002;
    /// SOFTWARE.
    pub const SOFTWARE: u16 = 0x8022;
    /// ALTERNATE-SERVER.
    pub const ALTERNATE_SERVER: u16 = 0x8023;
    /// ADDRESS-ERROR-CODE.
    pub const ADDRESS_ERROR_CODE: u16 = 0x8001;
    /// ICMP.
    pub const ICMP: u16 = 0x8004;
    /// ORIGIN of draft-johnston-tram-stun-origin.
    pub const ORIGIN: u16 = 0x802F;
    /// FINGERPRINT.
    pub const FINGERPRINT: u16 = 0x8028;
}

/// Attributes that the server reads. The number is the index in [`Message`]; attributes after the last index are
/// searched for, which only Allocate and Refresh need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Known {
    // The three that the walk asks for by name stand together, so that the index is copied in few pieces.
    Integrity,
    IntegritySha256,
    Fingerprint,
    Username,
    Realm,
    Nonce,
    XorPeerAddress,
    ChannelNumber,
    Lifetime,
    Data,
    DontFragment,
    UserHash,
    PasswordAlgorithm,
    PasswordAlgorithms,
    RequestedAddressFamily,
    EvenPort,
    RequestedTransport,
    ReservationToken,
    AdditionalAddressFamily,
    Ignored,
}

const INDEXED_COUNT: usize = Known::RequestedAddressFamily as usize;

impl Known {
    /// Returns the type of an attribute that is not in the index.
    #[inline(always)]
    const fn unindexed(self) -> Option<u16> {
        match self {
            Self::RequestedAddressFamily => Some(attribute::REQUESTED_ADDRESS_FAMILY),
            Self::EvenPort => Some(attribute::EVEN_PORT),
            Self::RequestedTransport => Some(attribute::REQUESTED_TRANSPORT),
            Self::ReservationToken => Some(attribute::RESERVATION_TOKEN),
            Self::AdditionalAddressFamily => Some(attribute::ADDITIONAL_ADDRESS_FAMILY),
            Self::Username
            | Self::Realm
            | Self::Nonce
            | Self::Integrity
            | Self::Fingerprint
            | Self::XorPeerAddress
            | Self::ChannelNumber
            | Self::Lifetime
            | Self::Data
            | Self::DontFragment
            | Self::UserHash
            | Self::IntegritySha256
            | Self::PasswordAlgorithm
            | Self::PasswordAlgorithms
            | Self::Ignored => None,
        }
    }
}

/// A parsed STUN message that borrows the datagram.
///
/// The header, the lengths and the bounds of every attribute are valid. Of an attribute that occurs twice, the first
/// counts. After MESSAGE-INTEGRITY only MESSAGE-INTEGRITY-SHA256 and FINGERPRINT count, after the former only
/// FINGERPRINT; all others are ignored (RFC 8489 sections 9 and 14).
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    /// Offset of each known attribute's value, 0 if it is absent.
    offsets: [u16; INDEXED_COUNT],
    unknown_required: u16,
    type_bits: u16,
}

impl<'a> Message<'a> {
    /// Parses `datagram` as one STUN message.
    ///
    /// # Errors
    /// The [`DropReason`] of RFC 8489 section 6.3: too short, wrong cookie, wrong length, an attribute past the end,
    /// an attribute after FINGERPRINT.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DropReason> {
        let Some((header, _)) = datagram.split_first_chunk::<HEADER_LEN>() else {
            return Err(DropReason::Short);
        };
        let type_bits = u16::from_be_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if u32::from_be_bytes([header[4], header[5], header[6], header[7]]) != MAGIC_COOKIE || type_bits >= 0x4000 {
            return Err(DropReason::NotStun);
        }
        if length % 4 != 0 || length + HEADER_LEN != datagram.len() {
            return Err(DropReason::Length);
        }
        let bare = Self { bytes: datagram, offsets: [0; INDEXED_COUNT], unknown_required: 0, type_bits };
        if length == 0 {
            return Ok(bare);
        }
        let mut message = bare;
        message.index_attributes()?;
        Ok(message)
    }

    #[inline]
    fn index_attributes(&mut self) -> Result<(), DropReason> {
        let mut at = HEADER_LEN;
        while at < self.bytes.len() {
            let (kind, next) = self.attribute_at(at)?;
            match known(kind) {
                Some(slot @ (Known::Integrity | Known::IntegritySha256)) => {
                    self.offsets[slot as usize] = (at + 4) as u16;
                    return self.index_behind_integrity(next);
                }
                Some(Known::Fingerprint) => return self.end_in_fingerprint(at, next),
                Some(slot) => {
                    if let Some(offset @ 0) = self.offsets.get_mut(slot as usize) {
                        *offset = (at + 4) as u16;
                    }
                }
                None => self.unknown_required = self.unknown_required.saturating_add(u16::from(kind < 0x8000)),
            }
            at = next;
        }
        Ok(())
    }

    /// Indexes the attributes after the message integrity, of which only two count (RFC 8489 section 9).
    #[inline]
    fn index_behind_integrity(&mut self, mut at: usize) -> Result<(), DropReason> {
        while at < self.bytes.len() {
            let (kind, next) = self.attribute_at(at)?;
            if kind == attribute::FINGERPRINT {
                return self.end_in_fingerprint(at, next);
            }
            if kind == attribute::MESSAGE_INTEGRITY_SHA256 && !self.has(Known::IntegritySha256) {
                self.offsets[Known::IntegritySha256 as usize] = (at + 4) as u16;
            }
            at = next;
        }
        Ok(())
    }

    /// Checks that FINGERPRINT is the last attribute (RFC 8489 section 14.7).
    #[inline]
    fn end_in_fingerprint(&mut self, at: usize, next: usize) -> Result<(), DropReason> {
        self.offsets[Known::Fingerprint as usize] = (at + 4) as u16;
        if next == self.bytes.len() { Ok(()) } else { Err(DropReason::Fingerprint) }
    }

    /// Returns the type of the attribute at an offset, and the offset of the next.
    #[inline]
    fn attribute_at(&self, at: usize) -> Result<(u16, usize), DropReason> {
        let Some((header, value)) = self.bytes[at..].split_first_chunk::<4>() else {
            return Err(DropReason::Attribute);
        };
        let padded = usize::from(u16::from_be_bytes([header[2], header[3]])).next_multiple_of(4);
        if padded > value.len() {
            return Err(DropReason::Attribute);
        }
        Ok((u16::from_be_bytes([header[0], header[1]]), at + 4 + padded))
    }

    #[inline(always)]
    pub(crate) fn has(&self, slot: Known) -> bool {
        match slot.unindexed() {
            None => self.offsets.get(slot as usize).is_some_and(|offset| *offset != 0),
            Some(_) => self.value(slot).is_some(),
        }
    }

    /// Returns the value of a known attribute, without its padding.
    #[inline(always)]
    pub(crate) fn value(&self, slot: Known) -> Option<&'a [u8]> {
        match slot.unindexed() {
            None => self.indexed(slot),
            Some(kind) => self.unindexed(kind),
        }
    }

    #[inline]
    fn indexed(&self, slot: Known) -> Option<&'a [u8]> {
        let offset = usize::from(*self.offsets.get(slot as usize)?);
        if offset == 0 {
            return None;
        }
        let (length, rest) = self.bytes.get(offset - 2..)?.split_first_chunk::<2>()?;
        rest.get(..usize::from(u16::from_be_bytes(*length)))
    }

    /// Returns the range of an indexed attribute's value in the datagram, without its padding.
    #[inline]
    pub(crate) fn range(&self, slot: Known) -> Option<ByteRange> {
        let offset = usize::from(*self.offsets.get(slot as usize)?);
        if offset == 0 {
            return None;
        }
        let length = u16::from_be_bytes([*self.bytes.get(offset - 2)?, *self.bytes.get(offset - 1)?]);
        Some(ByteRange::new(offset as u32, offset as u32 + u32::from(length)))
    }

    fn unindexed(&self, kind: u16) -> Option<&'a [u8]> {
        self.attributes().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    /// Returns the bytes of the message.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the method.
    ///
    /// # Errors
    /// The 12-bit number of an unknown method.
    #[inline]
    pub fn method(&self) -> Result<Method, u16> {
        Method::from_type_bits(self.type_bits)
    }

    /// Returns the class: request, indication, success or error.
    #[inline]
    #[must_use]
    pub fn class(&self) -> Class {
        Class::from_type_bits(self.type_bits)
    }

    /// Returns the transaction ID.
    #[inline]
    #[must_use]
    pub fn transaction_id(&self) -> TransactionId {
        let mut id = [0; 12];
        id.copy_from_slice(&self.bytes[8..HEADER_LEN]);
        id
    }

    /// Returns whether MESSAGE-INTEGRITY is present, has its length and is valid for `key`.
    #[inline]
    #[must_use]
    pub fn has_valid_integrity(&self, key: &HmacSha1) -> bool {
        let mac = self.value(Known::Integrity).and_then(|value| <&[u8; 20]>::try_from(value).ok());
        let end = usize::from(self.offsets[Known::Integrity as usize]).saturating_sub(4);
        mac.is_some_and(|mac| key.verify_message(&self.bytes[..end], mac))
    }

    /// Returns whether MESSAGE-INTEGRITY-SHA256 is present, has its full length and is valid for `key`.
    #[inline]
    #[must_use]
    pub fn has_valid_integrity_sha256(&self, key: &HmacSha256) -> bool {
        let mac = self.value(Known::IntegritySha256).and_then(|value| <&[u8; 32]>::try_from(value).ok());
        let end = usize::from(self.offsets[Known::IntegritySha256 as usize]).saturating_sub(4);
        mac.is_some_and(|mac| key.verify_message(&self.bytes[..end], mac))
    }

    /// Iterates over type and value of the attributes before the first message integrity, which are those that count.
    pub fn attributes(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        // MESSAGE-INTEGRITY is passed over behind the other, so that where there are two it is the first.
        let end = match (self.offsets[Known::Integrity as usize], self.offsets[Known::IntegritySha256 as usize]) {
            (0, 0) => self.bytes.len(),
            (0, value) | (value, _) => usize::from(value) - 4,
        };
        let mut rest = self.bytes.get(HEADER_LEN..end).unwrap_or(&[]);
        core::iter::from_fn(move || {
            let (header, value) = rest.split_first_chunk::<4>()?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let found = value.get(..length)?;
            rest = value.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            Some((u16::from_be_bytes([header[0], header[1]]), found))
        })
    }

    /// Iterates over the types of the unknown comprehension-required attributes.
    pub fn unknown_types(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.attributes().map(|(kind, _)| kind).filter(|kind| *kind < 0x8000 && known(*kind).is_none())
    }

    /// Returns the number of unknown comprehension-required attributes.
    #[must_use]
    pub fn unknown_required(&self) -> u16 {
        self.unknown_required
    }

    /// Returns whether the message ends in a FINGERPRINT, valid or not.
    #[inline]
    #[must_use]
    pub fn has_fingerprint(&self) -> bool {
        self.has(Known::Fingerprint)
    }

    /// Returns whether the FINGERPRINT is valid or absent (RFC 8489 section 14.7).
    #[inline]
    #[must_use]
    pub fn has_valid_fingerprint(&self) -> bool {
        match self.value(Known::Fingerprint) {
            None => true,
            Some(value) => {
                let covered = &self.bytes[..self.bytes.len() - FINGERPRINT_LEN.min(self.bytes.len())];
                value == (crc32(covered) ^ FINGERPRINT_XOR).to_be_bytes()
            }
        }
    }
}

#[inline]
fn known(kind: u16) -> Option<Known> {
    match kind {
        attribute::USERNAME => Some(Known::Username),
        attribute::MESSAGE_INTEGRITY => Some(Known::Integrity),
        attribute::CHANNEL_NUMBER => Some(Known::ChannelNumber),
        attribute::LIFETIME => Some(Known::Lifetime),
        attribute::XOR_PEER_ADDRESS => Some(Known::XorPeerAddress),
        attribute::DATA => Some(Known::Data),
        attribute::REALM => Some(Known::Realm),
        attribute::NONCE => Some(Known::Nonce),
        attribute::REQUESTED_ADDRESS_FAMILY => Some(Known::RequestedAddressFamily),
        attribute::EVEN_PORT => Some(Known::EvenPort),
        attribute::REQUESTED_TRANSPORT => Some(Known::RequestedTransport),
        attribute::RESERVATION_TOKEN => Some(Known::ReservationToken),
        attribute::ADDITIONAL_ADDRESS_FAMILY => Some(Known::AdditionalAddressFamily),
        attribute::DONT_FRAGMENT => Some(Known::DontFragment),
        attribute::USERHASH => Some(Known::UserHash),
        attribute::FINGERPRINT => Some(Known::Fingerprint),
        attribute::MESSAGE_INTEGRITY_SHA256 => Some(Known::IntegritySha256),
        attribute::PASSWORD_ALGORITHM => Some(Known::PasswordAlgorithm),
        attribute::PASSWORD_ALGORITHMS => Some(Known::PasswordAlgorithms),
        attribute::MAPPED_ADDRESS
        | attribute::ERROR_CODE
        | attribute::UNKNOWN_ATTRIBUTES
        | attribute::XOR_RELAYED_ADDRESS
        | attribute::XOR_MAPPED_ADDRESS => Some(Known::Ignored),
        _ => None,
    }
}
