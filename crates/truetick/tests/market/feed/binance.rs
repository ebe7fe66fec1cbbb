//! What single venues do: trades at an address that does not send them, a second port, sessions, microseconds, RPI
//! orders.

use std::cell::Cell;

use tt_market::DropReason;

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
    // The snapshot holds updates that came before it.
    assert_eq!(counters.drops_total(), counters.dropped(DropReason::Superseded), "{counters:?}");
    assert_eq!(reader.status(0).silent_topics.len(), 0, "{counters:?}");
    sim.stop();
}

/// Some networks let only port 443 out: what cannot be reached costs one attempt, and none after a reconnect.
#[test]
fn streams_are_followed_at_the_next_address_where_the_first_cannot_be_reached() {
    let rules = Venue::BinanceSpot.rules();
    let public = FeedConfig::public(Venue::BinanceSpot, Vec::new());
    assert_eq!(public.streams_fallback, rules.streams_fallback);
    // The venue's other port as `url` changes the order, and nothing else.
    let other = FeedConfig::at(Venue::BinanceSpot, rules.streams_fallback[0].parse().unwrap(), Vec::new());
    assert_eq!((other.streams.port_u16(), other.streams_fallback), (Some(443), vec![public.streams]));
    assert_eq!(other.rest, public.rest);

    let sim = simulator(2, 400.0);
    let closed = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = feed(&sim, Venue::BinanceSpot);
    config.rest = Some(format!("http://{}", sim.address(SimVenue::BinanceSpot)).parse().unwrap());
    let reached = config.streams.clone();
    config.streams = format!("ws://{}/stream", closed()).parse().unwrap();
    config.streams_fallback = vec![format!("ws://{}/stream", closed()).parse().unwrap(), reached];
    let running = follow(vec![config]);
    let reader = running.reader();
    let followed = |connections: u64| {
        reader.wait(SOON, || reader.status(0).connections == connections && connected(&reader) && reader.all_verified())
    };
    assert!(followed(1), "{:?}", reader.status(0));
    assert_eq!((reader.status(0).last_error, reader.status(0).reconnects()), (None, 0));
    sim.disconnect(SimVenue::BinanceSpot);
    assert!(followed(2), "{:?}", reader.status(0));
    running.stop();
    sim.stop();
}

/// The price around which Binance lets orders of a symbol execute, which moves each second.
#[test]
fn the_reference_price_of_spot_is_shown_as_the_index_price() {
    let sim = simulator(1, 200.0);
    let mut config = feed(&sim, Venue::BinanceSpot);
    config.also = vec![TopicKind::IndexPrice];
    let running = follow(vec![config]);
    let reader = running.reader();
    let (board, local) = reader.board(reader.instruments()[0].id).unwrap();
    let index_px = || board.contract(local).and_then(|contract| contract.index_px);
    assert!(reader.wait(SOON, || index_px().is_some()), "{:?}", reader.counters(0));
    let shown = index_px().unwrap();
    let steps = shown.mantissa_at(2).unwrap();
    let trades = reader.wait(SOON, || !reader.trades(reader.instruments()[0].id).is_empty());
    let last = reader.trades(reader.instruments()[0].id).last().unwrap().px.0;
    assert!(trades && (last - steps).abs() < last / 10, "{shown} is near {last}");
    running.stop();
    // Updates from before the snapshot that the book begins with are no loss.
    let counters = reader.counters(0);
    assert_eq!(counters.drops_total(), counters.dropped(DropReason::Superseded), "{counters:?}");
    sim.stop();
}

/// Perpetuals of stocks and commodities follow markets with trading hours.
#[test]
fn sessions_of_underlying_markets_are_shown() {
    let sim = simulator(1, 200.0);
    let mut config = feed(&sim, Venue::BinanceUsdm);
    config.also = vec![TopicKind::Sessions];
    let running = follow(vec![config]);
    let reader = running.reader();
    let shown = || {
        let sessions = reader.snapshot(tt_os::clock::unix_now(), 1).feeds.swap_remove(0).sessions;
        sessions.into_iter().map(|shown| (shown.market, shown.session)).collect::<Vec<_>>()
    };
    let expected = [("stocks", "overnight"), ("commodities", "closed")];
    assert!(reader.wait(SOON, || shown() == expected), "{:?}", shown());
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "no book is stale for it");
    running.stop();
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

