//! Shared data types of truetick's engines: prices, quantities, times, addresses, order intents and verdicts.
//!
//! Plain values that engines and their callers exchange. Prices and quantities are integers in steps of their
//! instrument, times are nanoseconds, addresses are those of `core::net`. No type here has state, I/O or a clock.
//!
//! ```
//! use tt_model::{IntentKind, Notional, OrderIntent, OrderSide, Price, Qty};
//!
//! // Buy 0.5 BTC at 64,000.10 USDT: tick size 0.01, lot 0.001.
//! let intent = OrderIntent {
//!     seq: 1,
//!     client_id: 42,
//!     limit_px: Price(6_400_010),
//!     qty: Qty(500),
//!     kind: IntentKind::LIMIT,
//!     side: OrderSide::Buy,
//!     ..OrderIntent::default()
//! };
//! assert_eq!(Notional::of(intent.limit_px, intent.qty), Notional(3_200_005_000));
//!
//! // In a ring the terms take 56 bytes; the ring numbers them.
//! assert_eq!(intent.terms().numbered(1), intent);
//! ```

#![no_std]
#![forbid(unsafe_code)]

mod decimal;
mod intent;
mod net;
mod quantity;
mod random;
mod range;
mod report;
mod sort;
mod verdict;

pub use decimal::{Decimal, DecimalError};
pub use intent::{IntentFlags, IntentKind, OrderIntent, OrderSide, OrderTerms, TimeInForce};
pub use net::{FiveTuple, IpFamily, Transport};
pub use quantity::{InstrumentId, Nanos, Notional, Price, Qty};
pub use random::SplitMix64;
pub use range::ByteRange;
pub use report::{Report, ReportKind};
pub use sort::{sort_short_by, sort_short_by_key};
pub use verdict::{Breach, Notes, Verdict};
