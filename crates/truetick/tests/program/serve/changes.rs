//! `market`: feeds are added and removed while others run, over the API and by SIGHUP, and the page waits for no venue.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use futures_util::StreamExt as _;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sim::{Standing, Venue};
use tempfile::TempDir;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::openapi::answer_validator;
use crate::served::Served;

pub(super) const TOKEN: &str = "a-token-of-some-length";
const FEEDS: &str = "/api/v1/market/feeds";

pub(super) fn simulator() -> sim::Running {
    sim::start(sim::Config { instruments: 2, rate_hz: 200.0, ..sim::Config::default() }).unwrap()
}

pub(super) fn symbols(sim: &sim::Running, venue: Venue) -> Vec<String> {
    sim.instruments(venue).into_iter().map(|listed| listed.symbol).collect()
}

pub(super) fn url(sim: &sim::Running, venue: Venue) -> String {
    format!("ws://{}{}", sim.address(venue), venue.streams_path())
}

/// A configuration file that can be written again.
pub(super) struct Configured {
    folder: TempDir,
}

impl Configured {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, TOKEN).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        Self { folder }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("truetick.toml")
    }

    pub(super) fn write(&self, feeds: &[(Venue, &[String], &str)]) {
        let table = |(venue, symbols, url): &(Venue, &[String], &str)| {
            let of = format!("venue = {:?}\nsymbols = {symbols:?}\nurl = {url:?}\nlist_every = \"1s\"\n", venue.name());
            format!("[[market.feeds]]\n{of}")
        };
        let feeds: String = feeds.iter().map(table).collect();
        let token = self.folder.path().join("token");
        self.replace(&format!("{feeds}[http]\nlisten = \"127.0.0.1:0\"\napi_token_file = {token:?}\n"));
    }

    /// A reader sees the whole old file or the whole new one.
    pub(super) fn replace(&self, text: &str) {
        let new = self.folder.path().join("new.toml");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path()).unwrap();
    }

    fn market(&self) -> Served {
        Served::of(&["--config", self.path().to_str().unwrap(), "market"])
    }

    pub(super) fn serve(&self) -> Served {
        Served::start(&["--config", self.path().to_str().unwrap()])
    }
}

