//! A message of the server, read byte by byte: also what a strict parser rejects is described.

use std::net::SocketAddr;

use tt_turn::codec::{HEADER_LEN, HmacSha1, HmacSha256, MAGIC_COOKIE, Message, TransactionId, XorAddress, attribute};

use super::check::{Finding, Unmet, expect};

/// Types of messages (RFC 8489 section 5).
const SUCCESS: u16 = 0x0100;
const ERROR: u16 = 0x0110;
const CLASS_BITS: u16 = 0x0110;

/// An attribute of a message.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) kind: u16,
    pub(super) value: Vec<u8>,
    pub(super) padding: Vec<u8>,
}

/// A message of the server.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    pub(super) attributes: Vec<Found>,
    /// Whether the attributes end where the message ends.
    pub(super) is_whole: bool,
}

impl Reply {
    /// Reads a message; `None` if it is shorter than a header.
    pub(super) fn read(bytes: Vec<u8>) -> Option<Self> {
        let (_, mut rest) = bytes.split_at_checked(HEADER_LEN)?;
        let mut attributes = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<4>() {
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let Some((value, after)) = after.split_at_checked(length) else { break };
            let Some((padding, after)) = after.split_at_checked(length.next_multiple_of(4) - length) else { break };
            let kind = u16::from_be_bytes([head[0], head[1]]);
            attributes.push(Found { kind, value: value.to_vec(), padding: padding.to_vec() });
            rest = after;
        }
        let is_whole = rest.is_empty();
        Some(Self { bytes, attributes, is_whole })
    }

    fn number_at(&self, offset: usize) -> u16 {
        self.bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u16::from_be_bytes(*bytes))
    }

    pub(super) fn kind(&self) -> u16 {
        self.number_at(0)
    }

    pub(super) fn length(&self) -> usize {
        usize::from(self.number_at(2))
    }

    pub(super) fn has_cookie(&self) -> bool {
        self.bytes.get(4..8) == Some(&MAGIC_COOKIE.to_be_bytes()[..])
    }

    pub(super) fn id(&self) -> TransactionId {
        self.bytes.get(8..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
    }

    pub(super) fn is_success(&self) -> bool {
        self.kind() & CLASS_BITS == SUCCESS
    }

    pub(super) fn is_error(&self) -> bool {
        self.kind() & CLASS_BITS == ERROR
    }

    pub(super) fn is_response(&self) -> bool {
        self.is_success() || self.is_error()
    }

    /// The error code; 0 of a success, and of an error without ERROR-CODE.
    pub(super) fn code(&self) -> u16 {
        match self.value(attribute::ERROR_CODE) {
            Some([_, _, class, number, ..]) if self.is_error() => u16::from(*class & 7) * 100 + u16::from(*number),
            Some(_) | None => 0,
        }
    }

    pub(super) fn value(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|found| found.kind == kind).map(|found| found.value.as_slice())
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.value(kind).is_some()
    }

    pub(super) fn addresses(&self, kind: u16) -> Vec<SocketAddr> {
        let values = self.attributes.iter().filter(|found| found.kind == kind);
        values.filter_map(|found| XorAddress::decode(&found.value, &self.id())).collect()
    }

    pub(super) fn address(&self, kind: u16) -> Option<SocketAddr> {
        self.addresses(kind).first().copied()
    }

    /// The value of LIFETIME.
    pub(super) fn lifetime_s(&self) -> Option<u32> {
        Some(u32::from_be_bytes(self.value(attribute::LIFETIME)?.try_into().ok()?))
    }

    pub(super) fn is_signed_with_sha1(&self, key: &HmacSha1) -> bool {
        self.has(attribute::MESSAGE_INTEGRITY)
            && Message::parse(&self.bytes).is_ok_and(|message| message.has_valid_integrity(key))
    }

    pub(super) fn is_signed_with_sha256(&self, key: &HmacSha256) -> bool {
        self.has(attribute::MESSAGE_INTEGRITY_SHA256)
            && Message::parse(&self.bytes).is_ok_and(|message| message.has_valid_integrity_sha256(key))
    }

    /// Returns the kind of the message in words.
    pub(super) fn text(&self) -> String {
        match (self.is_success(), self.is_error(), self.code()) {
            (true, _, _) => "a success response".to_owned(),
            (_, true, 0) => "an error response without ERROR-CODE".to_owned(),
            (_, true, code) => format!("error {code}"),
            (_, _, _) => format!("a message of type {:#06x}", self.kind()),
        }
    }

    /// Passes if the message is an error of this code.
    pub(super) fn expect_code(&self, code: u16) -> Finding {
        expect(self.code() == code && self.is_error(), format!("error {code}"), self.text())
    }

    pub(super) fn expect_success(&self) -> Finding {
        expect(self.is_success(), "a success response", self.text())
    }

    /// Passes if the message has an attribute.
    pub(super) fn expect_attribute(&self, kind: u16, name: &str) -> Finding {
        expect(self.has(kind), format!("{} with {name}", self.text()), format!("{} without it", self.text()))
    }

    /// Passes if the message lacks an attribute.
    pub(super) fn expect_no_attribute(&self, kind: u16, name: &str) -> Finding {
        expect(!self.has(kind), format!("{} without {name}", self.text()), format!("{} with it", self.text()))
    }

    /// Returns an error that says that the server does not know attribute `kind`, if it says so.
    pub(super) fn absent_if_unknown(&self, kind: u16, name: &str) -> Finding {
        let listed = self.value(attribute::UNKNOWN_ATTRIBUTES).unwrap_or_default();
        let is_listed = listed.chunks_exact(2).any(|pair| pair == kind.to_be_bytes());
        match self.code() == 420 && is_listed {
            true => Err(Unmet::absent(format!("the server does not know {name}"))),
            false => Ok(()),
        }
    }
}
