//! The general path: any JSON in any order, checked in full, nothing allocated.
//!
//! An object is split into keys and the raw text of their values; nested values are read from that text in turn.

use crate::{Decimal, EventBuffer, Fault, Levels, OrderId};
use core::str;

/// The deepest nesting that is read.
const NESTING_MAX: u32 = 64;
/// The most keys of an object that is read.
const KEYS_MAX: usize = 64;

/// The members of one object: raw keys and raw values, in the order of the text.
pub(crate) struct Object<'a> {
    members: [(&'a [u8], &'a [u8]); KEYS_MAX],
    len: usize,
}

impl<'a> Object<'a> {
    /// Reads `text`, which must be one object and nothing else but white space.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, Fault> {
        if text.trim_ascii_end().last() != Some(&b'}') {
            // Cut off, or something behind it: there is no need to read the rest first.
            return Err(if text.trim_ascii_start().starts_with(b"{") { Fault::Syntax } else { Fault::WrongType });
        }
        let mut reader = Reader { text, at: 0 };
        let mut object = Self { members: [(&[], &[]); KEYS_MAX], len: 0 };
        reader.skip_space();
        reader.expect(b'{', Fault::WrongType)?;
        if !reader.closes(b'}') {
            loop {
                reader.skip_space();
                let key = reader.string()?;
                reader.skip_space();
                reader.expect(b':', Fault::Syntax)?;
                let value = reader.value()?;
                object.insert(key, value)?;
                if !reader.continues(b'}')? {
                    break;
                }
            }
        }
        reader.finish()?;
        Ok(object)
    }

    fn insert(&mut self, key: &'a [u8], value: &'a [u8]) -> Result<(), Fault> {
        if key.contains(&b'\\') {
            return Err(Fault::WrongType);
        }
        if self.get(key).is_some() {
            return Err(Fault::DuplicateKey);
        }
        let member = self.members.get_mut(self.len).ok_or(Fault::TooManyKeys)?;
        *member = (key, value);
        self.len += 1;
        Ok(())
    }

    /// The raw value of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.members[..self.len].iter().find(|member| member.0 == key).map(|member| member.1)
    }

    /// The raw value of `key`, which the event needs.
    pub(crate) fn need(&self, key: &[u8]) -> Result<&'a [u8], Fault> {
        self.get(key).ok_or(Fault::MissingKey)
    }
}

/// The raw elements of an array.
pub(crate) struct Elements<'a> {
    reader: Reader<'a>,
    open: bool,
}

impl<'a> Elements<'a> {
    /// Reads `text`, which must be one array and nothing else but white space.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, Fault> {
        let mut reader = Reader { text, at: 0 };
        reader.skip_space();
        reader.expect(b'[', Fault::WrongType)?;
        let open = !reader.closes(b']');
        if !open {
            reader.finish()?;
        }
        Ok(Self { reader, open })
    }

    /// The next element, `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        if !self.open {
            return Ok(None);
        }
        let value = self.reader.value()?;
        self.open = self.reader.continues(b']')?;
        if !self.open {
            self.reader.finish()?;
        }
        Ok(Some(value))
    }

    /// The next element, which must be there.
    pub(crate) fn need(&mut self) -> Result<&'a [u8], Fault> {
        self.next()?.ok_or(Fault::WrongType)
    }

    /// No element may follow.
    pub(crate) fn end(mut self) -> Result<(), Fault> {
        if self.next()?.is_some() { Err(Fault::WrongType) } else { Ok(()) }
    }
}

/// A key and its raw value.
type Member<'a> = (&'a [u8], &'a [u8]);

/// The members of an object one after the other, for objects of more keys than an [`Object`] has room for.
pub(crate) struct Members<'a> {
    reader: Reader<'a>,
    open: bool,
}

impl<'a> Members<'a> {
    /// Reads `text`, which must be one object and nothing else but white space.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, Fault> {
        let mut reader = Reader { text, at: 0 };
        reader.skip_space();
        reader.expect(b'{', Fault::WrongType)?;
        let open = !reader.closes(b'}');
        if !open {
            reader.finish()?;
        }
        Ok(Self { reader, open })
    }

    /// The next key and its raw value, `None` after the last. Whether a key occurs twice is for the caller to see.
    pub(crate) fn next(&mut self) -> Result<Option<Member<'a>>, Fault> {
        if !self.open {
            return Ok(None);
        }
        self.reader.skip_space();
        let key = self.reader.string()?;
        self.reader.skip_space();
        self.reader.expect(b':', Fault::Syntax)?;
        let value = self.reader.value()?;
        self.open = self.reader.continues(b'}')?;
        if !self.open {
            self.reader.finish()?;
        }
        Ok(Some((key, value)))
    }
}

/// The text of a string value without escapes.
pub(crate) fn text(raw: &[u8]) -> Result<&[u8], Fault> {
    match raw {
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => Ok(text),
        _ => Err(Fault::WrongType),
    }
}

/// A number in a string that has no sign.
pub(crate) fn quoted_unsigned(raw: &[u8]) -> Result<Decimal, Fault> {
    Decimal::parse_unsigned(text(raw)?)
}

