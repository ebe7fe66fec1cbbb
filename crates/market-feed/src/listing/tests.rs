//! A list that is requested by POST.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use tt_model::Decimal;
use tt_venue::Venue;
use tt_venue::listing::{ContractUnit, InstrumentKind, InstrumentStatus, Terms};

use super::*;

/// Answers the requests to `listener` one after the other, and returns what they were.
fn answer(listener: &TcpListener, bodies: &[&str]) -> Vec<String> {
    let mut asked = Vec::new();
    for body in bodies {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            let mut bytes = [0; 1024];
            let read = stream.read(&mut bytes).unwrap();
            request.extend_from_slice(&bytes[..read]);
        }
        asked.push(String::from_utf8(request).unwrap());
        let date = "Date: Tue, 15 Nov 1994 08:12:31 GMT";
        write!(stream, "HTTP/1.1 200 OK\r\n{date}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    }
    asked
}

#[test]
fn hyperliquids_lists_are_posted_for() {
    // As the venue's documentation shows them ("Retrieve perpetuals metadata", "Retrieve spot metadata").
    // Then two builders' ("HIP-3: Builder-deployed perpetuals"); one settles in a token that is not listed.
    let own = r#"{"universe":[{"name":"BTC","szDecimals":5,"maxLeverage":50},{"name":"HPOS","szDecimals":0,"maxLeverage":3,"onlyIsolated":true,"isDelisted":true}]}"#;
    let builder =
        r#"{"universe":[{"name":"xyz:GOOGL","szDecimals":3,"maxLeverage":10}],"marginTables":[],"collateralToken":1}"#;
    let other =
        r#"{"universe":[{"name":"km:US*","szDecimals":2,"maxLeverage":10}],"marginTables":[],"collateralToken":360}"#;
    let perpetuals = &format!("[{own},{builder},{other}]");
    let spot = r#"{"tokens":[{"name":"USDC","szDecimals":8,"weiDecimals":8,"index":0,"tokenId":"0x6d1e7cde53ba9467b783cb7c530ce054","isCanonical":true},{"name":"PURR","szDecimals":0,"weiDecimals":5,"index":1,"tokenId":"0xc1fb593aeffbeb02f85e0308e9956a90","isCanonical":true}],"universe":[{"name":"PURR/USDC","tokens":[1,0],"index":0,"isCanonical":true}]}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let streams = format!("ws://{}/ws", listener.local_addr().unwrap()).parse().unwrap();
    let perpetuals = perpetuals.clone();
    // "HIP-4: Outcome markets": this list is for who follows one.
    let outcomes = r#"{"outcomes":[{"outcome":516,"name":"Recurring","description":"","sideSpecs":[{"name":"Yes"},{"name":"No"}]}],"questions":[]}"#;
    let asked = std::thread::spawn(move || answer(&listener, &[&perpetuals, spot, &perpetuals, spot, outcomes]));
    let mut feed = FeedConfig::at(Venue::Hyperliquid, streams, vec!["BTC".to_owned()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listed = runtime.block_on(list(&feed, tt_os::clock::clock())).unwrap();
    feed.symbols.push("#5160".to_owned());
    let with_outcomes = runtime.block_on(list(&feed, tt_os::clock::clock())).unwrap();
    let of = |symbol: &str, name: &str, tick_size: (i64, u8), lot_size: (i64, u8)| Listing {
        symbol: symbol.to_owned(),
        name: name.to_owned(),
        tick_size: Decimal::new(tick_size.0, tick_size.1),
        lot_size: Decimal::new(lot_size.0, lot_size.1),
        unit: ContractUnit::Base,
        terms: match symbol {
            "PURR/USDC" => Terms::default(),
            "HPOS" => Terms { kind: InstrumentKind::Perpetual, status: InstrumentStatus::Closed, ..Terms::default() },
            _ => Terms { kind: InstrumentKind::Perpetual, status: InstrumentStatus::Trading, ..Terms::default() },
        },
        alias: None,
    };
    let expected = [
        of("BTC", "BTC/USDC:USDC", (1, 1), (1, 5)),
        of("HPOS", "HPOS/USDC:USDC", (1, 6), (1, 0)),
        of("xyz:GOOGL", "xyz:GOOGL/PURR:PURR", (1, 3), (1, 3)),
        of("km:US*", "km:US*/@360:@360", (1, 4), (1, 2)),
        of("PURR/USDC", "PURR/USDC", (1, 8), (1, 0)),
    ];
    assert_eq!(listed.entries, expected);
    assert_eq!(listed.date.as_deref(), Some("Tue, 15 Nov 1994 08:12:31 GMT"));
    let symbols = |listed: &Listed| listed.entries.iter().map(|entry| entry.symbol.clone()).collect::<Vec<_>>();
    assert_eq!(symbols(&with_outcomes), [symbols(&listed), vec!["#5160".to_owned(), "#5161".to_owned()]].concat());
    let asked = asked.join().unwrap();
    let [perpetuals, spot] = [r#"{"type":"allPerpMetas"}"#, r#"{"type":"spotMeta"}"#];
    let bodies = [perpetuals, spot, perpetuals, spot, r#"{"type":"outcomeMeta"}"#];
    assert_eq!(asked.len(), bodies.len());
    for (request, body) in asked.iter().zip(bodies) {
        assert!(request.starts_with("POST /info HTTP/1.1\r\n") && request.ends_with(body), "{request}");
        assert!(request.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{request}");
    }
}

#[test]
fn options_and_events_are_asked_for_by_what_is_followed() {
    let streams = || "ws://127.0.0.1:7/ws/v5/public".parse().unwrap();
    let symbols = ["BTC-USD-261225-100000-C", "BTC-USDT", "ETH-USD-261225-4000-P", "BTC-USD-261225-90000-P"];
    let feed = FeedConfig::at(Venue::Okx, streams(), symbols.map(str::to_owned).into());
    let path = "/api/v5/public/instruments?instType=OPTION&instFamily=";
    assert_eq!(of_families(&feed, &format!("{path}{{family}}")), [format!("{path}BTC-USD"), format!("{path}ETH-USD")]);
    let spot = FeedConfig::at(Venue::Okx, streams(), vec!["BTC-USDT".to_owned()]);
    assert_eq!(of_families(&spot, &format!("{path}{{family}}")), [""; 0]);
    let symbols = ["BTC-ABOVE-DAILY-260428-1600-64000", "BTC-USD-261225-100000-C", "BTC-UPDOWN-15MIN-260224-1600-1615"];
    let events = FeedConfig::at(Venue::Okx, streams(), symbols.map(str::to_owned).into());
    assert_eq!(
        of_families(&events, "/e?seriesId={series}"),
        ["/e?seriesId=BTC-ABOVE-DAILY", "/e?seriesId=BTC-UPDOWN-15MIN"]
    );
    assert_eq!(of_families(&events, "/o?instFamily={family}"), ["/o?instFamily=BTC-USD"]);
    assert_eq!(of_families(&spot, "/e?seriesId={series}"), [""; 0]);
    assert_eq!(of_families(&spot, "/api"), ["/api"]);
}
