//! A venue's name of an instrument.

use crate::error::ParseError;
use core::{fmt, str};

/// A venue's own text for an instrument, such as `BTCUSDT` or `BTC/USD`: UTF-8 without control characters.
///
/// It has the size of a text of 23 bytes. Of a longer text the first 15 bytes are kept and a hash of 64 bits of all of
/// it: enough to distinguish what a venue lists, not to print it. Only the venue chooses its symbols, so that two that
/// are alike by intent give it no power that it lacks.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    words: [u64; 3],
}

/// The longest text that is kept whole.
const WHOLE_MAX: usize = 23;
/// Bytes of a longer text that are kept.
const PREFIX: usize = 15;
/// The length of a longer text.
const LONG: u8 = 0xff;

impl Symbol {
    /// The longest symbol of an instrument that can be followed, in bytes.
    pub const LEN_MAX: usize = 64;

    /// Takes `text` as it is; upper and lower case differ. One that is longer than [`LEN_MAX`](Self::LEN_MAX) is a symbol
    /// too: that of an instrument that nothing can follow.
    ///
    /// # Errors
    /// `SymbolText` if `text` is empty, is not UTF-8, or holds a quote, a backslash, a space or a control character.
    pub fn new(text: &[u8]) -> Result<Self, ParseError> {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if text.is_empty() || !(text.iter().all(is_plain) || is_printable(text)) {
            return Err(ParseError::SymbolText);
        }
        let mut bytes = [0; 24];
        if text.len() <= WHOLE_MAX {
            bytes[..text.len()].copy_from_slice(text);
            bytes[WHOLE_MAX] = text.len() as u8;
        } else {
            bytes[..PREFIX].copy_from_slice(&text[..PREFIX]);
            bytes[PREFIX..WHOLE_MAX].copy_from_slice(&hash(text).to_le_bytes());
            bytes[WHOLE_MAX] = LONG;
        }
        let mut words = [0; 3];
        for (word, eight) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*eight);
        }
        Ok(Self { words })
    }

    /// As [`new`](Self::new), for a text of at most 23 bytes.
    ///
    /// # Errors
    /// As [`new`](Self::new), and `SymbolText` for a longer text.
    pub(crate) fn short(text: &[u8]) -> Result<Self, ParseError> {
        if text.len() > WHOLE_MAX { Err(ParseError::SymbolText) } else { Self::new(text) }
    }

    /// Returns whether both are the same, without a call to `memcmp`.
    #[inline]
    #[must_use]
    pub const fn is(&self, other: &Self) -> bool {
        let ([a, b, c], [d, e, f]) = (self.words, other.words);
        (a ^ d) | (b ^ e) | (c ^ f) == 0
    }

    /// Returns the text and its length, padded with zeros.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> &[u64; 3] {
        &self.words
    }

    /// The symbol whose padded text and length are `words`, which a scanner has checked.
    #[inline]
    pub(crate) const fn from_words(words: [u64; 3]) -> Self {
        Self { words }
    }

    /// The text's bytes that are kept, padded with zeros, their number, and the hash of a longer text.
    fn parts(&self) -> ([u8; 24], usize, Option<u64>) {
        let mut bytes = [0; 24];
        for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *eight = word.to_le_bytes();
        }
        let len = bytes[WHOLE_MAX];
        if len != LONG {
            return (bytes, usize::from(len).min(WHOLE_MAX), None);
        }
        let hash = bytes[PREFIX..WHOLE_MAX].iter().rev().fold(0, |hash, byte| hash << 8 | u64::from(*byte));
        (bytes, PREFIX, Some(hash))
    }
}

/// UTF-8 without anything that JSON escapes, a space or a control character.
fn is_printable(text: &[u8]) -> bool {
    let is_odd = |char: char| char.is_control() || char.is_whitespace() || matches!(char, '"' | '\\');
    str::from_utf8(text).is_ok_and(|text| !text.contains(is_odd))
}

/// FNV-1a of 64 bits, mixed once more.
fn hash(text: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The text; of a longer one its first bytes, `~` and the hash.
impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, len, hash) = self.parts();
        let kept = &bytes[..len];
        // A character may be cut.
        let whole = str::from_utf8(kept).map_or_else(|cut| cut.valid_up_to(), str::len);
        f.write_str(str::from_utf8(&kept[..whole]).unwrap_or_default())?;
        hash.map_or(Ok(()), |hash| write!(f, "~{hash:016x}"))
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    #[test]
    fn a_text_of_up_to_23_bytes_is_kept_whole() {
        for text in
            ["B", "BTCUSDT", "BTC-27DEC24-100000-C", "12345678901234567890123", "\u{5e01}\u{5b89}\u{4eba}\u{751f}USDT"]
        {
            let symbol = Symbol::new(text.as_bytes()).unwrap();
            assert_eq!(symbol.to_string(), text);
            assert_eq!(Symbol::short(text.as_bytes()), Ok(symbol));
        }
    }

    #[test]
    fn longer_texts_that_differ_anywhere_are_others() {
        let name = "XRP_USDC-30JUN23-0d625-C";
        let mut all = alloc::vec![Symbol::new(name.as_bytes()).unwrap()];
        for at in 0..name.len() {
            let mut other = name.as_bytes().to_vec();
            other[at] ^= 1;
            all.push(Symbol::new(&other).unwrap());
        }
        for len in 24..=100 {
            all.push(Symbol::new("X".repeat(len).as_bytes()).unwrap());
        }
        let len = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), len);
        assert!(all.iter().all(|symbol| symbol.parts().2.is_some()));
        assert!(Symbol::new(name.as_bytes()).unwrap().to_string().starts_with("XRP_USDC-30JUN2~"));
        assert_eq!(Symbol::short(name.as_bytes()), Err(ParseError::SymbolText));
        let cut: String = "\u{5e01}".repeat(30);
        assert!(Symbol::new(cut.as_bytes()).unwrap().to_string().starts_with(&"\u{5e01}".repeat(5)));
    }

    #[test]
    fn texts_that_no_venue_has_are_rejected() {
        for text in [
            &b""[..],
            b"BTC USDT",
            b"BTC\"",
            b"BTC\\n",
            b"BTC\x7f",
            b"BTC\x00",
            b"\xff\xfe",
            "a\u{a0}b".as_bytes(),
            "a\u{85}b".as_bytes(),
        ] {
            assert_eq!(Symbol::new(text), Err(ParseError::SymbolText), "{text:?}");
        }
    }
}
