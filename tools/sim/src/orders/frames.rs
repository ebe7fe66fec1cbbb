//! The account's orders in the formats of Kraken, OKX, Bybit and Deribit.

use super::{Orders, Status, Working};
use crate::{
    digits::{decimal, rfc3339},
    instrument::Venue,
};

/// A working order's numbers as its venue prints them.
struct Printed {
    px: String,
    qty: String,
    filled_qty: String,
    last_qty: String,
    has_filled: bool,
}

fn print(venue: Venue, working: &Working) -> Printed {
    let instrument = &working.instrument;
    let text = |steps: i64, decimals: u32, places: u32| {
        let mut out = String::new();
        decimal(&mut out, steps, decimals, places);
        out
    };
    let qty = |steps: i64| text(steps, instrument.qty_decimals, instrument.qty_places(venue));
    Printed {
        px: text(working.px, instrument.px_decimals, instrument.px_places(venue)),
        qty: qty(working.qty),
        filled_qty: qty(working.filled_qty),
        last_qty: qty(working.last_qty),
        has_filled: working.last_qty > 0,
    }
}

impl Orders {
    /// Kraken's `executions`.
    pub(super) fn executions(&self, working: &Working, unix_us: u64) -> String {
        let Printed { px, qty, filled_qty, last_qty, has_filled } = print(Venue::Kraken, working);
        let (order_id, trade_id, symbol) = (self.order_id, self.trade_id, &working.instrument.symbol);
        let side = if working.buys { "buy" } else { "sell" };
        let (kind, status) = match working.status {
            Status::New => ("new", "new"),
            Status::PartiallyFilled => ("trade", "partially_filled"),
            Status::Filled => ("trade", "filled"),
            Status::Canceled => ("canceled", "canceled"),
        };
        let mut time = String::new();
        rfc3339(&mut time, unix_us);
        let fill = if has_filled {
            format!(
                "\"exec_id\":\"T{trade_id}\",\"last_qty\":{last_qty},\"last_price\":{px},\"liquidity_ind\":\"m\",\
                 \"fees\":[{{\"asset\":\"{}\",\"qty\":0.00}}],",
                working.instrument.quote
            )
        } else {
            String::new()
        };
        format!(
            "{{\"channel\":\"executions\",\"type\":\"update\",\"data\":[{{\"order_id\":\"O{order_id}\",\
             \"cl_ord_id\":\"tt-{order_id}\",\"exec_type\":\"{kind}\",{fill}\"symbol\":\"{symbol}\",\"side\":\"{side}\",\
             \"order_type\":\"limit\",\"order_qty\":{qty},\"limit_price\":{px},\"cum_qty\":{filled_qty},\
             \"order_status\":\"{status}\",\"time_in_force\":\"GTC\",\"timestamp\":\"{time}\"}}],\"sequence\":{}}}",
            order_id + trade_id
        )
    }

    /// OKX's `orders`.
    pub(super) fn okx_orders(&self, working: &Working, time_ms: u64) -> String {
        let Printed { px, qty, filled_qty, last_qty, has_filled } = print(Venue::Okx, working);
        let (order_id, symbol) = (self.order_id, &working.instrument.symbol);
        let side = if working.buys { "buy" } else { "sell" };
        let state = match working.status {
            Status::New => "live",
            Status::PartiallyFilled => "partially_filled",
            Status::Filled => "filled",
            Status::Canceled => "canceled",
        };
        let (fill_px, trade_id) =
            if has_filled { (px.as_str(), self.trade_id.to_string()) } else { ("", String::new()) };
        format!(
            "{{\"arg\":{{\"channel\":\"orders\",\"instType\":\"ANY\"}},\"data\":[{{\"accFillSz\":\"{filled_qty}\",\
             \"avgPx\":\"{fill_px}\",\"cTime\":\"{time_ms}\",\"clOrdId\":\"tt{order_id}\",\"execType\":\"M\",\"fee\":\"0\",\
             \"feeCcy\":\"{}\",\"fillPx\":\"{fill_px}\",\"fillSz\":\"{last_qty}\",\"fillTime\":\"{time_ms}\",\
             \"instId\":\"{symbol}\",\"instType\":\"SPOT\",\"ordId\":\"{order_id}\",\"ordType\":\"limit\",\"posSide\":\"net\",\
             \"px\":\"{px}\",\"side\":\"{side}\",\"state\":\"{state}\",\"sz\":\"{qty}\",\"tdMode\":\"cash\",\
             \"tradeId\":\"{trade_id}\",\"uTime\":\"{time_ms}\"}}]}}",
            working.instrument.quote
        )
    }

