//! Requests of a client to each venue, and the kinds of its frames, from the venues' documentation.

use sim::{Instrument, Venue};

/// The levels of the book that is asked for, where one must be named.
pub(super) const fn depth(venue: Venue) -> u32 {
    match venue {
        Venue::Kraken => 25,
        Venue::Okx => 400,
        Venue::Bybit => 50,
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Deribit => u32::MAX,
    }
}

/// Whether a snapshot is fetched by REST; else the subscription brings it.
pub(super) const fn is_fetched(venue: Venue) -> bool {
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm => true,
        Venue::Kraken | Venue::Okx | Venue::Bybit | Venue::Deribit => false,
    }
}

/// Whether the venue numbers the updates of a book, so that each lost one is noticed at the next.
pub(super) const fn is_numbered(venue: Venue) -> bool {
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Okx | Venue::Bybit | Venue::Deribit => true,
        Venue::Kraken => false,
    }
}

/// Reply to Deribit's heartbeat request.
pub(super) const SIGN_OF_LIFE: &str = r#"{"jsonrpc":"2.0","id":2,"method":"public/test","params":{}}"#;

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(",")
}

/// The request that follows, or with `"un"` no longer follows, the books and best quotes of `listed`.
pub(super) fn subscribe(venue: Venue, prefix: &str, listed: &[&Instrument]) -> Vec<String> {
    let names = |topics: &[&str], name: &dyn Fn(&str, &str) -> String| {
        let all = listed.iter().flat_map(|listed| topics.iter().map(|topic| name(topic, &listed.symbol)));
        quoted(&all.collect::<Vec<_>>())
    };
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm => {
            let streams = names(&["depth@100ms", "bookTicker", "trade"], &|topic, symbol| {
                format!("{}@{topic}", symbol.to_ascii_lowercase())
            });
            let method = format!("{prefix}subscribe").to_ascii_uppercase();
            vec![format!("{{\"method\":\"{method}\",\"params\":[{streams}],\"id\":1}}")]
        }
        Venue::Kraken => {
            let symbols = names(&[""], &|_, symbol| symbol.to_owned());
            let book = format!("\"channel\":\"book\",\"symbol\":[{symbols}],\"depth\":25,\"snapshot\":true");
            vec![format!("{{\"method\":\"{prefix}subscribe\",\"params\":{{{book}}},\"req_id\":1}}")]
        }
        Venue::Okx => {
            let arguments: Vec<String> = listed
                .iter()
                .map(|listed| format!("{{\"channel\":\"books\",\"instId\":\"{}\"}}", listed.symbol))
                .collect();
            vec![format!("{{\"op\":\"{prefix}subscribe\",\"args\":[{}]}}", arguments.join(","))]
        }
        Venue::Bybit => {
            let topics = names(&["orderbook.50"], &|topic, symbol| format!("{topic}.{symbol}"));
            vec![format!("{{\"op\":\"{prefix}subscribe\",\"args\":[{topics}],\"req_id\":\"1\"}}")]
        }
        Venue::Deribit => {
            let names = names(&["book"], &|topic, symbol| format!("{topic}.{symbol}.100ms"));
            vec![format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"public/{prefix}subscribe\",\"params\":{{\"channels\":[{names}]}}}}"
            )]
        }
    }
}

/// Comes before the quantity of the best bid in `bookTicker`, and in no other frame.
pub(super) const BID_QUANTITY: &str = "\"B\":\"";

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Changed levels of the instrument with that index.
    Update(usize),
    /// All levels of the instrument with that index.
    Snapshot(usize),
    /// The best bid and offer of the instrument with that index, after the update that it names.
    Quote(usize),
    /// Nothing.
    Other,
}

/// Returns the kind of `frame` and its instrument in `listed`.
pub(super) fn kind(venue: Venue, frame: &str, listed: &[Instrument]) -> Kind {
    let (book, snapshot) = match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm => ("\"depthUpdate\"", None),
        Venue::Kraken => ("{\"channel\":\"book\",\"type\":", Some("\"type\":\"snapshot\"")),
        Venue::Okx => ("\"channel\":\"books\"", Some("\"action\":\"snapshot\"")),
        Venue::Bybit => ("{\"topic\":\"orderbook.", Some("\"type\":\"snapshot\"")),
        Venue::Deribit => ("\"channel\":\"book.", Some("\"type\":\"snapshot\"")),
    };
    let found = listed.iter().position(|listed| frame.contains(&format!("\"{}\"", listed.symbol)));
    if matches!(venue, Venue::BinanceSpot | Venue::BinanceUsdm) && frame.contains(BID_QUANTITY) {
        return found.map_or(Kind::Other, Kind::Quote);
    }
    if !frame.contains(book) || frame.contains("\"event\":") {
        return Kind::Other;
    }
    match found {
        Some(index) if snapshot.is_some_and(|mark| frame.contains(mark)) => Kind::Snapshot(index),
        Some(index) => Kind::Update(index),
        None => Kind::Other,
    }
}
