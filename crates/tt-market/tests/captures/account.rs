//! Messages of the account: each says exactly what a JSON library with exact numbers reads from it, in any order of
//! keys, and changes what the engine knows. What no fixture holds is made from the fields of the venue's documentation.

use crate::captured::{folder, unproved};
use crate::oracles;
use crate::parsers::{plain, plain_text, shuffle};
use serde_json::{Value, json};
use tt_market::{
    Applied, Capacity, ConnectionId, ContractUnit, Coverage, Decimal, Engine, Event, EventBuffer, Fault, OrderId,
    OrderListStatus, OrderStatus, Request, Symbol, Venue,
};
use tt_meter::Off;
use tt_model::{InstrumentId, Nanos};

/// A fixture's text, or `None` after saying that `test` is skipped.
fn fixture(test: &str, name: &str) -> Option<String> {
    Some(std::fs::read_to_string(folder(test)?.join("fixtures").join(format!("{name}.json"))).unwrap())
}

/// A number's text without regard to zeros that end it; `-` for what is untold.
fn number(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null => return "-".to_owned(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => panic!("{value}"),
    };
    match text.strip_prefix('-') {
        _ if text.is_empty() => "-".to_owned(),
        Some(rest) => format!("-{}", plain_text(rest).unwrap()).replace("-0e-0", "0e-0"),
        None => plain_text(&text).unwrap(),
    }
}

fn maybe(number: Option<Decimal>) -> String {
    number.map_or("-".to_owned(), plain)
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => "-".to_owned(),
    }
}

/// Everything that a frame says about an account, one line for each entry.
fn said(venue: Venue, frame: &str) -> Vec<String> {
    let mut buffer = EventBuffer::new(16, 64);
    let event = venue.parse(frame.as_bytes(), &mut buffer).unwrap_or_else(|fault| panic!("{fault:?} {frame}"));
    assert!(matches!(event, Event::Account | Event::OrderUpdates), "{event:?}");
    let mut lines = Vec::new();
    for order in buffer.order_updates() {
        let symbol = order.symbol.map_or("-".to_owned(), |symbol| symbol.to_string());
        let side = order.side.map_or("-".to_owned(), |side| format!("{side:?}"));
        let numbers = [order.limit_px, order.qty, order.filled_qty].map(maybe).join(" ");
        lines.push(format!(
            "order {symbol} {} {side} {:?} {numbers} {}",
            order.order_id, order.status, order.ts_event.0
        ));
        if let Some(fill) = order.fill {
            let numbers = [Some(fill.px), Some(fill.qty), fill.fee].map(maybe).join(" ");
            let asset = fill.fee_asset.map_or("-".to_owned(), |asset| asset.to_string());
            let maker = fill.is_maker.map_or("-".to_owned(), |maker| maker.to_string());
            lines.push(format!("fill {} {numbers} {asset} {maker}", fill.trade_id));
        }
    }
    for one in buffer.executions() {
        let numbers = [Some(one.px), Some(one.qty), one.fee].map(maybe).join(" ");
        let asset = one.fee_asset.map_or("-".to_owned(), |asset| asset.to_string());
        let maker = one.is_maker.map_or("-".to_owned(), |maker| maker.to_string());
        let head = format!("execution {} {} {} {:?}", one.symbol, one.order_id, one.execution_id, one.side);
        lines.push(format!("{head} {numbers} {asset} {maker} {}", one.ts_event.0));
    }
    for one in buffer.balances() {
        let numbers = [one.total, one.free, one.locked, one.change].map(maybe).join(" ");
        lines.push(format!("balance {} {numbers} {}", one.asset, one.ts_event.0));
    }
    for one in buffer.positions() {
        let numbers = [Some(one.qty), one.entry_px, one.unrealised].map(maybe).join(" ");
        lines.push(format!("position {} {:?} {numbers} {}", one.symbol, one.leg, one.ts_event.0));
    }
    lines.push(format!("{:?} {:?}", buffer.orders_coverage(), buffer.positions_coverage()));
    lines
}

