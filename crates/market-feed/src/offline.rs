//! The parts of feeds that need neither threads nor sockets, at the caller's times: what the market world plays.

pub use crate::address::{AddressBudget, Fetching, Pace};
pub use crate::updates::{OfflineFeed, OfflineInstrument, OfflineStreams, SentEvent};
pub use tt_status::market_streams::{Sink, StreamCounts, StreamKind};
