//! Binance's rules: spot (developers.binance.com/docs/binance-spot-api-docs/web-socket-streams) and USD-margined
//! futures (developers.binance.com/docs/derivatives/usds-margined-futures).

use super::parse_snapshot;
use crate::rules::{
    AnswerRule, Checksum, Grouping, Instruments, JoinRule, KeepAlive, Login, LoginTime, Numbering, Overlap, Private,
    RequestRule, ResyncBudget, Rules, Snapshot, Tested, TokenRule, Topic, TopicKind,
};
use tt_model::Nanos;

/// `{"result":null,"id":1}`, or `{"error":{"code":2,"msg":".."},"id":1}`.
const ANSWER: AnswerRule = AnswerRule {
    starts: &["{\"result\"", "{\"id\"", "{\"error\""],
    id: Some("/id"),
    each: false,
    accepted: None,
    refused: &[("/error", "")],
    reason: &["/error/msg", "/error"],
    subject: &[],
};

const REQUEST: RequestRule = RequestRule {
    text: r#"{"id":{id},"method":"{method}","params":[{topics}]}"#,
    subscribe: "SUBSCRIBE",
    unsubscribe: "UNSUBSCRIBE",
    grouping: Grouping::Topics,
};

/// The venue pings by WebSocket frames.
const KEEP_ALIVE: KeepAlive = KeepAlive { ping: None, begin: None, answer: None };

const PRIVATE_REQUEST: &str = r#"{"id":{id},"method":"SUBSCRIBE","params":[{topics}]}"#;

/// It lasts an hour unless renewed.
const LISTEN_KEY: TokenRule =
    TokenRule { rest: "", path: "", found: "/listenKey", renewed: Some(Nanos::from_secs(30 * 60)) };

/// Binance spot.
pub static SPOT: Rules = Rules {
    name: "binance_spot",
    tested: Tested::Captured,
    streams: "wss://stream.binance.com:9443/stream",
    rest: Some("https://api.binance.com"),
    instruments: Instruments::Named("/api/v3/exchangeInfo?symbols=%5B{symbols}%5D"),
    snapshot: Some(Snapshot { path: "/api/v3/depth?symbol={symbol}&limit=1000", parse: parse_snapshot }),
    topics: &[
        Topic::followed(TopicKind::Book, "\"{lower}@depth@100ms\""),
        Topic::followed(TopicKind::BestLevels, "\"{lower}@bookTicker\""),
        Topic::followed(TopicKind::Trades, "\"{lower}@trade\""),
        Topic::offered(TopicKind::Ticker, "\"{lower}@ticker\""),
        Topic::offered(TopicKind::Candles, "\"{lower}@kline_1m\""),
    ],
    depths: &[],
    depth: 0,
    truncates: false,
    request: REQUEST,
    answer: ANSWER,
    join: JoinRule::Rest(Overlap::Next),
    numbering: Numbering::Range,
    checksum: Checksum::None,
    may_lock: false,
    keep_alive: KEEP_ALIVE,
    // It pings every 20 s.
    silence_max: Nanos::from_secs(60),
    // 1,024 streams.
    topics_max: 1000,
    topics_per_request: 300,
    // Five messages a second.
    request_gap: Nanos::from_millis(250),
    // A thousand levels weigh 50 of the 6,000 that are allowed in a minute.
    snapshot_gap: Nanos::from_millis(600),
    // A thousand levels weigh 50 of the 6,000 that are allowed in a minute: half of that for resyncs.
    resyncs: ResyncBudget { burst: 60, gap: Nanos::from_secs(1) },
    // Listen keys are no more: a signed request subscribes (developers.binance.com, "User Data Stream requests").
    private: Some(Private {
        streams: "wss://ws-api.binance.com:443/ws-api/v3",
        login: Login::HmacHex,
        signed: "apiKey={key}&timestamp={time}",
        time: LoginTime::Milliseconds,
        message: "",
        request: r#"{"id":{id},"method":"userDataStream.subscribe.signature","params":{"apiKey":"{key}","signature":"{signature}","timestamp":{time}}}"#,
        token: None,
        topics: &[Topic::followed(TopicKind::Orders, "\"{listen_key}\"")],
    }),
};

/// Binance USD-margined futures.
pub static USDM: Rules = Rules {
    name: "binance_usdm",
    streams: "wss://fstream.binance.com/stream",
    rest: Some("https://fapi.binance.com"),
    instruments: Instruments::Lists(&["/fapi/v1/exchangeInfo"]),
    snapshot: Some(Snapshot { path: "/fapi/v1/depth?symbol={symbol}&limit=1000", parse: parse_snapshot }),
    topics: &[
        Topic::followed(TopicKind::Book, "\"{lower}@depth@100ms\""),
        Topic::followed(TopicKind::BestLevels, "\"{lower}@bookTicker\""),
        Topic::followed(TopicKind::Trades, "\"{lower}@trade\""),
        Topic::followed(TopicKind::MarkPrice, "\"{lower}@markPrice@1s\""),
        Topic::offered(TopicKind::Candles, "\"{lower}@kline_1m\""),
        Topic::offered(TopicKind::Liquidations, "\"{lower}@forceOrder\""),
    ],
    join: JoinRule::Rest(Overlap::Same),
    numbering: Numbering::Previous,
    // It pings every 3 min.
    silence_max: Nanos::from_secs(240),
    private: Some(Private {
        streams: "wss://fstream.binance.com/stream",
        login: Login::ListenKey,
        signed: "",
        time: LoginTime::Milliseconds,
        message: "",
        request: PRIVATE_REQUEST,
        token: Some(TokenRule { rest: "https://fapi.binance.com", path: "/fapi/v1/listenKey", ..LISTEN_KEY }),
        topics: &[Topic::followed(TopicKind::Orders, "\"{listen_key}\"")],
    }),
    ..SPOT
};

/// Binance coin-margined futures: quantities are contracts of a fixed value in US dollars.
pub(crate) static COINM: Rules = Rules {
    name: "binance_coinm",
    streams: "wss://dstream.binance.com/stream",
    rest: Some("https://dapi.binance.com"),
    instruments: Instruments::Lists(&["/dapi/v1/exchangeInfo"]),
    snapshot: Some(Snapshot { path: "/dapi/v1/depth?symbol={symbol}&limit=1000", parse: parse_snapshot }),
    private: Some(Private {
        streams: "wss://dstream.binance.com/stream",
        login: Login::ListenKey,
        signed: "",
        time: LoginTime::Milliseconds,
        message: "",
        request: PRIVATE_REQUEST,
        token: Some(TokenRule { rest: "https://dapi.binance.com", path: "/dapi/v1/listenKey", ..LISTEN_KEY }),
        topics: &[Topic::followed(TopicKind::Orders, "\"{listen_key}\"")],
    }),
    ..USDM
};
