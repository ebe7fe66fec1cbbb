//! OKX's rules, API version 5 (www.okx.com/docs-v5/en, "Order book trading: market data").

use super::parse_snapshot;
use crate::rules::{
    AnswerRule, Checksum, Grouping, Instruments, JoinRule, KeepAlive, Login, LoginTime, Numbering, Overlap, Private,
    RequestRule, ResyncBudget, Rules, Snapshot, Tested, Topic, TopicKind,
};
use tt_model::Nanos;

const BUSINESS: &str = "wss://ws.okx.com:8443/ws/v5/business";

/// OKX.
pub static RULES: Rules = Rules {
    name: "okx",
    tested: Tested::Captured,
    streams: "wss://ws.okx.com:8443/ws/v5/public",
    rest: Some("https://www.okx.com"),
    instruments: Instruments::Lists(&[
        "/api/v5/public/instruments?instType=SPOT",
        "/api/v5/public/instruments?instType=SWAP",
        "/api/v5/public/instruments?instType=FUTURES",
    ]),
    snapshot: Some(Snapshot { path: "/api/v5/market/books?instId={symbol}&sz=400&source=0", parse: parse_snapshot }),
    topics: &[
        Topic::followed(TopicKind::Book, r#"{"channel":"books","instId":"{symbol}"}"#),
        Topic::followed(TopicKind::Ticker, r#"{"channel":"tickers","instId":"{symbol}"}"#),
        Topic::followed(TopicKind::Trades, r#"{"channel":"trades","instId":"{symbol}"}"#),
        Topic::offered(TopicKind::BestLevels, r#"{"channel":"bbo-tbt","instId":"{symbol}"}"#),
        Topic::offered(TopicKind::MarkPrice, r#"{"channel":"mark-price","instId":"{symbol}"}"#),
        Topic::offered(TopicKind::IndexPrice, r#"{"channel":"index-tickers","instId":"{symbol}"}"#),
        Topic::offered(TopicKind::Funding, r#"{"channel":"funding-rate","instId":"{symbol}"}"#),
        Topic::offered(TopicKind::OpenInterest, r#"{"channel":"open-interest","instId":"{symbol}"}"#),
        Topic::offered(TopicKind::Liquidations, r#"{"channel":"liquidation-orders","instType":"SWAP"}"#),
        Topic::elsewhere(TopicKind::Candles, r#"{"channel":"candle1m","instId":"{symbol}"}"#, BUSINESS),
    ],
    depths: &[400],
    depth: 400,
    truncates: true,
    request: RequestRule {
        text: r#"{"op":"{method}","args":[{topics}]}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::Topics,
    },
    // `{"event":"subscribe","arg":{"channel":"books","instId":"BTC-USDT"},"connId":".."}`.
    answer: AnswerRule {
        starts: &["{\"event\""],
        id: None,
        each: true,
        accepted: None,
        refused: &[("/event", "error")],
        reason: &["/msg"],
        subject: &["/arg/instId"],
    },
    join: JoinRule::Both(Overlap::Follows),
    numbering: Numbering::Chain,
    // All zeros since June 2026.
    checksum: Checksum::Okx,
    // New listings begin with a call auction.
    may_lock: true,
    keep_alive: KeepAlive { ping: Some(("ping", Nanos::from_secs(20))), begin: None, answer: None },
    // Each ping is answered.
    silence_max: Nanos::from_secs(45),
    topics_max: 1000,
    topics_per_request: 100,
    // 480 requests an hour.
    request_gap: Nanos::from_millis(500),
    // 40 books in two seconds.
    snapshot_gap: Nanos::from_millis(100),
    // Two requests each, of 480 an hour.
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(20) },
    private: Some(Private {
        streams: "wss://ws.okx.com:8443/ws/v5/private",
        login: Login::HmacBase64,
        signed: "{time}GET/users/self/verify",
        time: LoginTime::Seconds,
        message: r#"{"op":"login","args":[{"apiKey":"{key}","passphrase":"{passphrase}","timestamp":"{time}","sign":"{signature}"}]}"#,
        request: r#"{"op":"subscribe","args":[{topics}]}"#,
        token: None,
        topics: &[
            Topic::followed(TopicKind::Orders, r#"{"channel":"orders","instType":"ANY"}"#),
            Topic::followed(TopicKind::Positions, r#"{"channel":"positions","instType":"ANY"}"#),
            Topic::followed(TopicKind::Balances, r#"{"channel":"account"}"#),
        ],
    }),
};