/// The status and the answer to a request with a body.
pub(super) fn ask(served: &Served, method: &str, path: &str, token: Option<&str>, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(served.http).unwrap();
    let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{token}", served.http);
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

fn change(served: &Served, method: &str, path: &str, body: &Value) -> (u16, Value) {
    ask(served, method, path, Some(TOKEN), &body.to_string())
}

fn is_proved(book: &Value) -> bool {
    ["crc", "sequence", "oracle"].contains(&book["proof"].as_str().unwrap())
}

/// Waits until there are as many books of a venue, all proved.
pub(super) fn books(served: &Served, venue: Venue, count: usize) -> Value {
    let path = "/api/v1/market/ticker";
    let of = |rows: &Value| {
        let rows = rows.as_array().unwrap().iter().filter(|row| row["venue"] == venue.name()).cloned();
        rows.collect::<Vec<_>>()
    };
    let rows = served.wait(path, |rows| of(rows).len() == count && of(rows).iter().all(is_proved));
    Value::Array(of(&rows))
}

/// What a disturbance would change at the feed of a venue.
fn calm(served: &Served, venue: Venue) -> Vec<Value> {
    let status = served.json("/api/v1/market/status");
    let feed = status["feeds"].as_array().unwrap().iter().find(|feed| feed["venue"] == venue.name()).unwrap();
    ["connected", "gaps", "resyncs", "reconnects", "planned_reconnects"].map(|key| feed[key].clone()).to_vec()
}

#[test]
fn feeds_are_added_and_removed_over_the_api_and_others_go_on() {
    let sim = simulator();
    let configured = Configured::new();
    configured.write(&[(Venue::Kraken, &symbols(&sim, Venue::Kraken), &url(&sim, Venue::Kraken))]);
    let served = configured.market();
    books(&served, Venue::Kraken, 2);
    served.wait_ready();
    let before = calm(&served, Venue::Kraken);
    let usdm = symbols(&sim, Venue::BinanceUsdm);
    let section = |symbols: &[String]| json!({ "venue": "binance_usdm", "symbols": symbols, "url": url(&sim, Venue::BinanceUsdm) });
    let (status, first) = change(&served, "POST", FEEDS, &section(&usdm[..1]));
    assert_eq!(status, 200, "{first}");
    let added = books(&served, Venue::BinanceUsdm, 1);
    // A symbol more, next to the one that is followed.
    let (status, second) = change(&served, "POST", FEEDS, &section(&usdm[1..]));
    assert_eq!((status, first["id"] != second["id"]), (200, true), "{second}");
    let both = books(&served, Venue::BinanceUsdm, 2);
    assert_ne!(both[0]["instrument"], both[1]["instrument"]);
    let list = served.json(FEEDS);
    let validator = answer_validator(&served, FEEDS);
    assert!(validator.is_valid(&list) && !validator.is_valid(&json!([{ "id": 1 }])), "{list}");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    assert!(list.as_array().unwrap().iter().all(|feed| feed["state"] == "running"), "{list}");
    // Whole books by the numbers that tickers show.
    let book = served.json("/api/v1/market/orderbook?venue=binance_usdm&depth=all");
    let numbers =
        |rows: &Value| rows.as_array().unwrap().iter().map(|row| row["instrument"].clone()).collect::<Vec<_>>();
    assert_eq!(numbers(&book), numbers(&both));
    assert!(book.as_array().unwrap().iter().all(|row| row["bid_levels"].as_u64() > Some(10)), "{book}");
    let (status, removed) = change(&served, "DELETE", &format!("{FEEDS}/{}", first["id"]), &Value::Null);
    assert_eq!((status, &removed["removed"], &removed["symbol"]), (200, &first["id"], &Value::Null));
    let left = books(&served, Venue::BinanceUsdm, 1);
    assert!(left[0]["instrument"] != added[0]["instrument"] && left[0]["symbol"] != added[0]["symbol"], "{left}");
    assert_eq!(served.get("/api/v1/market/ticker?symbol=BTC/USDT:USDT").status, 404, "it is not followed any more");
    // Another one gets a number that was never used.
    let (_, third) = change(&served, "POST", FEEDS, &section(&usdm[..1]));
    let again = books(&served, Venue::BinanceUsdm, 2);
    assert!(third["id"].as_u64() > second["id"].as_u64());
    assert!(!numbers(&again).contains(&added[0]["instrument"]), "{again}");
    books(&served, Venue::Kraken, 2);
    assert_eq!(calm(&served, Venue::Kraken), before, "nothing of it disturbed the other venue");
}

#[test]
fn changes_need_the_token_and_a_feed_that_can_be_followed() {
    let sim = simulator();
    let configured = Configured::new();
    let kraken = symbols(&sim, Venue::Kraken);
    configured.write(&[(Venue::Kraken, &kraken[..1], &url(&sim, Venue::Kraken))]);
    let served = configured.market();
    let section = json!({ "venue": "kraken", "symbols": kraken[1..], "url": url(&sim, Venue::Kraken) });
    for (method, path) in [("POST", FEEDS.to_owned()), ("DELETE", format!("{FEEDS}/0"))] {
        for token in [None, Some("another"), Some("")] {
            assert_eq!(ask(&served, method, &path, token, &section.to_string()).0, 401, "{method} {token:?}");
        }
    }
    let account = json!({ "venue": "kraken", "symbols": ["X/USD"], "account_file": "/etc/shadow" });
    for (body, reason) in [
        (json!({ "venue": "nope", "symbols": ["X"] }), "nope is no venue"),
        (json!({ "venue": "kraken" }), "missing field `symbols`"),
        (json!({ "venue": "kraken", "symbols": ["X"], "colour": 1 }), "unknown field `colour`"),
        (json!({ "venue": "kraken", "symbols": [] }), "without symbols"),
        (json!({ "venue": "kraken", "symbols": ["X"], "verify_every": "60s" }), "kraken has no REST snapshots"),
        (json!({ "venue": "kraken", "symbols": ["X"], "url": "nonsense" }), "nonsense"),
        (json!({ "venue": "kraken", "symbols": kraken, "url": url(&sim, Venue::Kraken) }), "is followed"),
        (account, "account_file is for the configuration file"),
        (
            json!({ "venue": "hyperliquid", "symbols": (0..251).map(|n| n.to_string()).collect::<Vec<_>>() }),
            "1000 topics",
        ),
    ] {
        let (status, answer) = change(&served, "POST", FEEDS, &body);
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(reason), "{body}: {answer}");
    }
    for id in ["7", "nope", "-1"] {
        assert_eq!(change(&served, "DELETE", &format!("{FEEDS}/{id}"), &Value::Null).0, 404, "{id}");
    }
    assert_eq!(served.json(FEEDS).as_array().map(Vec::len), Some(1));
    // A symbol that its venue does not list costs this feed alone.
    let unlisted = json!({ "venue": "kraken", "symbols": ["NO/SUCH"], "url": url(&sim, Venue::Kraken) });
    assert_eq!(change(&served, "POST", FEEDS, &unlisted).0, 200);
    let list = served.wait(FEEDS, |list| list[1]["state"] == "failed");
    assert!(list[1]["error"].as_str().unwrap().contains("NO/SUCH"), "{list}");
    books(&served, Venue::Kraken, 1);
}