/// Holds a frame, in twenty orders of its keys, against the lines that the JSON library led to.
fn says(venue: Venue, frame: &str, expected: &[String], coverage: [Coverage; 2]) {
    let mut expected = expected.to_vec();
    expected.push(format!("{:?} {:?}", coverage[0], coverage[1]));
    assert_eq!(said(venue, frame), expected);
    let value: Value = serde_json::from_str(frame).unwrap();
    for mut seed in 0..20 {
        let mut other = String::new();
        shuffle(&value, &mut seed, &mut other);
        assert_eq!(said(venue, &other), expected, "{other}");
    }
    for end in 0..frame.trim_end().len() {
        let mut buffer = EventBuffer::new(16, 64);
        assert!(venue.parse(&frame.as_bytes()[..end], &mut buffer).is_err(), "{end}");
    }
}

const CHANGED: [Coverage; 2] = [Coverage::Changed; 2];

fn ns(value: &Value) -> u64 {
    let ms = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    ms.map_or_else(|| oracles::rfc3339(Some(value)).unwrap(), |ms| ms * 1_000_000)
}

fn side(value: &Value) -> &'static str {
    match value.as_str().unwrap().to_lowercase().as_str() {
        "buy" | "b" => "Buy",
        "sell" | "a" => "Sell",
        other => panic!("{other}"),
    }
}

/// One venue, its connection, and an instrument with steps of 0.00000001.
struct Follower {
    engine: Engine,
    connection: ConnectionId,
    id: InstrumentId,
    venue: Venue,
    now: Nanos,
}

impl Follower {
    fn new(venue: Venue, symbol: &str) -> Self {
        let now = Nanos::from_millis(1_800_000_000_000);
        let mut engine = Engine::new(Capacity::default());
        let fine = Decimal::new(1, 8);
        let id = engine.add_instrument(unproved(venue, symbol, fine, fine)).unwrap();
        let connection = engine.open_connection(venue, now).unwrap();
        Self { engine, connection, id, venue, now }
    }

    fn feed(&mut self, frame: &str) -> Result<Applied, Fault> {
        let result = self.engine.handle_frame(self.now, self.connection, frame.as_bytes(), &mut Off);
        assert!(self.engine.counters().venue(self.venue).closes());
        result
    }

    fn status(&self, order: &str) -> Option<OrderStatus> {
        self.engine.order(self.venue, &OrderId::new(order.as_bytes()).unwrap()).map(|order| order.status)
    }

    /// Total, free, locked and last change.
    fn balance(&self, asset: &str) -> Option<[String; 4]> {
        let balance = self.engine.balance(self.venue, &Symbol::new(asset.as_bytes()).unwrap())?;
        Some([balance.total, balance.free, balance.locked, balance.change].map(maybe))
    }

    /// Trade, quantity and fee of every execution.
    fn fills(&self) -> Vec<String> {
        let shown = |fill: &tt_market::FillState| {
            format!("{} {} {}", fill.fill.trade_id, plain(fill.fill.qty), maybe(fill.fill.fee))
        };
        self.engine.fills().map(shown).collect()
    }

    fn counts(&self) -> (u64, u64, u64) {
        let counters = self.engine.counters().venue(self.venue);
        (counters.executions, counters.duplicate_executions, counters.orders_ended)
    }
}

