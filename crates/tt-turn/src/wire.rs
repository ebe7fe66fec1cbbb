//! Constants of the STUN header and of the attributes that end a message (RFC 8489).

/// Length of the STUN header.
pub const HEADER_LEN: usize = 20;
/// The fixed value after the length (RFC 8489 section 5).
pub const MAGIC_COOKIE: u32 = 0x2112_A442;
/// Length of a MESSAGE-INTEGRITY attribute with its header.
pub(crate) const INTEGRITY_LEN: usize = 24;
/// Length of a MESSAGE-INTEGRITY-SHA256 attribute with its header; TURN allows no shorter one.
pub(crate) const INTEGRITY_SHA256_LEN: usize = 36;
/// Length of a FINGERPRINT attribute with its header.
pub(crate) const FINGERPRINT_LEN: usize = 8;
/// FINGERPRINT is the CRC-32 XORed with this (RFC 8489 section 14.7).
pub(crate) const FINGERPRINT_XOR: u32 = 0x5354_554E;
