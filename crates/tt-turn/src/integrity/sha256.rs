//! HMAC-SHA256 with precomputed inner and outer states (RFC 2104 section 4, RFC 8489 section 14.6).

use sha2::block_api::compress256;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use super::BLOCK_LEN;
use crate::wire::{HEADER_LEN, INTEGRITY_SHA256_LEN};

const INITIAL: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// A key of HMAC-SHA256 as the two chaining values after its padded blocks.
///
/// This saves two compressions for each message, and no password stays in memory.
#[derive(Clone)]
pub struct HmacSha256 {
    inner: [u32; 8],
    outer: [u32; 8],
}

impl core::fmt::Debug for HmacSha256 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HmacSha256")
    }
}

impl Drop for HmacSha256 {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

impl HmacSha256 {
    /// Precomputes the states of `key`.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        let mut block = [0; BLOCK_LEN];
        match block.get_mut(..key.len()) {
            Some(space) => space.copy_from_slice(key),
            None => block[..32].copy_from_slice(&to_bytes(hash(INITIAL, 0, key))),
        }
        let mut inner_pad = block.map(|byte| byte ^ 0x36);
        let mut outer_pad = block.map(|byte| byte ^ 0x5C);
        let (mut inner, mut outer) = (INITIAL, INITIAL);
        compress256(&mut inner, &[inner_pad]);
        compress256(&mut outer, &[outer_pad]);
        block.zeroize();
        inner_pad.zeroize();
        outer_pad.zeroize();
        Self { inner, outer }
    }

    /// Returns the code of `message`, 32 bytes.
    #[inline]
    #[must_use]
    pub fn mac(&self, message: &[u8]) -> [u8; 32] {
        self.close(hash(self.inner, BLOCK_LEN, message))
    }

    /// Returns whether `mac` is the code of a STUN message up to its MESSAGE-INTEGRITY-SHA256. Compares in constant
    /// time.
    ///
    /// The length in the header is replaced by the one that ends with that attribute (RFC 8489 section 14.6).
    #[inline]
    #[must_use]
    pub fn verify_message(&self, before_integrity: &[u8], mac: &[u8; 32]) -> bool {
        let length = (before_integrity.len() + INTEGRITY_SHA256_LEN).saturating_sub(HEADER_LEN) as u16;
        let mut head = [0; BLOCK_LEN];
        let (copied, rest) = before_integrity.split_at(before_integrity.len().min(BLOCK_LEN));
        head[..copied.len()].copy_from_slice(copied);
        head[2..4].copy_from_slice(&length.to_be_bytes());
        let digest = if copied.len() < BLOCK_LEN {
            hash(self.inner, BLOCK_LEN, &head[..copied.len()])
        } else {
            let mut state = self.inner;
            compress256(&mut state, &[head]);
            hash(state, 2 * BLOCK_LEN, rest)
        };
        same(&self.close(digest), mac)
    }

    /// Hashes the inner digest with the outer state: always one block.
    #[inline]
    fn close(&self, inner_digest: [u32; 8]) -> [u8; 32] {
        const BITS: u64 = 8 * (BLOCK_LEN + 32) as u64;
        let mut block = [0; BLOCK_LEN];
        block[..32].copy_from_slice(&to_bytes(inner_digest));
        block[32] = 0x80;
        block[BLOCK_LEN - 8..].copy_from_slice(&BITS.to_be_bytes());
        let mut state = self.outer;
        compress256(&mut state, &[block]);
        to_bytes(state)
    }
}

/// Compares two codes in constant time, word by word.
#[inline]
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let difference = words.fold(0, |bits, (a, b)| bits | (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)));
    difference.ct_eq(&0).into()
}

/// Continues SHA-256 from `state`, after `before` hashed bytes, with `message`.
#[inline]
fn hash(mut state: [u32; 8], before: usize, message: &[u8]) -> [u32; 8] {
    let (blocks, tail) = message.as_chunks::<BLOCK_LEN>();
    if !blocks.is_empty() {
        compress256(&mut state, blocks);
    }
    let mut last = [0; BLOCK_LEN];
    last[..tail.len()].copy_from_slice(tail);
    last[tail.len()] = 0x80;
    if tail.len() >= BLOCK_LEN - 8 {
        compress256(&mut state, &[last]);
        last = [0; BLOCK_LEN];
    }
    let bits = 8 * (before + message.len()) as u64;
    last[BLOCK_LEN - 8..].copy_from_slice(&bits.to_be_bytes());
    compress256(&mut state, &[last]);
    state
}

#[inline]
fn to_bytes(state: [u32; 8]) -> [u8; 32] {
    let mut digest = [0; 32];
    for (space, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *space = word.to_be_bytes();
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_code_counts() {
        let key = HmacSha256::new(b"key");
        let mut message = [0x21; HEADER_LEN];
        message[2..4].copy_from_slice(&36u16.to_be_bytes());
        let code = key.mac(&message);
        assert!(key.verify_message(&message, &code));
        for bit in 0..256 {
            let mut forged = code;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.verify_message(&message, &forged), "bit {bit}");
            // Differences in two words must not cancel each other.
            let mut twice = forged;
            twice[(bit / 8 + 8) % 32] ^= 1 << (bit % 8);
            assert!(!key.verify_message(&message, &twice), "bit {bit}, twice");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(std::format!("{:?}", HmacSha256::new(b"key")), "HmacSha256");
    }
}
