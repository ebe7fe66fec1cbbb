//! Two venues in one engine whose instruments have one name, and books that lose their best levels.

use std::mem::swap;

use tt_market::board::TopOfBook;
use tt_market::candle::CandleSource;
use tt_market::counters::VenueCounters;
use tt_market::{Applied, ConnectionId, DropReason, InstrumentSpec, Proof};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId};
use tt_venue::event::OrderId;
use tt_venue::rules::JoinRule;
use tt_venue::{Symbol, Venue};

use crate::wire::{ASKS, BIDS, Levels, MS, Rig, SYMBOL, Wire};

/// Another book than the usual one, at prices that none of it has.
const OTHER_BIDS: Levels<'_> = &[("20.0", "5.000"), ("19.8", "6.000")];
const OTHER_ASKS: Levels<'_> = &[("20.3", "7.000"), ("20.4", "8.000")];

/// The other venue of an engine: what a [`Rig`] drives when the two are exchanged.
struct Other {
    wire: Wire,
    id: InstrumentId,
    connection: ConnectionId,
}

/// What readers see of a venue's book.
type Shown = (TopOfBook, [Vec<(i64, i64)>; 2], VenueCounters);

/// An engine that follows one symbol at two venues; the rig drives the first one.
fn two(first: Venue, second: Venue) -> (Rig, Other) {
    let mut rig = Rig::live(first);
    let connection = rig.engine.open_connection(second, rig.now).unwrap();
    let spec = InstrumentSpec {
        venue: second,
        symbol: Symbol::new(SYMBOL.as_bytes()).unwrap(),
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 3),
        depth_max: second.rules().truncates.then_some(25),
        candles: CandleSource::Trades,
    };
    let id = rig.engine.add_instrument(spec).unwrap();
    rig.engine.subscribe(connection, id, rig.now).unwrap();
    let mut other = Other { wire: Wire::new(second), id, connection };
    exchange(&mut rig, &mut other);
    rig.join(OTHER_BIDS, OTHER_ASKS);
    exchange(&mut rig, &mut other);
    (rig, other)
}

fn exchange(rig: &mut Rig, other: &mut Other) {
    swap(&mut rig.wire, &mut other.wire);
    swap(&mut rig.id, &mut other.id);
    swap(&mut rig.connection, &mut other.connection);
}

fn shown(rig: &mut Rig, other: &mut Other) -> Shown {
    exchange(rig, other);
    let shown = (rig.top(), rig.levels(), *rig.counters());
    exchange(rig, other);
    shown
}

/// Every pair of venues, in both orders.
fn pairs() -> impl Iterator<Item = (Venue, Venue)> {
    let each = |first| Venue::ALL.into_iter().map(move |second| (first, second));
    Venue::ALL.into_iter().flat_map(each).filter(|(first, second)| first != second)
}

#[test]
fn books_of_one_symbol_at_two_venues_do_not_mix() {
    for (first, second) in pairs() {
        let (mut rig, mut other) = two(first, second);
        let symbol = Symbol::new(SYMBOL.as_bytes()).unwrap();
        assert_eq!(rig.engine.find_instrument(first, &symbol), Some(rig.id), "{first:?} {second:?}");
        assert_eq!(rig.engine.find_instrument(second, &symbol), Some(other.id), "{first:?} {second:?}");
        let before = shown(&mut rig, &mut other);
        assert_eq!(before.1[0][0], (200, 5_000), "{first:?} {second:?}");
        assert_eq!(rig.touch(), [Some((100, 1_000)), Some((101, 3_000))], "{first:?} {second:?}");
        let applied = rig.delta(&[("10.0", "9.000")], &[]).unwrap();
        assert_eq!(applied.instrument(), Some(rig.id), "{first:?} {second:?}");
        assert_eq!(rig.touch()[0], Some((100, 9_000)), "{first:?} {second:?}");
        assert_eq!(shown(&mut rig, &mut other), before, "{first:?} {second:?}: a delta");
        // The other venue's frame on this connection is not one of this venue.
        let strange = other.wire.clone().delta(&[("20.0", "1.000")], &[]);
        let _ = rig.frame(&strange);
        let after = shown(&mut rig, &mut other);
        assert_eq!((&after.0, &after.1), (&before.0, &before.1), "{first:?} {second:?}: a strange frame");
    }
}

