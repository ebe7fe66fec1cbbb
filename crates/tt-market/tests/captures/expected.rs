//! What a JSON library with exact numbers reads from the rarer messages and those of an account, in the words of
//! `parsers::shown`. A line is written once, with a place for each field that it shows: `{code:key}`.

use crate::oracles::{amount, number, optional_amount, rfc3339};
use crate::parsers::{is_number, plain, plain_text};
use serde_json::Value;
use tt_model::Decimal;
use tt_venue::event::OrderId;
use tt_venue::{Symbol, Venue};

/// Placeholder of a name that may hold brackets, until the line is whole.
const NAME: &str = "\u{1}";

/// One line of an entry, `None` where a field is absent or not of its type.
///
/// `s` a symbol, `o` one that may be untold, `i` an identifier in quotes, `I` one without, `u` a whole number, `q` one in
/// quotes, `d` a side, `x` the other one, `n` an amount, `N` a number with or without a sign, `a` and `A` the same where
/// they may be untold, `m` milliseconds in quotes or not, `r` a time of RFC 3339, `b` a truth, `B` one that may be untold.
fn line(object: &Value, form: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = form;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (place, after) = after.split_once('}')?;
        let (code, key) = place.split_once(':')?;
        out.push_str(&field(code, object.get(key))?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

fn field(code: &str, value: Option<&Value>) -> Option<String> {
    let untold = || value.is_none_or(|value| value.is_null() || value == "").then(|| "-".to_owned());
    match code {
        "s" => symbol(value?),
        "o" => untold().or_else(|| symbol(value?)),
        "i" => value?.as_str().filter(|text| OrderId::new(text.as_bytes()).is_ok()).map(str::to_owned),
        "I" | "u" => value?.as_u64().map(|number| number.to_string()),
        "q" => whole(value?.as_str()?).map(|number| number.to_string()),
        "d" => side(value?, ["Buy", "Sell"]),
        "x" => side(value?, ["Sell", "Buy"]),
        "n" => amount(value),
        "a" => optional_amount(value),
        "N" => number(value?),
        "A" => untold().or_else(|| number(value?)),
        "m" => {
            let ms = value?.as_u64().or_else(|| whole(value?.as_str()?))?;
            ms.checked_mul(1_000_000).map(|ns| ns.to_string())
        }
        "r" => rfc3339(value).map(|ns| ns.to_string()),
        "b" => value?.as_bool().map(|truth| truth.to_string()),
        "B" => untold().or_else(|| value?.as_bool().map(|truth| truth.to_string())),
        other => panic!("{other}"),
    }
}

fn symbol(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    Symbol::new(text.as_bytes()).ok().map(|symbol| symbol.to_string())
}

fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn side(value: &Value, words: [&str; 2]) -> Option<String> {
    match value.as_str()? {
        "Buy" | "BUY" | "buy" | "B" => Some(words[0].to_owned()),
        "Sell" | "SELL" | "sell" | "A" => Some(words[1].to_owned()),
        _ => None,
    }
}

/// Whether a text is this word, `-` where it is untold.
fn is_word(value: Option<&Value>, word: &str) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(value) if value == "" => "-".to_owned(),
        Some(value) => (value == word).to_string(),
    }
}

/// Nanoseconds of a number of minutes.
fn minutes(text: &str) -> Option<u64> {
    whole(text)?.checked_mul(60_000_000_000)
}

/// A line of each entry of a list.
fn each(list: &Value, form: &str) -> Option<String> {
    list.as_array()?.iter().map(|object| line(object, form)).collect()
}

/// As [`each`], in the order of the alphabet.
fn sorted(list: &Value, form: &str) -> Option<String> {
    let lines: Option<Vec<String>> = list.as_array()?.iter().map(|object| line(object, form)).collect();
    let mut lines = lines?;
    lines.sort();
    Some(lines.concat())
}

/// The end of what an account's message shows: that it lists what changed, or all of its orders and positions.
const CHANGED: &str = "Changed Changed;";

fn account(lines: Option<String>) -> Option<String> {
    lines.map(|lines| lines + CHANGED)
}

