//! The orders of a book as others see them.

use tt_market::{BookSide, Engine, RestingOrder};
use tt_model::InstrumentId;
use tt_status::decimal_text::steps_text;
use tt_status::market_streams::{self as shown, BookOrders, OrderLevel};

/// Returns every order of the best `depth` levels of each side; `None` where the book is not followed order by order.
pub(super) fn of(engine: &Engine, id: InstrumentId, depth: usize) -> Option<BookOrders> {
    let (spec, top) = (engine.instrument(id)?, engine.board().top_of_book(id)?);
    let order = |order: &RestingOrder| shown::RestingOrder {
        id: order.order_id.to_string(),
        qty: steps_text(order.qty.0, spec.lot_size),
        position: order.position,
        qty_ahead: steps_text(order.qty_ahead.0, spec.lot_size),
        ts_event: (order.ts_event.0 != 0).then_some(order.ts_event.0),
    };
    let side = |side: BookSide| {
        let mut levels: Vec<OrderLevel> = Vec::new();
        let mut qty = 0;
        for resting in engine.resting_orders(id, side)? {
            if resting.position == 0 {
                if levels.len() == depth {
                    break;
                }
                qty = 0;
                let px = steps_text(resting.px.0, spec.tick_size);
                levels.push(OrderLevel { px, qty: String::new(), orders: Vec::new() });
            }
            qty += resting.qty.0;
            if let Some(level) = levels.last_mut() {
                level.qty = steps_text(qty, spec.lot_size);
                level.orders.push(order(&resting));
            }
        }
        Some(levels)
    };
    let (bids, asks) = (side(BookSide::Bid)?, side(BookSide::Ask)?);
    let ts_recv = (top.ts_recv.0 != 0).then_some(top.ts_recv.0);
    Some(BookOrders { bids, asks, ts_recv, proof: top.status.proof.name() })
}
