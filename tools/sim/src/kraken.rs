//! Kraken v2's messages.

mod singles;

use std::fmt::Write;

use crate::{
    crc::crc32,
    digits::{decimal, rfc3339},
    instrument::Instrument,
    market::{Day, Window},
    script::{Script, Side, Trade},
};

/// Depths that a book can be asked for.
pub(crate) const DEPTHS: [u32; 5] = [10, 25, 100, 500, 1000];

/// Depths that single orders can be asked for.
pub(crate) const ORDER_DEPTHS: [u32; 3] = [10, 100, 1000];

/// Levels of each side that the checksum covers.
const CHECKSUM_LEVELS: usize = 10;

/// An instrument as Kraken's frames print it.
#[derive(Clone, Copy)]
pub(crate) struct Printer<'a> {
    pub(crate) instrument: &'a Instrument,
    pub(crate) unix_us: u64,
}

impl Printer<'_> {
    fn px(&self, out: &mut String, px: i64) {
        decimal(out, px, self.instrument.px_decimals, self.instrument.px_decimals);
    }

    fn qty(&self, out: &mut String, qty: impl Into<i128>) {
        decimal(out, qty, self.instrument.qty_decimals, self.instrument.qty_decimals);
    }

    fn levels(&self, out: &mut String, levels: &[(i64, i64)]) {
        for (i, &(px, qty)) in levels.iter().enumerate() {
            out.push_str(if i == 0 { "{\"price\":" } else { ",{\"price\":" });
            self.px(out, px);
            out.push_str(",\"qty\":");
            self.qty(out, qty);
            out.push('}');
        }
    }

    fn timestamp(&self) -> String {
        let mut out = String::with_capacity(27);
        rfc3339(&mut out, self.unix_us);
        out
    }

    /// The checksum of a book's top, from the digits that go over the wire.
    fn checksum(&self, [bids, asks]: &Window) -> u32 {
        let mut text = String::with_capacity(512);
        let mut digits = String::new();
        for &(px, qty) in asks.iter().take(CHECKSUM_LEVELS).chain(bids.iter().take(CHECKSUM_LEVELS)) {
            for number in 0..2 {
                digits.clear();
                if number == 0 {
                    self.px(&mut digits, px)
                } else {
                    self.qty(&mut digits, qty)
                }
                digits.retain(|digit| digit != '.');
                text.push_str(digits.trim_start_matches('0'));
            }
        }
        crc32(text.as_bytes())
    }

    /// `book`, either kind: `levels` are sent, `window` is what the client then holds.
    fn book(&self, kind: &str, [bids, asks]: &Window, window: &Window) -> String {
        let mut out = String::with_capacity(192 + 40 * (bids.len() + asks.len()));
        let symbol = &self.instrument.symbol;
        let _ =
            write!(out, "{{\"channel\":\"book\",\"type\":\"{kind}\",\"data\":[{{\"symbol\":\"{symbol}\",\"bids\":[");
        self.levels(&mut out, bids);
        out.push_str("],\"asks\":[");
        self.levels(&mut out, asks);
        let (checksum, timestamp) = (self.checksum(window), self.timestamp());
        let _ = write!(out, "],\"checksum\":{checksum},\"timestamp\":\"{timestamp}\"}}]}}");
        out
    }

    /// A whole window.
    pub(crate) fn book_snapshot(&self, window: &Window) -> String {
        self.book("snapshot", window, window)
    }

    /// Returns the update from `old` to `new`; `None` if the window did not change.
    ///
    /// A level that a better one pushed out of the window is not named: the client cuts its book itself.
    pub(crate) fn book_update(&self, old: &Window, new: &Window, script: &Script) -> Option<String> {
        let changes = [Side::Bid, Side::Ask].map(|side| {
            let (old, new) = (&old[side as usize], &new[side as usize]);
            let gone = old.iter().filter(|(px, _)| script.book().qty(side, *px) == 0).map(|&(px, _)| (px, 0));
            gone.chain(new.iter().filter(|level| !old.contains(level)).copied()).collect()
        });
        let [bids, asks]: &Window = &changes;
        (!bids.is_empty() || !asks.is_empty()).then(|| self.book("update", &changes, new))
    }

    /// `ticker`, either kind.
    pub(crate) fn ticker(&self, kind: &str, script: &Script, day: &Day) -> String {
        let [(bid, bid_qty), (ask, ask_qty)] = script.book().touch();
        let last = script.last_trade();
        let symbol = &self.instrument.symbol;
        let mut out =
            format!("{{\"channel\":\"ticker\",\"type\":\"{kind}\",\"data\":[{{\"symbol\":\"{symbol}\",\"bid\":");
        self.px(&mut out, bid);
        out.push_str(",\"bid_qty\":");
        self.qty(&mut out, bid_qty);
        out.push_str(",\"ask\":");
        self.px(&mut out, ask);
        out.push_str(",\"ask_qty\":");
        self.qty(&mut out, ask_qty);
        out.push_str(",\"last\":");
        self.px(&mut out, last.px);
        out.push_str(",\"volume\":");
        self.qty(&mut out, day.qty);
        let vwap = if day.qty == 0 { last.px } else { (day.notional / day.qty) as i64 };
        for (key, px) in [("vwap", vwap), ("low", day.low_px), ("high", day.high_px)] {
            let _ = write!(out, ",\"{key}\":");
            self.px(&mut out, px);
        }
        out.push_str(",\"change\":");
        let change = last.px - day.open_px;
        if change < 0 {
            out.push('-');
        }
        self.px(&mut out, change.abs());
        let percent = change as f64 * 100.0 / day.open_px as f64;
        let _ = write!(out, ",\"change_pct\":{percent:.2},\"timestamp\":\"{}\"}}]}}", self.timestamp());
        out
    }

    /// `trade`, an update.
    pub(crate) fn trade(&self, trade: Trade) -> String {
        let symbol = &self.instrument.symbol;
        let side = if trade.maker == Side::Ask { "buy" } else { "sell" };
        let mut out = format!(
            "{{\"channel\":\"trade\",\"type\":\"update\",\"data\":[{{\"symbol\":\"{symbol}\",\"side\":\"{side}\",\
             \"price\":"
        );
        self.px(&mut out, trade.px);
        out.push_str(",\"qty\":");
        self.qty(&mut out, trade.qty);
        let (id, timestamp) = (trade.trade_id, self.timestamp());
        let _ = write!(out, ",\"ord_type\":\"market\",\"trade_id\":{id},\"timestamp\":\"{timestamp}\"}}]}}");
        out
    }

    /// The instrument's entry in the `instrument` snapshot. Increments stand in exponents, as Kraken prints them.
    pub(crate) fn pair(&self) -> String {
        let Instrument { symbol, base, quote, px_decimals, qty_decimals, standing, .. } = self.instrument;
        let status = standing.word("online", "maintenance");
        format!(
            "{{\"symbol\":\"{symbol}\",\"base\":\"{base}\",\"quote\":\"{quote}\",\"status\":\"{status}\",\
             \"qty_precision\":{qty_decimals},\"qty_increment\":{},\"price_precision\":{px_decimals},\
             \"cost_precision\":5,\"marginable\":false,\"has_index\":true,\"cost_min\":0.50,\
             \"price_increment\":{},\"qty_min\":{}}}",
            increment(*qty_decimals),
            increment(*px_decimals),
            increment(*qty_decimals),
        )
    }
}

