//! What the oracle is given: limits, rules and prices, as the gate is given them.

/// Limits of an account in an instrument.
#[derive(Clone, Copy, Debug)]
pub struct RowSettings {
    /// Step of prices.
    pub px_step: i128,
    /// Step of quantities.
    pub qty_step: i128,
    /// Smallest and largest quantity.
    pub qty: [i128; 2],
    /// Smallest and largest value.
    pub notional: [i128; 2],
    /// Largest long and short position.
    pub position: [i128; 2],
    /// Largest open quantity of a side.
    pub open_qty: i128,
    /// Most open orders.
    pub open_orders: i128,
    /// Whether an unverified book rejects.
    pub needs_proof: bool,
}

/// A message rate.
#[derive(Clone, Copy, Debug)]
pub struct RateSettings {
    /// Messages per second.
    pub per_second: i128,
    /// Messages at once.
    pub burst: i128,
}

/// Limits and rules of an instrument.
#[derive(Clone, Copy, Debug)]
pub struct InstrumentSettings {
    /// Width of the collar.
    pub collar_bps: i128,
    /// Maximum age of a price.
    pub mark_age_ns: i128,
    /// Messages of all accounts.
    pub rate: RateSettings,
    /// Distance of the protection price.
    pub slip_bps: Option<i128>,
    /// Distance from the touch.
    pub touch_bps: Option<i128>,
    /// Distance of a trigger from the mark.
    pub trigger_bps: i128,
    /// Whether prices may be zero or negative.
    pub may_be_negative: bool,
    /// Whether the venue enforces reduce-only.
    pub enforces_reduce_only: bool,
    /// Whether a replace ends the old terms first.
    pub replaces_atomically: bool,
}

/// Everything that is set before the start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Limits by account and instrument.
    pub rows: Vec<Vec<RowSettings>>,
    /// By instrument.
    pub instruments: Vec<InstrumentSettings>,
    /// By account.
    pub account_rates: Vec<RateSettings>,
    /// Of all.
    pub global_rate: RateSettings,
    /// For how long ids are remembered.
    pub id_window_ns: i128,
    /// Maximum age of an intent.
    pub intent_age_ns: i128,
    /// Time between two cancels of one order.
    pub cancel_repeat_ns: i128,
    /// For how long executions may be missing.
    pub gap_ns: i128,
    /// Most orders of the same terms within a time.
    pub same_orders: i128,
    /// That time.
    pub same_ns: i128,
    /// Positions at the start, by account and instrument.
    pub positions: Vec<Vec<i128>>,
}

/// A price with its time.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    /// The reference price.
    pub reference: i128,
    /// The best bid.
    pub bid: i128,
    /// The best offer.
    pub ask: i128,
    /// When it was received.
    pub at_ns: i128,
    /// Whether the book is verified.
    pub is_verified: bool,
}
