//! Frames that one client receives, without sockets and in virtual time: the same on every machine.

use serde_json::json;

use crate::{
    binance,
    exchange::Exchange,
    instrument::Venue,
    kraken,
    market::{Subscriber, Topic},
    server,
};

/// One frame of a recording, or the body of a REST snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFrame {
    /// When it was received: microseconds of the Unix epoch, by a clock that began at the recording's `start_unix_us`.
    pub unix_us: u64,
    /// Its text.
    pub text: String,
}

/// Parameters of a recording.
#[derive(Clone, Copy, Debug)]
pub struct RecordingConfig {
    /// The venue.
    pub venue: Venue,
    /// The seed that the market follows from.
    pub seed: u64,
    /// Steps of the script.
    pub steps: u64,
    /// The time of the first frame, microseconds of the Unix epoch.
    pub start_unix_us: u64,
    /// The time between two steps, microseconds.
    pub step_us: u64,
}

/// Levels of the recorded Kraken book.
const KRAKEN_DEPTH: u32 = 25;

/// Steps before Binance's snapshot is fetched, so that a reader has to join it.
const STEPS_BEFORE_SNAPSHOT: u64 = 3;

/// Records the venue's first instrument: every topic, the account's own orders at Binance, and the REST snapshot in
/// line at its time.
#[must_use]
pub fn record(config: &RecordingConfig) -> Vec<RecordedFrame> {
    let mut frames = Vec::new();
    record_each(config, |frame| {
        frames.push(frame);
        true
    });
    frames
}

/// As [`record`], one frame after the other to `take`, until it says `false`.
pub fn record_each(config: &RecordingConfig, mut take: impl FnMut(RecordedFrame) -> bool) {
    let mut exchange = Exchange::new(config.venue, 1, config.seed);
    let (connection, mut queue) = exchange.connect();
    let (mut unix_us, mut last) = (config.start_unix_us, 0);
    subscribe(&mut exchange, connection, unix_us);
    for step in 0..config.steps {
        if is_binance(config.venue) && step == STEPS_BEFORE_SNAPSHOT {
            let market = &exchange.markets[0];
            let printer = binance::Printer { venue: config.venue, instrument: &market.instrument, unix_us };
            last = unix_us;
            if !take(RecordedFrame { unix_us, text: printer.snapshot(&market.script, 1000) }) {
                return;
            }
        }
        unix_us += config.step_us;
        exchange.set_clock(unix_us);
        exchange.step(0, unix_us);
        while let Ok(frame) = queue.try_recv() {
            // It arrives half a millisecond after it was sent, each frame a little later than the one before.
            last = (unix_us + 500).max(last + 1);
            if !take(RecordedFrame { unix_us: last, text: frame.as_str().to_owned() }) {
                return;
            }
        }
    }
}

const fn is_binance(venue: Venue) -> bool {
    matches!(venue, Venue::BinanceSpot | Venue::BinanceUsdm)
}

fn subscribe(exchange: &mut Exchange, connection: u64, unix_us: u64) {
    let symbol = exchange.markets[0].instrument.symbol.clone();
    exchange.set_clock(unix_us);
    match exchange.venue {
        Venue::BinanceSpot | Venue::BinanceUsdm => {
            for (topic, name) in [
                (Topic::Depth, "depth@100ms"),
                (Topic::BestQuote, "bookTicker"),
                (Topic::Trades, "trade"),
                (Topic::DayTicker, "ticker"),
                (Topic::MarkPrice, "markPrice@1s"),
            ] {
                if topic != Topic::MarkPrice || exchange.venue == Venue::BinanceUsdm {
                    let stream = format!("{}@{name}", symbol.to_ascii_lowercase());
                    exchange.subscribe(0, topic, Subscriber { connection, stream, wrapped: true });
                }
            }
            exchange.subscribe_private(Subscriber { connection, stream: String::new(), wrapped: false });
        }
        Venue::Kraken => {
            for topic in [Topic::Book(KRAKEN_DEPTH), Topic::BestQuote, Topic::Trades] {
                exchange.subscribe(0, topic, Subscriber { connection, stream: String::new(), wrapped: false });
            }
            let result =
                format!("{{\"channel\":\"book\",\"depth\":{KRAKEN_DEPTH},\"snapshot\":true,\"symbol\":\"{symbol}\"}}");
            let market = &exchange.markets[0];
            let printer = kraken::Printer { instrument: &market.instrument, unix_us };
            let frames = [
                kraken::status(connection),
                kraken::answer("subscribe", "", Ok(&result), unix_us),
                printer.book_snapshot(&market.windows[&KRAKEN_DEPTH]),
                printer.ticker("snapshot", &market.script, &market.day),
            ];
            for frame in frames {
                exchange.send(connection, frame);
            }
        }
        Venue::Okx => {
            let topics = ["books", "bbo-tbt", "tickers", "trades", "mark-price"];
            let args = topics.map(|topic| json!({"channel": topic, "instId": symbol}));
            server::answer(Venue::Okx)(exchange, connection, &json!({"op": "subscribe", "args": args}).to_string());
        }
        Venue::Bybit => {
            let args = ["orderbook.50", "publicTrade", "tickers"].map(|topic| format!("{topic}.{symbol}"));
            let request = json!({"op": "subscribe", "args": args, "req_id": "1"});
            server::answer(Venue::Bybit)(exchange, connection, &request.to_string());
        }
        Venue::Deribit => {
            let names = ["book", "ticker", "trades"].map(|topic| format!("{topic}.{symbol}.100ms"));
            let names: Vec<String> = names.into_iter().chain([format!("quote.{symbol}")]).collect();
            let request =
                json!({"jsonrpc": "2.0", "id": 1, "method": "public/subscribe", "params": {"channels": names}});
            server::answer(Venue::Deribit)(exchange, connection, &request.to_string());
        }
    }
}
