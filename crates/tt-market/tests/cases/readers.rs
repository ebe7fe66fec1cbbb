//! Clocks (M38), repeated trades (M40), and readers that are slow (M41).

use super::{Bench, MS};
use tt_market::board::TRADES;
use tt_market::{Applied, DropReason, Proof};
use tt_model::Nanos;
use tt_venue::{Symbol, Venue};

impl Bench {
    /// A USD-M trade that the venue made `ms` after the beginning.
    fn trade(&mut self, number: u64, ms: i64, px: &str) -> Result<Applied, DropReason> {
        let at = MS.saturating_add_signed(ms);
        let trade = format!("\"t\":{number},\"p\":\"{px}\",\"q\":\"0.5\",\"X\":\"MARKET\",\"m\":true");
        self.frame(&format!("{{\"e\":\"trade\",\"E\":{at},\"T\":{at},\"s\":\"BTCUSDT\",{trade}}}"))
    }

    fn last_px(&self) -> i64 {
        self.engine.board().ticker(self.id).map_or(0, |ticker| ticker.last_px.0)
    }
}

const HOUR_MS: i64 = 3_600_000;

#[test]
fn case_m38_a_venues_clock_an_hour_off_is_kept_signed_and_flagged() {
    for (ms, sign) in [(HOUR_MS, -1), (-HOUR_MS, 1)] {
        let mut bench = Bench::new(Venue::BinanceUsdm);
        bench.trade(1, 0, "10.0").unwrap();
        assert_eq!(bench.engine.counters().venue(Venue::BinanceUsdm).clocks_apart, 0);
        bench.trade(2, ms, "10.1").unwrap();
        let counters = *bench.engine.counters().venue(Venue::BinanceUsdm);
        let since_ns = (bench.now.0 - MS * 1_000_000).cast_signed();
        assert_eq!((counters.lag_signed_ns(), counters.clocks_apart), (sign * HOUR_MS * 1_000_000 + since_ns, 1));
        // A mark price shows it, too, and is applied.
        let at = MS.saturating_add_signed(ms);
        let mark = "\"p\":\"10.5\",\"i\":\"10.4\",\"P\":\"0\",\"r\":\"0\"";
        bench.frame(&format!("{{\"e\":\"markPriceUpdate\",\"E\":{at},\"s\":\"BTCUSDT\",{mark},\"T\":{at}}}")).unwrap();
        assert_eq!(bench.engine.counters().venue(Venue::BinanceUsdm).clocks_apart, 2);
    }
}

/// A clock that ran ahead and is set right takes nothing with it but moments.
#[test]
fn case_m38_a_clock_that_steps_back_leaves_last_price_and_candles_alive() {
    let mut bench = Bench::new(Venue::BinanceUsdm);
    for number in 1..=3 {
        bench.trade(number, HOUR_MS, "10.0").unwrap();
    }
    // Six seconds later by our clock, the venue's is right.
    bench.now = Nanos::from_millis(MS + 6_000);
    bench.trade(4, 6_000, "10.7").unwrap();
    let counters = *bench.engine.counters().venue(Venue::BinanceUsdm);
    assert_eq!((counters.late_trades, counters.late_prices), (0, 0));
    assert_eq!(bench.last_candle_px(), 107);
    assert_eq!(bench.engine.board().trades(bench.id).last().unwrap().ts_event, Nanos::from_millis(MS + 6_000));
}

impl Bench {
    fn last_candle_px(&self) -> i64 {
        self.engine.board().candle(self.id, 0).unwrap().close_px.0
    }
}

/// Silence is measured on the caller's clock, which never steps: what the venue says of the time does not count.
#[test]
fn case_m38_silence_is_no_matter_of_the_venues_clock() {
    let mut bench = Bench::live_spot();
    let depth = |ms: i64| {
        let head = format!("\"e\":\"depthUpdate\",\"E\":{},\"s\":\"BTCUSDT\"", MS.saturating_add_signed(ms));
        format!("{{{head},\"U\":111,\"u\":111,\"b\":[],\"a\":[]}}")
    };
    bench.frame(&depth(24 * HOUR_MS)).unwrap();
    bench.now = bench.now.saturating_add(Nanos::from_secs(59));
    bench.engine.handle_timeout(bench.now);
    assert_eq!(bench.top().status.proof, Proof::Sequence, "a day ahead is no sign of life in the future");
    bench.now = bench.now.saturating_add(Nanos::from_secs(2));
    bench.engine.handle_timeout(bench.now);
    assert_eq!(bench.top().status.proof, Proof::Stale);
}

