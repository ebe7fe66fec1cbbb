//! The publisher's copy of an account, with its readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tt_market::board::Board;
use tt_market::fills::FillState;
use tt_model::{Decimal, InstrumentId, OrderSide};
use tt_status::decimal_text::{fixed_text, steps_text};
use tt_status::market_account::{AccountState, AssetBalance, HeldPosition, Order, OrderFill};
use tt_status::market_streams::Sink;
use tt_venue::event::{Balance, OrderId, OrderStatus, PositionLeg};

use super::account_sender::{AccountNews, Held, OrderNews};
use super::message::Subject;
use super::view::{Counts, Readers};

/// Executions that are kept, and orders that have ended: a venue may repeat the message.
const KEPT: usize = 1000;
/// Positions are valued again for readers so often.
const VALUE_EVERY: Duration = Duration::from_millis(250);

/// Whose account it is.
#[derive(Debug)]
pub(super) struct AccountSubject {
    pub(super) venue: &'static str,
    pub(super) is_simulated: bool,
    /// Normalised symbols by the engine's numbers of the instruments.
    pub(super) names: Vec<String>,
    pub(super) board: Board,
}

/// One account.
#[derive(Debug)]
pub(super) struct AccountCopy {
    of: AccountSubject,
    subject: Subject,
    news: Receiver<AccountNews>,
    orders: BTreeMap<[u64; 3], Order>,
    ended: VecDeque<([u64; 3], Order)>,
    fills: VecDeque<(FillState, OrderFill)>,
    fill_number: u64,
    balances: BTreeMap<String, AssetBalance>,
    held: Vec<Held>,
    /// The positions as readers have them.
    shown: Vec<HeldPosition>,
    valued: Instant,
    readers: Readers,
}

impl AccountCopy {
    pub(super) fn new(of: AccountSubject, news: Receiver<AccountNews>) -> Self {
        let subject = Subject::of_account(of.venue, of.is_simulated);
        Self {
            of,
            subject,
            news,
            orders: BTreeMap::new(),
            ended: VecDeque::new(),
            fills: VecDeque::new(),
            fill_number: 0,
            balances: BTreeMap::new(),
            held: Vec::new(),
            shown: Vec::new(),
            valued: Instant::now(),
            readers: Readers::default(),
        }
    }

