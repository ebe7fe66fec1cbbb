//! Values of orders and positions in money, and its conversion. Rounding is against the order.

use tt_model::OrderSide;

/// The number of margin brackets of a contract.
const BRACKETS: usize = 4;

/// A basis point is one in this many.
const BPS: i128 = 10_000;
const WHOLE: u64 = BPS as u64;

/// A ratio of two positive integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ratio {
    /// Numerator.
    pub num: u64,
    /// Denominator; zero makes every value unknown.
    pub den: u64,
}

impl Ratio {
    /// One to one.
    pub const ONE: Self = Self { num: 1, den: 1 };
}

/// How the value of a contract follows its price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payoff {
    /// Value is price times quantity. A quanto contract is linear in its settlement currency.
    #[default]
    Linear,
    /// Value is quantity divided by price: the contract has a fixed size in the quote currency.
    Inverse,
}

/// The currency pair of a spot instrument: a sale costs `base`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// The currency that is traded.
    pub base: u16,
    /// Its smallest steps per lot.
    pub per_lot: Ratio,
}

/// A bracket of initial margin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bracket {
    /// Value of the position up to which the rate applies.
    pub value_max: i64,
    /// Margin in 1/10,000 of the value.
    pub bps: u32,
}

/// What a lot of an instrument is worth. Money counts the smallest steps of a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Linear or inverse.
    pub payoff: Payoff,
    /// Linear: money per price step and lot. Inverse: money per lot at a price of one step.
    pub value: Ratio,
    /// Notional, in the units of the limits of notional: of a linear contract per price step and lot, of an inverse one
    /// per lot.
    pub face: Ratio,
    /// The currency of the value; 0 is the currency of limits.
    pub currency: u16,
    /// `None` for derivatives.
    pub spot: Option<Spot>,
    /// The worst fee, in 1/10,000 of the value.
    pub fee_bps: u32,
    /// Least value of a lot, for spreads, whose price may be zero.
    pub lot_value_min: i64,
    /// Brackets of initial margin, smallest first. A value above the last one has no margin: it is a breach.
    pub brackets: [Bracket; BRACKETS],
}

impl Contract {
    /// The default contract.
    pub(crate) const DEFAULT: Self = Self {
        payoff: Payoff::Linear,
        value: Ratio::ONE,
        face: Ratio::ONE,
        currency: 0,
        spot: None,
        fee_bps: 0,
        lot_value_min: 0,
        brackets: [Bracket { value_max: i64::MAX, bps: 10_000 }; BRACKETS],
    };
}

impl Default for Contract {
    /// A linear contract in the currency of limits whose value is price steps times lots, with its whole value as margin.
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The direction in which a value is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Down,
    Up,
}

/// Returns `a` times `num` by `den`; `None` beyond 127 bits, or with a denominator of zero.
fn scaled(a: i128, num: i128, den: i128, round: Round) -> Option<i128> {
    // The compiler multiplies two words in one instruction, and checks a product of 128 bits in forty.
    let product = match (i64::try_from(a), i64::try_from(num)) {
        (Ok(a), Ok(num)) => i128::from(a) * i128::from(num),
        _ => a.checked_mul(num)?,
    };
    if den <= 0 {
        return None;
    }
    // A division of 128 bits is a call of a hundred instructions.
    if den == 1 {
        return Some(product);
    }
    if num == den {
        return Some(a);
    }
    if let (Ok(product), Ok(den)) = (i64::try_from(product), i64::try_from(den)) {
        let (quotient, rest) = (product / den, product % den);
        let step = match round {
            Round::Down => -i64::from(rest < 0),
            Round::Up => i64::from(rest > 0),
        };
        return Some((quotient + step).into());
    }
    Some(match round {
        Round::Down => product.div_euclid(den),
        Round::Up => -(-product).div_euclid(den),
    })
}

impl Ratio {
    /// Returns `a` times the ratio.
    pub(crate) fn times(self, a: i128, round: Round) -> Option<i128> {
        scaled(a, self.num.into(), self.den.into(), round)
    }
}

impl Contract {
    /// Returns the value of a lot at `px`, if that of a number of lots is always its multiple: of a linear contract in the
    /// currency of limits.
    pub(crate) fn lot_value(&self, px: i64) -> Option<i64> {
        let is_plain = self.payoff == Payoff::Linear && self.value.den == 1 && self.currency == 0;
        i64::try_from(self.value.num).ok().filter(|_| is_plain)?.checked_mul(px)
    }

    /// Returns the signed value of `lots` at `px`.
    pub(crate) fn signed(&self, px: i64, lots: i64, round: Round) -> Option<i128> {
        let (px, lots) = (i128::from(px), i128::from(lots));
        match self.payoff {
            Payoff::Linear => self.value.times(px * lots, round),
            Payoff::Inverse => scaled(lots, self.value.num.into(), px.checked_mul(self.value.den.into())?, round),
        }
    }

