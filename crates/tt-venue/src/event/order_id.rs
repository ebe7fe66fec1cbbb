//! A venue's identifier of an order.

use crate::error::ParseError;
use crate::symbol::Symbol;
use core::fmt;

/// A venue's identifier of an order or an execution: its number or text of up to 23 bytes, or a UUID.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct OrderId(Symbol);

/// Marks a UUID where the length of a text would stand.
const UUID: u64 = 0x40 << 56;
/// Marks an order that waits for its condition, in addition to its usual type.
const CONDITIONAL: u64 = 0x80 << 56;
/// Where the hyphens of a UUID stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl OrderId {
    /// Takes `text` as it is: up to 23 bytes, or a UUID in lower case.
    ///
    /// # Errors
    /// `SymbolText` for any other text.
    pub fn new(text: &[u8]) -> Result<Self, ParseError> {
        match text.try_into() {
            Ok(text) => uuid(text).ok_or(ParseError::SymbolText).map(Self),
            Err(_) if !text.is_ascii() => Err(ParseError::SymbolText),
            Err(_) => Symbol::short(text).map(Self),
        }
    }

    /// The identifier of an order that waits for its condition, where the venue numbers those by themselves.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn conditional(text: &[u8]) -> Result<Self, ParseError> {
        let Self(plain) = Self::new(text)?;
        let [one, two, kind] = *plain.words();
        Ok(Self(Symbol::from_words([one, two, kind | CONDITIONAL])))
    }

    /// A number for a UUID: its halves combined. Two UUIDs have the same one by chance alone.
    #[inline]
    pub(crate) const fn folded(&self) -> u64 {
        let words = self.words();
        words[0] ^ words[1]
    }

    /// Whether both are the same, without a call.
    #[inline]
    #[must_use]
    pub const fn is(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }

    /// Returns the identifier as words.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> &[u64; 3] {
        self.0.words()
    }
}

/// The 16 bytes of a UUID in its usual form (RFC 9562 section 4), in lower case.
fn uuid(text: &[u8; 36]) -> Option<Symbol> {
    let mut halves = [0_u64; 2];
    let mut digits = 0;
    for (at, byte) in text.iter().enumerate() {
        if HYPHENS.contains(&at) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        let half = &mut halves[digits / 16];
        *half = *half << 4 | u64::from(digit);
        digits += 1;
    }
    Some(Symbol::from_words([halves[0], halves[1], UUID]))
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low, kind] = *self.words();
        if kind & CONDITIONAL != 0 {
            f.write_str("conditional:")?;
        }
        if kind & UUID == 0 {
            return Symbol::from_words([high, low, kind & !CONDITIONAL]).fmt(f);
        }
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
    }
}

impl fmt::Debug for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn texts_and_uuids_come_back_as_they_were() {
        for text in ["1", "O6ABCD-12345-XYZABC", "ETH-331562", "5cf98598-39a7-459e-97bf-76ca765ee020"] {
            assert_eq!(OrderId::new(text.as_bytes()).unwrap().to_string(), text);
            let other = OrderId::conditional(text.as_bytes()).unwrap();
            assert_eq!(other.to_string(), alloc::format!("conditional:{text}"));
            assert_ne!(Ok(other), OrderId::new(text.as_bytes()));
        }
        for text in ["", "a text of more than 23 bytes", "5CF98598-39A7-459E-97BF-76CA765EE020", "\u{130}"] {
            assert_eq!(OrderId::new(text.as_bytes()), Err(ParseError::SymbolText), "{text}");
        }
        let one = OrderId::new(b"5cf98598-39a7-459e-97bf-76ca765ee020").unwrap();
        assert_ne!(one, OrderId::new(b"5cf98598-39a7-459e-97bf-76ca765ee021").unwrap());
    }
}