    pub(super) const fn venue(&self) -> &'static str {
        self.of.venue
    }

    /// Takes what has come; returns how many messages.
    pub(super) fn take_news(&mut self, counts: &Counts) -> usize {
        let mut taken = 0;
        while let Ok(news) = self.news.try_recv() {
            taken += 1;
            self.take(news, counts);
        }
        taken
    }

    fn take(&mut self, news: AccountNews, counts: &Counts) {
        let AccountNews { is_whole, orders, fills, balances, positions } = news;
        let orders = self.take_orders(orders, is_whole);
        self.send("orders", &orders, counts);
        let fills: Vec<OrderFill> = fills.iter().filter_map(|fill| self.take_fill(fill)).collect();
        self.send("fills", &fills, counts);
        let balances: Vec<AssetBalance> = balances.iter().filter_map(|balance| self.take_balance(balance)).collect();
        self.send("balances", &balances, counts);
        if let Some(held) = positions {
            self.held = held;
            self.value(counts);
        }
    }

    /// Returns the orders that have changed.
    fn take_orders(&mut self, news: Vec<OrderNews>, is_whole: bool) -> Vec<Order> {
        let mut changed = Vec::new();
        let mut listed = Vec::new();
        for one in news {
            let (id, order) = match one {
                OrderNews::Open(state) => {
                    listed.push(*state.order_id.words());
                    let order = Order {
                        order_id: state.order_id.to_string(),
                        symbol: self.name(state.instrument),
                        side: state.side.map(side),
                        status: status(state.status),
                        limit_px: state.limit_px.to_string(),
                        qty: state.qty.to_string(),
                        filled_qty: state.filled_qty.to_string(),
                        ts_event: state.ts_event.0,
                    };
                    (state.order_id, order)
                }
                OrderNews::Ended(update, instrument) => {
                    let id = update.order_id.words();
                    let known =
                        self.orders.get(id).or_else(|| self.ended.iter().find(|one| one.0 == *id).map(|one| &one.1));
                    let text = |new: Option<Decimal>, known: Option<&String>| {
                        new.map(|new| new.to_string()).or_else(|| known.cloned()).unwrap_or_else(|| "0".to_owned())
                    };
                    let order = Order {
                        order_id: update.order_id.to_string(),
                        symbol: self.name(instrument).or_else(|| known?.symbol.clone()),
                        side: update.side.map(side).or_else(|| known?.side),
                        status: status(update.status),
                        limit_px: text(update.limit_px, known.map(|known| &known.limit_px)),
                        qty: text(update.qty, known.map(|known| &known.qty)),
                        filled_qty: text(update.filled_qty, known.map(|known| &known.filled_qty)),
                        ts_event: update.ts_event.0,
                    };
                    (update.order_id, order)
                }
            };
            self.keep(&id, order, &mut changed);
        }
        if is_whole {
            let gone: Vec<[u64; 3]> = self.orders.keys().filter(|id| !listed.contains(*id)).copied().collect();
            for id in gone {
                changed.extend(self.orders.remove(&id).map(|order| Order { status: "unlisted", ..order }));
            }
        }
        changed
    }

    fn keep(&mut self, id: &OrderId, order: Order, changed: &mut Vec<Order>) {
        let id = *id.words();
        let is_open = matches!(order.status, "pending" | "new" | "partially_filled");
        if is_open {
            if self.orders.insert(id, order.clone()).as_ref() != Some(&order) {
                changed.push(order);
            }
            return;
        }
        let is_known = self.orders.remove(&id).is_none() && self.ended.iter().any(|one| *one == (id, order.clone()));
        if !is_known {
            self.ended.push_back((id, order.clone()));
            if self.ended.len() > KEPT {
                self.ended.pop_front();
            }
            changed.push(order);
        }
    }

    /// Returns the execution if it is new, or says more than before.
    fn take_fill(&mut self, state: &FillState) -> Option<OrderFill> {
        let is_it =
            |known: &FillState| known.fill.trade_id.is(&state.fill.trade_id) && known.order_id.is(&state.order_id);
        let at = self.fills.iter().rposition(|(known, _)| is_it(known));
        let number = at.map_or(self.fill_number + 1, |at| self.fills[at].1.number);
        let fill = OrderFill {
            number,
            trade_id: state.fill.trade_id.to_string(),
            order_id: state.order_id.to_string(),
            symbol: self.name(state.instrument),
            side: state.side.map(side),
            px: state.fill.px.to_string(),
            qty: state.fill.qty.to_string(),
            fee: state.fill.fee.map(|fee| fee.to_string()),
            fee_asset: state.fill.fee_asset.map(|asset| asset.to_string()),
            is_maker: state.fill.is_maker,
            ts_event: state.ts_event.0,
        };
        match at {
            Some(at) if self.fills[at].1 == fill => return None,
            Some(at) => self.fills[at] = (*state, fill.clone()),
            None => {
                self.fill_number = number;
                self.fills.push_back((*state, fill.clone()));
                if self.fills.len() > KEPT {
                    self.fills.pop_front();
                }
            }
        }
        Some(fill)
    }

    fn take_balance(&mut self, balance: &Balance) -> Option<AssetBalance> {
        let text = |value: Option<Decimal>| value.map(|value| value.to_string());
        let row = AssetBalance {
            asset: balance.asset.to_string(),
            total: text(balance.total),
            free: text(balance.free),
            locked: text(balance.locked),
            ts_event: balance.ts_event.0,
        };
        (self.balances.insert(row.asset.clone(), row.clone()).as_ref() != Some(&row)).then_some(row)
    }

    fn name(&self, instrument: Option<InstrumentId>) -> Option<String> {
        self.of.names.get(instrument?.0 as usize).cloned()
    }

    fn positions(&self) -> Vec<HeldPosition> {
        let row = |held: &Held| {
            // What was valued before the position changed is of another one.
            let mark = self.of.board.position(held.slot);
            let mark = mark.filter(|mark| mark.instrument == held.instrument && mark.lots == held.lots);
            HeldPosition {
                symbol: self.name(Some(held.instrument)).unwrap_or_default(),
                leg: match held.leg {
                    PositionLeg::Net => "net",
                    PositionLeg::Long => "long",
                    PositionLeg::Short => "short",
                },
                qty: steps_text(held.lots, held.lot_size),
                entry_px: held.entry_px.to_string(),
                unrealised_pnl: mark.map(|mark| fixed_text(mark.pnl_mantissa, usize::from(mark.pnl_decimals))),
                mark_ts_recv: mark.map(|mark| mark.ts_recv.0),
            }
        };
        self.held.iter().map(row).collect()
    }

    /// Sends the positions if their values are others.
    fn value(&mut self, counts: &Counts) {
        let positions = self.positions();
        if positions != self.shown {
            let message = self.message("positions", &positions);
            self.shown = positions;
            self.send_message(&message, counts);
        }
    }

    /// Values the positions again, and sends what slow readers lost.
    pub(super) fn look_after(&mut self, counts: &Counts, now: Instant) {
        if now >= self.valued + VALUE_EVERY {
            self.valued = now;
            self.value(counts);
        }
        if self.readers.are_behind() {
            let mut readers = std::mem::take(&mut self.readers);
            readers.catch_up(&self.subject, counts, || self.whole());
            self.readers = readers;
        }
    }

    fn send<T: Serialize>(&mut self, kind: &str, rows: &[T], counts: &Counts) {
        if !rows.is_empty() && !self.readers.is_empty() {
            let message = self.message(kind, rows);
            self.send_message(&message, counts);
        }
    }

    fn send_message(&mut self, message: &Arc<str>, counts: &Counts) {
        let mut readers = std::mem::take(&mut self.readers);
        readers.send(message, &self.subject, counts, || self.whole());
        self.readers = readers;
    }

    fn message<T: Serialize>(&self, kind: &str, rows: &[T]) -> Arc<str> {
        let mut message = json!({ "type": kind, "venue": self.of.venue, "simulated": self.of.is_simulated });
        message[kind] = json!(rows);
        message.to_string().into()
    }

    fn whole(&self) -> Arc<str> {
        let mut message = json!(self.state());
        message["type"] = Value::from("snapshot");
        message.to_string().into()
    }

    /// Sends what readers were offered.
    pub(super) fn flush(&mut self) {
        self.readers.flush();
    }

    pub(super) fn state(&self) -> AccountState {
        AccountState {
            venue: self.of.venue,
            simulated: self.of.is_simulated,
            orders: self.orders.values().cloned().collect(),
            fills: self.fills.iter().map(|(_, fill)| fill.clone()).collect(),
            balances: self.balances.values().cloned().collect(),
            positions: self.positions(),
        }
    }

    pub(super) fn subscribe(&mut self, sink: &Arc<dyn Sink>, counts: &Counts) {
        let whole = self.whole();
        self.readers.add(sink, &whole, counts);
    }
}

const fn side(side: OrderSide) -> &'static str {
    match side {
        OrderSide::Buy => "buy",
        OrderSide::Sell => "sell",
    }
}

const fn status(status: OrderStatus) -> &'static str {
    match status {
        OrderStatus::Pending => "pending",
        OrderStatus::New => "new",
        OrderStatus::PartiallyFilled => "partially_filled",
        OrderStatus::Filled => "filled",
        OrderStatus::Cancelled => "cancelled",
        OrderStatus::Rejected => "rejected",
        OrderStatus::Expired => "expired",
    }
}

#[cfg(test)]
mod tests;
