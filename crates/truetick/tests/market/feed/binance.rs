//! What single venues do: trades at an address that does not send them, microseconds, RPI orders.

use super::*;

/// USD-M accepts `@trade`, which it does not document, and may stop to send it.
#[test]
fn trades_that_are_accepted_and_never_sent_are_followed_as_aggregates() {
    let sim = simulator(2, 400.0);
    sim.withhold(SimVenue::BinanceUsdm, &["trades"]);
    let mut config = feed(&sim, Venue::BinanceUsdm);
    assert_eq!(config.timing.fall_back_after.as_secs(), 30);
    config.timing.fall_back_after = Duration::from_secs(2);
    let running = follow(vec![config]);
    let reader = running.reader();
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    let books: Vec<u64> = reader.instruments().iter().map(|listed| reader.messages(listed.id)).collect();
    let traded = || reader.instruments().iter().all(|listed| reader.trades(listed.id).len() >= 10);
    assert!(reader.wait(SOON, traded), "{:?}", reader.status(0));
    assert!(reader.wait(SOON, || reader.status(0).planned_reconnects == 1));
    let status = reader.status(0);
    let shown: Vec<_> =
        status.refusals.iter().map(|refusal| (refusal.subject.as_str(), refusal.reason.as_str())).collect();
    let reason = "@trade is accepted and never sent: @aggTrade is followed instead";
    assert_eq!(shown, [("trades", reason)]);
    // Books went over without a loss, and no trade is counted twice.
    assert_eq!((status.reconnects(), status.silent_topics.len()), (0, 0));
    assert!(reader.all_verified() && reader.counters(0).closes());
    for (listed, before) in reader.instruments().iter().zip(books) {
        assert!(reader.messages(listed.id) > before);
        let ids: Vec<u64> = reader.trades(listed.id).iter().map(|trade| trade.trade_id).collect();
        assert!(ids.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 1), "{ids:?}");
    }
    running.stop();
    sim.stop();
}

/// Each eighth trade comes with a block trade at twice the price, which is of no candle and no last price.
#[test]
fn block_trades_of_spot_are_counted_apart_from_the_market() {
    let sim = simulator(1, 0.0);
    let mut config = feed(&sim, Venue::BinanceSpot);
    config.also = vec![TopicKind::BlockTrades];
    let running = follow(vec![config]);
    let reader = running.reader();
    let off_market = || {
        sim.step(SimVenue::BinanceSpot, 0, 50);
        reader.counters(0).off_market_trades >= 5
    };
    assert!(reader.wait(SOON, off_market), "{:?}", reader.counters(0));
    let trades = reader.trades(reader.instruments()[0].id);
    let (lowest, highest) =
        trades.iter().fold((i64::MAX, 0), |(low, high), trade| (low.min(trade.px.0), high.max(trade.px.0)));
    assert!(highest < lowest * 3 / 2, "a block trade is shown: {trades:?}");
    running.stop();
    let counters = reader.counters(0);
    assert!(counters.closes() && counters.trades > counters.off_market_trades, "{counters:?}");
    assert_eq!((counters.drops_total(), reader.status(0).silent_topics.len()), (0, 0), "{counters:?}");
    sim.stop();
}

#[test]
fn spot_is_asked_for_microseconds() {
    let address = Venue::BinanceSpot.rules().streams;
    let (_, question) = address.split_once('?').unwrap();
    let sim = simulator(2, 400.0);
    let mut config = feed(&sim, Venue::BinanceSpot);
    config.streams = format!("{}?{question}", config.streams).parse().unwrap();
    let running = follow(vec![config, feed(&sim, Venue::BinanceUsdm)]);
    let reader = running.reader();
    let finer = |venue: Venue| {
        let of_venue = |listed: &&Instrument| listed.venue == venue;
        reader.instruments().iter().filter(of_venue).all(|listed| {
            let (depth, trades) = (reader.depth(listed.id).unwrap(), reader.trades(listed.id));
            depth.ts_event.0 % 1_000_000 != 0 && trades.iter().any(|trade| trade.ts_event.0 % 1_000_000 != 0)
        })
    };
    assert!(reader.wait(SOON, || finer(Venue::BinanceSpot)), "{:?}", reader.status(0));
    assert!(!finer(Venue::BinanceUsdm), "futures have milliseconds");
    assert!(reader.wait(SOON, || reader.all_verified()));
    assert_true(&sim, &reader);
    running.stop();
    sim.stop();
}

/// A book with RPI orders next to the one without: the simulator counts a third of each quantity of Bybit as RPI orders.
#[test]
fn books_with_rpi_orders_have_every_quantity() {
    for venue in [Venue::BinanceUsdm, Venue::BybitLinear] {
        let sim = simulator(1, 0.0);
        let of_sim = simulated(venue).0;
        let mut config = feed(&sim, venue);
        config.follow_rpi().unwrap();
        assert!(config.follow_orders().is_err(), "single orders are another feed");
        let running = follow(vec![feed(&sim, venue), config]);
        let reader = running.reader();
        assert!(reader.wait(SOON, || connected(&reader)), "{:?}", reader.status(1));
        let proved = || {
            if !reader.all_verified() {
                sim.step(of_sim, 0, 1);
            }
            reader.all_verified()
        };
        assert!(reader.wait(SOON, proved), "{venue:?}");
        let depth_of = |listed: &Instrument| {
            let depth = reader.depth(listed.id).unwrap();
            let side =
                |side: &[tt_venue::BookLevel]| side.iter().map(|level| (level.px.0, level.qty.0)).collect::<Vec<_>>();
            (depth.ts_event, [side(depth.bids()), side(depth.asks())])
        };
        let [one, other] = reader.instruments() else { panic!("{:?}", reader.instruments()) };
        for _ in 0..20 {
            sim.step(of_sim, 0, 5);
            let same = || depth_of(one) == depth_of(other);
            assert!(reader.wait(SOON, same), "{venue:?}: {:?} {:?}", depth_of(one), depth_of(other));
        }
        assert!(reader.counters(1).gaps == 0 && reader.counters(1).closes());
        running.stop();
        sim.stop();
    }
    let none = FeedConfig::public(Venue::Kraken, Vec::new()).follow_rpi().unwrap_err().to_string();
    assert_eq!(
        none,
        "market: kraken sends no books with RPI orders (rpi): binance_usdm, bybit_spot, bybit_linear, bybit_inverse"
    );
}
