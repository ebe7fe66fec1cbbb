//! The venues: one line each, with its parser and its rules.

use crate::{
    Event, EventBuffer, Fault, Rules, binance, bybit, coinbase_advanced, coinbase_exchange, deribit, hyperliquid,
    kraken, okx,
};

macro_rules! venues {
    ($($parser:ident { $($(#[doc = $doc:literal])+ $name:ident => $rules:ident,)+ })+) => {
        /// Where a connection leads. Spot and derivatives of one exchange are venues of their own: their rules differ.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Venue {
            $($($(#[doc = $doc])+ $name,)+)+
        }

        impl Venue {
            /// All venues, in the order of their counters.
            pub const ALL: [Self; [$($(stringify!($name)),+),+].len()] = [$($(Self::$name),+),+];

            /// The venue's rules.
            #[inline]
            #[must_use]
            pub const fn rules(self) -> &'static Rules {
                match self {
                    $($(Self::$name => &$parser::rules::$rules,)+)+
                }
            }

            /// Reads one WebSocket frame into `buffer`.
            ///
            /// # Errors
            /// A [`Fault`] that [`is_malformed`](Fault::is_malformed), `UnknownTopic`, `Refused` or `VenueError`.
            #[inline]
            pub fn parse(self, frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, Fault> {
                match self {
                    $($(Self::$name)|+ => $parser::parse(frame, buffer),)+
                }
            }

            /// As [`parse`](Self::parse), by the names of the keys in any order: what `parse` falls back to.
            ///
            /// # Errors
            /// As [`parse`](Self::parse).
            pub fn parse_general(self, frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, Fault> {
                match self {
                    $($(Self::$name)|+ => $parser::parse_general(frame, buffer),)+
                }
            }
        }
    };
}

venues! {
    binance {
        /// Binance spot.
        BinanceSpot => SPOT,
        /// Binance USD-margined futures.
        BinanceUsdm => USDM,
        /// Binance coin-margined futures.
        BinanceCoinm => COINM,
    }
    bybit {
        /// Bybit spot.
        BybitSpot => SPOT,
        /// Bybit contracts margined in stablecoins.
        BybitLinear => LINEAR,
        /// Bybit contracts margined in coins.
        BybitInverse => INVERSE,
    }
    okx {
        /// OKX, spot and contracts.
        Okx => RULES,
    }
    kraken {
        /// Kraken, WebSocket version 2.
        Kraken => RULES,
    }
    coinbase_exchange {
        /// Coinbase Exchange.
        CoinbaseExchange => RULES,
    }
    coinbase_advanced {
        /// Coinbase Advanced Trade.
        CoinbaseAdvanced => RULES,
    }
    hyperliquid {
        /// Hyperliquid.
        Hyperliquid => RULES,
    }
    deribit {
        /// Deribit.
        Deribit => RULES,
    }
}

impl Venue {
    /// How many venues there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The rules of the venue's feed that tells a book order by order, where it has one that is read.
    #[must_use]
    pub const fn order_rules(self) -> Option<&'static Rules> {
        match self {
            Self::CoinbaseExchange => Some(&coinbase_exchange::rules::FULL),
            Self::Kraken => Some(&kraken::rules::LEVEL3),
            Self::BinanceSpot
            | Self::BinanceUsdm
            | Self::BinanceCoinm
            | Self::BybitSpot
            | Self::BybitLinear
            | Self::BybitInverse
            | Self::Okx
            | Self::CoinbaseAdvanced
            | Self::Hyperliquid
            | Self::Deribit => None,
        }
    }

    /// The venue's name in configuration, reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.rules().name
    }

    /// The venue of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|venue| venue.name() == name)
    }
}
