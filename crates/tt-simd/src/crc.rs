//! CRC-32 (ISO-HDLC): FINGERPRINT of STUN, checksums of order books. CRC-32C: short records of journals.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod clmul;
mod scalar;

/// CRC-32 of `bytes`, the one of ITU-T V.42, Ethernet and zip: reflected, polynomial 0x04C11DB7, all ones before and
/// inverted behind.
///
/// ```
/// assert_eq!(tt_simd::crc32(b"123456789"), 0xCBF4_3926);
/// ```
#[inline]
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if let Some(crc) = clmul::crc32(bytes) {
        return crc;
    }
    scalar::crc32(bytes)
}

/// CRC-32C (Castagnoli) of what has the CRC-32C `before`, and of `bytes` behind it; `None` where the CPU has no instruction
/// for it. One word after the other: more than a kilobyte is faster in parts.
///
/// ```
/// assert!(tt_simd::crc32c(0, b"123456789").is_none_or(|crc| crc == 0xE306_9283));
/// ```
#[inline]
#[must_use]
pub fn crc32c(before: u32, bytes: &[u8]) -> Option<u32> {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return clmul::crc32c(before, bytes);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    {
        let _ = (before, bytes);
        None
    }
}

/// Returns whether [`crc32`] has carry-less multiplication on this CPU; otherwise it uses tables.
#[must_use]
pub fn is_crc32_vectorised() -> bool {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return clmul::crc32(&[0; 64]).is_some();
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    false
}

#[cfg(test)]
mod tests;