    /// Bybit's `order`.
    pub(super) fn bybit_order(&self, working: &Working, time_ms: u64) -> String {
        let Printed { px, qty, filled_qty, .. } = print(Venue::Bybit, working);
        let (order_id, symbol) = (self.order_id, &working.instrument.symbol);
        let side = if working.buys { "Buy" } else { "Sell" };
        let status = match working.status {
            Status::New => "New",
            Status::PartiallyFilled => "PartiallyFilled",
            Status::Filled => "Filled",
            Status::Canceled => "Cancelled",
        };
        format!(
            "{{\"id\":\"{order_id}-{time_ms}\",\"topic\":\"order\",\"creationTime\":{time_ms},\"data\":[{{\
             \"category\":\"linear\",\"symbol\":\"{symbol}\",\"orderId\":\"{order_id}\",\"orderLinkId\":\"tt-{order_id}\",\
             \"side\":\"{side}\",\"orderType\":\"Limit\",\"price\":\"{px}\",\"qty\":\"{qty}\",\"timeInForce\":\"GTC\",\
             \"orderStatus\":\"{status}\",\"cumExecQty\":\"{filled_qty}\",\"cumExecFee\":\"0\",\"reduceOnly\":false,\
             \"positionIdx\":0,\"createdTime\":\"{time_ms}\",\"updatedTime\":\"{time_ms}\",\"rejectReason\":\"EC_NoError\"}}]}}"
        )
    }

    /// Deribit's `user.changes`.
    pub(super) fn changes(&self, working: &Working, time_ms: u64) -> String {
        let Printed { px, qty, filled_qty, last_qty, has_filled } = print(Venue::Deribit, working);
        let (order_id, trade_id, symbol) = (self.order_id, self.trade_id, &working.instrument.symbol);
        let direction = if working.buys { "buy" } else { "sell" };
        let state = match working.status {
            Status::New | Status::PartiallyFilled => "open",
            Status::Filled => "filled",
            Status::Canceled => "cancelled",
        };
        let trade = if has_filled {
            format!(
                "{{\"trade_id\":\"{trade_id}\",\"order_id\":\"{order_id}\",\"instrument_name\":\"{symbol}\",\
                 \"direction\":\"{direction}\",\"price\":{px},\"amount\":{last_qty},\"fee\":0.0,\"fee_currency\":\"{}\",\
                 \"liquidity\":\"M\",\"timestamp\":{time_ms}}}",
                working.instrument.base
            )
        } else {
            String::new()
        };
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{\"channel\":\"user.changes.any.any.raw\",\
             \"data\":{{\"instrument_name\":\"{symbol}\",\"trades\":[{trade}],\"positions\":[],\"orders\":[{{\
             \"order_id\":\"{order_id}\",\"label\":\"tt-{order_id}\",\"instrument_name\":\"{symbol}\",\
             \"direction\":\"{direction}\",\"order_type\":\"limit\",\"order_state\":\"{state}\",\"price\":{px},\
             \"amount\":{qty},\"filled_amount\":{filled_qty},\"last_update_timestamp\":{time_ms}}}]}}}}}}"
        )
    }
}
