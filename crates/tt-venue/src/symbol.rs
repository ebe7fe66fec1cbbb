//! A venue's name of an instrument.

use crate::error::ParseError;
use core::{fmt, str};

/// A venue's own text for an instrument, such as `BTCUSDT` or `BTC/USD`: up to 23 printable ASCII bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    words: [u64; 3],
}

impl Symbol {
    /// The longest symbol in bytes.
    pub const LEN_MAX: usize = 23;

    /// Takes `text` as it is; upper and lower case differ.
    ///
    /// # Errors
    /// `SymbolText` if `text` is empty, longer than 23 bytes, or holds a quote, a backslash, a space or anything that
    /// is not printable ASCII.
    pub fn new(text: &[u8]) -> Result<Self, ParseError> {
        if text.is_empty() || text.len() > Self::LEN_MAX {
            return Err(ParseError::SymbolText);
        }
        if !text.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')) {
            return Err(ParseError::SymbolText);
        }
        let mut bytes = [0; 24];
        bytes[..text.len()].copy_from_slice(text);
        bytes[23] = text.len() as u8;
        let mut words = [0; 3];
        for (word, eight) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*eight);
        }
        Ok(Self { words })
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

    /// The text's bytes, padded with zeros, and its length.
    #[must_use]
    pub fn bytes(&self) -> ([u8; 24], usize) {
        let mut bytes = [0; 24];
        for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *eight = word.to_le_bytes();
        }
        let len = usize::from(bytes[23]);
        bytes[23] = 0;
        (bytes, len)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, len) = self.bytes();
        f.write_str(str::from_utf8(&bytes[..len]).unwrap_or_default())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({self})")
    }
}