/// A book with RPI orders next to the one without: the simulator counts a third of each quantity of Bybit and OKX as RPI
/// orders.
#[test]
fn books_with_rpi_orders_have_every_quantity() {
    for venue in [Venue::BinanceUsdm, Venue::BybitLinear, Venue::Okx] {
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
        let shown = reader.snapshot(tt_os::clock::unix_now(), 1);
        let kinds: Vec<(&str, &str)> = shown.books.iter().map(|book| (book.kind, book.proof)).collect();
        assert_eq!(kinds.iter().map(|kind| kind.0).collect::<Vec<_>>(), ["levels", "rpi"]);
        assert!(["sequence", "oracle"].contains(&kinds[1].1), "{kinds:?}");
        running.stop();
        sim.stop();
    }
    let none = FeedConfig::public(Venue::Kraken, Vec::new()).follow_rpi().unwrap_err().to_string();
    assert_eq!(
        none,
        "market: kraken sends no books with RPI orders (rpi): binance_usdm, bybit_spot, bybit_linear, bybit_inverse, okx"
    );
}

/// Bybit's `orderbook.full`: changes by the socket, joined to the whole book by REST, whatever goes wrong in between.
#[test]
fn a_book_of_all_levels_of_bybit_is_joined_by_rest() {
    let sim = simulator(2, 0.0);
    let mut config = feed(&sim, Venue::BybitLinear);
    config.ask_depth(Some(10_000)).unwrap();
    config.verify_every = Some(Duration::from_secs(1));
    let running = follow(vec![config]);
    let reader = running.reader();
    step_until_proved(&sim, &reader);
    let is_true = |index: usize| {
        let listed = &reader.instruments()[index];
        let same = || {
            // A book that is joined by REST waits for the next change.
            if !proof(&reader, listed).is_verified() {
                sim.step(SimVenue::Bybit, index, 1);
            }
            let (depth, truth) = (reader.depth(listed.id).unwrap(), sim.truth(SimVenue::Bybit, index).1);
            let held =
                |side: &[tt_venue::BookLevel]| side.iter().map(|level| (level.px.0, level.qty.0)).collect::<Vec<_>>();
            let bids: Levels = truth.bids().map(|(px, qty)| (*px, *qty)).take(10).collect();
            let asks: Levels = truth.asks().map(|(px, qty)| (*px, *qty)).take(10).collect();
            proof(&reader, listed).is_verified() && (held(depth.bids()), held(depth.asks())) == (bids, asks)
        };
        assert!(reader.wait(SOON, same), "{index}: {:?}", reader.depth(listed.id));
    };
    for fault in [None, Some(Fault::Drop), Some(Fault::Reset), Some(Fault::Truncate)] {
        for index in 0..2 {
            if let Some(fault) = fault {
                sim.fault(SimVenue::Bybit, index, fault);
            }
            sim.step(SimVenue::Bybit, index, 30);
            is_true(index);
        }
    }
    // Every level is compared with the book by REST: a digit that was changed is found, and the book is asked for again.
    let agree = || {
        (0..2).for_each(|index| _ = sim.step(SimVenue::Bybit, index, 1));
        reader.counters(0).snapshot_matches >= 2
    };
    assert!(reader.wait(SOON, agree), "{:?}", reader.counters(0));
    // The changed frame is the next one, of any topic: there is another one before each comparison.
    let snapshots = Cell::new(0);
    let differ = || {
        let sent = sim.stats(SimVenue::Bybit).snapshots;
        if snapshots.replace(sent) != sent {
            for index in 0..2 {
                sim.fault(SimVenue::Bybit, index, Fault::FlipDigit);
                sim.step(SimVenue::Bybit, index, 1);
            }
        }
        reader.counters(0).snapshot_mismatches >= 1
    };
    assert!(reader.wait(SOON, differ), "{:?}", reader.counters(0));
    (0..2).for_each(is_true);
    let counters = reader.counters(0);
    assert!(counters.gaps >= 4 && sim.stats(SimVenue::Bybit).snapshots >= 6, "{counters:?}");
    running.stop();
    assert!(reader.counters(0).closes());
    sim.stop();
}
