//! What a connection begins with.

use super::super::proxy::SIGNATURE_LEN_MAX;

/// The first byte of a TLS record that carries a handshake (RFC 8446 section 5.1). No STUN message of any method that
/// there is begins with it.
pub(super) const TLS_HANDSHAKE: u8 = 0x16;
/// Bytes that are looked at to know the protocol: the PROXY protocol's signature, and the longest usual ClientHello.
pub(super) const GREETING: usize = 2 << 10;
const _: () = assert!(GREETING >= SIGNATURE_LEN_MAX);
/// Bytes of a TLS record before its content; the last two are the length of it (RFC 8446 section 5.1).
const RECORD_HEADER_LEN: usize = 5;

/// Whether `bytes` begin with a whole TLS record.
pub(super) fn has_whole_record(bytes: &[u8]) -> bool {
    let header: Option<&[u8; RECORD_HEADER_LEN]> = bytes.first_chunk();
    header.is_some_and(|[.., high, low]| {
        bytes.len() >= RECORD_HEADER_LEN + usize::from(u16::from_be_bytes([*high, *low]))
    })
}
