//! Recordings of single orders.

use tt_model::{InstrumentId, Nanos, OrderSide};
use tt_venue::event::{BookOrder, BookOrders};
use tt_venue::rules::Rules;

use super::examiner::Examiner;

impl Examiner {
    /// The rules of an instrument's book.
    pub(super) fn rules_of(&self, id: InstrumentId) -> &'static Rules {
        let rules = self.venue.rules();
        rules.l3.filter(|_| self.watched[id.0 as usize].by_order).unwrap_or(rules)
    }

    /// Prepares the instrument of orders, whose first frame shows that its book is sent order by order.
    pub(super) fn prepare_orders(&mut self, update: &BookOrders, orders: &[BookOrder], now: Nanos) {
        let known = self.engine.find_instrument(self.venue, &update.symbol);
        // A book of limited depth begins with its snapshot.
        let is_late = self.venue.rules().truncates && !update.is_snapshot;
        let Some(id) = (if is_late { known } else { self.watch(update.symbol, now) }) else { return };
        let watched = &mut self.watched[id.0 as usize];
        let is_first = !self.has_setup && !watched.by_order && watched.deltas + watched.snapshots == 0;
        // A venue without such a feed has no such frames.
        if is_first && self.engine.follow_orders(id).is_ok() {
            watched.by_order = true;
            if let Some(connection) = self.open(now) {
                let _ = self.engine.subscribe(connection, id, now);
            }
            self.poll(now);
            self.join_early(id, now);
        }
        self.see(id, |watched| {
            orders.iter().filter_map(|order| order.px).for_each(|px| watched.px.see_one(px));
            orders.iter().for_each(|order| watched.qty.see_one(order.qty));
        });
        if update.is_snapshot {
            let levels = |orders: &[BookOrder]| orders.chunk_by(|one, next| one.px == next.px).count();
            let (bids, asks) = orders.split_at(orders.partition_point(|order| order.side == OrderSide::Buy));
            self.limit_depth(id, levels(bids).max(levels(asks)));
            return self.watched[id.0 as usize].restart();
        }
        let watched = &mut self.watched[id.0 as usize];
        watched.deltas += 1;
        watched.levels.record(orders.len() as u64);
    }
}
