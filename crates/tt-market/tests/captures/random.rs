//! Frames drawn at random in the forms that the venues document, whole and broken: scanner, general path and JSON
//! library read the same.

use crate::parsers::{agree, compare, parse, shuffle};
use proptest::prelude::*;
use tt_venue::Venue;

/// Forms of frames: `N` is any number, `I` for a whole one, `S` for a symbol, `T` for a time, `L` for the word of
/// a side; `[x*]` for a list of any length.
const FORMS: &[(Venue, &str)] = &[
    (Venue::CoinbaseExchange, r#"{"type":"l2update","product_id":"S","changes":[["L","N","N"]*],"time":"T"}"#),
    (Venue::CoinbaseExchange, r#"{"type":"snapshot","product_id":"S","asks":[["N","N"]*],"bids":[["N","N"]*]}"#),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"snapshot","product_id":"S","bids":[["N","N"]*],"asks":[["N","N"]*],"time":"T"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"match","trade_id":I,"maker_order_id":"m","taker_order_id":"t","side":"L","size":"N","price":"N","product_id":"S","sequence":I,"time":"T"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"ticker","sequence":I,"product_id":"S","price":"N","open_24h":"1","volume_24h":"1","low_24h":"1","high_24h":"1","volume_30d":"1","best_bid":"N","best_ask":"N","side":"L","time":"T","trade_id":I,"last_size":"1"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"ticker","sequence":I,"product_id":"S","price":"N","open_24h":"1","volume_24h":"1","low_24h":"1","high_24h":"1","volume_30d":"1","best_bid":"N","best_bid_size":"N","best_ask":"N","best_ask_size":"N","side":"L","time":"T","trade_id":I,"last_size":"1"}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"l2_data","client_id":"","timestamp":"T","sequence_num":I,"events":[{"type":"update","product_id":"S","updates":[{"side":"bid","event_time":"T","price_level":"N","new_quantity":"N"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"l2_data","timestamp":"T","sequence_num":I,"events":[{"type":"snapshot","product_id":"S","updates":[{"side":"offer","event_time":"T","price_level":"N","new_quantity":"N"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"market_trades","timestamp":"T","sequence_num":I,"events":[{"type":"update","trades":[{"trade_id":"I","product_id":"S","price":"N","size":"N","side":"SELL","time":"T"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"ticker","timestamp":"T","sequence_num":I,"events":[{"type":"update","tickers":[{"product_id":"S","price":"N","best_bid":"N","best_bid_quantity":"N","best_ask":"N","best_ask_quantity":"N"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"candles","timestamp":"T","sequence_num":I,"events":[{"type":"update","candles":[{"start":"1775521800","high":"N","low":"N","open":"N","close":"N","volume":"N","product_id":"S"}*]}]}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"l2Book","data":{"coin":"S","time":1737918843542,"levels":[[{"px":"N","sz":"N","n":I}*],[{"px":"N","sz":"N","n":I}*]]}}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"trades","data":[{"coin":"S","side":"B","px":"N","sz":"N","time":1737918794873,"hash":"0x0","tid":I,"users":["0x1","0x2"]}*]}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"bbo","data":{"coin":"S","time":1737918794873,"bbo":[{"px":"N","sz":"N","n":1},{"px":"N","sz":"N","n":I}]}}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"activeAssetCtx","data":{"coin":"S","ctx":{"funding":"-N","openInterest":"N","oraclePx":"N","markPx":"N","midPx":"N","premium":"-N"}}}"#,
    ),
    (Venue::Hyperliquid, r#"{"channel":"allMids","data":{"mids":{"S":"N","BTC":"N","@142":"N"}}}"#),
    (
        Venue::Hyperliquid,
        r#"{"channel":"candle","data":{"t":1737918780000,"T":1737918839999,"s":"S","i":"1m","o":"N","c":"N","h":"N","l":"N","v":"N","n":I}}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"ticker","type":"update","data":[{"symbol":"S","bid":N,"bid_qty":N,"ask":N,"ask_qty":N,"last":N,"volume":N,"vwap":N,"low":N,"high":N,"change":-N,"change_pct":N,"timestamp":"T"}]}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"trade","type":"update","data":[{"symbol":"S","side":"buy","price":N,"qty":N,"ord_type":"limit","trade_id":I,"timestamp":"T"}*]}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"ohlc","type":"update","timestamp":"T","data":[{"symbol":"S","open":N,"high":N,"low":N,"close":N,"trades":I,"volume":N,"vwap":N,"interval_begin":"T","interval":5,"timestamp":"T"}*]}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"ohlc","type":"update","timestamp":"T","data":[{"symbol":"S","interval":5,"interval_begin":"T","open":N,"high":N,"low":N,"close":N,"volume":N,"vwap":N,"trades":I}*]}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"executions","type":"update","data":[{"exec_type":"trade","order_id":"OK4GJX","symbol":"S","side":"L","order_type":"limit","order_qty":N,"limit_price":N,"order_status":"partially_filled","cum_qty":N,"cum_cost":N,"avg_price":N,"time_in_force":"GTC","timestamp":"T","exec_id":"TX4","last_qty":N,"last_price":N,"cost":N,"liquidity_ind":"m","fees":[{"asset":"USD","qty":N}]}],"sequence":I}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"balances","type":"update","data":[{"ledger_id":"DATKX6","ref_id":"x","timestamp":"T","type":"trade","asset":"S","asset_class":"currency","category":"trade","wallet_type":"spot","wallet_id":"main","amount":-N,"fee":0.0,"balance":N}*],"sequence":2}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"topic":"orderbook.50.X","type":"delta","ts":1672304484978,"data":{"s":"S","b":[["N","N"]*],"a":[["N","N"]*],"u":I,"seq":I},"cts":1672304484976}"#,
    ),
    (
        Venue::BybitSpot,
        r#"{"topic":"orderbook.50.X","type":"snapshot","ts":1672304484978,"data":{"s":"S","b":[["N","N"]*],"a":[["N","N"]*],"u":I,"seq":I}}"#,
    ),
    (
        Venue::BybitInverse,
        r#"{"topic":"publicTrade.X","type":"snapshot","ts":1672304486868,"data":[{"T":1672304486865,"s":"S","S":"Buy","v":"N","p":"N","L":"PlusTick","i":"20f43950-d8dd-5b31-9112-a178eb6023af","BT":false,"seq":I}*]}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"topic":"tickers.X","type":"delta","data":{"symbol":"S","tickDirection":"PlusTick","price24hPcnt":"N","lastPrice":"N","markPrice":"N","indexPrice":"N","openInterest":"N","openInterestValue":"N","turnover24h":"N","volume24h":"N","nextFundingTime":"1673280000000","fundingRate":"-N","bid1Price":"N","bid1Size":"N","ask1Price":"N","ask1Size":"N"},"cs":I,"ts":1673272861686}"#,
    ),
    (
        Venue::BybitOption,
        r#"{"id":"tickers.X-2480334983-1672917511074","topic":"tickers.X","ts":1672917511074,"data":{"symbol":"S","bidPrice":"N","bidSize":"N","bidIv":"N","askPrice":"N","askSize":"N","askIv":"N","lastPrice":"N","highPrice24h":"N","lowPrice24h":"N","markPrice":"N","indexPrice":"N","markPriceIv":"N","underlyingPrice":"N","openInterest":"N","turnover24h":"N","volume24h":"N","totalVolume":"N","totalTurnover":"N","delta":"N","gamma":"N","vega":"N","theta":"-N","predictedDeliveryPrice":"0","change24h":"-N"},"type":"snapshot"}"#,
    ),
    (
        Venue::BybitSpot,
        r#"{"topic":"tickers.X","ts":1673853746003,"type":"snapshot","cs":I,"data":{"symbol":"S","lastPrice":"N","highPrice24h":"N","lowPrice24h":"N","prevPrice24h":"N","volume24h":"N","turnover24h":"N","price24hPcnt":"N","usdIndexPrice":""}}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"topic":"kline.5.BTCUSDT","data":[{"start":1672324800000,"end":1672325099999,"interval":"5","open":"N","close":"N","high":"N","low":"N","volume":"N","turnover":"N","confirm":false,"timestamp":1672324988882}*],"ts":1672324988882,"type":"snapshot"}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"topic":"allLiquidation.X","type":"snapshot","ts":1739502303204,"data":[{"T":1739502302929,"s":"S","S":"Sell","v":"N","p":"N"}*]}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"id":"5923240c6880ab-c59f-420b-9adb-3639adc9dd90","topic":"order","creationTime":1672364262474,"data":[{"symbol":"S","orderId":"5cf98598-39a7-459e-97bf-76ca765ee020","side":"Sell","orderType":"Market","cancelType":"UNKNOWN","price":"N","qty":"N","orderIv":"","timeInForce":"IOC","orderStatus":"PartiallyFilled","orderLinkId":"","reduceOnly":false,"leavesQty":"","cumExecQty":"N","avgPrice":"75","positionIdx":0,"createdTime":"1672364262444","updatedTime":"1672364262457","category":"linear","smpGroup":I}*]}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"topic":"execution","id":"1","creationTime":1746270400355,"data":[{"category":"linear","symbol":"S","closedSize":"0","execFee":"-N","execId":"e0cbe81d-0f18-5866-9415-cf319b5dab3b","execPrice":"N","execQty":"N","execType":"Trade","execValue":"N","feeRate":"N","leavesQty":"0","orderId":"9aac161b-8ed6-450d-9cab-c5cc67c21784","orderLinkId":"","side":"Buy","execTime":"1746270400353","isLeverage":"0","isMaker":false,"seq":I}*]}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"id":"1","topic":"position","creationTime":1697682317044,"data":[{"positionIdx":0,"tradeMode":0,"riskId":41,"symbol":"S","side":"Buy","size":"N","entryPrice":"N","leverage":"10","positionValue":"N","markPrice":"N","unrealisedPnl":"-N","cumRealisedPnl":"-N","createdTime":"1694402496913","updatedTime":"1697682317038","category":"linear","positionStatus":"Normal","seq":I,"isReduceOnly":false}*]}"#,
    ),
    (
        Venue::BybitLinear,
        r#"{"id":"1","topic":"wallet","creationTime":1700034722104,"data":[{"accountIMRate":"N","totalEquity":"N","coin":[{"coin":"S","equity":"N","walletBalance":"-N","availableToWithdraw":"N","locked":"N"}*],"accountLTV":"0"}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"books","instId":"S"},"action":"update","data":[{"asks":[["N","N","0","1"]*],"bids":[["N","N","0","1"]*],"ts":"1597026383085","checksum":0,"seqId":I,"prevSeqId":I}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"trades","instId":"S"},"data":[{"instId":"S","tradeId":"I","px":"N","sz":"N","side":"L","ts":"1630048897897","count":"3"}*]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"tickers","instId":"S"},"data":[{"instType":"SPOT","instId":"S","last":"N","lastSz":"N","askPx":"N","askSz":"N","bidPx":"N","bidSz":"N","open24h":"N","high24h":"N","low24h":"N","sodUtc0":"N","sodUtc8":"N","volCcy24h":"N","vol24h":"N","ts":"1652459223003"}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"bbo-tbt","instId":"S"},"data":[{"asks":[["N","N","0","13"]],"bids":[["N","N","0","12"]],"ts":"1597026383085","seqId":I}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"mark-price","instId":"S"},"data":[{"instType":"SWAP","instId":"S","markPx":"N","ts":"1597026383085"}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"funding-rate","instId":"S"},"data":[{"fundingRate":"-N","fundingTime":"1744590349506","instId":"S","instType":"SWAP","nextFundingRate":"","nextFundingTime":"1744619149506","ts":"1744590349506"}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"candle1m","instId":"S"},"data":[["1597026383085","N","N","N","N","N","N","N","1"]*]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"liquidation-orders","instType":"SWAP"},"data":[{"details":[{"bkLoss":"0","bkPx":"N","ccy":"","posSide":"short","side":"L","sz":"N","ts":"1692266434010"}*],"instFamily":"IOST-USDT","instId":"S","instType":"SWAP","uly":"IOST-USDT"}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"orders","instType":"ANY","uid":"1"},"data":[{"accFillSz":"N","avgPx":"N","cTime":"1746947317401","category":"normal","clOrdId":"a1","execType":"T","fillFee":"-N","fillFeeCcy":"USDT","fillPx":"N","fillSz":"N","fillTime":"1746947317402","instId":"S","instType":"SPOT","lever":"0","ordId":"2497956918703120384","ordType":"market","px":"N","side":"L","state":"partially_filled","sz":"N","tdMode":"cross","tradeId":"I","uTime":"1746947317403"}*]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"account","uid":"1"},"eventType":"snapshot","curPage":1,"lastPage":true,"data":[{"adjEq":"N","details":[{"availBal":"N","availEq":"N","cashBal":"-N","ccy":"S","eq":"N","frozenBal":"N","imr":"0","mmr":"0","uTime":"1705564223311","upl":"0"}*],"totalEq":"N","uTime":"1705564223311"}]}"#,
    ),
    (
        Venue::Okx,
        r#"{"arg":{"channel":"positions","instType":"ANY","uid":"1"},"eventType":"event_update","data":[{"instId":"S","instType":"SWAP","mgnMode":"isolated","posId":"1","posSide":"net","pos":"-N","lever":"10","markPx":"N","avgPx":"N","upl":"-N","uTime":"1619507761462","margin":"N"}*]}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.X.raw","data":{"type":"change","timestamp":1626993723632,"prev_change_id":I,"instrument_name":"S","change_id":I,"bids":[["new",N,1.5]*],"asks":[["delete",N,0.0]*]}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.X.raw","data":{"type":"snapshot","timestamp":1626993723632,"instrument_name":"S","change_id":I,"bids":[["new",N,10.0]*],"asks":[["new",N,7.5]*]}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.X.100ms","data":{"timestamp":1753616120667,"type":"change","change_id":I,"instrument_name":"S","bids":[["change",N,1.0002e6]*],"asks":[["delete",N,0.0]*],"prev_change_id":I}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.X.100ms","data":{"timestamp":1753607648212,"type":"snapshot","change_id":I,"instrument_name":"S","bids":[["new",N,25004]*],"asks":[["new",3.7e3,1.5e3],["new",N,N]]}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"ticker.X.100ms","data":{"timestamp":1765541474086,"state":"open","stats":{"high":N,"low":N,"price_change":2.3,"volume":N},"index_price":N,"instrument_name":"S","last_price":N,"settlement_price":N,"min_price":N,"max_price":N,"open_interest":N,"mark_price":N,"best_ask_price":N,"best_bid_price":N,"estimated_delivery_price":N,"best_ask_amount":N,"best_bid_amount":N,"current_funding":-N,"funding_8h":N}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"quote.X","data":{"timestamp":1765541767174,"instrument_name":"S","best_ask_price":N,"best_bid_price":N,"best_ask_amount":N,"best_bid_amount":N}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"trades.X.100ms","data":[{"timestamp":1765531356452,"price":N,"amount":N,"direction":"L","index_price":N,"instrument_name":"S","trade_seq":I,"mark_price":N,"tick_direction":2,"contracts":1.0,"trade_id":"403691824"}*]}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"chart.trades.BTC-PERPETUAL.5","data":{"tick":1767200040000,"open":N,"high":N,"low":N,"close":N,"volume":N,"cost":N}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"user.orders.X.raw","data":{"label":"","price":N,"user_id":1,"amount":N,"direction":"L","time_in_force":"good_til_cancelled","instrument_name":"S","web":false,"api":true,"order_id":"ETH-331562","creation_timestamp":1767978363999,"replaced":false,"filled_amount":0.0,"last_update_timestamp":1767978363999,"post_only":false,"reduce_only":false,"average_price":0.0,"order_state":"open","order_type":"limit"}}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"user.trades.X.raw","data":[{"trade_seq":I,"trade_id":"ETH-48079269","timestamp":1767978363999,"state":"filled","price":N,"order_type":"limit","order_id":"ETH-331562","instrument_name":"S","fee_currency":"BTC","fee":-N,"direction":"L","amount":N,"liquidity":"M"}*]}}"#,
    ),
    (
        Venue::Deribit,
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"user.portfolio.btc","data":{"total_pl":N,"margin_balance":N,"balance":-N,"maintenance_margin":N,"locked_balance":N,"available_funds":N,"delta_total_map":{"btc_usd":N},"equity":N,"currency":"S"}}}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"e":"bookTicker","u":I,"s":"S","b":"N","B":"N","a":"N","A":"N","T":1568014460891,"E":1568014460893,"st":1,"ps":"BTCUSDT"}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"e":"depthUpdate","E":1571889248277,"T":1571889248276,"s":"S","U":I,"u":I,"pu":I,"b":[["N","N"]*],"a":[["N","N"]*],"st":1}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"stream":"x","data":{"e":"markPriceUpdate","E":1562305380000,"s":"S","p":"N","i":"N","P":"N","r":"-N","T":1562306400000,"st":0}}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"e":"aggTrade","E":1672515782136,"a":I,"s":"S","p":"N","q":"N","f":I,"l":I,"T":1672515782130,"m":true,"st":1}"#,
    ),
    (
        Venue::BinanceSpot,
        r#"{"e":"aggTrade","E":1672515782136,"s":"S","a":I,"p":"N","q":"N","f":I,"l":I,"T":1672515782130,"m":true,"M":true}"#,
    ),
    (
        Venue::BinanceSpot,
        r#"{"e":"24hrTicker","E":1672515782136,"s":"S","p":"-N","P":"N","w":"N","x":"N","c":"N","Q":"N","b":"N","B":"N","a":"N","A":"N","o":"N","h":"N","l":"N","v":"N","q":"N","O":1,"C":2,"F":I,"L":I,"n":3}"#,
    ),
    (
        Venue::BinanceSpot,
        r#"{"stream":"x","data":{"e":"kline","E":1633998534486,"s":"S","k":{"t":1633998480000,"T":1633998539999,"s":"S","i":"1m","f":1,"L":2,"o":"N","c":"N","h":"N","l":"N","v":"N","n":1,"x":false,"q":"N","V":"N","Q":"N","B":"0"}}}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"e":"forceOrder","E":1568014460893,"o":{"s":"S","S":"SELL","o":"LIMIT","f":"IOC","q":"N","p":"N","ap":"N","X":"FILLED","l":"N","z":"N","T":1568014460893}}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"e":"ORDER_TRADE_UPDATE","E":1568879465651,"T":1568879465650,"o":{"s":"S","c":"TEST","S":"SELL","o":"LIMIT","f":"GTC","q":"N","p":"N","ap":"0","sp":"N","x":"TRADE","X":"PARTIALLY_FILLED","i":I,"l":"N","z":"N","L":"N","N":"USDT","n":"-N","T":1568879465650,"t":I,"b":"0","a":"N","m":false,"R":false,"wt":"CONTRACT_PRICE","ot":"LIMIT","ps":"BOTH","cp":false,"rp":"0","V":"NONE"}}"#,
    ),
    (
        Venue::BinanceSpot,
        r#"{"subscriptionId":0,"event":{"e":"executionReport","E":1499405658658,"s":"S","c":"mUvoqJxFIILMdfAW5iGSOW","S":"BUY","o":"LIMIT","f":"GTC","q":"N","p":"N","P":"N","F":"0.00000000","g":-1,"C":"","x":"TRADE","X":"PARTIALLY_FILLED","r":"NONE","i":I,"l":"N","z":"N","L":"N","n":"N","N":"BNB","T":1499405658657,"t":I,"I":8641984,"w":true,"m":false,"M":false,"O":1499405658657,"Z":"N","Y":"N","Q":"N"}}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"e":"TRADE_LITE","E":1721895408092,"T":1721895408214,"s":"S","q":"N","p":"N","m":false,"c":"z8hcUoOsqEdKMeKPSABslD","S":"BUY","L":"N","l":"N","t":I,"i":I}"#,
    ),
    (
        Venue::BinanceUsdm,
        r#"{"e":"ALGO_UPDATE","T":1750515742297,"E":1750515742303,"o":{"caid":"Q5xaq5EGKgXXa0fD7fs0Ip","aid":I,"at":"CONDITIONAL","o":"TAKE_PROFIT","s":"S","S":"SELL","ps":"BOTH","f":"GTC","q":"N","X":"NEW","ai":"","aq":"N","tp":"N","p":"N","V":"EXPIRE_MAKER","wt":"CONTRACT_PRICE","pm":"NONE","cp":false,"pP":false,"R":false,"tt":0,"gtd":0,"rm":"0"}}"#,
    ),
    (
        Venue::BinanceSpot,
        r#"{"e":"outboundAccountPosition","E":1564034571105,"u":1564034571073,"B":[{"a":"S","f":"N","l":"N"}*]}"#,
    ),
    (Venue::BinanceSpot, r#"{"e":"balanceUpdate","E":1573200697110,"a":"S","d":"-N","T":1573200697068}"#),
    (
        Venue::BinanceUsdm,
        r#"{"e":"ACCOUNT_UPDATE","E":1564745798939,"T":1564745798938,"a":{"m":"ORDER","B":[{"a":"S","wb":"N","cw":"N","bc":"-N"}*],"P":[{"s":"S","pa":"-N","ep":"N","bep":"0","cr":"-N","up":"-N","mt":"isolated","iw":"N","ps":"BOTH"}*]}}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"user","client_id":"","timestamp":"T","sequence_num":I,"events":[{"type":"update","orders":[{"avg_price":"N","client_order_id":"x","cumulative_quantity":"N","leaves_quantity":"N","limit_price":"N","order_id":"5cf98598-39a7-459e-97bf-76ca765ee020","order_side":"BUY","order_type":"Limit","product_id":"S","status":"OPEN","total_fees":"2"}*]}]}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"orderUpdates","data":[{"order":{"coin":"S","side":"B","limitPx":"N","sz":"N","oid":I,"timestamp":1737918794873,"origSz":"N","cloid":"0x1"},"status":"open","statusTimestamp":1737918794873}]}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"userFills","data":{"isSnapshot":true,"user":"0x1","fills":[{"coin":"S","px":"N","sz":"N","side":"A","time":1737918794873,"startPosition":"N","dir":"Sell","closedPnl":"-N","hash":"0x0","oid":I,"crossed":true,"fee":"-N","tid":I,"feeToken":"USDC"}*]}}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"userFundings","data":{"isSnapshot":true,"user":"0x1","fundings":[{"time":1737918794873,"coin":"S","usdc":"-N","szi":"N","fundingRate":"N"}*]}}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"received","time":"T","product_id":"S","sequence":I,"order_id":"d50ec984-77a8-460a-b958-66f114b0de9b","size":"N","price":"N","side":"L","order_type":"limit","client-oid":"d50ec984-77a8-460a-b958-66f114b0de9b"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"open","time":"T","product_id":"S","sequence":I,"order_id":"d50ec984-77a8-460a-b958-66f114b0de9b","price":"N","remaining_size":"N","side":"L"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"done","time":"T","product_id":"S","sequence":I,"price":"N","order_id":"d50ec984-77a8-460a-b958-66f114b0de9b","reason":"filled","side":"L","remaining_size":"N"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"change","reason":"modify_order","time":"T","sequence":I,"order_id":"ac928c66-ca53-498f-9c13-a110027a60e8","product_id":"S","side":"L","old_size":"N","new_size":"N","old_price":"N","new_price":"N"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"change","reason":"STP","time":"T","sequence":I,"order_id":"ac928c66-ca53-498f-9c13-a110027a60e8","product_id":"S","new_size":"N","old_size":"N","price":"N","side":"L"}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"level3","type":"update","data":[{"symbol":"S","timestamp":"T","checksum":7,"bids":[{"event":"add","order_id":"O6ZQNQ-BXL4E-5WGINO","limit_price":N,"order_qty":N,"timestamp":"T"}*],"asks":[{"event":"delete","order_id":"OEP26Y-YAFEF-OFR62B","limit_price":N,"order_qty":N,"timestamp":"T"}*]}]}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"level3","type":"snapshot","data":[{"symbol":"S","checksum":281817320,"bids":[{"order_id":"O6ZQNQ-BXL4E-5WGINO","limit_price":N,"order_qty":N,"timestamp":"T"}*],"asks":[{"order_id":"OLLSXO-HDMT3-BUOKEI","limit_price":N,"order_qty":N,"timestamp":"T"}*]}]}"#,
    ),
];

