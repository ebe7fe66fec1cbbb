//! Decimal numbers as integers, and their conversion to whole steps of an instrument.

use crate::Fault;

/// The most decimals that a [`Decimal`] holds.
pub const DECIMALS_MAX: u8 = 18;

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
    /// How many of the digits follow the point, at most [`DECIMALS_MAX`].
    pub decimals: u8,
}

impl Decimal {
    /// The number `mantissa / 10^decimals`.
    #[must_use]
    pub const fn new(mantissa: i64, decimals: u8) -> Self {
        Self { mantissa, decimals }
    }

    /// Reads a JSON number's text: `-?digits[.digits][e[+-]digits]` without superfluous leading zeros.
    ///
    /// # Errors
    /// `Number` if the text has another form, `NumberRange` if it needs more than an `i64` or 18 decimals.
    pub fn parse(text: &[u8]) -> Result<Self, Fault> {
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
    pub fn parse_unsigned(text: &[u8]) -> Result<Self, Fault> {
        let (integer, rest) = split_digits(text);
        if integer.is_empty() || (integer.len() > 1 && integer[0] == b'0') {
            return Err(Fault::Number);
        }
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => {
                let (fraction, rest) = split_digits(rest);
                if fraction.is_empty() {
                    return Err(Fault::Number);
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
                .ok_or(Fault::NumberRange)?;
        }
        let fraction_len = i32::try_from(fraction.len()).map_err(|_| Fault::NumberRange)?;
        Self::normalised(mantissa, fraction_len.checked_sub(exponent).ok_or(Fault::NumberRange)?)
    }

    /// `mantissa / 10^decimals` for any `decimals`, where it fits.
    fn normalised(mut mantissa: i64, mut decimals: i32) -> Result<Self, Fault> {
        if mantissa == 0 {
            return Ok(Self { mantissa, decimals: decimals.clamp(0, i32::from(DECIMALS_MAX)) as u8 });
        }
        while decimals > i32::from(DECIMALS_MAX) && mantissa % 10 == 0 {
            mantissa /= 10;
            decimals -= 1;
        }
        while decimals < 0 {
            mantissa = mantissa.checked_mul(10).ok_or(Fault::NumberRange)?;
            decimals += 1;
        }
        match u8::try_from(decimals) {
            Ok(decimals) if decimals <= DECIMALS_MAX => Ok(Self { mantissa, decimals }),
            _ => Err(Fault::NumberRange),
        }
    }

    /// The sum, with the decimals of whichever has more.
    ///
    /// # Errors
    /// `NumberRange` if it needs more than an `i64`.
    pub fn sum(self, other: Self) -> Result<Self, Fault> {
        let decimals = self.decimals.max(other.decimals);
        let (one, two) = (self.mantissa_at(decimals)?, other.mantissa_at(decimals)?);
        Ok(Self { mantissa: one.checked_add(two).ok_or(Fault::NumberRange)?, decimals })
    }

    /// The mantissa of the same number with `decimals` decimals.
    ///
    /// # Errors
    /// `NumberRange` if that needs more than an `i64`, or would cut digits off.
    pub fn mantissa_at(self, decimals: u8) -> Result<i64, Fault> {
        if self.decimals == decimals {
            return Ok(self.mantissa);
        }
        let power = |n: u8| POW10.get(usize::from(n)).copied().ok_or(Fault::NumberRange);
        if self.decimals < decimals {
            return self.mantissa.checked_mul(power(decimals - self.decimals)?).ok_or(Fault::NumberRange);
        }
        let power = power(self.decimals - decimals)?;
        if self.mantissa % power == 0 { Ok(self.mantissa / power) } else { Err(Fault::NumberRange) }
    }
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn parse_exponent(text: &[u8]) -> Result<i32, Fault> {
    let rest = match text {
        [] => return Ok(0),
        [b'e' | b'E', rest @ ..] => rest,
        _ => return Err(Fault::Number),
    };
    let (negative, digits) = match rest {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        _ => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Number);
    }
    let mut exponent = 0_i32;
    for digit in digits {
        exponent = exponent.saturating_mul(10).saturating_add(i32::from(digit - b'0')).min(100_000);
    }
    Ok(if negative { -exponent } else { exponent })
}

/// Converts decimal numbers to whole steps of a given size, exactly.
///
/// The divisor of the number of decimals that was seen last is kept as its inverse modulo 2^64, so that the usual
/// conversion is a multiplication and a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    step: Decimal,
    usual: Divider,
}

/// Numbers of so many decimals to whole steps, without a division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Divider {
    inverse: u64,
    steps_max: u64,
    trailing_zeros: u8,
    decimals: u8,
}

impl Divider {
    /// Whether it is for numbers of `decimals` decimals.
    #[inline]
    pub(crate) const fn takes(&self, decimals: u8) -> bool {
        self.decimals == decimals
    }

