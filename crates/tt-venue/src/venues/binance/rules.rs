//! Binance's rules: spot (developers.binance.com/docs/binance-spot-api-docs/web-socket-streams) and USD-margined
//! futures (developers.binance.com/docs/derivatives/usds-margined-futures).

use super::keys::KEYS;
use super::messages::{parse_snapshot, parse_snapshot_general};
use super::{detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest};
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Overlap, Rate, Region, RequestRule,
    ResponseRule, Rules, Snapshot, Topic, TopicKind, TradeIds, WeightLimit,
};
use tt_model::Nanos;

/// `{"result":null,"id":1}`, or `{"error":{"code":2,"msg":".."},"id":1}`.
const RESPONSE: ResponseRule = ResponseRule {
    starts: &["{\"result\"", "{\"id\"", "{\"error\""],
    id: Some("/id"),
    argument: None,
    is_per_topic: false,
    accepted: None,
    rejected: &[("/error", "")],
    reason: &["/error/msg", "/error"],
    subject: &[],
    hints: &[],
};

const REQUEST: RequestRule = RequestRule {
    text: r#"{"id":{id},"method":"{method}","params":[{topics}]}"#,
    subscribe: "SUBSCRIBE",
    unsubscribe: "UNSUBSCRIBE",
    grouping: Grouping::Topics,
};

/// Words of frames: the stream's name, or what a frame without it has.
const BOOK: &[&str] = &["{lower}@depth@100ms", "depthUpdate"];
/// Of frames without a stream's name, only these of spot have the quantity of the best bid, and no kind.
const BEST_LEVELS: &[&str] = &["{lower}@bookTicker", "bookTicker", "B"];
const TRADES: &[&str] = &["{lower}@trade", "trade"];
const AGGREGATES: &[&str] = &["{lower}@aggTrade", "aggTrade"];
const CANDLES: &[&str] = &["{lower}@kline_1m", "kline"];
const MARK_PRICE: &[&str] = &["{lower}@markPrice@1s", "markPriceUpdate"];
const LIQUIDATIONS: &[&str] = &["{lower}@forceOrder", "forceOrder"];

/// The venue pings by WebSocket frames.
const KEEP_ALIVE: KeepAlive = KeepAlive { ping: None, enable: None, pong: None };

/// 300 connections in five minutes.
const CONNECTS: Rate = Rate { burst: 60, gap: Nanos::from_millis(1250) };

const fn weight(most: u32) -> WeightLimit {
    WeightLimit { header: "x-mbx-used-weight-1m", most }
}