const NUMBERS: [&str; 16] = [
    "0",
    "0.00000000",
    "1",
    "105944.20",
    "0.00001303",
    "1234567.12345678",
    "12345678.5",
    "1e-8",
    "1.5E+3",
    "9223372036854775807",
    "9223372036854775808",
    "0.123456789",
    "00.1",
    "1.",
    "-1",
    "-0",
];
const WHOLE: [&str; 8] =
    ["0", "7", "12345678", "9007199254740993", "18446744073709551615", "18446744073709551616", "1.5", "007"];
const SYMBOLS: [&str; 5] = ["BTC-USD", "X", "BTC/USD", "12345678901234567890123", "123456789012345678901234"];
const TIMES: [&str; 7] = [
    "2026-04-07T14:30:00Z",
    "2026-04-07T14:30:00.123456Z",
    "2024-02-29T23:59:59.123456789Z",
    "2023-02-29T00:00:00Z",
    "2026-04-07T14:30:00.1234567890Z",
    "2026-04-07 14:30:00Z",
    "2026-12-31T23:59:59.9Z",
];
const SIDES: [&str; 3] = ["buy", "sell", "hold"];

/// Draws numbers one after the other.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Mostly one of the first `usual`, now and then any of them.
    fn of<'a>(&mut self, words: &[&'a str], usual: usize) -> &'a str {
        let end = if self.below(24) == 0 { words.len() } else { usual };
        words[self.below(end)]
    }

    /// The form without its places and lists.
    fn frame(&mut self, form: &str) -> String {
        let mut text = String::new();
        let mut rest = form;
        // A list's element reaches from the bracket before it to the star.
        while let Some(star) = rest.find('*') {
            let start = element_start(&rest[..star]);
            text.push_str(&rest[..start]);
            let element = &rest[start..star];
            text.push_str(&vec![element; self.below(5)].join(","));
            rest = &rest[star + 1..];
        }
        text.push_str(rest);
        self.fill(&text)
    }

    fn fill(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut previous = ' ';
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            // A place is alone between marks; letters of words do not.
            let alone = matches!(previous, '"' | ':' | '-' | ',' | '[')
                && letters.peek().is_some_and(|next| matches!(next, '"' | ',' | '}' | ']'))
                && !(previous == '"' && text_is_key(&mut letters.clone()));
            match letter {
                'N' if alone => out.push_str(self.of(&NUMBERS, 6)),
                'I' if alone => out.push_str(self.of(&WHOLE, 5)),
                'S' if alone => out.push_str(self.of(&SYMBOLS, 4)),
                'T' if alone && previous == '"' => out.push_str(self.of(&TIMES, 3)),
                'L' if alone => out.push_str(self.of(&SIDES, 2)),
                _ => out.push(letter),
            }
            previous = letter;
        }
        out
    }
}

