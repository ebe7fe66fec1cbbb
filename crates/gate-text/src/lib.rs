//! Text of the pre-trade gate, for people and other programs.
//!
//! [`EventLine`] is an event as a line of JSON, which becomes an input of the gate; [`explain_verdict`] says in words why
//! a verdict of a journal is as it is. `risk_gate` runs the gate; this crate is separate so that only code that runs for
//! each order is optimised for speed.

#![forbid(unsafe_code)]

mod event_line;
mod explain;

pub use event_line::{EVENT_PRODUCER, EventLine, INTENT_KINDS, Moment, REPORT_KINDS};
pub use explain::{explain, explain_verdict};
