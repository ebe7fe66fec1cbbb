//! Command line and wiring of truetick.
//!
//! Each subcommand is a module with its `Args` and a `run` function. The configuration file ([`config`]) assembles the
//! sections that the drivers and the control plane own. Cargo features add commands.

#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod logs;

#[cfg(feature = "market")]
pub mod audit;
#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "turn")]
pub mod check;
#[cfg(feature = "turn")]
pub mod conform;
#[cfg(any(feature = "market", feature = "risk", feature = "turn"))]
mod control_state;
#[cfg(feature = "turn")]
pub mod credential;
#[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
mod demo;
#[cfg(any(feature = "market", feature = "turn"))]
pub mod doctor;
#[cfg(feature = "bench")]
pub mod floor;
#[cfg(feature = "risk")]
pub mod gate;
#[cfg(feature = "turn")]
pub mod import;
#[cfg(any(feature = "market", feature = "turn"))]
#[cfg(feature = "turn")]
mod login;
pub mod manual;
#[cfg(feature = "market")]
pub mod market;
#[cfg(feature = "market")]
pub mod record;
#[cfg(any(feature = "market", feature = "turn"))]
mod reload;
#[cfg(feature = "market")]
pub mod replay;
#[cfg(any(feature = "bench", all(feature = "market", feature = "risk", feature = "turn")))]
mod results;
#[cfg(feature = "risk")]
pub mod risk;
#[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
pub mod serve;
#[cfg(feature = "simulate")]
pub mod simulate;
#[cfg(feature = "market")]
mod simulated_venues;
#[cfg(feature = "turn")]
pub mod stun;
#[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
mod tour;
#[cfg(feature = "turn")]
pub mod turn;
#[cfg(feature = "market")]
pub mod up;
#[cfg(feature = "bench")]
pub mod why;
