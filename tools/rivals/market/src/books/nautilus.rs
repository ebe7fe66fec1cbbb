//! nautilus-model's book by price level, and serde_json in front of it.

use nautilus_model::data::{BookOrder, OrderBookDelta, OrderBookDeltas};
use nautilus_model::enums::{BookAction, BookType, OrderSide};
use nautilus_model::identifiers::InstrumentId;
use nautilus_model::orderbook::OrderBook;
use nautilus_model::types::{Price, Quantity};
use rust_decimal::Decimal;

use super::Book;
use crate::input::{Feed, Sides};
use crate::wire::{Body, Depth, Levels, PX_DECIMALS, QTY_DECIMALS, Wrapped};

/// `OrderBook` of type `L2_MBP`.
pub(crate) struct Nautilus {
    last_id: u64,
    book: OrderBook,
}

/// Deltas of nautilus, and the id that they continue.
pub(crate) struct Prepared {
    last_id: u64,
    before_id: u64,
    deltas: OrderBookDeltas,
}

fn instrument() -> InstrumentId {
    InstrumentId::from("BTCUSDT-PERP.BINANCE")
}

fn delta(instrument: InstrumentId, side: OrderSide, px: Price, qty: Quantity, id: u64) -> OrderBookDelta {
    let action = if qty.raw == 0 { BookAction::Delete } else { BookAction::Update };
    OrderBookDelta::new(instrument, action, BookOrder::new(side, px, qty, 0), 0, id, 0.into(), 0.into())
}

fn number(decimal: Decimal, decimals: usize) -> i64 {
    (decimal * Decimal::from(10_i64.pow(decimals as u32))).try_into().unwrap_or(i64::MIN)
}

impl Nautilus {
    fn set_texts(&mut self, side: OrderSide, levels: &[[&str; 2]]) -> bool {
        let (instrument, id) = (self.book.instrument_id, self.last_id);
        levels.iter().all(|[px, qty]| {
            let (Ok(px), Ok(qty)) = (px.parse::<Price>(), qty.parse::<Quantity>()) else { return false };
            self.book.apply_delta(&delta(instrument, side, px, qty, id)).is_ok()
        })
    }
}

impl Book for Nautilus {
    type Parsed = Prepared;

    fn new(_session: &Feed) -> Self {
        Self { last_id: 0, book: OrderBook::new(instrument(), BookType::L2_MBP) }
    }

    fn prepare(levels: &Levels) -> Prepared {
        let instrument = instrument();
        let Levels { last_id, before_id, .. } = *levels;
        let of = |side: OrderSide, levels: &[(i64, i64)]| {
            let one = |(px, qty): &(i64, i64)| {
                let px = Price::from_mantissa_exponent(*px, -(PX_DECIMALS as i8), PX_DECIMALS as u8);
                let qty =
                    Quantity::from_mantissa_exponent(qty.unsigned_abs(), -(QTY_DECIMALS as i8), QTY_DECIMALS as u8);
                delta(instrument, side, px, qty, last_id)
            };
            levels.iter().map(one).collect::<Vec<_>>()
        };
        let mut deltas = of(OrderSide::Buy, &levels.bids);
        deltas.extend(of(OrderSide::Sell, &levels.asks));
        if deltas.is_empty() {
            // A frame without levels changes nothing, and nautilus has no deltas without one.
            let (px, qty) = (Price::from("1.00"), Quantity::from("0.000"));
            deltas.push(delta(instrument, OrderSide::Buy, px, qty, last_id));
        }
        Prepared { last_id, before_id, deltas: OrderBookDeltas::new(instrument, deltas) }
    }

    fn load(&mut self, snapshot: &Prepared) {
        self.last_id = snapshot.last_id;
        self.book.reset();
        let _ = self.book.apply_deltas(&snapshot.deltas);
    }

    fn apply(&mut self, frame: &Prepared) -> bool {
        let continues = frame.before_id == self.last_id;
        self.last_id = frame.last_id;
        self.book.apply_deltas(&frame.deltas).is_ok() && continues
    }

    fn load_bytes(&mut self, body: &[u8]) -> bool {
        let Ok(body) = serde_json::from_slice::<Body<'_>>(body) else { return false };
        self.last_id = body.last_update_id;
        self.book.reset();
        self.set_texts(OrderSide::Buy, &body.bids) && self.set_texts(OrderSide::Sell, &body.asks)
    }

    fn apply_bytes(&mut self, frame: &[u8]) -> bool {
        let Ok(Wrapped { data }) = serde_json::from_slice::<Wrapped<Depth<'_>>>(frame) else { return false };
        let continues = data.pu == self.last_id;
        self.last_id = data.u;
        self.set_texts(OrderSide::Buy, &data.b) && self.set_texts(OrderSide::Sell, &data.a) && continues
    }

    fn best(&self) -> u64 {
        let px = [self.book.best_bid_price(), self.book.best_ask_price()];
        let qty = [self.book.best_bid_size(), self.book.best_ask_size()];
        let px = px.into_iter().flatten().fold(0, |folded, px| folded ^ px.raw as u64);
        qty.into_iter().flatten().fold(px, |folded, qty| folded ^ qty.raw << 32)
    }

    fn sides(&self, _session: &Feed) -> Sides {
        let pair = |level: &nautilus_model::orderbook::BookLevel| {
            (number(level.price.value.as_decimal(), PX_DECIMALS), number(level.size_decimal(), QTY_DECIMALS))
        };
        [self.book.bids(None).map(pair).collect(), self.book.asks(None).map(pair).collect()]
    }
}
