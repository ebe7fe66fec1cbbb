//! Exact decimals for the eye: an integer and where its point stands.

use std::fmt;

/// `mantissa` with `decimals` digits behind the point, every one of them written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: i64,
    decimals: u8,
}

impl Decimal {
    /// `mantissa` / 10^`decimals`.
    #[must_use]
    pub(crate) const fn new(mantissa: i64, decimals: u8) -> Self {
        Self { mantissa, decimals }
    }

    /// `text` times 10^`decimals`, exactly; `None` where that is no `i64`, or `text` is no plain decimal number.
    pub(crate) fn steps(text: &str, decimals: u8) -> Option<i64> {
        let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.strip_prefix('-').unwrap_or(whole);
        let is_plain = !digits.is_empty() && digits.bytes().chain(behind.bytes()).all(|byte| byte.is_ascii_digit());
        let missing = usize::from(decimals).checked_sub(behind.len())?;
        if !is_plain || text.ends_with('.') {
            return None;
        }
        format!("{whole}{behind}{}", "0".repeat(missing)).parse().ok()
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = usize::from(self.decimals);
        let digits = format!("{:0width$}", self.mantissa.unsigned_abs(), width = decimals + 1);
        let (whole, behind) = digits.split_at(digits.len() - decimals);
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let point = if decimals > 0 { "." } else { "" };
        write!(f, "{sign}{whole}{point}{behind}")
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    #[test]
    fn every_digit_stands_where_it_belongs() {
        let cases = [(6_400_012, 2, "64000.12"), (5, 5, "0.00005"), (-120, 3, "-0.120"), (7, 0, "7"), (0, 2, "0.00")];
        for (mantissa, decimals, text) in cases {
            assert_eq!(Decimal::new(mantissa, decimals).to_string(), text);
            assert_eq!(Decimal::steps(text, decimals), Some(mantissa));
        }
        assert_eq!(Decimal::steps("-0.1", 2), Some(-10));
        assert_eq!(Decimal::new(i64::MIN, 18).to_string(), "-9.223372036854775808");
    }

    #[test]
    fn what_is_no_plain_decimal_is_refused() {
        for text in ["", "-", ".5", "5.", "1.234", "1e3", "+1", "--1", "1_0", "1.-2", "92233720368547758.08"] {
            assert_eq!(Decimal::steps(text, 2), None, "{text}");
        }
    }
}