/// What the venue's message contains, `None` where it is another one or not whole.
pub(crate) fn read(venue: Venue, value: &Value) -> Option<String> {
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm => {
            binance(value.get("data").or_else(|| value.get("event")).unwrap_or(value))
        }
        Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse | Venue::BybitOption => bybit(value),
        Venue::Okx => okx(value),
        Venue::Kraken | Venue::KrakenDerivatives => kraken(value),
        Venue::CoinbaseAdvanced => coinbase_advanced(value),
        Venue::Hyperliquid => hyperliquid(value),
        Venue::Deribit => deribit(value),
        Venue::CoinbaseExchange => coinbase_exchange(value),
    }
}

const OF_BOOK: &str = "orders {s:product_id} false {u:sequence} 0 {r:time};";

/// What a match of Coinbase Exchange took from the maker's order.
pub(crate) fn taken(value: &Value) -> Option<String> {
    Some(line(value, OF_BOOK)? + &line(value, "Take {d:side} {i:maker_order_id} - {n:size};")?)
}

fn coinbase_exchange(value: &Value) -> Option<String> {
    let order = match value.get("type")?.as_str()? {
        "received" => String::new(),
        "open" => line(value, "Add {d:side} {i:order_id} {n:price} {n:remaining_size};")?,
        "done" if optional_amount(value.get("price")).as_deref() == Some("-") => String::new(),
        "done" => line(value, "Delete {d:side} {i:order_id} - 0e-0;")?,
        "change" if optional_amount(value.get("new_size"))? == "-" => String::new(),
        "change" => line(value, "Change {d:side} {i:order_id} {a:new_price} {n:new_size};")?,
        _ => return None,
    };
    Some(line(value, OF_BOOK)? + &order)
}

fn kraken_orders(value: &Value) -> Option<String> {
    let [book] = value.get("data")?.as_array()?.as_slice() else { return None };
    let is_snapshot = match value.get("type")?.as_str()? {
        "snapshot" => true,
        "update" => false,
        _ => return None,
    };
    u32::try_from(book.get("checksum")?.as_u64()?).ok()?;
    let ns = match book.get("timestamp") {
        None => 0,
        time => rfc3339(time)?,
    };
    let mut out = line(book, &format!("orders {{s:symbol}} {is_snapshot} 0 {{u:checksum}} {ns};"))?;
    for (key, side) in [("bids", "Buy"), ("asks", "Sell")] {
        for order in book.get(key)?.as_array()? {
            let action = match order.get("event").map_or(Some("add"), Value::as_str)? {
                "" | "add" => "Add",
                "modify" => "Change",
                "delete" => "Delete",
                _ => return None,
            };
            out += &line(order, &format!("{action} {side} {{i:order_id}} {{n:limit_price}} {{n:order_qty}};"))?;
        }
    }
    Some(out)
}

fn binance(value: &Value) -> Option<String> {
    let ns = field("m", value.get("E"));
    match value.get("e")?.as_str()? {
        "markPriceUpdate" => line(value, "mark {s:s} {n:p} {n:i} {A:r} {m:T} {m:E}"),
        "aggTrade" => {
            let side = if value.get("m")?.as_bool()? { "Sell" } else { "Buy" };
            line(value, &format!("trade {{s:s}} {{u:a}} {{n:p}} {{n:q}} {side} {{m:T}};"))
        }
        "24hrTicker" => line(value, "ticker {s:s} {n:b} {n:B} {n:a} {n:A} {n:c} - - - - - {m:E};"),
        "kline" => {
            ns?;
            let candle = value.get("k")?;
            let length = minutes(candle.get("i")?.as_str()?.strip_suffix('m')?)?;
            line(candle, &format!("candle {{s:s}} {length} {{m:t}} {{n:o}} {{n:h}} {{n:l}} {{n:c}} {{n:v}};"))
        }
        "forceOrder" => line(value.get("o")?, "liquidation {s:s} {d:S} {n:ap} {n:z} {m:T};"),
        kind @ ("ORDER_TRADE_UPDATE" | "executionReport") => {
            let order = if kind == "executionReport" { value } else { value.get("o")? };
            let form = format!("order {{s:s}} {{I:i}} {{d:S}} PartiallyFilled {{n:p}} {{n:q}} {{n:z}} {};", ns?);
            let fill = match amount(order.get("l"))?.as_str() {
                "0e-0" => String::new(),
                _ => line(order, "fill {I:t} {n:L} {n:l} {A:n} {o:N} {B:m};")?,
            };
            account(Some(line(order, &form)? + &fill))
        }
        "TRADE_LITE" => account(line(value, "execution {s:s} {I:i} {I:t} {d:S} {n:L} {n:l} - - {b:m} {m:T};")),
        "ALGO_UPDATE" => {
            let form = format!("order {{s:s}} conditional:{{I:aid}} {{d:S}} Pending {{n:p}} {{n:q}} {{a:aq}} {};", ns?);
            account(line(value.get("o")?, &form))
        }
        "outboundAccountPosition" => {
            let ns = ns?;
            // The whole is the sum of both.
            let entry = |one: &Value| {
                let sum = sum(one.get("f")?.as_str()?, one.get("l")?.as_str()?)?;
                line(one, &format!("balance {{s:a}} {sum} {{n:f}} {{n:l}} - {ns};"))
            };
            account(value.get("B")?.as_array()?.iter().map(entry).collect())
        }
        "balanceUpdate" => account(line(value, "balance {s:a} - - - {N:d} {m:E};")),
        "ACCOUNT_UPDATE" => {
            let (ns, of) = (ns?, value.get("a")?);
            let balances = each(of.get("B")?, &format!("balance {{s:a}} {{N:wb}} - - {{A:bc}} {ns};"))?;
            let entry = |one: &Value| {
                let entry = amount(one.get("ep"))?;
                let entry = if entry == "0e-0" { "-".to_owned() } else { entry };
                line(one, &format!("position {{s:s}} Net {{N:pa}} {entry} {{A:up}} {ns};"))
            };
            let positions: Option<String> = of.get("P")?.as_array()?.iter().map(entry).collect();
            account(Some(balances + &positions?))
        }
        _ => None,
    }
}