#[test]
fn what_goes_wrong_at_one_venue_leaves_the_other_as_it_was() {
    for (first, second) in pairs() {
        let (mut rig, mut other) = two(first, second);
        let before = shown(&mut rig, &mut other);
        assert!(rig.frame("{\"no end").is_err_and(DropReason::is_malformed), "{first:?} {second:?}");
        assert_eq!(rig.proof(), Proof::Stale, "{first:?} {second:?}");
        assert_eq!(shown(&mut rig, &mut other), before, "{first:?} {second:?}: a broken frame");
        rig.is_lost_and_found("a broken frame");
        assert_eq!(shown(&mut rig, &mut other), before, "{first:?} {second:?}: the new book");
        rig.engine.close_connection(rig.connection, rig.now);
        assert_eq!(rig.proof(), Proof::Stale, "{first:?} {second:?}");
        assert_eq!(shown(&mut rig, &mut other), before, "{first:?} {second:?}: a closed connection");
        // The one that is left goes on by itself.
        exchange(&mut rig, &mut other);
        rig.delta(&[("20.1", "4.000")], &[]).unwrap();
        assert_eq!((rig.touch()[0], rig.proof()), (Some((201, 4_000)), rig.best_proof()), "{first:?} {second:?}");
    }
}

/// USD-M and COIN-M frames are alike: orders of one number, of one symbol, at two venues.
#[test]
fn orders_of_one_number_at_two_venues_are_two() {
    let (mut rig, other) = two(Venue::BinanceUsdm, Venue::BinanceCoinm);
    let order = |state: &str, filled: &str| {
        let fields = format!("\"s\":\"{SYMBOL}\",\"S\":\"BUY\",\"q\":\"2\",\"p\":\"10.0\",\"X\":\"{state}\",\"i\":77");
        let rest = format!("\"l\":\"0\",\"z\":\"{filled}\",\"t\":0");
        format!("{{\"e\":\"ORDER_TRADE_UPDATE\",\"T\":{MS},\"E\":{MS},\"o\":{{{fields},{rest}}}}}")
    };
    let id = OrderId::new(b"77").unwrap();
    let send = |rig: &mut Rig, connection: ConnectionId, text: &str| {
        assert_eq!(rig.engine.handle_frame(rig.now, connection, text.as_bytes(), &mut Off), Ok(Applied::Orders));
    };
    let filled = |rig: &Rig, venue| rig.engine.order(venue, &id).map(|order| order.filled_qty);
    let (usdm, coinm) = (rig.connection, other.connection);
    send(&mut rig, usdm, &order("PARTIALLY_FILLED", "0.5"));
    assert_eq!((filled(&rig, Venue::BinanceUsdm), filled(&rig, Venue::BinanceCoinm)), (Some(Decimal::new(5, 1)), None));
    send(&mut rig, coinm, &order("PARTIALLY_FILLED", "1.5"));
    assert_eq!(rig.engine.orders_len(), 2);
    assert_eq!(filled(&rig, Venue::BinanceUsdm), Some(Decimal::new(5, 1)));
    assert_eq!(filled(&rig, Venue::BinanceCoinm), Some(Decimal::new(15, 1)));
    send(&mut rig, usdm, &order("FILLED", "2"));
    assert_eq!(
        (filled(&rig, Venue::BinanceUsdm), filled(&rig, Venue::BinanceCoinm)),
        (None, Some(Decimal::new(15, 1)))
    );
    assert_eq!(rig.engine.orders_len(), 1);
}

