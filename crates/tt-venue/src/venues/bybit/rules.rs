//! Bybit's rules, API version 5 (bybit-exchange.github.io/docs/v5/ws/connect).

use super::keys::KEYS;
use super::messages::parse_snapshot;
use super::{detection, listing, login, region};
use crate::checksum::Checksum;
use crate::listing::InstrumentList;
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Overlap, Rate, RequestRule,
    ResponseRule, Rules, Snapshot, Topic, TopicKind, TradeIds,
};
use tt_model::Nanos;

const CONTRACT_TOPICS: &[Topic] = &[
    Topic::standard(TopicKind::Book, "\"orderbook.{depth}.{symbol}\"")
        .comes(&["orderbook.{depth}.{symbol}"], FirstFrame::SOON),
    Topic::standard(TopicKind::Ticker, "\"tickers.{symbol}\"").comes(&["tickers.{symbol}"], FirstFrame::SOON),
    Topic::standard(TopicKind::Trades, "\"publicTrade.{symbol}\"")
        .comes(&["publicTrade.{symbol}"], FirstFrame::AnyTime),
    Topic::optional(TopicKind::Candles, "\"kline.1.{symbol}\"").comes(&["kline.1.{symbol}"], FirstFrame::TRADED),
    Topic::optional(TopicKind::Liquidations, "\"allLiquidation.{symbol}\"")
        .comes(&["allLiquidation.{symbol}"], FirstFrame::AnyTime),
];

