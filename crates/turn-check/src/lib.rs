//! Checks of a TURN server from outside: what a client gets over UDP, TCP and TLS.
//!
//! [`check`] connects over each transport of a [`Target`], asks for a Binding, allocates with and without a valid
//! credential, asks for private peers and relays messages between two allocations. It sends nothing to anyone but the
//! server, and ends its allocations.

#![forbid(unsafe_code)]

mod allocation;
mod certificate;
mod client;
mod conform;
mod link;
mod report;
mod steps;
mod target;

pub use allocation::{Allocation, MappedAddress, mapped_address};
pub use client::Login;
pub use conform::{Check, ConformOptions, Conformance, Judgement, Level, Scoreboard, ScoreboardRow, checks};
pub use link::roots_of;
pub use report::{Outcome, Report, Row};
pub use rustls::RootCertStore as Roots;
pub use steps::{Options, check};
pub use target::{Target, TargetError, Transport};
