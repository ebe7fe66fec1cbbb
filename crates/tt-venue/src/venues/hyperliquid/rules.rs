//! Hyperliquid's rules (hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api/websocket).

use super::keys::KEYS;
use super::{detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest, PostedList};
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Rate, Region, RequestRule,
    ResponseRule, Rules, Topic, TopicKind, TradeIds,
};
use tt_model::Nanos;

/// Hyperliquid.
pub(crate) static RULES: Rules = Rules {
    name: "hyperliquid",
    evidence: Evidence {
        captured: Some("2025-01"),
        changed: Some("2026-07"),
        checked: "2026-11",
        source: "hyperliquid.gitbook.io/hyperliquid-docs",
    },
    streams: "wss://api.hyperliquid.xyz/ws",
    streams_fallback: &[],
    rest: Some("https://api.hyperliquid.xyz"),
    rest_fallback: None,
    regions: &[Region {
        name: "testnet",
        streams: "wss://api.hyperliquid-testnet.xyz/ws",
        rest: "https://api.hyperliquid-testnet.xyz",
    }],
    // Perpetuals of the venue and of all builders (HIP-3), spot markets; outcomes (HIP-4), whose list nodes of others do not
    // serve, if one is followed.
    instruments: InstrumentList::new(
        ListRequest::Post(
            "/info",
            &[
                PostedList::of_all(r#"{"type":"allPerpMetas"}"#),
                PostedList::of_all(r#"{"type":"spotMeta"}"#),
                PostedList { body: r#"{"type":"outcomeMeta"}"#, prefix: "#" },
            ],
        ),
        listing::parse,
    ),
    main_symbol: "BTC",
    snapshot: None,
    topics: &[
        // Five levels each half second since June 2026; by one source, twenty levels come each five seconds since July.
        Topic::standard(TopicKind::Book, r#"{"type":"l2Book","coin":"{symbol}","fast":true}"#)
            .comes(&["l2Book"], FirstFrame::SOON)
            .every(Nanos::from_millis(500))
            .at_depth(5),
        Topic::standard(TopicKind::Book, r#"{"type":"l2Book","coin":"{symbol}"}"#)
            .comes(&["l2Book"], FirstFrame::SOON)
            .every(Nanos::from_secs(5))
            .at_depth(20)
            .checked("2026-07", "reported by pmxt #1879 alone"),
        Topic::standard(TopicKind::BestLevels, r#"{"type":"bbo","coin":"{symbol}"}"#).comes(&["bbo"], FirstFrame::SOON),
        Topic::standard(TopicKind::Trades, r#"{"type":"trades","coin":"{symbol}"}"#)
            .comes(&["trades"], FirstFrame::AnyTime),
        Topic::standard(TopicKind::MarkPrice, r#"{"type":"activeAssetCtx","coin":"{symbol}"}"#)
            .comes(&["activeAssetCtx", "activeSpotAssetCtx"], FirstFrame::SOON),
        Topic::optional(TopicKind::Candles, r#"{"type":"candle","coin":"{symbol}","interval":"1m"}"#)
            .comes(&["candle"], FirstFrame::TRADED),
        Topic::optional(TopicKind::Ticker, r#"{"type":"allMids"}"#)
            .comes(&["allMids"], FirstFrame::SOON)
            .every(Nanos::from_secs(2)),
    ],
    depths: &[5, 20],
    depth: 5,
    truncates: false,
    request: RequestRule {
        text: r#"{"method":"{method}","subscription":{topics}}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::One,
    },
    response: ResponseRule {
        starts: &["{\"channel\":\"subscriptionResponse\"", "{\"channel\":\"error\""],
        id: None,
        argument: None,
        is_per_topic: true,
        accepted: None,
        rejected: &[("/channel", "error")],
        reason: &["/data"],
        subject: &["/data/subscription/coin"],
        hints: &[],
    },
    join: JoinRule::Whole,
    numbering: Numbering::None,
    trade_ids: TradeIds::Scattered,
    checksum: Checksum::None,
    may_lock: false,
    // The venue closes what has been silent for a minute.
    keep_alive: KeepAlive { ping: Some((r#"{"method":"ping"}"#, Nanos::from_secs(20))), enable: None, pong: None },
    silence_max: Nanos::from_secs(45),
    connection_max: None,
    topics_max: 1000,
    topics_per_request: 1,
    requests: Rate { burst: 10, gap: Nanos::from_millis(50) },
    snapshot_gap: Nanos::from_millis(250),
    resyncs: Rate { burst: 60, gap: Nanos::from_secs(1) },
    // Ten connections, 30 new ones a minute, 1,000 topics, 2,000 messages a minute.
    address: AddressLimits {
        connections_max: 10,
        topics_max: Some(1000),
        messages: Some(Rate { burst: 500, gap: Nanos::from_millis(40) }),
        ..AddressLimits::new("hyperliquid", Rate { burst: 10, gap: Nanos::from_secs(3) })
    },
    account: Some(login::ACCOUNT),
    l3: None,
    rpi: None,
    full: None,
    documented_keys: KEYS,
    detection: detection::DETECTION,
};
