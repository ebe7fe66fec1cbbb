//! Exact decimal text.

use tt_model::Decimal;

/// Returns `steps` times `size` as exact decimal text, with as many decimals as `size` needs.
#[must_use]
pub fn steps_text(steps: i64, size: Decimal) -> String {
    let (mut mantissa, mut decimals) = (size.mantissa, usize::from(size.decimals));
    while decimals > 0 && mantissa % 10 == 0 && mantissa != 0 {
        mantissa /= 10;
        decimals -= 1;
    }
    fixed_text(i128::from(steps) * i128::from(mantissa), decimals)
}

/// Returns `whole` divided by `10^decimals` as exact decimal text with that many decimals.
#[must_use]
pub fn fixed_text(whole: i128, decimals: usize) -> String {
    let sign = if whole < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", whole.unsigned_abs(), width = decimals + 1);
    let (integer, fraction) = digits.split_at(digits.len() - decimals);
    if decimals == 0 { format!("{sign}{integer}") } else { format!("{sign}{integer}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_printed_exactly() {
        for (steps, size, text) in [
            (6_183_763, Decimal::new(1_000_000, 8), "61837.63"),
            (5, Decimal::new(1, 8), "0.00000005"),
            (-7, Decimal::new(5, 1), "-3.5"),
            (12, Decimal::new(100, 2), "12"),
            (0, Decimal::new(1, 2), "0.00"),
        ] {
            assert_eq!(steps_text(steps, size), text);
        }
    }
}
