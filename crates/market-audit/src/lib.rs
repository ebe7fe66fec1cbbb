//! Audit of market-data recordings, of truetick and others, with the whole engine.
//!
//! ```no_run
//! use market_audit::{Failed, as_text, examine};
//!
//! # fn main() -> anyhow::Result<()> {
//! // The trigger ends the audit from another thread.
//! let (_trigger, shutdown) = tt_os::shutdown::pair();
//! match examine(&["day.ttj".into()], None, &shutdown) {
//!     Ok(examined) => println!("{}", as_text(&examined, 1.0)),
//!     Err(Failed::Unreadable(reason)) => eprintln!("{reason}"),
//!     Err(Failed::Ended) => {}
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod examiner;
mod finding;
mod instrument;
mod orders;
mod recorded;
mod report;
mod skew;
mod source;
mod steps;
mod timers;

pub use report::{as_json, as_text};
pub use source::{Examined, Failed, examine};
