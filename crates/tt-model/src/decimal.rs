//! Exact decimal numbers: an integer and the place of its point.

use core::error::Error;
use core::fmt;

/// The number `mantissa / 10^decimals`, exactly. Trailing zeros are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits without their point.
    pub mantissa: i64,
    /// The number of digits after the point.
    pub decimals: u8,
}

/// The error of parsing or rescaling a [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// The text is not a number of the required form.
    Syntax,
    /// The number is exact only beyond `i64` or 18 decimals.
    Range,
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "malformed number",
            Self::Range => "number beyond 64 bits or 18 decimals",
        })
    }
}

impl Error for DecimalError {}

impl Decimal {
    /// The most decimals of a parsed number.
    pub const DECIMALS_MAX: u8 = 18;

    /// The powers of ten that an `i64` holds.
    pub const POWERS_OF_TEN: [i64; 19] = {
        let mut powers = [1_i64; 19];
        let mut i = 1;
        while i < 19 {
            powers[i] = powers[i - 1] * 10;
            i += 1;
        }
        powers
    };

    /// Returns `mantissa / 10^decimals`.
    #[must_use]
    pub const fn new(mantissa: i64, decimals: u8) -> Self {
        Self { mantissa, decimals }
    }

    /// Returns the same number with as few decimals as possible.
    #[must_use]
    pub const fn lowest(mut self) -> Self {
        while self.decimals > 0 && self.mantissa % 10 == 0 {
            self = Self::new(self.mantissa / 10, self.decimals - 1);
        }
        self
    }

    /// Returns `text` times `10^decimals`, exactly; `None` if the result is not an `i64` or `text` is not a plain decimal
    /// number (`-?digits[.digits]`).
    #[must_use]
    pub fn steps(text: &str, decimals: u8) -> Option<i64> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let (digits, sign) = whole.strip_prefix('-').map_or((whole, 1), |digits| (digits, -1));
        let zeros = usize::from(decimals).checked_sub(fraction.len())?;
        if digits.is_empty() || text.ends_with('.') {
            return None;
        }
        let padding = core::iter::repeat_n(b'0', zeros);
        digits.bytes().chain(fraction.bytes()).chain(padding).try_fold(0_i64, |value, byte| {
            let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
            value.checked_mul(10)?.checked_add(sign * digit)
        })
    }

    /// Returns ten to the power of `exponent`, if it fits.
    #[inline]
    #[must_use]
    pub fn power_of_ten(exponent: u8) -> Option<i64> {
        Self::POWERS_OF_TEN.get(usize::from(exponent)).copied()
    }

    /// Parses a JSON number's text: `-?digits[.digits][e[+-]digits]` without superfluous leading zeros.
    ///
    /// # Errors
    /// `Syntax` if the text has another form, `Range` if it needs more than an `i64` or 18 decimals.
    #[inline]
    pub fn parse(text: &[u8]) -> Result<Self, DecimalError> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let number = Self::parse_unsigned(text)?;
        Ok(if negative { Self { mantissa: -number.mantissa, ..number } } else { number })
    }

    /// Parses a JSON number's text without a sign: prices and quantities of a book.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and `Syntax` for any sign.
    #[inline]
    pub fn parse_unsigned(text: &[u8]) -> Result<Self, DecimalError> {
        let (integer, rest) = split_digits(text);
        if integer.is_empty() || (integer.len() > 1 && integer[0] == b'0') {
            return Err(DecimalError::Syntax);
        }
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => {
                let (fraction, rest) = split_digits(rest);
                if fraction.is_empty() {
                    return Err(DecimalError::Syntax);
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
                .ok_or(DecimalError::Range)?;
        }
        let fraction_len = i32::try_from(fraction.len()).map_err(|_| DecimalError::Range)?;
        Self::normalised(mantissa, fraction_len.checked_sub(exponent).ok_or(DecimalError::Range)?)
    }

    /// Returns `mantissa / 10^decimals` for any `decimals`, if it fits.
    #[inline]
    fn normalised(mut mantissa: i64, mut decimals: i32) -> Result<Self, DecimalError> {
        if mantissa == 0 {
            return Ok(Self { mantissa, decimals: decimals.clamp(0, i32::from(Self::DECIMALS_MAX)) as u8 });
        }
        while decimals > i32::from(Self::DECIMALS_MAX) && mantissa % 10 == 0 {
            mantissa /= 10;
            decimals -= 1;
        }
        while decimals < 0 {
            mantissa = mantissa.checked_mul(10).ok_or(DecimalError::Range)?;
            decimals += 1;
        }
        match u8::try_from(decimals) {
            Ok(decimals) if decimals <= Self::DECIMALS_MAX => Ok(Self { mantissa, decimals }),
            _ => Err(DecimalError::Range),
        }
    }

    /// Returns the sum, with the decimals of the operand that has more.
    ///
    /// # Errors
    /// `Range` if it needs more than an `i64`.
    #[inline]
    pub fn sum(self, other: Self) -> Result<Self, DecimalError> {
        let decimals = self.decimals.max(other.decimals);
        let (one, two) = (self.mantissa_at(decimals)?, other.mantissa_at(decimals)?);
        Ok(Self { mantissa: one.checked_add(two).ok_or(DecimalError::Range)?, decimals })
    }

    /// Returns the mantissa of the same number with `decimals` decimals.
    ///
    /// # Errors
    /// `Range` if that needs more than an `i64`, or would cut digits off.
    #[inline]
    pub fn mantissa_at(self, decimals: u8) -> Result<i64, DecimalError> {
        if self.decimals == decimals {
            return Ok(self.mantissa);
        }
        let power = |n: u8| Self::power_of_ten(n).ok_or(DecimalError::Range);
        if self.decimals < decimals {
            return self.mantissa.checked_mul(power(decimals - self.decimals)?).ok_or(DecimalError::Range);
        }
        let power = power(self.decimals - decimals)?;
        if self.mantissa % power == 0 { Ok(self.mantissa / power) } else { Err(DecimalError::Range) }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let digits = self.mantissa.unsigned_abs();
        if self.decimals == 0 {
            return write!(f, "{sign}{digits}");
        }
        // No i64 has more than 19 digits: with more decimals the whole part is 0.
        let scale = 10_u64.checked_pow(self.decimals.into());
        let (whole, fraction) = scale.map_or((0, digits), |scale| (digits / scale, digits % scale));
        write!(f, "{sign}{whole}.{fraction:0width$}", width = self.decimals.into())
    }
}

