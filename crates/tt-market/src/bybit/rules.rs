//! Bybit's rules, API version 5 (bybit-exchange.github.io/docs/v5/ws/connect).

use crate::rules::{
    AnswerRule, Checksum, Grouping, Instruments, JoinRule, KeepAlive, Login, LoginTime, Numbering, Private,
    RequestRule, ResyncBudget, Rules, Tested, Topic, TopicKind,
};
use tt_model::Nanos;

const CONTRACT_TOPICS: &[Topic] = &[
    Topic::followed(TopicKind::Book, "\"orderbook.{depth}.{symbol}\""),
    Topic::followed(TopicKind::Ticker, "\"tickers.{symbol}\""),
    Topic::followed(TopicKind::Trades, "\"publicTrade.{symbol}\""),
    Topic::offered(TopicKind::Candles, "\"kline.1.{symbol}\""),
    Topic::offered(TopicKind::Liquidations, "\"allLiquidation.{symbol}\""),
];

/// Linear contracts.
pub static LINEAR: Rules = Rules {
    name: "bybit_linear",
    tested: Tested::Captured,
    streams: "wss://stream.bybit.com/v5/public/linear",
    rest: Some("https://api.bybit.com"),
    instruments: Instruments::Lists(&["/v5/market/instruments-info?category=linear&limit=1000"]),
    snapshot: None,
    topics: CONTRACT_TOPICS,
    depths: &[1, 50, 200, 1000],
    depth: 50,
    truncates: true,
    request: RequestRule {
        text: r#"{"req_id":"{id}","op":"{method}","args":[{topics}]}"#,
        subscribe: "subscribe",
        unsubscribe: "unsubscribe",
        grouping: Grouping::Topics,
    },
    // `{"success":true,"ret_msg":"","conn_id":"..","req_id":"1","op":"subscribe"}`.
    answer: AnswerRule {
        starts: &["{\"success\"", "{\"req_id\""],
        id: Some("/req_id"),
        each: false,
        accepted: None,
        refused: &[("/success", "false")],
        reason: &["/ret_msg"],
        subject: &[],
    },
    join: JoinRule::Socket,
    numbering: Numbering::RangeFromOne,
    checksum: Checksum::None,
    // Contracts before their market opens, and books that begin anew, are matched by auction.
    may_lock: true,
    keep_alive: KeepAlive { ping: Some((r#"{"op":"ping"}"#, Nanos::from_secs(20))), begin: None, answer: None },
    // Each ping is answered.
    silence_max: Nanos::from_secs(45),
    topics_max: 1000,
    // Ten on spot; elsewhere 21,000 characters.
    topics_per_request: 10,
    request_gap: Nanos::from_millis(100),
    snapshot_gap: Nanos::from_millis(100),
    // Two requests each.
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(1) },
    private: Some(Private {
        streams: "wss://stream.bybit.com/v5/private",
        login: Login::HmacHex,
        signed: "GET/realtime{time}",
        time: LoginTime::ExpiryMilliseconds,
        message: r#"{"req_id":"{id}","op":"auth","args":["{key}",{time},"{signature}"]}"#,
        request: r#"{"req_id":"{id}","op":"subscribe","args":[{topics}]}"#,
        token: None,
        topics: &[
            Topic::followed(TopicKind::Orders, "\"order\""),
            Topic::followed(TopicKind::Executions, "\"execution\""),
            Topic::followed(TopicKind::Positions, "\"position\""),
            Topic::followed(TopicKind::Balances, "\"wallet\""),
        ],
    }),
};

/// Inverse contracts.
pub static INVERSE: Rules = Rules {
    name: "bybit_inverse",
    streams: "wss://stream.bybit.com/v5/public/inverse",
    instruments: Instruments::Lists(&["/v5/market/instruments-info?category=inverse&limit=1000"]),
    tested: Tested::UnverifiedLive,
    ..LINEAR
};

/// Spot.
pub static SPOT: Rules = Rules {
    name: "bybit_spot",
    streams: "wss://stream.bybit.com/v5/public/spot",
    instruments: Instruments::Lists(&["/v5/market/instruments-info?category=spot"]),
    topics: &[
        Topic::followed(TopicKind::Book, "\"orderbook.{depth}.{symbol}\""),
        Topic::followed(TopicKind::Ticker, "\"tickers.{symbol}\""),
        Topic::followed(TopicKind::Trades, "\"publicTrade.{symbol}\""),
        Topic::offered(TopicKind::Candles, "\"kline.1.{symbol}\""),
    ],
    tested: Tested::UnverifiedLive,
    ..LINEAR
};