/// The exact sum of two numbers.
fn sum(one: &str, two: &str) -> Option<String> {
    total(one, two, 1)
}

/// The exact difference of two numbers, the second of which is no greater.
fn difference(one: &str, two: &str) -> Option<String> {
    total(one, two, -1).filter(|rest| !rest.starts_with('-'))
}

fn total(one: &str, two: &str, sign: i128) -> Option<String> {
    let (one, two) = (Decimal::parse(one.as_bytes()).ok()?, Decimal::parse(two.as_bytes()).ok()?);
    let decimals = one.decimals.max(two.decimals);
    let at = |number: Decimal| i128::from(number.mantissa) * 10_i128.pow(u32::from(decimals - number.decimals));
    let total = i64::try_from(at(one) + sign * at(two)).ok()?;
    Some(plain(Decimal::new(total, decimals)))
}

fn bybit(value: &Value) -> Option<String> {
    let (topic, data) = (value.get("topic")?.as_str()?, value.get("data")?);
    let mut parts = topic.splitn(3, '.');
    match parts.next()? {
        "tickers" => {
            let ns = value.get("ts")?.as_u64()?.checked_mul(1_000_000)?;
            // Options have other names, and zeros where there is no price.
            let is_zero = |text: &str| is_number(text) && plain_text(text).as_deref() == Some("0e-0");
            let best = |name: &str, of_option: &str| match (data.get(name), data.get(of_option)) {
                (None, Some(Value::String(text))) if is_zero(text) => "-".to_owned(),
                (None, Some(_)) => format!("{{a:{of_option}}}"),
                (Some(_) | None, _) => format!("{{a:{name}}}"),
            };
            let bid = format!("{} {}", best("bid1Price", "bidPrice"), best("bid1Size", "bidSize"));
            let ask = format!("{} {}", best("ask1Price", "askPrice"), best("ask1Size", "askSize"));
            let best = format!("{bid} {ask} {{a:lastPrice}}");
            let other = "{a:markPrice} {a:indexPrice} - {A:fundingRate} {a:openInterest}";
            line(data, &format!("ticker {{s:symbol}} {best} {other} {ns};"))
        }
        "kline" => {
            let symbol = parts.nth(1)?;
            let symbol = Symbol::new(symbol.as_bytes()).ok()?.to_string();
            let entry = |one: &Value| {
                let head = format!("candle {NAME} {} {{m:start}}", minutes(one.get("interval")?.as_str()?)?);
                line(one, &format!("{head} {{n:open}} {{n:high}} {{n:low}} {{n:close}} {{n:volume}};"))
            };
            let lines: Option<String> = data.as_array()?.iter().map(entry).collect();
            Some(lines?.replace(NAME, &symbol))
        }
        "allLiquidation" => each(data, "liquidation {s:s} {x:S} {n:p} {n:v} {m:T};"),
        "order" => {
            let form = "order {s:symbol} {i:orderId} {d:side} PartiallyFilled {a:price} {a:qty} {a:cumExecQty} {m:updatedTime};";
            account(each(data, form))
        }
        "execution" => {
            let head = "execution {s:symbol} {i:orderId} {i:execId} {d:side} {n:execPrice} {n:execQty} {A:execFee}";
            account(each(data, &format!("{head} {{o:feeCurrency}} {{b:isMaker}} {{m:execTime}};")))
        }
        "position" => {
            let entry = |one: &Value| {
                let size = amount(one.get("size"))?;
                let entry = if size == "0e-0" { "-".to_owned() } else { optional_amount(one.get("entryPrice"))? };
                let size =
                    if side(one.get("side")?, ["", "-"])? == "-" && size != "0e-0" { format!("-{size}") } else { size };
                let leg = ["Net", "Long", "Short"].get(usize::try_from(one.get("positionIdx")?.as_u64()?).ok()?)?;
                line(one, &format!("position {{s:symbol}} {leg} {size} {entry} {{A:unrealisedPnl}} {{m:updatedTime}};"))
            };
            account(data.as_array()?.iter().map(entry).collect())
        }
        "wallet" => {
            let ns = field("m", value.get("creationTime"))?;
            let form = format!("balance {{s:coin}} {{N:walletBalance}} {{A:availableToWithdraw}} {{a:locked}} - {ns};");
            account(data.as_array()?.iter().map(|one| each(one.get("coin")?, &form)).collect())
        }
        _ => None,
    }
}