#[test]
fn case_m38_a_leap_second_is_a_time() {
    let mut bench = Bench::new(Venue::Kraken);
    bench.now = Nanos::from_secs(1_483_228_800);
    let trade =
        "\"symbol\":\"BTCUSDT\",\"side\":\"buy\",\"price\":10.0,\"qty\":0.5,\"ord_type\":\"limit\",\"trade_id\":7";
    let at = "\"timestamp\":\"2016-12-31T23:59:60.250000Z\"";
    let frame = format!("{{\"channel\":\"trade\",\"type\":\"update\",\"data\":[{{{trade},{at}}}]}}");
    assert_eq!(bench.frame(&frame), Ok(Applied::Trades));
    let print = bench.engine.board().trades(bench.id)[0];
    assert_eq!(print.ts_event, Nanos::from_millis(1_483_228_800_250));
}

#[test]
fn case_m40_trades_repeated_after_a_reconnect_count_once_and_late_ones_are_flagged() {
    let mut bench = Bench::new(Venue::BinanceUsdm);
    for number in [1, 2, 3, 5] {
        bench.trade(number, number as i64, "10.0").unwrap();
    }
    let old = bench.connection;
    bench.engine.close_connection(old, bench.now);
    bench.connection = bench.engine.open_connection(Venue::BinanceUsdm, bench.now).unwrap();
    bench.engine.subscribe(bench.connection, bench.id, bench.now).unwrap();
    // The new subscription repeats what was sent, brings one that was lost, and goes on.
    for (number, px) in [(2, "10.0"), (3, "10.0"), (4, "11.0"), (5, "10.0"), (6, "10.2")] {
        bench.trade(number, number as i64, px).unwrap();
    }
    let counters = *bench.engine.counters().venue(Venue::BinanceUsdm);
    assert_eq!((counters.trades, counters.duplicate_trades, counters.late_trades), (6, 3, 1));
    let trades = bench.engine.board().trades(bench.id);
    let published: Vec<_> = trades.iter().map(|trade| (trade.number, trade.trade_id, trade.is_late)).collect();
    let expected = [(1, 1, false), (2, 2, false), (3, 3, false), (4, 5, false), (5, 4, true), (6, 6, false)];
    assert_eq!(published, expected, "in the order of their arrival");
    let candle = bench.engine.board().candle(bench.id, 0).unwrap();
    assert_eq!((candle.volume.0, candle.close_px.0), (6 * 500, 102), "each once, and a late one closes nothing");
    assert_eq!(bench.last_px(), 0, "trades are no ticker");
}

/// Block trades of Binance spot have numbers of their own, and may have a price that is no step of the market.
#[test]
fn trades_outside_of_the_market_are_counted_and_not_shown() {
    let mut bench = Bench::new(Venue::BinanceSpot);
    let frame = |kind: &str, id: u64, px: &str| {
        let end = if kind == "trade" { ",\"M\":true" } else { "" };
        format!(
            "{{\"e\":\"{kind}\",\"E\":1,\"s\":\"BTCUSDT\",\"t\":{id},\"p\":\"{px}\",\"q\":\"1.000\",\"T\":1772506983321,\"m\":true{end}}}"
        )
        .replace("\"E\":1,", "\"E\":1772506983582,")
    };
    for (kind, id, px) in
        [("trade", 7, "10.0"), ("blockTrade", 7, "99.12345"), ("blockTrade", 8, "0"), ("trade", 8, "10.1")]
    {
        assert_eq!(bench.frame(&frame(kind, id, px)), Ok(Applied::Trades), "{kind} {id}");
    }
    let counters = *bench.engine.counters().venue(Venue::BinanceSpot);
    assert_eq!((counters.trades, counters.off_market_trades, counters.duplicate_trades), (2, 2, 0));
    assert!(counters.closes() && counters.applied == 4);
    let shown: Vec<_> =
        bench.engine.board().trades(bench.id).iter().map(|trade| (trade.trade_id, trade.px.0)).collect();
    assert_eq!(shown, [(7, 100), (8, 101)]);
}

/// Coinbase Advanced repeats the last hundred trades to each subscription, the newest first.
fn advanced_trades(sequence: u64, kind: &str, ids: impl Iterator<Item = u64>) -> String {
    let trade = |id: u64| {
        let at = format!("2023-11-14T22:13:{:02}.{:03}000Z", 20 + id / 1000, id % 1000);
        format!(
            "{{\"product_id\":\"BTCUSDT\",\"trade_id\":\"{id}\",\"price\":\"10.0\",\"size\":\"0.5\",\"time\":\"{at}\",\"side\":\"BUY\"}}"
        )
    };
    let trades = ids.map(trade).collect::<Vec<_>>().join(",");
    let head = "\"channel\":\"market_trades\",\"timestamp\":\"2023-11-14T22:13:22.000000Z\"";
    format!("{{{head},\"sequence_num\":{sequence},\"events\":[{{\"type\":\"{kind}\",\"trades\":[{trades}]}}]}}")
}