#[test]
fn the_page_and_other_venues_do_not_wait_for_a_silent_one() {
    let sim = simulator();
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("ws://{}/ws/v5/public", silent.local_addr().unwrap());
    let configured = Configured::new();
    let kraken = (symbols(&sim, Venue::Kraken), url(&sim, Venue::Kraken));
    configured.write(&[(Venue::Okx, &["BTC-USDT".to_owned()], &nowhere), (Venue::Kraken, &kraken.0, &kraken.1)]);
    let served = configured.market();
    let ready = served.get("/readyz");
    assert_eq!(ready.status, 503, "{}", ready.body);
    books(&served, Venue::Kraken, 2);
    let status = served.json("/api/v1/market/status");
    let okx = status["feeds"].as_array().unwrap().iter().find(|feed| feed["venue"] == "okx").unwrap();
    assert_eq!((&okx["connected"], &status["books"]), (&false.into(), &2.into()), "{status}");
    assert_eq!(served.json(FEEDS)[0]["state"], "starting");
    assert_eq!(served.get("/readyz").status, 503, "a venue is missing");
    assert_eq!(change(&served, "DELETE", &format!("{FEEDS}/0"), &Value::Null).0, 200);
    served.wait_ready();
}

#[test]
fn sighup_follows_what_the_file_says_now() {
    let sim = simulator();
    let configured = Configured::new();
    let of = |venue: Venue| (symbols(&sim, venue), url(&sim, venue));
    let (kraken, usdm, okx) = (of(Venue::Kraken), of(Venue::BinanceUsdm), of(Venue::Okx));
    configured.write(&[(Venue::Kraken, &kraken.0[..1], &kraken.1), (Venue::BinanceUsdm, &usdm.0, &usdm.1)]);
    let served = configured.market();
    books(&served, Venue::BinanceUsdm, 2);
    let first = books(&served, Venue::Kraken, 1);
    served.wait_ready();
    let before = calm(&served, Venue::Kraken);
    // A symbol more, a venue more, a venue less.
    configured.write(&[(Venue::Kraken, &kraken.0, &kraken.1), (Venue::Okx, &okx.0[..1], &okx.1)]);
    served.signal(Signal::SIGHUP);
    books(&served, Venue::Okx, 1);
    let both = books(&served, Venue::Kraken, 2);
    assert_eq!(both[0]["instrument"], first[0]["instrument"], "it is the book of before");
    books(&served, Venue::BinanceUsdm, 0);
    assert_eq!(calm(&served, Venue::Kraken), before);
    // A file that is wrong changes nothing.
    for wrong in ["[[market.feeds]]\nvenue = \"nope\"\nsymbols = [\"X\"]\n", "", "[[market.feeds]]\nvenue ="] {
        configured.replace(wrong);
        served.signal(Signal::SIGHUP);
        books(&served, Venue::Kraken, 2);
    }
    // A symbol less: the feed that had it is another one.
    configured.write(&[(Venue::Kraken, &kraken.0[1..], &kraken.1), (Venue::Okx, &okx.0[..1], &okx.1)]);
    served.signal(Signal::SIGHUP);
    let left = books(&served, Venue::Kraken, 1);
    assert_eq!(left[0]["instrument"], both[1]["instrument"]);
    books(&served, Venue::Okx, 1);
    assert_eq!(served.json(FEEDS).as_array().map(Vec::len), Some(2));
    // The same on request.
    let reload = |token| ask(&served, "POST", "/api/v1/reload", token, "");
    configured.write(&[]);
    assert_eq!(reload(Some("wrong")).0, 401);
    let (status, answer) = reload(Some(TOKEN));
    assert!(status == 422 && answer["error"] == "no [[market.feeds]]", "{answer}");
    configured.write(&[(Venue::Kraken, &kraken.0[1..], &kraken.1)]);
    let feeds = fs::read_to_string(configured.path()).unwrap();
    configured.replace(&format!("{feeds}[turn]\nlifetime_s = 900\n"));
    let refused = json!({ "error": "a restart is needed for turn.lifetime_s" });
    assert_eq!(reload(Some(TOKEN)), (422, refused), "`market` has no TURN server");
    books(&served, Venue::Okx, 1);
    configured.replace(&feeds);
    assert_eq!(reload(Some(TOKEN)), (200, json!({ "reloaded": true })));
    books(&served, Venue::Okx, 0);
    books(&served, Venue::Kraken, 1);
}

