//! The control plane over HTTP: the page, the JSON interfaces, live streams and Prometheus metrics.
//!
//! [`start`] serves a [`State`] from one thread with its own runtime. Everything is read through [`Reading`]s of what
//! the engines have published, so a request never waits for an engine and an engine never waits for a request. The only
//! writes are the end of a TURN allocation ([`AllocationAdmin`]), modes and limits of the gate ([`GateAdmin`]), and changes
//! of feeds ([`FeedAdmin`]), all with the [`ApiToken`].
//!
//! [`FeedAdmin`]: tt_status::market_feeds::FeedAdmin
//! [`AllocationAdmin`]: tt_status::turn::AllocationAdmin
//! [`GateAdmin`]: tt_status::risk::GateAdmin
//! [`Reading`]: tt_status::Reading

#![forbid(unsafe_code)]

#[cfg(feature = "market")]
mod account;
mod allocations;
mod answer;
#[cfg(feature = "market")]
mod candles;
mod connections;
#[cfg(feature = "market")]
mod feeds;
mod gate;
mod guard;
mod history;
mod incident;
pub mod kept_report;
mod live;
mod machine;
#[cfg(feature = "market")]
mod market;
mod metrics;
mod operator;
mod page;
mod passes;
mod past;
mod reload;
mod report;
mod risk;
mod section;
mod server;
mod simulator;
mod snapshot;
mod state;
#[cfg(feature = "market")]
mod streams;
mod token;
mod turn;
#[cfg(feature = "market")]
mod websocket;
#[cfg(feature = "market")]
mod wire;

pub use section::{DEFAULT_LISTEN, HttpSection, MetricsNames};
pub use server::{Running, start, start_on};
pub use state::{Admin, State};
pub use token::ApiToken;

#[cfg(test)]
mod tests;