#[test]
fn case_m40_a_hundred_repeated_trades_count_once_over_three_connections() {
    let mut bench = Bench::new(Venue::CoinbaseAdvanced);
    // The minute of the trades.
    for connection in 0..3 {
        bench.frame(&advanced_trades(0, "snapshot", (1..=100).rev())).unwrap();
        let counters = *bench.engine.counters().venue(Venue::CoinbaseAdvanced);
        assert_eq!((counters.trades, counters.history_trades), (0, 100), "connection {connection}");
        assert_eq!((counters.duplicate_trades, counters.clocks_apart), (100 * connection, 0));
        let candle = bench.engine.board().candle(bench.id, 0).unwrap();
        assert_eq!((candle.volume.0, candle.updates), (100 * 500, 100), "connection {connection}");
        bench.engine.close_connection(bench.connection, bench.now);
        bench.connection = bench.engine.open_connection(Venue::CoinbaseAdvanced, bench.now).unwrap();
        bench.engine.subscribe(bench.connection, bench.id, bench.now).unwrap();
    }
    // Two trades were made between the connections; the next one is live.
    bench.frame(&advanced_trades(0, "snapshot", (3..=102).rev())).unwrap();
    bench.frame(&advanced_trades(1, "update", 103..104)).unwrap();
    let counters = *bench.engine.counters().venue(Venue::CoinbaseAdvanced);
    assert_eq!((counters.trades, counters.history_trades, counters.late_trades), (1, 102, 0));
    let trades = bench.engine.board().trades(bench.id);
    let last: Vec<_> = trades[trades.len() - 3..].iter().map(|one| (one.trade_id, one.is_history)).collect();
    assert_eq!(last, [(102, true), (101, true), (103, false)]);
    let candle = bench.engine.board().candle(bench.id, 0).unwrap();
    assert_eq!(candle.volume.0, 103 * 500);
}

/// Identifiers that are text are held against each other as well.
#[test]
fn case_m40_trades_with_text_identifiers_count_once() {
    let mut bench = Bench::new(Venue::BybitLinear);
    let trades = |from: u64| {
        let trade = |n: u64| {
            let id = format!("{:08x}-39a7-459e-97bf-{:012x}", n.wrapping_mul(0x9e37_79b9) & 0xffff_ffff, n);
            format!(
                "{{\"T\":{},\"s\":\"BTCUSDT\",\"S\":\"Buy\",\"v\":\"0.5\",\"p\":\"10.0\",\"i\":\"{id}\",\"BT\":false}}",
                MS + n / 10
            )
        };
        let list = (from..from + 200).map(trade).collect::<Vec<_>>().join(",");
        format!("{{\"topic\":\"publicTrade.BTCUSDT\",\"type\":\"snapshot\",\"ts\":{MS},\"data\":[{list}]}}")
    };
    for _ in 0..3 {
        bench.frame(&trades(1)).unwrap();
    }
    bench.frame(&trades(101)).unwrap();
    let counters = *bench.engine.counters().venue(Venue::BybitLinear);
    assert_eq!((counters.trades, counters.duplicate_trades), (300, 500));
}

/// Every reader keeps its own place: what went by between two looks is known to the trade, and no reader waits.
#[test]
fn case_m41_a_slow_reader_of_trades_knows_exactly_what_it_missed() {
    let mut bench = Bench::new(Venue::BinanceUsdm);
    let board = bench.engine.board();
    let (mut newest, mut seen, mut missed) = (0, 0, 0);
    let mut random = 7_u64;
    for number in 1..=5_000_u64 {
        bench.trade(number, number as i64, "10.0").unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if random >> 57 == 0 || number == 5_000 {
            let new: Vec<_> = board.trades(bench.id).into_iter().filter(|trade| trade.number > newest).collect();
            assert!(new.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
            missed += new.first().map_or(0, |first| first.number - newest - 1);
            seen += new.len() as u64;
            newest = new.last().map_or(newest, |last| last.number);
        }
    }
    assert_eq!((seen + missed, newest), (5_000, 5_000));
    assert!(missed > 1_000 && seen > TRADES as u64, "{seen} seen, {missed} missed");
}

/// A reader of a book gets the newest one whenever it looks: what lies between is conflated, and a lost update is
/// `Stale` at the next look.
#[test]
fn case_m41_a_slow_reader_of_a_book_gets_the_newest_with_its_proof() {
    let mut bench = Bench::live_spot();
    let board = bench.engine.board();
    for id in 111..=1_110 {
        bench.spot(id, id, &format!("[\"10.0\",\"{}\"]", id - 110), "").unwrap();
    }
    let top = board.top_of_book(bench.id).unwrap();
    assert_eq!((top.update_id, top.bid.unwrap().qty.0, top.status.proof), (1_110, 1_000_000, Proof::Sequence));
    let _ = bench.spot(1_112, 1_112, "", "");
    assert_eq!(board.top_of_book(bench.id).unwrap().status.proof, Proof::Stale);
    assert_eq!(bench.engine.find_instrument(bench.venue, &Symbol::new(b"BTCUSDT").unwrap()), Some(bench.id));
}
