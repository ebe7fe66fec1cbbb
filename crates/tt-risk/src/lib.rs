//! A pre-trade risk gate: an [`OrderIntent`](tt_model::OrderIntent) in, a [`Verdict`](tt_model::Verdict) with every
//! reason out.
//!
//! The gate checks order quantity, price and notional, position, open quantity and open orders, message rates, the age and
//! proof of the market's reference price, duplicate client ids, orders that would match the account's own, and kill
//! switches. It never sends an order. It has no I/O, clock or threads, and allocates only in [`Gate::new`].
//!
//! # The caller's loop
//!
//! 1. [`Gate::new`] allocates all tables. The gate starts closed: it rejects every order.
//! 2. Set the limits: [`Gate::set_limits`] for each account and instrument, [`Gate::set_instrument_limits`],
//!    [`Gate::set_account_rate`], [`Gate::set_global_rate`]. Restore the state: [`Gate::restore`] for each account and
//!    instrument, then [`Gate::restore_order`] for each open order and [`Gate::restore_id`] for each recent client id.
//! 3. Pass events in the order of their arrival: [`Gate::set_reference`] for market prices, [`Gate::apply_fill`] and
//!    [`Gate::apply_cancel`] for order updates, [`Gate::evaluate`] for intents.
//! 4. Other threads stop orders through [`Controls`]; the next evaluation sees the switch.
//!
//! ```
//! use tt_meter::Off;
//! use tt_model::{Breach, InstrumentId, Notional, OrderIntent, OrderSide, Price, Qty};
//! use tt_risk::{Capacity, Exposure, Fill, Gate, GateError, InstrumentLimits, KillSwitch, Limits, Mark, Rate};
//!
//! # fn main() -> Result<(), GateError> {
//! let (account, instrument) = (0, InstrumentId(0));
//! let mut gate = Gate::new(Capacity { accounts: 1, instruments: 1, client_ids: 1_000, own_orders: 16 });
//!
//! // Prices count steps of the instrument's price, quantities count lots.
//! gate.set_limits(
//!     account,
//!     instrument,
//!     &Limits {
//!         px_step: Price(1),
//!         qty_step: Qty(1),
//!         qty_min: Qty(1),
//!         qty_max: Qty(100),
//!         notional_min: Notional(0),
//!         notional_max: Notional(10_000_000),
//!         position_long_max: Qty(250),
//!         position_short_max: Qty(250),
//!         open_qty_max: Qty(200),
//!         open_orders_max: 8,
//!         enabled: Limits::CHECKED,
//!     },
//! )?;
//! let rate = Rate { per_second: 50, burst: 10 };
//! gate.set_instrument_limits(instrument, &InstrumentLimits { collar_bps: 100, mark_age_max_ns: 2_000_000_000, rate })?;
//! gate.set_account_rate(account, rate)?;
//! gate.set_global_rate(rate);
//! gate.restore(account, instrument, &Exposure::default())?;
//!
//! // The market: 64,000 steps, from a verified book.
//! let mut now_ns = 1_000_000_000;
//! gate.set_reference(instrument, &Mark { ref_px: Price(64_000), ts_ns: now_ns, is_verified: true })?;
//!
//! let buy = OrderIntent {
//!     client_id: 1,
//!     limit_px: Price(64_010),
//!     qty: Qty(100),
//!     account,
//!     instrument,
//!     side: OrderSide::Buy,
//!     ..OrderIntent::default()
//! };
//! let verdict = gate.evaluate(now_ns, &buy, &mut Off);
//! assert_eq!((verdict.accept, verdict.reasons), (1, Breach::NONE));
//!
//! // A verdict lists every reason, not only the first one.
//! now_ns += 1_000_000;
//! let typo = OrderIntent { limit_px: Price(640_100), qty: Qty(1_000), ..buy };
//! let verdict = gate.evaluate(now_ns, &typo, &mut Off);
//! let reasons: Vec<_> = verdict.reasons.names().collect();
//! assert_eq!(reasons, ["QTY_MAX", "NOTIONAL_MAX", "COLLAR_REF", "POS_LONG", "OPEN_QTY", "DUP_ID"]);
//!
//! // The venue fills the order: open quantity becomes position.
//! gate.apply_fill(&Fill { account, instrument, client_id: 1, side: OrderSide::Buy, qty: Qty(100), is_last: true })?;
//! assert_eq!(gate.exposure(account, instrument).map(|held| (held.position, held.open_orders)), Some((Qty(100), 0)));
//!
//! // Any thread can stop an account.
//! gate.controls().kill(KillSwitch::Account(account));
//! let verdict = gate.evaluate(now_ns, &OrderIntent { client_id: 2, ..buy }, &mut Off);
//! assert!(verdict.reasons.contains(Breach::KILL_ACCOUNT));
//! # Ok(())
//! # }
//! ```
//!
//! # Properties
//!
//! - Each check of an evaluation is computed for every intent and is one bit of a mask. A verdict therefore lists every
//!   reason, and the cost depends neither on the intent nor on the verdict.
//! - The exposure includes an accepted intent at once, in the same evaluation.
//! - Arithmetic is exact, on integers; price times quantity has 128 bits.
//! - Two checks store orders: a client id of an accepted order is rejected for the time of [`Gate::set_id_window`]
//!   (`DUP_ID`), and an order that would match an open order of the same account is rejected until a [`Fill`] or
//!   [`Cancel`] ends that order (`SELF_MATCH`). [`Capacity`] bounds both tables; an order that does not fit is rejected
//!   and counted. [`Gate::evaluate_profile`] with [`Limits::PLAIN`] neither reads nor fills these tables.
//! - A cancel only reduces risk: it is rejected only for an unknown or unpermitted instrument and counts against no rate.
//! - A market order is checked at the reference price.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod client_ids;
mod controls;
mod counters;
mod error;
mod exposure;
mod gate;
mod instrument;
mod limits;
mod multiple;
mod own_orders;
mod rate;

pub use controls::{Controls, KillSwitch};
pub use counters::Counters;
pub use error::GateError;
pub use exposure::{Cancel, Exposure, Fill};
pub use gate::{Capacity, Gate};
pub use instrument::{InstrumentLimits, Mark};
pub use limits::Limits;
pub use own_orders::OwnOrder;
pub use rate::Rate;