#[inline]
fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[inline]
fn parse_exponent(text: &[u8]) -> Result<i32, DecimalError> {
    let rest = match text {
        [] => return Ok(0),
        [b'e' | b'E', rest @ ..] => rest,
        _ => return Err(DecimalError::Syntax),
    };
    let (negative, digits) = match rest {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(DecimalError::Syntax);
    }
    let mut exponent = 0_i32;
    for digit in digits {
        exponent = exponent.saturating_mul(10).saturating_add(i32::from(digit - b'0')).min(100_000);
    }
    Ok(if negative { -exponent } else { exponent })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::{Decimal, DecimalError};

    #[test]
    fn text_and_steps_agree_digit_by_digit() {
        let cases = [
            (6_400_012, 2, "64000.12"),
            (5, 5, "0.00005"),
            (-120, 3, "-0.120"),
            (7, 0, "7"),
            (0, 2, "0.00"),
            (i64::MIN, 18, "-9.223372036854775808"),
            (i64::MAX, 0, "9223372036854775807"),
            (-3, 21, "-0.000000000000000000003"),
        ];
        for (mantissa, decimals, text) in cases {
            assert_eq!(Decimal::new(mantissa, decimals).to_string(), text);
            assert_eq!(Decimal::steps(text, decimals), Some(mantissa));
        }
        assert_eq!(Decimal::steps("-0.1", 2), Some(-10));
    }

    #[test]
    fn rejects_text_that_is_not_a_plain_decimal() {
        for text in ["", "-", ".5", "5.", "1.234", "1e3", "+1", "--1", "1_0", "1.-2", "92233720368547758.08"] {
            assert_eq!(Decimal::steps(text, 2), None, "{text}");
        }
    }

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
            assert_eq!(Decimal::parse_unsigned(text.as_bytes()), Err(DecimalError::Syntax), "{text}");
        }
        for text in ["9223372036854775808", "1e400", "1e-400", "0.1234567890123456789", "1e19"] {
            assert_eq!(Decimal::parse_unsigned(text.as_bytes()), Err(DecimalError::Range), "{text}");
        }
        assert_eq!(Decimal::parse(b"-20165.4676_e-+4294967292"), Err(DecimalError::Syntax));
        assert_eq!(Decimal::parse(b"-0.00010000"), Ok(Decimal::new(-10_000, 8)));
        assert_eq!(Decimal::parse(b"--1"), Err(DecimalError::Syntax));
    }
}
