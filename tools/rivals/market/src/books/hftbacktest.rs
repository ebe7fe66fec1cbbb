//! hftbacktest's books: prices and quantities as floating point, kept by whole steps of the price.

use hftbacktest::depth::{BTreeMarketDepth, HashMapMarketDepth, L2MarketDepth, MarketDepth, ROIVectorMarketDepth};
use hftbacktest::types::Side;

use super::Book;
use crate::input::{Feed, Sides};
use crate::wire::{Body, Depth, Levels, PX_DECIMALS, PX_PER_STEP, QTY_DECIMALS, Wrapped};

const PX_STEP: f64 = 0.1;
const QTY_STEP: f64 = 0.001;

/// How a kind of book is made.
pub(crate) trait Made: L2MarketDepth + MarketDepth {
    /// For prices between the two.
    fn made(low: f64, high: f64) -> Self;
}

impl Made for HashMapMarketDepth {
    fn made(_low: f64, _high: f64) -> Self {
        Self::new(PX_STEP, QTY_STEP)
    }
}

impl Made for BTreeMarketDepth {
    fn made(_low: f64, _high: f64) -> Self {
        Self::new(PX_STEP, QTY_STEP)
    }
}

impl Made for ROIVectorMarketDepth {
    fn made(low: f64, high: f64) -> Self {
        Self::new(PX_STEP, QTY_STEP, low, high)
    }
}

/// One of hftbacktest's books, and serde_json in front of it, as in its connectors.
pub(crate) struct Hftbacktest<D> {
    last_id: u64,
    depth: D,
}

/// Levels as hftbacktest has them.
pub(crate) struct Floats {
    last_id: u64,
    before_id: u64,
    bids: Vec<(f64, f64)>,
    asks: Vec<(f64, f64)>,
}

impl<D: Made> Hftbacktest<D> {
    fn set(&mut self, bids: &[(f64, f64)], asks: &[(f64, f64)]) {
        for (px, qty) in bids {
            self.depth.update_bid_depth(*px, *qty, 0);
        }
        for (px, qty) in asks {
            self.depth.update_ask_depth(*px, *qty, 0);
        }
    }

    fn set_texts(&mut self, bids: &[[&str; 2]], asks: &[[&str; 2]]) -> bool {
        for [px, qty] in bids {
            let (Ok(px), Ok(qty)) = (px.parse(), qty.parse()) else { return false };
            self.depth.update_bid_depth(px, qty, 0);
        }
        for [px, qty] in asks {
            let (Ok(px), Ok(qty)) = (px.parse(), qty.parse()) else { return false };
            self.depth.update_ask_depth(px, qty, 0);
        }
        true
    }
}

fn float(number: i64, decimals: usize) -> f64 {
    number as f64 / 10_f64.powi(decimals as i32)
}

impl<D: Made> Book for Hftbacktest<D> {
    type Parsed = Floats;

    fn new(session: &Feed) -> Self {
        let (low, high) = session.px_range;
        Self { last_id: 0, depth: D::made(float(low, PX_DECIMALS), float(high, PX_DECIMALS)) }
    }

    fn prepare(levels: &Levels) -> Floats {
        let floats = |levels: &[(i64, i64)]| {
            levels.iter().map(|(px, qty)| (float(*px, PX_DECIMALS), float(*qty, QTY_DECIMALS))).collect()
        };
        let Levels { last_id, before_id, .. } = *levels;
        Floats { last_id, before_id, bids: floats(&levels.bids), asks: floats(&levels.asks) }
    }

    fn load(&mut self, snapshot: &Floats) {
        self.last_id = snapshot.last_id;
        self.depth.clear_depth(Side::None, f64::NAN);
        self.set(&snapshot.bids, &snapshot.asks);
    }

    fn apply(&mut self, frame: &Floats) -> bool {
        let continues = frame.before_id == self.last_id;
        self.last_id = frame.last_id;
        self.set(&frame.bids, &frame.asks);
        continues
    }

    fn load_bytes(&mut self, body: &[u8]) -> bool {
        let Ok(body) = serde_json::from_slice::<Body<'_>>(body) else { return false };
        self.last_id = body.last_update_id;
        self.depth.clear_depth(Side::None, f64::NAN);
        self.set_texts(&body.bids, &body.asks)
    }

    fn apply_bytes(&mut self, frame: &[u8]) -> bool {
        let Ok(Wrapped { data }) = serde_json::from_slice::<Wrapped<Depth<'_>>>(frame) else { return false };
        let continues = data.pu == self.last_id;
        self.last_id = data.u;
        self.set_texts(&data.b, &data.a) && continues
    }

    fn best(&self) -> u64 {
        let ticks = self.depth.best_bid_tick() ^ self.depth.best_ask_tick();
        ticks.cast_unsigned() ^ self.depth.best_bid_qty().to_bits() ^ self.depth.best_ask_qty().to_bits()
    }

    fn sides(&self, session: &Feed) -> Sides {
        let (low, high) = (session.px_range.0 / PX_PER_STEP, session.px_range.1 / PX_PER_STEP);
        let level = |step: i64, qty: f64| {
            let lots = (qty / QTY_STEP).round() as i64;
            (lots != 0).then_some((step * PX_PER_STEP, lots))
        };
        let bids = (low..=high).rev().filter_map(|step| level(step, self.depth.bid_qty_at_tick(step)));
        let asks = (low..=high).filter_map(|step| level(step, self.depth.ask_qty_at_tick(step)));
        [bids.collect(), asks.collect()]
    }
}
