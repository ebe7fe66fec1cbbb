//! Mark prices, funding, and the positions that they value.

use crate::drop_reason::DropReason;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::event::{MarkPrice, PositionLeg};
use tt_venue::listing::ContractUnit;

/// An instrument's mark price and funding as published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The mark price in quote currency.
    pub mark_px: Decimal,
    /// The index price in quote currency; zero where the venue does not send it along.
    pub index_px: Decimal,
    /// The rate of the next funding, a fraction; `None` where the contract has none.
    pub funding_rate: Option<Decimal>,
    /// When the next funding is paid, Unix epoch; zero where the contract has none.
    pub ts_next_funding: Nanos,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
    /// When the frame was received, Unix epoch.
    pub ts_recv: Nanos,
}

impl Mark {
    pub(crate) fn new(event: &MarkPrice, ts_recv: Nanos) -> Self {
        Self {
            mark_px: event.mark_px,
            index_px: event.index_px,
            funding_rate: event.funding_rate,
            ts_next_funding: event.ts_next_funding,
            ts_event: event.ts_event,
            ts_recv,
        }
    }

    #[inline]
    pub(crate) fn to_words(self) -> [u64; 7] {
        let rate = self.funding_rate.unwrap_or_default();
        [
            self.mark_px.mantissa as u64,
            self.index_px.mantissa as u64,
            rate.mantissa as u64,
            u64::from(self.mark_px.decimals)
                | u64::from(self.index_px.decimals) << 8
                | u64::from(rate.decimals) << 16
                | u64::from(self.funding_rate.is_some()) << 24,
            self.ts_next_funding.0,
            self.ts_event.0,
            self.ts_recv.0,
        ]
    }

    pub(crate) fn from_words(words: [u64; 7]) -> Self {
        let decimals = |shift: u32| (words[3] >> shift) as u8;
        let rate = Decimal::new(words[2] as i64, decimals(16));
        Self {
            mark_px: Decimal::new(words[0] as i64, decimals(0)),
            index_px: Decimal::new(words[1] as i64, decimals(8)),
            funding_rate: (words[3] >> 24 & 1 == 1).then_some(rate),
            ts_next_funding: Nanos(words[4]),
            ts_event: Nanos(words[5]),
            ts_recv: Nanos(words[6]),
        }
    }
}

/// Values of a contract that a venue sends apart from its mark price, each as it last was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contract {
    /// The index price in quote currency.
    pub index_px: Option<Decimal>,
    /// Halfway between the best bid and the best offer, in quote currency.
    pub mid_px: Option<Decimal>,
    /// The rate of the next funding, a fraction.
    pub funding_rate: Option<Decimal>,
    /// Contracts that are open, in the venue's unit of quantity.
    pub open_interest: Option<Decimal>,
    /// Time of the next funding, Unix epoch; zero if unknown.
    pub ts_next_funding: Nanos,
    /// When the last of it was received, Unix epoch.
    pub ts_recv: Nanos,
}

impl Contract {
    pub(crate) fn to_words(self) -> [u64; 7] {
        let values = [self.index_px, self.funding_rate, self.open_interest, self.mid_px];
        let [index, rate, interest, mid] = values.map(|value| value.unwrap_or_default().mantissa as u64);
        // Decimals, above them whether there is a value at all.
        let scales = values.map(|value| value.map_or(0, |value| u64::from(value.decimals) | 1 << 7));
        let scales = scales[0] | scales[1] << 8 | scales[2] << 16 | scales[3] << 24;
        [index, rate, interest, mid, scales, self.ts_next_funding.0, self.ts_recv.0]
    }

    pub(crate) fn from_words(words: [u64; 7]) -> Self {
        let value = |index: usize| {
            let scale = (words[4] >> (8 * index)) as u8;
            (scale >> 7 == 1).then(|| Decimal::new(words[index] as i64, scale & 0x7f))
        };
        Self {
            index_px: value(0),
            funding_rate: value(1),
            open_interest: value(2),
            mid_px: value(3),
            ts_next_funding: Nanos(words[5]),
            ts_recv: Nanos(words[6]),
        }
    }
}

/// Where a position's slot was filled from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PositionOrigin {
    pub(crate) leg: PositionLeg,
    /// Whether the venue reported it; otherwise the caller set it.
    pub(crate) is_reported: bool,
    /// The venue's list of all positions during which, or since which, it was last reported.
    pub(crate) listing: u32,
}

/// A position: its value moves with the mark price by its instrument's [`ContractUnit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The account's number.
    pub account: u16,
    /// Lots held, negative when short.
    pub lots: i64,
    /// The average entry price in quote currency.
    pub entry_px: Decimal,
}

