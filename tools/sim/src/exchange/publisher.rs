//! Frames for each subscriber from a step of the script.

use super::{Exchange, numbering};
use crate::{
    binance, bybit,
    chain::{Link, Numbering},
    deribit,
    instrument::{Standing, Venue},
    kraken,
    market::{FULL, Fault, Market, Subscriber, Topic, Window, changes},
    okx,
    script::{Step, Trade},
};

/// Steps of the venue between two events of the private order stream.
const STEPS_PER_ORDER_EVENT: u64 = 40;

/// Trades of an instrument of which one is a liquidation.
const TRADES_PER_LIQUIDATION: u64 = 16;
/// A block trade of Binance spot accompanies one of so many trades.
const TRADES_PER_BLOCK: u64 = 8;

/// A book of one depth around a step.
struct Turn {
    depth: u32,
    old: Window,
    changes: Window,
    /// The number of the update; `None` where the window stays as it was.
    link: Option<Link>,
    /// The venue restarted the numbering of the book.
    is_reset: bool,
}

impl Exchange {
    /// One step of the instrument whose turn it is.
    pub(crate) fn step_next(&mut self, unix_us: u64) {
        self.step(self.next_market, unix_us);
        self.next_market = (self.next_market + 1) % self.markets.len();
    }

    /// Makes one step of an instrument and sends it to its subscribers.
    pub(crate) fn step(&mut self, index: usize, unix_us: u64) {
        if self.markets[index].instrument.standing != Standing::Trading {
            return;
        }
        let (step, unix_us) = self.markets[index].step(unix_us);
        self.stepped_us = unix_us;
        self.stats.updates += 1;
        if self.markets[index].subscribers.is_empty() {
            return self.step_orders(index, unix_us);
        }
        self.release_held(index);
        match self.venue {
            Venue::BinanceSpot | Venue::BinanceUsdm => self.publish_binance(index, &step, unix_us),
            Venue::Kraken => self.publish_kraken(index, &step, unix_us),
            Venue::Okx | Venue::Bybit | Venue::Deribit => self.publish_numbered(index, &step, unix_us),
        }
        self.step_orders(index, unix_us);
    }

    fn publish_binance(&mut self, index: usize, step: &Step, unix_us: u64) {
        let market = &self.markets[index];
        let printer = binance::Printer { venue: self.venue, instrument: &market.instrument, unix_us };
        let asked = |topic| market.subscribers.contains_key(&topic);
        let trade = step.trade.filter(|_| asked(Topic::Trades)).map(|trade| printer.trade(trade));
        let is_forced = |trade: &Trade| trade.trade_id.is_multiple_of(TRADES_PER_LIQUIDATION);
        let forced = step.trade.filter(|trade| asked(Topic::Liquidations) && is_forced(trade));
        let aggregate = step.trade.filter(|_| asked(Topic::Aggregates)).map(|trade| printer.aggregate(trade));
        let forced = forced.map(|trade| printer.liquidation(trade));
        let block = step.trade.filter(|trade| trade.trade_id.is_multiple_of(TRADES_PER_BLOCK));
        let block = block.filter(|_| asked(Topic::BlockTrades)).map(|trade| printer.block_trade(trade));
        let quote = (step.touch_changed && asked(Topic::BestQuote)).then(|| printer.book_ticker(&market.script));
        let depth = asked(Topic::Depth).then(|| printer.depth_update(step));
        let new_second = unix_us / 1_000_000 != market.statistics_at_s;
        let day = (new_second && asked(Topic::DayTicker)).then(|| printer.day_ticker(&market.script, &market.day));
        let mark = (new_second && asked(Topic::MarkPrice)).then(|| match self.venue {
            Venue::BinanceSpot => printer.reference_price(&market.script),
            Venue::BinanceUsdm | Venue::Kraken | Venue::Okx | Venue::Bybit | Venue::Deribit => {
                printer.mark_price(&market.script)
            }
        });
        self.markets[index].statistics_at_s = unix_us / 1_000_000;
        // The best quote leads its depth update at the venue; every fourth one trails here, to have both.
        let (before, after) = if step.last_update_id.is_multiple_of(4) { (None, quote) } else { (quote, None) };
        for (topic, frame) in [
            (Topic::Trades, trade),
            (Topic::Aggregates, aggregate),
            (Topic::BlockTrades, block),
            (Topic::Liquidations, forced),
            (Topic::BestQuote, before),
            (Topic::Depth, depth),
            (Topic::BestQuote, after),
            (Topic::DayTicker, day),
            (Topic::MarkPrice, mark),
        ] {
            if let Some(frame) = frame {
                self.publish_faulty(index, topic, frame);
            }
        }
    }

