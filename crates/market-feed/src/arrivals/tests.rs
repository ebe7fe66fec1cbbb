//! Frames of every venue, and when a topic is silent.

use super::*;
use tt_venue::Venue;

/// Venue, symbol, topic and frame, as the venue documents it, shortened after what names topic and symbol.
const FRAMES: &[(Venue, &str, &str, &str)] = &[
    (
        Venue::BinanceSpot,
        "BTCUSDT",
        "book",
        r#"{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1672515782136,"s":"BTCUSDT","U":157"#,
    ),
    (Venue::BinanceSpot, "BTCUSDT", "book", r#"{"e":"depthUpdate","E":1672515782136,"s":"BTCUSDT","U":157,"u":160"#),
    (
        Venue::BinanceSpot,
        "BNBUSDT",
        "best-levels",
        r#"{"u":400900217,"s":"BNBUSDT","b":"25.35190000","B":"31.21000000","#,
    ),
    (Venue::BinanceSpot, "1INCHUSDT", "trades", r#"{"stream":"1inchusdt@trade","data":{"e":"trade""#),
    (
        Venue::BinanceUsdm,
        "BTCUSDT",
        "mark-price",
        r#"{"e":"markPriceUpdate","E":1562305380000,"s":"BTCUSDT","p":"11794.15000000""#,
    ),
    (Venue::BybitLinear, "BTCUSDT", "book", r#"{"topic":"orderbook.50.BTCUSDT","type":"snapshot","ts":1672304484978"#),
    (
        Venue::BybitLinear,
        "BTCUSDT",
        "ticker",
        r#"{"topic":"tickers.BTCUSDT","type":"snapshot","data":{"symbol":"BTCUSDT""#,
    ),
    (
        Venue::Okx,
        "BTC-USDT",
        "book",
        r#"{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"snapshot","data":[{"asks":[["8476.98","415","#,
    ),
    (
        Venue::Okx,
        "BTC-USDT-SWAP",
        "mark-price",
        r#"{"arg":{"channel":"mark-price","instId":"BTC-USDT-SWAP"},"data":[{"instType":"SWAP""#,
    ),
    (
        Venue::Kraken,
        "MATIC/USD",
        "book",
        r#"{"channel":"book","type":"snapshot","data":[{"symbol":"MATIC/USD","bids":[{"price":0.5666"#,
    ),
    (
        Venue::Kraken,
        "ALGO/USD",
        "ticker",
        r#"{"channel":"ticker","type":"snapshot","data":[{"symbol":"ALGO/USD","bid":0.10025"#,
    ),
    (Venue::CoinbaseExchange, "BTC-USD", "book", r#"{"type":"snapshot","product_id":"BTC-USD","asks":[["#),
    (Venue::CoinbaseExchange, "BTC-USD", "book", r#"{"type":"l2update","product_id":"BTC-USD","changes":[["buy","#),
    (
        Venue::CoinbaseExchange,
        "BTC-USD",
        "trades",
        r#"{"type":"match","trade_id":10,"sequence":50,"maker_order_id":"ac928c66-ca53-498f-9c13-a110027a60e8","taker_order_id":"132fb6ae-456b-4654-b4e0-d681ac05cea1","time":"2014-11-07T08:19:27.028459Z","product_id":"BTC-USD","size":"5.23512""#,
    ),
    (
        Venue::CoinbaseExchange,
        "BTC-USD",
        "heartbeat",
        r#"{"type":"heartbeat","sequence":90,"last_trade_id":20,"product_id":"BTC-USD","#,
    ),
    (
        Venue::CoinbaseAdvanced,
        "ETH-USD",
        "book",
        r#"{"channel":"l2_data","client_id":"","timestamp":"2023-02-09T20:32:50.714964855Z","sequence_num":0,"events":[{"type":"snapshot","product_id":"ETH-USD","#,
    ),
    (
        Venue::CoinbaseAdvanced,
        "ETH-USD",
        "ticker",
        r#"{"channel":"ticker","timestamp":"2023-02-09T20:30:37.167359596Z","sequence_num":0,"events":[{"type":"snapshot","tickers":[{"type":"ticker","product_id":"ETH-USD""#,
    ),
    (
        Venue::CoinbaseAdvanced,
        "",
        "heartbeat",
        r#"{"channel":"heartbeats","client_id":"","timestamp":"2023-06-23T20:31:56.121961769Z","sequence_num":0,"#,
    ),
    (
        Venue::Deribit,
        "BTC-PERPETUAL",
        "book",
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.BTC-PERPETUAL.100ms","data":{"type":"snapshot""#,
    ),
    (Venue::Hyperliquid, "BTC", "book", r#"{"channel":"l2Book","data":{"coin":"BTC","time":1737900000000,"levels":[["#),
    (
        Venue::Hyperliquid,
        "BTC",
        "mark-price",
        r#"{"channel":"activeAssetCtx","data":{"coin":"BTC","ctx":{"dayNtlVlm":"1"#,
    ),
    (Venue::Hyperliquid, "", "ticker", r#"{"channel":"allMids","data":{"mids":{"BTC":"1""#),
];

const SECOND: Duration = Duration::from_secs(1);

/// All topics of a venue for `symbols`, acknowledged at the moment that is returned.
fn watched(venue: Venue, symbols: &[&str]) -> (Arrivals, Instant) {
    let topics: Vec<&Topic> = venue.rules().topics_of(venue.rules().depth).collect();
    let symbols: Vec<String> = symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
    let now = Instant::now();
    let mut arrivals = Arrivals::new(&topics, &symbols, 50, now);
    arrivals.begin(now);
    (arrivals, now)
}

#[test]
fn frames_of_every_venue_are_recognised() {
    for (venue, symbol, topic, frame) in FRAMES {
        let (venue, symbol, topic) = (*venue, *symbol, *topic);
        let other = if venue == Venue::Hyperliquid { "ETH" } else { "OTHER" };
        let (mut arrivals, now) = watched(venue, &[other, if symbol.is_empty() { "BTC" } else { symbol }]);
        arrivals.counts_all = true;
        arrivals.take(frame.as_bytes(), now);
        let seen: Vec<_> = arrivals.all().filter(|one| one.frames > 0).map(|one| one.topic).collect();
        assert_eq!(seen, [SilentTopic { symbol: symbol.to_owned(), topic }], "{frame}");
    }
}

fn silent_after(arrivals: &mut Arrivals, now: Instant, seconds: u32) -> Vec<String> {
    let silent = arrivals.check(now + SECOND * seconds);
    silent.into_iter().map(|silent| format!("{} {}", silent.topic, silent.symbol)).collect()
}

#[test]
fn changes_are_missed_only_of_an_active_instrument() {
    let (mut arrivals, now) = watched(Venue::BinanceSpot, &["BTCUSDT", "DEADUSDT"]);
    assert_eq!(silent_after(&mut arrivals, now, 60), [""; 0], "nothing shows that one of them is active");
    for frame in 0..ACTIVE_FRAMES {
        arrivals.take(br#"{"stream":"btcusdt@bookTicker","data":{}}"#, now + SECOND);
        let silent = silent_after(&mut arrivals, now, 60);
        assert_eq!(silent.is_empty(), frame < ACTIVE_FRAMES - 1, "{frame} {silent:?}");
    }
    assert!(arrivals.silent().map(|silent| silent.topic).eq(["book"]), "candles follow trades: there is none");
    for _ in 0..TRADED_FRAMES {
        arrivals.take(br#"{"stream":"btcusdt@trade","data":{}}"#, now + SECOND);
    }
    assert_eq!(silent_after(&mut arrivals, now, 10), [""; 0], "they may take ten seconds");
    assert_eq!(silent_after(&mut arrivals, now, 11), ["ticker BTCUSDT", "candles BTCUSDT"]);
    assert!(arrivals.take(br#"{"stream":"btcusdt@depth@100ms","data":{}}"#, now + SECOND), "it is back");
    assert!(!arrivals.silent().any(|silent| silent.topic == "book"));
}

#[test]
fn what_begins_with_a_snapshot_is_due_at_once_and_nothing_before_the_acknowledgement() {
    let topics: Vec<&Topic> = Venue::Kraken.rules().default_topics().collect();
    let now = Instant::now();
    let mut arrivals = Arrivals::new(&topics, &["BTC/USD".to_owned()], 10, now);
    assert_eq!(silent_after(&mut arrivals, now, 60), [""; 0]);
    arrivals.begin(now + SECOND * 60);
    assert_eq!(silent_after(&mut arrivals, now, 65), [""; 0]);
    assert_eq!(silent_after(&mut arrivals, now, 66), ["book BTC/USD", "ticker BTC/USD"]);
    assert_eq!(silent_after(&mut arrivals, now, 67), [""; 0], "each is named once");
}

#[test]
fn a_promised_spacing_is_held_against_the_venue_for_ever() {
    let (mut arrivals, now) = watched(Venue::CoinbaseAdvanced, &["BTC-USD"]);
    let beat = br#"{"channel":"heartbeats","client_id":"#;
    let mut silent = |seconds: u32, comes: bool| {
        if comes {
            arrivals.take(beat, now + SECOND * seconds);
        }
        silent_after(&mut arrivals, now, seconds).iter().any(|silent| silent.starts_with("heartbeat"))
    };
    assert!((1..100).all(|seconds| !silent(seconds, true)));
    // The last came after 99 s; from 109 s on it is looked for, and five spacings later it is missed.
    assert!((100..=114).all(|seconds| !silent(seconds, false)));
    assert!(silent(115, false));
}

/// USD-M's single trades are not documented: where they do not come, aggregates are followed.
#[test]
fn a_topic_with_a_second_form_fails_only_while_an_instrument_is_active_and_none_has_come() {
    let most = SECOND * 30;
    let kind = |arrivals: &Arrivals, seconds| {
        arrivals.failing(Instant::now() + SECOND * seconds, most).map(|topic| topic.kind)
    };
    let (mut arrivals, now) = watched(Venue::BinanceUsdm, &["BTCUSDT", "DEADUSDT"]);
    assert_eq!(kind(&arrivals, 60), None, "nothing shows that one of them is active");
    for _ in 0..ACTIVE_FRAMES {
        arrivals.take(br#"{"stream":"btcusdt@depth@100ms","data":{}}"#, now + SECOND);
    }
    assert_eq!((kind(&arrivals, 29), kind(&arrivals, 60)), (None, Some(TopicKind::Trades)));
    assert!(silent_after(&mut arrivals, now, 60).iter().all(|silent| !silent.starts_with("trades")), "it may be quiet");
    arrivals.take(br#"{"stream":"deadusdt@trade","data":{}}"#, now + SECOND);
    assert_eq!(kind(&arrivals, 60), None, "one symbol shows that the venue sends them");

    // Nothing waits for trades then: a frame costs one comparison again.
    let topics: Vec<&Topic> =
        Venue::BinanceUsdm.rules().default_topics().filter(|topic| topic.fallback.is_some()).collect();
    let mut arrivals = Arrivals::new(&topics, &["BTCUSDT".to_owned(), "DEADUSDT".to_owned()], 0, now);
    assert!(!arrivals.is_complete());
    arrivals.take(br#"{"stream":"btcusdt@trade","data":{}}"#, now);
    assert!(arrivals.is_complete());
    let (mut spot, now) = watched(Venue::BinanceSpot, &["BTCUSDT"]);
    for _ in 0..ACTIVE_FRAMES {
        spot.take(br#"{"stream":"btcusdt@depth@100ms","data":{}}"#, now + SECOND);
    }
    assert_eq!(kind(&spot, 60), None, "spot documents its trades");
}
