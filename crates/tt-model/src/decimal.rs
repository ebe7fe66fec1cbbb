//! Exact decimal numbers: an integer and the place of its point.

use core::fmt;

/// The number `mantissa / 10^decimals`, exactly. Trailing zeros are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits without their point.
    pub mantissa: i64,
    /// The number of digits after the point.
    pub decimals: u8,
}

impl Decimal {
    /// Returns `mantissa / 10^decimals`.
    #[must_use]
    pub const fn new(mantissa: i64, decimals: u8) -> Self {
        Self { mantissa, decimals }
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

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::Decimal;

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
}