/// The updates of one book from a stream: each goes on from the one before.
struct Updates {
    stream: WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>,
    runtime: tokio::runtime::Runtime,
    last_id: Option<u64>,
}

impl Updates {
    fn open(served: &Served, venue: Venue, symbol: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = format!("ws://{}/ws/orderbook?venue={}&symbol={symbol}", served.http, venue.name());
        let (stream, _) = runtime.block_on(tokio_tungstenite::connect_async(url)).unwrap();
        Self { stream, runtime, last_id: None }
    }

    /// Takes `count` updates without a gap between them.
    fn take(&mut self, count: usize) {
        let mut taken = 0;
        while taken < count {
            let text = self.runtime.block_on(self.stream.next()).unwrap().unwrap().into_text().unwrap();
            let message: Value = serde_json::from_str(&text).unwrap();
            match message["type"].as_str().unwrap() {
                "snapshot" => assert_eq!(self.last_id, None, "a second snapshot: {message}"),
                "delta" => {
                    assert_eq!(message["previous_id"].as_u64(), self.last_id, "{message}");
                    assert!(is_proved(&message), "{message}");
                    taken += 1;
                }
                "status" => assert!(is_proved(&message), "{message}"),
                other => panic!("{other}: {message}"),
            }
            self.last_id = message["update_id"].as_u64();
        }
    }
}

/// The status of a venue's first feed as soon as so much of it is refused.
fn refused(served: &Served, venue: Venue, count: usize) -> Value {
    let of = |status: &Value| {
        let feeds = status["feeds"].as_array().unwrap();
        feeds.iter().find(|feed| feed["venue"] == venue.name()).unwrap().clone()
    };
    let is_so = |status: &Value| of(status)["refused"].as_array().map(Vec::len) == Some(count);
    of(&served.wait("/api/v1/market/status", is_so))
}

