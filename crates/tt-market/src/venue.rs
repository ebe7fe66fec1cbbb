//! The venues.

/// Where a connection leads. Spot and derivatives of one exchange are venues of their own: their rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Venue {
    /// Binance spot.
    BinanceSpot,
    /// Binance USD-margined futures.
    BinanceUsdm,
    /// Kraken, WebSocket version 2.
    Kraken,
}

impl Venue {
    /// All venues, in the order of their counters.
    pub const ALL: [Self; 3] = [Self::BinanceSpot, Self::BinanceUsdm, Self::Kraken];
    /// How many venues there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The venue's name in configuration, reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BinanceSpot => "binance_spot",
            Self::BinanceUsdm => "binance_usdm",
            Self::Kraken => "kraken",
        }
    }
}