/// A bare number that has no sign.
pub(crate) fn bare_unsigned(raw: &[u8]) -> Result<Decimal, Fault> {
    match raw.first() {
        Some(b'0'..=b'9' | b'-') => Decimal::parse_unsigned(raw),
        _ => Err(Fault::WrongType),
    }
}

/// A bare whole number.
pub(crate) fn bare_u64(raw: &[u8]) -> Result<u64, Fault> {
    match raw.first() {
        Some(b'0'..=b'9' | b'-') => digits_u64(raw),
        _ => Err(Fault::WrongType),
    }
}

/// A bare number with or without a sign.
pub(crate) fn bare_signed(raw: &[u8]) -> Result<Decimal, Fault> {
    match raw.first() {
        Some(b'0'..=b'9' | b'-') => Decimal::parse(raw),
        _ => Err(Fault::WrongType),
    }
}

/// A bare number that may be absent or null.
pub(crate) fn optional_bare(raw: Option<&[u8]>) -> Result<Option<Decimal>, Fault> {
    raw.filter(|raw| *raw != b"null").map(bare_unsigned).transpose()
}

/// As `optional_bare`, with or without a sign.
pub(crate) fn optional_bare_signed(raw: Option<&[u8]>) -> Result<Option<Decimal>, Fault> {
    raw.filter(|raw| *raw != b"null").map(bare_signed).transpose()
}

/// A number in a string, which may be absent or empty.
pub(crate) fn optional_quoted(raw: Option<&[u8]>) -> Result<Option<Decimal>, Fault> {
    raw.map(text).transpose()?.filter(|text| !text.is_empty()).map(Decimal::parse_unsigned).transpose()
}

/// As `optional_quoted`, with or without a sign.
pub(crate) fn optional_quoted_signed(raw: Option<&[u8]>) -> Result<Option<Decimal>, Fault> {
    raw.map(text).transpose()?.filter(|text| !text.is_empty()).map(Decimal::parse).transpose()
}

/// A whole number in a string.
pub(crate) fn quoted_u64(raw: &[u8]) -> Result<u64, Fault> {
    digits_u64(text(raw)?)
}

/// An identifier in a string as a number: itself, or the halves of a UUID combined.
pub(crate) fn quoted_id(raw: &[u8]) -> Result<u64, Fault> {
    let id = text(raw)?;
    if id.len() == 36 { OrderId::new(id).map(|id| id.folded()) } else { digits_u64(id) }
}

/// Reads each object of an array.
pub(crate) fn each(raw: &[u8], mut read: impl FnMut(&Object<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut elements = Elements::parse(raw)?;
    while let Some(element) = elements.next()? {
        read(&Object::parse(element)?)?;
    }
    Ok(())
}

/// Both sides of a book whose levels are arrays of `len` strings, price and quantity first.
pub(crate) fn quoted_sides(bids: &[u8], asks: &[u8], len: usize, buffer: &mut EventBuffer) -> Result<Levels, Fault> {
    let mut list = Levels::default();
    let start = buffer.mark();
    quoted_side(bids, len, &mut list, buffer)?;
    let middle = buffer.mark();
    list.set_bids(start, middle);
    quoted_side(asks, len, &mut list, buffer)?;
    list.set_asks(middle, buffer.mark());
    Ok(list)
}

fn quoted_side(raw: &[u8], len: usize, list: &mut Levels, buffer: &mut EventBuffer) -> Result<(), Fault> {
    let mut levels = Elements::parse(raw)?;
    while let Some(level) = levels.next()? {
        let mut level = Elements::parse(level)?;
        let px = quoted_unsigned(level.need()?)?;
        let qty = quoted_unsigned(level.need()?)?;
        for _ in 2..len {
            text(level.need()?)?;
        }
        level.end()?;
        buffer.push_level(list, px, qty)?;
    }
    Ok(())
}

/// A bare whole number with or without a sign.
pub(crate) fn bare_i64(raw: &[u8]) -> Result<i64, Fault> {
    let (digits, is_negative) = match raw {
        [b'-', digits @ ..] => (digits, true),
        _ => (raw, false),
    };
    let number = i64::try_from(bare_u64(digits)?).map_err(|_| Fault::NumberRange)?;
    Ok(if is_negative { -number } else { number })
}

/// The whole number that is written in plain digits.
pub(crate) fn digits_u64(digits: &[u8]) -> Result<u64, Fault> {
    if digits.is_empty() {
        return Err(Fault::Number);
    }
    let mut number = 0_u64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return Err(Fault::Number);
        }
        number =
            number.checked_mul(10).and_then(|n| n.checked_add(u64::from(byte - b'0'))).ok_or(Fault::NumberRange)?;
    }
    Ok(number)
}

/// `true` or `false`.
pub(crate) fn boolean(raw: &[u8]) -> Result<bool, Fault> {
    match raw {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(Fault::WrongType),
    }
}

/// The whole text must be UTF-8.
pub(crate) fn check_utf8(text: &[u8]) -> Result<(), Fault> {
    str::from_utf8(text).map(|_| ()).map_err(|_| Fault::NotUtf8)
}