    /// Returns the value of `lots`, at least zero, at `px` without its sign, rounded up; `None` beyond 63 bits.
    #[inline]
    pub(crate) fn cost(&self, px: i64, lots: i64) -> Option<i128> {
        if self.payoff == Payoff::Linear && self.value.den == 1 {
            // Nothing is rounded.
            let value = i64::try_from(px.unsigned_abs()).ok().and_then(|px| px.checked_mul(lots));
            let value = value.and_then(|value| value.checked_mul(i64::try_from(self.value.num).ok()?));
            if let (Some(value), Some(least)) = (value, self.lot_value_min.checked_mul(lots)) {
                return Some(value.max(least).into());
            }
        }
        self.cost_rounded(px, lots)
    }

    fn cost_rounded(&self, px: i64, lots: i64) -> Option<i128> {
        if lots == 0 {
            return Some(0);
        }
        let least = i128::from(self.lot_value_min).checked_mul(lots.into())?;
        let value = self.signed(i64::try_from(px.unsigned_abs()).ok()?, lots, Round::Up)?.max(least);
        (value <= i64::MAX.into()).then_some(value)
    }

    /// Returns what `lots`, negative if short, at `px` add to a profit, rounded down.
    pub(crate) fn profit(&self, px: i64, lots: i64) -> Option<i128> {
        match self.payoff {
            Payoff::Linear if self.value.den == 1 => {
                // Nothing is rounded.
                let num = i64::try_from(self.value.num).ok();
                let value = px.checked_mul(lots).zip(num).and_then(|(value, num)| value.checked_mul(num));
                value.map_or_else(|| self.signed(px, lots, Round::Down), |value| Some(value.into()))
            }
            Payoff::Linear => self.signed(px, lots, Round::Down),
            Payoff::Inverse => self.signed(px, -lots, Round::Down),
        }
    }

    /// Returns the notional of `lots` at `px`.
    pub(crate) fn notional(&self, px: i64, lots: i64, round: Round) -> Option<u128> {
        let (px, lots) = (i128::from(px.unsigned_abs()), i128::from(lots.unsigned_abs()));
        let notional = match self.payoff {
            Payoff::Linear => self.face.times(px * lots, round),
            Payoff::Inverse => self.face.times(lots, round),
        };
        notional?.try_into().ok()
    }

    /// Returns the notional of `lots` at `px`, rounded down and up.
    #[inline]
    pub(crate) fn notionals(&self, px: i64, lots: i64) -> [Option<u128>; 2] {
        // One division of words gives both.
        let words = || {
            let face = |value: u64| i64::try_from(value).ok();
            let [px, lots] = [px.unsigned_abs(), lots.unsigned_abs()].map(face);
            let product = px?.checked_mul(lots?)?.checked_mul(face(self.face.num)?)?.cast_unsigned();
            let least = product.checked_div(self.face.den)?;
            Some([least, least + u64::from(least * self.face.den != product)])
        };
        let notionals = if self.payoff == Payoff::Linear { words() } else { None };
        match notionals {
            Some(notionals) => notionals.map(|notional| Some(notional.into())),
            None => [Round::Down, Round::Up].map(|round| self.notional(px, lots, round)),
        }
    }

    /// Returns the notional of `lots` at `px`, rounded up; `None` beyond its range.
    #[must_use]
    pub fn notional_up(&self, px: i64, lots: i64) -> Option<u128> {
        self.notional(px, lots, Round::Up)
    }

    /// Returns the worst fee of a trade of `value`.
    pub(crate) fn fee(&self, value: i128) -> Option<i128> {
        scaled(value, self.fee_bps.into(), BPS, Round::Up)
    }

    /// Returns the currency that an order of `side` holds.
    pub(crate) fn held_currency(&self, side: OrderSide) -> u16 {
        match (side, self.spot) {
            (OrderSide::Sell, Some(spot)) => spot.base,
            _ => self.currency,
        }
    }

    /// Returns what `lots` of `value` hold of the balance: their cost and the worst fee. Derivatives hold nothing.
    pub(crate) fn hold(&self, side: OrderSide, lots: i64, value: i128) -> i128 {
        let Some(spot) = self.spot else { return 0 };
        let cost = match side {
            OrderSide::Buy => Some(value),
            OrderSide::Sell => spot.per_lot.times(lots.into(), Round::Up),
        };
        let hold = cost.and_then(|cost| cost.checked_add(self.fee(cost)?));
        hold.unwrap_or(i64::MAX.into())
    }