/// The names and venues' symbols of a venue's books, in the order of their numbers.
fn names(served: &Served, venue: Venue) -> Vec<(String, String)> {
    let markets = served.json(&format!("/api/v1/market/markets?venue={}", venue.name()));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    markets.as_array().unwrap().iter().map(|row| (text(row, "symbol"), text(row, "venue_symbol"))).collect()
}

#[test]
fn one_symbol_ends_and_begins_while_the_others_of_its_feed_go_on() {
    let sim = sim::start(sim::Config { instruments: 3, rate_hz: 60.0, ..sim::Config::default() }).unwrap();
    let configured = Configured::new();
    let feeds: Vec<_> = Venue::ALL.into_iter().map(|venue| (venue, symbols(&sim, venue), url(&sim, venue))).collect();
    let wanted: Vec<_> = feeds.iter().map(|(venue, symbols, url)| (*venue, symbols.as_slice(), url.as_str())).collect();
    configured.write(&wanted);
    let served = configured.serve();
    let mut others = Vec::new();
    for venue in Venue::ALL {
        books(&served, venue, 3);
    }
    served.wait_ready();
    let before: Vec<_> = Venue::ALL.map(|venue| calm(&served, venue)).to_vec();
    for venue in Venue::ALL {
        let (name, _) = &names(&served, venue)[2];
        others.push(Updates::open(&served, venue, name));
        others.last_mut().unwrap().take(5);
    }
    let list = served.json(FEEDS);
    for (index, (_, symbols, _)) in feeds.iter().enumerate() {
        let path = format!("{FEEDS}/{}?symbol={}", list[index]["id"], symbols[0].replace('/', "%2F"));
        assert_eq!(ask(&served, "DELETE", &path, None, "").0, 401);
        let (status, answer) = change(&served, "DELETE", &path, &Value::Null);
        assert_eq!((status, &answer["symbol"]), (200, &symbols[0].as_str().into()), "{answer}");
        assert_eq!(change(&served, "DELETE", &path, &Value::Null).0, 404, "it is not followed any more");
    }
    for venue in Venue::ALL {
        books(&served, venue, 2);
    }
    others.iter_mut().for_each(|other| other.take(30));
    assert_eq!(served.get("/readyz").status, 200, "what is not followed is not missed: {}", served.get("/readyz").body);
    // The file still has them: each gets another connection.
    for (index, (venue, symbols, url)) in feeds.iter().enumerate() {
        let section = json!({ "venue": venue.name(), "symbols": symbols[..1], "url": url });
        let (status, answer) = change(&served, "POST", FEEDS, &section);
        assert_eq!(status, 200, "{index}: {answer}");
    }
    for venue in Venue::ALL {
        books(&served, venue, 3);
    }
    others.iter_mut().for_each(|other| other.take(30));
    // Now by the file: one symbol of each is gone.
    let wanted: Vec<_> = feeds.iter().map(|(venue, symbols, url)| (*venue, &symbols[2..], url.as_str())).collect();
    configured.write(&wanted);
    served.signal(Signal::SIGHUP);
    // Those that the API has added stay.
    for venue in Venue::ALL {
        books(&served, venue, 2);
    }
    others.iter_mut().for_each(|other| other.take(30));
    for (venue, before) in Venue::ALL.into_iter().zip(before) {
        let status = served.json("/api/v1/market/status");
        let first = status["feeds"].as_array().unwrap().iter().find(|feed| feed["venue"] == venue.name()).unwrap();
        let after = ["connected", "gaps", "resyncs", "reconnects", "planned_reconnects"].map(|key| first[key].clone());
        assert_eq!(after.to_vec(), before, "{venue:?}");
    }
}

