//! Plain structs that truetick shows over HTTP and with `--json`: one status per engine, and what charts are drawn from.
//!
//! Times end in their unit. Prices and quantities are decimal text, exact, as the venue writes them. Nothing here reads a
//! clock or waits: the drivers fill these structs from what their engines have published, and the control plane and the
//! bench write them out.

#![forbid(unsafe_code)]

pub mod accounting;
pub mod allocation_messages;
pub mod assets;
pub mod decimal_text;
pub mod distribution;
pub mod interval;
pub mod machine;
pub mod market;
pub mod market_account;
pub mod market_feeds;
pub mod market_streams;
pub mod packed;
pub mod reload;
pub mod risk;
pub mod timing;
pub mod turn;

use std::sync::Arc;

/// Reads one status of an engine. It must not block: the control plane calls it in place.
pub type Reading<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// The file in a result's folder that the page shows.
pub const REPORT_FILE: &str = "report.json";

/// The version of `report.json` that a bench writes and the page reads.
pub const REPORT_FORMAT: u64 = 2;

/// Name of the file in a result's folder that the page's answer is from.
pub const WHY_FILE: &str = "why.json";

/// Format of [`WHY_FILE`], in its `truetick_why`.
pub const WHY_FORMAT: u64 = 1;