    /// Returns the initial margin of a position of `value`; `None` above the last bracket.
    #[inline]
    pub(crate) fn margin(&self, value: i64) -> Option<i128> {
        // In 64 bits and with one division, as long as the sum fits.
        let (mut from, mut sum) = (0, 0_u64);
        for bracket in &self.brackets {
            let to = value.min(bracket.value_max);
            let part = to.saturating_sub(from).max(0).cast_unsigned();
            let Some(more) = part.checked_mul(bracket.bps.into()).and_then(|part| part.checked_add(sum)) else {
                return self.margin_of_brackets(value);
            };
            sum = more;
            from = from.max(to);
            if from >= value {
                return Some(sum.div_ceil(WHOLE).into());
            }
        }
        None
    }

    fn margin_of_brackets(&self, value: i64) -> Option<i128> {
        // Whole quotients, and the sum of the rests, which is divided once: no sum is beyond its type.
        let (mut from, mut sum, mut rests) = (0, 0, 0);
        for bracket in &self.brackets {
            let to = value.min(bracket.value_max);
            let (part, bps) = (to.saturating_sub(from).max(0).cast_unsigned(), u64::from(bracket.bps));
            sum += i128::from(part / WHOLE) * i128::from(bps);
            rests += part % WHOLE * bps;
            from = from.max(to);
            if from >= value {
                return Some(sum + i128::from(rests.div_ceil(WHOLE)));
            }
        }
        None
    }
}

/// The price of a currency in the currency of limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversion {
    /// Steps of the currency of limits per step of this one.
    pub rate: Ratio,
    /// Time of the rate on the gate's clock.
    pub ts_ns: u64,
}

/// What a conversion may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrencyLimits {
    /// Added to costs and taken off profits, in 1/10,000; at most 10,000.
    pub haircut_bps: u32,
    /// Maximum age of a rate in nanoseconds.
    pub age_max_ns: u64,
}

/// A currency with its rate, if that is usable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rated {
    pub(crate) rate: Ratio,
    pub(crate) haircut_bps: u32,
}

impl Rated {
    /// The currency of limits itself.
    pub(crate) const ITSELF: Self = Self { rate: Ratio::ONE, haircut_bps: 0 };

    fn converted(&self, value: i128, bps: i128, round: Round) -> Option<i128> {
        if bps == BPS && self.rate == Ratio::ONE && i64::try_from(value).is_ok() {
            return Some(value);
        }
        let num = i128::from(self.rate.num).checked_mul(bps)?;
        scaled(value, num, i128::from(self.rate.den).checked_mul(BPS)?, round)
    }

    /// Converts an exposure: its size grows by the haircut.
    pub(crate) fn exposure(&self, value: i128, round: Round) -> Option<i128> {
        self.converted(value, BPS + i128::from(self.haircut_bps), round)
    }

    /// Converts a profit, which shrinks by the haircut, or a loss, which grows.
    pub(crate) fn profit(&self, value: i128) -> Option<i128> {
        let haircut = i128::from(self.haircut_bps);
        self.converted(value, if value < 0 { BPS + haircut } else { BPS - haircut }, Round::Down)
    }
}