#[test]
fn binance_account_messages_say_what_the_fixtures_hold() {
    let test = "binance_account_messages_say_what_the_fixtures_hold";
    for (venue, name) in [
        (Venue::BinanceUsdm, "futures_user_data_json_account_update"),
        (Venue::BinanceCoinm, "futures_user_data_json_account_update"),
        (Venue::BinanceUsdm, "futures_user_data_json_account_update_bnfcr"),
    ] {
        let Some(text) = fixture(test, &format!("binance/{name}")) else { return };
        let frame: Value = serde_json::from_str(&text).unwrap();
        let (account, at) = (&frame["a"], ns(&frame["E"]));
        let balance =
            |one: &Value| format!("balance {} {} - - {} {at}", word(&one["a"]), number(&one["wb"]), number(&one["bc"]));
        let position = |one: &Value| {
            let leg = match one["ps"].as_str().unwrap() {
                "BOTH" => "Net",
                "LONG" => "Long",
                _ => "Short",
            };
            let entry = if number(&one["ep"]) == "0e-0" { "-".to_owned() } else { number(&one["ep"]) };
            format!("position {} {leg} {} {entry} {} {at}", word(&one["s"]), number(&one["pa"]), number(&one["up"]))
        };
        let mut expected: Vec<_> = account["B"].as_array().unwrap().iter().map(balance).collect();
        expected.extend(account["P"].as_array().unwrap().iter().map(position));
        assert!(!expected.is_empty());
        says(venue, &text, &expected, CHANGED);
    }
    for name in ["account_position", "account_position_wrapped"] {
        let text = fixture(test, &format!("binance/spot_user_data_json_{name}")).unwrap();
        let frame: Value = serde_json::from_str(&text).unwrap();
        let event = frame.get("event").unwrap_or(&frame);
        let sum = |one: &Value| {
            let exact = |key: &str| Decimal::parse(one[key].as_str().unwrap().as_bytes()).unwrap();
            let (free, locked) = (exact("f"), exact("l"));
            assert_eq!(free.decimals, locked.decimals);
            plain(Decimal::new(free.mantissa + locked.mantissa, free.decimals))
        };
        let balance = |one: &Value| {
            let (free, locked) = (number(&one["f"]), number(&one["l"]));
            format!("balance {} {} {free} {locked} - {}", word(&one["a"]), sum(one), ns(&event["E"]))
        };
        let expected: Vec<_> = event["B"].as_array().unwrap().iter().map(balance).collect();
        says(Venue::BinanceSpot, &text, &expected, CHANGED);
    }
    for name in ["balance_update", "balance_update_wrapped"] {
        let text = fixture(test, &format!("binance/spot_user_data_json_{name}")).unwrap();
        let frame: Value = serde_json::from_str(&text).unwrap();
        let event = frame.get("event").unwrap_or(&frame);
        let line = format!("balance {} - - - {} {}", word(&event["a"]), number(&event["d"]), ns(&event["E"]));
        says(Venue::BinanceSpot, &text, &[line], CHANGED);
    }
    let text = fixture(test, "binance/futures_user_data_json_trade_lite").unwrap();
    let frame: Value = serde_json::from_str(&text).unwrap();
    let head = format!("execution {} {} {}", word(&frame["s"]), word(&frame["i"]), word(&frame["t"]));
    let numbers = format!("{} {} - -", number(&frame["L"]), number(&frame["l"]));
    let line = format!("{head} {} {numbers} {} {}", side(&frame["S"]), word(&frame["m"]), ns(&frame["T"]));
    says(Venue::BinanceUsdm, &text, &[line], CHANGED);
    for (name, status) in [("new", "Pending"), ("canceled", "Cancelled")] {
        let text = fixture(test, &format!("binance/futures_user_data_json_algo_update_{name}")).unwrap();
        let frame: Value = serde_json::from_str(&text).unwrap();
        let order = &frame["o"];
        let head = format!("order {} conditional:{} {}", word(&order["s"]), word(&order["aid"]), side(&order["S"]));
        let numbers = format!("{} {} {}", number(&order["p"]), number(&order["q"]), number(&order["aq"]));
        says(Venue::BinanceUsdm, &text, &[format!("{head} {status} {numbers} {}", ns(&frame["E"]))], CHANGED);
    }
}

#[test]
fn a_binance_order_list_and_an_expired_login_are_told() {
    let test = "a_binance_order_list_and_an_expired_login_are_told";
    let Some(text) = fixture(test, "binance/spot_user_data_json_list_status_wrapped") else { return };
    let frame: Value = serde_json::from_str(&text).unwrap();
    let event = &frame["event"];
    let mut buffer = EventBuffer::new(16, 16);
    let Event::OrderList(list) = Venue::BinanceSpot.parse(text.as_bytes(), &mut buffer).unwrap() else {
        panic!("an order list")
    };
    assert_eq!((list.symbol.to_string(), list.list_id.to_string()), (word(&event["s"]), word(&event["g"])));
    assert_eq!((list.orders, list.status, list.ts_event.0), (2, OrderListStatus::Executing, ns(&event["E"])));
    let mut follower = Follower::new(Venue::BinanceSpot, "ETHBTC");
    assert_eq!(follower.feed(&text), Ok(Applied::Control));
    let connection = follower.connection;
    let expired = json!({"e": "listenKeyExpired", "E": 1_700_000_000_000_u64, "listenKey": "k"}).to_string();
    assert_eq!(follower.feed(&expired), Ok(Applied::Control));
    assert_eq!(follower.engine.poll_request(follower.now), Some(Request::Reconnect { connection }));
    assert_eq!(follower.feed(&expired), Err(Fault::OldConnection));
}

