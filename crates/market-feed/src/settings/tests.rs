//! Addresses, regions and topics of feeds.

use super::*;

#[test]
fn usdm_has_an_address_for_books_one_for_prices_and_one_for_an_account() {
    let mut feed = FeedConfig::public(Venue::BinanceUsdm, vec!["BTCUSDT".to_owned()]);
    let links = feed.links();
    let [public, market] = links.as_slice() else { panic!("{links:?}") };
    let kinds = |link: &LinkConfig| link.topics.iter().map(|topic| topic.kind).collect::<Vec<_>>();
    assert_eq!(public.streams, "wss://fstream.binance.com/public/stream");
    assert_eq!(kinds(public), [TopicKind::Book, TopicKind::BestLevels, TopicKind::Trades]);
    assert_eq!(market.streams, "wss://fstream.binance.com/market/stream");
    assert_eq!(kinds(market), [TopicKind::MarkPrice]);
    feed.also.extend([TopicKind::Candles, TopicKind::Liquidations]);
    assert_eq!(kinds(&feed.links()[1]), [TopicKind::MarkPrice, TopicKind::Candles, TopicKind::Liquidations]);
    assert!(feed.orders_address().is_none());
    feed.listen_key = Some("KEY".to_owned());
    feed.streams = "ws://127.0.0.1:7/public/stream".parse().unwrap();
    assert_eq!(feed.orders_address().unwrap().unwrap(), "ws://127.0.0.1:7/private/ws?listenKey=KEY");
    assert_eq!(FeedConfig::public(Venue::BinanceCoinm, Vec::new()).links().len(), 1, "COIN-M is not split");
}

#[test]
fn a_region_has_its_own_streams_rest_and_account() {
    let mut feed = FeedConfig::public(Venue::Okx, vec!["BTC-USDT".to_owned()]);
    let hosts = |feed: &FeedConfig, path| {
        feed.rest_uris(path).unwrap().iter().map(|uri| uri.host().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(hosts(&feed, "/api"), ["openapi.okx.com", "www.okx.com"]);
    feed.use_region("eea").unwrap();
    assert_eq!(feed.streams, "wss://wseea.okx.com:8443/ws/v5/public");
    assert_eq!(hosts(&feed, "/api"), ["eea.okx.com"]);
    let account = Venue::Okx.rules().account.unwrap();
    assert_eq!(feed.elsewhere(account.streams), "wss://wseea.okx.com:8443/ws/v5/private");
    let mut feed = FeedConfig::public(Venue::BybitSpot, vec!["BTCUSDT".to_owned()]);
    feed.use_region("jp").unwrap();
    assert_eq!(feed.streams, "wss://stream.manepa.jp/v5/public/spot");
    assert_eq!(hosts(&feed, "/v5"), ["api.manepa.jp"]);
    let account = Venue::BybitSpot.rules().account.unwrap();
    assert_eq!(feed.elsewhere(account.streams), "wss://stream.manepa.jp/v5/private");
    let mut feed = FeedConfig::public(Venue::Okx, vec!["BTC-USDT".to_owned()]);
    let unknown = feed.use_region("moon").unwrap_err().to_string();
    assert_eq!(unknown, "market: okx has no region moon: us, au, eea, demo");
    let none = FeedConfig::public(Venue::Kraken, Vec::new()).use_region("eu").unwrap_err().to_string();
    assert_eq!(none, "market: kraken has no region eu: it has none");
    for venue in Venue::ALL {
        for region in venue.rules().regions {
            let mut feed = FeedConfig::public(venue, Vec::new());
            feed.use_region(region.name).unwrap();
            assert!(feed.check_addresses().is_ok(), "{venue:?} {region:?}");
        }
    }
}

#[test]
fn candles_of_okx_need_a_socket_of_their_own() {
    let symbols = vec!["BTC-USDT".to_owned()];
    let mut feed = FeedConfig::public(Venue::Okx, symbols.clone());
    assert_eq!(feed.links().len(), 1);
    feed.also.push(TopicKind::Candles);
    let links = feed.links();
    assert_eq!((links.len(), links[1].topics.len()), (2, 1));
    assert_eq!(links[1].streams, "wss://ws.okx.com:8443/ws/v5/business");
    feed.streams = "ws://127.0.0.1:7/ws/v5/public".parse().unwrap();
    assert_eq!(feed.links()[1].streams, "ws://127.0.0.1:7/ws/v5/business");
    let mut feed = FeedConfig::public(Venue::Kraken, symbols);
    feed.also.push(TopicKind::Candles);
    assert_eq!(feed.links().len(), 1);
    assert!(feed.check().is_ok());
    feed.join_by_rest = true;
    assert!(feed.check().is_err());
}

#[test]
fn a_topic_with_a_second_form_is_followed_in_it_at_its_address() {
    let mut feed = FeedConfig::public(Venue::BinanceUsdm, vec!["BTCUSDT".to_owned()]);
    feed.fall_back.push(TopicKind::Trades);
    let texts = |link: &LinkConfig| link.topics.iter().map(|topic| topic.text).collect::<Vec<_>>();
    let links = feed.links();
    let [public, market] = links.as_slice() else { panic!("{links:?}") };
    assert_eq!(texts(public), ["\"{lower}@depth@100ms\"", "\"{lower}@bookTicker\""]);
    assert_eq!(texts(market), ["\"{lower}@aggTrade\"", "\"{lower}@markPrice@1s\""]);
    let mut spot = FeedConfig::public(Venue::BinanceSpot, Vec::new());
    let before = spot.links()[0].topics.clone();
    spot.fall_back.push(TopicKind::Trades);
    assert_eq!(spot.links()[0].topics, before, "there is no second form");
}

#[test]
fn deeper_snapshots_of_spot_are_requested_more_rarely() {
    let mut feed = FeedConfig::public(Venue::BinanceSpot, Vec::new());
    assert_eq!(feed.timing.snapshot_gap.as_millis(), 600);
    feed.ask_depth(Some(5000)).unwrap();
    // 250 of 6,000 weight a minute, where a thousand levels cost 50: 20 of them cost 5,000.
    assert_eq!((feed.depth, feed.timing.snapshot_gap.as_millis()), (5000, 3000));
    assert!(feed.ask_depth(Some(100)).is_err());
    assert!(FeedConfig::public(Venue::BinanceUsdm, Vec::new()).ask_depth(Some(5000)).is_err());
}

#[test]
fn topics_without_a_symbol_count_once_on_a_connection() {
    let max = |venue: Venue| crate::topics::symbols_max(venue.rules(), FeedConfig::public(venue, Vec::new()).topics());
    // Deribit: 500 topics, three of each symbol and the platform's state.
    assert_eq!(max(Venue::Deribit), 166);
    assert_eq!(max(Venue::Kraken), 333);
}