/// 10^-`decimals` as a JSON number in the way of Python, which Kraken's gateway shows: `0.01`, `1e-08`.
fn increment(decimals: u32) -> String {
    match decimals {
        0 => "1".to_owned(),
        1..=4 => format!("{:.*}", decimals as usize, 10_f64.powi(-(decimals as i32))),
        _ => format!("1e-{decimals:02}"),
    }
}

/// Added to a connection's number: the venue's are beyond what a double can hold.
const CONNECTION_ID_BASE: u64 = 2_950_167_385_101_900_000;

/// The first frame of a connection.
pub(crate) fn status(connection: u64) -> String {
    format!(
        "{{\"channel\":\"status\",\"type\":\"update\",\"data\":[{{\"version\":\"2.0.10\",\"system\":\"online\",\
         \"api_version\":\"v2\",\"connection_id\":{}}}]}}",
        CONNECTION_ID_BASE + connection
    )
}

/// An acknowledgement or a refusal of one symbol.
pub(crate) fn answer(method: &str, request: &str, outcome: Result<&str, &str>, unix_us: u64) -> String {
    let mut time = String::with_capacity(27);
    rfc3339(&mut time, unix_us);
    match outcome {
        Ok(result) => format!(
            "{{\"method\":\"{method}\",{request}\"result\":{result},\"success\":true,\"time_in\":\"{time}\",\
             \"time_out\":\"{time}\"}}"
        ),
        Err(error) => format!(
            "{{\"error\":\"{error}\",\"method\":\"{method}\",{request}\"success\":false,\"time_in\":\"{time}\",\
             \"time_out\":\"{time}\"}}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::Venue;

    #[test]
    fn the_checksum_of_the_documents_example() {
        // Kraken's guide "Spot WebSockets v2: book checksum": BTC/USD, ten levels a side.
        let level = |px: i64, qty: i64| (px, qty);
        let asks = vec![
            level(452_852, 100_000),
            level(452_864, 154_571_953),
            level(452_866, 154_571_109),
            level(452_896, 154_560_911),
            level(452_902, 15_890_660),
            level(452_918, 154_553_491),
            level(452_947, 4_454_749),
            level(452_961, 35_380_000),
            level(452_975, 9_945_542),
            level(452_995, 18_772_827),
        ];
        let bids = vec![
            level(452_835, 10_000_000),
            level(452_834, 154_582_015),
            level(452_821, 10_000_000),
            level(452_810, 10_000_000),
            level(452_803, 154_592_586),
            level(452_790, 7_990_000),
            level(452_776, 3_310_103),
            level(452_775, 30_000_000),
            level(452_773, 154_602_737),
            level(452_766, 15_445_238),
        ];
        let instrument = &Instrument::list(Venue::Kraken, 1)[0];
        let printer = Printer { instrument, unix_us: 0 };
        assert_eq!(printer.checksum(&[bids, asks]), 3_310_070_434);
    }

    #[test]
    fn increments_are_numbers_that_a_naive_reader_trips_over() {
        assert_eq!(increment(8), "1e-08");
        assert_eq!(increment(5), "1e-05");
        assert_eq!(increment(2), "0.01");
    }
}
