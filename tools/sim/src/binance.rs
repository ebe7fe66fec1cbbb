//! Binance's messages: spot, and USD-M where it differs.

use std::fmt::Write;

use crate::{
    digits::decimal,
    instrument::{Instrument, Venue},
    market::{Day, Topic},
    script::{Script, Side, Step, Trade},
};

/// The stream of a signed subscription to the account's events.
pub(crate) const SUBSCRIPTION: &str = "signed subscription";

/// Digits of a time in milliseconds.
const MILLISECOND_DIGITS: usize = 13;

/// An instrument at one of Binance's venues, as its frames print it.
#[derive(Clone, Copy)]
pub(crate) struct Printer<'a> {
    pub(crate) venue: Venue,
    pub(crate) instrument: &'a Instrument,
    pub(crate) unix_us: u64,
}

impl Printer<'_> {
    const fn time_ms(&self) -> u64 {
        self.unix_us / 1000
    }

    fn px(&self, out: &mut String, px: i64) {
        out.push('"');
        decimal(out, px, self.instrument.px_decimals, self.instrument.px_places(self.venue));
        out.push('"');
    }

    fn qty(&self, out: &mut String, qty: impl Into<i128>) {
        out.push('"');
        decimal(out, qty, self.instrument.qty_decimals, self.instrument.qty_places(self.venue));
        out.push('"');
    }

    fn levels<'l>(&self, out: &mut String, levels: impl Iterator<Item = (&'l i64, &'l i64)>) {
        out.push('[');
        for (i, (&px, &qty)) in levels.enumerate() {
            out.push_str(if i == 0 { "[" } else { ",[" });
            self.px(out, px);
            out.push(',');
            self.qty(out, qty);
            out.push(']');
        }
        out.push(']');
    }

    fn touch(&self, out: &mut String, [(bid, bid_qty), (ask, ask_qty)]: [(i64, i64); 2]) {
        for (key, px, qty_key, qty) in [("b", bid, "B", bid_qty), ("a", ask, "A", ask_qty)] {
            let _ = write!(out, ",\"{key}\":");
            self.px(out, px);
            let _ = write!(out, ",\"{qty_key}\":");
            self.qty(out, qty);
        }
    }

    /// `bookTicker`.
    pub(crate) fn book_ticker(&self, script: &Script) -> String {
        let (id, symbol) = (script.update_id(), &self.instrument.symbol);
        let mut out = String::with_capacity(192);
        if self.venue == Venue::BinanceUsdm {
            let _ = write!(out, "{{\"e\":\"bookTicker\",\"u\":{id},\"s\":\"{symbol}\"");
        } else {
            let _ = write!(out, "{{\"u\":{id},\"s\":\"{symbol}\"");
        }
        self.touch(&mut out, script.book().touch());
        if self.venue == Venue::BinanceUsdm {
            let _ = write!(out, ",\"T\":{0},\"E\":{0}", self.time_ms());
        }
        out.push('}');
        out
    }

    /// `trade`.
    pub(crate) fn trade(&self, trade: Trade) -> String {
        let (time_ms, symbol, id) = (self.time_ms(), &self.instrument.symbol, trade.trade_id);
        let futures = self.venue == Venue::BinanceUsdm;
        let mut out = format!("{{\"e\":\"trade\",\"E\":{time_ms}");
        if futures {
            let _ = write!(out, ",\"T\":{time_ms}");
        }
        let _ = write!(out, ",\"s\":\"{symbol}\",\"t\":{id},\"p\":");
        self.px(&mut out, trade.px);
        out.push_str(",\"q\":");
        self.qty(&mut out, trade.qty);
        let buyer_is_maker = trade.maker == Side::Bid;
        if futures {
            let _ = write!(out, ",\"X\":\"MARKET\",\"m\":{buyer_is_maker}}}");
        } else {
            let _ = write!(out, ",\"T\":{time_ms},\"m\":{buyer_is_maker},\"M\":true}}");
        }
        out
    }

    /// `aggTrade`: each trade is of another order here. USD-M adds the quantity without RPI orders.
    pub(crate) fn aggregate(&self, trade: Trade) -> String {
        let (time_ms, symbol, id) = (self.time_ms(), &self.instrument.symbol, trade.trade_id);
        let (mut px, mut qty) = (String::new(), String::new());
        self.px(&mut px, trade.px);
        self.qty(&mut qty, trade.qty);
        let buyer_is_maker = trade.maker == Side::Bid;
        let (normal, end) = if self.venue == Venue::BinanceUsdm {
            (format!(",\"nq\":{qty}"), "")
        } else {
            (String::new(), ",\"M\":true")
        };
        format!(
            "{{\"e\":\"aggTrade\",\"E\":{time_ms},\"s\":\"{symbol}\",\"a\":{id},\"p\":{px},\"q\":{qty}{normal},\
             \"f\":{id},\"l\":{id},\"T\":{time_ms},\"m\":{buyer_is_maker}{end}}}"
        )
    }

    /// `blockTrade`: eight times the quantity of a trade, far from its price; its number is of a series of their own.
    pub(crate) fn block_trade(&self, trade: Trade) -> String {
        let (time_ms, symbol, id) = (self.time_ms(), &self.instrument.symbol, trade.trade_id / 8);
        let (mut px, mut qty) = (String::new(), String::new());
        self.px(&mut px, trade.px * 2);
        self.qty(&mut qty, trade.qty * 8);
        let buyer_is_maker = trade.maker == Side::Bid;
        format!(
            "{{\"e\":\"blockTrade\",\"E\":{time_ms},\"s\":\"{symbol}\",\"t\":{id},\"p\":{px},\"q\":{qty},\
             \"T\":{time_ms},\"m\":{buyer_is_maker}}}"
        )
    }

    /// `depthUpdate`.
    pub(crate) fn depth_update(&self, step: &Step) -> String {
        let (time_ms, symbol) = (self.time_ms(), &self.instrument.symbol);
        let mut out = String::with_capacity(128 + 32 * (step.bids.len() + step.asks.len()));
        let _ = write!(out, "{{\"e\":\"depthUpdate\",\"E\":{time_ms}");
        if self.venue == Venue::BinanceUsdm {
            let _ = write!(out, ",\"T\":{time_ms}");
        }
        let _ = write!(out, ",\"s\":\"{symbol}\",\"U\":{},\"u\":{}", step.first_update_id, step.last_update_id);
        if self.venue == Venue::BinanceUsdm {
            let _ = write!(out, ",\"pu\":{}", step.previous_update_id);
        }
        out.push_str(",\"b\":");
        self.levels(&mut out, step.bids.iter().map(|(px, qty)| (px, qty)));
        out.push_str(",\"a\":");
        self.levels(&mut out, step.asks.iter().map(|(px, qty)| (px, qty)));
        out.push('}');
        out
    }

    /// `24hrTicker`.
    pub(crate) fn day_ticker(&self, script: &Script, day: &Day) -> String {
        let (time_ms, symbol, last) = (self.time_ms(), &self.instrument.symbol, script.last_trade());
        let mut out = format!("{{\"e\":\"24hrTicker\",\"E\":{time_ms},\"s\":\"{symbol}\"");
        // The change is printed from zero up: the script's day has no sign that anybody reads.
        for (key, px) in [
            ("p", (last.px - day.open_px).abs()),
            ("w", if day.qty == 0 { last.px } else { (day.notional / day.qty) as i64 }),
            ("x", day.open_px),
            ("c", last.px),
            ("o", day.open_px),
            ("h", day.high_px),
            ("l", day.low_px),
        ] {
            let _ = write!(out, ",\"{key}\":");
            self.px(&mut out, px);
        }
        out.push_str(",\"P\":\"0.000\",\"Q\":");
        self.qty(&mut out, last.qty);
        self.touch(&mut out, script.book().touch());
        out.push_str(",\"v\":");
        self.qty(&mut out, day.qty);
        out.push_str(",\"q\":\"");
        decimal(&mut out, day.notional, self.instrument.px_decimals + self.instrument.qty_decimals, 8);
        let (opened_ms, last_id) = (time_ms.saturating_sub(86_400_000), last.trade_id);
        let _ = write!(out, "\",\"O\":{opened_ms},\"C\":{time_ms},\"F\":1,\"L\":{last_id},\"n\":{last_id}}}");
        out
    }

    /// `markPriceUpdate`: the mark price is the middle of the touch.
    pub(crate) fn mark_price(&self, script: &Script) -> String {
        let (time_ms, symbol) = (self.time_ms(), &self.instrument.symbol);
        let [(bid, _), (ask, _)] = script.book().touch();
        let mut mark = String::new();
        decimal(&mut mark, i128::from(bid + ask) * 5, self.instrument.px_decimals + 1, 8);
        let next_ms = (time_ms / 28_800_000 + 1) * 28_800_000;
        format!(
            "{{\"e\":\"markPriceUpdate\",\"E\":{time_ms},\"s\":\"{symbol}\",\"p\":\"{mark}\",\"i\":\"{mark}\",\
             \"P\":\"{mark}\",\"r\":\"0.00010000\",\"T\":{next_ms}}}"
        )
    }

    /// `referencePrice` of spot: the price of the last trade.
    pub(crate) fn reference_price(&self, script: &Script) -> String {
        let (time_ms, symbol) = (self.time_ms(), &self.instrument.symbol);
        let mut px = String::new();
        self.px(&mut px, script.last_trade().px);
        format!("{{\"e\":\"referencePrice\",\"s\":\"{symbol}\",\"r\":{px},\"t\":{time_ms}}}")
    }

    /// `forceOrder`: the order that a trade has filled closed a position by force.
    pub(crate) fn liquidation(&self, trade: Trade) -> String {
        let (time_ms, symbol) = (self.time_ms(), &self.instrument.symbol);
        let side = if trade.maker == Side::Bid { "SELL" } else { "BUY" };
        let (mut px, mut qty) = (String::new(), String::new());
        self.px(&mut px, trade.px);
        self.qty(&mut qty, trade.qty);
        format!(
            "{{\"e\":\"forceOrder\",\"E\":{time_ms},\"o\":{{\"s\":\"{symbol}\",\"S\":\"{side}\",\"o\":\"LIMIT\",\"f\":\"IOC\",\
             \"q\":{qty},\"p\":{px},\"ap\":{px},\"X\":\"FILLED\",\"l\":{qty},\"z\":{qty},\"T\":{time_ms}}}}}"
        )
    }

    /// The body of `GET depth`.
    pub(crate) fn snapshot(&self, script: &Script, limit: usize) -> String {
        let mut out = format!("{{\"lastUpdateId\":{}", script.update_id());
        if self.venue == Venue::BinanceUsdm {
            let _ = write!(out, ",\"E\":{0},\"T\":{0}", self.time_ms());
        }
        out.push_str(",\"bids\":");
        self.levels(&mut out, script.book().bids().take(limit));
        out.push_str(",\"asks\":");
        self.levels(&mut out, script.book().asks().take(limit));
        out.push('}');
        out
    }

    /// The instrument's entry in the body of `GET exchangeInfo`.
    pub(crate) fn listing(&self) -> String {
        let Instrument { symbol, base, quote, standing, .. } = self.instrument;
        let status = standing.word("TRADING", "BREAK");
        let futures = self.venue == Venue::BinanceUsdm;
        let (mut px_step, mut qty_step) = (String::new(), String::new());
        self.px(&mut px_step, 1);
        self.qty(&mut qty_step, 1);
        let contract =
            if futures { format!(",\"pair\":\"{symbol}\",\"contractType\":\"PERPETUAL\"") } else { String::new() };
        format!(
            "{{\"symbol\":\"{symbol}\"{contract},\"status\":\"{status}\",\"baseAsset\":\"{base}\",\
             \"baseAssetPrecision\":8,\"quoteAsset\":\"{quote}\",\"quotePrecision\":8,\"filters\":[\
             {{\"filterType\":\"PRICE_FILTER\",\"minPrice\":{px_step},\"maxPrice\":\"1000000.00\",\
             \"tickSize\":{px_step}}},{{\"filterType\":\"LOT_SIZE\",\"minQty\":{qty_step},\"maxQty\":\"9000.00\",\
             \"stepSize\":{qty_step}}}]}}"
        )
    }
}