/// Binance spot.
pub(crate) static SPOT: Rules = Rules {
    name: "binance_spot",
    evidence: Evidence {
        captured: Some("2024-08"),
        changed: Some("2026-05"),
        checked: "2026-11",
        source: "developers.binance.com/docs/binance-spot-api-docs",
    },
    streams: "wss://stream.binance.com:9443/stream?timeUnit=MICROSECOND",
    // Networks that let nothing but 443 out ("WebSocket Streams", general information; read in 2026-11).
    streams_fallback: &["wss://stream.binance.com:443/stream?timeUnit=MICROSECOND"],
    rest: Some("https://api.binance.com"),
    rest_fallback: Some("https://api-gcp.binance.com"),
    regions: &[
        // Visitors from the US are refused with status 451 elsewhere.
        Region { name: "us", streams: "wss://stream.binance.us:9443/stream", rest: "https://api.binance.us" },
        Region {
            name: "vision",
            streams: "wss://data-stream.binance.vision/stream?timeUnit=MICROSECOND",
            rest: "https://data-api.binance.vision",
        },
    ],
    instruments: InstrumentList::new(
        ListRequest::GetSymbols("/api/v3/exchangeInfo?symbols=%5B{symbols}%5D"),
        listing::spot,
    ),
    main_symbol: "BTCUSDT",
    snapshot: Some(Snapshot {
        path: "/api/v3/depth?symbol={symbol}&limit={depth}",
        levels: 1_000,
        parse: parse_snapshot,
        parse_general: parse_snapshot_general,
        compare_once: false,
    }),
    topics: &[
        Topic::standard(TopicKind::Book, "\"{lower}@depth@100ms\"").comes(BOOK, FirstFrame::ACTIVE),
        Topic::standard(TopicKind::BestLevels, "\"{lower}@bookTicker\"").comes(BEST_LEVELS, FirstFrame::ACTIVE),
        Topic::standard(TopicKind::Trades, "\"{lower}@trade\"").comes(TRADES, FirstFrame::AnyTime),
        Topic::optional(TopicKind::BlockTrades, "\"{lower}@blockTrade\"")
            .comes(&["{lower}@blockTrade", "blockTrade"], FirstFrame::AnyTime)
            .checked("2026-11", "developers.binance.com/docs/binance-spot-api-docs, changelog of 2026-05-12"),
        // Each second, if the symbol has such a price; not documented is what comes if it has none.
        Topic::optional(TopicKind::IndexPrice, "\"{lower}@referencePrice\"")
            .comes(&["{lower}@referencePrice", "referencePrice"], FirstFrame::AnyTime)
            .checked("2026-11", "developers.binance.com/docs/binance-spot-api-docs, changelog of 2026-03-09"),
        Topic::optional(TopicKind::Ticker, "\"{lower}@ticker\"")
            .comes(&["{lower}@ticker", "24hrTicker"], FirstFrame::TRADED),
        Topic::optional(TopicKind::Candles, "\"{lower}@kline_1m\"").comes(CANDLES, FirstFrame::TRADED),
    ],
    // Levels of a snapshot: 5,000 weigh 250 instead of 50. Updates are of every level.
    depths: &[1000, 5000],
    depth: 1000,
    truncates: false,
    request: REQUEST,
    response: RESPONSE,
    join: JoinRule::Rest(Overlap::Next),
    numbering: Numbering::Range,
    trade_ids: TradeIds::Counted,
    checksum: Checksum::None,
    may_lock: false,
    keep_alive: KEEP_ALIVE,
    // It pings every 20 s.
    silence_max: Nanos::from_secs(60),
    connection_max: Some(Nanos::from_secs(86_400)),
    // 1,024 streams.
    topics_max: 1000,
    topics_per_request: 300,
    // Five messages a second, pongs among them: four requests at most, the first two at once.
    requests: Rate { burst: 2, gap: Nanos::from_millis(350) },
    // A thousand levels weigh 50 of the 6,000 that are allowed in a minute.
    snapshot_gap: Nanos::from_millis(600),
    // A thousand levels weigh 50 of the 6,000 that are allowed in a minute: half of that for resyncs.
    resyncs: Rate { burst: 60, gap: Nanos::from_secs(1) },
    address: AddressLimits { weight: Some(weight(3_000)), ..AddressLimits::new("binance spot", CONNECTS) },
    account: Some(login::SPOT),
    l3: None,
    rpi: None,
    full: None,
    documented_keys: KEYS,
    detection: detection::SPOT,
};

/// Where USD-M serves all but books and trades since 2026-04-23 ("Important WebSocket Change Notice"). The other
/// address accepts their subscriptions, and never sends them.
const USDM_MARKET: &str = "wss://fstream.binance.com/market/stream";

/// The documented form of trades: those of one order at one price are one.
const USDM_AGGREGATES: Topic =
    Topic::standard_at(TopicKind::Trades, "\"{lower}@aggTrade\"", USDM_MARKET).comes(AGGREGATES, FirstFrame::AnyTime);

/// Single trades, which are not documented here.
const USDM_TRADES: Topic = Topic::standard(TopicKind::Trades, "\"{lower}@trade\"")
    .comes(TRADES, FirstFrame::AnyTime)
    .or(&USDM_AGGREGATES)
    .checked("2026-09", "measured by BYTEX-TRADE/bytex #7");

const USDM_MARK_PRICE: Topic = Topic::standard_at(TopicKind::MarkPrice, "\"{lower}@markPrice@1s\"", USDM_MARKET)
    .comes(MARK_PRICE, FirstFrame::SOON)
    .every(Nanos::from_secs(1));

