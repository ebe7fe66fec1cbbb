//! Coinbase Advanced's rules (docs.cdp.coinbase.com/coinbase-app/advanced-trade-apis/websocket).

use super::keys::KEYS;
use super::{detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest, Pages};
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Rate, RequestRule, ResponseRule,
    Rules, Topic, TopicKind, TradeIds,
};
use tt_model::Nanos;

/// Coinbase Advanced.
pub(crate) static RULES: Rules = Rules {
    name: "coinbase_advanced",
    evidence: Evidence {
        captured: None,
        changed: Some("2026-09"),
        checked: "2026-11",
        source: "docs.cdp.coinbase.com/advanced-trade",
    },
    streams: "wss://advanced-trade-ws.coinbase.com",
    streams_fallback: &[],
    rest: Some("https://api.coinbase.com"),
    rest_fallback: None,
    regions: &[],
    instruments: InstrumentList {
        request: ListRequest::Get(&["/api/v3/brokerage/market/products?limit=1000"]),
        parse: listing::parse,
        pages: Pages::Offset { total: "num_products", list: "products", parameter: "&offset=" },
        family: None,
        series: None,
    },
    main_symbol: "BTC-USD",
    snapshot: None,
    topics: &[
        Topic::standard(TopicKind::Book, r#""channel":"level2","product_ids":[{symbols}]"#)
            .comes(&["l2_data"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, r#""channel":"ticker","product_ids":[{symbols}]"#)
            .comes(&["ticker"], FirstFrame::SOON),
        Topic::standard(TopicKind::Trades, r#""channel":"market_trades","product_ids":[{symbols}]"#)
            .comes(&["market_trades"], FirstFrame::AnyTime),
        // Quiet topics are closed after 60 to 90 seconds unless something is sent.
        Topic::standard(TopicKind::Heartbeat, r#""channel":"heartbeats""#)
            .comes(&["heartbeats"], FirstFrame::SOON)
            .every(Nanos::from_secs(1)),
        Topic::optional(TopicKind::Candles, r#""channel":"candles","product_ids":[{symbols}]"#)
            .comes(&["candles"], FirstFrame::TRADED),
    ],
    depths: &[],
    depth: 0,
    truncates: false,
    request: RequestRule {
        text: r#"{"type":"{method}",{topics}}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::Symbols,
    },
    // The answer lists all that the connection carries now.
    response: ResponseRule {
        starts: &["{\"channel\":\"subscriptions\"", "{\"type\":\"error\""],
        id: None,
        argument: None,
        is_per_topic: false,
        accepted: None,
        rejected: &[("/type", "error")],
        reason: &["/message"],
        subject: &[],
        hints: &[],
    },
    join: JoinRule::Socket,
    numbering: Numbering::Connection,
    trade_ids: TradeIds::Counted,
    checksum: Checksum::None,
    // A product may be in auction mode.
    may_lock: true,
    keep_alive: KeepAlive { ping: None, enable: None, pong: None },
    // A heartbeat each second.
    silence_max: Nanos::from_secs(10),
    connection_max: None,
    topics_max: 1000,
    topics_per_request: 100,
    requests: Rate { burst: 2, gap: Nanos::from_millis(250) },
    snapshot_gap: Nanos::from_millis(250),
    resyncs: Rate { burst: 60, gap: Nanos::from_secs(1) },
    // Eight connections and, without a login, eight messages a second.
    address: AddressLimits {
        messages: Some(Rate { burst: 4, gap: Nanos::from_millis(250) }),
        ..AddressLimits::new("coinbase advanced", Rate { burst: 4, gap: Nanos::from_millis(250) })
    },
    account: Some(login::ACCOUNT),
    l3: None,
    rpi: None,
    full: None,
    documented_keys: KEYS,
    detection: detection::DETECTION,
};
