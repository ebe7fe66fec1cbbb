//! Instruments of each venue: names, price steps, quantity steps.

/// The key under which the simulated Binance venues stream the account's own orders: a stream's name like any other.
pub const LISTEN_KEY: &str = "pqia91ma19a5s61cv6a81va65sdf19v8a65a1a5s61cv6a81va65sdf19v8a65a1";

/// A simulated venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Venue {
    /// Binance spot: `/ws`, `/stream`, `/api/v3`.
    BinanceSpot,
    /// Binance USD-M futures: `/ws`, `/stream`, `/fapi/v1`.
    BinanceUsdm,
    /// Kraken v2: `/v2`; derivatives: `/v2/public`.
    Kraken,
    /// OKX v5: `/ws/v5/public`, `/api/v5`.
    Okx,
    /// Bybit v5, linear perpetuals: `/v5/public/linear`, `/v5/market`; options: `/v5/public/option`.
    Bybit,
    /// Deribit: `/ws/api/v2`, `/api/v2/public`.
    Deribit,
}

impl Venue {
    /// All venues, in the order of their discriminants.
    pub const ALL: [Self; 6] =
        [Self::BinanceSpot, Self::BinanceUsdm, Self::Kraken, Self::Okx, Self::Bybit, Self::Deribit];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();
    /// The venue of the end-to-end benchmark.
    pub const MEASURED: Self = Self::BinanceUsdm;

    /// Returns the name by which a client knows the venue.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BinanceSpot => "binance_spot",
            Self::BinanceUsdm => "binance_usdm",
            Self::Kraken => "kraken",
            Self::Okx => "okx",
            Self::Bybit => "bybit_linear",
            Self::Deribit => "deribit",
        }
    }

    /// Returns the path of the WebSocket.
    #[must_use]
    pub const fn streams_path(self) -> &'static str {
        match self {
            Self::BinanceSpot => "/stream",
            Self::BinanceUsdm => "/public/stream",
            Self::Kraken => "/v2",
            Self::Okx => "/ws/v5/public",
            Self::Bybit => "/v5/public/linear",
            Self::Deribit => "/ws/api/v2",
        }
    }

    /// Returns the path of the snapshots by REST, if the venue has them.
    #[must_use]
    pub const fn snapshots_path(self) -> Option<&'static str> {
        match self {
            Self::BinanceSpot => Some("/api/v3/depth"),
            Self::BinanceUsdm => Some("/fapi/v1/depth"),
            Self::Okx => Some("/api/v5/market/books"),
            Self::Kraken | Self::Bybit | Self::Deribit => None,
        }
    }

    /// Returns the listen key that streams an account's orders on the public WebSocket, if the venue has one.
    #[must_use]
    pub const fn listen_key(self) -> Option<&'static str> {
        match self {
            Self::BinanceSpot | Self::BinanceUsdm => Some(LISTEN_KEY),
            Self::Kraken | Self::Okx | Self::Bybit | Self::Deribit => None,
        }
    }

    /// Returns whether the simulated venue streams liquidations.
    #[must_use]
    pub const fn has_liquidations(self) -> bool {
        matches!(self, Self::BinanceUsdm)
    }
}

/// An instrument of one venue. Prices and quantities everywhere in this crate are whole steps of these sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// The venue's text: `BTCUSDT`, `BTC/USD`.
    pub symbol: String,
    /// The asset that is traded.
    pub base: String,
    /// The asset that it is priced in.
    pub quote: String,
    /// One price step is 10^-`px_decimals`.
    pub px_decimals: u32,
    /// One quantity step is 10^-`qty_decimals`.
    pub qty_decimals: u32,
    /// The price about which the script starts, in steps.
    pub start_px: i64,
    /// Levels that are drawn for each side at the start, of which some fall together; the script stays below twice as many.
    pub levels: u32,
    /// A side never has fewer levels than this, or than half of the prices below the start if that is less.
    pub levels_min: u32,
    /// Whether it is traded.
    pub standing: Standing,
    /// Whether it is an option.
    pub is_option: bool,
}

/// Whether a venue trades an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It is traded.
    #[default]
    Trading,
    /// The list says that trading is interrupted, and nothing is sent of it.
    Suspended,
    /// The venue lists it no longer, and knows no such symbol.
    Delisted,
}

impl Standing {
    /// The word of a venue that says `trading` of what is traded, and `suspended` of what is not.
    pub(crate) const fn word(self, trading: &'static str, suspended: &'static str) -> &'static str {
        match self {
            Self::Trading => trading,
            Self::Suspended | Self::Delisted => suspended,
        }
    }
}

/// [`Instrument::levels`] by default.
const LEVELS: u32 = 160;
/// [`Instrument::levels_min`] by default.
const LEVELS_MIN: u32 = 60;

/// Base asset, price in hundredths of the quote, decimals of its price at each venue in the order of [`Venue::ALL`].
const NAMED: [(&str, i64, [u32; Venue::COUNT]); 8] = [
    ("BTC", 6_183_763, [2, 1, 1, 1, 2, 1]),
    ("ETH", 262_405, [2, 2, 2, 2, 2, 2]),
    ("SOL", 15_480, [2, 2, 2, 2, 3, 2]),
    ("XRP", 58, [4, 4, 5, 4, 4, 4]),
    ("LTC", 5_980, [2, 2, 2, 2, 2, 2]),
    ("ADA", 34, [4, 4, 6, 4, 4, 4]),
    ("DOGE", 11, [5, 5, 7, 5, 5, 5]),
    ("LINK", 1_042, [2, 3, 5, 3, 3, 3]),
];