/// Whether the quote that comes next ends a key.
fn text_is_key(letters: &mut impl Iterator<Item = char>) -> bool {
    letters.next();
    letters.next() == Some(':')
}

/// Where the bracketed element that ends here begins.
fn element_start(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices().rev() {
        match letter {
            ']' | '}' => depth += 1,
            '[' | '{' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    panic!("an element begins nowhere: {text}")
}

/// The keys of every object of a text, where it is JSON.
fn keys(text: &[u8]) -> Option<Vec<String>> {
    fn gather(value: &serde_json::Value, keys: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => members.iter().for_each(|(key, value)| {
                keys.push(key.clone());
                gather(value, keys);
            }),
            serde_json::Value::Array(elements) => elements.iter().for_each(|element| gather(element, keys)),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => {}
        }
    }
    let mut keys = Vec::new();
    gather(&serde_json::from_slice(text).ok()?, &mut keys);
    keys.sort();
    Some(keys)
}

/// Draws a frame of one of the venue's forms, changes a byte of it or not, and reads it three ways.
fn try_one(is_wanted: fn(Venue) -> bool, seed: u64, edit: Option<(u16, u8)>) {
    let mut draw = Draw(seed);
    let forms: Vec<_> = FORMS.iter().filter(|(venue, _)| is_wanted(*venue)).collect();
    let (venue, form) = forms[draw.below(forms.len())];
    let mut frame = draw.frame(form).into_bytes();
    let whole = frame.clone();
    if let Some((at, byte)) = edit {
        let at = usize::from(at) % frame.len();
        match byte {
            0..80 => frame[at] = byte,
            80..160 => {
                frame.remove(at);
            }
            _ => frame.insert(at, byte - 128),
        }
    }
    // What a key that was lost would have said may be missing.
    if edit.is_some() && keys(&frame) != keys(&whole) { agree(*venue, &frame) } else { compare(*venue, &frame) }
}

macro_rules! venues {
    ($($test:ident: $venues:pat,)+) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $test(seed in any::<u64>(), edit in prop::option::weighted(0.3, (any::<u16>(), any::<u8>()))) {
                    try_one(|venue| matches!(venue, $venues), seed, edit);
                }
            )+
        }
    };
}

