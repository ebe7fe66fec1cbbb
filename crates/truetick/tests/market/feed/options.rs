//! Instruments that a venue lists on request only: Bybit's options, by base asset, and Kraken's tokenized stocks; Kraken's
//! derivatives, at an address of theirs.

use market_feed::FeedConfig;
use sim::Venue as SimVenue;
use tt_venue::Venue;
use tt_venue::listing::{InstrumentKind, OptionRight};

use super::{SOON, follow};

#[test]
fn options_are_listed_and_followed_with_their_trades() {
    let config = sim::Config { instruments: 2, options: 3, rate_hz: 0.0, seed: 7, ..sim::Config::default() };
    let sim = sim::start(config).unwrap();
    sim.page_instruments(SimVenue::Bybit, 2);
    let all = sim.instruments(SimVenue::Bybit);
    // The last one is on the second page; the one between them is not followed, and trades on the same topic.
    let followed = [2, 4];
    let mut symbols: Vec<String> = followed.iter().map(|index| all[*index].symbol.clone()).collect();
    symbols.push("BTC-26MAR27-1-C-USDT".to_owned());
    let url = format!("ws://{}/v5/public/option", sim.address(SimVenue::Bybit));
    let running = follow(vec![FeedConfig::at(Venue::BybitOption, url.parse().unwrap(), symbols)]);
    let reader = running.reader();
    let refused = reader.status(0).refusals;
    assert!(refused.len() == 1 && refused[0].subject == "BTC-26MAR27-1-C-USDT", "{refused:?}");
    let names: Vec<&str> = reader.instruments().iter().map(|listed| listed.name.as_str()).collect();
    assert_eq!(names, ["BTC/USDT:USDT-20270326-50000-C", "BTC/USDT:USDT-20270326-51000-C"]);
    for listed in reader.instruments() {
        assert_eq!((listed.terms.kind, listed.terms.right), (InstrumentKind::Option, Some(OptionRight::Call)));
    }
    assert!(reader.wait(SOON, || reader.all_verified()), "{:?}", reader.status(0));
    // Books and trades of every option, followed or not.
    let traded = reader.wait(SOON, || {
        for index in 2..5 {
            sim.step(SimVenue::Bybit, index, 20);
        }
        reader.instruments().iter().all(|listed| reader.trades(listed.id).len() > 2)
    });
    assert!(traded, "{:?}", reader.counters(0));
    for (listed, index) in reader.instruments().iter().zip(followed) {
        let [(bid_px, _), (ask_px, _)] = sim.truth(SimVenue::Bybit, index).1.touch();
        let is_true = || {
            let top = reader.top_of_book(listed.id).unwrap();
            let best = top.bid.zip(top.ask).map(|(bid, ask)| (bid.px.0, ask.px.0));
            top.status.proof.is_verified() && best == Some((bid_px, ask_px))
        };
        assert!(reader.wait(SOON, is_true), "{}: {:?}", listed.symbol, reader.top_of_book(listed.id));
        let ticker = reader.ticker(listed.id).unwrap();
        assert!(ticker.bid.is_some() && ticker.ask.is_some(), "{ticker:?}");
    }
    assert_eq!((reader.counters(0).gaps, reader.status(0).connections), (0, 1), "{:?}", reader.counters(0));
    running.stop();
    sim.stop();
}

#[test]
fn tokenized_stocks_are_requested_and_followed_with_their_checksums() {
    let config = sim::Config { instruments: 1, stocks: 2, rate_hz: 0.0, seed: 7, ..sim::Config::default() };
    let sim = sim::start(config).unwrap();
    let url = format!("ws://{}/v2", sim.address(SimVenue::Kraken));
    let symbols = ["BTC/USD", "TSLAx/USD"].map(str::to_owned).to_vec();
    let running = follow(vec![FeedConfig::at(Venue::Kraken, url.parse().unwrap(), symbols)]);
    let reader = running.reader();
    assert!(reader.status(0).refusals.is_empty(), "{:?}", reader.status(0).refusals);
    let stock = reader.instruments()[1].clone();
    assert_eq!((stock.symbol.as_str(), stock.name.as_str()), ("TSLAx/USD", "TSLAx/USD"));
    let traded = reader.wait(SOON, || {
        sim.step(SimVenue::Kraken, 2, 20);
        reader.trades(stock.id).len() > 2 && reader.all_verified()
    });
    assert!(traded, "{:?}", reader.counters(0));
    running.stop();
    let counters = reader.counters(0);
    assert!(counters.closes() && counters.crc_matches > 0 && counters.drops_total() == 0, "{counters:?}");
    sim.stop();
}

#[test]
fn derivatives_of_kraken_are_followed_at_the_unified_address() {
    let config =
        sim::Config { instruments: 1, stocks: 1, derivatives: 3, rate_hz: 0.0, seed: 7, ..sim::Config::default() };
    let sim = sim::start(config).unwrap();
    let url = |path: &str| format!("ws://{}{path}", sim.address(SimVenue::Kraken)).parse().unwrap();
    let symbols = ["PF_XBTUSD", "PI_XBTUSD", "FF_XBTUSD_270326", "BTC/USD"].map(str::to_owned).to_vec();
    let derivatives = FeedConfig::at(Venue::KrakenDerivatives, url("/v2/public"), symbols);
    let spot = FeedConfig::at(Venue::Kraken, url("/v2"), vec!["BTC/USD".to_owned(), "PF_XBTUSD".to_owned()]);
    let running = follow(vec![derivatives, spot]);
    let reader = running.reader();
    let refused = |feed: usize| reader.status(feed).refusals.iter().map(|one| one.subject.clone()).collect::<Vec<_>>();
    assert_eq!((refused(0), refused(1)), (vec!["BTC/USD".to_owned()], vec!["PF_XBTUSD".to_owned()]));
    let listed = reader.instruments().to_vec();
    let names: Vec<&str> = listed.iter().map(|listed| listed.name.as_str()).collect();
    assert_eq!(names, ["BTC/USD:USD", "BTC/USD:BTC", "BTC/USD:USD-20270326", "BTC/USD"]);
    // After the one spot market and the one stock.
    let traded = reader.wait(SOON, || {
        for index in [2, 3, 4, 0] {
            sim.step(SimVenue::Kraken, index, 20);
        }
        listed.iter().all(|listed| reader.trades(listed.id).len() > 2) && reader.all_verified()
    });
    assert!(traded, "{:?}", reader.counters(0));
    // The last updates may still be on their way.
    let tops = || {
        let touch = |index: usize| sim.truth(SimVenue::Kraken, index).1.touch().map(|(px, _)| px);
        let top = |id| reader.top_of_book(id).and_then(|top| Some([top.bid?.px.0, top.ask?.px.0]));
        let pairs = listed.iter().zip([2, 3, 4, 0]);
        pairs.map(|(listed, index)| (top(listed.id), Some(touch(index)))).collect::<Vec<_>>()
    };
    assert!(reader.wait(SOON, || tops().iter().all(|(top, truth)| top == truth)), "{:?}", tops());
    running.stop();
    let counters = reader.counters(0);
    assert!(counters.closes() && counters.crc_matches > 0 && counters.drops_total() == 0, "{counters:?}");
    sim.stop();
}
