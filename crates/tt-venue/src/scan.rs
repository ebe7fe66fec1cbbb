//! The scanners' cursor: eight bytes at a time, in the order in which a venue writes its keys.
//!
//! A scanner answers `None` to anything that it does not expect, and the general path then decides. It accepts nothing
//! that the general path would reject, and reads nothing differently.

mod shape;

pub(crate) use shape::{Shape, keys};

use crate::event::{EventBuffer, Levels, OrderId};
use crate::symbol::Symbol;
use crate::time;
use tt_model::{Decimal, Nanos};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// What is left of a frame.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(frame: &'a [u8]) -> Self {
        Self { rest: frame }
    }

    /// The next eight bytes, zeros after the end.
    #[inline(always)]
    fn eight(&self) -> u64 {
        match self.rest.first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => tail(self.rest),
        }
    }

    #[inline(always)]
    fn skip(&mut self, len: usize) -> Option<()> {
        self.rest = self.rest.get(len..)?;
        Some(())
    }

    /// Passes exactly these bytes.
    #[inline(always)]
    pub(crate) fn literal<const N: usize>(&mut self, literal: &[u8; N]) -> Option<()> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        if head != literal {
            return None;
        }
        self.rest = rest;
        Some(())
    }

    /// Passes these bytes if they come next.
    #[inline(always)]
    pub(crate) fn passes<const N: usize>(&mut self, literal: &[u8; N]) -> bool {
        self.literal(literal).is_some()
    }

    /// Nothing may be left.
    #[inline(always)]
    pub(crate) fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }

    /// The next bytes as digits less `b'0'`, and how many of the first eight are digits.
    #[inline(always)]
    fn peek_digits(&self) -> (u64, usize) {
        let word = self.eight() ^ (ONES * u64::from(b'0'));
        (word, others(word).trailing_zeros() as usize / 8)
    }

    /// Up to eight digits, and how many there were.
    #[inline(always)]
    fn digits(&mut self) -> Option<(u64, usize)> {
        let (word, count) = self.peek_digits();
        if count == 0 {
            return None;
        }
        self.skip(count)?;
        Some((number_of_digits(word << (64 - 8 * count)), count))
    }

    /// A whole number of up to 19 digits.
    #[inline(always)]
    pub(crate) fn whole(&mut self) -> Option<u64> {
        let (word, count) = self.peek_digits();
        if count == 8 && word & 0xff != 0 {
            self.skip(8)?;
            return self.more_digits(number_of_digits(word));
        }
        if count == 0 || count == 8 || (word & 0xff == 0 && count > 1) {
            return None;
        }
        self.skip(count)?;
        Some(number_of_digits(word << (64 - 8 * count)))
    }

    /// As `whole`, where 13 digits are the rule: two loads at known places.
    #[inline(always)]
    fn unix_ms_digits(&mut self) -> Option<u64> {
        if let Some((text, _)) = self.rest.split_first_chunk::<14>()
            && let (Some(high), Some(low)) = (text.first_chunk(), text[5..].first_chunk())
        {
            let high = u64::from_le_bytes(*high) ^ (ONES * u64::from(b'0'));
            let low = u64::from_le_bytes(*low) ^ (ONES * u64::from(b'0'));
            if others(high) | others(low) == 0 && high & 0xff != 0 && !text[13].is_ascii_digit() {
                self.skip(13)?;
                // The low word's first three digits are the high one's last three.
                return Some(number_of_digits(high) * 100_000 + number_of_digits(low & !0xff_ffff));
            }
        }
        self.whole()
    }

    /// What follows the first eight digits of a whole number.
    #[inline(always)]
    fn more_digits(&mut self, high: u64) -> Option<u64> {
        let Some((middle, count)) = self.digits() else { return Some(high) };
        let number = high * Decimal::POWERS_OF_TEN[count] as u64 + middle;
        if count < 8 {
            return Some(number);
        }
        let Some((low, count)) = self.digits() else { return Some(number) };
        if count > 3 { None } else { Some(number * Decimal::POWERS_OF_TEN[count] as u64 + low) }
    }

    /// A number without sign and exponent: up to seven digits, and up to eight after the point.
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Option<Decimal> {
        let (word, count) = self.peek_digits();
        if count == 0 || count == 8 || (word & 0xff == 0 && count > 1) {
            return None;
        }
        self.skip(count)?;
        let whole = number_of_digits(word << (64 - 8 * count));
        if self.rest.first() != Some(&b'.') {
            return Some(Decimal::new(whole as i64, 0));
        }
        self.skip(1)?;
        let (fraction, decimals) = self.digits()?;
        Some(Decimal::new(whole as i64 * Decimal::POWERS_OF_TEN[decimals] + fraction as i64, decimals as u8))
    }

    /// A number without sign and the byte after it; one with an exponent, or of many digits, costs more.
    #[inline(always)]
    fn number_before(&mut self, end: u8) -> Option<Decimal> {
        let start = *self;
        if let Some(number) = self.number()
            && self.passes(&[end])
        {
            return Some(number);
        }
        *self = start;
        self.rare_number_before(end)
    }

    #[cold]
    fn rare_number_before(&mut self, end: u8) -> Option<Decimal> {
        let len = self.rest.iter().take(32).position(|byte| *byte == end)?;
        let number = Decimal::parse_unsigned(&self.rest[..len]).ok()?;
        self.skip(len + 1)?;
        Some(number)
    }

    /// The text up to the closing quote, which is passed: printable ASCII without spaces and backslashes, up to 23 bytes.
    #[inline(always)]
    pub(crate) fn symbol(&mut self) -> Option<Symbol> {
        let mut words = [0; 3];
        let mut len = 0;
        for word in &mut words {
            let text = self.eight();
            let stops = stops(text) | zero_bytes(text ^ (ONES * 0x7f));
            if stops == 0 {
                *word = text;
                len += 8;
                self.skip(8)?;
                continue;
            }
            let count = stops.trailing_zeros() as usize / 8;
            *word = text & ((1 << (8 * count)) - 1);
            len += count;
            self.skip(count)?;
            break;
        }
        self.literal(b"\"")?;
        if len == 0 || len > 23 {
            return None;
        }
        words[2] |= (len as u64) << 56;
        Some(Symbol::from_words(words))
    }

    /// Passes a text of any length and its closing quote: ASCII above the quote, without backslashes.
    #[inline(always)]
    pub(crate) fn text(&mut self) -> Option<()> {
        loop {
            let stops = stops(self.eight());
            if stops != 0 {
                self.skip(stops.trailing_zeros() as usize / 8)?;
                return self.literal(b"\"");
            }
            self.skip(8)?;
        }
    }

    /// `true` or `false`.
    #[inline(always)]
    pub(crate) fn boolean(&mut self) -> Option<bool> {
        if self.passes(b"true") { Some(true) } else { self.literal(b"false").map(|()| false) }
    }

    /// Milliseconds of the Unix epoch.
    #[inline(always)]
    pub(crate) fn unix_ms(&mut self) -> Option<Nanos> {
        time::from_unix_ms(self.unix_ms_digits()?).ok()
    }

    /// Milliseconds or, of more digits, microseconds of the Unix epoch.
    #[inline(always)]
    pub(crate) fn unix_ms_or_us(&mut self) -> Option<Nanos> {
        time::from_unix_ms_or_us(self.unix_ms_digits()?).ok()
    }

    /// Any whole number, mostly milliseconds.
    #[inline(always)]
    pub(crate) fn any_time(&mut self) -> Option<u64> {
        self.unix_ms_digits()
    }

    /// A number in quotes, of which the first one has been passed.
    #[inline(always)]
    pub(crate) fn quoted(&mut self) -> Option<Decimal> {
        let number = self.number()?;
        self.literal(b"\"")?;
        Some(number)
    }

    /// A whole number in quotes, of which the first one has been passed.
    #[inline(always)]
    pub(crate) fn quoted_whole(&mut self) -> Option<u64> {
        let number = self.whole()?;
        self.literal(b"\"")?;
        Some(number)
    }

    /// A whole number of up to 18 digits with or without a sign.
    #[inline(always)]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let is_negative = self.passes(b"-");
        let number = i64::try_from(self.whole()?).ok()?;
        Some(if is_negative { -number } else { number })
    }

    /// Milliseconds of the Unix epoch in quotes, of which the first one has been passed.
    #[inline(always)]
    pub(crate) fn quoted_unix_ms(&mut self) -> Option<Nanos> {
        let time = self.unix_ms()?;
        self.literal(b"\"")?;
        Some(time)
    }

    /// An identifier in quotes, of which the first one has been passed: a number, or a UUID with its halves combined.
    #[inline(always)]
    pub(crate) fn quoted_id(&mut self) -> Option<u64> {
        if let Some((id, [b'"', ..])) = self.rest.split_at_checked(36)
            && !id.contains(&b'"')
        {
            let id = OrderId::new(id).ok()?;
            self.skip(37)?;
            return Some(id.folded());
        }
        self.quoted_whole()
    }

    /// `["px","qty","..",".."],..]` after the opening bracket: OKX.
    #[inline(always)]
    pub(crate) fn okx_levels(&mut self, list: &mut Levels, buffer: &mut EventBuffer) -> Option<()> {
        if self.passes(b"]") {
            return Some(());
        }
        loop {
            self.literal(b"[\"")?;
            let px = self.number()?;
            self.literal(b"\",\"")?;
            let qty = self.number()?;
            self.literal(b"\",\"")?;
            self.text()?;
            self.literal(b",\"")?;
            self.text()?;
            self.literal(b"]")?;
            buffer.push_level(list, px, qty).ok()?;
            if !self.passes(b",") {
                return self.literal(b"]");
            }
        }
    }

    /// `["new",px,qty],..]` after the opening bracket: Deribit.
    #[inline(always)]
    pub(crate) fn marked_levels(&mut self, list: &mut Levels, buffer: &mut EventBuffer) -> Option<()> {
        if self.passes(b"]") {
            return Some(());
        }
        loop {
            self.literal(b"[\"")?;
            let is_deleted = self.passes(b"delete\",");
            if !is_deleted && !self.passes(b"new\",") {
                self.literal(b"change\",")?;
            }
            let px = self.number_before(b',')?;
            let qty = self.number_before(b']')?;
            if is_deleted != (qty.mantissa == 0) {
                return None;
            }
            buffer.push_level(list, px, qty).ok()?;
            if !self.passes(b",") {
                return self.literal(b"]");
            }
        }
    }

    /// `["px","qty"],..]` after the opening bracket.
    #[inline(always)]
    pub(crate) fn quoted_levels(&mut self, list: &mut Levels, buffer: &mut EventBuffer) -> Option<()> {
        if self.passes(b"]") {
            return Some(());
        }
        loop {
            self.literal(b"[\"")?;
            let px = self.number()?;
            self.literal(b"\",\"")?;
            let qty = self.number()?;
            self.literal(b"\"]")?;
            buffer.push_level(list, px, qty).ok()?;
            if !self.passes(b",") {
                return self.literal(b"]");
            }
        }
    }

    /// `{"price":px,"qty":qty},..]` after the opening bracket.
    #[inline(always)]
    pub(crate) fn named_levels(&mut self, list: &mut Levels, buffer: &mut EventBuffer) -> Option<()> {
        if self.passes(b"]") {
            return Some(());
        }
        loop {
            self.literal(b"{\"price\":")?;
            let px = self.number()?;
            self.literal(b",\"qty\":")?;
            let qty = self.number()?;
            self.literal(b"}")?;
            buffer.push_level(list, px, qty).ok()?;
            if !self.passes(b",") {
                return self.literal(b"]");
            }
        }
    }

    /// An RFC 3339 time in quotes, of which the first one has been passed.
    #[inline(always)]
    pub(crate) fn rfc3339(&mut self) -> Option<Nanos> {
        let len = self.rest.iter().take(32).position(|byte| *byte == b'"')?;
        let time = time::from_rfc3339(self.rest.get(..len)?).ok()?;
        self.skip(len + 1)?;
        Some(time)
    }
}

#[cold]
fn tail(rest: &[u8]) -> u64 {
    let mut eight = [0; 8];
    let len = rest.len().min(8);
    eight[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(eight)
}

/// The high bit of each byte above nine; bytes after the first one may be marked wrongly.
#[inline(always)]
const fn others(word: u64) -> u64 {
    (word.wrapping_add(ONES * 0x76) | word) & HIGH_BITS
}

/// The high bit of each byte that ends a plain text: the quote and all below it, the backslash, and what is not ASCII;
/// bytes after the first one may be marked wrongly.
#[inline(always)]
const fn stops(word: u64) -> u64 {
    let low = word.wrapping_sub(ONES * 0x23) & !word;
    (low | zero_bytes(word ^ (ONES * 0x5c)) | word) & HIGH_BITS
}

/// The high bit of each byte that is zero; bytes after the first one may be marked wrongly.
#[inline(always)]
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH_BITS
}

/// The number whose eight digits are the bytes of `word`, the first digit lowest: pairs, then fours, then eight.
#[inline(always)]
const fn number_of_digits(word: u64) -> u64 {
    let pairs = word.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}
