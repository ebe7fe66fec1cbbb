//! Deribit's messages: JSON-RPC, numbers without quotes.

use std::fmt::Write;

use crate::{
    chain::Link,
    digits::decimal,
    instrument::{Instrument, Venue},
    market::{Day, Topic, Window},
    script::{Script, Side, Trade},
};

/// Levels of a book that is not grouped: all of them.
pub(crate) const DEPTH: u32 = u32::MAX;

/// An instrument as Deribit's frames print it, for a topic's `interval` (`100ms`, `raw`, `agg2`).
#[derive(Clone, Copy)]
pub(crate) struct Printer<'a> {
    pub(crate) instrument: &'a Instrument,
    pub(crate) unix_us: u64,
}

impl Printer<'_> {
    const fn time_ms(&self) -> u64 {
        self.unix_us / 1000
    }

    fn px(&self, px: i64) -> String {
        let mut out = String::new();
        decimal(&mut out, px, self.instrument.px_decimals, self.instrument.px_places(Venue::Deribit));
        out
    }

    fn qty(&self, qty: impl Into<i128>) -> String {
        let mut out = String::new();
        decimal(&mut out, qty, self.instrument.qty_decimals, self.instrument.qty_places(Venue::Deribit));
        out
    }

    fn notification(&self, kind: &str, payload: &str) -> String {
        let symbol = &self.instrument.symbol;
        let interval = if kind == "quote" { "" } else { ".100ms" };
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{\"channel\":\"{kind}.{symbol}{interval}\",\
             \"data\":{payload}}}}}"
        )
    }

    /// One side: each level with what became of it, seen from `held`.
    fn levels(&self, out: &mut String, levels: &[(i64, i64)], held: &[(i64, i64)]) {
        out.push('[');
        for (i, &(px, qty)) in levels.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let action = if qty == 0 {
                "delete"
            } else if held.iter().any(|&(other, _)| other == px) {
                "change"
            } else {
                "new"
            };
            let _ = write!(out, "{comma}[\"{action}\",{},{}]", self.px(px), self.qty(qty));
        }
        out.push(']');
    }

    /// `book`: what leads from `held` (empty for a snapshot) to the book of `link`.
    pub(crate) fn book(
        &self,
        [bids, asks]: &Window,
        [held_bids, held_asks]: &Window,
        link: Option<Link>,
        id: u64,
    ) -> String {
        let mut out = String::with_capacity(192 + 32 * (bids.len() + asks.len()));
        let kind = if link.is_some() { "change" } else { "snapshot" };
        let (time_ms, symbol) = (self.time_ms(), &self.instrument.symbol);
        let _ = write!(
            out,
            "{{\"timestamp\":{time_ms},\"type\":\"{kind}\",\"change_id\":{id},\"instrument_name\":\"{symbol}\",\"bids\":"
        );
        self.levels(&mut out, bids, held_bids);
        out.push_str(",\"asks\":");
        self.levels(&mut out, asks, held_asks);
        if let Some(link) = link {
            let _ = write!(out, ",\"prev_change_id\":{}", link.previous);
        }
        out.push('}');
        self.notification("book", &out)
    }

    /// `quote`.
    pub(crate) fn quote(&self, script: &Script) -> String {
        let [(bid, bid_qty), (ask, ask_qty)] = script.book().touch();
        let payload = format!(
            "{{\"timestamp\":{},\"instrument_name\":\"{}\",\"best_ask_price\":{},\"best_bid_price\":{},\
             \"best_ask_amount\":{},\"best_bid_amount\":{}}}",
            self.time_ms(),
            self.instrument.symbol,
            self.px(ask),
            self.px(bid),
            self.qty(ask_qty),
            self.qty(bid_qty),
        );
        self.notification("quote", &payload)
    }

    /// `ticker`: mark and index price are the touch's bid.
    pub(crate) fn ticker(&self, script: &Script, day: &Day) -> String {
        let [(bid, bid_qty), (ask, ask_qty)] = script.book().touch();
        let payload = format!(
            "{{\"timestamp\":{},\"state\":\"open\",\"stats\":{{\"high\":{},\"low\":{},\"price_change\":0.0,\
             \"volume\":{},\"volume_usd\":{3}}},\"index_price\":{4},\"instrument_name\":\"{5}\",\"last_price\":{6},\
             \"settlement_price\":{4},\"min_price\":{2},\"max_price\":{1},\"open_interest\":{3},\"mark_price\":{4},\
             \"best_ask_price\":{7},\"best_bid_price\":{4},\"estimated_delivery_price\":{4},\"best_ask_amount\":{8},\
             \"best_bid_amount\":{9},\"current_funding\":0.0,\"funding_8h\":1.742e-5}}",
            self.time_ms(),
            self.px(day.high_px),
            self.px(day.low_px),
            self.qty(day.qty),
            self.px(bid),
            self.instrument.symbol,
            self.px(script.last_trade().px),
            self.px(ask),
            self.qty(ask_qty),
            self.qty(bid_qty),
        );
        self.notification("ticker", &payload)
    }

    /// `trades`.
    pub(crate) fn trade(&self, trade: Trade) -> String {
        let direction = if trade.maker == Side::Ask { "buy" } else { "sell" };
        let payload = format!(
            "[{{\"timestamp\":{},\"price\":{},\"amount\":{},\"direction\":\"{direction}\",\"index_price\":{1},\
             \"instrument_name\":\"{}\",\"trade_seq\":{},\"mark_price\":{1},\"tick_direction\":2,\"contracts\":{2},\
             \"trade_id\":\"{4}\"}}]",
            self.time_ms(),
            self.px(trade.px),
            self.qty(trade.qty),
            self.instrument.symbol,
            trade.trade_id,
        );
        self.notification("trades", &payload)
    }

    /// The instrument's entry in `public/get_instruments`.
    pub(crate) fn listing(&self) -> String {
        let Instrument { symbol, base, quote, standing, .. } = self.instrument;
        let state = standing.word("open", "locked");
        let (tick, lot) = (self.px(1), self.qty(1));
        format!(
            "{{\"kind\":\"future\",\"instrument_name\":\"{symbol}\",\"instrument_type\":\"reversed\",\
             \"is_active\":true,\"state\":\"{state}\",\"tick_size\":{tick},\"contract_size\":{lot},\"min_trade_amount\":{lot},\
             \"settlement_currency\":\"{base}\",\"settlement_period\":\"perpetual\",\"base_currency\":\"{base}\",\
             \"counter_currency\":\"{quote}\",\"quote_currency\":\"{quote}\",\"tick_size_steps\":[]}}"
        )
    }
}

/// A name's topic and symbol; `None` where this venue has none of that name.
pub(crate) fn topic(name: &str) -> Option<(Topic, &str)> {
    let (kind, rest) = name.split_once('.')?;
    if kind == "quote" {
        return Some((Topic::BestQuote, rest));
    }
    let (symbol, interval) = rest.rsplit_once('.')?;
    if interval != "100ms" {
        return None;
    }
    match kind {
        "book" => Some((Topic::Book(DEPTH), symbol)),
        "trades" => Some((Topic::Trades, symbol)),
        "ticker" => Some((Topic::DayTicker, symbol)),
        _ => None,
    }
}
