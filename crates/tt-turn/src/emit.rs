//! Writing of STUN messages.

use core::net::SocketAddr;

use tt_simd::crc32;

use crate::error::ErrorCode;
use crate::integrity::{HmacSha1, HmacSha256};
use crate::message::{Class, Method, TransactionId, XorAddress, attribute, type_bits};
use crate::wire::{FINGERPRINT_LEN, FINGERPRINT_XOR, HEADER_LEN, INTEGRITY_LEN, INTEGRITY_SHA256_LEN, MAGIC_COOKIE};

/// Writer of one STUN message. It remembers a write past the end of the buffer until [`Emitter::finish`].
#[derive(Debug)]
pub struct Emitter<'a> {
    out: &'a mut [u8],
    len: usize,
    transaction_id: TransactionId,
    overflow: bool,
}

impl<'a> Emitter<'a> {
    /// Begins a message in `out`.
    #[inline]
    pub fn begin(out: &'a mut [u8], method: Method, class: Class, transaction_id: TransactionId) -> Self {
        let mut emitter = Self { out, len: 0, transaction_id, overflow: false };
        let mut header = [0; HEADER_LEN];
        header[..2].copy_from_slice(&type_bits(method, class).to_be_bytes());
        header[4..8].copy_from_slice(&MAGIC_COOKIE.to_be_bytes());
        header[8..].copy_from_slice(&transaction_id);
        emitter.put(&header);
        emitter
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        match self.out.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            Some(space) => {
                *space = *bytes;
                self.len += N;
            }
            None => self.overflow = true,
        }
    }

    /// Appends an attribute; its padding is zero (RFC 8489 section 14).
    #[inline]
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        let padded = value.len().next_multiple_of(4);
        let space = self.out.get_mut(self.len..).and_then(|rest| rest.get_mut(..4 + padded));
        let (Ok(length), Some(space)) = (u16::try_from(value.len()), space) else {
            self.overflow = true;
            return;
        };
        if let Some(last) = space.last_chunk_mut::<4>().filter(|_| padded > value.len()) {
            *last = [0; 4];
        }
        space[..2].copy_from_slice(&kind.to_be_bytes());
        space[2..4].copy_from_slice(&length.to_be_bytes());
        space[4..4 + value.len()].copy_from_slice(value);
        self.len += 4 + padded;
    }

    /// Writes the type and length of an attribute.
    #[inline(always)]
    fn put_header(&mut self, kind: u16, length: u16) {
        let ([k0, k1], [l0, l1]) = (kind.to_be_bytes(), length.to_be_bytes());
        self.put(&[k0, k1, l0, l1]);
    }

    /// Appends an address attribute of the XOR kind.
    #[inline]
    pub fn xor_address(&mut self, kind: u16, addr: SocketAddr) {
        let value = XorAddress::encode(addr, &self.transaction_id);
        match addr {
            SocketAddr::V4(_) => {
                self.put_header(kind, 8);
                self.put(value.first::<8>());
            }
            SocketAddr::V6(_) => {
                self.put_header(kind, 20);
                self.put(value.first::<20>());
            }
        }
    }

    /// Appends an address attribute of the kind of MAPPED-ADDRESS (RFC 8489 section 14.1).
    pub fn address(&mut self, kind: u16, addr: SocketAddr) {
        let [high, low] = addr.port().to_be_bytes();
        match addr {
            SocketAddr::V4(addr) => {
                let [a, b, c, d] = addr.ip().octets();
                self.attribute(kind, &[0, 1, high, low, a, b, c, d]);
            }
            SocketAddr::V6(addr) => {
                let mut value = [0; 20];
                value[..4].copy_from_slice(&[0, 2, high, low]);
                value[4..].copy_from_slice(&addr.ip().octets());
                self.attribute(kind, &value);
            }
        }
    }

    /// Appends ERROR-CODE without a reason phrase (RFC 8489 section 14.8).
    pub fn error_code(&mut self, error: ErrorCode) {
        let code = error.code();
        self.attribute(attribute::ERROR_CODE, &[0, 0, (code / 100) as u8, (code % 100) as u8]);
    }

    /// Appends UNKNOWN-ATTRIBUTES with the first `count` of `types` (RFC 8489 section 14.13).
    pub fn unknown_attributes(&mut self, types: impl Iterator<Item = u16>, count: usize) {
        let Ok(length) = u16::try_from(2 * count) else {
            self.overflow = true;
            return;
        };
        self.put_header(attribute::UNKNOWN_ATTRIBUTES, length);
        for kind in types.take(count) {
            self.put(&kind.to_be_bytes());
        }
        if count % 2 == 1 {
            self.put(&[0; 2]);
        }
    }

    /// Appends MESSAGE-INTEGRITY over everything so far (RFC 8489 section 14.5).
    #[inline]
    pub fn message_integrity(&mut self, key: &HmacSha1) {
        self.set_length(INTEGRITY_LEN);
        let mac = key.mac(self.out.get(..self.len).unwrap_or(&[]));
        self.put_header(attribute::MESSAGE_INTEGRITY, 20);
        self.put(&mac);
    }

    /// Appends MESSAGE-INTEGRITY-SHA256 over everything so far, all 32 bytes (RFC 8489 section 14.6).
    #[inline]
    pub fn message_integrity_sha256(&mut self, key: &HmacSha256) {
        self.set_length(INTEGRITY_SHA256_LEN);
        let mac = key.mac(self.out.get(..self.len).unwrap_or(&[]));
        self.put_header(attribute::MESSAGE_INTEGRITY_SHA256, 32);
        self.put(&mac);
    }

    /// Appends FINGERPRINT over everything so far (RFC 8489 section 14.7). It must be the last attribute.
    #[inline]
    pub fn fingerprint(&mut self) {
        self.set_length(FINGERPRINT_LEN);
        let crc = crc32(self.out.get(..self.len).unwrap_or(&[])) ^ FINGERPRINT_XOR;
        self.put_header(attribute::FINGERPRINT, 4);
        self.put(&crc.to_be_bytes());
    }

    /// Writes the header's length as if `extra` more bytes followed.
    #[inline]
    fn set_length(&mut self, extra: usize) {
        let length = u16::try_from((self.len + extra).saturating_sub(HEADER_LEN));
        match (length, self.out.get_mut(2..4)) {
            (Ok(length), Some(space)) => space.copy_from_slice(&length.to_be_bytes()),
            (Err(_), _) | (_, None) => self.overflow = true,
        }
    }

    /// Returns the message up to a DATA attribute of `payload_len` bytes, or `None` if the buffer is too small.
    ///
    /// The caller sends the payload and its padding after it.
    #[inline]
    #[must_use]
    pub fn finish_before_payload(mut self, payload_len: usize) -> Option<&'a [u8]> {
        let length = u16::try_from(payload_len).ok()?;
        self.put_header(attribute::DATA, length);
        self.set_length(payload_len.next_multiple_of(4));
        let Self { out, len, overflow, .. } = self;
        if overflow { None } else { out.get(..len) }
    }

    /// Returns the message, or `None` if the buffer is too small.
    #[inline]
    #[must_use]
    pub fn finish(mut self) -> Option<&'a [u8]> {
        self.set_length(0);
        let Self { out, len, overflow, .. } = self;
        if overflow { None } else { out.get(..len) }
    }
}
