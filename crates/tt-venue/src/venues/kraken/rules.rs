//! Kraken's rules, WebSocket version 2 (docs.kraken.com/api/docs/websocket-v2).

use super::keys::KEYS;
use super::{checksum, detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest};
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Rate, RequestRule, ResponseRule,
    Rules, Topic, TopicKind, TradeIds,
};
use tt_model::Nanos;

/// Kraken.
pub(crate) static RULES: Rules = Rules {
    name: "kraken",
    evidence: Evidence {
        captured: Some("2026-08"),
        changed: None,
        checked: "2026-11",
        source: "docs.kraken.com/api/docs/change-log",
    },
    streams: "wss://ws.kraken.com/v2",
    streams_fallback: &[],
    rest: None,
    rest_fallback: None,
    regions: &[],
    instruments: InstrumentList::new(
        // With xStocks, which are left out otherwise.
        ListRequest::Message(
            r#"{"method":"subscribe","params":{"channel":"instrument","include_tokenized_assets":true,"snapshot":true}}"#,
        ),
        listing::spot,
    ),
    main_symbol: "BTC/USD",
    snapshot: None,
    topics: &[
        Topic::standard(TopicKind::Book, r#""channel":"book","depth":{depth},"symbol":[{symbols}]"#)
            .comes(&["book"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, r#""channel":"ticker","symbol":[{symbols}]"#)
            .comes(&["ticker"], FirstFrame::SOON),
        Topic::standard(TopicKind::Trades, r#""channel":"trade","symbol":[{symbols}]"#)
            .comes(&["trade"], FirstFrame::AnyTime),
        Topic::optional(TopicKind::Candles, r#""channel":"ohlc","interval":1,"symbol":[{symbols}]"#)
            .comes(&["ohlc"], FirstFrame::SOON),
    ],
    depths: &[10, 25, 100, 500, 1000],
    depth: 25,
    truncates: true,
    request: RequestRule {
        text: r#"{"method":"{method}","params":{{topics}},"req_id":{id}}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::Symbols,
    },
    // A refused subscription leaves the socket open and silent.
    response: ResponseRule {
        starts: &["{\"error\"", "{\"method\"", "{\"req_id\""],
        id: Some("/req_id"),
        argument: None,
        is_per_topic: true,
        accepted: None,
        rejected: &[("/success", "false"), ("/error", "")],
        reason: &["/error"],
        subject: &["/symbol"],
        hints: &[],
    },
    join: JoinRule::Socket,
    // Its times say nothing: "do not sort by timestamp" (docs.kraken.com, book guide). The checksum is the proof.
    numbering: Numbering::None,
    trade_ids: TradeIds::Counted,
    checksum: Checksum::Levels(checksum::OF_LEVELS),
    may_lock: false,
    keep_alive: KeepAlive {
        ping: Some((r#"{"method":"ping","req_id":0}"#, Nanos::from_secs(15))),
        enable: None,
        pong: None,
    },
    // A heartbeat each second.
    silence_max: Nanos::from_secs(10),
    connection_max: None,
    topics_max: 1000,
    topics_per_request: 300,
    // The limit changes with the venue's load, and no number is documented (docs.kraken.com/api/docs/guides/spot-ratelimits).
    // A burst is one request for each of the topics above.
    requests: Rate { burst: 4, gap: Nanos::from_millis(250) },
    snapshot_gap: Nanos::from_millis(100),
    // As of other venues: the limit of messages is not documented.
    resyncs: Rate { burst: 60, gap: Nanos::from_secs(1) },
    // 150 connections in ten minutes.
    address: AddressLimits::new("kraken", Rate { burst: 30, gap: Nanos::from_secs(5) }),
    account: Some(login::ACCOUNT),
    l3: Some(&LEVEL3),
    rpi: None,
    full: None,
    documented_keys: KEYS,
    detection: detection::SPOT,
};

/// The feed of single orders, which needs a login (docs.kraken.com, "Orders (Level 3)").
pub(crate) static LEVEL3: Rules = Rules {
    evidence: Evidence {
        captured: None,
        changed: Some("2025-12"),
        checked: "2026-11",
        source: "docs.kraken.com/api/docs/change-log",
    },
    streams: "wss://ws-l3.kraken.com/v2",
    // Its host serves nothing else.
    topics: &[
        Topic::standard(
            TopicKind::Book,
            r#""channel":"level3","depth":{depth},"symbol":[{symbols}],"token":"{token}""#,
        )
        .comes(&["level3"], FirstFrame::SOON),
        Topic::standard_at(TopicKind::Ticker, r#""channel":"ticker","symbol":[{symbols}]"#, RULES.streams)
            .comes(&["ticker"], FirstFrame::SOON),
        Topic::standard_at(TopicKind::Trades, r#""channel":"trade","symbol":[{symbols}]"#, RULES.streams)
            .comes(&["trade"], FirstFrame::AnyTime),
    ],
    depths: &[10, 100, 1000],
    depth: 100,
    checksum: Checksum::Orders(checksum::OF_ORDERS),
    // The rate of subscriptions: 100 levels count 25 of 200 a second.
    topics_max: 200,
    topics_per_request: 4,
    requests: Rate { burst: 1, gap: Nanos::from_secs(1) },
    ..RULES
};

/// Derivatives, on the unified WebSocket: the messages of version 2, with a class of assets in each request
/// (docs.kraken.com/exchange/api-reference/unified-websocket, read in 2026-12). Spot markets are announced there for 2027.
pub(crate) static DERIVATIVES: Rules = Rules {
    name: "kraken_derivatives",
    evidence: Evidence {
        captured: None,
        changed: None,
        checked: "2026-12",
        source: "docs.kraken.com/exchange/api-reference/unified-websocket",
    },
    streams: "wss://uws.kraken.com/v2/public",
    instruments: InstrumentList::new(
        ListRequest::Message(
            r#"{"method":"subscribe","params":{"channel":"instrument","asset_class":"derivatives","snapshot":true}}"#,
        ),
        listing::derivatives,
    ),
    main_symbol: "PF_XBTUSD",
    topics: &[
        Topic::standard(
            TopicKind::Book,
            r#""channel":"book","asset_class":"derivatives","depth":{depth},"symbol":[{symbols}]"#,
        )
        .comes(&["book"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, r#""channel":"ticker","asset_class":"derivatives","symbol":[{symbols}]"#)
            .comes(&["ticker"], FirstFrame::SOON),
        Topic::standard(TopicKind::Trades, r#""channel":"trade","asset_class":"derivatives","symbol":[{symbols}]"#)
            .comes(&["trade"], FirstFrame::AnyTime),
    ],
    // Heartbeats are documented for spot alone; each ping is answered.
    silence_max: Nanos::from_secs(35),
    account: None,
    l3: None,
    detection: detection::DERIVATIVES,
    ..RULES
};
