//! The general path: any JSON in any order, checked in full, nothing allocated.
//!
//! An object is split into keys and the raw text of their values; nested values are read from that text in turn.

mod reader;

use self::reader::Reader;
use crate::error::ParseError;
use crate::event::{EventBuffer, Levels, OrderId};
use core::str;
use tt_model::Decimal;

/// The most keys of an object that is read.
const KEYS_MAX: usize = 64;

/// The members of one object: raw keys and raw values, in the order of the text.
pub(crate) struct Object<'a> {
    members: [(&'a [u8], &'a [u8]); KEYS_MAX],
    len: usize,
}

impl<'a> Object<'a> {
    /// Reads `text`, which must be one object and nothing else but white space.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        if text.trim_ascii_end().last() != Some(&b'}') {
            // Cut off, or something behind it: there is no need to read the rest first.
            return Err(if text.trim_ascii_start().starts_with(b"{") {
                ParseError::Syntax
            } else {
                ParseError::WrongType
            });
        }
        let mut reader = Reader::new(text);
        let mut object = Self { members: [(&[], &[]); KEYS_MAX], len: 0 };
        reader.skip_space();
        reader.expect(b'{', ParseError::WrongType)?;
        if !reader.closes(b'}') {
            loop {
                reader.skip_space();
                let key = reader.string()?;
                reader.skip_space();
                reader.expect(b':', ParseError::Syntax)?;
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

    fn insert(&mut self, key: &'a [u8], value: &'a [u8]) -> Result<(), ParseError> {
        if key.contains(&b'\\') {
            return Err(ParseError::WrongType);
        }
        if self.get(key).is_some() {
            return Err(ParseError::DuplicateKey);
        }
        let member = self.members.get_mut(self.len).ok_or(ParseError::TooManyKeys)?;
        *member = (key, value);
        self.len += 1;
        Ok(())
    }

    /// The raw value of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.members[..self.len].iter().find(|member| member.0 == key).map(|member| member.1)
    }

    /// The raw value of `key`, which the event needs.
    pub(crate) fn need(&self, key: &[u8]) -> Result<&'a [u8], ParseError> {
        self.get(key).ok_or(ParseError::MissingKey)
    }
}

/// The raw elements of an array.
pub(crate) struct Elements<'a> {
    reader: Reader<'a>,
    open: bool,
}

impl<'a> Elements<'a> {
    /// Reads `text`, which must be one array and nothing else but white space.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        let mut reader = Reader::new(text);
        reader.skip_space();
        reader.expect(b'[', ParseError::WrongType)?;
        let open = !reader.closes(b']');
        if !open {
            reader.finish()?;
        }
        Ok(Self { reader, open })
    }

    /// The next element, `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&'a [u8]>, ParseError> {
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
    pub(crate) fn need(&mut self) -> Result<&'a [u8], ParseError> {
        self.next()?.ok_or(ParseError::WrongType)
    }

    /// No element may follow.
    pub(crate) fn end(mut self) -> Result<(), ParseError> {
        if self.next()?.is_some() { Err(ParseError::WrongType) } else { Ok(()) }
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
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        let mut reader = Reader::new(text);
        reader.skip_space();
        reader.expect(b'{', ParseError::WrongType)?;
        let open = !reader.closes(b'}');
        if !open {
            reader.finish()?;
        }
        Ok(Self { reader, open })
    }

    /// The next key and its raw value, `None` after the last. Whether a key occurs twice is for the caller to see.
    pub(crate) fn next(&mut self) -> Result<Option<Member<'a>>, ParseError> {
        if !self.open {
            return Ok(None);
        }
        self.reader.skip_space();
        let key = self.reader.string()?;
        self.reader.skip_space();
        self.reader.expect(b':', ParseError::Syntax)?;
        let value = self.reader.value()?;
        self.open = self.reader.continues(b'}')?;
        if !self.open {
            self.reader.finish()?;
        }
        Ok(Some((key, value)))
    }
}

/// The text of a string value without escapes.
pub(crate) fn text(raw: &[u8]) -> Result<&[u8], ParseError> {
    match raw {
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => Ok(text),
        _ => Err(ParseError::WrongType),
    }
}

/// A number in a string that has no sign.
pub(crate) fn quoted_unsigned(raw: &[u8]) -> Result<Decimal, ParseError> {
    Ok(Decimal::parse_unsigned(text(raw)?)?)
}

/// A bare number that has no sign.
pub(crate) fn bare_unsigned(raw: &[u8]) -> Result<Decimal, ParseError> {
    match raw.first() {
        Some(b'0'..=b'9' | b'-') => Ok(Decimal::parse_unsigned(raw)?),
        _ => Err(ParseError::WrongType),
    }
}