    fn publish_kraken(&mut self, index: usize, step: &Step, unix_us: u64) {
        let market = &mut self.markets[index];
        let depths: Vec<u32> = market.windows.keys().copied().collect();
        let old: Vec<_> = depths.into_iter().map(|depth| (depth, market.renew_window(depth))).collect();
        let depths: Vec<u32> = market.order_windows.keys().copied().collect();
        let old_orders: Vec<_> = depths.into_iter().map(|depth| (depth, market.renew_order_window(depth))).collect();
        let printer = kraken::Printer { instrument: &market.instrument, unix_us };
        let mut frames = Vec::with_capacity(3);
        if let Some(trade) = step.trade.filter(|_| market.subscribers.contains_key(&Topic::Trades)) {
            frames.push((Topic::Trades, printer.trade(trade)));
        }
        for (depth, old) in &old {
            let update = printer.book_update(old, &market.windows[depth], &market.script);
            frames.extend(update.map(|frame| (Topic::Book(*depth), frame)));
        }
        for (depth, old) in &old_orders {
            let update = printer.orders_update(old, &market.order_windows[depth], &market.script);
            frames.extend(update.map(|frame| (Topic::Orders(*depth), frame)));
        }
        if step.touch_changed && market.subscribers.contains_key(&Topic::BestQuote) {
            frames.push((Topic::BestQuote, printer.ticker("update", &market.script, &market.day)));
        }
        for (topic, frame) in frames {
            self.publish_faulty(index, topic, frame);
        }
    }

    /// OKX, Bybit and Deribit: windows whose updates have numbers.
    fn publish_numbered(&mut self, index: usize, step: &Step, unix_us: u64) {
        let Some(numbering) = numbering(self.venue) else { return };
        let turns = self.turn_windows(index, numbering);
        let market = &self.markets[index];
        let asked = |topic| market.subscribers.contains_key(&topic);
        let new_second = unix_us / 1_000_000 != market.statistics_at_s;
        let trade = step.trade.filter(|_| asked(Topic::Trades));
        let quote = step.touch_changed && asked(Topic::BestQuote);
        let day = asked(Topic::DayTicker) && (new_second || self.venue == Venue::Bybit && step.touch_changed);
        let mut frames = Vec::with_capacity(4);
        match self.venue {
            Venue::Okx => {
                let printer = okx::Printer { instrument: &market.instrument, unix_us };
                frames.extend(trade.map(|trade| (Topic::Trades, printer.trade(trade))));
                for turn in &turns {
                    let topic = Topic::Book(turn.depth);
                    frames.extend(turn.link.map(|link| (topic, printer.book_update(turn.depth, &turn.changes, link))));
                    let id = market.chains[&turn.depth].id();
                    if quote && turn.depth == okx::DEPTH {
                        frames.push((Topic::BestQuote, printer.best_quote(&market.script, id)));
                    }
                    if new_second {
                        let sign_of_life =
                            printer.book_update(turn.depth, &Window::default(), Link { previous: id, id });
                        frames.push((topic, sign_of_life));
                    }
                }
                if day {
                    frames.push((Topic::DayTicker, printer.ticker(&market.script, &market.day)));
                }
                if new_second {
                    frames.extend(okx_each_second(printer, market));
                }
            }
            Venue::Bybit => {
                let printer = bybit::Printer { instrument: &market.instrument, unix_us };
                let seq = step.last_update_id;
                frames.extend(trade.map(|trade| (Topic::Trades, printer.trade(trade, seq))));
                for turn in &turns {
                    let (whole, id) = (&market.windows[&turn.depth], market.chains[&turn.depth].id());
                    let frame = if turn.is_reset && turn.depth != FULL || turn.depth == 1 && turn.link.is_some() {
                        Some(printer.book("snapshot", turn.depth, whole, id, seq))
                    } else {
                        turn.link.map(|link| printer.book("delta", turn.depth, &turn.changes, link.id, seq))
                    };
                    frames.extend(frame.map(|frame| (Topic::Book(turn.depth), frame)));
                }
                if day {
                    frames.push((Topic::DayTicker, printer.ticker(false, &market.script, &market.day)));
                }
            }
            Venue::Deribit => {
                let printer = deribit::Printer { instrument: &market.instrument, unix_us };
                frames.extend(trade.map(|trade| (Topic::Trades, printer.trade(trade))));
                for turn in &turns {
                    let book = |link: Link| printer.book(&turn.changes, &turn.old, Some(link), link.id);
                    frames.extend(turn.link.map(|link| (Topic::Book(turn.depth), book(link))));
                }
                if quote {
                    frames.push((Topic::BestQuote, printer.quote(&market.script)));
                }
                if day {
                    frames.push((Topic::DayTicker, printer.ticker(&market.script, &market.day)));
                }
            }
            Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Kraken => {}
        }
        self.markets[index].statistics_at_s = unix_us / 1_000_000;
        for (topic, frame) in frames {
            self.publish_faulty(index, topic, frame);
        }
    }

