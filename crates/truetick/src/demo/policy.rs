//! Limits of the demonstration: a limits file, made for the instruments of the feeds.

use tt_model::Decimal;

/// The strategy's account and number.
pub(super) const ACCOUNT: u16 = 0;
pub(super) const STRATEGY: u16 = 1;

/// Maximum number of open orders in an instrument.
const OPEN_ORDERS_MAX: u32 = 5;

/// Maximum size of a regular order, in hundredths of a unit of the base currency.
const QTY_REGULAR: i64 = 2;

/// The most decimals of a price step, or of a lot, in a limits file.
const DECIMALS_MAX: u8 = 9;

/// An instrument of a feed.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Its venue and its symbol: its name in the file.
    pub(crate) name: String,
    /// The price step.
    pub(crate) tick_size: Decimal,
    /// The quantity step.
    pub(crate) lot_size: Decimal,
    /// Its price at the start, in price steps; zero if there is none.
    pub(crate) ref_px: i64,
}

/// Returns the price step of the account's orders at about `ref_px`: coarser than the venue's if that is well within the
/// collar.
pub(super) fn px_step(ref_px: i64) -> i64 {
    if ref_px >= 20_000 { 10 } else { 1 }
}

/// Returns `QTY_REGULAR` in lots, at least ten lots: the maximum quantity of a regular order.
pub(super) fn qty_regular(lot_size: Decimal) -> i64 {
    let unit = 10_i64.saturating_pow(u32::from(lot_size.decimals)) / lot_size.mantissa.max(1);
    (unit.saturating_mul(QTY_REGULAR) / 100).max(10)
}

/// Returns the limits of the demonstration in `instruments`, each with its own name. One without a price has no maximum
/// value of an order; one whose steps no limits file takes has no limits.
pub(crate) fn limits(instruments: &[Listed]) -> String {
    let head = include_str!("limits.toml").to_owned();
    let fits = |of: &&Listed| of.tick_size.lowest().decimals.max(of.lot_size.lowest().decimals) <= DECIMALS_MAX;
    let numbered = instruments.iter().filter(fits).enumerate();
    numbered.fold(head, |text, (number, of)| text + &limits_of(number, of))
}

fn limits_of(number: usize, of: &Listed) -> String {
    let (tick, lot) = (of.tick_size.lowest(), of.lot_size.lowest());
    let times =
        |unit: Decimal, count: i64| Decimal::new(unit.mantissa.saturating_mul(count), unit.decimals).to_string();
    let regular = qty_regular(lot);
    let lots = |count: i64| times(lot, regular.saturating_mul(count));
    let value = Decimal::new(tick.mantissa.saturating_mul(lot.mantissa), tick.decimals + lot.decimals);
    let worth = of.ref_px.saturating_mul(regular).saturating_mul(2);
    let notional_max = times(value, if worth > 0 { worth } else { i64::MAX });
    let row = format!(
        "qty-max = \"{0}\"\nmarket-qty-max = \"{0}\"\nnotional-max = \"{notional_max}\"\nposition-long-max = \"{1}\"\n\
         position-short-max = \"{1}\"\nopen-qty-max = \"{1}\"\nopen-orders-max = {OPEN_ORDERS_MAX}\n",
        lots(3),
        lots(8),
    );
    let values = [
        ("{name}", of.name.clone()),
        ("{number}", number.to_string()),
        ("{tick}", tick.to_string()),
        ("{lot}", lot.to_string()),
        ("{step}", times(tick, px_step(of.ref_px))),
        ("{row}", row),
    ];
    values.iter().fold(include_str!("instrument.toml").to_owned(), |text, (key, value)| text.replace(key, value))
}