#[test]
fn a_symbol_that_its_venue_suspends_or_removes_is_named_and_ends_alone() {
    let sim = sim::start(sim::Config { instruments: 3, rate_hz: 60.0, ..sim::Config::default() }).unwrap();
    let configured = Configured::new();
    let feeds: Vec<_> = Venue::ALL.into_iter().map(|venue| (venue, symbols(&sim, venue), url(&sim, venue))).collect();
    let wanted: Vec<_> = feeds.iter().map(|(venue, symbols, url)| (*venue, symbols.as_slice(), url.as_str())).collect();
    configured.write(&wanted);
    let served = configured.market();
    for venue in Venue::ALL {
        books(&served, venue, 3);
    }
    served.wait_ready();
    let mut others: Vec<Updates> =
        Venue::ALL.into_iter().map(|venue| Updates::open(&served, venue, &names(&served, venue)[2].0)).collect();
    for venue in Venue::ALL {
        sim.set_standing(venue, 0, Standing::Suspended);
        sim.set_standing(venue, 1, Standing::Delisted);
    }
    for (venue, symbols, _) in &feeds {
        books(&served, *venue, 1);
        let feed = refused(&served, *venue, 2);
        let reason = |symbol: &String| {
            let refused = feed["refused"].as_array().unwrap();
            let of_symbol = refused.iter().find(|refused| refused["subject"] == symbol.as_str());
            of_symbol.unwrap_or_else(|| panic!("{symbol}: {refused:?}"))["reason"].as_str().unwrap().to_owned()
        };
        let suspended = if *venue == Venue::Bybit { "the venue has closed it" } else { "the venue has halted it" };
        assert_eq!(reason(&symbols[0]), suspended, "{venue:?}");
        // Deribit says so itself, which is sooner than two lists.
        let delisted =
            if *venue == Venue::Deribit { "the venue has closed it" } else { "the venue lists it no longer" };
        assert_eq!(reason(&symbols[1]), delisted, "{venue:?}");
        assert_eq!(feed["silent_topics"].as_array().map(Vec::len), Some(0), "{feed}");
    }
    others.iter_mut().for_each(|other| other.take(30));
    assert_eq!(served.get("/readyz").status, 200, "{}", served.get("/readyz").body);
    // Both are traded again, and followed again under their numbers.
    for venue in Venue::ALL {
        sim.set_standing(venue, 0, Standing::Trading);
        sim.set_standing(venue, 1, Standing::Trading);
    }
    for venue in Venue::ALL {
        books(&served, venue, 3);
        refused(&served, venue, 0);
    }
    others.iter_mut().for_each(|other| other.take(30));
}

#[test]
fn serve_changes_feeds_and_its_page_waits_for_no_venue() {
    let sim = simulator();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("ws://{}/ws/v5/public", silent.local_addr().unwrap());
    let configured = Configured::new();
    configured.write(&[(Venue::Okx, &["BTC-USDT".to_owned()], &nowhere)]);
    let served = configured.serve();
    assert!(served.banner.contains("1 symbols of 1 configured feeds"), "{}", served.banner);
    assert_eq!(served.json("/api/v1/market/status")["books"], 0);
    let empty = served.json("/api/v1/risk/verdicts");
    assert_eq!(empty["ledger"]["in"], 0, "{empty}");
    let section =
        json!({ "venue": "kraken", "symbols": symbols(&sim, Venue::Kraken), "url": url(&sim, Venue::Kraken) });
    assert_eq!(change(&served, "POST", FEEDS, &section).0, 200);
    books(&served, Venue::Kraken, 2);
    assert_eq!(change(&served, "DELETE", &format!("{FEEDS}/0"), &Value::Null).0, 200);
    served.wait_ready();
    served.wait("/api/v1/risk/verdicts", |verdicts| verdicts["ledger"]["out"].as_u64() > Some(0));
    configured.write(&[(Venue::Okx, &symbols(&sim, Venue::Okx)[..1], &url(&sim, Venue::Okx))]);
    served.signal(Signal::SIGHUP);
    books(&served, Venue::Okx, 1);
    books(&served, Venue::Kraken, 2);
    served.signal(Signal::SIGTERM);
    let (farewell, status) = served.end();
    assert!(status.success() && farewell.contains("frames:"), "{farewell}");
}
