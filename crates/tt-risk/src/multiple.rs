//! Divisibility by a step without a division.

/// A step, prepared: `x` is a multiple of `step` exactly if `x` times the inverse of the step's odd part (modulo 2^64),
/// rotated right by the step's trailing zeros, does not exceed `u64::MAX / step` (Granlund and Montgomery 1994).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiple {
    inverse: u64,
    quotient_max: u64,
}

impl Multiple {
    /// A step of which only zero is a multiple.
    pub(crate) const NEVER: Self = Self { inverse: 1, quotient_max: 0 };

    /// Prepares `step`, at least 1; also returns its trailing zeros, an argument of [`divides`](Self::divides).
    pub(crate) const fn of(step: u64) -> (Self, u8) {
        let zeros = step.trailing_zeros();
        let odd = step >> zeros;
        // Newton: an odd number is its own inverse modulo 8, and each step doubles the number of right bits.
        let mut inverse = odd;
        let mut right_bits = 3;
        while right_bits < u64::BITS {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
            right_bits *= 2;
        }
        (Self { inverse, quotient_max: u64::MAX / step }, zeros as u8)
    }

    #[inline(always)]
    pub(crate) const fn divides(self, zeros: u8, x: u64) -> bool {
        x.wrapping_mul(self.inverse).rotate_right(zeros as u32) <= self.quotient_max
    }

    /// The same for numbers below 2^32.
    pub(crate) const fn narrow(self, zeros: u8) -> NarrowMultiple {
        // The quotient of u64::MAX, rounded down twice, is that of u32::MAX.
        let (inverse, quotient_max) = (self.inverse & NarrowMultiple::MASK, self.quotient_max >> u32::BITS);
        // A step of 2^32 or more has no multiple but zero, whatever is rotated.
        NarrowMultiple { inverse, quotient_max, zeros: zeros as u32 % u32::BITS }
    }
}

/// A [`Multiple`] for numbers below 2^32, in operations that four lanes of 64 bits have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NarrowMultiple {
    inverse: u64,
    quotient_max: u64,
    zeros: u32,
}

impl NarrowMultiple {
    const MASK: u64 = u32::MAX as u64;

    /// Whether `x`, below 2^32, is a multiple.
    #[inline(always)]
    pub(crate) const fn divides(self, x: u64) -> bool {
        let product = ((x & Self::MASK) * self.inverse) & Self::MASK;
        let rotated = ((product | product << u32::BITS) >> self.zeros) & Self::MASK;
        rotated.cast_signed() <= self.quotient_max.cast_signed()
    }
}

crate::fields::visit!(Multiple: inverse, quotient_max);

#[cfg(test)]
mod tests {
    use super::Multiple;

    #[test]
    fn agrees_with_the_remainder() {
        let edges = [0, 1, 2, 3, 1 << 31, (1 << 32) - 1, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX];
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ (state >> 29)
        };
        for round in 0..20_000_u32 {
            let step = (random() >> (round % 64)).max(1);
            let (multiple, zeros) = Multiple::of(step);
            let quotient = random() >> (round % 61);
            let close = step.wrapping_mul(quotient % (u64::MAX / step).saturating_add(1).max(1));
            let low = close & u64::from(u32::MAX);
            assert!(step > low || multiple.narrow(zeros).divides(low - low % step), "{low} by {step}");
            for x in edges.into_iter().chain([random(), close, close.wrapping_add(1), close.wrapping_sub(1)]) {
                assert_eq!(multiple.divides(zeros, x), x % step == 0, "{x} by {step}");
                let narrow = x & u64::from(u32::MAX);
                assert_eq!(multiple.narrow(zeros).divides(narrow), narrow % step == 0, "{narrow} by {step}");
            }
        }
    }
}
