//! Price and quantity steps, from the venue's own list of instruments.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use serde_json::Value;
use tokio_tungstenite::tungstenite::{self, Message};
use tt_market::rules::Instruments;
use tt_market::{ContractUnit, Decimal, Venue};
use tt_meter::Clock;

use super::dial::Target;
use super::rest::{self, Answer, Ask};
use super::settings::FeedConfig;
use super::socket;

/// Symbols that one request names.
const SYMBOLS_PER_REQUEST: usize = 50;

/// An instrument as its venue lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    /// The venue's symbol.
    pub(super) symbol: String,
    /// `BTC/USDT` on spot markets, `BTC/USDT:USDT` for a perpetual that settles in USDT.
    pub(super) name: String,
    /// The price step.
    pub(super) tick_size: Decimal,
    /// The quantity step.
    pub(super) lot_size: Decimal,
    /// What one unit of quantity is.
    pub(super) unit: ContractUnit,
}

/// Why there is no listing.
#[derive(Debug)]
pub(super) enum NotListed {
    /// The venue is not there, or not able to answer: another time it may be.
    Unreached {
        /// The reason.
        error: anyhow::Error,
        /// How long the venue wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// Asking again would not help: no such address, or no such symbol.
    Refused(anyhow::Error),
}

impl NotListed {
    /// The reason.
    pub(super) fn into_error(self) -> anyhow::Error {
        match self {
            Self::Unreached { error, .. } | Self::Refused(error) => error,
        }
    }
}

/// What is no failure to reach the venue is wrong with the question.
impl From<anyhow::Error> for NotListed {
    fn from(error: anyhow::Error) -> Self {
        Self::Refused(error)
    }
}

/// The listings of all symbols of `feed`, in its order.
///
/// # Errors
/// The venue cannot be reached, or does not list one of the symbols.
pub(super) async fn fetch(feed: &FeedConfig, clock: Clock) -> Result<Vec<Listing>, NotListed> {
    let listed = list(feed, clock).await?;
    let find = |symbol: &String| {
        let found = listed.entries.iter().find(|listing| listing.symbol == *symbol);
        found.cloned().with_context(|| format!("{} does not list {symbol}", feed.venue.name()))
    };
    Ok(feed.symbols.iter().map(find).collect::<anyhow::Result<_>>()?)
}

/// What a venue lists.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Every instrument, or at least those of the feed's symbols that there are.
    pub(super) entries: Vec<Listing>,
    /// The venue's time of its last answer by REST, to the second (`Date`).
    pub(super) date: Option<String>,
}

/// The venue's whole list, where it has one in one place; else what it says of the feed's symbols.
///
/// # Errors
/// The venue cannot be reached, or refuses the question.
pub(super) async fn list(feed: &FeedConfig, clock: Clock) -> Result<Listed, NotListed> {
    Target::of(&feed.streams)?;
    feed.rest.as_ref().map(Target::of).transpose()?;
    let mut listed = Listed::default();
    match feed.venue.rules().instruments {
        Instruments::Named(path) => {
            for symbols in feed.symbols.chunks(SYMBOLS_PER_REQUEST) {
                let quoted: Vec<String> = symbols.iter().map(|symbol| format!("%22{symbol}%22")).collect();
                let path = path.replace("{symbols}", &quoted.join(","));
                listed.add(feed, &path, Ask::get(), clock).await?;
            }
        }
        Instruments::Lists(paths) => {
            for path in paths {
                listed.add(feed, path, Ask::get(), clock).await?;
            }
        }
        Instruments::Posted(path, bodies) => {
            for body in bodies {
                listed.add(feed, path, Ask::post("application/json", (*body).to_owned()), clock).await?;
            }
        }
        Instruments::Socket(request) => {
            let body = socket_list(feed, request, clock).await.map_err(unreached)?;
            listed.entries.extend(listings(&body, feed.venue));
        }
    }
    Ok(listed)
}

impl Listed {
    async fn add(&mut self, feed: &FeedConfig, path: &str, asked: Ask, clock: Clock) -> Result<(), NotListed> {
        let uri = feed.rest_uri(path)?;
        let answer = rest_answer(&uri, asked, clock).await?;
        let body = serde_json::from_slice(&answer.body).with_context(|| format!("{uri}: no JSON"))?;
        self.entries.extend(listings(&body, feed.venue));
        self.date = answer.date.or(self.date.take());
        Ok(())
    }
}

async fn rest_answer(uri: &Uri, asked: Ask, clock: Clock) -> Result<Answer, NotListed> {
    rest::ask(uri, asked, clock).await.map_err(|failed| {
        let error = anyhow::anyhow!("{uri}: {}", failed.reason);
        if failed.is_final {
            NotListed::Refused(error)
        } else {
            NotListed::Unreached { error, retry_after: failed.retry_after }
        }
    })
}

