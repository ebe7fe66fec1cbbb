//! Coinbase Exchange's rules (docs.cdp.coinbase.com/exchange/websocket-feed).

use super::keys::KEYS;
use super::messages::parse_snapshot;
use super::{detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest};
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Overlap, Rate, Region, RequestRule,
    ResponseRule, Rules, Snapshot, Topic, TopicKind, TradeIds,
};
use tt_model::Nanos;

/// Coinbase Exchange.
pub(crate) static RULES: Rules = Rules {
    name: "coinbase_exchange",
    evidence: Evidence {
        captured: Some("2021-04"),
        changed: None,
        checked: "2026-11",
        source: "docs.cdp.coinbase.com/exchange",
    },
    streams: "wss://ws-feed.exchange.coinbase.com",
    streams_fallback: &[],
    rest: Some("https://api.exchange.coinbase.com"),
    rest_fallback: None,
    regions: &[Region {
        name: "sandbox",
        streams: "wss://ws-feed-public.sandbox.exchange.coinbase.com",
        rest: "https://api-public.sandbox.exchange.coinbase.com",
    }],
    instruments: InstrumentList::new(ListRequest::Get(&["/products"]), listing::parse),
    main_symbol: "BTC-USD",
    snapshot: None,
    topics: &[
        // `level2` itself wants a login; the batches of 50 ms have the same form.
        Topic::standard(TopicKind::Book, r#"{"name":"level2_batch","product_ids":[{symbols}]}"#)
            .comes(&["snapshot", "l2update"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, r#"{"name":"ticker","product_ids":[{symbols}]}"#)
            .comes(&["ticker"], FirstFrame::TRADED),
        Topic::standard(TopicKind::Trades, r#"{"name":"matches","product_ids":[{symbols}]}"#)
            .comes(&["match", "last_match"], FirstFrame::AnyTime),
        Topic::standard(TopicKind::Heartbeat, r#"{"name":"heartbeat","product_ids":[{symbols}]}"#)
            .comes(&["heartbeat"], FirstFrame::SOON)
            .every(Nanos::from_secs(1)),
    ],
    depths: &[],
    depth: 0,
    truncates: false,
    request: RequestRule {
        text: r#"{"type":"{method}","channels":[{topics}]}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::Symbols,
    },
    // The answer lists all that the connection carries now.
    response: ResponseRule {
        starts: &["{\"type\":\"subscriptions\"", "{\"type\":\"error\""],
        id: None,
        argument: None,
        is_per_topic: false,
        accepted: None,
        rejected: &[("/type", "error")],
        reason: &["/reason", "/message"],
        subject: &[],
        hints: &[(
            // docs.cdp.coinbase.com/exchange/websocket-feed/rate-limits, read in 2026-11. The words of the refusal are not
            // documented.
            "limit",
            "an account has 10 subscriptions of one product and channel, and more with a paid tier",
        )],
    },
    join: JoinRule::Socket,
    numbering: Numbering::None,
    trade_ids: TradeIds::Counted,
    checksum: Checksum::None,
    // A product may be in auction mode.
    may_lock: true,
    keep_alive: KeepAlive { ping: None, enable: None, pong: None },
    // A heartbeat of each product each second.
    silence_max: Nanos::from_secs(10),
    connection_max: None,
    topics_max: 1000,
    topics_per_request: 100,
    requests: Rate { burst: 2, gap: Nanos::from_millis(250) },
    snapshot_gap: Nanos::from_millis(250),
    resyncs: Rate { burst: 60, gap: Nanos::from_secs(1) },
    // Eight requests a second, 20 at once.
    address: AddressLimits::new("coinbase exchange", Rate { burst: 10, gap: Nanos::from_millis(125) }),
    account: Some(login::ACCOUNT),
    l3: Some(&FULL),
    rpi: None,
    full: None,
    documented_keys: KEYS,
    detection: detection::DETECTION,
};

/// The `full` topic: every order, numbered by product, joined to the REST book of all orders. It needs a login.
pub(crate) static FULL: Rules = Rules {
    streams: login::STREAMS,
    regions: &[],
    request: RequestRule { text: login::REQUEST, ..RULES.request },
    evidence: Evidence { captured: None, changed: None, checked: "2026-11", source: "docs.cdp.coinbase.com/exchange" },
    snapshot: Some(Snapshot {
        path: "/products/{symbol}/book?level=3",
        levels: u32::MAX,
        parse: parse_snapshot,
        parse_general: parse_snapshot,
        // Asked in coinbase-samples/exchange-scripts-py #19, and not answered.
        compare_once: true,
    }),
    topics: &[
        Topic::standard(TopicKind::Book, r#"{"name":"full","product_ids":[{symbols}]}"#)
            .comes(&["received", "open", "done", "match", "change"], FirstFrame::AnyTime),
        Topic::standard(TopicKind::Heartbeat, r#"{"name":"heartbeat","product_ids":[{symbols}]}"#)
            .comes(&["heartbeat"], FirstFrame::SOON)
            .every(Nanos::from_secs(1)),
    ],
    join: JoinRule::Rest(Overlap::Next),
    numbering: Numbering::Range,
    // Who asks for whole books too often is shut out.
    snapshot_gap: Nanos::from_secs(1),
    resyncs: Rate { burst: 10, gap: Nanos::from_secs(10) },
    ..RULES
};
