//! Carry-less multiplication: a message is a polynomial over GF(2), folded onto its own end 128 bits at a time.
//!
//! Words are reflected: bit `i` of a 64-bit word is the coefficient of x^(63-i). The product of two of them comes out
//! one place too low, which the constants make up for: each is for one power less than its use says.

use core::arch::x86_64::{
    __cpuid, __m128i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64,
    _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm_extract_epi32, _mm_loadu_si128, _mm_set_epi64x, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_slli_epi64, _mm_slli_si128, _mm_srli_si128, _mm_xor_si128,
};
use core::sync::atomic::{AtomicU8, Ordering};

/// The divisor, x^32 included; bit `i` is the coefficient of x^i.
const DIVISOR: u64 = 0x1_04C1_1DB7;
const BLOCK_LEN: usize = 16;
/// Four blocks at once pay from here on.
const LANES_LEN: usize = 8 * BLOCK_LEN;

/// x^`n` modulo the divisor, reflected.
const fn power(n: u32) -> i64 {
    let mut remainder: u64 = 1;
    let mut step = 0;
    while step < n {
        remainder <<= 1;
        remainder ^= (remainder >> 32) * DIVISOR;
        step += 1;
    }
    remainder.reverse_bits() as i64
}

/// x^95 divided by the divisor, reflected.
const fn quotient() -> i64 {
    let (mut quotient, mut remainder): (u64, u64) = (0, 0);
    let mut degree = 96;
    while degree > 0 {
        degree -= 1;
        remainder = remainder << 1 | (degree == 95) as u64;
        if remainder >> 32 == 1 {
            quotient |= 1 << degree;
            remainder ^= DIVISOR;
        }
    }
    quotient.reverse_bits() as i64
}

/// A block moves up by 128 bits: its first half by 192, its second by 128.
const BY_ONE: [i64; 2] = [power(191), power(127)];
/// A block moves up by 512 bits.
const BY_FOUR: [i64; 2] = [power(575), power(511)];
const FIRST_HALF: i64 = power(95);
const QUOTIENT: i64 = quotient();
const REFLECTED_DIVISOR: i64 = DIVISOR.reverse_bits() as i64;

/// Orders of bytes: from `n` on, one that moves a block's first `n` bytes to its end; from `16 + n` on, one that drops
/// them; zeros fill up.
static SHIFTS: [u8; 48] = {
    let mut shifts = [0x80; 48];
    let mut at = 0;
    while at < 16 {
        shifts[16 + at] = at as u8;
        at += 1;
    }
    shifts
};

/// Whether the processor has the instructions: 0 is not asked yet, 1 no, 2 yes.
static SUPPORT: AtomicU8 = AtomicU8::new(0);

/// CRC-32 of `bytes`, where the processor has the instructions and the message is not shorter than a block.
#[inline]
pub(super) fn crc32(bytes: &[u8]) -> Option<u32> {
    let (first, _) = bytes.split_first_chunk()?;
    if !is_supported() {
        return None;
    }
    // SAFETY: the processor has the features that `fold` is compiled for, as `is_supported` just said.
    Some(unsafe { fold(first, bytes) })
}

/// CRC-32C of what has the CRC-32C `before`, and of `bytes` behind it, where the processor has the instruction.
#[inline]
pub(super) fn crc32c(before: u32, bytes: &[u8]) -> Option<u32> {
    if !is_supported() {
        return None;
    }
    // SAFETY: the processor has the features that `divide` is compiled for, as `is_supported` just said.
    Some(unsafe { divide(before, bytes) })
}

/// The CRC-32C: the processor divides by its polynomial.
#[inline]
#[target_feature(enable = "sse4.2")]
fn divide(before: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(u64::from(!before), |crc, word| _mm_crc32_u64(crc, u64::from_le_bytes(*word)));
    let (halves, rest) = rest.as_chunks::<4>();
    let crc = halves.iter().fold(crc as u32, |crc, half| _mm_crc32_u32(crc, u32::from_le_bytes(*half)));
    let (pairs, rest) = rest.as_chunks::<2>();
    let crc = pairs.iter().fold(crc, |crc, pair| _mm_crc32_u16(crc, u16::from_le_bytes(*pair)));
    !rest.iter().fold(crc, |crc, byte| _mm_crc32_u8(crc, *byte))
}

#[inline]
fn is_supported() -> bool {
    let is_baseline = cfg!(all(
        target_feature = "pclmulqdq",
        target_feature = "ssse3",
        target_feature = "sse4.1",
        target_feature = "sse4.2"
    ));
    if is_baseline {
        return true;
    }
    // Whoever races asks too and stores the same answer; nothing else hangs on it.
    match SUPPORT.load(Ordering::Relaxed) {
        0 => ask(),
        answer => answer == 2,
    }
}

