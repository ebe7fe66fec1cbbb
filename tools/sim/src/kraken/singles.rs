//! Kraken's `level3`: every order of a book, with a checksum over the orders of its top.

use std::fmt::Write;

use super::{CHECKSUM_LEVELS, Printer};
use crate::{
    crc::crc32,
    digits::rfc3339,
    script::{Script, Side},
    singles::{OrderLevel, OrderWindow, SingleOrder},
};

/// An event of an order: its name, price and the order after it.
type OrderEvent<'a> = (&'static str, i64, &'a SingleOrder);

impl Printer<'_> {
    fn order(&self, out: &mut String, (event, px, order): &OrderEvent<'_>) {
        if !out.ends_with('[') {
            out.push(',');
        }
        out.push('{');
        if !event.is_empty() {
            let _ = write!(out, "\"event\":\"{event}\",");
        }
        let _ = write!(out, "\"order_id\":\"{}\",\"limit_price\":", order.id);
        self.px(out, *px);
        out.push_str(",\"order_qty\":");
        self.qty(out, order.qty);
        out.push_str(",\"timestamp\":\"");
        rfc3339(out, order.unix_us);
        out.push_str("\"}");
    }

    /// The checksum of the orders of a book's top, from the digits that go over the wire.
    fn orders_checksum(&self, [bids, asks]: &OrderWindow) -> u32 {
        let mut text = String::with_capacity(2048);
        let mut digits = String::new();
        for (px, orders) in asks.iter().take(CHECKSUM_LEVELS).chain(bids.iter().take(CHECKSUM_LEVELS)) {
            for order in orders {
                for number in 0..2 {
                    digits.clear();
                    if number == 0 {
                        self.px(&mut digits, *px);
                    } else {
                        self.qty(&mut digits, order.qty);
                    }
                    digits.retain(|digit| digit != '.');
                    text.push_str(digits.trim_start_matches('0'));
                }
            }
        }
        crc32(text.as_bytes())
    }

    /// `level3`, either kind: `events` are sent, `window` is what the client then holds.
    fn orders(&self, kind: &str, [bids, asks]: &[Vec<OrderEvent<'_>>; 2], window: &OrderWindow) -> String {
        let mut out = String::with_capacity(256 + 128 * (bids.len() + asks.len()));
        let (symbol, checksum) = (&self.instrument.symbol, self.orders_checksum(window));
        let _ = write!(
            out,
            "{{\"channel\":\"level3\",\"type\":\"{kind}\",\"data\":[{{\"symbol\":\"{symbol}\",\"checksum\":{checksum},\
             \"bids\":["
        );
        bids.iter().for_each(|event| self.order(&mut out, event));
        out.push_str("],\"asks\":[");
        asks.iter().for_each(|event| self.order(&mut out, event));
        let _ = write!(out, "],\"timestamp\":\"{}\"}}]}}", self.timestamp());
        out
    }

    /// Every order of a window.
    pub(crate) fn orders_snapshot(&self, window: &OrderWindow) -> String {
        let all = [0, 1].map(|side| {
            window[side].iter().flat_map(|(px, orders)| orders.iter().map(move |order| ("", *px, order))).collect()
        });
        self.orders("snapshot", &all, window)
    }

    /// Returns the update from `old` to `new`; `None` if the window did not change.
    ///
    /// As in `book`, a level that a better one pushed out is not named; one that enters is sent whole.
    pub(crate) fn orders_update(&self, old: &OrderWindow, new: &OrderWindow, script: &Script) -> Option<String> {
        let events = [Side::Bid, Side::Ask].map(|side| {
            let (old, new) = (&old[side as usize], &new[side as usize]);
            let gone = old.iter().filter(|(px, _)| script.book().qty(side, *px) == 0);
            let gone = gone.flat_map(|(px, orders)| orders.iter().map(move |order| ("delete", *px, order)));
            gone.chain(new.iter().flat_map(|level| changes(held(old, level.0), level))).collect::<Vec<_>>()
        });
        events.iter().any(|events| !events.is_empty()).then(|| self.orders("update", &events, new))
    }
}

/// The orders that a window has at a price.
fn held(window: &[OrderLevel], px: i64) -> &[SingleOrder] {
    window.iter().find(|level| level.0 == px).map_or(&[], |level| &level.1)
}

/// From the `old` orders of a level to its new ones: none of those that stay changes its place.
fn changes<'a>(old: &'a [SingleOrder], (px, new): &'a OrderLevel) -> Vec<OrderEvent<'a>> {
    let find = |orders: &'a [SingleOrder], id: &str| orders.iter().find(|order| order.id == id);
    let gone = old.iter().filter(|order| find(new, &order.id).is_none()).map(|order| ("delete", *px, order));
    let kept = new.iter().filter_map(|order| match find(old, &order.id) {
        None => Some(("add", *px, order)),
        Some(before) if before.qty != order.qty => Some(("modify", *px, order)),
        Some(_) => None,
    });
    gone.chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::{Instrument, Venue};

    #[test]
    fn a_change_names_orders_that_go_change_and_come() {
        let order = |id: &str, qty: i64| SingleOrder { id: id.to_owned(), qty, unix_us: 1_700_000_000_000_000 };
        let instrument = &Instrument::list(Venue::Kraken, 1)[0];
        let printer = Printer { instrument, unix_us: 1_700_000_000_000_000 };
        let script = Script::new(instrument, 1);
        let [(bid, _), _] = script.book().touch();
        let window = |orders: Vec<SingleOrder>| [vec![(bid, orders)], Vec::new()];
        let (old, new) = (window(vec![order("A", 1), order("B", 5)]), window(vec![order("B", 3), order("C", 2)]));
        let frame = printer.orders_update(&old, &new, &script).unwrap();
        let frame: serde_json::Value = serde_json::from_str(&frame).unwrap();
        let bids = frame["data"][0]["bids"].as_array().unwrap();
        let event = |at: usize| (bids[at]["event"].as_str().unwrap(), bids[at]["order_id"].as_str().unwrap());
        assert_eq!([event(0), event(1), event(2)], [("delete", "A"), ("modify", "B"), ("add", "C")]);
        assert_eq!(bids[1]["order_qty"].to_string(), "0.00000003");
        assert!(printer.orders_update(&old, &old, &script).is_none());
    }
}
