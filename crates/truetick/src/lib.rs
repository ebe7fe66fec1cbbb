//! truetick's binary as a library: command line, configuration, threads and HTTP around the engines.
//!
//! Each subcommand is a module with its `Args` and a `run(args, &Config)`. What several of them share is the
//! configuration file ([`config`]) and the way to end ([`shutdown`]).

#![forbid(unsafe_code)]

pub mod audit;
pub mod bench;
pub mod cli;
pub mod clock;
pub mod config;
mod decimal;
mod faults;
pub mod floor;
pub mod http;
pub mod market;
mod output;
mod pulse;
pub mod record;
pub mod replay;
pub mod risk;
pub mod serve;
pub mod shutdown;
pub mod simulate;
pub mod timing;
pub mod turn;