    /// The windows of every depth that somebody follows, before and after the step.
    fn turn_windows(&mut self, index: usize, numbering: Numbering) -> Vec<Turn> {
        let market = &mut self.markets[index];
        let update_id = market.script.update_id();
        let mut depths: Vec<u32> = market.windows.keys().copied().collect();
        depths.sort_unstable();
        let mut turns = Vec::with_capacity(depths.len());
        for depth in depths {
            let is_reset = market.faults.front() == Some(&Fault::Reset) && market.held.is_none();
            let old = market.renew_window(depth);
            let changes = changes(&old, &market.windows[&depth]);
            let is_quiet = changes.iter().all(Vec::is_empty);
            let chain = market.chain(depth, numbering);
            let link = if is_reset {
                let previous = chain.id();
                chain.reset(update_id);
                Some(Link { previous, id: chain.id() })
            } else {
                (!is_quiet).then(|| chain.advance(update_id))
            };
            turns.push(Turn { depth, old, changes, link, is_reset });
        }
        turns
    }

    pub(super) fn publish(&mut self, index: usize, topic: Topic, payload: &str) {
        if self.withheld.iter().any(|name| name == topic.name()) {
            return;
        }
        let Some(subscribers) = self.markets[index].subscribers.get(&topic).cloned() else { return };
        for subscriber in subscribers {
            self.send_to(&subscriber, payload);
        }
    }

    fn send_to(&mut self, subscriber: &Subscriber, payload: &str) {
        let Subscriber { connection, stream, wrapped } = subscriber;
        let longer;
        let payload = if self.has_microseconds(*connection) {
            longer = binance::in_microseconds(payload, self.stepped_us);
            &longer
        } else {
            payload
        };
        if *wrapped && stream == binance::SUBSCRIPTION {
            self.send(*connection, format!("{{\"subscriptionId\":0,\"event\":{payload}}}"));
        } else if *wrapped {
            self.send(*connection, format!("{{\"stream\":\"{stream}\",\"data\":{payload}}}"));
        } else {
            self.send(*connection, payload);
        }
    }

    fn step_orders(&mut self, index: usize, unix_us: u64) {
        if !self.stats.updates.is_multiple_of(STEPS_PER_ORDER_EVENT) {
            return;
        }
        let market = &self.markets[index];
        let event = self.orders.next(self.venue, &market.instrument, market.script.book().touch(), unix_us);
        for subscriber in self.private.clone() {
            self.send_to(&subscriber, &event);
        }
    }
}

/// Sends OKX's once-a-second topics to their subscribers.
fn okx_each_second(printer: okx::Printer<'_>, market: &Market) -> impl Iterator<Item = (Topic, String)> {
    let asked = |topic| market.subscribers.contains_key(&topic);
    let mark = asked(Topic::MarkPrice).then(|| (Topic::MarkPrice, printer.mark_price(&market.script)));
    let has_candle = asked(Topic::Candle) && market.minute.1.qty > 0;
    let candle = has_candle.then(|| (Topic::Candle, printer.candle(&market.script, &market.minute)));
    mark.into_iter().chain(candle)
}
