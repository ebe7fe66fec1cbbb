//! OKX's tickers, candles, liquidations, and the messages of an account, in the order of keys in which they are sent.

use super::{account, general};
use crate::event::{Event, EventBuffer};
use crate::fields;
use crate::scan::{Cursor, keys};

keys! {
    ARGUMENT: "channel" "instType" "instFamily" "instId" "uid" "ccy";
    ENVELOPE: "action" "eventType" "curPage" "lastPage";
    TICKER: "instType" "instId" "last" "lastSz" "askPx" "askSz" "bidPx" "bidSz" "open24h" "high24h" "low24h" "sodUtc0"
        "sodUtc8" "volCcy24h" "vol24h" "ts" "seqId";
    BEST_LEVELS: "asks" "bids" "ts" "seqId" "checksum" "prevSeqId";
    CONTRACT: "formulaType" "fundingRate" "fundingTime" "impactValue" "instFamily" "instId" "instType" "interestRate"
        "markPx" "idxPx" "open24h" "high24h" "low24h" "sodUtc0" "sodUtc8" "method" "maxFundingRate" "minFundingRate"
        "nextFundingRate" "nextFundingTime" "oi" "oiCcy" "oiUsd" "premium" "settFundingRate" "settState" "ts";
    LIQUIDATION: "details" "instFamily" "instId" "instType" "uly";
    ORDER: "accFillSz" "algoClOrdId" "algoId" "amendResult" "amendSource" "attachAlgoClOrdId" "attachAlgoOrds" "avgPx"
        "cTime" "cancelSource" "cancelSourceReason" "category" "ccy" "clOrdId" "code" "execType" "fee" "feeCcy"
        "fillFee" "fillFeeCcy" "fillFwdPx" "fillMarkPx" "fillMarkVol" "fillNotionalUsd" "fillPnl" "fillPx" "fillPxUsd"
        "fillPxVol" "fillSz" "fillTime" "instId" "instType" "isTpLimit" "lever" "linkedAlgoOrd" "msg" "notionalUsd"
        "ordId" "ordType" "pnl" "posSide" "px" "reduceOnly" "reqId" "side" "slOrdPx" "slTriggerPx" "source" "state"
        "stpId" "stpMode" "sz" "tag" "tdMode" "tgtCcy" "tpOrdPx" "tpTriggerPx" "tradeId" "uTime";
    CONDITIONAL: "algoId" "algoClOrdId" "clOrdId" "ordId" "instId" "instType" "ordType" "state" "side" "posSide" "sz"
        "triggerPx" "triggerPxType" "ordPx" "tdMode" "lever" "reduceOnly" "actualPx" "actualSz" "notionalUsd"
        "triggerTime" "tag" "cTime" "uTime";
    ACCOUNT: "adjEq" "availEq" "borrowFroz" "imr" "isoEq" "mgnRatio" "mmr" "notionalUsd" "notionalUsdForBorrow"
        "notionalUsdForFutures" "notionalUsdForOption" "notionalUsdForSwap" "ordFroz" "totalEq" "uTime" "upl";
    BALANCE: "accAvgPx" "availBal" "availEq" "borrowFroz" "cashBal" "ccy" "clSpotInUseAmt" "coinUsdPrice"
        "colBorrAutoConversion" "collateralEnabled" "collateralRestrict" "crossLiab" "disEq" "eq" "eqUsd" "fixedBal"
        "frozenBal" "imr" "interest" "isoEq" "isoLiab" "isoUpl" "liab" "maxLoan" "maxSpotInUseAmt" "mgnRatio" "mmr"
        "notionalLever" "openAvgPx" "ordFrozen" "rewardBal" "smtSyncEq" "spotBal" "spotCopyTradingEq" "spotInUseAmt"
        "spotIsoBal" "spotUpl" "spotUplRatio" "stgyEq" "totalPnl" "totalPnlRatio" "twap" "uTime" "upl" "uplLiab";
    POSITION: "instId" "instType" "mgnMode" "posId" "posSide" "pos" "baseBal" "ccy" "fee" "lever" "last" "markPx" "liqPx"
        "mmr" "interest" "tradeId" "notionalUsd" "avgPx" "upl" "uplRatio" "uTime" "margin" "mgnRatio" "adl" "cTime"
        "realizedPnl" "uplLastPx" "uplRatioLastPx" "availPos" "bePx" "fundingFee" "idxPx" "liqPenalty" "optVal"
        "pendingCloseOrdLiabVal" "pnl" "posCcy" "quoteBal" "quoteBorrowed" "quoteInterest" "spotInUseAmt"
        "spotInUseCcy" "usdPx" "imr" "pTime" "liab" "liabCcy" "settledPnl";
}

/// Reads one frame, `None` where anything is not as expected.
pub(in crate::venues) fn parse(frame: &[u8], buffer: &mut EventBuffer) -> Option<Event> {
    let mut cursor = Cursor::new(frame);
    cursor.literal(b"{\"arg\":")?;
    let argument = cursor.object(ARGUMENT)?;
    cursor.literal(b",")?;
    let topic = fields::text(&argument, b"channel").ok()?;
    let mut envelope = cursor.head(ENVELOPE, b"data")?;
    let event = match topic {
        b"tickers" => {
            cursor.list(|cursor| buffer.push_ticker(general::ticker(topic, &cursor.object(TICKER)?).ok()?).ok())?;
            Event::Tickers
        }
        b"mark-price" | b"index-tickers" | b"funding-rate" | b"open-interest" => {
            cursor.list(|cursor| buffer.push_ticker(general::ticker(topic, &cursor.object(CONTRACT)?).ok()?).ok())?;
            Event::Tickers
        }
        b"bbo-tbt" => {
            let symbol = fields::symbol(&argument, b"instId").ok()?;
            cursor.literal(b"[")?;
            let ticker = general::best_levels(symbol, &cursor.object(BEST_LEVELS)?).ok()?;
            cursor.literal(b"]")?;
            buffer.push_ticker(ticker).ok()?;
            Event::Tickers
        }
        b"liquidation-orders" => {
            cursor.list(|cursor| general::liquidations(&cursor.object(LIQUIDATION)?, buffer).ok())?;
            Event::Liquidations
        }
        b"orders" => {
            cursor.list(|cursor| buffer.push_order_update(account::order(&cursor.object(ORDER)?).ok()?).ok())?;
            Event::OrderUpdates
        }
        b"orders-algo" => {
            cursor.list(|cursor| {
                buffer.push_order_update(account::conditional_order(&cursor.object(CONDITIONAL)?).ok()?).ok()
            })?;
            Event::OrderUpdates
        }
        b"account" => {
            cursor.list(|cursor| {
                cursor.literal(b"{")?;
                let mut account = cursor.head(ACCOUNT, b"details")?;
                cursor.list(|cursor| buffer.push_balance(account::balance(&cursor.object(BALANCE)?).ok()?).ok())?;
                cursor.tail(&mut account)
            })?;
            Event::Account
        }
        b"positions" => {
            cursor.list(|cursor| buffer.push_position(account::position(&cursor.object(POSITION)?).ok()?).ok())?;
            Event::Account
        }
        _ => {
            let timeframe = general::timeframe(topic.strip_prefix(b"candle")?).ok()?;
            let symbol = fields::symbol(&argument, b"instId").ok()?;
            general::candles(timeframe, symbol, cursor.raw()?, buffer).ok()?
        }
    };
    cursor.tail(&mut envelope)?;
    cursor.end()?;
    if topic == b"positions" {
        account::cover_positions(&envelope, buffer).ok()?;
    }
    Some(event)
}
