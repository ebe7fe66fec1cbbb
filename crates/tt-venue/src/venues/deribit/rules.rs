//! Deribit's rules (docs.deribit.com, JSON-RPC over WebSocket).

use super::keys::KEYS;
use super::{detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest};
use crate::rules::{
    AddressLimits, Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, Rate, Region, RequestRule,
    ResponseRule, Rules, Topic, TopicKind, TradeIds,
};
use tt_model::Nanos;

/// Deribit.
pub(crate) static RULES: Rules = Rules {
    name: "deribit",
    evidence: Evidence {
        captured: Some("2021-07"),
        changed: Some("2026-01"),
        checked: "2026-11",
        source: "docs.deribit.com",
    },
    streams: "wss://www.deribit.com/ws/api/v2",
    streams_fallback: &[],
    rest: Some("https://www.deribit.com"),
    rest_fallback: None,
    regions: &[
        Region { name: "test", streams: "wss://test.deribit.com/ws/api/v2", rest: "https://test.deribit.com" },
        // Coinbase's derivatives run on Deribit's gateway since September 2026.
        Region { name: "coinbase", streams: "wss://drb.coinbase.com/ws/api/v2", rest: "https://drb.coinbase.com" },
    ],
    instruments: InstrumentList::new(
        ListRequest::Get(&["/api/v2/public/get_instruments?currency=any&expired=false"]),
        listing::parse,
    ),
    main_symbol: "BTC-PERPETUAL",
    snapshot: None,
    topics: &[
        Topic::standard(TopicKind::Book, "\"book.{symbol}.100ms\"").comes(&["book.{symbol}.100ms"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, "\"ticker.{symbol}.100ms\"")
            .comes(&["ticker.{symbol}.100ms"], FirstFrame::ACTIVE),
        Topic::standard(TopicKind::Trades, "\"trades.{symbol}.100ms\"")
            .comes(&["trades.{symbol}.100ms"], FirstFrame::AnyTime),
        // Announces maintenance, after which every connection ends, and locks of currencies.
        Topic::standard(TopicKind::Status, "\"platform_state\"").comes(&["platform_state"], FirstFrame::AnyTime),
        // Every instrument that begins, ends or is interrupted: to be followed instead of requests for the list.
        Topic::standard(TopicKind::Status, "\"instrument.state.any.any\"")
            .comes(&["instrument.state"], FirstFrame::AnyTime),
        Topic::optional(TopicKind::BestLevels, "\"quote.{symbol}\"").comes(&["quote.{symbol}"], FirstFrame::ACTIVE),
        Topic::optional(TopicKind::Candles, "\"chart.trades.{symbol}.1\"")
            .comes(&["chart.trades.{symbol}.1"], FirstFrame::TRADED),
    ],
    depths: &[],
    depth: 0,
    truncates: false,
    request: RequestRule {
        text: r#"{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{"channels":[{topics}]}}"#,
        subscribe: "public/subscribe",
        unsubscribe: "public/unsubscribe",
        grouping: Grouping::Topics,
    },
    // What is not in the result was not subscribed.
    response: ResponseRule {
        starts: &["{\"jsonrpc\":\"2.0\",\"id\"", "{\"id\"", "{\"usOut\""],
        id: Some("/id"),
        argument: None,
        is_per_topic: false,
        accepted: Some("/result"),
        rejected: &[("/error", "")],
        reason: &["/error/message"],
        subject: &[],
        hints: &[],
    },
    join: JoinRule::Socket,
    numbering: Numbering::Chain,
    trade_ids: TradeIds::Counted,
    checksum: Checksum::None,
    may_lock: false,
    keep_alive: KeepAlive {
        ping: None,
        enable: Some(r#"{"jsonrpc":"2.0","id":0,"method":"public/set_heartbeat","params":{"interval":30}}"#),
        pong: Some(r#"{"jsonrpc":"2.0","id":0,"method":"public/test","params":{}}"#),
    },
    // Two of its heartbeats.
    silence_max: Nanos::from_secs(65),
    connection_max: None,
    topics_max: 500,
    topics_per_request: 100,
    // A subscription costs 3,000 of 30,000 credits, and 10,000 come back in a second. Who has none left is cut off.
    requests: Rate { burst: 4, gap: Nanos::from_millis(350) },
    snapshot_gap: Nanos::from_millis(350),
    // Two requests each, for up to a hundred books together.
    resyncs: Rate { burst: 400, gap: Nanos::from_millis(7) },
    address: AddressLimits {
        connections_max: 32,
        messages: Some(Rate { burst: 4, gap: Nanos::from_millis(350) }),
        ..AddressLimits::new("deribit", Rate { burst: 8, gap: Nanos::from_millis(500) })
    },
    account: Some(login::ACCOUNT),
    l3: None,
    rpi: None,
    full: None,
    documented_keys: KEYS,
    detection: detection::DETECTION,
};