#[cold]
fn ask() -> bool {
    /// PCLMULQDQ, SSSE3, SSE4.1 and SSE4.2 in ECX of leaf 1: processors with the first have all of them.
    const FEATURES: u32 = 1 << 1 | 1 << 9 | 1 << 19 | 1 << 20;
    // Miri runs no CPUID.
    let has = !cfg!(miri) && __cpuid(1).ecx & FEATURES == FEATURES;
    SUPPORT.store(1 + u8::from(has), Ordering::Relaxed);
    has
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(block: &[u8; BLOCK_LEN]) -> __m128i {
    // SAFETY: the reference is to 16 readable bytes, and the load wants no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

/// `block` moved up by what `by` says, onto `next`.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn fold_onto(block: __m128i, by: __m128i, next: __m128i) -> __m128i {
    let first = _mm_clmulepi64_si128::<0x00>(block, by);
    let second = _mm_clmulepi64_si128::<0x11>(block, by);
    _mm_xor_si128(_mm_xor_si128(first, second), next)
}

/// Leading zeros change nothing, so the remainder over 16 bytes is placed at the end of a first block of zeros. The
/// initial ones apply to the message's first four bytes, of which that block may contain fewer.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn fold(first: &[u8; BLOCK_LEN], bytes: &[u8]) -> u32 {
    let by_one = _mm_set_epi64x(BY_ONE[1], BY_ONE[0]);
    let ones = _mm_cvtsi32_si128(-1);
    let over = bytes.len() % BLOCK_LEN;
    let (blocks, _) = bytes[over..].as_chunks::<BLOCK_LEN>();
    let Some((next, mut blocks)) = blocks.split_first() else { return 0 };
    let mut sum = if over == 0 {
        _mm_xor_si128(load(next), ones)
    } else {
        let head = _mm_shuffle_epi8(_mm_xor_si128(load(first), ones), shift(over));
        let next = _mm_xor_si128(load(next), _mm_shuffle_epi8(ones, shift(BLOCK_LEN + over)));
        fold_onto(head, by_one, next)
    };
    if blocks.len() >= LANES_LEN / BLOCK_LEN {
        (sum, blocks) = fold_lanes(sum, blocks);
    }
    for block in blocks {
        sum = fold_onto(sum, by_one, load(block));
    }
    reduce(sum)
}

#[inline]
#[target_feature(enable = "sse2")]
fn shift(at: usize) -> __m128i {
    SHIFTS[at..].first_chunk().map_or_else(|| _mm_setzero_si128(), |shift| load(shift))
}

/// Four lanes hide the multiplication's latency. Gives back their sum, and the blocks that are left.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn fold_lanes(sum: __m128i, blocks: &[[u8; BLOCK_LEN]]) -> (__m128i, &[[u8; BLOCK_LEN]]) {
    let by_four = _mm_set_epi64x(BY_FOUR[1], BY_FOUR[0]);
    let by_one = _mm_set_epi64x(BY_ONE[1], BY_ONE[0]);
    let ([a, b, c], blocks) = blocks.split_first_chunk().unwrap_or((&[[0; BLOCK_LEN]; 3], &[]));
    let (mut sum, mut a, mut b, mut c) = (sum, load(a), load(b), load(c));
    let (fours, rest) = blocks.as_chunks::<4>();
    for [first, second, third, fourth] in fours {
        sum = fold_onto(sum, by_four, load(first));
        a = fold_onto(a, by_four, load(second));
        b = fold_onto(b, by_four, load(third));
        c = fold_onto(c, by_four, load(fourth));
    }
    (fold_onto(fold_onto(fold_onto(sum, by_one, a), by_one, b), by_one, c), rest)
}

/// The remainder of `sum`, moved up by 32 bits, as a checksum (Barrett).
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn reduce(sum: __m128i) -> u32 {
    let divide = _mm_set_epi64x(REFLECTED_DIVISOR, QUOTIENT);
    let first = _mm_clmulepi64_si128::<0x00>(sum, _mm_cvtsi64_si128(FIRST_HALF));
    let second = _mm_slli_si128::<4>(_mm_srli_si128::<8>(sum));
    let rest = _mm_xor_si128(first, second);
    let quotient = _mm_clmulepi64_si128::<0x00>(_mm_srli_si128::<4>(rest), divide);
    let multiple = _mm_slli_epi64::<1>(_mm_clmulepi64_si128::<0x10>(quotient, divide));
    !(_mm_extract_epi32::<3>(_mm_xor_si128(multiple, rest)) as u32)
}
