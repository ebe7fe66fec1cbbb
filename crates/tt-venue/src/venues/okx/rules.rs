//! OKX's rules, API version 5 (www.okx.com/docs-v5/en, "Order book trading: market data").

use super::keys::KEYS;
use super::messages::parse_snapshot;
use super::{checksum, detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest, Pages};
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Overlap, Rate, Region, RequestRule,
    ResponseRule, Rules, Snapshot, Topic, TopicKind, TradeIds,
};
use tt_model::Nanos;

const BUSINESS: &str = "wss://ws.okx.com:8443/ws/v5/business";

/// OKX.
pub(crate) static RULES: Rules = Rules {
    name: "okx",
    evidence: Evidence {
        captured: Some("2022-05"),
        changed: Some("2026-06"),
        checked: "2026-11",
        source: "www.okx.com/docs-v5/log_en",
    },
    streams: "wss://ws.okx.com:8443/ws/v5/public",
    streams_fallback: &[],
    rest: Some("https://openapi.okx.com"),
    rest_fallback: Some("https://www.okx.com"),
    // Accounts of another region are refused with error 60032.
    regions: &[
        Region { name: "us", streams: "wss://wsus.okx.com:8443/ws/v5/public", rest: "https://us.okx.com" },
        Region { name: "au", streams: "wss://wsus.okx.com:8443/ws/v5/public", rest: "https://us.okx.com" },
        Region { name: "eea", streams: "wss://wseea.okx.com:8443/ws/v5/public", rest: "https://eea.okx.com" },
        Region { name: "demo", streams: "wss://wspap.okx.com:8443/ws/v5/public", rest: "https://openapi.okx.com" },
    ],
    instruments: InstrumentList {
        request: ListRequest::Get(&[
            "/api/v5/public/instruments?instType=SPOT",
            "/api/v5/public/instruments?instType=SWAP",
            "/api/v5/public/instruments?instType=FUTURES",
            "/api/v5/public/instruments?instType=OPTION&instFamily={family}",
            "/api/v5/public/instruments?instType=EVENTS&seriesId={series}",
        ]),
        parse: listing::parse,
        pages: Pages::One,
        family: Some(listing::option_family),
        series: Some(listing::event_series),
    },
    main_symbol: "BTC-USDT",
    snapshot: Some(Snapshot {
        path: "/api/v5/market/books?instId={symbol}&sz=400&source=0",
        levels: 400,
        parse: parse_snapshot,
        parse_general: parse_snapshot,
        compare_once: false,
    }),
    topics: &[
        Topic::standard(TopicKind::Book, r#"{"channel":"books","instId":"{symbol}"}"#)
            .comes(&["books"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, r#"{"channel":"tickers","instId":"{symbol}"}"#)
            .comes(&["tickers"], FirstFrame::ACTIVE),
        Topic::standard(TopicKind::Trades, r#"{"channel":"trades","instId":"{symbol}"}"#)
            .comes(&["trades"], FirstFrame::AnyTime),
        Topic::optional(TopicKind::BestLevels, r#"{"channel":"bbo-tbt","instId":"{symbol}"}"#)
            .comes(&["bbo-tbt"], FirstFrame::SOON),
        Topic::optional(TopicKind::MarkPrice, r#"{"channel":"mark-price","instId":"{symbol}"}"#)
            .comes(&["mark-price"], FirstFrame::SOON)
            .every(Nanos::from_secs(10)),
        Topic::optional(TopicKind::IndexPrice, r#"{"channel":"index-tickers","instId":"{symbol}"}"#)
            .comes(&["index-tickers"], FirstFrame::ACTIVE),
        Topic::optional(TopicKind::Funding, r#"{"channel":"funding-rate","instId":"{symbol}"}"#)
            .comes(&["funding-rate"], FirstFrame::AnyTime),
        Topic::optional(TopicKind::OpenInterest, r#"{"channel":"open-interest","instId":"{symbol}"}"#)
            .comes(&["open-interest"], FirstFrame::SOON),
        Topic::optional(TopicKind::Liquidations, r#"{"channel":"liquidation-orders","instType":"SWAP"}"#)
            .comes(&["liquidation-orders"], FirstFrame::AnyTime),
        Topic::optional_at(TopicKind::Candles, r#"{"channel":"candle1m","instId":"{symbol}"}"#, BUSINESS)
            .comes(&["candle1m"], FirstFrame::TRADED),
    ],
    depths: &[400],
    depth: 400,
    truncates: true,
    request: RequestRule {
        text: r#"{"op":"{method}","args":[{topics}]}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::Topics,
    },
    // `{"event":"subscribe","arg":{"channel":"books","instId":"BTC-USDT"},"connId":".."}`. Notices are events, too.
    response: ResponseRule {
        starts: &["{\"event\":\"subscribe\"", "{\"event\":\"unsubscribe\"", "{\"event\":\"error\""],
        id: None,
        argument: Some("/arg"),
        is_per_topic: true,
        accepted: None,
        rejected: &[("/event", "error")],
        reason: &["/msg"],
        subject: &["/arg/instId"],
        hints: &[],
    },
    join: JoinRule::Both(Overlap::Follows),
    numbering: Numbering::Chain,
    trade_ids: TradeIds::Counted,
    // All zeros since June 2026.
    checksum: Checksum::Levels(checksum::OF_LEVELS),
    // New listings begin with a call auction.
    may_lock: true,
    keep_alive: KeepAlive { ping: Some(("ping", Nanos::from_secs(20))), enable: None, pong: None },
    // Each ping is answered.
    silence_max: Nanos::from_secs(45),
    connection_max: None,
    topics_max: 1000,
    topics_per_request: 100,
    // Requests an hour: 480, with those of resyncs.
    requests: Rate { burst: 60, gap: Nanos::from_millis(8_600) },
    // 40 books in two seconds.
    snapshot_gap: Nanos::from_millis(100),
    // Two requests each, for up to 50 books together.
    resyncs: Rate { burst: 50, gap: Nanos::from_secs(20) },
    // Three connections a second.
    address: AddressLimits::new("okx", Rate { burst: 1, gap: Nanos::from_millis(334) }),
    account: Some(login::ACCOUNT),
    l3: None,
    rpi: Some(&RPI),
    full: None,
    documented_keys: KEYS,
    detection: detection::DETECTION,
};

/// Books with RPI orders, which `books` and `tickers` leave out: `books-rpi` at the public address, without a login, since
/// 2026-07-28 (www.okx.com/docs-v5/log_en, entry of 2026-07-08, read in 2026-11). It is the announced `books-elp-all` under
/// its final name; the names of ELP ended on 2026-10-31. That its books by REST have the numbers of the stream is not
/// documented: they are neither joined nor compared.
pub(crate) static RPI: Rules = Rules {
    snapshot: None,
    topics: &[
        Topic::standard(TopicKind::Book, r#"{"channel":"books-rpi","instId":"{symbol}"}"#)
            .comes(&["books-rpi"], FirstFrame::SOON)
            .checked("2026-11", "www.okx.com/docs-v5/log_en, entry of 2026-07-08"),
        Topic::standard(TopicKind::Trades, r#"{"channel":"trades","instId":"{symbol}"}"#)
            .comes(&["trades"], FirstFrame::AnyTime),
    ],
    join: JoinRule::Socket,
    checksum: Checksum::None,
    rpi: None,
    ..RULES
};
