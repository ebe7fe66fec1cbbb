//! barter-data's book, read by its own types for Binance's frames.

use barter_data::books::{Level, OrderBook};
use barter_data::exchange::binance::book::l2::BinanceOrderBookL2Snapshot;
use barter_data::exchange::binance::futures::l2::BinanceFuturesOrderBookL2Update;
use barter_data::subscription::book::OrderBookEvent;
use rust_decimal::Decimal;

use super::Book;
use crate::input::{Feed, Sides};
use crate::wire::{Levels, PX_DECIMALS, QTY_DECIMALS, Wrapped};

/// Numbers are `Decimal`s, sides sorted vectors with the best level first.
pub(crate) struct Barter {
    last_id: u64,
    book: OrderBook,
}

/// An event of barter-data, and the id that it continues.
pub(crate) struct Prepared {
    before_id: u64,
    event: OrderBookEvent,
}

fn decimal(number: i64, decimals: usize) -> Decimal {
    Decimal::new(number, decimals as u32)
}

fn number(decimal: Decimal, decimals: usize) -> i64 {
    (decimal * Decimal::from(10_i64.pow(decimals as u32))).try_into().unwrap_or(i64::MIN)
}

impl Book for Barter {
    type Parsed = Prepared;

    fn new(_session: &Feed) -> Self {
        Self { last_id: 0, book: OrderBook::default() }
    }

    fn prepare(levels: &Levels) -> Prepared {
        let side = |levels: &[(i64, i64)]| -> Vec<Level> {
            let level = |(px, qty): &(i64, i64)| Level::new(decimal(*px, PX_DECIMALS), decimal(*qty, QTY_DECIMALS));
            levels.iter().map(level).collect()
        };
        let book = OrderBook::new(levels.last_id, None, side(&levels.bids), side(&levels.asks));
        Prepared { before_id: levels.before_id, event: OrderBookEvent::Update(book) }
    }

    fn load(&mut self, snapshot: &Prepared) {
        if let OrderBookEvent::Update(book) = &snapshot.event {
            // Its reader sorts what came, and its book takes a copy of that.
            let [bids, asks] = [book.bids().levels(), book.asks().levels()].map(<[Level]>::to_vec);
            let snapshot = OrderBook::new(book.sequence(), None, bids, asks);
            self.book.update(&OrderBookEvent::Snapshot(snapshot));
            self.last_id = book.sequence();
        }
    }

    fn apply(&mut self, frame: &Prepared) -> bool {
        let continues = frame.before_id == self.last_id;
        self.book.update(&frame.event);
        self.last_id = self.book.sequence();
        continues
    }

    fn load_bytes(&mut self, body: &[u8]) -> bool {
        let Ok(body) = serde_json::from_slice::<BinanceOrderBookL2Snapshot>(body) else { return false };
        self.last_id = body.last_update_id;
        let snapshot = OrderBook::new(body.last_update_id, body.time_engine, body.bids, body.asks);
        self.book.update(&OrderBookEvent::Snapshot(snapshot));
        true
    }

    fn apply_bytes(&mut self, frame: &[u8]) -> bool {
        let Ok(Wrapped { data }) = serde_json::from_slice::<Wrapped<BinanceFuturesOrderBookL2Update>>(frame) else {
            return false;
        };
        let continues = data.prev_last_update_id == self.last_id;
        self.last_id = data.last_update_id;
        let update = OrderBook::new(data.last_update_id, Some(data.time_engine), data.bids, data.asks);
        self.book.update(&OrderBookEvent::Update(update));
        continues
    }

    fn best(&self) -> u64 {
        let best = [self.book.bids().best(), self.book.asks().best()];
        best.into_iter()
            .flatten()
            .fold(0, |folded, level| folded ^ level.price.mantissa() as u64 ^ (level.amount.mantissa() as u64) << 32)
    }

    fn sides(&self, _session: &Feed) -> Sides {
        let pair = |level: &Level| (number(level.price, PX_DECIMALS), number(level.amount, QTY_DECIMALS));
        [self.book.bids().levels().iter().map(pair).collect(), self.book.asks().levels().iter().map(pair).collect()]
    }
}
