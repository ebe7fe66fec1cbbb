//! Whole books and streams of every update, held against the simulator's true books by a client that shares no code
//! with the engine.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use sim::{Script, TrueBook, Venue};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async, connect_async};

use super::openapi::stream_validator;
use crate::served::Served;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The shipped binary on two instruments of a simulated Binance, whose steps the test makes.
struct Market {
    sim: sim::Running,
    served: Served,
    _folder: TempDir,
}

const SYMBOL: &str = "BTC/USDT";

impl Market {
    fn start() -> Self {
        let sim = sim::start(sim::Config { instruments: 2, rate_hz: 0.0, ..sim::Config::default() }).unwrap();
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("truetick.toml");
        let symbols: Vec<String> =
            sim.instruments(Venue::BinanceSpot).iter().map(|listed| format!("{:?}", listed.symbol)).collect();
        let (address, path) = (sim.address(Venue::BinanceSpot), Venue::BinanceSpot.streams_path());
        let text = format!(
            "[[market.feeds]]\nvenue = \"binance_spot\"\nsymbols = [{}]\nurl = \"ws://{address}{path}\"\n",
            symbols.join(", ")
        );
        fs::write(&config, text).unwrap();
        let served = Served::of(&["--config", config.to_str().unwrap(), "market", "--http", "127.0.0.1:0"]);
        let market = Self { sim, served, _folder: folder };
        market.served.wait("/api/v1/market/status", |status| {
            (0..2).for_each(|index| {
                market.sim.step(Venue::BinanceSpot, index, 1);
            });
            status["books_proven"] == 2
        });
        market
    }

    /// The script's book at any update id.
    fn truth(&self) -> Truth {
        Truth(self.sim.script(Venue::BinanceSpot, 0))
    }

    fn step(&self, count: u64) -> u64 {
        self.sim.step(Venue::BinanceSpot, 0, count)
    }

    fn url(&self, path: &str) -> String {
        format!("ws://{}{path}", self.served.http)
    }
}

/// The truth, asked in the order of update ids.
struct Truth(Script);

/// Price and quantity as numbers without a point.
type Levels = Vec<(i64, i64)>;

impl Truth {
    fn levels(&mut self, update_id: u64, depth: usize) -> [Levels; 2] {
        let book: &TrueBook = self.0.play_to(update_id).expect("a whole step");
        let level = |(px, qty): (&i64, &i64)| (*px, *qty);
        [book.bids().map(level).take(depth).collect(), book.asks().map(level).take(depth).collect()]
    }
}

/// Decimal text as a number without the point.
fn number(text: &Value) -> i64 {
    text.as_str().expect("decimal text").replace('.', "").parse().expect("digits")
}

/// A client that knows snapshots and deltas alone.
struct Client<S> {
    socket: WebSocketStream<S>,
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
    seq: u64,
    update_id: u64,
    messages: u64,
    /// Messages that the server says it lost, and marks of them.
    lost: u64,
    gaps: u64,
    pending_gap: u64,
    validator: jsonschema::Validator,
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Client<S> {
    fn new(socket: WebSocketStream<S>) -> Self {
        let (bids, asks) = Default::default();
        Self {
            socket,
            bids,
            asks,
            seq: 0,
            update_id: 0,
            messages: 0,
            lost: 0,
            gaps: 0,
            pending_gap: 0,
            validator: stream_validator("/ws/orderbook"),
        }
    }

    /// Takes the next message; returns it.
    async fn next(&mut self) -> Value {
        let text = loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("a message in time");
            match message.expect("open").expect("whole") {
                Message::Text(text) => break text,
                Message::Ping(_) | Message::Pong(_) => {}
                other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => panic!("{other:?}"),
            }
        };
        let message: Value = serde_json::from_str(&text).expect("JSON");
        assert!(self.validator.is_valid(&message), "{message}");
        self.messages += 1;
        let id = |name: &str| message[name].as_u64().unwrap_or_else(|| panic!("no {name}: {message}"));
        match message["type"].as_str().expect("a type") {
            "gap" => {
                assert_eq!(self.pending_gap, 0);
                self.pending_gap = id("lost");
                self.lost += id("lost");
                self.gaps += 1;
                return message;
            }
            "snapshot" => {
                if self.seq > 0 && self.messages > 1 {
                    // A mark has the number of lost ones; without one, this is the next message.
                    assert_eq!(id("seq"), self.seq + self.pending_gap.max(1), "{message}");
                }
                self.pending_gap = 0;
                self.bids.clear();
                self.asks.clear();
            }
            "delta" => {
                assert_eq!((id("seq"), id("previous_id")), (self.seq + 1, self.update_id), "{message}");
                assert_eq!(self.pending_gap, 0, "a snapshot follows a gap");
            }
            "status" => assert_eq!(id("seq"), self.seq + 1),
            other => panic!("{other}"),
        }
        (self.seq, self.update_id) = (id("seq"), id("update_id"));
        for (side, name) in [(&mut self.bids, "bids"), (&mut self.asks, "asks")] {
            for level in message[name].as_array().into_iter().flatten() {
                let (px, qty) = (number(&level["px"]), number(&level["qty"]));
                let before = if qty == 0 { side.remove(&px) } else { side.insert(px, qty) };
                if message["type"] == "delta" {
                    assert_eq!(before.unwrap_or(0), number(&level["old_qty"]), "{message}");
                }
            }
        }
        message
    }

