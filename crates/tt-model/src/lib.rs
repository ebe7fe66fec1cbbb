//! Plain values that cross truetick's boundaries: between an engine and its caller, and between engines.
//!
//! Nothing here has behaviour beyond checked conversion. Prices and quantities are integers in steps of their
//! instrument, time is nanoseconds, addresses are `core::net` addresses.

#![no_std]
#![forbid(unsafe_code)]

mod intent;
mod net;
mod quantity;
mod verdict;

pub use intent::{IntentFlags, IntentKind, OrderIntent, OrderSide, OrderTerms, TimeInForce};
pub use net::{FiveTuple, Transport};
pub use quantity::{InstrumentId, Nanos, Notional, Price, Qty};
pub use verdict::{Breach, Verdict};
