//! Hyperliquid's rules (hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api/websocket).

use crate::rules::{
    AnswerRule, Checksum, Grouping, Instruments, JoinRule, KeepAlive, Login, LoginTime, Numbering, Private,
    RequestRule, ResyncBudget, Rules, Tested, Topic, TopicKind,
};
use tt_model::Nanos;

/// Hyperliquid.
pub(crate) static RULES: Rules = Rules {
    name: "hyperliquid",
    tested: Tested::Captured,
    streams: "wss://api.hyperliquid.xyz/ws",
    rest: Some("https://api.hyperliquid.xyz"),
    // Perpetuals, spot markets.
    instruments: Instruments::Posted("/info", &[r#"{"type":"meta"}"#, r#"{"type":"spotMeta"}"#]),
    snapshot: None,
    topics: &[
        Topic::followed(TopicKind::Book, r#"{"type":"l2Book","coin":"{symbol}"}"#),
        Topic::followed(TopicKind::BestLevels, r#"{"type":"bbo","coin":"{symbol}"}"#),
        Topic::followed(TopicKind::Trades, r#"{"type":"trades","coin":"{symbol}"}"#),
        Topic::followed(TopicKind::MarkPrice, r#"{"type":"activeAssetCtx","coin":"{symbol}"}"#),
        Topic::offered(TopicKind::Candles, r#"{"type":"candle","coin":"{symbol}","interval":"1m"}"#),
        Topic::offered(TopicKind::Ticker, r#"{"type":"allMids"}"#),
    ],
    depths: &[],
    depth: 0,
    truncates: false,
    request: RequestRule {
        text: r#"{"method":"{method}","subscription":{topics}}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::One,
    },
    answer: AnswerRule {
        starts: &["{\"channel\":\"subscriptionResponse\"", "{\"channel\":\"error\""],
        id: None,
        each: true,
        accepted: None,
        refused: &[("/channel", "error")],
        reason: &["/data"],
        subject: &["/data/subscription/coin"],
    },
    join: JoinRule::Whole,
    numbering: Numbering::None,
    checksum: Checksum::None,
    may_lock: false,
    // The venue closes what has been silent for a minute.
    keep_alive: KeepAlive { ping: Some((r#"{"method":"ping"}"#, Nanos::from_secs(20))), begin: None, answer: None },
    silence_max: Nanos::from_secs(45),
    topics_max: 1000,
    topics_per_request: 1,
    // Two thousand messages a minute and address.
    request_gap: Nanos::from_millis(50),
    snapshot_gap: Nanos::from_millis(250),
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(1) },
    private: Some(Private {
        streams: "wss://api.hyperliquid.xyz/ws",
        login: Login::Address,
        signed: "",
        time: LoginTime::Milliseconds,
        message: "",
        request: r#"{"method":"subscribe","subscription":{topics}}"#,
        token: None,
        topics: &[
            Topic::followed(TopicKind::Orders, r#"{"type":"orderUpdates","user":"{listen_key}"}"#),
            Topic::followed(TopicKind::Executions, r#"{"type":"userFills","user":"{listen_key}"}"#),
            Topic::followed(TopicKind::Positions, r#"{"type":"webData2","user":"{listen_key}"}"#),
            Topic::offered(TopicKind::Balances, r#"{"type":"userFundings","user":"{listen_key}"}"#),
        ],
    }),
};