/// The best levels of a side go one by one and all at once: what was second is first, then there is none.
#[test]
fn a_book_that_loses_its_best_levels_shows_the_next_ones() {
    for venue in Venue::ALL {
        let mut rig = Rig::joined(
            venue,
            &[("10.0", "1.000"), ("9.9", "2.000"), ("9.5", "3.000")],
            &[("10.1", "4.000"), ("10.2", "5.000"), ("10.9", "6.000")],
        );
        rig.delta(&[("10.0", "0.000")], &[]).unwrap();
        assert_eq!(rig.touch(), [Some((99, 2_000)), Some((101, 4_000))], "{venue:?}");
        assert_eq!(rig.levels()[0], [(99, 2_000), (95, 3_000)], "{venue:?}");
        rig.delta(&[], &[("10.1", "0.000")]).unwrap();
        assert_eq!(rig.touch(), [Some((99, 2_000)), Some((102, 5_000))], "{venue:?}");
        assert_eq!(rig.levels()[1], [(102, 5_000), (109, 6_000)], "{venue:?}");
        // Two at once on both sides, and a worse level changes in the same message.
        rig.delta(&[("9.9", "0.000"), ("9.5", "7.000")], &[("10.2", "0.000"), ("10.9", "8.000")]).unwrap();
        assert_eq!(rig.touch(), [Some((95, 7_000)), Some((109, 8_000))], "{venue:?}");
        assert_eq!(rig.engine.levels_len(rig.id), Some((1, 1)), "{venue:?}");
        rig.delta(&[("9.5", "0.000")], &[]).unwrap();
        assert_eq!(rig.touch(), [None, Some((109, 8_000))], "{venue:?}: no bid is left");
        assert_eq!(rig.engine.levels_len(rig.id), Some((0, 1)), "{venue:?}");
        rig.delta(&[("9.4", "1.500")], &[("10.9", "0.000")]).unwrap();
        assert_eq!(rig.touch(), [Some((94, 1_500)), None], "{venue:?}");
        assert_eq!((rig.proof(), rig.requests(5_000)), (rig.best_proof(), vec![]), "{venue:?}");
    }
}

/// More levels than are published: the best ones go, and those from below come up in their place.
#[test]
fn levels_from_below_come_up_where_the_best_ones_go() {
    let text = |px: i64| format!("{}.{}", px / 10, px % 10);
    for venue in Venue::ALL {
        let (bids, asks): (Vec<_>, Vec<_>) = (0..20).map(|rank| (text(1_000 - rank), text(1_001 + rank))).unzip();
        let of = |px: &[String]| px.iter().map(|px| (px.clone(), "1.000".to_owned())).collect::<Vec<_>>();
        let (bids, asks) = (of(&bids), of(&asks));
        let plain = |levels: &[(String, String)], qty: Option<&'static str>| -> Vec<(String, String)> {
            levels.iter().map(|(px, own)| (px.clone(), qty.map_or_else(|| own.clone(), str::to_owned))).collect()
        };
        fn borrowed(levels: &[(String, String)]) -> Vec<(&str, &str)> {
            levels.iter().map(|(px, qty)| (px.as_str(), qty.as_str())).collect()
        }
        let mut rig = Rig::joined(venue, &borrowed(&plain(&bids, None)), &borrowed(&plain(&asks, None)));
        for gone in 1..=10_usize {
            let lost = plain(&bids[gone - 1..gone], Some("0.000"));
            let lost_asks = plain(&asks[gone - 1..gone], Some("0.000"));
            rig.delta(&borrowed(&lost), &borrowed(&lost_asks)).unwrap();
            let best: Vec<_> = (0..10).map(|rank| (1_000 - gone as i64 - rank, 1_000)).collect();
            let offered: Vec<_> = (0..10).map(|rank| (1_001 + gone as i64 + rank, 1_000)).collect();
            assert_eq!(rig.levels(), [best, offered], "{venue:?} without {gone}");
        }
    }
}

#[test]
fn whole_books_replace_best_levels_that_are_gone() {
    for venue in Venue::ALL.into_iter().filter(|venue| venue.rules().join == JoinRule::Whole) {
        let mut rig = Rig::joined(venue, BIDS, ASKS);
        rig.delta(&[("10.0", "0.000")], &[("10.1", "0.000")]).unwrap();
        assert_eq!(rig.touch(), [Some((99, 2_000)), Some((102, 4_500))], "{venue:?}");
    }
}
