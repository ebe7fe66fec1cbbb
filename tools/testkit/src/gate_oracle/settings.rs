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
    /// Largest quantity of a market order.
    pub market_qty: i128,
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
    /// Cancels per fill, in hundredths.
    pub cancel_pct: Option<i128>,
    /// Maximum age of a proof.
    pub proof_age_ns: Option<i128>,
}

/// Largest sizes of a node in an instrument.
#[derive(Clone, Copy, Debug)]
pub struct RowMax {
    /// Quantity of an order with a limit price, and of a market order.
    pub qty: i128,
    /// Of market orders.
    pub market_qty: i128,
    /// Value of an order.
    pub notional: i128,
    /// Long and short position.
    pub position: [i128; 2],
    /// Open quantity of a side.
    pub open_qty: i128,
    /// Open orders.
    pub open_orders: i128,
}

/// Limits of a node in money.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeSettings {
    /// Gross exposure.
    pub gross: Option<i128>,
    /// Net exposure.
    pub net: Option<i128>,
    /// Value of open orders.
    pub open_value: Option<i128>,
    /// Loss of a day.
    pub daily_loss: Option<i128>,
    /// Loss from the peak.
    pub drawdown: Option<i128>,
    /// Whether margin is compared with equity.
    pub margin: bool,
    /// Gross exposure in hundredths of the equity.
    pub leverage_pct: Option<i128>,
    /// Whether balances must cover spot orders.
    pub balance: bool,
    /// Cancels per fill, in hundredths.
    pub cancel_pct: Option<i128>,
    /// Executions that stop a strategy.
    pub stop: Option<i128>,
}

/// A strategy, in every account.
#[derive(Clone, Debug)]
pub struct StrategySettings {
    /// By instrument.
    pub rows: Vec<RowMax>,
    /// In money.
    pub node: NodeSettings,
    /// The producer that may send its orders.
    pub producer: u16,
    /// Its message rate.
    pub rate: RateSettings,
}

/// What a lot is worth.
#[derive(Clone, Debug)]
pub struct ContractSettings {
    /// Whether value is quantity by price.
    pub is_inverse: bool,
    /// Value per step and lot.
    pub value: (i128, i128),
    /// Notional per step and lot, or per lot of an inverse contract.
    pub face: (i128, i128),
    /// The currency of the value.
    pub currency: usize,
    /// The currency that a sale costs, and its steps per lot.
    pub spot: Option<(usize, (i128, i128))>,
    /// The worst fee.
    pub fee_bps: i128,
    /// Least value of a lot.
    pub lot_min: i128,
    /// Margin: up to a value, a rate.
    pub brackets: Vec<(i128, i128)>,
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
    /// Of the firm, by instrument.
    pub firm_rows: Vec<RowMax>,
    /// Of the firm.
    pub firm: NodeSettings,
    /// By account.
    pub accounts: Vec<NodeSettings>,
    /// By number.
    pub strategies: Vec<StrategySettings>,
    /// By instrument.
    pub contracts: Vec<ContractSettings>,
    /// From currency 1 on: haircut and maximum age of its rate.
    pub currencies: Vec<(i128, i128)>,
    /// Refused intents of a producer.
    pub refusal_rate: RateSettings,
    /// Window of cancels per fill.
    pub cancel_window_ns: i128,
    /// Window of executions.
    pub exec_window_ns: i128,
    /// Maximum age of an equity.
    pub equity_age_ns: i128,
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
    /// When it was proved last.
    pub proved_ns: i128,
}
