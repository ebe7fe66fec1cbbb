//! Bybit v5's words for linear perpetuals and options.

use std::fmt::Write;

use crate::{
    digits::decimal,
    instrument::Instrument,
    market::{Day, FULL, RPI, Topic, Window},
    script::{Script, Side, Trade},
};

/// Depths that a book can be asked for.
const DEPTHS: [u32; 4] = [1, 50, 200, 1000];
/// The same of an option.
const OPTION_DEPTHS: [u32; 2] = [25, 100];

/// When options end, milliseconds of the Unix epoch: 2027-03-26 08:00.
const EXPIRY_MS: u64 = 1_806_048_000_000;

/// What is sold at an address of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    Linear,
    Option,
}

impl Category {
    pub(crate) const fn of(instrument: &Instrument) -> Self {
        if instrument.is_option { Self::Option } else { Self::Linear }
    }
}

/// An instrument as Bybit's frames print it.
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
        decimal(&mut out, px, self.instrument.px_decimals, self.instrument.px_decimals);
        out
    }

    fn qty(&self, qty: impl Into<i128>) -> String {
        let mut out = String::new();
        decimal(&mut out, qty, self.instrument.qty_decimals, self.instrument.qty_decimals);
        out
    }

    fn levels(&self, out: &mut String, levels: &[(i64, i64)], has_rpi: bool) {
        out.push('[');
        for (i, &(px, qty)) in levels.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            // A level that is gone has the quantity "0", without decimals.
            let printed = |qty: i64| if qty == 0 { "0".to_owned() } else { self.qty(qty) };
            let rpi = if has_rpi { qty / 3 } else { 0 };
            let _ = write!(out, "{comma}[\"{}\",\"{}\"", self.px(px), printed(qty - rpi));
            if has_rpi {
                let _ = write!(out, ",\"{}\"", printed(rpi));
            }
            out.push(']');
        }
        out.push(']');
    }

    /// `orderbook.DEPTH`, either kind. `seq` orders updates across depths; here it is the script's update id.
    pub(crate) fn book(&self, kind: &str, depth: u32, [bids, asks]: &Window, id: u64, seq: u64) -> String {
        let (symbol, time_ms) = (&self.instrument.symbol, self.time_ms());
        let (has_rpi, depth) = match depth {
            RPI => (true, "rpi".to_owned()),
            FULL => (false, "full".to_owned()),
            depth => (false, depth.to_string()),
        };
        let mut out = String::with_capacity(192 + 32 * (bids.len() + asks.len()));
        let _ = write!(
            out,
            "{{\"topic\":\"orderbook.{depth}.{symbol}\",\"type\":\"{kind}\",\"ts\":{},\"data\":{{\"s\":\"{symbol}\",\"b\":",
            time_ms + 1
        );
        self.levels(&mut out, bids, has_rpi);
        out.push_str(",\"a\":");
        self.levels(&mut out, asks, has_rpi);
        let _ = write!(out, ",\"u\":{id},\"seq\":{seq}}},\"cts\":{time_ms}}}");
        out
    }

    /// The body of `GET /v5/market/full_orderbook`.
    pub(crate) fn rest_book(&self, [bids, asks]: &Window, id: u64, seq: u64) -> String {
        let (symbol, time_ms) = (&self.instrument.symbol, self.time_ms());
        let mut out = format!("{{\"retCode\":0,\"retMsg\":\"OK\",\"result\":{{\"s\":\"{symbol}\",\"b\":");
        self.levels(&mut out, bids, false);
        out.push_str(",\"a\":");
        self.levels(&mut out, asks, false);
        let _ = write!(
            out,
            ",\"ts\":{0},\"u\":{id},\"seq\":{seq},\"cts\":{time_ms}}},\"retExtInfo\":{{}},\"time\":{0}}}",
            time_ms + 1
        );
        out
    }

    /// `publicTrade`: of an option by its base asset. Its ids are texts of 36 characters.
    pub(crate) fn trade(&self, trade: Trade, seq: u64) -> String {
        let (symbol, time_ms) = (&self.instrument.symbol, self.time_ms());
        let Instrument { base, is_option, .. } = self.instrument;
        let of = if *is_option { base } else { symbol };
        let side = if trade.maker == Side::Ask { "Buy" } else { "Sell" };
        format!(
            "{{\"topic\":\"publicTrade.{of}\",\"type\":\"snapshot\",\"ts\":{},\"data\":[{{\"T\":{time_ms},\
             \"s\":\"{symbol}\",\"S\":\"{side}\",\"v\":\"{}\",\"p\":\"{}\",\"L\":\"PlusTick\",\
             \"i\":\"00000000-0000-5000-8000-{:012x}\",\"BT\":false,\"seq\":{seq}}}]}}",
            time_ms + 1,
            self.qty(trade.qty),
            self.px(trade.px),
            trade.trade_id,
        )
    }

    /// `tickers`: the whole at first, then the fields that changed.
    pub(crate) fn ticker(&self, whole: bool, script: &Script, day: &Day) -> String {
        let [(bid, bid_qty), (ask, ask_qty)] = script.book().touch();
        let (symbol, time_ms, last) = (&self.instrument.symbol, self.time_ms(), script.last_trade());
        let mut mark = String::new();
        decimal(&mut mark, i128::from(bid + ask) * 5, self.instrument.px_decimals + 1, self.instrument.px_decimals);
        let touch = format!(
            "\"bid1Price\":\"{}\",\"bid1Size\":\"{}\",\"ask1Price\":\"{}\",\"ask1Size\":\"{}\"",
            self.px(bid),
            self.qty(bid_qty),
            self.px(ask),
            self.qty(ask_qty)
        );
        let prices =
            format!("\"lastPrice\":\"{}\",\"markPrice\":\"{mark}\",\"indexPrice\":\"{mark}\"", self.px(last.px));
        let next_ms = (time_ms / 28_800_000 + 1) * 28_800_000;
        let fields = if whole {
            format!(
                "\"tickDirection\":\"PlusTick\",\"price24hPcnt\":\"0.000000\",{prices},\"prevPrice24h\":\"{}\",\
                 \"highPrice24h\":\"{}\",\"lowPrice24h\":\"{}\",\"prevPrice1h\":\"{0}\",\"openInterest\":\"68744.761\",\
                 \"openInterestValue\":\"1183601235.91\",\"turnover24h\":\"0\",\"volume24h\":\"{}\",\
                 \"nextFundingTime\":\"{next_ms}\",\"fundingRate\":\"0.0001\",{touch},\"fundingIntervalHour\":\"8\"",
                self.px(day.open_px),
                self.px(day.high_px),
                self.px(day.low_px),
                self.qty(day.qty),
            )
        } else {
            format!("{prices},{touch}")
        };
        if self.instrument.is_option {
            return format!(
                "{{\"id\":\"tickers.{symbol}-{}-{time_ms}\",\"topic\":\"tickers.{symbol}\",\"ts\":{time_ms},\
                 \"data\":{{\"symbol\":\"{symbol}\",\"bidPrice\":\"{}\",\"bidSize\":\"{}\",\"bidIv\":\"0.5\",\
                 \"askPrice\":\"{}\",\"askSize\":\"{}\",\"askIv\":\"0.6\",\"lastPrice\":\"{}\",\"markPrice\":\"{mark}\",\
                 \"indexPrice\":\"61837.6\",\"markPriceIv\":\"0.55\",\"openInterest\":\"4.3\",\"delta\":\"0.5\",\
                 \"gamma\":\"0.00004\",\"vega\":\"25.1\",\"theta\":\"-17.6\"}},\"type\":\"snapshot\"}}",
                script.update_id(),
                self.px(bid),
                self.qty(bid_qty),
                self.px(ask),
                self.qty(ask_qty),
                self.px(last.px),
            );
        }
        let kind = if whole { "snapshot" } else { "delta" };
        format!(
            "{{\"topic\":\"tickers.{symbol}\",\"type\":\"{kind}\",\"data\":{{\"symbol\":\"{symbol}\",{fields}}},\
             \"cs\":{},\"ts\":{time_ms}}}",
            script.update_id()
        )
    }

    /// The instrument's entry in the body of `GET /v5/market/instruments-info`.
    pub(crate) fn listing(&self) -> String {
        let Instrument { symbol, base, quote, px_decimals, standing, .. } = self.instrument;
        let status = standing.word("Trading", "Closed");
        let (tick, lot) = (self.px(1), self.qty(1));
        if let Some((_, right)) = self.instrument.option_terms() {
            let right = if right == "C" { "Call" } else { "Put" };
            return format!(
                "{{\"symbol\":\"{symbol}\",\"status\":\"{status}\",\"baseCoin\":\"{base}\",\"quoteCoin\":\"{quote}\",\
                 \"settleCoin\":\"{quote}\",\"optionsType\":\"{right}\",\"launchTime\":\"1772700000000\",\
                 \"deliveryTime\":\"{EXPIRY_MS}\",\"deliveryFeeRate\":\"0.00015\",\
                 \"priceFilter\":{{\"minPrice\":\"{tick}\",\"maxPrice\":\"1110000\",\"tickSize\":\"{tick}\"}},\
                 \"lotSizeFilter\":{{\"maxOrderQty\":\"500\",\"minOrderQty\":\"{lot}\",\"qtyStep\":\"{lot}\"}}}}"
            );
        }
        format!(
            "{{\"symbol\":\"{symbol}\",\"contractType\":\"LinearPerpetual\",\"status\":\"{status}\",\
             \"baseCoin\":\"{base}\",\"quoteCoin\":\"{quote}\",\"priceScale\":\"{px_decimals}\",\
             \"priceFilter\":{{\"minPrice\":\"{tick}\",\"maxPrice\":\"1999999.80\",\"tickSize\":\"{tick}\"}},\
             \"lotSizeFilter\":{{\"maxOrderQty\":\"1190.000\",\"minOrderQty\":\"{lot}\",\"qtyStep\":\"{lot}\"}},\
             \"settleCoin\":\"{quote}\"}}"
        )
    }
}

/// A name's topic and symbol, or base asset; `None` where this venue has none of that name.
pub(crate) fn topic(category: Category, name: &str) -> Option<(Topic, &str)> {
    if let Some(rest) = name.strip_prefix("orderbook.") {
        let (depth, symbol) = rest.split_once('.')?;
        if depth == "rpi" && category == Category::Linear {
            return Some((Topic::Book(RPI), symbol));
        }
        if depth == "full" && category == Category::Linear {
            return Some((Topic::Book(FULL), symbol));
        }
        let depth = depth.parse().ok().filter(|depth| match category {
            Category::Linear => DEPTHS.contains(depth),
            Category::Option => OPTION_DEPTHS.contains(depth),
        })?;
        return Some((Topic::Book(depth), symbol));
    }
    let (kind, symbol) = name.split_once('.')?;
    match kind {
        "publicTrade" => Some((Topic::Trades, symbol)),
        "tickers" => Some((Topic::DayTicker, symbol)),
        _ => None,
    }
}