/// A position as valued by the last mark price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionMark {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The account's number.
    pub account: u16,
    /// Lots held, negative when short.
    pub lots: i64,
    /// Unrealised profit or loss: this divided by `10^pnl_decimals`. In quote currency, exactly; of an inverse contract
    /// in base currency, cut off after [`PositionMark::INVERSE_DECIMALS`] decimals.
    pub pnl_mantissa: i128,
    /// How many of `pnl_mantissa`'s digits follow the point.
    pub pnl_decimals: u8,
    /// When the mark price was received, Unix epoch.
    pub ts_recv: Nanos,
}

impl PositionMark {
    /// Decimals of the profit of an inverse contract, a quotient that few decimals hold in full.
    pub const INVERSE_DECIMALS: u8 = 12;

    /// Values `position`, whose lots have the size `lot` in the base asset, at `mark`.
    ///
    /// # Errors
    /// `NumberRange` if the exact result needs more than an `i128`.
    #[inline(always)]
    pub(crate) fn new(position: &Position, lot: Decimal, mark: &Mark) -> Result<Self, DropReason> {
        let decimals = mark.mark_px.decimals.max(position.entry_px.decimals);
        let at = |px: Decimal| px.mantissa_at(decimals).map(i128::from);
        let quantity = i128::from(position.lots) * i128::from(lot.mantissa);
        let move_px = at(mark.mark_px)? - at(position.entry_px)?;
        Ok(Self {
            instrument: position.instrument,
            account: position.account,
            lots: position.lots,
            pnl_mantissa: product(quantity, move_px)?,
            pnl_decimals: decimals + lot.decimals,
            ts_recv: mark.ts_recv,
        })
    }

    /// As [`new`](Self::new), with lots in `unit`.
    ///
    /// # Errors
    /// As `new`, and `Number` if an inverse contract has a price of zero.
    #[inline(never)]
    pub(crate) fn of_contract(
        position: &Position,
        lot: Decimal,
        unit: ContractUnit,
        mark: &Mark,
    ) -> Result<Self, DropReason> {
        match unit {
            ContractUnit::Base => Self::new(position, lot, mark),
            ContractUnit::Linear(size) => {
                let one = Self::new(position, lot, mark)?;
                Ok(Self {
                    pnl_mantissa: one
                        .pnl_mantissa
                        .checked_mul(i128::from(size.mantissa))
                        .ok_or(DropReason::NumberRange)?,
                    pnl_decimals: one.pnl_decimals + size.decimals,
                    ..one
                })
            }
            ContractUnit::Inverse(value) => Self::inverse(position, lot, value, mark),
        }
    }

    /// `quantity x (1 / entry - 1 / mark)`, in base currency.
    fn inverse(position: &Position, lot: Decimal, value: Decimal, mark: &Mark) -> Result<Self, DropReason> {
        let decimals = mark.mark_px.decimals.max(position.entry_px.decimals);
        let at = |px: Decimal| px.mantissa_at(decimals).map(i128::from);
        let (mark_px, entry_px) = (at(mark.mark_px)?, at(position.entry_px)?);
        let lots = i128::from(position.lots) * i128::from(lot.mantissa);
        let product =
            lots.checked_mul(i128::from(value.mantissa)).and_then(|size| size.checked_mul(mark_px - entry_px));
        let scales = (lot.decimals + value.decimals, decimals);
        Ok(Self {
            instrument: position.instrument,
            account: position.account,
            lots: position.lots,
            pnl_mantissa: inverse_profit(product.ok_or(DropReason::NumberRange)?, scales, mark_px, entry_px)?,
            pnl_decimals: Self::INVERSE_DECIMALS,
            ts_recv: mark.ts_recv,
        })
    }

    #[inline]
    pub(crate) fn to_words(self) -> [u64; 7] {
        [
            u64::from(self.instrument.0) | u64::from(self.account) << 32,
            self.lots as u64,
            self.pnl_mantissa as u64,
            (self.pnl_mantissa >> 64) as u64,
            u64::from(self.pnl_decimals),
            self.ts_recv.0,
            0,
        ]
    }

    pub(crate) fn from_words(words: [u64; 7]) -> Self {
        Self {
            instrument: InstrumentId(words[0] as u32),
            account: (words[0] >> 32) as u16,
            lots: words[1] as i64,
            pnl_mantissa: i128::from(words[3] as i64) << 64 | i128::from(words[2]),
            pnl_decimals: words[4] as u8,
            ts_recv: Nanos(words[5]),
        }
    }
}