fn okx(value: &Value) -> Option<String> {
    let (argument, data) = (value.get("arg")?, value.get("data")?);
    let of_contract = |numbers: &str| sorted(data, &format!("ticker {{s:instId}} - - - - - {numbers} {{m:ts}};"));
    match argument.get("channel")?.as_str()? {
        "mark-price" => of_contract("{a:markPx} - - - -"),
        "index-tickers" => of_contract("- {a:idxPx} - - -"),
        "funding-rate" => of_contract("- - - {A:fundingRate} -"),
        "open-interest" => of_contract("- - - - {a:oi}"),
        "bbo-tbt" => {
            let [one] = data.as_array()?.as_slice() else { return None };
            let best = |key: &str| {
                let side = one.get(key)?.as_array()?;
                match side.as_slice() {
                    [] => Some("- 0e-0".to_owned()),
                    [level] => Some(format!("{} {}", amount(level.get(0))?, amount(level.get(1))?)),
                    _ => None,
                }
            };
            let numbers = format!("{} {}", best("bids")?, best("asks")?);
            let symbol = symbol(argument.get("instId")?)?;
            line(one, &format!("ticker {NAME} {numbers} - - - - - - {{m:ts}};")).map(|line| line.replace(NAME, &symbol))
        }
        topic if topic.starts_with("candle") => {
            let length = okx_bar(topic.strip_prefix("candle")?)?;
            let symbol = symbol(argument.get("instId")?)?;
            let entry = |one: &Value| {
                let [ts, numbers @ ..] = one.as_array()?.as_slice() else { return None };
                let numbers: Option<Vec<String>> = numbers.get(..5)?.iter().map(|one| amount(Some(one))).collect();
                Some(format!("candle {symbol} {length} {} {};", field("m", Some(ts))?, numbers?.join(" ")))
            };
            data.as_array()?.iter().map(entry).collect()
        }
        "liquidation-orders" => {
            let entry = |one: &Value| {
                let symbol = symbol(one.get("instId")?)?;
                each(one.get("details")?, &format!("liquidation {NAME} {{d:side}} {{n:bkPx}} {{n:sz}} {{m:ts}};"))
                    .map(|lines| lines.replace(NAME, &symbol))
            };
            data.as_array()?.iter().map(entry).collect()
        }
        "orders" => account(data.as_array()?.iter().map(okx_order).collect()),
        "orders-algo" => {
            let form = "order {s:instId} conditional:{i:algoId} {d:side} Pending - {a:sz} {a:actualSz} {m:uTime};";
            account(each(data, form))
        }
        "account" => {
            let form = "balance {s:ccy} {N:cashBal} {A:availBal} {a:frozenBal} - {m:uTime};";
            account(data.as_array()?.iter().map(|one| each(one.get("details")?, form)).collect())
        }
        "positions" => {
            let entry = |one: &Value| {
                let qty = number(one.get("pos")?)?;
                let entry = if qty == "0e-0" { "-".to_owned() } else { optional_amount(one.get("avgPx"))? };
                line(one, &format!("position {{s:instId}} Net {qty} {entry} {{A:upl}} {{m:uTime}};"))
            };
            account(data.as_array()?.iter().map(entry).collect())
        }
        _ => None,
    }
}

