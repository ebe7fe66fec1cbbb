//! Deribit's rules (docs.deribit.com, JSON-RPC over WebSocket).

use super::keys::KEYS;
use super::{detection, listing, login};
use crate::checksum::Checksum;
use crate::listing::{InstrumentList, ListRequest};
use crate::rules::{
    Evidence, FirstFrame, Grouping, JoinRule, KeepAlive, Numbering, RequestRule, ResponseRule, ResyncBudget, Rules,
    Topic, TopicKind, TradeIds,
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
    rest: Some("https://www.deribit.com"),
    instruments: InstrumentList {
        request: ListRequest::Get(&["/api/v2/public/get_instruments?currency=any&expired=false"]),
        parse: listing::parse,
    },
    main_symbol: "BTC-PERPETUAL",
    snapshot: None,
    topics: &[
        Topic::standard(TopicKind::Book, "\"book.{symbol}.100ms\"").comes(&["book.{symbol}.100ms"], FirstFrame::SOON),
        Topic::standard(TopicKind::Ticker, "\"ticker.{symbol}.100ms\"")
            .comes(&["ticker.{symbol}.100ms"], FirstFrame::ACTIVE),
        Topic::standard(TopicKind::Trades, "\"trades.{symbol}.100ms\"")
            .comes(&["trades.{symbol}.100ms"], FirstFrame::AnyTime),
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
        is_per_topic: false,
        accepted: Some("/result"),
        rejected: &[("/error", "")],
        reason: &["/error/message"],
        subject: &[],
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
    topics_max: 500,
    topics_per_request: 100,
    request_gap: Nanos::from_millis(200),
    snapshot_gap: Nanos::from_millis(200),
    // Two requests each, of 20 a second.
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(1) },
    account: Some(login::ACCOUNT),
    l3: None,
    documented_keys: KEYS,
    detection: detection::DETECTION,
};