#[test]
fn an_automatic_close_is_whole_whatever_zeros_its_numbers_end_in() {
    let test = "an_automatic_close_is_whole_whatever_zeros_its_numbers_end_in";
    let Some(text) = fixture(test, "binance/futures_user_data_json_order_update_adl") else { return };
    let mut frame: Value = serde_json::from_str(&text).unwrap();
    for (done, status) in [("0.00500", "Filled"), ("0.004", "New"), ("0.005", "Filled")] {
        frame["o"]["z"] = json!(done);
        let lines = said(Venue::BinanceUsdm, &frame.to_string());
        assert!(lines[0].contains(&format!(" {status} ")), "{lines:?}");
    }
}

#[test]
fn binance_positions_balances_and_executions_are_kept_once_and_valued() {
    let test = "binance_positions_balances_and_executions_are_kept_once_and_valued";
    let Some(update) = fixture(test, "binance/futures_user_data_json_account_update") else { return };
    let mut follower = Follower::new(Venue::BinanceUsdm, "BTCUSDT");
    let mark = |px: &str| {
        let at = 1_800_000_000_000_u64;
        json!({"e": "markPriceUpdate", "E": at, "s": "BTCUSDT", "p": px, "i": px, "P": "0", "r": "0.0001", "T": at})
            .to_string()
    };
    follower.feed(&mark("6600.1")).unwrap();
    assert_eq!(follower.feed(&update), Ok(Applied::Account));
    let board = follower.engine.board();
    let worth = |slot| board.position(slot).map(|held| (held.lots, plain_i128(held.pnl_mantissa, held.pnl_decimals)));
    // 20 x (6600.1 - 6563.6) and -10 x (6600.1 - 6563.8): valued at once, and at each mark price.
    assert_eq!(worth(0), Some((2_000_000_000, "730e-0".to_owned())));
    assert_eq!(worth(1), Some((-1_000_000_000, "-363e-0".to_owned())));
    follower.feed(&mark("6500")).unwrap();
    assert_eq!(worth(0), Some((2_000_000_000, "-1272e-0".to_owned())));
    assert_eq!(worth(1), Some((-1_000_000_000, "638e-0".to_owned())));
    let known = ["12262412345678e-8", "-", "-", "5012345678e-8"].map(str::to_owned);
    assert_eq!(follower.balance("USDT"), Some(known));

    let mut closed: Value = serde_json::from_str(&update).unwrap();
    closed["a"]["P"][1]["pa"] = json!("0.000");
    assert_eq!(follower.feed(&closed.to_string()), Ok(Applied::Account));
    assert_eq!((worth(0), worth(1)), (Some((0, "0e-0".to_owned())), Some((-1_000_000_000, "638e-0".to_owned()))));
    assert_eq!((follower.engine.position(0), follower.engine.position(1).is_some()), (None, true));

    // The quick message first, then the whole one of the same execution, then that one again.
    let quick = fixture(test, "binance/futures_user_data_json_trade_lite").unwrap();
    follower.feed(&quick).unwrap();
    assert_eq!(follower.fills(), ["12345678 1e-3 -"]);
    let whole = fixture(test, "binance/futures_user_data_json_order_update_trade").unwrap();
    let mut frame: Value = serde_json::from_str(&whole).unwrap();
    frame["o"]["t"] = json!(12_345_678);
    frame["o"]["i"] = json!(8_886_774);
    follower.feed(&frame.to_string()).unwrap();
    follower.feed(&frame.to_string()).unwrap();
    let fee = number(&frame["o"]["n"]);
    assert_eq!(follower.fills(), [format!("12345678 1e-3 {fee}")]);
    assert_eq!(follower.counts(), (1, 2, 0));
}

fn plain_i128(mantissa: i128, decimals: u8) -> String {
    let (mut mantissa, mut decimals) = (mantissa, decimals);
    while decimals > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        decimals -= 1;
    }
    format!("{mantissa}e-{decimals}")
}

