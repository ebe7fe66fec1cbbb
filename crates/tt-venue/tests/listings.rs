//! Lists of instruments, with entries as the venues' documentation shows them.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use tt_model::{Decimal, Nanos};
use tt_venue::Venue;
use tt_venue::listing::{ContractUnit, InstrumentKind, InstrumentStatus, Listing, OptionRight, Terms, distinguish};

fn only(venue: Venue, body: &str) -> Listing {
    let mut listed = (venue.rules().instruments.parse)(body.as_bytes()).unwrap();
    assert_eq!(listed.len(), 1, "{body}");
    listed.remove(0)
}

#[test]
fn reads_the_unit_of_a_contract() {
    let whole = |size| Decimal::new(size, 0);
    for (venue, body, name, unit) in [
        (
            Venue::Okx,
            r#"{"data":[{"instId":"BTC-USDT-SWAP","baseCcy":"","quoteCcy":"","settleCcy":"USDT","uly":"BTC-USDT","ctVal":"0.01","ctMult":"1","ctType":"linear","tickSz":"0.1","lotSz":"0.01"}]}"#,
            "BTC/USDT:USDT",
            ContractUnit::Linear(Decimal::new(1, 2)),
        ),
        (
            Venue::Okx,
            r#"{"data":[{"instId":"BTC-USD-SWAP","baseCcy":"","quoteCcy":"","settleCcy":"BTC","uly":"BTC-USD","ctVal":"100","ctMult":"1","ctType":"inverse","tickSz":"0.1","lotSz":"1"}]}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(100)),
        ),
        (
            Venue::Okx,
            r#"{"data":[{"instId":"BTC-USDT","baseCcy":"BTC","quoteCcy":"USDT","settleCcy":"","uly":"","ctVal":"","ctMult":"","ctType":"","tickSz":"0.1","lotSz":"0.00000001"}]}"#,
            "BTC/USDT",
            ContractUnit::Base,
        ),
        (
            Venue::BinanceCoinm,
            r#"{"symbols":[{"symbol":"BTCUSD_PERP","baseAsset":"BTC","quoteAsset":"USD","marginAsset":"BTC","contractSize":100,"filters":[{"filterType":"PRICE_FILTER","tickSize":"0.1"},{"filterType":"LOT_SIZE","stepSize":"1"}]}]}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(100)),
        ),
        (
            Venue::BybitInverse,
            r#"{"result":{"list":[{"symbol":"BTCUSD","contractType":"InversePerpetual","baseCoin":"BTC","quoteCoin":"USD","settleCoin":"BTC","priceFilter":{"tickSize":"0.50"},"lotSizeFilter":{"qtyStep":"1"}}]}}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(1)),
        ),
        (
            Venue::Deribit,
            r#"{"result":[{"instrument_name":"BTC-PERPETUAL","kind":"future","instrument_type":"reversed","base_currency":"BTC","quote_currency":"USD","settlement_currency":"BTC","tick_size":0.5,"min_trade_amount":10,"contract_size":10}]}"#,
            "BTC/USD:BTC",
            ContractUnit::Inverse(whole(1)),
        ),
        (
            Venue::Deribit,
            r#"{"result":[{"instrument_name":"ETH_USDC-PERPETUAL","kind":"future","instrument_type":"linear","base_currency":"ETH","quote_currency":"USDC","settlement_currency":"USDC","tick_size":0.01,"min_trade_amount":0.01,"contract_size":0.01}]}"#,
            "ETH/USDC:USDC",
            ContractUnit::Base,
        ),
    ] {
        let listed = only(venue, body);
        assert_eq!((listed.name.as_str(), listed.unit), (name, unit), "{body}");
    }
}

