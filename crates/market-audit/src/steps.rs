//! Price and quantity steps of an instrument, from the digits in the venue's messages.

use tt_model::Decimal;

/// The digits of one kind of number of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    pub(super) decimals: u8,
    /// The step in units of the last digit: 1, unless the recording contains another one.
    unit: i64,
    /// Whether zeros at the end count: a checksum over digits wants them as they were written.
    pub(super) as_written: bool,
}

impl Digits {
    pub(super) const fn new(as_written: bool) -> Self {
        Self { decimals: 0, unit: 1, as_written }
    }

    /// A step that is known, without zeros at its end.
    pub(super) const fn of(step: Decimal) -> Self {
        let (mut unit, mut decimals) = (step.mantissa, step.decimals);
        while decimals > 0 && unit != 0 && unit % 10 == 0 {
            unit /= 10;
            decimals -= 1;
        }
        Self { decimals, unit, as_written: false }
    }

    /// Takes note of numbers with `decimals` digits behind the point.
    pub(super) fn see(&mut self, mantissas: impl Iterator<Item = i64> + Clone, decimals: u8) {
        if decimals <= self.decimals {
            return;
        }
        if self.as_written {
            self.decimals = decimals;
            return;
        }
        // From the coarsest: most numbers need no more digits than those before.
        while self.decimals < decimals {
            let divisor = Decimal::POWERS_OF_TEN[usize::from(decimals - self.decimals)];
            if mantissas.clone().all(|mantissa| mantissa % divisor == 0) {
                return;
            }
            self.decimals += 1;
        }
    }

    pub(super) fn see_one(&mut self, number: Decimal) {
        self.see(std::iter::once(number.mantissa), number.decimals);
    }

    /// The step.
    pub(super) const fn step(self) -> Decimal {
        Decimal::new(self.unit, self.decimals)
    }

    /// A number of `decimals` in whole steps; the digits have seen it.
    #[inline]
    pub(super) const fn steps(self, mantissa: i64, decimals: u8) -> i64 {
        let digits = if decimals > self.decimals {
            mantissa / Decimal::POWERS_OF_TEN[(decimals - self.decimals) as usize]
        } else {
            mantissa.saturating_mul(Decimal::POWERS_OF_TEN[(self.decimals - decimals) as usize])
        };
        if self.unit == 1 { digits } else { digits / self.unit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_are_no_finer_step() {
        let mut digits = Digits::new(false);
        for (mantissa, decimals, expected) in
            [(6_183_700_000, 5, 0), (6_183_760_000, 5, 1), (6_183_763_000, 5, 2), (61_837, 0, 2), (1, 8, 8)]
        {
            digits.see_one(Decimal::new(mantissa, decimals));
            assert_eq!(digits.decimals, expected);
        }
        assert_eq!((digits.steps(25, 1), digits.steps(2_500, 10)), (250_000_000, 25));
        let mut digits = Digits::new(true);
        digits.see_one(Decimal::new(6_183_700, 2));
        assert_eq!(digits.decimals, 2);
        let half = Digits::of(Decimal::new(50_000, 5));
        assert_eq!((half.step(), half.steps(105, 1)), (Decimal::new(5, 1), 21));
    }
}