#[test]
fn a_coin_margined_position_gains_in_coin() {
    let mut follower = Follower::new(Venue::BinanceCoinm, "BTCUSD_PERP");
    let unit = ContractUnit::Inverse(Decimal::new(100, 0));
    follower.engine.set_contract_unit(follower.id, unit).unwrap();
    let at = 1_800_000_000_000_u64;
    let position = json!({"s": "BTCUSD_PERP", "pa": "3", "ep": "50000", "up": "0", "ps": "BOTH"});
    let update = json!({"e": "ACCOUNT_UPDATE", "E": at, "T": at, "a": {"m": "ORDER", "B": [], "P": [position]}});
    follower.feed(&update.to_string()).unwrap();
    // COIN-M sends no index price with the mark price.
    let mark =
        json!({"e": "markPriceUpdate", "E": at, "s": "BTCUSD_PERP", "p": "60000.0", "P": "0", "r": "0.0001", "T": at});
    assert_eq!(follower.feed(&mark.to_string()), Ok(Applied::MarkPrice(follower.id)));
    let held = follower.engine.board().position(0).unwrap();
    // 3 x 100 / 50000 - 3 x 100 / 60000 = 0.006 - 0.005.
    assert_eq!(plain_i128(held.pnl_mantissa, held.pnl_decimals), "1e-3");
}

fn kraken_order(id: &str, status: &str, second: u32) -> Value {
    let at = format!("2026-08-01T10:33:{second:02}.709950Z");
    json!({"order_id": id, "exec_type": status, "order_status": status, "timestamp": at, "symbol": "BTC/USD",
        "side": "sell", "order_qty": 0.00500000, "limit_price": 26500.10, "cum_qty": 0.0})
}

fn kraken(topic: &str, kind: &str, entries: &[Value]) -> String {
    json!({"channel": topic, "type": kind, "data": entries, "sequence": 3}).to_string()
}

#[test]
fn a_kraken_snapshot_ends_the_orders_that_ended_while_nobody_listened() {
    let mut follower = Follower::new(Venue::Kraken, "BTC/USD");
    let orders = [kraken_order("OA", "new", 1), kraken_order("OB", "new", 2), kraken_order("OC", "new", 3)];
    follower.feed(&kraken("executions", "snapshot", &orders)).unwrap();
    assert_eq!(follower.engine.orders_len(), 3);
    follower.engine.close_connection(follower.connection, follower.now);
    follower.connection = follower.engine.open_connection(Venue::Kraken, follower.now).unwrap();
    // An update names what changed alone; a snapshot all that is open.
    follower.feed(&kraken("executions", "update", &orders[..1])).unwrap();
    assert_eq!(follower.engine.orders_len(), 3);
    let orders = [kraken_order("OB", "partially_filled", 9), kraken_order("OD", "new", 8)];
    follower.feed(&kraken("executions", "snapshot", &orders)).unwrap();
    let known = ["OA", "OB", "OC", "OD"].map(|id| follower.status(id));
    assert_eq!(known, [None, Some(OrderStatus::PartiallyFilled), None, Some(OrderStatus::New)]);
    assert_eq!(follower.counts(), (0, 0, 2));
}

#[test]
fn kraken_executions_and_balances_say_what_was_sent() {
    let fees = json!([{"asset": "USD", "qty": 0.13780052}]);
    let past = json!({"order_id": "OA", "exec_id": "TX4", "exec_type": "trade", "symbol": "BTC/USD", "side": "buy",
        "last_qty": 0.002, "last_price": 26500.1, "liquidity_ind": "t", "fees": fees, "timestamp": "2026-08-01T10:33:05.7Z"});
    let frame = kraken("executions", "snapshot", std::slice::from_ref(&past));
    let line = format!("execution BTC/USD OA TX4 Buy 265001e-1 2e-3 13780052e-8 USD false {}", ns(&past["timestamp"]));
    says(Venue::Kraken, &frame, &[line], [Coverage::All, Coverage::Changed]);
    let mut follower = Follower::new(Venue::Kraken, "BTC/USD");
    follower.feed(&frame).unwrap();
    follower.feed(&frame).unwrap();
    assert_eq!((follower.fills(), follower.counts()), (vec!["TX4 2e-3 13780052e-8".to_owned()], (1, 1, 0)));

    let wallets = json!([{"type": "spot", "id": "main", "balance": 1.5}]);
    let all = [json!({"asset": "BTC", "asset_class": "currency", "balance": 1.5, "wallets": wallets})];
    let frame = kraken("balances", "snapshot", &all);
    says(Venue::Kraken, &frame, &["balance BTC 15e-1 - - - 0".to_owned()], CHANGED);
    follower.feed(&frame).unwrap();
    let change = json!({"ledger_id": "L", "ref_id": "R", "timestamp": "2026-08-01T10:33:05.7Z", "type": "trade",
        "asset": "BTC", "amount": -0.00000001, "fee": 0.0, "balance": 1.49999999});
    let frame = kraken("balances", "update", std::slice::from_ref(&change));
    let line = format!("balance BTC 149999999e-8 - - -1e-8 {}", ns(&change["timestamp"]));
    says(Venue::Kraken, &frame, &[line], CHANGED);
    follower.feed(&frame).unwrap();
    assert_eq!(follower.balance("BTC").unwrap(), ["149999999e-8", "-", "-", "-1e-8"].map(str::to_owned));
}

