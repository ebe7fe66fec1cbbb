//! Frames that venues have added since 2025, as their documentation and clients' tests show them, by both readers.

use tt_model::{Decimal, Nanos};
use tt_venue::event::{Control, Event, EventBuffer, InstrumentState, Level, Trade};
use tt_venue::rules::TopicKind;
use tt_venue::{ParseError, Symbol, Venue};

/// What a frame says, which the general reader reads in the same way.
fn read(venue: Venue, frame: &str, buffer: &mut EventBuffer) -> Result<Event, ParseError> {
    let mut general = EventBuffer::new(64, 64);
    let expected = venue.parse_general(frame.as_bytes(), &mut general);
    let found = venue.parse(frame.as_bytes(), buffer);
    assert_eq!(found, expected, "{frame}");
    assert_eq!((buffer.levels(), buffer.trades()), (general.levels(), general.trades()), "{frame}");
    found
}

fn only_trade(venue: Venue, frame: &str) -> Trade {
    let mut buffer = EventBuffer::new(64, 64);
    assert_eq!(read(venue, frame, &mut buffer), Ok(Event::Trades));
    assert_eq!(buffer.trades().len(), 1);
    buffer.trades()[0]
}

/// Spot with `timeUnit=MICROSECOND`: the documented messages with times of sixteen digits.
#[test]
fn binance_times_are_milliseconds_or_microseconds() {
    for (time, ns) in [("1672515782136", 1_672_515_782_136_000_000), ("1672515782136042", 1_672_515_782_136_042_000)] {
        let frame = format!(
            r#"{{"stream":"bnbbtc@trade","data":{{"e":"trade","E":{time},"s":"BNBBTC","t":12345,"p":"0.001","q":"100","T":{time},"m":true,"M":true}}}}"#
        );
        assert_eq!(only_trade(Venue::BinanceSpot, &frame).ts_event, Nanos(ns));
        let frame = format!(
            r#"{{"e":"aggTrade","E":{time},"s":"BNBBTC","a":12345,"p":"0.001","q":"100","f":100,"l":105,"T":{time},"m":true,"M":true}}"#
        );
        assert_eq!(only_trade(Venue::BinanceSpot, &frame).ts_event, Nanos(ns));
        let frame = format!(
            r#"{{"e":"depthUpdate","E":{time},"s":"BNBBTC","U":157,"u":160,"b":[["0.0024","10"]],"a":[["0.0026","100"]]}}"#
        );
        let mut buffer = EventBuffer::new(64, 64);
        let Ok(Event::BookDelta(delta)) = read(Venue::BinanceSpot, &frame, &mut buffer) else { panic!("{frame}") };
        assert_eq!((delta.ts_event, delta.last_id, buffer.levels().len()), (Nanos(ns), 160, 2));
        let frame = format!(
            r#"{{"e":"kline","E":{time},"s":"BNBBTC","k":{{"t":{time},"T":{time},"s":"BNBBTC","i":"1m","f":100,"L":200,"o":"0.0010","c":"0.0020","h":"0.0025","l":"0.0015","v":"1000","n":100,"x":false,"q":"1.0000","V":"500","Q":"0.500","B":"123456"}}}}"#
        );
        assert_eq!(read(Venue::BinanceSpot, &frame, &mut buffer), Ok(Event::Candles));
        assert_eq!((buffer.candles()[0].ts_open, buffer.candles()[0].ts_event), (Nanos(ns), Nanos(ns)));
    }
    // Neither seconds nor nanoseconds are taken for either.
    for time in ["1672515782", "1672515782136042000"] {
        let frame =
            format!(r#"{{"e":"trade","E":{time},"s":"BNBBTC","t":1,"p":"1","q":"1","T":{time},"m":true,"M":true}}"#);
        assert_eq!(read(Venue::BinanceSpot, &frame, &mut EventBuffer::new(64, 64)), Err(ParseError::Time));
    }
}

/// web-socket-streams, "Block Trade Streams".
#[test]
fn a_block_trade_of_binance_is_not_of_the_market() {
    let frame = r#"{"e":"blockTrade","E":1772506983582,"s":"AXVNBTC","t":582,"p":"0.052","q":"5838","T":1772506983321,"m":true}"#;
    for frame in [frame.to_owned(), format!(r#"{{"stream":"axvnbtc@blockTrade","data":{frame}}}"#)] {
        let trade = only_trade(Venue::BinanceSpot, &frame);
        assert_eq!((trade.in_market, trade.trade_id, trade.qty), (false, 582, Decimal::new(5838, 0)));
    }
    let topic = Venue::BinanceSpot.rules().topic(TopicKind::BlockTrades).unwrap();
    assert_eq!((topic.text, topic.is_default), ("\"{lower}@blockTrade\"", false));
    assert!(Venue::BinanceUsdm.rules().topic(TopicKind::BlockTrades).is_none(), "futures have none");
}

/// web-socket-streams, "Reference Price Streams".
#[test]
fn the_reference_price_of_binance_spot_may_be_absent() {
    let topic = Venue::BinanceSpot.rules().topic(TopicKind::IndexPrice).unwrap();
    assert_eq!((topic.text, topic.is_default), ("\"{lower}@referencePrice\"", false));
    for (price, expected) in [("\"1.00\"", Some(Decimal::new(100, 2))), ("null", None)] {
        let frame = format!(r#"{{"e":"referencePrice","s":"BAZUSD","r":{price},"t":1770313263917}}"#);
        for frame in [frame.clone(), format!(r#"{{"stream":"bazusd@referencePrice","data":{frame}}}"#)] {
            let mut buffer = EventBuffer::new(64, 64);
            assert_eq!(read(Venue::BinanceSpot, &frame, &mut buffer), Ok(Event::Tickers));
            let [ticker] = buffer.tickers() else { panic!("{frame}") };
            assert_eq!((ticker.index_px, ticker.bid_px, ticker.last_px), (expected, None, None));
            assert_eq!(
                (ticker.symbol, ticker.ts_event),
                (Symbol::new(b"BAZUSD").unwrap(), Nanos::from_millis(1_770_313_263_917))
            );
        }
    }
}

/// "Trading Session Stream" of USD-M, the documented message; of commodities there are two kinds.
#[test]
fn sessions_of_underlying_markets_of_binance_are_read() {
    let topic = Venue::BinanceUsdm.rules().topic(TopicKind::Sessions).unwrap();
    assert_eq!((topic.text, topic.is_default, topic.names_symbol()), ("\"tradingSession\"", false, false));
    assert_eq!(topic.streams, Some("wss://fstream.binance.com/market/stream"));
    for (kind, word, market, session) in [
        ("EquityUpdate", "OVERNIGHT", "stocks", "overnight"),
        ("EquityUpdate", "PRE_MARKET", "stocks", "pre_market"),
        ("EquityUpdate", "REGULAR", "stocks", "regular"),
        ("EquityUpdate", "AFTER_MARKET", "stocks", "after_market"),
        ("CommodityUpdate", "NO_TRADING", "commodities", "closed"),
        ("CommodityUpdate", "LUNCH", "commodities", "unknown"),
    ] {
        let frame = format!(r#"{{"e":"{kind}","E":1765244143062,"t":1765242000000,"T":1765270800000,"S":"{word}"}}"#);
        for frame in [frame.clone(), format!(r#"{{"stream":"tradingSession","data":{frame}}}"#)] {
            let read = read(Venue::BinanceUsdm, &frame, &mut EventBuffer::new(64, 64));
            let Ok(Event::Control(Control::Session(found))) = read else { panic!("{frame}: {read:?}") };
            assert_eq!((found.market.name(), found.session.name()), (market, session), "{frame}");
        }
    }
}

/// docs.cdp.coinbase.com/exchange/websocket-feed/channels, "Level3 Channel".
#[test]
fn compact_arrays_of_coinbase_are_no_orders_of_the_full_channel() {
    let schema = r#"{"type":"level3","schema":{"open":["type","product_id","sequence","order_id","side","price","size","time"]}}"#;
    let open = r#"["open","BTC-USD","50","0b9a4d","buy","9000.1","1.5","2023-01-01T00:00:00.000000Z"]"#;
    let mut buffer = EventBuffer::new(64, 64);
    assert_eq!(read(Venue::CoinbaseExchange, schema, &mut buffer), Err(ParseError::UnknownTopic));
    assert_eq!(read(Venue::CoinbaseExchange, open, &mut buffer), Err(ParseError::UnknownTopic));
    let half = &open[..open.len() - 3];
    assert!(read(Venue::CoinbaseExchange, half, &mut buffer).unwrap_err().is_malformed());
}

/// "Full Orderbook": changes by the socket, also with the number 1, and the whole by REST with the same numbers.
#[test]
fn books_of_all_levels_of_bybit_come_as_changes_and_by_rest() {
    for update_id in [1, 3_194_105] {
        let frame = format!(
            r#"{{"topic":"orderbook.full.BTCUSDT","type":"delta","ts":1752472188075,"data":{{"s":"BTCUSDT","b":[["121975.1","0.114259"]],"a":[["122009.5","0"]],"u":{update_id},"seq":79683241142}},"cts":1752472188071}}"#
        );
        let mut buffer = EventBuffer::new(64, 64);
        let Ok(Event::BookDelta(delta)) = read(Venue::BybitSpot, &frame, &mut buffer) else { panic!("{frame}") };
        assert_eq!((delta.first_id, delta.last_id, delta.levels.len()), (update_id, update_id, 2));
        let other = frame.replace("orderbook.full", "orderbook.50");
        let is_whole = matches!(read(Venue::BybitSpot, &other, &mut buffer), Ok(Event::BookSnapshot(_)));
        assert_eq!(is_whole, update_id == 1, "of other depths, 1 is a whole book");
    }
    let body = r#"{"retCode":0,"retMsg":"OK","result":{"s":"BTCUSDT","b":[["10","2"]],"a":[["11","3"],["12","0.5"]],"ts":1752472188075,"u":100,"seq":900,"cts":1752472188071},"retExtInfo":{},"time":1752472188080}"#;
    for (venue, category) in
        [(Venue::BybitSpot, "spot"), (Venue::BybitLinear, "linear"), (Venue::BybitInverse, "inverse")]
    {
        let full = venue.rules().full.unwrap();
        assert_eq!((full.name, full.streams, full.depth), (venue.name(), venue.rules().streams, 10_000));
        let rule = full.snapshot.unwrap();
        assert_eq!(rule.path, format!("/v5/market/full_orderbook?category={category}&symbol={{symbol}}"));
        let mut buffer = EventBuffer::new(64, 64);
        let snapshot = (rule.parse)(body.as_bytes(), &mut buffer).unwrap();
        assert_eq!((snapshot.last_id, snapshot.ts_event), (100, Nanos(1_752_472_188_071_000_000)));
        let level = |px, qty| Level { px, qty };
        assert_eq!(buffer.levels()[snapshot.levels.bids()], [level(10, 20)]);
        assert_eq!(buffer.levels()[snapshot.levels.asks()], [level(11, 30), level(12, 5)]);
        let refused = r#"{"retCode":10001,"retMsg":"params error","result":{}}"#;
        assert_eq!((rule.parse)(refused.as_bytes(), &mut buffer), Err(ParseError::VenueError));
    }
    assert!(Venue::BybitOption.rules().full.is_none());
}

/// www.okx.com/docs-v5/log_en, 2026-07-08: `[price, total, without RPI orders, orders]`, no checksum, numbers chain.
#[test]
fn levels_of_okx_with_rpi_orders_have_the_total() {
    let topic = Venue::Okx.rules().rpi.unwrap().topic(TopicKind::Book).unwrap();
    assert_eq!(topic.text, r#"{"channel":"books-rpi","instId":"{symbol}"}"#);
    assert!(topic.streams.is_none() && !Venue::Okx.rules().rpi.unwrap().needs_login(), "public");
    let frame = r#"{"arg":{"channel":"books-rpi","instId":"BTC-USDT-SWAP"},"action":"snapshot","data":[{"asks":[["67855.2","0.5","0.5","1"],["67856.0","1.3","1.0","4"],["67860.5","0.3","0","1"]],"bids":[["67854.8","1.7","1.2","3"]],"ts":"1779782400000","prevSeqId":-1,"seqId":123456}]}"#;
    let mut buffer = EventBuffer::new(64, 64);
    let Ok(Event::BookSnapshot(snapshot)) = read(Venue::Okx, frame, &mut buffer) else { panic!("{frame}") };
    assert_eq!((snapshot.last_id, snapshot.checksum), (123_456, None));
    let shown = |range: std::ops::Range<usize>| {
        let decimal = |level: &Level| {
            let (px, qty) = (snapshot.levels.px_decimals, snapshot.levels.qty_decimals);
            (Decimal::new(level.px, px).to_string(), Decimal::new(level.qty, qty).to_string())
        };
        buffer.levels()[range].iter().map(decimal).collect::<Vec<_>>()
    };
    let pair = |px: &str, qty: &str| (px.to_owned(), qty.to_owned());
    assert_eq!(shown(snapshot.levels.asks()), [pair("67855.2", "0.5"), pair("67856.0", "1.3"), pair("67860.5", "0.3")]);
    assert_eq!(shown(snapshot.levels.bids()), [pair("67854.8", "1.7")]);
}

/// "RPI Orderbook": levels of price, quantity without RPI orders, quantity of RPI orders.
#[test]
fn levels_of_bybit_with_rpi_orders_have_both_quantities() {
    let frame = r#"{"topic":"orderbook.rpi.BTCUSDT","type":"snapshot","ts":1752472188075,"data":{"s":"BTCUSDT","b":[["121975.1","0.114259","0"],["121975","0.000123","0.5"]],"a":[["122009.5","0","0.000164"]],"u":3194104,"seq":79683241142},"cts":1752472188071}"#;
    let mut buffer = EventBuffer::new(64, 64);
    let Ok(Event::BookSnapshot(snapshot)) = read(Venue::BybitLinear, frame, &mut buffer) else { panic!("{frame}") };
    assert_eq!((snapshot.last_id, snapshot.levels.px_decimals, snapshot.levels.qty_decimals), (3_194_104, 1, 6));
    let level = |px, qty| Level { px, qty };
    let expected = [level(1_219_751, 114_259), level(1_219_750, 500_123), level(1_220_095, 164)];
    assert_eq!(buffer.levels(), expected);
    let frame = r#"{"topic":"orderbook.rpi.BTCUSDT","type":"delta","ts":1752472188075,"data":{"s":"BTCUSDT","b":[["121975.1","0","0"],["121970","0","4"]],"a":[],"u":3194105,"seq":79683241150},"cts":1752472188071}"#;
    let Ok(Event::BookDelta(delta)) = read(Venue::BybitLinear, frame, &mut buffer) else { panic!("{frame}") };
    assert_eq!(delta.last_id, 3_194_105);
    assert_eq!(buffer.levels(), [level(1_219_751, 0), level(1_219_700, 4)], "one of RPI orders alone stays");
    // Other books have two members, as before; here the third is at most one.
    for (topic, level) in [("rpi", r#"["1","2","3","4"]"#), ("rpi", r#"["1"]"#), ("50", r#"["1","2","3"]"#)] {
        let frame = format!(
            r#"{{"topic":"orderbook.{topic}.BTCUSDT","type":"delta","ts":1752472188075,"data":{{"s":"BTCUSDT","b":[{level}],"a":[],"u":2,"seq":3}}}}"#
        );
        assert!(read(Venue::BybitLinear, &frame, &mut buffer).is_err(), "{frame}");
    }
}

/// docs.deribit.com, `platform_state`.
#[test]
fn maintenance_of_deribit_is_a_planned_end() {
    let state = |data: &str| {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"platform_state","data":{data}}}}}"#
        );
        read(Venue::Deribit, &frame, &mut EventBuffer::new(64, 64))
    };
    assert_eq!(state(r#"{"maintenance":true}"#), Ok(Event::Control(Control::Ending)));
    assert_eq!(state(r#"{"maintenance":false}"#), Ok(Event::Control(Control::Status)));
    // Of the instruments of a locked index no message is sent: their states are in the list.
    for locked in ["true", "false"] {
        let data = format!(r#"{{"price_index":"sol_usdc","locked":{locked}}}"#);
        assert_eq!(state(&data), Ok(Event::Control(Control::ListChanged)));
    }
    assert!(state(r#"{"maintenance":1}"#).is_err() && state(r#"{"locked":"true"}"#).is_err());
}

/// docs.deribit.com, `instrument.state.(kind).(currency)`; the states are those of 2026-01-13, and of before.
#[test]
fn states_of_deribits_instruments_are_read() {
    for (state, name) in [
        ("open", "trading"),
        ("settlement", "settling"),
        ("delivered", "closed"),
        ("inactive", "closed"),
        ("locked", "halted"),
        ("halted", "halted"),
        ("archivized", "closed"),
        ("created", "unknown"),
    ] {
        let frame = format!(
            r#"{{"params":{{"data":{{"timestamp":1553080940000,"state":"{state}","instrument_name":"BTC-22MAR19"}},"channel":"instrument.state.any.any"}},"method":"subscription","jsonrpc":"2.0"}}"#
        );
        let read = read(Venue::Deribit, &frame, &mut EventBuffer::new(64, 64));
        let Ok(Event::Control(Control::Instrument(InstrumentState { symbol, status }))) = read else {
            panic!("{frame}: {read:?}")
        };
        assert_eq!((symbol, status.name()), (Symbol::new(b"BTC-22MAR19").unwrap(), name), "{frame}");
    }
}

/// hyperliquid.gitbook.io, "Subscriptions": `WsActiveSpotAssetCtx`, which has no index price and no funding.
#[test]
fn the_mark_price_of_hyperliquids_spot_markets_is_read() {
    for (mid, expected) in
        [(r#""midPx":"24.51","#, Some(Decimal::new(2451, 2))), (r#""midPx":null,"#, None), ("", None)]
    {
        let frame = format!(
            r#"{{"channel":"activeSpotAssetCtx","data":{{"coin":"@107","ctx":{{"prevDayPx":"24.1","dayNtlVlm":"8906.0","markPx":"24.5",{mid}"circulatingSupply":"333927948.6","coin":"@107"}}}}}}"#
        );
        let mut buffer = EventBuffer::new(64, 64);
        assert_eq!(read(Venue::Hyperliquid, &frame, &mut buffer), Ok(Event::Tickers));
        let [ticker] = buffer.tickers() else { panic!("{frame}") };
        assert_eq!((ticker.symbol, ticker.mark_px), (Symbol::new(b"@107").unwrap(), Some(Decimal::new(245, 1))));
        assert_eq!((ticker.mid_px, ticker.index_px, ticker.funding_rate), (expected, None, None));
    }
    let symbol = Symbol::new(b"#5160").unwrap();
    let frame = r##"{"channel":"l2Book","data":{"coin":"#5160","time":1783000000000,"levels":[[{"px":"0.44632","sz":"120.0","n":2}],[{"px":"0.45","sz":"7.0","n":1}]]}}"##;
    let mut buffer = EventBuffer::new(64, 64);
    let Ok(Event::BookSnapshot(snapshot)) = read(Venue::Hyperliquid, frame, &mut buffer) else { panic!("{frame}") };
    assert_eq!((snapshot.symbol, snapshot.levels.px_decimals), (Some(symbol), 5), "an outcome's book is as any other");
}

/// docs.kraken.com, unified WebSocket: the messages of version 2, with the class of assets in each request.
#[test]
fn derivatives_of_kraken_are_requested_by_their_class() {
    let rules = Venue::KrakenDerivatives.rules();
    assert_eq!((rules.name, rules.streams), ("kraken_derivatives", "wss://uws.kraken.com/v2/public"));
    for topic in rules.topics {
        assert!(topic.text.contains(r#""asset_class":"derivatives","#), "{}", topic.text);
    }
    assert!(Venue::Kraken.rules().topics.iter().all(|topic| !topic.text.contains("asset_class")));
    let frame = r#"{"channel":"book","type":"update","data":[{"symbol":"PF_XBTUSD","bids":[{"price":61000.5,"qty":0.25}],"asks":[],"checksum":974942666,"timestamp":"2026-12-01T10:00:00.123456Z"}]}"#;
    let mut buffer = EventBuffer::new(64, 64);
    let Ok(Event::BookDelta(delta)) = read(Venue::KrakenDerivatives, frame, &mut buffer) else { panic!("{frame}") };
    assert_eq!((delta.symbol, delta.checksum), (Symbol::new(b"PF_XBTUSD").unwrap(), Some(974_942_666)));
    assert_eq!(buffer.levels(), [Level { px: 610_005, qty: 25 }]);
}
