//! The registry: each venue with its folder and its rules.

use crate::detection::{Detection, FrameStart, leads_to};
use crate::error::ParseError;
use crate::event::{Event, EventBuffer};
use crate::rules::Rules;

/// Declares each module and the venues that it registers: `module => Name: RULES "Description", ..;`.
macro_rules! venues {
    ($($venue:ident => $($name:ident: $rules:ident $doc:literal),+;)+) => {
        $(mod $venue;)+

        /// A trading venue. Spot and derivatives of one exchange are separate venues, because their rules differ.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Venue {
            $($(#[doc = concat!($doc, ".")] $name,)+)+
        }

        impl Venue {
            /// All venues, in the order of their counters.
            pub const ALL: [Self; [$($(stringify!($name)),+),+].len()] = [$($(Self::$name),+),+];

            /// Returns the venue's rules.
            #[inline]
            #[must_use]
            pub const fn rules(self) -> &'static Rules {
                match self {
                    $($(Self::$name => &$venue::rules::$rules,)+)+
                }
            }

            /// Reads one WebSocket frame into `buffer`.
            ///
            /// # Errors
            /// A [`ParseError`] that [`is_malformed`](ParseError::is_malformed), `UnknownTopic`, `Refused` or `VenueError`.
            // Not inline: 85 KB of readers, which would be compiled in every crate that calls this.
            pub fn parse(self, frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
                match self {
                    $($(Self::$name)|+ => {
                        let general = $venue::messages::general;
                        read(frame, buffer, $venue::messages::scan, $venue::messages::shapes, general)
                    })+
                }
            }

            /// Reads one frame by the names of its keys in any order, for frames that the faster readers do not know.
            ///
            /// # Errors
            /// As [`parse`](Self::parse).
            pub fn parse_general(self, frame: &[u8], buffer: &mut EventBuffer) -> Result<Event, ParseError> {
                match self {
                    $($(Self::$name)|+ => $venue::messages::general(frame, buffer),)+
                }
            }
        }
    };
}

venues! {
    binance => BinanceSpot: SPOT "Binance spot", BinanceUsdm: USDM "Binance USD-margined futures",
        BinanceCoinm: COINM "Binance coin-margined futures";
    bybit => BybitSpot: SPOT "Bybit spot", BybitLinear: LINEAR "Bybit contracts margined in stablecoins",
        BybitInverse: INVERSE "Bybit contracts margined in coins", BybitOption: OPTION "Bybit options";
    okx => Okx: RULES "OKX, spot and contracts";
    kraken => Kraken: RULES "Kraken, WebSocket version 2",
        KrakenDerivatives: DERIVATIVES "Kraken's derivatives, on its unified WebSocket";
    coinbase_exchange => CoinbaseExchange: RULES "Coinbase Exchange";
    coinbase_advanced => CoinbaseAdvanced: RULES "Coinbase Advanced Trade";
    hyperliquid => Hyperliquid: RULES "Hyperliquid";
    deribit => Deribit: RULES "Deribit";
}

impl Venue {
    /// The number of venues.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the venue's name in configuration, reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.rules().name
    }

    /// Returns the venue of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|venue| venue.name() == name)
    }

    /// Returns the venue that alone sends a frame like this.
    #[must_use]
    pub fn of_frame(frame: &[u8]) -> Option<Self> {
        let start = FrameStart::new(frame);
        let mut found = Self::ALL.into_iter().filter(|venue| (venue.rules().detection.sends)(&start));
        let venue = found.next()?;
        found.next().is_none().then_some(venue)
    }

    /// Returns what is at an address of a WebSocket or REST interface, if it is a venue's.
    #[must_use]
    pub fn of_address(address: &str) -> Option<Origin> {
        let detections = || Self::ALL.into_iter().map(|venue| (venue, venue.rules().detection));
        let is_at = |known: &Detection| known.addresses.iter().any(|pattern| leads_to(address, pattern));
        if let Some((venue, _)) = detections().find(|(_, known)| is_at(known)) {
            return Some(Origin::Venue(venue));
        }
        let mut unsupported = detections().flat_map(|(_, known)| known.unsupported);
        unsupported.find(|(pattern, _)| leads_to(address, pattern)).map(|(_, name)| Origin::Unsupported(name))
    }
}

/// What is at a venue's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An interface that truetick reads.
    Venue(Venue),
    /// The name of an interface that truetick does not read.
    Unsupported(&'static str),
}

/// Reads a frame by the fastest of a venue's readers that knows its form.
#[inline]
fn read(
    frame: &[u8],
    buffer: &mut EventBuffer,
    scan: impl Fn(&[u8], &mut EventBuffer) -> Option<Event>,
    shapes: impl Fn(&[u8], &mut EventBuffer) -> Option<Event>,
    general: impl Fn(&[u8], &mut EventBuffer) -> Result<Event, ParseError>,
) -> Result<Event, ParseError> {
    buffer.clear();
    match scan(frame, buffer) {
        Some(event) => Ok(event),
        None => read_unusual(frame, buffer, shapes, general),
    }
}

/// Reads a frame that is rare, or whose keys are not in their usual order.
#[inline(never)]
fn read_unusual(
    frame: &[u8],
    buffer: &mut EventBuffer,
    shapes: impl Fn(&[u8], &mut EventBuffer) -> Option<Event>,
    general: impl Fn(&[u8], &mut EventBuffer) -> Result<Event, ParseError>,
) -> Result<Event, ParseError> {
    buffer.clear();
    match shapes(frame, buffer) {
        Some(event) => Ok(event),
        None => general(frame, buffer),
    }
}
