//! A pre-trade risk gate: an [`OrderIntent`](tt_model::OrderIntent) in, a [`Verdict`](tt_model::Verdict) with every
//! reason out.
//!
//! The gate checks order quantity, price and notional, position, open quantity and open orders of the firm, the account and
//! the strategy, their exposure, margin, balance and losses in money, message rates, the age and proof of the market's
//! reference price, duplicate client ids, orders that would match the account's own, the sequence and
//! age of intents, and kill switches. It never sends an order. It has no I/O, clock or threads, and allocates only in [`Gate::new`].
//!
//! # The caller's loop
//!
//! 1. [`Gate::new`] allocates all tables. The gate starts closed: it rejects every order.
//! 2. Set the limits: [`Gate::set_firm_limits`], [`Gate::set_route`] and [`Gate::set_node_limits`] of the tree, [`Gate::set_limits`] for each account and instrument, [`Gate::set_instrument_limits`],
//!    [`Gate::set_instrument_rules`], [`Gate::set_account_rate`], [`Gate::set_global_rate`], [`Gate::set_rules`]. Restore
//!    the state: [`Gate::restore`] for each account and instrument, then [`Gate::restore_order`] for each open order and
//!    [`Gate::restore_id`] for each recent client id; [`Gate::resume`] for each producer that ran before.
//! 3. Pass events in the order of their arrival: [`Gate::set_reference`] for market prices, [`Gate::apply`] for the venue's
//!    reports, [`Gate::evaluate`] for intents.
//! 4. Other threads stop orders through [`Controls`]; the next evaluation sees the switch.
//!
//! ```
//! use tt_meter::Off;
//! use tt_model::{Breach, InstrumentId, Notional, OrderIntent, OrderSide, Price, Qty, Report, ReportKind};
//! use tt_risk::{
//!     Capacity, Gate, GateError, InstrumentLimits, InstrumentRules, InstrumentState, KillSwitch, Limits, Mark, Outcome,
//!     Rate, Rules,
//!     tree::{Node, NodeLimits, Route, RowLimits},
//! };
//!
//! # fn main() -> Result<(), GateError> {
//! let (account, instrument) = (0, InstrumentId(0));
//! let mut gate = Gate::new(Capacity { accounts: 1, instruments: 1, producers: 1, orders: 1_000, executions: 10_000,
//!     routes: 1, currencies: 0 });
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
//! gate.set_instrument_rules(instrument, &InstrumentRules { trigger_bps: 500, ..InstrumentRules::default() })?;
//! gate.set_state(instrument, InstrumentState::Open)?;
//! gate.set_account_rate(account, rate)?;
//! gate.set_global_rate(rate);
//! let second_ns = 1_000_000_000;
//! gate.set_rules(&Rules {
//!     id_window_ns: 600 * second_ns,
//!     intent_age_max_ns: second_ns,
//!     cancel_repeat_ns: second_ns / 10,
//!     gap_max_ns: 5 * second_ns,
//!     same_orders_max: 3,
//!     same_window_ns: second_ns,
//!     refusal_rate: Rate { per_second: 10, burst: 100 },
//!     cancel_window_ns: 60 * second_ns,
//!     exec_window_ns: 60 * second_ns,
//!     revalue_max_ns: second_ns / 10,
//!     equity_age_max_ns: 10 * second_ns,
//! });
//!
//! // The tree: the firm, its account, a strategy; and the permission of producer 0.
//! gate.set_firm_limits(instrument, &RowLimits::UNLIMITED)?;
//! gate.set_route(&Route { producer: 0, account, strategy: 0, instrument }, &RowLimits::UNLIMITED)?;
//! gate.set_strategy_rate(account, 0, rate)?;
//! gate.set_node_limits(Node::Firm, &NodeLimits { gross_max: Some(16_000_000), ..NodeLimits::default() })?;
//! gate.restore(account, instrument, Qty(0), 0)?;
//!
//! // The market: 64,000 steps, from a verified book.
//! let mut now_ns = second_ns;
//! let (bid_px, ask_px) = (Price(63_999), Price(64_001));
//! let mark = Mark { ref_px: Price(64_000), bid_px, ask_px, ts_ns: now_ns, is_verified: true, proof_ns: now_ns };
//! gate.set_reference(now_ns, instrument, &mark)?;
//!
//! // A producer numbers its intents from 1.
//! let buy = OrderIntent {
//!     seq: 1,
//!     ts_ns: now_ns,
//!     client_id: 1,
//!     limit_px: Price(64_010),
//!     qty: Qty(100),
//!     account,
//!     instrument,
//!     side: OrderSide::Buy,
//!     ..OrderIntent::default()
//! };
//! let verdict = gate.evaluate(now_ns, 0, &buy, &mut Off);
//! assert_eq!((verdict.accept, verdict.reasons), (1, Breach::NONE));
//!
//! // A verdict lists every reason, not only the first one.
//! now_ns += 1_000_000;
//! let typo = OrderIntent { seq: 2, limit_px: Price(640_100), qty: Qty(1_000), ..buy };
//! let verdict = gate.evaluate(now_ns, 0, &typo, &mut Off);
//! let reasons: Vec<_> = verdict.reasons.names().collect();
//! assert_eq!(reasons, ["QTY_MAX", "NOTIONAL_MAX", "COLLAR_REF", "POS_LONG", "GROSS_EXPOSURE", "OPEN_QTY", "DUP_ID"]);
//!
//! // The venue fills the order: open quantity becomes position. The same execution again changes nothing.
//! let fill = Report {
//!     kind: ReportKind::FILL,
//!     account,
//!     instrument,
//!     client_id: 1,
//!     execution_id: 7001,
//!     qty: Qty(100),
//!     px: Price(64_001),
//!     executed: Qty(100),
//!     ..Report::default()
//! };
//! assert_eq!(gate.apply(now_ns, &fill), Outcome::Applied);
//! assert_eq!(gate.apply(now_ns, &fill), Outcome::Duplicate);
//! assert_eq!(gate.exposure(account, instrument).map(|held| (held.position, held.open_orders)), Some((Qty(100), 0)));
//!
//! // Any thread can stop an account.
//! gate.controls().kill(KillSwitch::Account(account));
//! let verdict = gate.evaluate(now_ns, 0, &OrderIntent { seq: 3, client_id: 2, ..buy }, &mut Off);
//! assert!(verdict.reasons.contains(Breach::KILL_ACCOUNT));
//! # Ok(())
//! # }
//! ```
//!
//! # Properties
//!
//! - A verdict lists every reason. An enabled check whose input is missing or old is a breach. A value equal to a limit
//!   passes.
//! - Each order has a record from its acceptance until its id is forgotten. Acceptance reserves its quantity in the same
//!   evaluation; only a report frees it, and what it frees is what the record says. An execution moves the position once.
//! - No event searches: an order is found by its client id, ends in its place, and the best own price is kept in a tree
//!   whose walks have at most 64 steps.
//! - A report that contradicts the records puts the account in doubt (`UNRECONCILED`) until [`Gate::adopt`].
//! - Cancels pass whatever the state of limits, marks, rates and switches. Exceptions: `INSTRUMENT_UNKNOWN`,
//!   `SEQ_REPLAY`, `MALFORMED`, an order of another strategy (`NOT_PERMITTED`), and a repeat within
//!   [`Rules::cancel_repeat_ns`] (`RATE_INSTRUMENT`). A replace that only lowers the quantity is judged as a cancel.
//! - A replace reserves the larger of the old and the new quantity until it is answered, and their sum where the venue does
//!   not replace atomically.
//! - Arithmetic is exact, on integers; price times quantity has 128 bits. Money is rounded against the order.
//! - Firm, account and strategy judge each order. An order that would leave a node's position in the instrument at or
//!   beyond zero on the other side reduces it, and passes that node's limits of positions, exposure, margin and losses.
//! - A sum in money with a part that is not known (no mark, an old one, no rate) is a breach of each of its limits.
//! - After a change of a mark each event values 32 positions again. While that takes longer than
//!   [`Rules::revalue_max_ns`], orders have the reason `MD_STALE`.
//! - [`Capacity`] bounds all tables. An order for which there is no room has the reason `CAPACITY`.
//! - [`Evaluator`] is the part without orders, as the published rows time it. [`Screen`] asks it about many orders at once
//!   and changes nothing.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod controls;
mod counters;
mod error;
mod evaluator;
mod executions;
mod exposure;
mod fields;
mod gate;
mod index;
mod instrument;
mod levels;
mod limits;
pub mod money;
mod multiple;
mod orders;
mod outcome;
mod rate;
mod screen;
pub mod tree;
mod window;

pub use controls::{Controls, KillSwitch, Mode};
pub use counters::Counters;
pub use error::GateError;
pub use evaluator::Evaluator;
pub use exposure::Exposure;
pub use gate::{Capacity, Gate, OpenOrder, Rules};
pub use instrument::{InstrumentLimits, InstrumentRules, InstrumentState, Mark};
pub use limits::Limits;
pub use outcome::Outcome;
pub use rate::Rate;
pub use screen::Screen;