/// Found by a random edit: a best level of zero is none, also where an exponent follows the zero.
#[test]
fn a_zero_with_an_exponent_is_no_best_level() {
    let levels = r#""bidPrice":"1.5","bidSize":"2","askPrice":"1.6","askSize":"0.0E0000000""#;
    let others = r#""lastPrice":"1.5","markPrice":"1.5","indexPrice":"1.5","openInterest":"7""#;
    let data = format!(r#"{{"symbol":"S",{levels},{others}}}"#);
    let frame = format!(r#"{{"topic":"tickers.S","ts":1672917511074,"data":{data},"type":"snapshot"}}"#);
    compare(Venue::BybitOption, frame.as_bytes());
}

venues! {
    random_frames_of_binance_read_the_same_three_ways: Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm,
    random_frames_of_bybit_read_the_same_three_ways: Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse | Venue::BybitOption,
    random_frames_of_okx_read_the_same_three_ways: Venue::Okx,
    random_frames_of_kraken_read_the_same_three_ways: Venue::Kraken,
    random_frames_of_coinbase_exchange_read_the_same_three_ways: Venue::CoinbaseExchange,
    random_frames_of_coinbase_advanced_read_the_same_three_ways: Venue::CoinbaseAdvanced,
    random_frames_of_hyperliquid_read_the_same_three_ways: Venue::Hyperliquid,
    random_frames_of_deribit_read_the_same_three_ways: Venue::Deribit,
}

/// A form that no scanner reads, or that no random frame fills as the venue would, is none.
#[test]
fn most_random_frames_are_whole_and_scanned() {
    for (venue, form) in FORMS {
        let (mut read, mut scanned) = (0, 0);
        for seed in 0..400 {
            let frame = Draw(seed * 7919).frame(form);
            let mut buffer = tt_venue::event::EventBuffer::new(64, 64);
            read += u32::from(venue.parse(frame.as_bytes(), &mut buffer).is_ok());
            scanned += u32::from(!buffer.is_general());
        }
        assert!(read > 60, "{read} {form}");
        assert!(scanned > 40, "{scanned} {form}");
    }
}

/// Every kind of message of every venue, whatever order its keys come in.
#[test]
fn case_m23_every_kind_of_message_reads_the_same_in_any_order_of_keys() {
    for (venue, form) in FORMS {
        let mut compared = 0;
        for seed in 0..200 {
            let frame = Draw(seed * 104_729).frame(form);
            let mut buffer = tt_venue::event::EventBuffer::new(64, 64);
            let Ok(expected) = parse(*venue, frame.as_bytes(), &mut buffer, false) else { continue };
            let (mut order, mut other) = (seed, String::new());
            shuffle(&serde_json::from_str(&frame).unwrap(), &mut order, &mut other);
            assert_eq!(parse(*venue, other.as_bytes(), &mut buffer, false), Ok(expected), "{other}");
            assert!(buffer.is_general(), "{other}");
            compared += 1;
        }
        assert!(compared > 20, "{compared} {form}");
    }
}