/// The product, by one instruction where both factors fit in 64 bits.
#[inline]
fn product(quantity: i128, move_px: i128) -> Result<i128, DropReason> {
    match (i64::try_from(quantity), i64::try_from(move_px)) {
        (Ok(quantity), Ok(move_px)) => Ok(i128::from(quantity) * i128::from(move_px)),
        (Ok(_) | Err(_), Err(_)) | (Err(_), Ok(_)) => quantity.checked_mul(move_px).ok_or(DropReason::NumberRange),
    }
}

/// Quantity and move of the price as `product`, over both prices: `quantity x (1 / entry - 1 / mark)`, where `scales`
/// are the decimals of the quantity and of the prices.
fn inverse_profit(product: i128, scales: (u8, u8), mark_px: i128, entry_px: i128) -> Result<i128, DropReason> {
    let power = |decimals: u8| 10_i128.checked_pow(u32::from(decimals)).ok_or(DropReason::NumberRange);
    if mark_px <= 0 || entry_px <= 0 {
        return Err(DropReason::Number);
    }
    let prices = mark_px.checked_mul(entry_px).ok_or(DropReason::NumberRange)?;
    // The prices' decimals stand once above and twice below, the quantity's once above.
    let raised = scales.1 + PositionMark::INVERSE_DECIMALS;
    if raised >= scales.0 {
        let above = product.checked_mul(power(raised - scales.0)?).ok_or(DropReason::NumberRange)?;
        return Ok(above / prices);
    }
    let below = prices.checked_mul(power(scales.0 - raised)?).ok_or(DropReason::NumberRange)?;
    Ok(product / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profit_and_loss_are_exact() {
        let mark = Mark { mark_px: Decimal::new(1_179_415_000_001, 8), ts_recv: Nanos(7), ..Mark::default() };
        // Short 0.250 at 11800.5: -0.25 x (11794.15000001 - 11800.5) = 1.5874999975.
        let position =
            Position { instrument: InstrumentId(3), account: 9, lots: -250, entry_px: Decimal::new(118_005, 1) };
        let value = PositionMark::new(&position, Decimal::new(1, 3), &mark).unwrap();
        assert_eq!((value.pnl_mantissa, value.pnl_decimals), (158_749_999_750, 11));
        let long = Position { lots: 250, ..position };
        let loss = PositionMark::new(&long, Decimal::new(1, 3), &mark).unwrap();
        assert_eq!(loss.pnl_mantissa, -158_749_999_750);
        assert_eq!(PositionMark::from_words(loss.to_words()), loss);
        // Contracts over 0.01 each: a hundredth of it.
        let unit = ContractUnit::Linear(Decimal::new(1, 2));
        let small = PositionMark::of_contract(&long, Decimal::new(1, 3), unit, &mark).unwrap();
        assert_eq!((small.pnl_mantissa, small.pnl_decimals), (-158_749_999_750, 13));
    }

    #[test]
    fn an_inverse_contract_gains_in_its_base_asset() {
        // 30 contracts of 100 USD from 60000.5 to 61234.25: 3000 x (1/60000.5 - 1/61234.25), by bc(1):
        // .001007393508400671
        let mark = Mark { mark_px: Decimal::new(6_123_425, 2), ts_recv: Nanos(7), ..Mark::default() };
        let unit = ContractUnit::Inverse(Decimal::new(100, 0));
        let long = Position { instrument: InstrumentId(3), account: 9, lots: 30, entry_px: Decimal::new(600_005, 1) };
        let value = PositionMark::of_contract(&long, Decimal::new(1, 0), unit, &mark).unwrap();
        assert_eq!((value.pnl_mantissa, value.pnl_decimals), (1_007_393_508, 12));
        let short = Position { lots: -30, ..long };
        assert_eq!(
            PositionMark::of_contract(&short, Decimal::new(1, 0), unit, &mark).unwrap().pnl_mantissa,
            -1_007_393_508
        );
        // The same of lots and values with decimals.
        let fine = ContractUnit::Inverse(Decimal::new(1_000_000, 4));
        let position = Position { lots: 30_000, ..long };
        let value = PositionMark::of_contract(&position, Decimal::new(1, 3), fine, &mark).unwrap();
        assert_eq!(value.pnl_mantissa, 1_007_393_508);
        let free = Position { entry_px: Decimal::new(0, 0), ..long };
        assert_eq!(PositionMark::of_contract(&free, Decimal::new(1, 0), unit, &mark), Err(DropReason::Number));
    }

    #[test]
    fn values_never_sent_stay_unknown() {
        let funding_rate = Some(Decimal::new(-125, 6));
        let contract = Contract { funding_rate, ts_recv: Nanos(9), ..Contract::default() };
        assert_eq!(Contract::from_words(contract.to_words()), contract);
        let contract = Contract { open_interest: Some(Decimal::new(0, 18)), ..contract };
        assert_eq!(Contract::from_words(contract.to_words()), contract);
    }
}
