//! Limits as values with their places, and their comparison with those of the node that contains theirs.

use anyhow::{Result, ensure};
use tt_model::{Notional, Qty};
use tt_risk::tree::{NodeLimits, RowLimits};

use super::super::Instrument;
use super::super::settings::MONEY_DECIMALS;
use super::block::{Block, Text};

/// A limit with its place in the file.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) key: &'static str,
    pub(super) value: i128,
    text: String,
    pub(super) line: usize,
}

impl Limit {
    fn of(Text { key, text, line }: Text, value: i128) -> Self {
        Self { key, value, text, line }
    }
}

/// Reads a quantity: a multiple of the lot.
pub(super) fn lots(block: &mut Block<'_>, key: &'static str, (of, step): (&Instrument, i64)) -> Result<Limit> {
    let text = block.text(key)?;
    let lots = of.qty(&text.text).map_err(|error| block.error(text.line, format!("{key}: {error}")))?;
    ensure!(lots.0 >= 0, block.error(text.line, format!("{key} = {} is below zero", text.text)));
    let lot = of.qty_text(step);
    ensure!(
        lots.0 % step == 0,
        block.error(text.line, format!("{key} = {} is no multiple of the lot {lot}", text.text))
    );
    Ok(Limit::of(text, lots.0.into()))
}

/// Reads price times quantity.
pub(super) fn notional(block: &mut Block<'_>, key: &'static str, of: &Instrument) -> Result<Limit> {
    let text = block.text(key)?;
    let value = of.notional(&text.text).map_err(|error| block.error(text.line, format!("{key}: {error}")))?;
    ensure!(value.0 >= 0, block.error(text.line, format!("{key} = {} is below zero", text.text)));
    Ok(Limit::of(text, value.0))
}

/// Reads a number with two decimals, as hundredths.
pub(super) fn hundredths_or_off(block: &mut Block<'_>, key: &'static str) -> Result<Option<u32>> {
    let Some(text) = block.text_or_off(key)? else { return Ok(None) };
    let hundredths = text.steps(2).map_err(|error| block.error(text.line, error))?;
    let hundredths = u32::try_from(hundredths);
    hundredths.map(Some).map_err(|_| block.error(text.line, format!("{key} = {} is too large", text.text)))
}

/// Limits of a node in an instrument.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) place: String,
    pub(super) line: usize,
    limits: [Limit; 7],
}

impl Row {
    pub(super) fn read(block: &mut Block<'_>, of: &Instrument, step: i64) -> Result<Self> {
        let open_orders = |block: &mut Block<'_>| {
            let most: u32 = block.narrow("open-orders-max")?;
            Ok::<_, anyhow::Error>(Limit {
                key: "open-orders-max",
                value: most.into(),
                text: most.to_string(),
                line: block.line,
            })
        };
        let limits = [
            lots(block, "qty-max", (of, step))?,
            lots(block, "market-qty-max", (of, step))?,
            notional(block, "notional-max", of)?,
            lots(block, "position-long-max", (of, step))?,
            lots(block, "position-short-max", (of, step))?,
            lots(block, "open-qty-max", (of, step))?,
            open_orders(block)?,
        ];
        Ok(Self { place: block.place.clone(), line: block.line, limits })
    }

    /// Checks that no limit is above the same one of `parent`.
    pub(super) fn check_within(&self, parent: &Self) -> Result<()> {
        for (limit, above) in self.limits.iter().zip(&parent.limits) {
            check_within(&self.place, limit, above, &parent.place)?;
        }
        Ok(())
    }

    pub(super) fn qty_max(&self) -> &Limit {
        &self.limits[0]
    }

    pub(super) fn notional_max(&self) -> &Limit {
        &self.limits[2]
    }

    pub(super) fn limits(&self) -> RowLimits {
        let lots = |index: usize| Qty(i64::try_from(self.limits[index].value).unwrap_or(i64::MAX));
        RowLimits {
            qty_max: lots(0),
            market_qty_max: lots(1),
            notional_max: Notional(self.limits[2].value),
            position_long_max: lots(3),
            position_short_max: lots(4),
            open_qty_max: lots(5),
            open_orders_max: u32::try_from(self.limits[6].value).unwrap_or(u32::MAX),
        }
    }
}

fn check_within(place: &str, limit: &Limit, above: &Limit, parent: &str) -> Result<()> {
    let Limit { key, value, text, line } = limit;
    let (most, at) = (&above.text, above.line);
    ensure!(
        *value <= above.value,
        "line {line}: {place}: {key} = {text} is above {most}, that of {parent} in line {at}"
    );
    Ok(())
}

/// Limits of a node in money.
#[derive(Debug)]
pub(super) struct Money {
    place: String,
    limits: [Option<Limit>; 5],
}

impl Money {
    pub(super) fn read(block: &mut Block<'_>) -> Result<Self> {
        let amount = |block: &Block<'_>, text: Text| {
            let value = text.steps(MONEY_DECIMALS).map_err(|error| block.error(text.line, error))?;
            Ok::<_, anyhow::Error>(Limit::of(text, value.into()))
        };
        let mut always = |key| {
            let text = block.text(key)?;
            amount(block, text).map(Some)
        };
        let (gross, open, day) = (always("gross-max")?, always("open-value-max")?, always("daily-loss-max")?);
        let drawdown = always("drawdown-max")?;
        let net = block.text_or_off("net-max")?.map(|text| amount(block, text)).transpose()?;
        Ok(Self { place: block.place.clone(), limits: [gross, net, open, day, drawdown] })
    }

    pub(super) fn check_within(&self, parent: &Self) -> Result<()> {
        for (limit, above) in self.limits.iter().zip(&parent.limits) {
            if let (Some(limit), Some(above)) = (limit, above) {
                check_within(&self.place, limit, above, &parent.place)?;
            }
        }
        Ok(())
    }

    /// Returns whether the check of net exposure is off.
    pub(super) fn has_no_net(&self) -> bool {
        self.limits[1].is_none()
    }

    pub(super) fn limits(&self) -> NodeLimits {
        let [gross_max, net_max, open_value_max, daily_loss_max, drawdown_max] =
            [0, 1, 2, 3, 4].map(|index: usize| self.limits[index].as_ref().and_then(|of| i64::try_from(of.value).ok()));
        NodeLimits { gross_max, net_max, open_value_max, daily_loss_max, drawdown_max, ..NodeLimits::OFF }
    }
}
