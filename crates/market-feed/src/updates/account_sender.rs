//! The feed's end of an account: what its venue reports, without waiting.

use std::sync::mpsc::SyncSender;
use std::thread::Thread;

use tt_market::Engine;
use tt_market::fills::FillState;
use tt_market::orders::OrderState;
use tt_model::{Decimal, InstrumentId};
use tt_venue::Venue;
use tt_venue::event::{Balance, Coverage, EventBuffer, OrderId, OrderUpdate, PositionLeg};

/// Messages of an account that wait for the publisher.
pub(super) const NEWS_MAX: usize = 1024;

/// What a message of the venue has changed, or all that is known.
#[derive(Debug, Default)]
pub(super) struct AccountNews {
    /// Whether orders that are not named have ended.
    pub(super) is_whole: bool,
    pub(super) orders: Vec<OrderNews>,
    pub(super) fills: Vec<FillState>,
    pub(super) balances: Vec<Balance>,
    /// All positions, where one has changed.
    pub(super) positions: Option<Vec<Held>>,
}

/// An own order after a message.
#[derive(Debug)]
pub(super) enum OrderNews {
    Open(OrderState),
    /// It has ended: what the last message said of it, and its instrument if it named one.
    Ended(OrderUpdate, Option<InstrumentId>),
}

/// A position in the slot of its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) slot: usize,
    pub(super) instrument: InstrumentId,
    pub(super) leg: PositionLeg,
    pub(super) lots: i64,
    pub(super) lot_size: Decimal,
    pub(super) entry_px: Decimal,
}

/// An account's messages on their way to the publisher.
#[derive(Debug)]
pub(crate) struct AccountSender {
    venue: Venue,
    news: SyncSender<AccountNews>,
    /// Whether a message found no room: the next one has all that is known.
    is_owed: bool,
    publisher: Thread,
}

impl AccountSender {
    pub(super) const fn new(venue: Venue, news: SyncSender<AccountNews>, publisher: Thread) -> Self {
        Self { venue, news, is_owed: false, publisher }
    }

    /// Publishes what the last frame has changed in the account, if it named any of it.
    pub(crate) fn send(&mut self, engine: &Engine) {
        let entries = engine.last_entries();
        let is_listed = entries.orders_coverage() == Coverage::All;
        let is_silent = entries.order_updates().is_empty()
            && entries.executions().is_empty()
            && entries.balances().is_empty()
            && entries.positions().is_empty();
        if is_silent && !is_listed && entries.positions_coverage() != Coverage::All && !self.is_owed {
            return;
        }
        let news = if self.is_owed { self.whole(engine) } else { self.changed(engine, entries, is_listed) };
        self.offer(news);
    }

    /// Publishes all that is known.
    pub(crate) fn send_whole(&mut self, engine: &Engine) {
        let news = self.whole(engine);
        self.offer(news);
    }

    fn offer(&mut self, news: AccountNews) {
        self.is_owed = self.news.try_send(news).is_err();
        self.publisher.unpark();
    }

    fn whole(&self, engine: &Engine) -> AccountNews {
        AccountNews {
            is_whole: true,
            orders: engine.orders().copied().map(OrderNews::Open).collect(),
            fills: engine.fills().copied().collect(),
            balances: engine.balances().map(|(_, balance)| *balance).collect(),
            positions: Some(held(engine)),
        }
    }

    fn changed(&self, engine: &Engine, entries: &EventBuffer, is_listed: bool) -> AccountNews {
        let order = |update: &OrderUpdate| match engine.order(self.venue, &update.order_id) {
            Some(state) => Some(OrderNews::Open(*state)),
            None if update.status.is_open() => None, // older than what is known
            None => {
                let instrument = update.symbol.and_then(|symbol| engine.find_instrument(self.venue, &symbol));
                Some(OrderNews::Ended(*update, instrument))
            }
        };
        let named = entries.order_updates().iter().filter_map(|update| Some((update.order_id, update.fill?.trade_id)));
        let named = named.chain(entries.executions().iter().map(|one| (one.order_id, one.execution_id)));
        let mut orders: Vec<OrderNews> = entries.order_updates().iter().filter_map(order).collect();
        if is_listed {
            orders.extend(engine.orders().copied().map(OrderNews::Open));
        }
        let of_asset = |balance: &Balance| engine.balance(self.venue, &balance.asset).copied();
        let has_positions = !entries.positions().is_empty() || entries.positions_coverage() == Coverage::All;
        AccountNews {
            is_whole: is_listed,
            orders,
            fills: named.filter_map(|(order, trade)| fill(engine, &order, &trade)).collect(),
            balances: entries.balances().iter().filter_map(of_asset).collect(),
            positions: has_positions.then(|| held(engine)),
        }
    }
}

fn fill(engine: &Engine, order: &OrderId, trade: &OrderId) -> Option<FillState> {
    engine.fills().find(|fill| fill.order_id.is(order) && fill.fill.trade_id.is(trade)).copied()
}

fn held(engine: &Engine) -> Vec<Held> {
    let of = |(slot, position, leg): (usize, &tt_market::mark::Position, PositionLeg)| {
        let lot_size = engine.instrument(position.instrument)?.lot_size;
        let (instrument, lots, entry_px) = (position.instrument, position.lots, position.entry_px);
        Some(Held { slot, instrument, leg, lots, lot_size, entry_px })
    };
    engine.positions().filter_map(of).collect()
}
