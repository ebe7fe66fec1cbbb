//! Deribit's rules (docs.deribit.com, JSON-RPC over WebSocket).

use crate::rules::{
    AnswerRule, Checksum, Grouping, Instruments, JoinRule, KeepAlive, Login, LoginTime, Numbering, Private,
    RequestRule, ResyncBudget, Rules, Tested, Topic, TopicKind,
};
use tt_model::Nanos;

/// Deribit.
pub static RULES: Rules = Rules {
    name: "deribit",
    tested: Tested::Captured,
    streams: "wss://www.deribit.com/ws/api/v2",
    rest: Some("https://www.deribit.com"),
    instruments: Instruments::Lists(&["/api/v2/public/get_instruments?currency=any&expired=false"]),
    snapshot: None,
    topics: &[
        Topic::followed(TopicKind::Book, "\"book.{symbol}.100ms\""),
        Topic::followed(TopicKind::Ticker, "\"ticker.{symbol}.100ms\""),
        Topic::followed(TopicKind::Trades, "\"trades.{symbol}.100ms\""),
        Topic::offered(TopicKind::BestLevels, "\"quote.{symbol}\""),
        Topic::offered(TopicKind::Candles, "\"chart.trades.{symbol}.1\""),
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
    answer: AnswerRule {
        starts: &["{\"jsonrpc\":\"2.0\",\"id\"", "{\"id\"", "{\"usOut\""],
        id: Some("/id"),
        each: false,
        accepted: Some("/result"),
        refused: &[("/error", "")],
        reason: &["/error/message"],
        subject: &[],
    },
    join: JoinRule::Socket,
    numbering: Numbering::Chain,
    checksum: Checksum::None,
    may_lock: false,
    keep_alive: KeepAlive {
        ping: None,
        begin: Some(r#"{"jsonrpc":"2.0","id":0,"method":"public/set_heartbeat","params":{"interval":30}}"#),
        answer: Some(r#"{"jsonrpc":"2.0","id":0,"method":"public/test","params":{}}"#),
    },
    // Two of its heartbeats.
    silence_max: Nanos::from_secs(65),
    topics_max: 500,
    topics_per_request: 100,
    request_gap: Nanos::from_millis(200),
    snapshot_gap: Nanos::from_millis(200),
    // Two requests each, of 20 a second.
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(1) },
    private: Some(Private {
        streams: "wss://www.deribit.com/ws/api/v2",
        login: Login::ClientCredentials,
        signed: "",
        time: LoginTime::Milliseconds,
        message: r#"{"jsonrpc":"2.0","id":{id},"method":"public/auth","params":{"grant_type":"client_credentials","client_id":"{key}","client_secret":"{secret}"}}"#,
        request: r#"{"jsonrpc":"2.0","id":{id},"method":"private/subscribe","params":{"channels":[{topics}]}}"#,
        token: None,
        topics: &[
            Topic::followed(TopicKind::Orders, "\"user.changes.any.any.raw\""),
            Topic::followed(TopicKind::Balances, "\"user.portfolio.any\""),
        ],
    }),
};
