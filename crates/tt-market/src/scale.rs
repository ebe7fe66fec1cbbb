//! Decimal numbers as whole steps of an instrument.

use crate::drop_reason::DropReason;
use tt_model::Decimal;

/// Converts decimal numbers to whole steps of a given size, exactly.
///
/// The divisor of the number of decimals that was seen last is kept as its inverse modulo 2^64, so that the usual
/// conversion is a multiplication and a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
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
    pub(crate) fn new(step: Decimal) -> Result<Self, DropReason> {
        if step.mantissa <= 0 || step.decimals > Decimal::DECIMALS_MAX {
            return Err(DropReason::Number);
        }
        let mut scale = Self { step, usual: Divider::default() };
        scale.remember(step.decimals);
        Ok(scale)
    }

    /// The size of a step.
    #[must_use]
    pub(crate) const fn step(&self) -> Decimal {
        self.step
    }

    /// The whole steps in `mantissa / 10^decimals`, `None` where it is negative, beyond `i64`, or no multiple.
    #[inline]
    #[must_use]
    pub(crate) fn steps(&self, mantissa: i64, decimals: u8) -> Option<i64> {
        if self.usual.takes(decimals) { self.usual.steps(mantissa) } else { self.steps_of_any(mantissa, decimals) }
    }

    #[cold]
    fn steps_of_any(&self, mantissa: i64, decimals: u8) -> Option<i64> {
        let (mut number, mut step) = (i128::from(mantissa), i128::from(self.step.mantissa));
        let power = |n: u8| Decimal::power_of_ten(n).map(i128::from);
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
    pub(crate) fn remember(&mut self, decimals: u8) {
        let Some(power) = decimals.checked_sub(self.step.decimals).and_then(Decimal::power_of_ten) else {
            return;
        };
        let Some(divisor) = self.step.mantissa.checked_mul(power) else { return };
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
    pub(crate) const fn remembers(&self, decimals: u8) -> bool {
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