#[test]
fn coinbase_user_messages_say_what_the_fixture_holds_and_end_unnamed_orders() {
    let test = "coinbase_user_messages_say_what_the_fixture_holds_and_end_unnamed_orders";
    let Some(text) = fixture(test, "coinbase/ws_user") else { return };
    let mut frame: Value = serde_json::from_str(&text).unwrap();
    let order = frame["events"][0]["orders"][0].clone();
    let head =
        format!("order {} {} {}", word(&order["product_id"]), word(&order["order_id"]), side(&order["order_side"]));
    let numbers = format!("- {} {}", number(&order["leaves_quantity"]), number(&order["cumulative_quantity"]));
    let at = ns(&frame["timestamp"]);
    let line = format!("{head} New {numbers} {at}");
    says(Venue::CoinbaseAdvanced, &text, std::slice::from_ref(&line), [Coverage::All, Coverage::Changed]);

    let venue = Venue::CoinbaseAdvanced;
    let mut follower = Follower::new(venue, "BTC-USD");
    let mut sequence = 0;
    let mut send = |follower: &mut Follower, kind: &str, orders: &[Value]| {
        frame["sequence_num"] = json!(sequence);
        sequence += 1;
        frame["events"] = json!([{"type": kind, "orders": orders}]);
        assert_eq!(follower.feed(&frame.to_string()), Ok(Applied::Account));
        follower.engine.orders_len()
    };
    let numbered = |number: usize| {
        let mut order = order.clone();
        order["order_id"] = json!(format!("a1b2c3d4-e5f6-7890-abcd-ef12345678{number:02}"));
        order
    };
    let orders: Vec<_> = (0..70).map(numbered).collect();
    assert_eq!(send(&mut follower, "snapshot", &orders[..50]), 50);
    assert_eq!(send(&mut follower, "snapshot", &orders[50..]), 70);
    // Another list of all: the first fifty, an order that is told meanwhile, and the rest.
    assert_eq!(send(&mut follower, "snapshot", &orders[..50]), 70);
    assert_eq!(send(&mut follower, "update", &[numbered(99)]), 71);
    assert_eq!(send(&mut follower, "snapshot", &orders[60..65]), 56);
    assert_eq!(
        (follower.status("a1b2c3d4-e5f6-7890-abcd-ef1234567899"), follower.counts().2),
        (Some(OrderStatus::New), 15)
    );
    let mut done = numbered(3);
    done["status"] = json!("FILLED");
    done["cumulative_quantity"] = json!("0.001");
    done["leaves_quantity"] = json!("0");
    assert_eq!(send(&mut follower, "update", &[done]), 55);

    let perpetual =
        json!({"product_id": "BTC-USD", "net_size": "-0.5", "entry_vwap": "60000.5", "unrealized_pnl": "-1.25"});
    let future = json!({"product_id": "BTC-USD", "side": "SHORT", "number_of_contracts": "3", "entry_price": "61000", "unrealized_pnl": ""});
    let positions = json!({"perpetual_futures_positions": [perpetual], "expiring_futures_positions": [future]});
    frame["events"] = json!([{"type": "update", "orders": [], "positions": positions}]);
    let lines = [
        format!("position BTC-USD Net -5e-1 600005e-1 -125e-2 {at}"),
        format!("position BTC-USD Net -3e-0 61000e-0 - {at}"),
    ];
    says(venue, &frame.to_string(), &lines, CHANGED);
}