/// Binance USD-margined futures.
pub(crate) static USDM: Rules = Rules {
    name: "binance_usdm",
    evidence: Evidence {
        captured: Some("2024-08"),
        changed: Some("2026-06"),
        checked: "2026-11",
        source: "developers.binance.com/docs/derivatives",
    },
    streams: "wss://fstream.binance.com/public/stream",
    streams_fallback: &[],
    rest: Some("https://fapi.binance.com"),
    rest_fallback: None,
    regions: &[],
    instruments: InstrumentList::new(ListRequest::Get(&["/fapi/v1/exchangeInfo"]), listing::usdm),
    snapshot: Some(Snapshot {
        path: "/fapi/v1/depth?symbol={symbol}&limit=1000",
        levels: 1_000,
        parse: parse_snapshot,
        parse_general: parse_snapshot_general,
        compare_once: false,
    }),
    topics: &[
        Topic::standard(TopicKind::Book, "\"{lower}@depth@100ms\"").comes(BOOK, FirstFrame::ACTIVE),
        Topic::standard(TopicKind::BestLevels, "\"{lower}@bookTicker\"").comes(BEST_LEVELS, FirstFrame::ACTIVE),
        USDM_TRADES,
        USDM_MARK_PRICE,
        Topic::optional_at(TopicKind::Candles, "\"{lower}@kline_1m\"", USDM_MARKET).comes(CANDLES, FirstFrame::TRADED),
        Topic::optional_at(TopicKind::Liquidations, "\"{lower}@forceOrder\"", USDM_MARKET)
            .comes(LIQUIDATIONS, FirstFrame::AnyTime),
        // Of the markets that perpetuals of stocks and commodities follow.
        Topic::optional_at(TopicKind::Sessions, "\"tradingSession\"", USDM_MARKET)
            .comes(&["EquityUpdate", "CommodityUpdate"], FirstFrame::SOON)
            .every(Nanos::from_secs(1))
            .checked("2026-12", "developers.binance.com/docs/derivatives, \"Trading Session Stream\""),
    ],
    depths: &[],
    depth: 0,
    // 1,024 streams by its documentation; clients report fewer that work.
    topics_max: 200,
    join: JoinRule::Rest(Overlap::Same),
    numbering: Numbering::Previous,
    // It pings every 3 min.
    silence_max: Nanos::from_secs(240),
    // A thousand levels weigh 20: half of the 2,400 that USD-M and COIN-M may use together in a minute.
    snapshot_gap: Nanos::from_secs(1),
    resyncs: Rate { burst: 30, gap: Nanos::from_secs(2) },
    address: AddressLimits { weight: Some(weight(1_800)), ..AddressLimits::new("binance futures", CONNECTS) },
    account: Some(login::USDM),
    rpi: Some(&USDM_RPI),
    detection: detection::USDM,
    ..SPOT
};

/// Books with RPI orders, which `@depth` and `@bookTicker` leave out: there is no best bid and offer of such a book.
/// That the numbers chain as those of `@depth` is not documented.
pub(crate) static USDM_RPI: Rules = Rules {
    snapshot: Some(Snapshot {
        path: "/fapi/v1/rpiDepth?symbol={symbol}&limit=1000",
        levels: 1_000,
        parse: parse_snapshot,
        parse_general: parse_snapshot_general,
        compare_once: false,
    }),
    topics: &[
        Topic::standard(TopicKind::Book, "\"{lower}@rpiDepth@500ms\"")
            .comes(&["{lower}@rpiDepth@500ms", "depthUpdate"], FirstFrame::ACTIVE),
        USDM_TRADES,
        USDM_MARK_PRICE,
    ],
    ..USDM
};

/// Binance coin-margined futures: quantities are contracts of a fixed value in US dollars.
pub(crate) static COINM: Rules = Rules {
    name: "binance_coinm",
    evidence: Evidence {
        captured: Some("2024-08"),
        changed: Some("2026-06"),
        checked: "2026-11",
        source: "developers.binance.com/docs/derivatives",
    },
    streams: "wss://dstream.binance.com/stream",
    rest: Some("https://dapi.binance.com"),
    instruments: InstrumentList::new(ListRequest::Get(&["/dapi/v1/exchangeInfo"]), listing::coinm),
    main_symbol: "BTCUSD_PERP",
    // One address serves all of them.
    topics: &[
        Topic::standard(TopicKind::Book, "\"{lower}@depth@100ms\"").comes(BOOK, FirstFrame::ACTIVE),
        Topic::standard(TopicKind::BestLevels, "\"{lower}@bookTicker\"").comes(BEST_LEVELS, FirstFrame::ACTIVE),
        Topic::standard(TopicKind::Trades, "\"{lower}@trade\"").comes(TRADES, FirstFrame::AnyTime),
        Topic::standard(TopicKind::MarkPrice, "\"{lower}@markPrice@1s\"")
            .comes(MARK_PRICE, FirstFrame::SOON)
            .every(Nanos::from_secs(1)),
        Topic::optional(TopicKind::Candles, "\"{lower}@kline_1m\"").comes(CANDLES, FirstFrame::TRADED),
        Topic::optional(TopicKind::Liquidations, "\"{lower}@forceOrder\"").comes(LIQUIDATIONS, FirstFrame::AnyTime),
    ],
    topics_max: 1000,
    snapshot: Some(Snapshot {
        path: "/dapi/v1/depth?symbol={symbol}&limit=1000",
        levels: 1_000,
        parse: parse_snapshot,
        parse_general: parse_snapshot_general,
        compare_once: false,
    }),
    account: Some(login::COINM),
    rpi: None,
    detection: detection::COINM,
    ..USDM
};