/// A stream's symbol in upper case and its topic; `None` where Binance has no such stream.
pub(crate) fn stream(venue: Venue, name: &str) -> Option<(String, Topic)> {
    let (symbol, topic) = name.split_once('@')?;
    let topic = match (topic, venue) {
        ("bookTicker", _) => Topic::BestQuote,
        ("trade", _) => Topic::Trades,
        ("aggTrade", _) => Topic::Aggregates,
        ("blockTrade", Venue::BinanceSpot) => Topic::BlockTrades,
        ("depth" | "depth@100ms" | "depth@0ms" | "depth@250ms" | "depth@500ms", _) => Topic::Depth,
        // No orders are RPI orders here: the book is the same.
        ("rpiDepth@500ms", Venue::BinanceUsdm) => Topic::Depth,
        ("ticker", _) => Topic::DayTicker,
        ("markPrice" | "markPrice@1s", Venue::BinanceUsdm) | ("referencePrice", Venue::BinanceSpot) => Topic::MarkPrice,
        ("forceOrder", Venue::BinanceUsdm) => Topic::Liquidations,
        _ => return None,
    };
    Some((symbol.to_ascii_uppercase(), topic))
}

/// A message with its times in microseconds: Binance spot sends them to who asks for them. The microseconds of
/// `unix_us` follow the milliseconds that are there.
pub(crate) fn in_microseconds(payload: &str, unix_us: u64) -> String {
    let mut out = String::with_capacity(payload.len() + 16);
    let mut rest = payload;
    while let Some(at) = ["\"E\":", "\"T\":", "\"O\":", "\"C\":"].iter().filter_map(|key| rest.find(key)).min() {
        let digits = at + 4 + rest[at + 4..].bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(&rest[..digits]);
        if digits - at - 4 == MILLISECOND_DIGITS {
            let _ = write!(out, "{:03}", unix_us % 1000);
        }
        rest = &rest[digits..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::in_microseconds;

    #[test]
    fn times_alone_become_longer() {
        let frame = r#"{"e":"trade","E":1672515782136,"s":"BNBBTC","t":12345,"p":"0.001","q":"100","T":1672515782136,"m":true}"#;
        let expected = r#"{"e":"trade","E":1672515782136042,"s":"BNBBTC","t":12345,"p":"0.001","q":"100","T":1672515782136042,"m":true}"#;
        assert_eq!(in_microseconds(frame, 1_672_515_782_136_042), expected);
        assert_eq!(in_microseconds(r#"{"T":"T","E":7}"#, 5), r#"{"T":"T","E":7}"#);
    }
}