#[test]
fn hyperliquid_private_messages_say_what_was_sent() {
    let test = "hyperliquid_private_messages_say_what_was_sent";
    let Some(text) = fixture(test, "hyperliquid/ws_user_fill_liquidation") else { return };
    let venue = Venue::Hyperliquid;
    let frame: Value = serde_json::from_str(&text).unwrap();
    let fill = &frame["data"]["fills"][0];
    let head = format!(
        "execution {} {} {} {}",
        word(&fill["coin"]),
        word(&fill["oid"]),
        word(&fill["tid"]),
        side(&fill["side"])
    );
    let numbers = format!("{} {} {}", number(&fill["px"]), number(&fill["sz"]), number(&fill["fee"]));
    let line = format!("{head} {numbers} {} true {}", word(&fill["feeToken"]), ns(&fill["time"]));
    says(venue, &text, std::slice::from_ref(&line), CHANGED);
    let user = "0x360878d351f05975e25f1807a27895e1e5e004fb";
    let snapshot =
        json!({"channel": "userFills", "data": {"isSnapshot": true, "user": user, "fills": [fill]}}).to_string();
    says(venue, &snapshot, &[line], CHANGED);
    let mut follower = Follower::new(venue, "BTC");
    follower.feed(&text).unwrap();
    follower.feed(&snapshot).unwrap();
    assert_eq!(follower.counts(), (1, 1, 0), "the snapshot repeats it");

    let order = |left: &str, status: &str, at: u64| {
        let order = json!({"coin": "BTC", "side": "A", "limitPx": "66700.0", "sz": left, "oid": 55_030_848_198_u64,
            "timestamp": 1_781_528_000_000_u64, "origSz": "0.003", "cloid": null});
        json!({"channel": "orderUpdates", "data": [{"order": order, "status": status, "statusTimestamp": at}]})
            .to_string()
    };
    let at = 1_781_528_000_001_u64;
    for (frame, status, done, open) in [
        (order("0.003", "open", at), "New", "0e-0", 1),
        (order("0.001", "open", at + 1), "PartiallyFilled", "2e-3", 1),
        (order("0.001", "reduceOnlyCanceled", at + 2), "Cancelled", "2e-3", 0),
    ] {
        let time = ns(&serde_json::from_str::<Value>(&frame).unwrap()["data"][0]["statusTimestamp"]);
        let line = format!("order BTC 55030848198 Sell {status} 66700e-0 3e-3 {done} {time}");
        says(venue, &frame, &[line], CHANGED);
        follower.feed(&frame).unwrap();
        assert_eq!(follower.engine.orders_len(), open, "{status}");
    }
    for (status, expected) in [("filled", "Filled"), ("perpMarginRejected", "Rejected"), ("triggered", "New")] {
        let lines = said(venue, &order("0.003", status, at));
        assert!(lines[0].contains(&format!(" {expected} ")), "{lines:?}");
    }

    let funding = json!({"time": at, "coin": "BTC", "usdc": "-3.625312", "szi": "49.1477", "fundingRate": "0.0000417"});
    let frame = json!({"channel": "userFundings", "data": {"user": user, "fundings": [funding]}}).to_string();
    says(venue, &frame, &[format!("balance USDC - - - -3625312e-6 {}", at * 1_000_000)], CHANGED);
    let held = json!({"type": "oneWay", "position": {"coin": "BTC", "szi": "-0.0335", "entryPx": "2986.3",
        "unrealizedPnl": "-0.0134", "positionValue": "100.02765", "leverage": {"type": "isolated", "value": 20}}});
    let margin = json!({"accountValue": "13.109482", "totalNtlPos": "100.02765", "totalRawUsd": "13.1", "totalMarginUsed": "4.967826"});
    let state = |positions: &[Value]| {
        let state =
            json!({"assetPositions": positions, "marginSummary": margin, "withdrawable": "8.141656", "time": at});
        json!({"channel": "webData2", "data": {"clearinghouseState": state, "user": user}}).to_string()
    };
    let frame = state(std::slice::from_ref(&held));
    let lines = [
        format!("balance USDC 13109482e-6 8141656e-6 4967826e-6 - {}", at * 1_000_000),
        format!("position BTC Net -335e-4 29863e-1 -134e-4 {}", at * 1_000_000),
    ];
    says(venue, &frame, &lines, [Coverage::Changed, Coverage::All]);
    follower.feed(&frame).unwrap();
    assert_eq!(follower.engine.position(0).map(|held| held.lots), Some(-3_350_000));
    follower.feed(&state(&[])).unwrap();
    assert_eq!(follower.engine.position(0), None, "a list of all positions without it");
}
