//! Decimal numbers as integers.

use crate::error::ParseError;

/// The powers of ten that an `i64` holds.
pub(crate) const POW10: [i64; 19] = {
    let mut powers = [1_i64; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// The number `mantissa / 10^decimals`, exactly; the venue's trailing zeros are kept in `decimals`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits without their point.
    pub mantissa: i64,
    /// How many of the digits follow the point, at most [`DECIMALS_MAX`](Self::DECIMALS_MAX).
    pub decimals: u8,
}

impl Decimal {
    /// The most decimals of a number.
    pub const DECIMALS_MAX: u8 = 18;

    /// Returns ten to the power of `exponent`, if it fits.
    #[inline]
    #[must_use]
    pub fn power_of_ten(exponent: u8) -> Option<i64> {
        POW10.get(usize::from(exponent)).copied()
    }

    /// The number `mantissa / 10^decimals`.
    #[must_use]
    pub const fn new(mantissa: i64, decimals: u8) -> Self {
        Self { mantissa, decimals }
    }

    /// Reads a JSON number's text: `-?digits[.digits][e[+-]digits]` without superfluous leading zeros.
    ///
    /// # Errors
    /// `Number` if the text has another form, `NumberRange` if it needs more than an `i64` or 18 decimals.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let number = Self::parse_unsigned(text)?;
        Ok(if negative { Self { mantissa: -number.mantissa, ..number } } else { number })
    }

    /// Reads a JSON number's text that has no sign: prices and quantities of a book.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and `Number` for any sign.
    pub fn parse_unsigned(text: &[u8]) -> Result<Self, ParseError> {
        let (integer, rest) = split_digits(text);
        if integer.is_empty() || (integer.len() > 1 && integer[0] == b'0') {
            return Err(ParseError::Number);
        }
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => {
                let (fraction, rest) = split_digits(rest);
                if fraction.is_empty() {
                    return Err(ParseError::Number);
                }
                (fraction, rest)
            }
            _ => (&[][..], rest),
        };
        let exponent = parse_exponent(rest)?;
        let mut mantissa = 0_i64;
        for digit in integer.iter().chain(fraction) {
            mantissa = mantissa
                .checked_mul(10)
                .and_then(|m| m.checked_add(i64::from(digit - b'0')))
                .ok_or(ParseError::NumberRange)?;
        }
        let fraction_len = i32::try_from(fraction.len()).map_err(|_| ParseError::NumberRange)?;
        Self::normalised(mantissa, fraction_len.checked_sub(exponent).ok_or(ParseError::NumberRange)?)
    }

    /// `mantissa / 10^decimals` for any `decimals`, where it fits.
    fn normalised(mut mantissa: i64, mut decimals: i32) -> Result<Self, ParseError> {
        if mantissa == 0 {
            return Ok(Self { mantissa, decimals: decimals.clamp(0, i32::from(Self::DECIMALS_MAX)) as u8 });
        }
        while decimals > i32::from(Self::DECIMALS_MAX) && mantissa % 10 == 0 {
            mantissa /= 10;
            decimals -= 1;
        }
        while decimals < 0 {
            mantissa = mantissa.checked_mul(10).ok_or(ParseError::NumberRange)?;
            decimals += 1;
        }
        match u8::try_from(decimals) {
            Ok(decimals) if decimals <= Self::DECIMALS_MAX => Ok(Self { mantissa, decimals }),
            _ => Err(ParseError::NumberRange),
        }
    }

    /// The sum, with the decimals of whichever has more.
    ///
    /// # Errors
    /// `NumberRange` if it needs more than an `i64`.
    pub fn sum(self, other: Self) -> Result<Self, ParseError> {
        let decimals = self.decimals.max(other.decimals);
        let (one, two) = (self.mantissa_at(decimals)?, other.mantissa_at(decimals)?);
        Ok(Self { mantissa: one.checked_add(two).ok_or(ParseError::NumberRange)?, decimals })
    }

    /// The mantissa of the same number with `decimals` decimals.
    ///
    /// # Errors
    /// `NumberRange` if that needs more than an `i64`, or would cut digits off.
    pub fn mantissa_at(self, decimals: u8) -> Result<i64, ParseError> {
        if self.decimals == decimals {
            return Ok(self.mantissa);
        }
        let power = |n: u8| Self::power_of_ten(n).ok_or(ParseError::NumberRange);
        if self.decimals < decimals {
            return self.mantissa.checked_mul(power(decimals - self.decimals)?).ok_or(ParseError::NumberRange);
        }
        let power = power(self.decimals - decimals)?;
        if self.mantissa % power == 0 { Ok(self.mantissa / power) } else { Err(ParseError::NumberRange) }
    }
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn parse_exponent(text: &[u8]) -> Result<i32, ParseError> {
    let rest = match text {
        [] => return Ok(0),
        [b'e' | b'E', rest @ ..] => rest,
        _ => return Err(ParseError::Number),
    };
    let (negative, digits) = match rest {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ParseError::Number);
    }
    let mut exponent = 0_i32;
    for digit in digits {
        exponent = exponent.saturating_mul(10).saturating_add(i32::from(digit - b'0')).min(100_000);
    }
    Ok(if negative { -exponent } else { exponent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exactly_or_rejects() {
        let exact = [
            ("0", 0, 0),
            ("61837.63000000", 6_183_763_000_000, 8),
            ("1e-8", 1, 8),
            ("1E+3", 1000, 0),
            ("1.50e1", 150, 1),
            ("9223372036854775807", i64::MAX, 0),
            ("0e400", 0, 0),
        ];
        for (text, mantissa, decimals) in exact {
            assert_eq!(Decimal::parse_unsigned(text.as_bytes()), Ok(Decimal { mantissa, decimals }), "{text}");
        }
        for text in ["", " 1", "1 ", "-1", "-0", "+1", "01", ".5", "5.", "0x10", "NaN", "Infinity", "1e", "1_0", "١"] {
            assert_eq!(Decimal::parse_unsigned(text.as_bytes()), Err(ParseError::Number), "{text}");
        }
        for text in ["9223372036854775808", "1e400", "1e-400", "0.1234567890123456789", "1e19"] {
            assert_eq!(Decimal::parse_unsigned(text.as_bytes()), Err(ParseError::NumberRange), "{text}");
        }
        assert_eq!(Decimal::parse(b"-20165.4676_e-+4294967292"), Err(ParseError::Number));
        assert_eq!(Decimal::parse(b"-0.00010000"), Ok(Decimal::new(-10_000, 8)));
        assert_eq!(Decimal::parse(b"--1"), Err(ParseError::Number));
    }
}
