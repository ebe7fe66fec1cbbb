//! The account of the demonstration: orders that rest at the touch, fill in parts or are cancelled.

mod frames;

use std::fmt::Write;

use crate::{
    digits::decimal,
    instrument::{Instrument, Venue},
};

/// State of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    New,
    PartiallyFilled,
    Filled,
    Canceled,
}

impl Status {
    const fn name(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::PartiallyFilled => "PARTIALLY_FILLED",
            Self::Filled => "FILLED",
            Self::Canceled => "CANCELED",
        }
    }

    const fn execution(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::PartiallyFilled | Self::Filled => "TRADE",
            Self::Canceled => "CANCELED",
        }
    }
}

/// The one order that is on its way.
struct Working {
    instrument: Instrument,
    buys: bool,
    px: i64,
    qty: i64,
    filled_qty: i64,
    last_qty: i64,
    status: Status,
}

/// The account's orders, one after the other.
#[derive(Default)]
pub(crate) struct Orders {
    order_id: u64,
    trade_id: u64,
    working: Option<Working>,
}

impl Orders {
    /// The next event: a new order at the touch, or what becomes of the one that rests. Every third is cancelled.
    pub(crate) fn next(
        &mut self,
        venue: Venue,
        instrument: &Instrument,
        [(bid, _), (ask, _)]: [(i64, i64); 2],
        unix_us: u64,
    ) -> String {
        let working = match self.working.take() {
            None => {
                self.order_id += 1;
                let buys = self.order_id % 2 == 1;
                let qty = 1000 + (self.order_id as i64 % 7) * 500;
                let px = if buys { bid } else { ask };
                let instrument = instrument.clone();
                Working { instrument, buys, px, qty, filled_qty: 0, last_qty: 0, status: Status::New }
            }
            Some(mut working) => {
                working.last_qty = 0;
                working.status = match working.status {
                    Status::New => {
                        working.last_qty = working.qty / 2;
                        Status::PartiallyFilled
                    }
                    Status::PartiallyFilled | Status::Filled | Status::Canceled if self.order_id.is_multiple_of(3) => {
                        Status::Canceled
                    }
                    Status::PartiallyFilled | Status::Filled | Status::Canceled => {
                        working.last_qty = working.qty - working.filled_qty;
                        Status::Filled
                    }
                };
                working.filled_qty += working.last_qty;
                self.trade_id += u64::from(working.last_qty > 0);
                working
            }
        };
        let event = match venue {
            Venue::BinanceSpot => self.execution_report(&working, unix_us / 1000),
            Venue::BinanceUsdm => self.order_trade_update(&working, unix_us / 1000),
            Venue::Kraken => self.executions(&working, unix_us),
            Venue::Okx => self.okx_orders(&working, unix_us / 1000),
            Venue::Bybit => self.bybit_order(&working, unix_us / 1000),
            Venue::Deribit => self.changes(&working, unix_us / 1000),
        };
        if matches!(working.status, Status::New | Status::PartiallyFilled) {
            self.working = Some(working);
        }
        event
    }

    /// Binance spot's `executionReport`.
    fn execution_report(&self, working: &Working, time_ms: u64) -> String {
        let (order_id, status) = (self.order_id, working.status);
        let text = |mantissa: i128, decimals: u32| {
            let mut out = String::new();
            decimal(&mut out, mantissa, decimals, 8);
            out
        };
        let Instrument { symbol, base, px_decimals, qty_decimals, .. } = &working.instrument;
        let qty = |steps: i64| text(i128::from(steps), *qty_decimals);
        let side = if working.buys { "BUY" } else { "SELL" };
        let filled = working.last_qty > 0;
        let last_px = if filled { text(i128::from(working.px), *px_decimals) } else { "0.00000000".to_owned() };
        let trade_id = if filled { self.trade_id as i64 } else { -1 };
        let asset = if filled { format!("\"{base}\"") } else { "null".to_owned() };
        let product = |steps: i64| text(i128::from(steps) * i128::from(working.px), px_decimals + qty_decimals);
        let mut out = format!(
            "{{\"e\":\"executionReport\",\"E\":{time_ms},\"s\":\"{symbol}\",\"c\":\"tt-{order_id}\",\"S\":\"{side}\",\
             \"o\":\"LIMIT\",\"f\":\"GTC\",\"q\":\"{}\",\"p\":\"{}\",\"P\":\"0.00000000\",\"F\":\"0.00000000\",\"g\":-1,",
            qty(working.qty),
            text(i128::from(working.px), *px_decimals),
        );
        let _ = write!(
            out,
            "\"C\":\"\",\"x\":\"{}\",\"X\":\"{}\",\"r\":\"NONE\",\"i\":{order_id},\"l\":\"{}\",\"z\":\"{}\",\"L\":\"{last_px}\",\
             \"n\":\"0\",\"N\":{asset},\"T\":{time_ms},\"t\":{trade_id},\"I\":{order_id},\"w\":{},\"m\":{filled},\"M\":false,\
             \"O\":{time_ms},\"Z\":\"{}\",\"Y\":\"{}\",\"Q\":\"0.00000000\",\"W\":{time_ms},\"V\":\"NONE\"}}",
            status.execution(),
            status.name(),
            qty(working.last_qty),
            qty(working.filled_qty),
            !matches!(status, Status::Filled | Status::Canceled),
            product(working.filled_qty),
            product(working.last_qty),
        );
        out
    }

    /// USD-M's `ORDER_TRADE_UPDATE`.
    fn order_trade_update(&self, working: &Working, time_ms: u64) -> String {
        let (order_id, status) = (self.order_id, working.status);
        let Instrument { symbol, px_decimals, qty_decimals, .. } = &working.instrument;
        let text = |steps: i64, decimals: u32| {
            let mut out = String::new();
            decimal(&mut out, steps, decimals, decimals);
            out
        };
        let side = if working.buys { "BUY" } else { "SELL" };
        let px = text(working.px, *px_decimals);
        let filled = working.last_qty > 0;
        let [average_px, last_px] = [working.filled_qty > 0, filled].map(|any| if any { px.as_str() } else { "0" });
        let trade_id = if filled { self.trade_id } else { 0 };
        format!(
            "{{\"e\":\"ORDER_TRADE_UPDATE\",\"E\":{time_ms},\"T\":{time_ms},\"o\":{{\"s\":\"{symbol}\",\
             \"c\":\"tt-{order_id}\",\"S\":\"{side}\",\"o\":\"LIMIT\",\"f\":\"GTC\",\"q\":\"{}\",\"p\":\"{px}\",\
             \"ap\":\"{average_px}\",\"sp\":\"0\",\"x\":\"{}\",\"X\":\"{}\",\"i\":{order_id},\"l\":\"{}\",\"z\":\"{}\",\
             \"L\":\"{last_px}\",\"N\":\"USDT\",\"n\":\"0\",\"T\":{time_ms},\"t\":{trade_id},\"b\":\"0\",\"a\":\"0\",\
             \"m\":{filled},\"R\":false,\"wt\":\"CONTRACT_PRICE\",\"ot\":\"LIMIT\",\"ps\":\"BOTH\",\"cp\":false,\
             \"rp\":\"0\",\"pP\":false,\"si\":0,\"ss\":0,\"V\":\"NONE\"}}}}",
            text(working.qty, *qty_decimals),
            status.execution(),
            status.name(),
            text(working.last_qty, *qty_decimals),
            text(working.filled_qty, *qty_decimals),
        )
    }
}