/// The length of a candle: `1m`, `4H`, `1Dutc`.
fn okx_bar(text: &str) -> Option<u64> {
    let text = text.strip_suffix("utc").unwrap_or(text);
    let minute = 60_000_000_000;
    let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => minute / 60,
        "m" => minute,
        "H" => 60 * minute,
        "D" => 24 * 60 * minute,
        "W" => 7 * 24 * 60 * minute,
        "M" => 30 * 24 * 60 * minute,
        _ => return None,
    };
    let is_plain = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    let count = is_plain.then(|| count.parse::<u64>().ok())??;
    (1..=1000).contains(&count).then_some(count * unit)
}

/// An order's price and executed quantity are zero where they are untold; so is an execution that has no number.
fn okx_order(one: &Value) -> Option<String> {
    let zero =
        |key: &str| optional_amount(one.get(key)).map(|number| if number == "-" { "0e-0".to_owned() } else { number });
    let numbers = format!("{} {{n:sz}} {}", zero("px")?, zero("accFillSz")?);
    let order =
        line(one, &format!("order {{s:instId}} {{i:ordId}} {{d:side}} PartiallyFilled {numbers} {{m:uTime}};"))?;
    if zero("fillSz")? == "0e-0" || one.get("tradeId").is_none_or(|id| id == "") {
        return Some(order);
    }
    let paid = match field("A", one.get("fillFee"))?.as_str() {
        "-" => "- -".to_owned(),
        fee => {
            let minus = match fee.strip_prefix('-') {
                Some(fee) => fee.to_owned(),
                None if fee == "0e-0" => fee.to_owned(),
                None => format!("-{fee}"),
            };
            format!("{minus} {}", field("o", one.get("fillFeeCcy"))?)
        }
    };
    let maker = is_word(one.get("execType"), "M");
    // An asset may contain a brace.
    let fill = line(one, &format!("fill {{i:tradeId}} {{n:fillPx}} {{n:fillSz}} {NAME} {maker};"))?;
    Some(order + &fill.replace(NAME, &paid))
}

fn kraken(value: &Value) -> Option<String> {
    let data = value.get("data")?;
    match value.get("channel")?.as_str()? {
        "level3" => kraken_orders(value),
        "ohlc" => {
            rfc3339(value.get("timestamp"))?;
            let entry = |one: &Value| {
                let head =
                    format!("candle {{s:symbol}} {} {{r:interval_begin}}", minutes(&one.get("interval")?.to_string())?);
                line(one, &format!("{head} {{n:open}} {{n:high}} {{n:low}} {{n:close}} {{n:volume}};"))
            };
            data.as_array()?.iter().map(entry).collect()
        }
        "executions" => {
            let form = "order {s:symbol} {i:order_id} {d:side} PartiallyFilled {a:limit_price} {a:order_qty} {a:cum_qty} {r:timestamp};";
            let entry = |one: &Value| {
                let [fee] = one.get("fees")?.as_array()?.as_slice() else { return None };
                let paid = line(fee, "{N:qty} {s:asset}")?;
                let maker = is_word(one.get("liquidity_ind"), "m");
                let fill = line(one, &format!("fill {{i:exec_id}} {{n:last_price}} {{n:last_qty}} {NAME} {maker};"))?;
                let fill = fill.replace(NAME, &paid);
                Some(line(one, form)? + &fill)
            };
            account(data.as_array()?.iter().map(entry).collect())
        }
        "balances" => account(each(data, "balance {s:asset} {N:balance} - - {A:amount} {r:timestamp};")),
        _ => None,
    }
}