    fn levels(&self) -> [Levels; 2] {
        let level = |(px, qty): (&i64, &i64)| (*px, *qty);
        [self.bids.iter().rev().map(level).collect(), self.asks.iter().map(level).collect()]
    }

    /// Follows until `last`, and holds every state against the truth.
    async fn follow(&mut self, truth: &mut Truth, depth: usize, last: u64) -> u64 {
        let mut compared = 0;
        while self.update_id < last || self.pending_gap > 0 {
            let message = self.next().await;
            if message["type"] == "gap" {
                continue;
            }
            assert!(matches!(message["proof"].as_str(), Some("sequence" | "oracle")), "{message}");
            assert!(message["ts_recv"].as_u64() > Some(1_600_000_000_000_000_000), "{message}");
            assert!(self.levels() == truth.levels(self.update_id, depth), "after {}", self.update_id);
            compared += 1;
        }
        compared
    }
}

async fn market() -> Market {
    tokio::task::spawn_blocking(Market::start).await.expect("it starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_rebuild_the_true_book_after_each_update() {
    let market = market().await;
    let mut all = Client::new(connect_async(market.url(&stream(""))).await.unwrap().0);
    let mut five = Client::new(connect_async(market.url(&stream("&depth=5"))).await.unwrap().0);
    let mut slow = Client::new(connect_async(market.url(&stream("&every=100ms"))).await.unwrap().0);
    let first = all.next().await;
    assert_eq!(
        (&first["type"], &first["venue"], &first["symbol"]),
        (&"snapshot".into(), &"binance_spot".into(), &SYMBOL.into())
    );
    assert_eq!((&first["simulated"], &first["contract"]["kind"]), (&false.into(), &"base".into()));
    assert!(first["bids"].as_array().map(Vec::len) > Some(50), "{first}");
    let mut last = 0;
    for _ in 0..60 {
        last = market.step(10);
        tokio::task::yield_now().await;
    }
    let compared = all.follow(&mut market.truth(), usize::MAX, last).await;
    assert!(compared >= 300, "{compared} updates");
    let compared = five.follow(&mut market.truth(), 5, last).await;
    assert!(compared >= 300, "{compared} updates");
    let conflated = slow.follow(&mut market.truth(), usize::MAX, last).await;
    assert!(conflated >= 1 && conflated < compared, "{conflated} of {compared}");
    assert_eq!((all.gaps, five.gaps, slow.gaps), (0, 0, 0));
    // The same book by REST.
    let levels = |book: &Value, side: &str| -> Levels {
        book[side].as_array().unwrap().iter().map(|level| (number(&level["px"]), number(&level["qty"]))).collect()
    };
    for (question, depth) in [("&depth=all", usize::MAX), ("&depth=11", 11), ("&depth=1", 1), ("", 10)] {
        let answer =
            market.served.json(&format!("/api/v1/market/orderbook?venue=binance_spot&symbol={SYMBOL}{question}"));
        let book = &answer[0];
        assert_eq!(book["update_id"], last, "{book}");
        assert_eq!([levels(book, "bids"), levels(book, "asks")], market.truth().levels(last, depth), "{question}");
        assert_eq!(book["bid_levels"].as_u64(), Some(all.bids.len() as u64));
        assert!(book["ts_event"].is_u64() && book["ts_recv"].is_u64() && book["tick_size"] == "0.01", "{book}");
    }
}

fn stream(more: &str) -> String {
    format!("/ws/orderbook?venue=binance_spot&symbol={SYMBOL}{more}")
}

/// Opens a stream with little room in the kernel, so that a reader that stops is noticed soon.
async fn connect_narrow(market: &Market, path: &str) -> Client<TcpStream> {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(market.served.http).await.unwrap();
    Client::new(client_async(market.url(path), stream).await.unwrap().0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stops_gets_a_mark_and_a_snapshot_and_others_lose_nothing() {
    let market = market().await;
    let mut stopped = connect_narrow(&market, &stream("")).await;
    let mut quick = Client::new(connect_async(market.url(&stream(""))).await.unwrap().0);
    let (mut truth, mut true_again) = (market.truth(), market.truth());
    stopped.next().await;
    let lost = |market: &Market| {
        let text = market.served.get("/metrics").body;
        let line = text.lines().find(|line| line.starts_with("truetick_market_stream_lost_total ")).expect("a counter");
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    // One of two readers reads nothing, until the server has lost messages for it.
    let mut last = 0;
    while lost(&market) < 100.0 {
        last = market.step(50);
        quick.follow(&mut truth, usize::MAX, last).await;
    }
    assert_eq!(quick.gaps, 0, "the other one has lost nothing");
    last = market.step(1).max(last);
    stopped.follow(&mut true_again, usize::MAX, last).await;
    assert!(stopped.gaps >= 1 && stopped.lost >= 100, "{} in {}", stopped.lost, stopped.gaps);
    let text = market.served.get("/metrics").body;
    assert!(text.contains("\ntruetick_market_stream_readers 2\n"), "{text}");
    let gaps = text.lines().find_map(|line| line.strip_prefix("truetick_market_stream_gaps_total "));
    assert_eq!(gaps.and_then(|gaps| gaps.parse().ok()), Some(stopped.gaps));
    // It goes on as any other reader.
    last = market.step(20);
    assert!(stopped.follow(&mut true_again, usize::MAX, last).await >= 10);
    drop(stopped);
    while !market.served.get("/metrics").body.contains("\ntruetick_market_stream_readers 1\n") {
        market.step(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_update_is_shown_as_stale_and_then_as_a_snapshot() {
    let market = market().await;
    let mut client = Client::new(connect_async(market.url(&stream(""))).await.unwrap().0);
    client.next().await;
    market.sim.fault(Venue::BinanceSpot, 0, sim::Fault::Drop);
    market.step(2);
    let mut proofs = Vec::new();
    while proofs.last().is_none_or(|(_, proof): &(String, String)| proof != "sequence" && proof != "oracle")
        || proofs.len() < 3
    {
        let message = client.next().await;
        let text = |name: &str| message[name].as_str().unwrap().to_owned();
        proofs.push((text("type"), text("proof")));
        market.step(1);
    }
    let stale = proofs.iter().position(|(_, proof)| proof == "stale").expect("a stale book");
    assert_eq!(proofs[stale].0, "status", "{proofs:?}");
    assert!(proofs[stale + 1..].iter().any(|(kind, _)| kind == "snapshot"), "{proofs:?}");
    let (mut truth, last) = (market.truth(), market.step(1));
    client.follow(&mut truth, usize::MAX, last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_trade_arrives_once_and_in_order() {
    let market = market().await;
    let url = market.url(&format!("/ws/trades?venue=binance_spot&symbol={SYMBOL}"));
    let (mut socket, _) = connect_async(url).await.unwrap();
    let (mut script, mut expected) = (market.sim.script(Venue::BinanceSpot, 0), Vec::new());
    let last = market.step(3_000);
    while script.update_id() < last {
        let step = script.step();
        expected.extend(step.trade.map(|trade| (trade.trade_id, trade.px, trade.qty)));
    }
    assert!(expected.len() > 300, "{}", expected.len());
    let (mut trades, mut number): (Vec<(u64, i64, i64)>, u64) = (Vec::new(), 0);
    while trades.last().map(|trade| trade.0) != expected.last().map(|trade| trade.0) {
        let text = socket.next().await.expect("open").expect("whole").into_text().expect("text");
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message["type"], "trades", "{message}");
        for trade in message["trades"].as_array().unwrap() {
            let found = trade["number"].as_u64().unwrap();
            assert!(number == 0 || found == number + 1, "{found} after {number}");
            number = found;
            trades.push((
                trade["trade_id"].as_u64().unwrap(),
                super::books::number(&trade["px"]),
                super::books::number(&trade["qty"]),
            ));
        }
    }
    // Those of before the connection are the last ones that were shown.
    let first = expected.iter().position(|trade| trade.0 == trades[0].0).expect("a true trade");
    assert_eq!(trades, expected[first..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_about_depth_and_pace_without_sense_are_refused() {
    let market = market().await;
    let path = "/api/v1/market/orderbook";
    for (question, status) in [
        ("depth=0", 400),
        ("depth=-1", 400),
        ("depth=ten", 400),
        ("depth=1.5", 400),
        ("depth=", 400),
        ("every=1s", 400),
        ("depth=5&venue=kraken", 404),
        ("depth=5&symbol=BTCUSDT", 404),
        ("depth=1000000", 200),
    ] {
        let answer = market.served.get(&format!("{path}?{question}"));
        assert_eq!(answer.status, status, "{question}: {}", answer.body);
    }
    for (name, question, status) in [
        ("orderbook", "depth=0", 400),
        ("orderbook", "depth=all&every=0ms", 400),
        ("orderbook", "every=100", 400),
        ("orderbook", "every=1h", 400),
        ("orderbook", "every=-5ms", 400),
        ("orderbook", "venue=kraken", 404),
        ("orderbook", "symbol=BTCUSDT", 404),
        ("trades", "depth=5", 400),
        ("trades", "every=1s", 400),
        ("trades", "symbol=BTCUSDT", 404),
    ] {
        let url = market.url(&format!("/ws/{name}?{question}"));
        let refused = connect_async(&url).await.expect_err("an HTTP status");
        let tokio_tungstenite::tungstenite::Error::Http(answer) = refused else { panic!("{url}: {refused}") };
        assert_eq!(answer.status().as_u16(), status, "{url}");
    }
}