crate::fields::visit!(Ratio: num, den);
crate::fields::visit_variants!(Payoff: Linear, Inverse);
crate::fields::visit!(Spot: base, per_lot);
crate::fields::visit!(Bracket: value_max, bps);
crate::fields::visit!(Contract: payoff, value, face, currency, spot, fee_bps, lot_value_min, brackets);
crate::fields::visit!(Conversion: rate, ts_ns);
crate::fields::visit!(CurrencyLimits: haircut_bps, age_max_ns);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_against_the_order() {
        let third = Ratio { num: 1, den: 3 };
        let linear = Contract { value: third, face: third, ..Contract::default() };
        assert_eq!((linear.cost(10, 1), linear.cost(-10, 1)), (Some(4), Some(4)));
        assert_eq!((linear.profit(10, 1), linear.profit(10, -1)), (Some(3), Some(-4)));
        assert_eq!((linear.notional(10, 1, Round::Down), linear.notional(10, 1, Round::Up)), (Some(3), Some(4)));
        let inverse = Contract {
            payoff: Payoff::Inverse,
            value: Ratio { num: 1_000, den: 1 },
            face: Ratio { num: 5, den: 2 },
            ..linear
        };
        assert_eq!((inverse.cost(300, 1), inverse.cost(0, 1), inverse.cost(0, 0)), (Some(4), None, Some(0)));
        // A long position of an inverse contract loses coins when the price falls.
        assert_eq!((inverse.profit(300, 1), inverse.profit(300, -1)), (Some(-4), Some(3)));
        assert_eq!((inverse.notional(7, 3, Round::Down), inverse.notional(7, 3, Round::Up)), (Some(7), Some(8)));
    }

    /// The quotients of 64 bits, and those without a division, are those of 128 bits.
    #[test]
    fn a_short_division_gives_the_long_ones_result() {
        let edges = [0, 1, 2, 3, 9_999, 10_000, 10_001, i64::MAX as i128 - 1, i64::MAX as i128, i64::MAX as i128 + 1];
        let signed = edges.iter().flat_map(|edge| [*edge, -*edge]).chain([i128::from(i64::MIN), -(1 << 64), 1 << 70]);
        for a in signed {
            for num in [1, 3, 7, 10_000, 1 << 40] {
                for den in [1, 2, 3, 7, 10_000, 10_001, 1 << 40, 1 << 66] {
                    let product = a * num;
                    let (floor, rest) = (product.div_euclid(den), product.rem_euclid(den));
                    assert_eq!(scaled(a, num, den, Round::Down), Some(floor), "{a} {num} {den}");
                    assert_eq!(scaled(a, num, den, Round::Up), Some(floor + i128::from(rest > 0)), "{a} {num} {den}");
                }
            }
        }
    }

    /// What is found without a long division is what the long way finds.
    #[test]
    fn short_ways_find_what_the_long_ones_find() {
        let bracket = |value_max, bps| Bracket { value_max, bps };
        let brackets = [bracket(1_000, 3), bracket(1 << 40, 7), bracket(i64::MAX, 11), bracket(i64::MAX, 11)];
        for (num, den) in [(1, 1), (3, 1), (1, 3), (10_000, 7), (1 << 40, 1), (u64::MAX, 1), (1, 0), (5, u64::MAX)] {
            let ratio = Ratio { num, den };
            let linear = Contract { value: ratio, face: ratio, lot_value_min: 2, brackets, ..Contract::default() };
            for contract in [linear, Contract { payoff: Payoff::Inverse, ..linear }] {
                for px in [i64::MIN, -7, 0, 1, 10, 999_983, 1 << 40, i64::MAX] {
                    for lots in [0, 1, 2, 3, 1_000, 1 << 30, i64::MAX] {
                        let rounded = [Round::Down, Round::Up].map(|round| contract.notional(px, lots, round));
                        assert_eq!(contract.notionals(px, lots), rounded, "{contract:?} {px} {lots}");
                        assert_eq!(
                            contract.cost(px, lots),
                            contract.cost_rounded(px, lots),
                            "{contract:?} {px} {lots}"
                        );
                        assert_eq!(contract.margin(lots), contract.margin_of_brackets(lots), "{contract:?} {lots}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_has_no_value() {
        let contract = Contract::default();
        assert_eq!(contract.cost(1 << 40, 1 << 22), Some(1 << 62));
        assert_eq!(contract.cost(1 << 40, 1 << 23), None);
        let most = Ratio { num: u64::MAX, den: 1 };
        let huge = Contract { value: most, face: most, ..contract };
        assert_eq!((huge.cost(i64::MAX, 1 << 61), huge.notional(i64::MAX, 1 << 61, Round::Up)), (None, None));
        let broken = Contract { value: Ratio { num: 1, den: 0 }, ..contract };
        assert_eq!((broken.cost(1, 1), broken.profit(1, 1)), (None, None));
        assert_eq!(contract.cost(i64::MIN, 1), None);
    }

    #[test]
    fn margin_is_the_sum_over_the_brackets() {
        let bracket = |value_max, bps| Bracket { value_max, bps };
        let brackets = [bracket(100, 100), bracket(1_000, 1_000), bracket(2_000, 5_000), bracket(2_000, 10_000)];
        let contract = Contract { brackets, ..Contract::default() };
        assert_eq!((contract.margin(0), contract.margin(100), contract.margin(101)), (Some(0), Some(1), Some(2)));
        assert_eq!((contract.margin(1_000), contract.margin(2_000)), (Some(91), Some(591)));
        assert_eq!(contract.margin(2_001), None);
        let most = Contract { brackets: [bracket(i64::MAX, u32::MAX); 4], ..Contract::default() };
        for value in [1, 9_999, 10_000, 10_001, i64::MAX - 1, i64::MAX] {
            let product = i128::from(value) * i128::from(u32::MAX);
            assert_eq!(most.margin(value), Some((product + 9_999) / 10_000), "{value}");
        }
    }

    #[test]
    fn conversions_take_the_haircut_off_profits_and_add_it_to_the_rest() {
        let rated = Rated { rate: Ratio { num: 3, den: 2 }, haircut_bps: 1_000 };
        assert_eq!((rated.exposure(100, Round::Up), rated.exposure(-100, Round::Down)), (Some(165), Some(-165)));
        assert_eq!((rated.profit(100), rated.profit(-100)), (Some(135), Some(-165)));
        assert_eq!((rated.exposure(1, Round::Up), rated.profit(1), rated.profit(-1)), (Some(2), Some(1), Some(-2)));
        assert_eq!(Rated::ITSELF.exposure(7, Round::Up), Some(7));
    }
}
