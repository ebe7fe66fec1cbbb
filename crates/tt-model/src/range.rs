//! Parts of a buffer.

use core::ops::Range;

/// A range of bytes of a buffer that both sides hold: offsets from its start, `end` excluded.
///
/// An engine names a payload so instead of returning a slice: the caller knows where in its buffer the bytes are.
///
/// ```
/// use tt_model::ByteRange;
///
/// let datagram = b"head:payload";
/// let payload = ByteRange::new(5, 12);
/// assert_eq!(&datagram[payload.to_range()], b"payload");
/// assert_eq!(payload.len(), 7);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl ByteRange {
    /// No bytes.
    pub const EMPTY: Self = Self { start: 0, end: 0 };

    /// The bytes from `start` up to `end`, excluded.
    #[inline]
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The number of bytes; zero if `end` is before `start`.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether the range has no byte.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The range as an index into a slice.
    #[inline]
    #[must_use]
    pub const fn to_range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange;

    #[test]
    fn a_reversed_range_is_empty() {
        assert_eq!(ByteRange::new(3, 9).len(), 6);
        assert!(ByteRange::EMPTY.is_empty() && ByteRange::new(9, 9).is_empty());
        assert_eq!(ByteRange::new(9, 3).len(), 0);
        assert!(ByteRange::new(9, 3).is_empty());
        assert_eq!(ByteRange::new(0, u32::MAX).to_range(), 0..u32::MAX as usize);
    }
}
