//! Coinbase Advanced's rules (docs.cdp.coinbase.com/coinbase-app/advanced-trade-apis/websocket).

use crate::rules::{
    AnswerRule, Checksum, Grouping, Instruments, JoinRule, KeepAlive, Login, LoginTime, Numbering, Private,
    RequestRule, ResyncBudget, Rules, Tested, Topic, TopicKind,
};
use tt_model::Nanos;

/// Coinbase Advanced.
pub(crate) static RULES: Rules = Rules {
    name: "coinbase_advanced",
    tested: Tested::UnverifiedLive,
    streams: "wss://advanced-trade-ws.coinbase.com",
    rest: Some("https://api.coinbase.com"),
    instruments: Instruments::Lists(&["/api/v3/brokerage/market/products"]),
    snapshot: None,
    topics: &[
        Topic::followed(TopicKind::Book, r#""channel":"level2","product_ids":[{symbols}]"#),
        Topic::followed(TopicKind::Ticker, r#""channel":"ticker","product_ids":[{symbols}]"#),
        Topic::followed(TopicKind::Trades, r#""channel":"market_trades","product_ids":[{symbols}]"#),
        // Quiet topics are closed after 60 to 90 seconds unless something is sent.
        Topic::followed(TopicKind::Heartbeat, r#""channel":"heartbeats""#),
        Topic::offered(TopicKind::Candles, r#""channel":"candles","product_ids":[{symbols}]"#),
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
    answer: AnswerRule {
        starts: &["{\"channel\":\"subscriptions\"", "{\"type\":\"error\""],
        id: None,
        each: false,
        accepted: None,
        refused: &[("/type", "error")],
        reason: &["/message"],
        subject: &[],
    },
    join: JoinRule::Socket,
    numbering: Numbering::Connection,
    checksum: Checksum::None,
    // A product may be in auction mode.
    may_lock: true,
    keep_alive: KeepAlive { ping: None, begin: None, answer: None },
    // A heartbeat each second.
    silence_max: Nanos::from_secs(10),
    topics_max: 1000,
    topics_per_request: 100,
    // Eight messages a second and address.
    request_gap: Nanos::from_millis(250),
    snapshot_gap: Nanos::from_millis(250),
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(1) },
    private: Some(Private {
        streams: "wss://advanced-trade-ws-user.coinbase.com",
        login: Login::Jwt,
        signed: "",
        time: LoginTime::Seconds,
        message: "",
        request: r#"{"type":"subscribe",{topics}}"#,
        token: None,
        topics: &[
            Topic::followed(TopicKind::Orders, r#""channel":"user","jwt":"{listen_key}""#),
            Topic::followed(TopicKind::Heartbeat, r#""channel":"heartbeats","jwt":"{listen_key}""#),
        ],
    }),
};
