//! Members of an object by their names: the forms in which venues write numbers, times and nothing at all.

use crate::error::ParseError;
use crate::json::{self, Elements, Object};
use crate::symbol::Symbol;
use crate::time;
use tt_model::{Decimal, Nanos, OrderSide};

/// An object whose members are found by their keys.
pub(crate) trait Keyed {
    /// The raw value of `key`.
    fn get(&self, key: &[u8]) -> Option<&[u8]>;

    /// The raw value of `key`, which the event needs.
    fn need(&self, key: &[u8]) -> Result<&[u8], ParseError> {
        self.get(key).ok_or(ParseError::MissingKey)
    }
}

impl Keyed for Object<'_> {
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        Object::get(self, key)
    }
}

/// What a member says, `None` where it is absent, null or an empty text: venues write nothing in all three ways.
pub(crate) fn optional<'a>(object: &'a impl Keyed, key: &[u8]) -> Option<&'a [u8]> {
    match object.get(key)? {
        b"null" | b"\"\"" => None,
        raw => Some(raw),
    }
}

/// A text.
pub(crate) fn text<'a>(object: &'a impl Keyed, key: &[u8]) -> Result<&'a [u8], ParseError> {
    json::text(object.need(key)?)
}

/// A text that names an instrument or an asset.
pub(crate) fn symbol(object: &impl Keyed, key: &[u8]) -> Result<Symbol, ParseError> {
    Symbol::new(text(object, key)?)
}

/// As [`symbol`], where it may be untold.
pub(crate) fn optional_symbol(object: &impl Keyed, key: &[u8]) -> Result<Option<Symbol>, ParseError> {
    optional(object, key).map(|raw| Symbol::new(json::text(raw)?)).transpose()
}

/// A number with or without a sign, in quotes or not.
pub(crate) fn number_of(raw: &[u8]) -> Result<Decimal, ParseError> {
    match raw.first() {
        Some(b'"') => Ok(Decimal::parse(json::text(raw)?)?),
        Some(b'0'..=b'9' | b'-') => Ok(Decimal::parse(raw)?),
        _ => Err(ParseError::WrongType),
    }
}

/// A number with or without a sign.
pub(crate) fn number(object: &impl Keyed, key: &[u8]) -> Result<Decimal, ParseError> {
    number_of(object.need(key)?)
}

/// As [`number`], where it may be untold.
pub(crate) fn optional_number(object: &impl Keyed, key: &[u8]) -> Result<Option<Decimal>, ParseError> {
    optional(object, key).map(number_of).transpose()
}

/// A price or quantity, in quotes or not, without a sign.
pub(crate) fn amount_of(raw: &[u8]) -> Result<Decimal, ParseError> {
    match raw.first() {
        Some(b'"') => json::quoted_unsigned(raw),
        _ => json::bare_unsigned(raw),
    }
}

/// As [`amount_of`], of a member.
pub(crate) fn amount(object: &impl Keyed, key: &[u8]) -> Result<Decimal, ParseError> {
    amount_of(object.need(key)?)
}

/// As [`amount`], where it may be untold.
pub(crate) fn optional_amount(object: &impl Keyed, key: &[u8]) -> Result<Option<Decimal>, ParseError> {
    optional(object, key).map(amount_of).transpose()
}

/// The first amount less the second one, which is no greater.
pub(crate) fn difference(one: Decimal, two: Decimal) -> Result<Decimal, ParseError> {
    let rest = one.sum(Decimal { mantissa: -two.mantissa, ..two })?;
    if rest.mantissa < 0 { Err(ParseError::Number) } else { Ok(rest) }
}

/// A whole number, in quotes or not.
pub(crate) fn whole(object: &impl Keyed, key: &[u8]) -> Result<u64, ParseError> {
    whole_of(object.need(key)?)
}

/// As [`whole`], of a raw value.
pub(crate) fn whole_of(raw: &[u8]) -> Result<u64, ParseError> {
    match raw {
        [b'"', ..] => match json::text(raw)? {
            [] => Err(ParseError::Number),
            digits => json::bare_u64(digits).map_err(|_| ParseError::Number),
        },
        _ => json::bare_u64(raw),
    }
}

/// Milliseconds of the Unix epoch, in quotes or not.
pub(crate) fn unix_ms(object: &impl Keyed, key: &[u8]) -> Result<Nanos, ParseError> {
    time::from_unix_ms(whole(object, key)?)
}

/// As [`unix_ms`], zero where it is untold.
pub(crate) fn optional_unix_ms(object: &impl Keyed, key: &[u8]) -> Result<Nanos, ParseError> {
    optional(object, key).map_or(Ok(Nanos(0)), |raw| time::from_unix_ms(whole_of(raw)?))
}

/// A time of RFC 3339.
pub(crate) fn rfc3339(object: &impl Keyed, key: &[u8]) -> Result<Nanos, ParseError> {
    time::from_rfc3339(text(object, key)?)
}

/// As [`rfc3339`], zero where it is untold.
pub(crate) fn optional_rfc3339(object: &impl Keyed, key: &[u8]) -> Result<Nanos, ParseError> {
    optional(object, key).map_or(Ok(Nanos(0)), |raw| time::from_rfc3339(json::text(raw)?))
}

/// Buy or sell in the venue's two words.
pub(crate) fn order_side(object: &impl Keyed, key: &[u8], words: [&[u8]; 2]) -> Result<OrderSide, ParseError> {
    let word = text(object, key)?;
    if word == words[0] {
        Ok(OrderSide::Buy)
    } else if word == words[1] {
        Ok(OrderSide::Sell)
    } else {
        Err(ParseError::WrongType)
    }
}

/// As [`order_side`], where it may be untold.
pub(crate) fn optional_order_side(
    object: &impl Keyed,
    key: &[u8],
    words: [&[u8]; 2],
) -> Result<Option<OrderSide>, ParseError> {
    optional(object, key).map(|_| order_side(object, key, words)).transpose()
}

/// Calls `each` with every object of a list.
pub(crate) fn each(raw: &[u8], mut each: impl FnMut(&Object<'_>) -> Result<(), ParseError>) -> Result<(), ParseError> {
    let mut elements = Elements::parse(raw)?;
    while let Some(element) = elements.next()? {
        each(&Object::parse(element)?)?;
    }
    Ok(())
}

/// As [`each`], of a list that may be untold.
pub(crate) fn optional_each(
    object: &impl Keyed,
    key: &[u8],
    of_each: impl FnMut(&Object<'_>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    optional(object, key).map_or(Ok(()), |raw| each(raw, of_each))
}
