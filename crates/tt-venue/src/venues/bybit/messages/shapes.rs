//! Bybit's tickers, candles, liquidations, and the messages of an account, in the order of keys in which they are sent.

use super::{account, general};
use crate::event::{Event, EventBuffer};
use crate::fields::{self, Keyed};
use crate::scan::{Cursor, Shape, keys};
use crate::symbol::Symbol;
use tt_model::Nanos;

keys! {
    ENVELOPE: "id" "topic" "type" "creationTime" "ts" "cs";
    TICKER: "symbol" "tickDirection" "price24hPcnt" "lastPrice" "prevPrice24h" "highPrice24h" "lowPrice24h"
        "prevPrice1h" "markPrice" "indexPrice" "openInterest" "openInterestValue" "turnover24h" "volume24h"
        "fundingIntervalHour" "fundingCap" "nextFundingTime" "fundingRate" "bid1Price" "bid1Size" "ask1Price"
        "ask1Size" "deliveryTime" "basisRate" "basisRateYear" "deliveryFeeRate" "predictedDeliveryPrice" "basis"
        "preOpenPrice" "preQty" "curPreListingPhase" "usdIndexPrice" "singleOpenLimit"
        "bidPrice" "bidSize" "bidIv" "askPrice" "askSize" "askIv" "markPriceIv" "underlyingPrice" "totalVolume"
        "totalTurnover" "delta" "gamma" "vega" "theta" "change24h";
    CANDLE: "start" "end" "interval" "open" "close" "high" "low" "volume" "turnover" "confirm" "timestamp";
    LIQUIDATION: "T" "s" "S" "v" "p";
    ORDER: "category" "symbol" "orderId" "side" "orderType" "cancelType" "price" "qty" "orderIv" "timeInForce"
        "orderStatus" "orderLinkId" "lastPriceOnCreated" "reduceOnly" "leavesQty" "leavesValue" "cumExecQty"
        "cumExecValue" "avgPrice" "blockTradeId" "positionIdx" "cumExecFee" "createdTime" "updatedTime" "rejectReason"
        "stopOrderType" "tpslMode" "triggerPrice" "takeProfit" "stopLoss" "tpTriggerBy" "slTriggerBy" "tpLimitPrice"
        "slLimitPrice" "triggerDirection" "triggerBy" "closeOnTrigger" "placeType" "smpType" "smpGroup" "smpOrderId"
        "feeCurrency" "createType" "isLeverage" "marketUnit" "cumFeeDetail" "closedPnl" "ocoTriggerBy"
        "slippageToleranceType" "slippageTolerance" "extraFees";
    EXECUTION: "category" "symbol" "closedSize" "execFee" "execId" "execPrice" "execQty" "execType" "execValue" "feeRate"
        "tradeIv" "markIv" "blockTradeId" "markPrice" "indexPrice" "underlyingPrice" "leavesQty" "orderId"
        "isMaker" "orderLinkId" "orderPrice" "orderQty" "orderType" "stopOrderType" "side" "execTime" "isLeverage" "seq"
        "createType" "feeCurrency" "execPnl" "marketUnit" "extraFees";
    POSITION: "positionIdx" "tradeMode" "riskId" "riskLimitValue" "symbol" "side" "size" "entryPrice" "sessionAvgPrice"
        "leverage" "positionValue" "positionBalance" "markPrice" "positionIM" "positionMM" "positionIMByMp"
        "positionMMByMp" "takeProfit" "stopLoss" "trailingStop" "unrealisedPnl" "cumRealisedPnl" "curRealisedPnl"
        "createdTime" "updatedTime" "tpslMode" "liqPrice" "bustPrice" "category" "positionStatus" "adlRankIndicator"
        "autoAddMargin" "leverageSysUpdatedTime" "mmrSysUpdatedTime" "seq" "isReduceOnly" "openTime" "breakEvenPrice";
    ACCOUNT: "accountIMRate" "accountMMRate" "accountIMRateByMp" "accountMMRateByMp" "accountLTV" "totalEquity"
        "totalWalletBalance" "totalMarginBalance" "totalAvailableBalance" "totalPerpUPL" "totalPerpUpl"
        "totalInitialMargin" "totalInitialMarginByMp" "totalMaintenanceMargin" "totalMaintenanceMarginByMp" "accountType";
    COIN: "coin" "equity" "usdValue" "walletBalance" "availableToWithdraw" "availableToBorrow" "borrowAmount"
        "accruedInterest" "totalOrderIM" "totalPositionIM" "totalPositionMM" "unrealisedPnl" "cumRealisedPnl" "bonus"
        "collateralSwitch" "marginCollateral" "locked" "spotHedgingQty" "spotBorrow" "free";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{")?;
    let mut envelope = cursor.head(ENVELOPE, b"data")?;
    let topic = fields::text(&envelope, b"topic").ok()?;
    let mut parts = topic.splitn(2, |byte| *byte == b'.');
    let kind = parts.next()?;
    let event = match kind {
        b"tickers" => {
            let ticker = cursor.object(TICKER)?;
            // Its time may follow.
            cursor.tail(&mut envelope)?;
            let ts_event = general::milliseconds(envelope.get(b"ts")?).ok()?;
            buffer.push_ticker(general::ticker(&ticker, ts_event).ok()?).ok()?;
            cursor.end()?;
            return Some(Event::Tickers);
        }
        b"kline" => {
            let mut rest = parts.next()?.splitn(2, |byte| *byte == b'.');
            let symbol = Symbol::new(rest.nth(1)?).ok()?;
            cursor.list(|cursor| buffer.push_candle(general::candle(symbol, &cursor.object(CANDLE)?).ok()?).ok())?;
            Event::Candles
        }
        b"allLiquidation" => {
            cursor.list(|cursor| {
                buffer.push_liquidation(general::liquidation(&cursor.object(LIQUIDATION)?).ok()?).ok()
            })?;
            Event::Liquidations
        }
        b"order" => {
            cursor.list(|cursor| buffer.push_order_update(account::order(&cursor.object(ORDER)?).ok()?).ok())?;
            Event::OrderUpdates
        }
        b"execution" => {
            cursor.list(|cursor| account::take_execution(&cursor.object(EXECUTION)?, buffer).ok())?;
            Event::Account
        }
        b"position" => {
            cursor.list(|cursor| buffer.push_position(account::position(&cursor.object(POSITION)?).ok()?).ok())?;
            Event::Account
        }
        b"wallet" => wallet(&mut cursor, &envelope, buffer)?,
        _ => return None,
    };
    cursor.tail(&mut envelope)?;
    cursor.end()?;
    Some(event)
}

fn wallet<const N: usize>(cursor: &mut Cursor<'_>, envelope: &Shape<'_, N>, buffer: &mut EventBuffer) -> Option<Event> {
    let ts_event: Nanos = fields::unix_ms(envelope, b"creationTime").ok()?;
    cursor.list(|cursor| {
        cursor.literal(b"{")?;
        let mut account = cursor.head(ACCOUNT, b"coin")?;
        cursor.list(|cursor| buffer.push_balance(account::balance(&cursor.object(COIN)?, ts_event).ok()?).ok())?;
        cursor.tail(&mut account)
    })?;
    Some(Event::Account)
}