    /// The whole steps in a number of its decimals; as [`Scale::steps`].
    #[inline]
    pub(crate) const fn steps(&self, mantissa: i64) -> Option<i64> {
        // The exact quotient by an odd divisor is the product with its inverse; every other number maps above the
        // greatest possible quotient. So does a negative one, whose bits are a number beyond all others.
        let steps = (mantissa as u64).wrapping_mul(self.inverse).rotate_right(self.trailing_zeros as u32);
        if steps <= self.steps_max { Some(steps as i64) } else { None }
    }
}

impl Scale {
    /// Steps of size `step`.
    ///
    /// # Errors
    /// `Number` if `step` is not positive or has more than 18 decimals.
    pub fn new(step: Decimal) -> Result<Self, Fault> {
        if step.mantissa <= 0 || step.decimals > DECIMALS_MAX {
            return Err(Fault::Number);
        }
        let mut scale = Self { step, usual: Divider::default() };
        scale.remember(step.decimals);
        Ok(scale)
    }

    /// The size of a step.
    #[must_use]
    pub const fn step(&self) -> Decimal {
        self.step
    }

    /// The whole steps in `mantissa / 10^decimals`, `None` where it is negative, beyond `i64`, or no multiple.
    #[inline]
    #[must_use]
    pub fn steps(&self, mantissa: i64, decimals: u8) -> Option<i64> {
        if self.usual.takes(decimals) { self.usual.steps(mantissa) } else { self.steps_of_any(mantissa, decimals) }
    }

    #[cold]
    fn steps_of_any(&self, mantissa: i64, decimals: u8) -> Option<i64> {
        let (mut number, mut step) = (i128::from(mantissa), i128::from(self.step.mantissa));
        let power = |n: u8| POW10.get(usize::from(n)).map(|power| i128::from(*power));
        if decimals < self.step.decimals {
            number *= power(self.step.decimals - decimals)?;
        } else {
            step *= power(decimals - self.step.decimals)?;
        }
        // Whole steps times the step stay within an `i64` too, so that the digits can be had back.
        if number < 0 || number % step != 0 || (decimals < self.step.decimals && number > i128::from(i64::MAX)) {
            return None;
        }
        i64::try_from(number / step).ok()
    }

    /// Makes numbers of `decimals` decimals the cheap case, where that is possible.
    #[cold]
    pub fn remember(&mut self, decimals: u8) {
        let Some(power) = decimals.checked_sub(self.step.decimals).and_then(|n| POW10.get(usize::from(n))) else {
            return;
        };
        let Some(divisor) = self.step.mantissa.checked_mul(*power) else { return };
        let divisor = divisor.unsigned_abs();
        let trailing_zeros = divisor.trailing_zeros();
        self.usual = Divider {
            inverse: inverse_of_odd(divisor >> trailing_zeros),
            steps_max: i64::MAX.unsigned_abs() / divisor,
            trailing_zeros: trailing_zeros as u8,
            decimals,
        };
    }

    /// The cheap case by itself.
    pub(crate) const fn usual(&self) -> Divider {
        self.usual
    }

    /// Whether numbers of `decimals` decimals are the cheap case.
    #[inline]
    #[must_use]
    pub const fn remembers(&self, decimals: u8) -> bool {
        self.usual.takes(decimals)
    }
}

/// The inverse of `odd` modulo 2^64: Newton's iteration doubles the correct bits, of which `odd` itself has three.
const fn inverse_of_odd(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut i = 0;
    while i < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            assert_eq!(Decimal::parse_unsigned(text.as_bytes()), Err(Fault::Number), "{text}");
        }
        for text in ["9223372036854775808", "1e400", "1e-400", "0.1234567890123456789", "1e19"] {
            assert_eq!(Decimal::parse_unsigned(text.as_bytes()), Err(Fault::NumberRange), "{text}");
        }
        assert_eq!(Decimal::parse(b"-20165.4676_e-+4294967292"), Err(Fault::Number));
        assert_eq!(Decimal::parse(b"-0.00010000"), Ok(Decimal::new(-10_000, 8)));
        assert_eq!(Decimal::parse(b"--1"), Err(Fault::Number));
    }

    proptest! {
        #[test]
        fn steps_are_the_exact_quotient(mantissa in any::<i64>(), step in 1_i64..=1_000_000, step_decimals in 0_u8..=9,
                                        decimals in 0_u8..=12, multiple in any::<bool>()) {
            let mut scale = Scale::new(Decimal::new(step, step_decimals)).unwrap();
            let mantissa = if multiple { (mantissa % 1_000_000) * step } else { mantissa };
            let slow = scale.steps_of_any(mantissa, decimals);
            scale.remember(decimals);
            prop_assert_eq!(scale.steps(mantissa, decimals), slow);
            if let Some(steps) = slow {
                let left = i128::from(steps) * i128::from(step) * 10_i128.pow(u32::from(decimals));
                let right = i128::from(mantissa) * 10_i128.pow(u32::from(step_decimals));
                prop_assert_eq!(left, right);
            }
        }
    }
}