#[test]
fn leaves_out_a_contract_without_its_size() {
    let body = r#"{"data":[{"instId":"BTC-USDT-SWAP","settleCcy":"USDT","uly":"BTC-USDT","ctVal":"","ctType":"linear","tickSz":"0.1","lotSz":"1"}]}"#;
    assert!((Venue::Okx.rules().instruments.parse)(body.as_bytes()).unwrap().is_empty());
}

const EXPIRY: Nanos = Nanos::from_millis(1_806_048_000_000);

fn okx(members: &str) -> String {
    let steps = r#""uly":"BTC-USD","ctVal":"0.01","ctMult":"1","tickSz":"0.1","lotSz":"1","settleCcy":"BTC""#;
    format!(r#"{{"data":[{{{members},{steps}}}]}}"#)
}

fn deribit(members: &str) -> String {
    let currencies = r#""base_currency":"BTC","quote_currency":"USD","settlement_currency":"BTC""#;
    let steps = r#""tick_size":0.0005,"min_trade_amount":0.1,"instrument_type":"reversed""#;
    format!(r#"{{"result":[{{{members},{currencies},{steps}}}]}}"#)
}

fn binance(members: &str) -> String {
    let filters =
        r#""filters":[{"filterType":"PRICE_FILTER","tickSize":"0.1"},{"filterType":"LOT_SIZE","stepSize":"1"}]"#;
    let assets = r#""baseAsset":"BTC","quoteAsset":"USDT","marginAsset":"USDT""#;
    format!(r#"{{"symbols":[{{{members},{assets},{filters}}}]}}"#)
}

fn bybit(members: &str) -> String {
    let steps = r#""priceFilter":{"tickSize":"0.50"},"lotSizeFilter":{"qtyStep":"0.01"}"#;
    let coins = r#""baseCoin":"BTC","quoteCoin":"USDT","settleCoin":"USDT""#;
    format!(r#"{{"result":{{"list":[{{{members},{coins},{steps}}}]}}}}"#)
}

fn check(venue: Venue, body: &str, name: &str, kind: InstrumentKind, status: &str) {
    let listed = only(venue, body);
    assert_eq!((listed.name.as_str(), listed.terms.kind, listed.terms.status.name()), (name, kind, status), "{body}");
    let has_end = matches!(kind, InstrumentKind::Future | InstrumentKind::Option);
    assert_eq!(listed.terms.expiry, has_end.then_some(EXPIRY), "{body}");
    let is_option = kind == InstrumentKind::Option;
    assert_eq!(listed.terms.strike.is_some() && listed.terms.right.is_some(), is_option, "{body}");
}

#[test]
fn names_of_okx_have_expiry_strike_and_right() {
    let perpetual = r#""instId":"BTC-USD-SWAP","instType":"SWAP","ctType":"inverse","expTime":"","state":"live""#;
    check(Venue::Okx, &okx(perpetual), "BTC/USD:BTC", InstrumentKind::Perpetual, "trading");
    let future = r#""instId":"BTC-USD-270326","instType":"FUTURES","ctType":"inverse","expTime":"1806048000000","state":"suspend""#;
    check(Venue::Okx, &okx(future), "BTC/USD:BTC-20270326", InstrumentKind::Future, "halted");
    let option = r#""instId":"BTC-USD-270326-50000-C","instType":"OPTION","ctType":"","stk":"50000","optType":"C","expTime":"1806048000000","state":"preopen""#;
    check(Venue::Okx, &okx(option), "BTC/USD:BTC-20270326-50000-C", InstrumentKind::Option, "pending");
    assert_eq!(only(Venue::Okx, &okx(option)).unit, ContractUnit::Linear(Decimal::new(1, 2)));
}

#[test]
fn names_of_deribit_have_expiry_strike_and_right() {
    let perpetual = r#""instrument_name":"BTC-PERPETUAL","kind":"future","settlement_period":"perpetual","expiration_timestamp":32503708800000,"state":"open""#;
    check(Venue::Deribit, &deribit(perpetual), "BTC/USD:BTC", InstrumentKind::Perpetual, "trading");
    let future = r#""instrument_name":"BTC-26MAR27","kind":"future","settlement_period":"month","expiration_timestamp":1806048000000,"state":"settlement""#;
    check(Venue::Deribit, &deribit(future), "BTC/USD:BTC-20270326", InstrumentKind::Future, "settling");
    let option = r#""instrument_name":"BTC-26MAR27-0d625-P","kind":"option","settlement_period":"month","strike":0.625,"option_type":"put","expiration_timestamp":1806048000000,"state":"locked""#;
    check(Venue::Deribit, &deribit(option), "BTC/USD:BTC-20270326-0.625-P", InstrumentKind::Option, "halted");
    let spread = r#""instrument_name":"BTC-FS-26MAR27_PERP","kind":"future_combo","expiration_timestamp":1806048000000,"state":"open""#;
    check(Venue::Deribit, &deribit(spread), "BTC-FS-26MAR27_PERP", InstrumentKind::Future, "trading");
    let put = only(Venue::Deribit, &deribit(r#""instrument_name":"X","kind":"option","strike":7,"option_type":"put""#));
    assert_eq!((put.terms.right, put.terms.strike), (Some(OptionRight::Put), Some(Decimal::new(7, 0))));
    assert_eq!((put.terms.expiry, put.terms.status), (None, InstrumentStatus::Unknown));
}

#[test]
fn names_of_binance_have_expiry() {
    let perpetual = r#""symbol":"BTCUSDT","contractType":"PERPETUAL","deliveryDate":4133404800000,"status":"TRADING""#;
    check(Venue::BinanceUsdm, &binance(perpetual), "BTC/USDT:USDT", InstrumentKind::Perpetual, "trading");
    let future = r#""symbol":"BTCUSDT_270326","contractType":"NEXT_QUARTER","deliveryDate":1806048000000,"status":"PENDING_TRADING""#;
    check(Venue::BinanceUsdm, &binance(future), "BTC/USDT:USDT-20270326", InstrumentKind::Future, "pending");
    let spot = r#""symbol":"BTCUSDT","status":"CANCEL_ONLY""#;
    check(Venue::BinanceSpot, &binance(spot), "BTC/USDT", InstrumentKind::Spot, "cancel_only");
}

#[test]
fn names_of_bybit_have_expiry_strike_and_right() {
    let perpetual = r#""symbol":"BTCUSDT","contractType":"LinearPerpetual","deliveryTime":"0","status":"Trading""#;
    check(Venue::BybitLinear, &bybit(perpetual), "BTC/USDT:USDT", InstrumentKind::Perpetual, "trading");
    let future = r#""symbol":"BTCUSDT-26MAR27","contractType":"LinearFutures","deliveryTime":"1806048000000","status":"Delivering""#;
    check(Venue::BybitLinear, &bybit(future), "BTC/USDT:USDT-20270326", InstrumentKind::Future, "closed");
    let option =
        r#""symbol":"BTC-26MAR27-50000-C-USDT","optionsType":"Call","deliveryTime":"1806048000000","status":"Trading""#;
    check(Venue::BybitOption, &bybit(option), "BTC/USDT:USDT-20270326-50000-C", InstrumentKind::Option, "trading");
    let base = Venue::BybitOption.rules().instruments.family.unwrap();
    assert_eq!(base("BTC-26MAR27-50000-C-USDT"), Some("BTC"));
    assert_eq!(base("ETH-6JAN23-1750-P"), Some("ETH"), "in USDC");
    assert_eq!(base("BTC-26MAR27"), None);
}

#[test]
fn no_two_symbols_share_a_name() {
    let listing = only(
        Venue::Okx,
        r#"{"data":[{"instId":"BTC-USDT","instType":"SPOT","baseCcy":"BTC","quoteCcy":"USDT","tickSz":"0.1","lotSz":"1"}]}"#,
    );
    let of = |symbol: &str, name: &str| Listing { symbol: symbol.to_owned(), name: name.to_owned(), ..listing.clone() };
    let mut all = [of("A", "one"), of("B", "two"), of("C", "one"), of("B", "two")];
    distinguish(&mut all);
    assert_eq!(all.each_ref().map(|listing| listing.name.as_str()), ["one#A", "two", "one#C", "two"]);
}

#[test]
fn further_pages_are_named_by_the_page_before() {
    let bybit = Venue::BybitLinear.rules().instruments.pages;
    // As the venue's documentation shows a cursor, and its last page.
    let first = r#"{"result":{"category":"linear","list":[{}],"nextPageCursor":"first%3DBTCUSDT%26last%3DETHUSDT"}}"#;
    assert_eq!(bybit.next(first.as_bytes(), 0).as_deref(), Some("&cursor=first%3DBTCUSDT%26last%3DETHUSDT"));
    for last in [r#"{"result":{"list":[],"nextPageCursor":""}}"#, r#"{"result":{"list":[]}}"#] {
        assert_eq!(bybit.next(last.as_bytes(), 0), None);
    }
    let coinbase = Venue::CoinbaseAdvanced.rules().instruments.pages;
    let page = br#"{"products":[{"product_id":"A-USD"},{"product_id":"B-USD"}],"num_products":5}"#;
    assert_eq!((coinbase.next(page, 0), coinbase.count(page)), (Some("&offset=2".to_owned()), 2));
    assert_eq!(coinbase.next(page, 2).as_deref(), Some("&offset=4"));
    assert_eq!(coinbase.next(page, 3), None, "all five");
    assert_eq!(coinbase.next(br#"{"products":[],"num_products":5}"#, 2), None, "an empty page is the last");
    assert_eq!(Venue::Okx.rules().instruments.pages.next(first.as_bytes(), 0), None);
}

#[test]
fn frames_of_an_alias_have_the_symbol_that_it_leads_to() {
    let product = |id: &str, alias: &str| {
        format!(
            r#"{{"products":[{{"product_id":"{id}","price_increment":"0.01","base_increment":"0.00000001","alias":"{alias}","alias_to":[]}}]}}"#
        )
    };
    let listed = only(Venue::CoinbaseAdvanced, &product("BTC-USDC", "BTC-USD"));
    assert_eq!(
        (listed.symbol.as_str(), listed.frame_symbol(), listed.name.as_str()),
        ("BTC-USDC", "BTC-USD", "BTC/USDC")
    );
    let listed = only(Venue::CoinbaseAdvanced, &product("BTC-USD", ""));
    assert_eq!((listed.frame_symbol(), listed.alias.as_deref()), ("BTC-USD", None));
}

#[test]
fn options_of_okx_are_listed_by_family() {
    let family = Venue::Okx.rules().instruments.family.unwrap();
    for (symbol, known) in [
        ("BTC-USD-261225-100000-C", Some("BTC-USD")),
        ("ETH-USD-261225-0.5-P", Some("ETH-USD")),
        ("BTC-USDT", None),
        ("BTC-USDT-SWAP", None),
        ("BTC-USD-261225", None),
    ] {
        assert_eq!(family(symbol), known, "{symbol}");
    }
}

/// The answer of 2026-04 to `instType=EVENTS&seriesId=BTC-ABOVE-DAILY`, as burakoner/OKX.Api keeps it in its tests.
#[test]
fn events_of_okx_are_listed_by_series_and_named_by_their_symbol() {
    let event = r#"{"code":"0","data":[{"alias":"","auctionEndTime":"","baseCcy":"","category":"1","contTdSwTime":"","ctMult":"1","ctType":"","ctVal":"1","ctValCcy":"","expTime":"1777363200000","freq":"DAILY","futureSettlement":false,"groupId":"1","instCategory":"","instFamily":"","instId":"BTC-ABOVE-DAILY-260428-1600-64000","instIdCode":262352,"instType":"EVENTS","lever":"","listTime":"1776671942684","lotSz":"0.1","maxLmtAmt":"0","maxLmtSz":"20000000","method":"PRICE_ABOVE","minSz":"0.01","optType":"","quoteCcy":"","ruleType":"normal","seriesId":"BTC-ABOVE-DAILY","settleCcy":"USDT","state":"live","stk":"64000","tickSz":"0.01","tradeQuoteCcyList":[],"uly":"BTC-USDT","upcChg":[]}],"msg":""}"#;
    let listed = only(Venue::Okx, event);
    let name = "BTC-ABOVE-DAILY-260428-1600-64000";
    assert_eq!((listed.symbol.as_str(), listed.name.as_str()), (name, name));
    assert_eq!((listed.tick_size, listed.lot_size), (Decimal::new(1, 2), Decimal::new(1, 1)));
    let Terms { kind, expiry, strike, right, status } = listed.terms;
    assert_eq!((kind.name(), status.name(), right), ("event", "trading", None));
    assert_eq!((expiry, strike), (Some(Nanos::from_millis(1_777_363_200_000)), Some(Decimal::new(64_000, 0))));
    let expired = only(Venue::Okx, &event.replace("\"live\"", "\"expired\""));
    assert_eq!(expired.terms.status.name(), "closed");
    let series = Venue::Okx.rules().instruments.series.unwrap();
    for (symbol, known) in [
        (name, Some("BTC-ABOVE-DAILY")),
        ("BTC-UPDOWN-15MIN-260224-1600-1615", Some("BTC-UPDOWN-15MIN")),
        ("BTC-USD-261225-100000-C", None),
        ("ETH-USD-261225-4000-C", None),
        ("BTC-USD-261225", None),
        ("BTC-USDT-SWAP", None),
        ("BTC-USDT", None),
    ] {
        assert_eq!(series(symbol), known, "{symbol}");
    }
    let option = Venue::Okx.rules().instruments.family.unwrap();
    assert_eq!(option(name), None);
}

/// docs.kraken.com, channel `instrument`: every status of a pair; the pair has the members of 2026-04.
#[test]
fn every_status_of_kraken_is_known() {
    for (word, name) in [
        ("online", "trading"),
        ("limit_only", "trading"),
        ("reduce_only", "trading"),
        ("post_only", "post_only"),
        ("cancel_only", "cancel_only"),
        ("maintenance", "halted"),
        ("work_in_progress", "halted"),
        ("delisted", "closed"),
    ] {
        let pair = format!(
            r#"{{"symbol":"AAPLx/USD","base":"AAPLx","quote":"USD","status":"{word}","execution_venue":"international","qty_precision":8,"qty_increment":1e-08,"price_precision":2,"price_increment":0.01,"qty_min":0.01}}"#
        );
        let listed = only(
            Venue::Kraken,
            &format!(r#"{{"channel":"instrument","type":"snapshot","data":{{"assets":[],"pairs":[{pair}]}}}}"#),
        );
        assert_eq!((listed.name.as_str(), listed.terms.status.name()), ("AAPLx/USD", name), "{word}");
    }
}

/// `outcomeMeta` (hyperliquid.gitbook.io, "Info endpoint" and "Asset IDs"): side `s` of outcome `o` is the coin
/// `#` and `10 * o + s`. The list has no steps.
#[test]
fn outcomes_of_hyperliquid_have_a_coin_for_each_side() {
    let perpetuals = r#"[{"universe":[{"name":"BTC","szDecimals":5}]}]"#;
    let spot = r#"{"tokens":[{"name":"USDC","szDecimals":8,"index":0}],"universe":[]}"#;
    let outcomes = r#"{"outcomes":[{"outcome":516,"name":"Recurring","description":"class:priceBinary|underlying:BTC|expiry:20260503-0600|targetPrice:78213|period:1d","sideSpecs":[{"name":"Yes"},{"name":"No"}],"quoteToken":"USDH"},{"outcome":7,"name":"Hypurr","description":"other","sideSpecs":[{"name":"Fish"},{"name":"Meat"}]}],"questions":[{"question":1,"name":"What will Hypurr eat?","description":"","fallbackOutcome":13,"namedOutcomes":[7],"settledNamedOutcomes":[]}]}"#;
    let parse = Venue::Hyperliquid.rules().instruments.parse;
    let listed = parse(format!("[{perpetuals},{spot},{outcomes}]").as_bytes()).unwrap();
    let names: Vec<_> = listed.iter().map(|listing| (listing.symbol.as_str(), listing.name.as_str())).collect();
    let sides = [("#5160", "#5160/USDH"), ("#5161", "#5161/USDH"), ("#70", "#70/USDC"), ("#71", "#71/USDC")];
    assert_eq!(names, [&[("BTC", "BTC/USDC:USDC")], sides.as_slice()].concat());
    for listing in &listed[1..] {
        assert_eq!((listing.tick_size, listing.lot_size), (Decimal::new(1, 5), Decimal::new(1, 0)));
        assert_eq!(listing.terms, Terms { kind: InstrumentKind::Event, ..Terms::default() });
    }
    let without = parse(format!("[{perpetuals},{spot}]").as_bytes()).unwrap();
    assert_eq!(without, listed[..1], "it is asked for outcomes only if one is followed");
    assert!(parse(format!("[{perpetuals},{spot},{{}}]").as_bytes()).is_err());
}

/// docs.kraken.com, unified WebSocket, channel `instrument`; symbols as "Get instruments" of the derivatives shows them.
#[test]
fn derivatives_of_kraken_are_named_by_what_they_settle_in() {
    let whole = |size| Decimal::new(size, 0);
    for (symbol, steps, name, kind, unit) in [
        ("PF_XBTUSD", ("0.5", "0.0001"), "BTC/USD:USD", InstrumentKind::Perpetual, ContractUnit::Base),
        ("PI_XBTUSD", ("0.5", "1"), "BTC/USD:BTC", InstrumentKind::Perpetual, ContractUnit::Inverse(whole(1))),
        ("FF_XBTUSD_270326", ("1", "1000"), "BTC/USD:USD-20270326", InstrumentKind::Future, ContractUnit::Base),
        (
            "FI_XBTUSD_270326",
            ("1", "1"),
            "BTC/USD:BTC-20270326",
            InstrumentKind::Future,
            ContractUnit::Inverse(whole(1)),
        ),
    ] {
        let (tick, lot) = steps;
        let pair = format!(
            r#"{{"symbol":"{symbol}","base":"BTC","quote":"USD","status":"online","qty_precision":4,"qty_increment":{lot},"price_precision":1,"price_increment":{tick},"qty_min":{lot}}}"#
        );
        let frame = format!(r#"{{"channel":"instrument","type":"snapshot","data":{{"assets":[],"pairs":[{pair}]}}}}"#);
        let listed = only(Venue::KrakenDerivatives, &frame);
        assert_eq!((listed.symbol.as_str(), listed.name.as_str(), listed.unit), (symbol, name, unit));
        assert_eq!((listed.terms.kind, listed.terms.status.name()), (kind, "trading"), "{symbol}");
        let end = Nanos::from_millis(1_806_073_200_000);
        assert_eq!(listed.terms.expiry, (kind == InstrumentKind::Future).then_some(end), "{symbol}");
        let decimal = |text: &str| Decimal::parse(text.as_bytes()).unwrap();
        assert_eq!((listed.tick_size, listed.lot_size), (decimal(tick), decimal(lot)));
        let unnamed = only(Venue::KrakenDerivatives, &frame.replace("\"base\"", "\"other\""));
        assert_eq!(unnamed.name, symbol, "without its assets");
    }
}
