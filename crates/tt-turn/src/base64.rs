//! Base64 (RFC 4648 section 4) of the fixed lengths that this crate writes.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Four characters of three bytes.
#[inline]
pub(crate) const fn group(a: u8, b: u8, c: u8) -> [u8; 4] {
    let bits = (a as u32) << 16 | (b as u32) << 8 | c as u32;
    [digit(bits >> 18), digit(bits >> 12), digit(bits >> 6), digit(bits)]
}

/// The character of the lowest six bits.
#[inline]
pub(crate) const fn digit(bits: u32) -> u8 {
    ALPHABET[(bits & 63) as usize]
}

/// The six bits of a character.
#[inline]
pub(crate) const fn value(digit: u8) -> Option<u32> {
    match digit {
        b'A'..=b'Z' => Some((digit - b'A') as u32),
        b'a'..=b'z' => Some((digit - b'a') as u32 + 26),
        b'0'..=b'9' => Some((digit - b'0') as u32 + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Encodes a SHA-1 code as 28 characters with padding: the password of the TURN REST API.
pub(crate) fn of_sha1(code: &[u8; 20]) -> [u8; 28] {
    let mut text = [b'='; 28];
    let (groups, rest) = code.as_chunks::<3>();
    for (space, [a, b, c]) in text.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
        *space = group(*a, *b, *c);
    }
    if let [a, b] = rest {
        text[24..27].copy_from_slice(&group(*a, *b, 0)[..3]);
    }
    text
}