fn coinbase_advanced(value: &Value) -> Option<String> {
    (value.get("channel")? == "user").then_some(())?;
    value.get("sequence_num")?.as_u64()?;
    let ns = rfc3339(value.get("timestamp"))?;
    let [event] = value.get("events")?.as_array()?.as_slice() else { return None };
    let entry = |one: &Value| {
        let (filled, left) = (one.get("cumulative_quantity")?.as_str()?, one.get("leaves_quantity")?.as_str()?);
        let status = if amount(one.get("cumulative_quantity"))? == "0e-0" { "New" } else { "PartiallyFilled" };
        let qty = sum(filled, left)?;
        let head = format!("order {{s:product_id}} {{i:order_id}} {{d:order_side}} {status} {{a:limit_price}} {qty}");
        line(one, &format!("{head} {{n:cumulative_quantity}} {ns};"))
    };
    account(event.get("orders")?.as_array()?.iter().map(entry).collect())
}

fn hyperliquid(value: &Value) -> Option<String> {
    let data = value.get("data")?;
    match value.get("channel")?.as_str()? {
        "orderUpdates" => {
            let entry = |one: &Value| {
                let ns = field("m", one.get("statusTimestamp"))?;
                let order = one.get("order")?;
                let filled = difference(order.get("origSz")?.as_str()?, order.get("sz")?.as_str()?)?;
                let status = if filled == "0e-0" { "New" } else { "PartiallyFilled" };
                let head = format!("order {{s:coin}} {{I:oid}} {{d:side}} {status} {{n:limitPx}} {{n:origSz}}");
                line(order, &format!("{head} {filled} {ns};"))
            };
            account(data.as_array()?.iter().map(entry).collect())
        }
        "userFills" => {
            let entry = |one: &Value| {
                let maker = !one.get("crossed")?.as_bool()?;
                let head = "execution {s:coin} {I:oid} {I:tid} {d:side} {n:px} {n:sz} {A:fee} {o:feeToken}";
                line(one, &format!("{head} {maker} {{m:time}};"))
            };
            account(data.get("fills")?.as_array()?.iter().map(entry).collect())
        }
        "userFundings" => account(each(data.get("fundings")?, "balance USDC - - - {N:usdc} {m:time};")),
        _ => None,
    }
}

fn deribit(value: &Value) -> Option<String> {
    let parameters = value.get("params")?;
    let (topic, data) = (parameters.get("channel")?.as_str()?, parameters.get("data")?);
    let order = |one: &Value| {
        let filled = amount(one.get("filled_amount"))?;
        let status = if filled == "0e-0" { "New" } else { "PartiallyFilled" };
        let head =
            format!("order {{s:instrument_name}} {{i:order_id}} {{d:direction}} {status} {{a:price}} {{n:amount}}");
        line(one, &format!("{head} {filled} {{m:last_update_timestamp}};"))
    };
    let execution = |one: &Value| {
        let maker = is_word(one.get("liquidity"), "M");
        let head = "execution {s:instrument_name} {i:order_id} {i:trade_id} {d:direction} {n:price} {n:amount} {A:fee}";
        line(one, &format!("{head} {{o:fee_currency}} {maker} {{m:timestamp}};"))
    };
    match topic.split('.').next()? {
        "quote" => {
            let best = |px: &str, qty: &str| match amount(data.get(px))?.as_str() {
                "0e-0" => Some("- 0e-0".to_owned()),
                px => Some(format!("{px} {}", amount(data.get(qty))?)),
            };
            let (bid, ask) = (best("best_bid_price", "best_bid_amount")?, best("best_ask_price", "best_ask_amount")?);
            line(data, &format!("ticker {{s:instrument_name}} {bid} {ask} - - - - - - {{m:timestamp}};"))
        }
        "trades" => {
            each(data, "trade {s:instrument_name} {u:trade_seq} {n:price} {n:amount} {d:direction} {m:timestamp};")
        }
        "chart" => {
            let (name, length) = topic.strip_prefix("chart.trades.")?.rsplit_once('.')?;
            let length = minutes(length)?;
            let name = Symbol::new(name.as_bytes()).ok()?.to_string();
            line(
                data,
                &format!("candle {NAME} {length} {{m:tick}} {{n:open}} {{n:high}} {{n:low}} {{n:close}} {{n:volume}};"),
            )
            .map(|line| line.replace(NAME, &name))
        }
        "user" if topic.starts_with("user.orders.") => account(order(data)),
        "user" if topic.starts_with("user.trades.") => account(data.as_array()?.iter().map(execution).collect()),
        "user" if topic.starts_with("user.portfolio.") => {
            account(line(data, "balance {s:currency} {N:balance} {A:available_funds} {a:locked_balance} - 0;"))
        }
        _ => None,
    }
}