/// The length of the value with which `text` begins, checked to be JSON.
pub(crate) fn value_len(text: &[u8]) -> Option<usize> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_value().ok().map(|()| reader.at)
}

/// The high bit of the first byte that is a quote, a backslash or a control byte; bytes after it may be marked wrongly.
#[inline]
const fn ends_of_text(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (quotes, escapes) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c));
    let low = word.wrapping_sub(ONES * 0x20) & !word;
    (low | (quotes.wrapping_sub(ONES) & !quotes) | (escapes.wrapping_sub(ONES) & !escapes)) & (ONES << 7)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, fault: Fault) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(if self.peek().is_none() { Fault::Syntax } else { fault });
        }
        self.at += 1;
        Ok(())
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Whether the container ends right here, without any element.
    fn closes(&mut self, close: u8) -> bool {
        self.skip_space();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// After an element: whether another one follows.
    fn continues(&mut self, close: u8) -> Result<bool, Fault> {
        self.skip_space();
        let byte = self.peek().ok_or(Fault::Syntax)?;
        self.at += 1;
        if byte == b',' {
            return Ok(true);
        }
        if byte == close { Ok(false) } else { Err(Fault::Syntax) }
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// The raw text of the string that starts here, without its quotes.
    fn string(&mut self) -> Result<&'a [u8], Fault> {
        let start = self.at + 1;
        self.skip_string()?;
        Ok(&self.text[start..self.at - 1])
    }

    /// The raw text of the value that starts here, checked to be JSON.
    fn value(&mut self) -> Result<&'a [u8], Fault> {
        self.skip_space();
        let start = self.at;
        self.skip_value()?;
        Ok(&self.text[start..self.at])
    }

    /// Passes one value without recursion: `open` has a bit for each container around, set for objects.
    fn skip_value(&mut self) -> Result<(), Fault> {
        let (mut open, mut depth) = (0_u64, 0_u32);
        loop {
            self.skip_space();
            match self.peek().ok_or(Fault::Syntax)? {
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = bracket == b'{';
                    if !self.closes(if is_object { b'}' } else { b']' }) {
                        if depth == NESTING_MAX {
                            return Err(Fault::Nesting);
                        }
                        open = open << 1 | u64::from(is_object);
                        depth += 1;
                        self.skip_key(is_object)?;
                        continue;
                    }
                }
                b'"' => self.skip_string()?,
                b't' => self.skip_word(b"true")?,
                b'f' => self.skip_word(b"false")?,
                b'n' => self.skip_word(b"null")?,
                _ => self.skip_number()?,
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = open & 1 == 1;
                if self.continues(if is_object { b'}' } else { b']' })? {
                    self.skip_key(is_object)?;
                    break;
                }
                open >>= 1;
                depth -= 1;
            }
        }
    }

    fn skip_key(&mut self, is_object: bool) -> Result<(), Fault> {
        if is_object {
            self.skip_space();
            self.skip_string()?;
            self.skip_space();
            self.expect(b':', Fault::Syntax)?;
        }
        Ok(())
    }

    fn skip_word(&mut self, word: &[u8]) -> Result<(), Fault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Fault::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn skip_number(&mut self) -> Result<(), Fault> {
        self.at += usize::from(self.peek() == Some(b'-'));
        let starts_with_zero = self.peek() == Some(b'0');
        let digits = self.skip_digits();
        if digits == 0 || (starts_with_zero && digits > 1) {
            return Err(Fault::Syntax);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.skip_digits() == 0 {
                return Err(Fault::Syntax);
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.skip_digits() == 0 {
                return Err(Fault::Syntax);
            }
        }
        Ok(())
    }

    fn skip_string(&mut self) -> Result<(), Fault> {
        self.expect(b'"', Fault::Syntax)?;
        loop {
            while let Some(eight) = self.text.get(self.at..).and_then(<[u8]>::first_chunk) {
                let ends = ends_of_text(u64::from_le_bytes(*eight));
                self.at += ends.trailing_zeros() as usize / 8;
                if ends != 0 {
                    break;
                }
            }
            let byte = self.peek().ok_or(Fault::Syntax)?;
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.skip_escape()?,
                0..=0x1f => return Err(Fault::Syntax),
                _ => {}
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), Fault> {
        let byte = self.peek().ok_or(Fault::Syntax)?;
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => match self.hex4()? {
                0xd800..=0xdbff => {
                    self.expect(b'\\', Fault::Syntax)?;
                    self.expect(b'u', Fault::Syntax)?;
                    if (0xdc00..=0xdfff).contains(&self.hex4()?) { Ok(()) } else { Err(Fault::Syntax) }
                }
                0xdc00..=0xdfff => Err(Fault::Syntax),
                _ => Ok(()),
            },
            _ => Err(Fault::Syntax),
        }
    }

    fn hex4(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Fault::Syntax)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, byte| match char::from(*byte).to_digit(16) {
            Some(digit) => Ok(value << 4 | digit),
            None => Err(Fault::Syntax),
        })
    }
}