/// A bare whole number.
pub(crate) fn bare_u64(raw: &[u8]) -> Result<u64, ParseError> {
    match raw.first() {
        Some(b'0'..=b'9' | b'-') => digits_u64(raw),
        _ => Err(ParseError::WrongType),
    }
}

/// A bare number with or without a sign.
pub(crate) fn bare_signed(raw: &[u8]) -> Result<Decimal, ParseError> {
    match raw.first() {
        Some(b'0'..=b'9' | b'-') => Ok(Decimal::parse(raw)?),
        _ => Err(ParseError::WrongType),
    }
}

/// A bare number that may be absent or null.
pub(crate) fn optional_bare(raw: Option<&[u8]>) -> Result<Option<Decimal>, ParseError> {
    raw.filter(|raw| *raw != b"null").map(bare_unsigned).transpose()
}

/// As `optional_bare`, with or without a sign.
pub(crate) fn optional_bare_signed(raw: Option<&[u8]>) -> Result<Option<Decimal>, ParseError> {
    raw.filter(|raw| *raw != b"null").map(bare_signed).transpose()
}

/// A number in a string, which may be absent or empty.
pub(crate) fn optional_quoted(raw: Option<&[u8]>) -> Result<Option<Decimal>, ParseError> {
    let text = raw.map(text).transpose()?.filter(|text| !text.is_empty());
    Ok(text.map(Decimal::parse_unsigned).transpose()?)
}

/// As `optional_quoted`, with or without a sign.
pub(crate) fn optional_quoted_signed(raw: Option<&[u8]>) -> Result<Option<Decimal>, ParseError> {
    let text = raw.map(text).transpose()?.filter(|text| !text.is_empty());
    Ok(text.map(Decimal::parse).transpose()?)
}

/// A whole number in a string.
pub(crate) fn quoted_u64(raw: &[u8]) -> Result<u64, ParseError> {
    digits_u64(text(raw)?)
}

/// An identifier in a string as a number: itself, or the halves of a UUID combined.
pub(crate) fn quoted_id(raw: &[u8]) -> Result<u64, ParseError> {
    let id = text(raw)?;
    if id.len() == 36 { OrderId::new(id).map(|id| id.folded()) } else { digits_u64(id) }
}

/// Reads each object of an array.
pub(crate) fn each(raw: &[u8], mut read: impl FnMut(&Object<'_>) -> Result<(), ParseError>) -> Result<(), ParseError> {
    let mut elements = Elements::parse(raw)?;
    while let Some(element) = elements.next()? {
        read(&Object::parse(element)?)?;
    }
    Ok(())
}

/// Both sides of a book whose levels are arrays of `len` strings, price and quantity first.
pub(crate) fn quoted_sides(
    bids: &[u8],
    asks: &[u8],
    len: usize,
    buffer: &mut EventBuffer,
) -> Result<Levels, ParseError> {
    let mut list = Levels::default();
    let start = buffer.mark();
    quoted_side(bids, len, &mut list, buffer)?;
    let middle = buffer.mark();
    list.set_bids(start, middle);
    quoted_side(asks, len, &mut list, buffer)?;
    list.set_asks(middle, buffer.mark());
    Ok(list)
}

fn quoted_side(raw: &[u8], len: usize, list: &mut Levels, buffer: &mut EventBuffer) -> Result<(), ParseError> {
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
pub(crate) fn bare_i64(raw: &[u8]) -> Result<i64, ParseError> {
    let (digits, is_negative) = match raw {
        [b'-', digits @ ..] => (digits, true),
        _ => (raw, false),
    };
    let number = i64::try_from(bare_u64(digits)?).map_err(|_| ParseError::NumberRange)?;
    Ok(if is_negative { -number } else { number })
}

/// The whole number that is written in plain digits.
pub(crate) fn digits_u64(digits: &[u8]) -> Result<u64, ParseError> {
    if digits.is_empty() {
        return Err(ParseError::Number);
    }
    let mut number = 0_u64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return Err(ParseError::Number);
        }
        number = number
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(byte - b'0')))
            .ok_or(ParseError::NumberRange)?;
    }
    Ok(number)
}

/// `true` or `false`.
pub(crate) fn boolean(raw: &[u8]) -> Result<bool, ParseError> {
    match raw {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(ParseError::WrongType),
    }
}

/// The whole text must be UTF-8.
pub(crate) fn check_utf8(text: &[u8]) -> Result<(), ParseError> {
    str::from_utf8(text).map(|_| ()).map_err(|_| ParseError::NotUtf8)
}

/// The length of the value with which `text` begins, checked to be JSON.
pub(crate) fn value_len(text: &[u8]) -> Option<usize> {
    Reader::new(text).value().ok().map(<[u8]>::len)
}