/// The entries of a venue's list.
fn listings(body: &Value, venue: Venue) -> Vec<Listing> {
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm => binance(body, venue),
        Venue::Kraken => kraken(body),
        Venue::CoinbaseExchange => coinbase(body.as_array(), "id"),
        Venue::CoinbaseAdvanced => coinbase(body.get("products").and_then(Value::as_array), "product_id"),
        Venue::Hyperliquid => hyperliquid(body),
        Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse => bybit(body),
        Venue::Okx => okx(body),
        Venue::Deribit => deribit(body),
    }
}

/// The text of a field.
fn text(entry: &Value, key: &str) -> Option<String> {
    entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The exact number of a field, in quotes or not.
fn number(entry: &Value, key: &str) -> Option<Decimal> {
    let value = entry.get(key)?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Decimal::parse(text.as_bytes()).ok()
}

/// `BTC/USDT`, or `BTC/USDT:USDT` for what settles in USDT.
fn named(base: &str, quote: &str, settle: Option<String>) -> String {
    settle.map_or_else(|| format!("{base}/{quote}"), |settle| format!("{base}/{quote}:{settle}"))
}

fn bybit(body: &Value) -> Vec<Listing> {
    let listing = |entry: &Value| {
        let (px, qty) = (entry.get("priceFilter")?, entry.get("lotSizeFilter")?);
        Some(Listing {
            symbol: text(entry, "symbol")?,
            name: named(&text(entry, "baseCoin")?, &text(entry, "quoteCoin")?, text(entry, "settleCoin")),
            tick_size: number(px, "tickSize")?,
            lot_size: number(qty, "qtyStep").or_else(|| number(qty, "basePrecision"))?,
            unit: match text(entry, "contractType") {
                // Bybit counts inverse contracts in US dollars.
                Some(kind) if kind.starts_with("Inverse") => ContractUnit::Inverse(Decimal::new(1, 0)),
                Some(_) | None => ContractUnit::Base,
            },
        })
    };
    body.pointer("/result/list").and_then(Value::as_array).into_iter().flatten().filter_map(listing).collect()
}

fn okx(body: &Value) -> Vec<Listing> {
    let listing = |entry: &Value| {
        let family =
            || text(entry, "uly").and_then(|uly| uly.split_once('-').map(|(a, b)| (a.to_owned(), b.to_owned())));
        let (base, quote) = text(entry, "baseCcy").zip(text(entry, "quoteCcy")).or_else(family)?;
        Some(Listing {
            symbol: text(entry, "instId")?,
            name: named(&base, &quote, text(entry, "settleCcy")),
            tick_size: number(entry, "tickSz")?,
            lot_size: number(entry, "lotSz")?,
            unit: okx_unit(entry)?,
        })
    };
    body.get("data").and_then(Value::as_array).into_iter().flatten().filter_map(listing).collect()
}

/// A contract over `ctVal` times `ctMult` of the base asset, or of the quote asset where it is inverse.
fn okx_unit(entry: &Value) -> Option<ContractUnit> {
    let size = || {
        let (value, times) = (number(entry, "ctVal")?, number(entry, "ctMult").unwrap_or(Decimal::new(1, 0)));
        Some(Decimal::new(value.mantissa.checked_mul(times.mantissa)?, value.decimals.checked_add(times.decimals)?))
    };
    match text(entry, "ctType").as_deref() {
        Some("linear") => size().map(ContractUnit::Linear),
        Some("inverse") => size().map(ContractUnit::Inverse),
        Some(_) | None => Some(ContractUnit::Base),
    }
}

fn deribit(body: &Value) -> Vec<Listing> {
    let listing = |entry: &Value| {
        Some(Listing {
            symbol: text(entry, "instrument_name")?,
            name: named(
                &text(entry, "base_currency")?,
                &text(entry, "quote_currency")?,
                text(entry, "settlement_currency"),
            ),
            tick_size: number(entry, "tick_size")?,
            lot_size: number(entry, "min_trade_amount")?,
            unit: match text(entry, "instrument_type").as_deref() {
                // Amounts of inverse futures and perpetuals are US dollars; those of options are the base asset.
                Some("reversed") if text(entry, "kind").is_some_and(|kind| kind.starts_with("future")) => {
                    ContractUnit::Inverse(Decimal::new(1, 0))
                }
                Some(_) | None => ContractUnit::Base,
            },
        })
    };
    body.get("result").and_then(Value::as_array).into_iter().flatten().filter_map(listing).collect()
}

fn binance(body: &Value, venue: Venue) -> Vec<Listing> {
    let step = |entry: &Value, filter: &str, key: &str| {
        let filters = entry.get("filters")?.as_array()?;
        let found = filters.iter().find(|known| known.get("filterType").and_then(Value::as_str) == Some(filter))?;
        Decimal::parse(text(found, key)?.as_bytes()).ok()
    };
    let listing = |entry: &Value| {
        let (base, quote) = (text(entry, "baseAsset")?, text(entry, "quoteAsset")?);
        let name = if venue != Venue::BinanceSpot {
            format!("{base}/{quote}:{}", text(entry, "marginAsset").unwrap_or_else(|| quote.clone()))
        } else {
            format!("{base}/{quote}")
        };
        Some(Listing {
            symbol: text(entry, "symbol")?,
            name,
            tick_size: step(entry, "PRICE_FILTER", "tickSize")?,
            lot_size: step(entry, "LOT_SIZE", "stepSize")?,
            unit: if venue == Venue::BinanceCoinm {
                ContractUnit::Inverse(number(entry, "contractSize")?)
            } else {
                ContractUnit::Base
            },
        })
    };
    body.get("symbols").and_then(Value::as_array).into_iter().flatten().filter_map(listing).collect()
}

/// Products with their steps: both feeds of Coinbase name them alike, but for the product itself.
fn coinbase(products: Option<&Vec<Value>>, key: &str) -> Vec<Listing> {
    let step = |product: &Value, key: &str| Decimal::parse(product.get(key)?.as_str()?.as_bytes()).ok();
    let listing = |product: &Value| {
        let symbol = product.get(key)?.as_str()?.to_owned();
        let tick_size = step(product, "price_increment").or_else(|| step(product, "quote_increment"))?;
        let lot_size = step(product, "base_increment")?;
        Some(Listing { name: symbol.replace('-', "/"), symbol, tick_size, lot_size, unit: ContractUnit::Base })
    };
    products.into_iter().flatten().filter_map(listing).collect()
}

/// Perpetuals by their coins, spot markets by their pairs. A price has no more than six decimals (spot: eight) less
/// those of a size.
fn hyperliquid(meta: &Value) -> Vec<Listing> {
    let decimals = |entry: &Value| u8::try_from(entry.get("szDecimals")?.as_u64()?).ok();
    let listing = |symbol: String, name: String, px_decimals: u8, size_decimals: u8| {
        let tick_size = Decimal::new(1, px_decimals.checked_sub(size_decimals)?);
        Some(Listing { name, symbol, tick_size, lot_size: Decimal::new(1, size_decimals), unit: ContractUnit::Base })
    };
    let entries = |key: &str| meta.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let tokens = entries("tokens");
    let token = |pair: &Value, at: usize| {
        let index = pair.get("tokens")?.get(at)?.as_u64()?;
        tokens.iter().find(|token| token.get("index").and_then(Value::as_u64) == Some(index))
    };
    let perpetual = |entry: &Value| {
        let symbol = text(entry, "name")?;
        let name = format!("{symbol}/USDC:USDC");
        listing(symbol, name, 6, decimals(entry)?)
    };
    let spot = |pair: &Value| {
        let (base, quote) = (token(pair, 0)?, token(pair, 1)?);
        let name = named(&text(base, "name")?, &text(quote, "name")?, None);
        listing(text(pair, "name")?, name, 8, decimals(base)?)
    };
    let of = |entry: &Value| if entry.get("tokens").is_some() { spot(entry) } else { perpetual(entry) };
    entries("universe").iter().filter_map(of).collect()
}

/// No WebSocket, or none that tells the instruments.
fn unreached(error: anyhow::Error) -> NotListed {
    match error.downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Http(answer)) if rest::is_final(answer.status()) => NotListed::Refused(error),
        Some(_) | None => NotListed::Unreached { error, retry_after: None },
    }
}

