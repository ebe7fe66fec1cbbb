//! The pre-trade risk gate: an [`OrderIntent`](tt_model::OrderIntent) in, a [`Verdict`](tt_model::Verdict) out.
//!
//! The loop of the caller, on one thread:
//!
//! 1. [`Gate::new`] allocates everything. Nothing passes yet: the gate fails closed.
//! 2. Say what is allowed: [`Gate::set_limits`] for each account and instrument, [`Gate::set_instrument_limits`],
//!    [`Gate::set_account_rate`], [`Gate::set_global_rate`]; and what is there already: [`Gate::restore`], then
//!    [`Gate::restore_order`] for each open order and [`Gate::restore_id`] for what was sent of late.
//! 3. For each event, in the order of their arrival: market [`Mark`]s through [`Gate::set_reference`], [`Fill`]s and
//!    [`Cancel`]s through [`Gate::apply_fill`] and [`Gate::apply_cancel`], intents through [`Gate::evaluate`].
//! 4. Other threads stop orders through [`Controls`]; the next evaluation sees it.
//!
//! Every check of an evaluation is computed for every intent as one bit of a mask, so a verdict names every reason, and
//! its cost depends neither on the intent nor on the answer. The exposure takes an accepted intent in the same step.
//! All arithmetic is on whole numbers and exact; a product of price and quantity has 128 bits.
//!
//! Two checks remember orders. A client id that an account used for an accepted order is refused for as long as
//! [`Gate::set_id_window`] says. An order that would meet an open one of its account on the other side is refused; the
//! gate learns of its end by [`Fill`] and [`Cancel`] with its client id. Both tables are bounded by [`Capacity`], and
//! what finds no room in them is refused and counted. An evaluation whose profile leaves them out
//! ([`Limits::PLAIN`]) does not fill them either.
//!
//! A cancel only takes risk away: it is refused for an unknown or unpermitted instrument alone, and counts against no
//! rate. A market order is judged at the reference price.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod client_ids;
mod controls;
mod counters;
mod exposure;
mod gate;
mod instrument;
mod limits;
mod multiple;
mod own_orders;
mod rate;

pub use controls::{Controls, KillSwitch};
pub use counters::Counters;
pub use exposure::{Cancel, Exposure, Fill};
pub use gate::{Capacity, Fault, Gate};
pub use instrument::{InstrumentLimits, Mark};
pub use limits::Limits;
pub use own_orders::OwnOrder;
pub use rate::Rate;
