//! Kraken's rules, WebSocket version 2 (docs.kraken.com/api/docs/websocket-v2).

use crate::rules::{
    AnswerRule, Checksum, Grouping, Instruments, JoinRule, KeepAlive, Login, LoginTime, Numbering, Private,
    RequestRule, ResyncBudget, Rules, Tested, TokenRule, Topic, TopicKind,
};
use tt_model::Nanos;

/// Kraken.
pub static RULES: Rules = Rules {
    name: "kraken",
    tested: Tested::Captured,
    streams: "wss://ws.kraken.com/v2",
    rest: None,
    instruments: Instruments::Socket(r#"{"method":"subscribe","params":{"channel":"instrument","snapshot":true}}"#),
    snapshot: None,
    topics: &[
        Topic::followed(TopicKind::Book, r#""channel":"book","depth":{depth},"symbol":[{symbols}]"#),
        Topic::followed(TopicKind::Ticker, r#""channel":"ticker","symbol":[{symbols}]"#),
        Topic::followed(TopicKind::Trades, r#""channel":"trade","symbol":[{symbols}]"#),
        Topic::offered(TopicKind::Candles, r#""channel":"ohlc","interval":1,"symbol":[{symbols}]"#),
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
    answer: AnswerRule {
        starts: &["{\"error\"", "{\"method\"", "{\"req_id\""],
        id: Some("/req_id"),
        each: true,
        accepted: None,
        refused: &[("/success", "false"), ("/error", "")],
        reason: &["/error"],
        subject: &["/symbol"],
    },
    join: JoinRule::Socket,
    numbering: Numbering::Times,
    checksum: Checksum::Kraken,
    may_lock: false,
    keep_alive: KeepAlive {
        ping: Some((r#"{"method":"ping","req_id":0}"#, Nanos::from_secs(15))),
        begin: None,
        answer: None,
    },
    // A heartbeat each second.
    silence_max: Nanos::from_secs(10),
    topics_max: 1000,
    topics_per_request: 300,
    request_gap: Nanos::from_millis(250),
    snapshot_gap: Nanos::from_millis(100),
    // As of other venues: the limit of messages is not documented.
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(1) },
    private: Some(Private {
        streams: "wss://ws-auth.kraken.com/v2",
        login: Login::Token,
        signed: "nonce={time}",
        time: LoginTime::Milliseconds,
        message: "",
        request: r#"{"method":"subscribe","params":{{topics}},"req_id":{id}}"#,
        token: Some(TokenRule {
            rest: "https://api.kraken.com",
            path: "/0/private/GetWebSocketsToken",
            found: "/result/token",
            renewed: None,
        }),
        topics: &[Topic::followed(
            TopicKind::Orders,
            r#""channel":"executions","snap_orders":true,"token":"{listen_key}""#,
        )],
    }),
};

/// The feed of single orders, which wants a login (docs.kraken.com, "Orders (Level 3)").
pub static LEVEL3: Rules = Rules {
    tested: Tested::UnverifiedLive,
    streams: "wss://ws-l3.kraken.com/v2",
    topics: &[Topic::followed(
        TopicKind::Book,
        r#""channel":"level3","depth":{depth},"symbol":[{symbols}],"token":"{listen_key}""#,
    )],
    depths: &[10, 100, 1000],
    depth: 100,
    checksum: Checksum::KrakenOrders,
    // The rate of subscriptions: 100 levels count 25 of 200 a second.
    topics_max: 200,
    topics_per_request: 4,
    request_gap: Nanos::from_secs(1),
    ..RULES
};
