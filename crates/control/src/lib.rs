//! The control plane over HTTP: the page, the JSON interfaces, live streams and Prometheus metrics.
//!
//! [`start`] serves a [`State`] from one thread with its own runtime. Everything is read through [`Reading`]s of what
//! the engines have published, so a request never waits for an engine and an engine never waits for a request. The only
//! write is the end of a TURN allocation, through [`AllocationAdmin`] and with the [`ApiToken`].
//!
//! [`AllocationAdmin`]: tt_status::turn::AllocationAdmin
//! [`Reading`]: tt_status::Reading

#![forbid(unsafe_code)]

mod allocations;
mod answer;
mod connections;
mod guard;
mod live;
mod machine;
#[cfg(feature = "market")]
mod market;
mod metrics;
mod page;
mod passes;
mod report;
mod risk;
mod section;
mod server;
mod snapshot;
mod state;
#[cfg(feature = "market")]
mod streams;
mod token;
mod turn;
#[cfg(feature = "market")]
mod websocket;

pub use section::{DEFAULT_LISTEN, HttpSection};
pub use server::{Running, start};
pub use state::{Admin, State};
pub use token::ApiToken;

#[cfg(test)]
mod tests;
