//! Coinbase Exchange's messages of single orders, in the order of keys in which they are sent.

use super::general;
use crate::event::{Control, Event, EventBuffer};
use crate::scan::{Cursor, keys};

keys! {
    ORDER: "time" "product_id" "sequence" "order_id" "size" "price" "side" "order_type" "client-oid" "client_oid" "funds"
        "remaining_size" "reason" "cancel_reason" "old_size" "new_size" "old_price" "new_price" "old_funds" "new_funds";
    HEARTBEAT: "last_trade_id" "product_id" "sequence" "time";
    STOP: "product_id" "timestamp" "user_id" "profile_id" "order_id" "stop_type" "side" "stop_price" "size" "funds"
        "private";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"type\":")?;
    let [b'"', kind @ .., b'"'] = cursor.raw()? else { return None };
    cursor.literal(b",")?;
    let event = match kind {
        b"received" | b"open" | b"done" | b"change" => {
            let object = cursor.members(ORDER)?;
            if let Some(order) = general::book_order(kind, &object).ok()? {
                buffer.push_book_order(order).ok()?;
            }
            Event::BookOrders(general::book_orders(&object).ok()?)
        }
        b"heartbeat" => {
            cursor.members(HEARTBEAT)?;
            Event::Control(Control::Heartbeat)
        }
        b"activate" => {
            cursor.members(STOP)?;
            Event::Control(Control::Status)
        }
        _ => return None,
    };
    cursor.end()?;
    Some(event)
}