/// Linear contracts.
pub(crate) static LINEAR: Rules = Rules {
    name: "bybit_linear",
    evidence: Evidence {
        captured: Some("2024-12"),
        changed: Some("2025-12"),
        checked: "2026-11",
        source: "bybit-exchange.github.io/docs/changelog",
    },
    streams: "wss://stream.bybit.com/v5/public/linear",
    streams_fallback: &[],
    rest: Some("https://api.bybit.com"),
    rest_fallback: Some("https://api.bytick.com"),
    regions: region::LINEAR,
    instruments: listing::of(&["/v5/market/instruments-info?category=linear&limit=1000"]),
    main_symbol: "BTCUSDT",
    snapshot: None,
    topics: CONTRACT_TOPICS,
    depths: &[1, 50, 200, 1000],
    depth: 50,
    truncates: true,
    request: RequestRule {
        text: r#"{"req_id":"{id}","op":"{method}","args":[{topics}]}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::Topics,
    },
    // `{"success":true,"ret_msg":"","conn_id":"..","req_id":"1","op":"subscribe"}`.
    response: ResponseRule {
        starts: &["{\"success\"", "{\"req_id\""],
        id: Some("/req_id"),
        argument: None,
        is_per_topic: false,
        accepted: None,
        rejected: &[("/success", "false")],
        reason: &["/ret_msg"],
        subject: &[],
        hints: &[],
    },
    join: JoinRule::Socket,
    numbering: Numbering::RangeFromOne,
    trade_ids: TradeIds::Scattered,
    checksum: Checksum::None,
    // Contracts before their market opens, and restarted books, are matched by auction.
    may_lock: true,
    keep_alive: KeepAlive { ping: Some((r#"{"op":"ping"}"#, Nanos::from_secs(20))), enable: None, pong: None },
    // Each ping is answered.
    silence_max: Nanos::from_secs(45),
    connection_max: None,
    topics_max: 1000,
    // Ten on spot; elsewhere 21,000 characters.
    topics_per_request: 10,
    requests: Rate { burst: 2, gap: Nanos::from_millis(100) },
    snapshot_gap: Nanos::from_millis(100),
    // Two requests each.
    resyncs: Rate { burst: 60, gap: Nanos::from_secs(1) },
    // 500 connections in five minutes.
    address: AddressLimits::new("bybit", Rate { burst: 100, gap: Nanos::from_millis(750) }),
    account: Some(login::ACCOUNT),
    l3: None,
    rpi: Some(&LINEAR_RPI),
    full: Some(&LINEAR_FULL),
    documented_keys: KEYS,
    detection: detection::LINEAR,
};

/// Inverse contracts.
pub(crate) static INVERSE: Rules = Rules {
    name: "bybit_inverse",
    main_symbol: "BTCUSD",
    streams: "wss://stream.bybit.com/v5/public/inverse",
    regions: region::INVERSE,
    instruments: listing::of(&["/v5/market/instruments-info?category=inverse&limit=1000"]),
    evidence: Evidence {
        captured: None,
        changed: Some("2025-12"),
        checked: "2026-11",
        source: "bybit-exchange.github.io/docs/changelog",
    },
    detection: detection::INVERSE,
    rpi: Some(&INVERSE_RPI),
    full: Some(&INVERSE_FULL),
    ..LINEAR
};

/// Spot.
pub(crate) static SPOT: Rules = Rules {
    name: "bybit_spot",
    streams: "wss://stream.bybit.com/v5/public/spot",
    regions: region::SPOT,
    instruments: listing::of(&["/v5/market/instruments-info?category=spot&limit=1000"]),
    topics: &[
        Topic::standard(TopicKind::Book, "\"orderbook.{depth}.{symbol}\"")
            .comes(&["orderbook.{depth}.{symbol}"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, "\"tickers.{symbol}\"").comes(&["tickers.{symbol}"], FirstFrame::SOON),
        Topic::standard(TopicKind::Trades, "\"publicTrade.{symbol}\"")
            .comes(&["publicTrade.{symbol}"], FirstFrame::AnyTime),
        Topic::optional(TopicKind::Candles, "\"kline.1.{symbol}\"").comes(&["kline.1.{symbol}"], FirstFrame::TRADED),
    ],
    evidence: Evidence {
        captured: None,
        changed: Some("2025-12"),
        checked: "2026-11",
        source: "bybit-exchange.github.io/docs/changelog",
    },
    detection: detection::SPOT,
    rpi: Some(&SPOT_RPI),
    full: Some(&SPOT_FULL),
    ..LINEAR
};

/// Options. Their answers have no number; trades come of every option of a base asset together.
pub(crate) static OPTION: Rules = Rules {
    name: "bybit_option",
    // Options end: none is always there.
    main_symbol: "",
    streams: "wss://stream.bybit.com/v5/public/option",
    regions: region::OPTION,
    instruments: InstrumentList {
        family: Some(listing::base_of_option),
        series: None,
        ..listing::of(&["/v5/market/instruments-info?category=option&limit=1000&baseCoin={family}"])
    },
    topics: &[
        Topic::standard(TopicKind::Book, "\"orderbook.{depth}.{symbol}\"")
            .comes(&["orderbook.{depth}.{symbol}"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, "\"tickers.{symbol}\"").comes(&["tickers.{symbol}"], FirstFrame::SOON),
        Topic::standard(TopicKind::Trades, "\"publicTrade.{family}\"").comes(&["publicTrade"], FirstFrame::AnyTime),
    ],
    depths: &[25, 100],
    depth: 25,
    // `{"success":true,"conn_id":"..","data":{"failTopics":[],"successTopics":[".."]},"type":"COMMAND_RESP"}`.
    response: ResponseRule { id: None, accepted: Some("/data/successTopics"), ..LINEAR.response },
    evidence: Evidence {
        captured: None,
        changed: Some("2025-12"),
        checked: "2026-11",
        source: "bybit-exchange.github.io/docs/changelog",
    },
    detection: detection::OPTION,
    rpi: None,
    full: None,
    ..LINEAR
};

/// Books with RPI orders, which `orderbook` and `tickers` leave out: there is no best bid and offer of such a book.
const RPI_TOPICS: &[Topic] = &[
    Topic::standard(TopicKind::Book, "\"orderbook.rpi.{symbol}\"").comes(&["orderbook.rpi.{symbol}"], FirstFrame::SOON),
    Topic::standard(TopicKind::Trades, "\"publicTrade.{symbol}\"")
        .comes(&["publicTrade.{symbol}"], FirstFrame::AnyTime),
];

pub(crate) static LINEAR_RPI: Rules = Rules { topics: RPI_TOPICS, depths: &[50], depth: 50, ..LINEAR };
pub(crate) static INVERSE_RPI: Rules = Rules { topics: RPI_TOPICS, depths: &[50], depth: 50, ..INVERSE };
pub(crate) static SPOT_RPI: Rules = Rules { topics: RPI_TOPICS, depths: &[50], depth: 50, ..SPOT };

/// All levels: changes each 200 ms, joined to a book by REST with the same numbers
/// (bybit-exchange.github.io/docs/v5/websocket/public/full-ob and market/full-ob).
const FULL_TOPICS: &[Topic] = &[
    Topic::standard(TopicKind::Book, "\"orderbook.full.{symbol}\"")
        .comes(&["orderbook.full.{symbol}"], FirstFrame::ACTIVE)
        .checked("2026-11", "bybit-exchange.github.io/docs/v5/websocket/public/full-ob; contracts by clients alone"),
    Topic::standard(TopicKind::Ticker, "\"tickers.{symbol}\"").comes(&["tickers.{symbol}"], FirstFrame::SOON),
    Topic::standard(TopicKind::Trades, "\"publicTrade.{symbol}\"")
        .comes(&["publicTrade.{symbol}"], FirstFrame::AnyTime),
];

/// Ten thousand levels of each side.
const fn whole_book(path: &'static str) -> Option<Snapshot> {
    let (parse, parse_general) = (parse_snapshot, parse_snapshot);
    Some(Snapshot { path, levels: 10_000, parse, parse_general, compare_once: false })
}

/// Live on spot since 2026-07-16. Of contracts, clients show the same topics, and the venue's text no date.
pub(crate) static SPOT_FULL: Rules = Rules {
    snapshot: whole_book("/v5/market/full_orderbook?category=spot&symbol={symbol}"),
    topics: FULL_TOPICS,
    depths: &[10_000],
    depth: 10_000,
    truncates: false,
    join: JoinRule::Rest(Overlap::Next),
    // A whole book is a megabyte.
    snapshot_gap: Nanos::from_secs(1),
    resyncs: Rate { burst: 10, gap: Nanos::from_secs(5) },
    rpi: None,
    full: None,
    ..SPOT
};
pub(crate) static LINEAR_FULL: Rules = Rules {
    name: LINEAR.name,
    evidence: LINEAR.evidence,
    main_symbol: LINEAR.main_symbol,
    streams: LINEAR.streams,
    regions: LINEAR.regions,
    instruments: LINEAR.instruments,
    detection: LINEAR.detection,
    snapshot: whole_book("/v5/market/full_orderbook?category=linear&symbol={symbol}"),
    ..SPOT_FULL
};
pub(crate) static INVERSE_FULL: Rules = Rules {
    name: INVERSE.name,
    evidence: INVERSE.evidence,
    main_symbol: INVERSE.main_symbol,
    streams: INVERSE.streams,
    regions: INVERSE.regions,
    instruments: INVERSE.instruments,
    detection: INVERSE.detection,
    snapshot: whole_book("/v5/market/full_orderbook?category=inverse&symbol={symbol}"),
    ..SPOT_FULL
};
