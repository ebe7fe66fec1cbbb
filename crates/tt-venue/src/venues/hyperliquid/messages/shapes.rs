//! Hyperliquid's prices and the messages of an account, in the order of keys in which they are sent.

use super::{account, general};
use crate::event::{Event, EventBuffer, Ticker};
use crate::scan::{Cursor, keys};

keys! {
    BEST_LEVELS: "coin" "time" "bbo";
    CONTRACT: "funding" "openInterest" "prevDayPx" "dayNtlVlm" "premium" "oraclePx" "markPx" "midPx" "impactPxs"
        "dayBaseVlm";
    CANDLE: "t" "T" "s" "i" "o" "c" "h" "l" "v" "n";
    OF_USER: "isSnapshot" "user";
    ORDER: "coin" "side" "limitPx" "sz" "oid" "timestamp" "origSz" "cloid" "reduceOnly" "orderType" "tif";
    ORDER_UPDATE: "status" "statusTimestamp";
    FILL: "coin" "px" "sz" "side" "time" "startPosition" "dir" "closedPnl" "hash" "oid" "crossed" "fee" "tid" "cloid"
        "liquidation" "feeToken" "builderFee" "twapId";
    FUNDING: "time" "coin" "usdc" "szi" "fundingRate" "nSamples" "hash";
    ACCOUNT: "dex" "user";
    STATE: "marginSummary" "crossMarginSummary" "crossMaintenanceMarginUsed" "withdrawable" "assetPositions" "time";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"channel\":")?;
    let [b'"', topic @ .., b'"'] = cursor.raw()? else { return None };
    cursor.literal(b",\"data\":")?;
    let event = match topic {
        b"bbo" => {
            buffer.push_ticker(general::best_levels(&cursor.object(BEST_LEVELS)?).ok()?).ok()?;
            Event::Tickers
        }
        b"activeAssetCtx" => {
            cursor.literal(b"{\"coin\":\"")?;
            let symbol = cursor.symbol()?;
            cursor.literal(b",\"ctx\":")?;
            buffer.push_ticker(general::contract(symbol, &cursor.object(CONTRACT)?).ok()?).ok()?;
            cursor.literal(b"}")?;
            Event::Tickers
        }
        b"allMids" => mids(&mut cursor, buffer)?,
        b"candle" => {
            buffer.push_candle(general::candle(&cursor.object(CANDLE)?).ok()?).ok()?;
            Event::Candles
        }
        b"orderUpdates" => {
            cursor.list(|cursor| order(cursor, buffer))?;
            Event::OrderUpdates
        }
        b"userFills" | b"user" => {
            cursor.literal(b"{")?;
            let mut of_user = cursor.head(OF_USER, b"fills")?;
            cursor.list(|cursor| buffer.push_execution(account::execution(&cursor.object(FILL)?).ok()?).ok())?;
            cursor.tail(&mut of_user)?;
            Event::Account
        }
        b"userFundings" => {
            cursor.literal(b"{")?;
            let mut of_user = cursor.head(OF_USER, b"fundings")?;
            cursor.list(|cursor| buffer.push_balance(account::funding(&cursor.object(FUNDING)?).ok()?).ok())?;
            cursor.tail(&mut of_user)?;
            Event::Account
        }
        b"clearinghouseState" => {
            cursor.literal(b"{")?;
            let mut of_account = cursor.head(ACCOUNT, b"clearinghouseState")?;
            account::clearinghouse_state(&cursor.object(STATE)?, buffer).ok()?;
            cursor.tail(&mut of_account)?;
            Event::Account
        }
        _ => return None,
    };
    cursor.literal(b"}")?;
    cursor.end()?;
    Some(event)
}

fn mids(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<Event> {
    cursor.literal(b"{\"mids\":{")?;
    loop {
        cursor.literal(b"\"")?;
        let symbol = cursor.symbol()?;
        cursor.literal(b":\"")?;
        let mid_px = Some(cursor.quoted()?);
        if buffer.tickers().iter().any(|ticker| ticker.symbol == symbol) {
            return None;
        }
        buffer.push_ticker(Ticker { symbol, mid_px, ..Ticker::default() }).ok()?;
        if !cursor.passes(b",") {
            cursor.literal(b"}}")?;
            return Some(Event::Tickers);
        }
    }
}

fn order(cursor: &mut Cursor<'_>, buffer: &mut EventBuffer) -> Option<()> {
    cursor.literal(b"{\"order\":")?;
    let order = cursor.object(ORDER)?;
    cursor.literal(b",")?;
    let update = cursor.members(ORDER_UPDATE)?;
    buffer.push_order_update(account::order(&update, &order).ok()?).ok()
}
