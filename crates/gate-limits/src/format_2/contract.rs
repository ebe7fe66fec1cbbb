//! What a lot is worth.

use anyhow::{Result, ensure};
use tt_model::Decimal;
use tt_risk::money::{Bracket, Contract, Payoff, Spot};

use super::super::Names;
use super::super::settings::reduce;
use super::block::{Block, Text};

/// Reads `contract` of an instrument.
pub(super) fn read(block: &mut Block<'_>, units: (Decimal, Decimal), names: &Names) -> Result<Contract> {
    let place = format!("{}: contract", block.place);
    let Some(mut contract) = block.table("contract", &place)? else {
        return Err(block.error(block.line, "`contract` is missing"));
    };
    let found = contract_of(&mut contract, units, names)?;
    contract.finish().map(|()| found)
}

fn contract_of(block: &mut Block<'_>, (px, qty): (Decimal, Decimal), names: &Names) -> Result<Contract> {
    let kind = block.word("kind", &["linear", "inverse", "spot"])?;
    let size = block.text("size")?;
    let size = size.positive().map_err(|error| block.error(size.line, error))?;
    let (currency, decimals) = currency(block, "currency", names)?;
    let money = power(decimals.into());
    let one = |number: Decimal| (number.mantissa.unsigned_abs().into(), power(number.decimals.into()));
    let (px_num, px_den): (u128, u128) = one(px);
    let (qty_num, qty_den) = one(qty);
    let (size_num, size_den) = one(size);
    let product = |factors: &[u128]| factors.iter().try_fold(1_u128, |product, factor| product.checked_mul(*factor));
    // The steps of a notional have the decimals of a price and of a quantity.
    let is_inverse = kind == 1;
    let (value, face) = if is_inverse {
        let value = (product(&[qty_num, size_num, px_den, money]), product(&[qty_den, size_den, px_num]));
        (value, (product(&[qty_num, size_num, px_den]), Some(size_den)))
    } else {
        let value = (product(&[px_num, qty_num, size_num, money]), product(&[px_den, qty_den, size_den]));
        (value, (product(&[px_num, qty_num, size_num]), Some(size_den)))
    };
    let line = block.line;
    let reduced = |(num, den): (Option<u128>, Option<u128>)| reduce(num?, den?);
    let beyond = || block.error(line, "the units, the size and the decimals of the currency are beyond 64 bits");
    let (value, face) = (reduced(value).ok_or_else(beyond)?, reduced(face).ok_or_else(beyond)?);
    let spot = if kind == 2 {
        let (base, decimals) = self::currency(block, "base", names)?;
        let per_lot = reduced((product(&[qty_num, size_num, power(decimals.into())]), product(&[qty_den, size_den])));
        let beyond = || block.error(line, "the units of the base currency are beyond 64 bits");
        Some(Spot { base, per_lot: per_lot.ok_or_else(beyond)? })
    } else {
        None
    };
    let least = block.optional_text("lot-value-min")?;
    let least = least.map_or(Ok(0), |text| text.steps(decimals).map_err(|error| block.error(text.line, error)))?;
    Ok(Contract {
        payoff: if is_inverse { Payoff::Inverse } else { Payoff::Linear },
        value,
        face,
        currency,
        spot,
        fee_bps: block.bps("fee-bps")?,
        lot_value_min: least,
        brackets: brackets(block, decimals)?,
    })
}

fn currency(block: &mut Block<'_>, key: &'static str, names: &Names) -> Result<(u16, u8)> {
    let Text { text, line, .. } = block.text(key)?;
    let found = (0..).zip(&names.currencies).find(|(_, (name, _))| *name == text);
    let (number, (_, decimals)) =
        found.ok_or_else(|| block.error(line, format!("{key} = {text}: no such currency")))?;
    Ok((number, *decimals))
}

/// Reads the brackets of initial margin; without them the margin is the whole value.
fn brackets(block: &mut Block<'_>, decimals: u8) -> Result<[Bracket; 4]> {
    let mut brackets = Contract::default().brackets;
    let Some(found) = block.array("margin")? else { return Ok(brackets) };
    let (count, most) = (found.len(), brackets.len());
    ensure!((1..=most).contains(&count), block.error(block.line, format!("margin: {count} brackets, not 1 to {most}")));
    let mut last = Bracket::default();
    for (index, mut of) in found.into_iter().enumerate() {
        let text = of.text("value-max")?;
        let value_max = text.steps(decimals).map_err(|error| of.error(text.line, error))?;
        ensure!(
            index == 0 || value_max > last.value_max,
            of.error(of.line, format!("value-max = {} is not above that of the bracket before", text.text))
        );
        let bps: u32 = of.narrow("bps")?;
        ensure!(bps <= 10_000, of.error(of.line, format!("bps = {bps} is above 10000")));
        last = Bracket { value_max, bps };
        of.finish()?;
        brackets[index..].fill(last);
    }
    Ok(brackets)
}

const fn power(decimals: u32) -> u128 {
    10_u128.pow(decimals)
}
