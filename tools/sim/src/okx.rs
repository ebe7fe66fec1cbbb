//! OKX v5's messages, after June 2026: the checksum of a book is always 0, its numbers are what holds it together.

use std::fmt::Write;

use crate::{
    chain::Link,
    digits::decimal,
    instrument::Instrument,
    market::{Day, RPI_OKX, Topic, Window},
    script::{Script, Side, Trade},
};

/// Levels of the `books` topic.
pub(crate) const DEPTH: u32 = 400;

/// The channel of a book, and its checksum: `books-rpi` has none.
const fn book_topic(depth: u32) -> (&'static str, &'static str) {
    if depth == RPI_OKX { ("books-rpi", "") } else { ("books", ",\"checksum\":0") }
}

/// An instrument as OKX's frames print it.
#[derive(Clone, Copy)]
pub(crate) struct Printer<'a> {
    pub(crate) instrument: &'a Instrument,
    pub(crate) unix_us: u64,
}

impl Printer<'_> {
    const fn time_ms(&self) -> u64 {
        self.unix_us / 1000
    }

    /// A number without the zeros at its end, as OKX prints most of them.
    fn number(out: &mut String, mantissa: impl Into<i128>, decimals: u32) {
        let start = out.len();
        decimal(out, mantissa, decimals, decimals);
        if out[start..].contains('.') {
            let kept = out.trim_end_matches('0').trim_end_matches('.').len();
            out.truncate(kept);
        }
    }

    fn px(&self, px: i64) -> String {
        let mut out = String::new();
        Self::number(&mut out, px, self.instrument.px_decimals);
        out
    }

    fn qty(&self, qty: impl Into<i128>) -> String {
        let mut out = String::new();
        Self::number(&mut out, qty, self.instrument.qty_decimals);
        out
    }

    /// The third member is an old one of `books`, and the quantity without RPI orders of `books-rpi`.
    fn levels(&self, out: &mut String, levels: &[(i64, i64)], has_rpi: bool) {
        out.push('[');
        for (i, &(px, qty)) in levels.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let orders = u8::from(qty > 0);
            let third = if has_rpi { self.qty(qty - qty / 3) } else { "0".to_owned() };
            let _ = write!(out, "{comma}[\"{}\",\"{}\",\"{third}\",\"{orders}\"]", self.px(px), self.qty(qty));
        }
        out.push(']');
    }

    fn begin(&self, topic: &str) -> String {
        format!("{{\"arg\":{{\"channel\":\"{topic}\",\"instId\":\"{}\"}},", self.instrument.symbol)
    }

    /// The sides and the time of a book, in an object that is not closed yet.
    fn book(&self, out: &mut String, [bids, asks]: &Window, has_rpi: bool) {
        out.push_str("{\"asks\":");
        self.levels(out, asks, has_rpi);
        out.push_str(",\"bids\":");
        self.levels(out, bids, has_rpi);
        let _ = write!(out, ",\"ts\":\"{}\"", self.time_ms());
    }

    /// `books` or `books-rpi`, the whole: its `prevSeqId` is -1.
    pub(crate) fn book_snapshot(&self, depth: u32, window: &Window, id: u64) -> String {
        let (topic, checksum) = book_topic(depth);
        let mut out = self.begin(topic);
        out.push_str("\"action\":\"snapshot\",\"data\":[");
        self.book(&mut out, window, depth == RPI_OKX);
        let _ = write!(out, "{checksum},\"seqId\":{id},\"prevSeqId\":-1}}]}}");
        out
    }

    /// `books`, what changed; without a change it is the venue's sign of life, with both numbers the same.
    pub(crate) fn book_update(&self, depth: u32, changes: &Window, link: Link) -> String {
        let (topic, checksum) = book_topic(depth);
        let mut out = self.begin(topic);
        out.push_str("\"action\":\"update\",\"data\":[");
        self.book(&mut out, changes, depth == RPI_OKX);
        let _ = write!(out, "{checksum},\"seqId\":{},\"prevSeqId\":{}}}]}}", link.id, link.previous);
        out
    }

    /// The body of `GET /api/v5/market/books`.
    pub(crate) fn rest_book(&self, window: &Window, id: u64) -> String {
        let mut out = "{\"code\":\"0\",\"msg\":\"\",\"data\":[".to_owned();
        self.book(&mut out, window, false);
        let _ = write!(out, ",\"seqId\":{id}}}]}}");
        out
    }

    /// `bbo-tbt`: the touch, under the number of the book that it belongs to.
    pub(crate) fn best_quote(&self, script: &Script, id: u64) -> String {
        let [bid, ask] = script.book().touch();
        let mut out = self.begin("bbo-tbt");
        out.push_str("\"data\":[");
        self.book(&mut out, &[vec![bid], vec![ask]], false);
        let _ = write!(out, ",\"seqId\":{id}}}]}}");
        out
    }

    /// `tickers`.
    pub(crate) fn ticker(&self, script: &Script, day: &Day) -> String {
        let [(bid, bid_qty), (ask, ask_qty)] = script.book().touch();
        let (last, symbol, time_ms) = (script.last_trade(), &self.instrument.symbol, self.time_ms());
        let mut notional = String::new();
        Self::number(&mut notional, day.notional, self.instrument.px_decimals + self.instrument.qty_decimals);
        format!(
            "{}\"data\":[{{\"instType\":\"SPOT\",\"instId\":\"{symbol}\",\"last\":\"{}\",\"lastSz\":\"{}\",\
             \"askPx\":\"{}\",\"askSz\":\"{}\",\"bidPx\":\"{}\",\"bidSz\":\"{}\",\"open24h\":\"{}\",\"high24h\":\"{}\",\
             \"low24h\":\"{}\",\"sodUtc0\":\"{7}\",\"sodUtc8\":\"{7}\",\"volCcy24h\":\"{notional}\",\"vol24h\":\"{}\",\
             \"ts\":\"{time_ms}\"}}]}}",
            self.begin("tickers"),
            self.px(last.px),
            self.qty(last.qty),
            self.px(ask),
            self.qty(ask_qty),
            self.px(bid),
            self.qty(bid_qty),
            self.px(day.open_px),
            self.px(day.high_px),
            self.px(day.low_px),
            self.qty(day.qty),
        )
    }

    /// `trades`.
    pub(crate) fn trade(&self, trade: Trade) -> String {
        let side = if trade.maker == Side::Ask { "buy" } else { "sell" };
        format!(
            "{}\"data\":[{{\"instId\":\"{}\",\"tradeId\":\"{}\",\"px\":\"{}\",\"sz\":\"{}\",\"side\":\"{side}\",\
             \"ts\":\"{}\",\"count\":\"1\"}}]}}",
            self.begin("trades"),
            self.instrument.symbol,
            trade.trade_id,
            self.px(trade.px),
            self.qty(trade.qty),
            self.time_ms(),
        )
    }

    /// `mark-price`: the middle of the touch.
    pub(crate) fn mark_price(&self, script: &Script) -> String {
        let [(bid, _), (ask, _)] = script.book().touch();
        let mut mark = String::new();
        Self::number(&mut mark, i128::from(bid + ask) * 5, self.instrument.px_decimals + 1);
        format!(
            "{}\"data\":[{{\"instType\":\"MARGIN\",\"instId\":\"{}\",\"markPx\":\"{mark}\",\"ts\":\"{}\"}}]}}",
            self.begin("mark-price"),
            self.instrument.symbol,
            self.time_ms(),
        )
    }

    /// `candle1m`: the minute that runs, with the text 0 at its end.
    pub(crate) fn candle(&self, script: &Script, &(minute, traded): &(u64, Day)) -> String {
        let mut notional = String::new();
        Self::number(&mut notional, traded.notional, self.instrument.px_decimals + self.instrument.qty_decimals);
        format!(
            "{}\"data\":[[\"{}\",\"{}\",\"{}\",\"{}\",\"{}\",\"{}\",\"{notional}\",\"{notional}\",\"0\"]]}}",
            self.begin("candle1m"),
            minute * 60_000,
            self.px(traded.open_px),
            self.px(traded.high_px),
            self.px(traded.low_px),
            self.px(script.last_trade().px),
            self.qty(traded.qty),
        )
    }

    /// The instrument's entry in the body of `GET /api/v5/public/instruments`.
    pub(crate) fn listing(&self) -> String {
        let Instrument { symbol, base, quote, standing, .. } = self.instrument;
        let state = standing.word("live", "suspend");
        let (tick, lot) = (self.px(1), self.qty(1));
        format!(
            "{{\"alias\":\"\",\"baseCcy\":\"{base}\",\"instId\":\"{symbol}\",\"instType\":\"SPOT\",\
             \"lotSz\":\"{lot}\",\"minSz\":\"{lot}\",\"quoteCcy\":\"{quote}\",\"settleCcy\":\"\",\"state\":\"{state}\",\
             \"tickSz\":\"{tick}\"}}"
        )
    }
}

/// The topic of OKX's name for it; `None` where this venue has none of that name.
pub(crate) fn topic(name: &str) -> Option<Topic> {
    match name {
        "books" => Some(Topic::Book(DEPTH)),
        "books-rpi" => Some(Topic::Book(RPI_OKX)),
        "bbo-tbt" => Some(Topic::BestQuote),
        "tickers" => Some(Topic::DayTicker),
        "trades" => Some(Topic::Trades),
        "mark-price" => Some(Topic::MarkPrice),
        "candle1m" => Some(Topic::Candle),
        _ => None,
    }
}