/// The list that comes on the WebSocket: Kraken's.
async fn socket_list(feed: &FeedConfig, request: &str, clock: Clock) -> anyhow::Result<Value> {
    let (mut socket, _) = socket::open(&feed.streams, clock).await?;
    socket.send(Message::text(request)).await?;
    let snapshot = async {
        while let Some(frame) = socket.next().await {
            if let Message::Text(text) = frame?
                && text.contains("\"channel\":\"instrument\"")
                && text.contains("\"pairs\"")
            {
                return Ok(serde_json::from_str(&text)?);
            }
        }
        anyhow::bail!("{}: closed before the list of instruments", feed.streams)
    };
    tokio::time::timeout(feed.timing.answer_max, snapshot).await.context("no list of instruments in time")?
}

fn kraken(snapshot: &Value) -> Vec<Listing> {
    // Numbers keep their digits (`arbitrary_precision`): 1e-08 and 0.00000001 are both exact.
    let step = |pair: &Value, key: &str| Decimal::parse(pair.get(key)?.to_string().as_bytes()).ok();
    let listing = |pair: &Value| {
        let symbol = pair.get("symbol")?.as_str()?.to_owned();
        let (tick_size, lot_size) = (step(pair, "price_increment")?, step(pair, "qty_increment")?);
        Some(Listing { name: symbol.clone(), symbol, tick_size, lot_size, unit: ContractUnit::Base })
    };
    let pairs = snapshot.get("data").and_then(|data| data.get("pairs")).and_then(Value::as_array);
    pairs.into_iter().flatten().filter_map(listing).collect()
}

#[cfg(test)]
mod tests;