/// Kraken's derivatives: symbols, and decimals of their quantities.
const DERIVATIVES: [(&str, u32); 3] = [("PF_XBTUSD", 4), ("PI_XBTUSD", 0), ("FF_XBTUSD_270326", 4)];

/// Kraken's symbols of tokenized stocks.
const STOCKS: [&str; 3] = ["AAPLx", "TSLAx", "SPYx"];

impl Instrument {
    /// The first `count` instruments of `venue`: real names first, then made-up ones.
    #[must_use]
    pub fn list(venue: Venue, count: u32) -> Vec<Self> {
        Self::list_after(venue, count, "")
    }

    /// As `list`, with `prefix` before the names of the base assets.
    pub(crate) fn list_after(venue: Venue, count: u32, prefix: &str) -> Vec<Self> {
        (0..count as usize).map(|i| Self::nth(venue, i, prefix)).collect()
    }

    /// `count` options of Bybit: calls and puts on BTC, each two with another strike.
    pub(crate) fn options(count: u32, prefix: &str) -> Vec<Self> {
        let base = format!("{prefix}BTC");
        let option = |i: u32| {
            let (strike, right) = (50_000 + 1_000 * (i / 2), if i.is_multiple_of(2) { 'C' } else { 'P' });
            let symbol = format!("{base}-26MAR27-{strike}-{right}-USDT");
            let start_px = i64::from(2_000 + 5 * i);
            Self {
                symbol,
                base: base.clone(),
                px_decimals: 0,
                qty_decimals: 2,
                start_px,
                is_option: true,
                ..Self::nth(Venue::Bybit, 0, "")
            }
        };
        (0..count).map(option).collect()
    }

    /// `count` tokenized stocks of Kraken.
    pub(crate) fn stocks(count: u32) -> Vec<Self> {
        let stock = |base: &str| Self {
            symbol: format!("{base}/USD"),
            base: base.to_owned(),
            px_decimals: 2,
            start_px: 23_150,
            ..Self::nth(Venue::Kraken, 0, "")
        };
        STOCKS.into_iter().take(count as usize).map(stock).collect()
    }

    /// `count` derivatives of Kraken on BTC.
    pub(crate) fn derivatives(count: u32) -> Vec<Self> {
        let derivative = |(symbol, qty_decimals): (&str, u32)| Self {
            symbol: symbol.to_owned(),
            qty_decimals,
            ..Self::nth(Venue::Kraken, 0, "")
        };
        DERIVATIVES.into_iter().take(count as usize).map(derivative).collect()
    }

    /// The same with at least `levels` levels on each side.
    pub(crate) fn with_levels(self, levels: u32) -> Self {
        Self { levels: levels.max(LEVELS), levels_min: levels, ..self }
    }

    /// Whether it is a tokenized stock, which Kraken lists only for who asks for those.
    pub(crate) fn is_stock(&self) -> bool {
        STOCKS.contains(&self.base.as_str())
    }

    /// Whether it is a derivative of Kraken, which its unified WebSocket alone serves.
    pub(crate) fn is_kraken_derivative(&self) -> bool {
        DERIVATIVES.iter().any(|(symbol, _)| *symbol == self.symbol)
    }

    /// The strike and the right of an option (`C`, `P`).
    pub(crate) fn option_terms(&self) -> Option<(&str, &str)> {
        let mut parts = self.symbol.split('-').skip(2).filter(|_| self.is_option);
        parts.next().zip(parts.next())
    }

    fn nth(venue: Venue, i: usize, prefix: &str) -> Self {
        let (base, cents, decimals) = match NAMED.get(i) {
            Some(&(base, cents, decimals)) => (base.to_owned(), cents, decimals),
            None => (format!("S{i:04}"), 100 + (i as i64 * 7919) % 90_000, [3, 3, 4, 3, 3, 3]),
        };
        let base = format!("{prefix}{base}");
        let px_decimals = decimals[venue as usize];
        let (quote, qty_decimals) = match venue {
            Venue::BinanceSpot => ("USDT", 5),
            Venue::BinanceUsdm | Venue::Bybit => ("USDT", 3),
            Venue::Kraken => ("USD", 8),
            Venue::Okx => ("USDT", 8),
            Venue::Deribit => ("USD", 0),
        };
        let symbol = match venue {
            Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Bybit => format!("{base}{quote}"),
            Venue::Kraken => format!("{base}/{quote}"),
            Venue::Okx => format!("{base}-{quote}"),
            Venue::Deribit => format!("{base}-PERPETUAL"),
        };
        Self {
            symbol,
            base,
            quote: quote.to_owned(),
            px_decimals,
            qty_decimals,
            start_px: cents * 10_i64.pow(px_decimals) / 100,
            levels: LEVELS,
            levels_min: LEVELS_MIN,
            standing: Standing::Trading,
            is_option: false,
        }
    }

    /// Decimal places in which the venue prints prices.
    pub(crate) fn px_places(&self, venue: Venue) -> u32 {
        match venue {
            Venue::BinanceSpot => 8,
            Venue::BinanceUsdm => 2.max(self.px_decimals),
            Venue::Kraken | Venue::Okx | Venue::Bybit => self.px_decimals,
            // Numbers, which its gateway prints as Python does: at least one decimal.
            Venue::Deribit => 1.max(self.px_decimals),
        }
    }

    /// Decimal places in which the venue prints quantities.
    pub(crate) const fn qty_places(&self, venue: Venue) -> u32 {
        match venue {
            Venue::BinanceSpot => 8,
            Venue::BinanceUsdm | Venue::Kraken | Venue::Okx | Venue::Bybit => self.qty_decimals,
            Venue::Deribit => {
                if self.qty_decimals == 0 {
                    1
                } else {
                    self.qty_decimals
                }
            }
        }
    }
}
