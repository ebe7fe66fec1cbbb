//! Files of format 2: what each key sets, what is refused, and what reverts.

use super::*;
use crate::{Change, Sense};
use tt_model::{Breach, InstrumentId, Notional, Price, Qty};
use tt_risk::money::{Bracket, Contract, Payoff, Ratio, Spot};
use tt_risk::tree::{Node, NodeLimits, Route, RowLimits};
use tt_risk::{Limits, Rate};

use crate::settings::AccountRow;

/// No two values are equal where they could be taken for each other.
const TEXT: &str = r#"
format = 2
version = 18
currency-of-limits = "USDT"
id-window-ms = 2500
intent-age-max-ms = 2600
cancel-repeat-ms = 2700
gap-max-ms = 2800
same-orders-max = 28
same-window-ms = 2400
cancel-window-ms = 83
exec-window-ms = 84
revalue-max-ms = 85
equity-age-max-ms = 86
rate = { per-second = 61, burst = 62 }
refusal-rate = { per-second = 81, burst = 82 }
[currency.BTC]
number = 1
decimals = 6
haircut-bps = 11
age-max-ms = 12
[currency.EUR]
number = 2
decimals = 2
haircut-bps = 13
age-max-ms = 14
[instrument."ETH/USDT"]
number = 1
px-unit = "0.001"
qty-unit = "0.0001"
px-step = "0.002"
qty-step = "0.0002"
qty-min = "0.0004"
notional-min = "0.0000005"
contract = { kind = "linear", size = "10", currency = "EUR", fee-bps = 15, lot-value-min = "0.07", margin = [{ value-max = "1000", bps = 100 }, { value-max = "2000", bps = 200 }] }
collar-bps = 67
touch-bps = 68
trigger-bps = 69
slip-bps = 70
mark-age-max-ms = 71
book-proof = "off"
proof-age-max-ms = "off"
cancels-per-fill-max = "7.25"
may-be-negative = true
enforces-reduce-only = true
replaces-atomically = false
rate = { per-second = 72, burst = 73 }
[instrument."BTC/USDT"]
number = 0
px-unit = "0.5"
qty-unit = "0.00001"
px-step = "1.5"
qty-step = "0.00001"
qty-min = "0.00001"
notional-min = "0"
contract = { kind = "spot", size = "1", currency = "USDT", base = "BTC", fee-bps = 16 }
collar-bps = 74
touch-bps = "off"
trigger-bps = 0
slip-bps = "off"
mark-age-max-ms = 75
book-proof = "required"
proof-age-max-ms = 7_250
cancels-per-fill-max = "off"
may-be-negative = false
enforces-reduce-only = false
replaces-atomically = true
rate = { per-second = 76, burst = 77 }
[firm]
gross-max = "1001"
net-max = "1002.00000001"
open-value-max = "1003"
daily-loss-max = "1004"
drawdown-max = "1005"
[firm.limits."BTC/USDT"]
qty-max = "2"
market-qty-max = "1"
notional-max = "100"
position-long-max = "3"
position-short-max = "4"
open-qty-max = "5"
open-orders-max = 41
[firm.limits."ETH/USDT"]
qty-max = "12"
market-qty-max = "11"
notional-max = "110"
position-long-max = "13"
position-short-max = "14"
open-qty-max = "15"
open-orders-max = 42
[account.main]
number = 3
gross-max = "901"
net-max = "off"
open-value-max = "903"
daily-loss-max = "904"
drawdown-max = "905"
balance = "checked"
margin = "off"
leverage-max = "3.5"
cancels-per-fill-max = "4"
rate = { per-second = 78, burst = 79 }
[account.main.limits."BTC/USDT"]
qty-max = "1.5"
market-qty-max = "0.5"
notional-max = "90"
position-long-max = "2.5"
position-short-max = "3.5"
open-qty-max = "4.5"
open-orders-max = 31
position = "-0.25"
[account.main.strategy.mm1]
number = 7
gross-max = "801"
net-max = "802"
open-value-max = "803"
daily-loss-max = "804"
drawdown-max = "805"
executions-stop = 806
rate = { per-second = 87, burst = 88 }
[account.main.strategy.mm1.limits."BTC/USDT"]
qty-max = "1.25"
market-qty-max = "0.25"
notional-max = "80"
position-long-max = "2.25"
position-short-max = "3.25"
open-qty-max = "4.25"
open-orders-max = 21
temporary = { until = "2026-12-01T00:00:00Z", qty-max = "1.5", open-orders-max = 5 }
"#;

/// 2026-12-01T00:00:00Z.
const UNTIL_NS: u64 = 1_796_083_200_000_000_000;

fn row(lots: [i64; 5], notional: i128, orders: u32) -> RowLimits {
    let [qty_max, market_qty_max, position_long_max, position_short_max, open_qty_max] = lots.map(Qty);
    RowLimits {
        qty_max,
        market_qty_max,
        notional_max: Notional(notional),
        position_long_max,
        position_short_max,
        open_qty_max,
        open_orders_max: orders,
    }
}

fn money(units: [i64; 5]) -> NodeLimits {
    let [gross, net, open, day, drawdown] = units.map(|units| (units > 0).then_some(units * 100_000_000));
    NodeLimits {
        gross_max: gross,
        net_max: net,
        open_value_max: open,
        daily_loss_max: day,
        drawdown_max: drawdown,
        ..NodeLimits::OFF
    }
}

fn markets() -> Vec<Market> {
    let rate = |per_second, burst| Rate { per_second, burst };
    let bracket = |value_max, bps| Bracket { value_max, bps };
    let btc = Market {
        limits: InstrumentLimits { collar_bps: 74, mark_age_max_ns: 75_000_000, rate: rate(76, 77) },
        rules: InstrumentRules {
            replaces_atomically: true,
            proof_age_max_ns: Some(7_250_000_000),
            ..InstrumentRules::default()
        },
        contract: Contract {
            // 0.5 times 0.00001, in 10^-8.
            value: Ratio { num: 500, den: 1 },
            // Notionals count 10^-6.
            face: Ratio { num: 5, den: 1 },
            currency: 0,
            spot: Some(Spot { base: 1, per_lot: Ratio { num: 10, den: 1 } }),
            fee_bps: 16,
            ..Contract::default()
        },
    };
    let eth = Market {
        limits: InstrumentLimits { collar_bps: 67, mark_age_max_ns: 71_000_000, rate: rate(72, 73) },
        rules: InstrumentRules {
            slip_bps: Some(70),
            touch_bps: Some(68),
            trigger_bps: 69,
            may_be_negative: true,
            enforces_reduce_only: true,
            replaces_atomically: false,
            cancels_per_fill_max_pct: Some(725),
            proof_age_max_ns: None,
        },
        contract: Contract {
            payoff: Payoff::Linear,
            // 0.001 times 0.0001 times 10, in 10^-2.
            value: Ratio { num: 1, den: 10_000 },
            face: Ratio { num: 10, den: 1 },
            currency: 2,
            spot: None,
            fee_bps: 15,
            lot_value_min: 7,
            brackets: [bracket(100_000, 100), bracket(200_000, 200), bracket(200_000, 200), bracket(200_000, 200)],
        },
    };
    vec![btc, eth]
}

fn nodes() -> Vec<(Node, NodeLimits)> {
    let account = NodeLimits {
        checks_balance: true,
        leverage_max_pct: Some(350),
        cancels_per_fill_max_pct: Some(400),
        ..money([901, 0, 903, 904, 905])
    };
    let strategy = NodeLimits { executions_stop: Some(806), ..money([801, 802, 803, 804, 805]) };
    let firm = NodeLimits { net_max: Some(100_200_000_001), ..money([1001, 1002, 1003, 1004, 1005]) };
    vec![(Node::Firm, firm), (Node::Account(3), account), (Node::Strategy { account: 3, strategy: 7 }, strategy)]
}

fn times() -> Rules {
    Rules {
        id_window_ns: 2_500_000_000,
        intent_age_max_ns: 2_600_000_000,
        cancel_repeat_ns: 2_700_000_000,
        gap_max_ns: 2_800_000_000,
        same_orders_max: 28,
        same_window_ns: 2_400_000_000,
        refusal_rate: Rate { per_second: 81, burst: 82 },
        cancel_window_ns: 83_000_000,
        exec_window_ns: 84_000_000,
        revalue_max_ns: 85_000_000,
        equity_age_max_ns: 86_000_000,
    }
}

fn limits() -> Limits {
    Limits {
        px_step: Price(3),
        qty_step: Qty(1),
        qty_min: Qty(1),
        qty_max: Qty(150_000),
        notional_min: Notional(0),
        notional_max: Notional(90_000_000),
        position_long_max: Qty(250_000),
        position_short_max: Qty(350_000),
        open_qty_max: Qty(450_000),
        open_orders_max: 31,
        enabled: Limits::CHECKED,
    }
}

#[test]
fn every_key_sets_its_own_field() {
    let file = parse(TEXT).unwrap();
    let btc = InstrumentId(0);
    let rate = |per_second, burst| Rate { per_second, burst };
    let route = Route { producer: 0, account: 3, strategy: 7, instrument: btc };
    let expected = Settings {
        // 78 per second for 2.5 s, the burst of 79, and 31 open orders.
        capacity: Capacity {
            accounts: 4,
            instruments: 2,
            producers: 1,
            orders: 305,
            executions: 4_096,
            routes: 1,
            currencies: 2,
        },
        global_rate: rate(61, 62),
        rules: times(),
        markets: markets(),
        currencies: vec![
            CurrencyLimits { haircut_bps: 11, age_max_ns: 12_000_000 },
            CurrencyLimits { haircut_bps: 13, age_max_ns: 14_000_000 },
        ],
        firm: vec![
            (btc, row([200_000, 100_000, 300_000, 400_000, 500_000], 100_000_000, 41)),
            (InstrumentId(1), row([120_000, 110_000, 130_000, 140_000, 150_000], 1_100_000_000, 42)),
        ],
        account_rates: vec![(3, rate(78, 79))],
        rows: vec![AccountRow {
            account: 3,
            instrument: btc,
            limits: limits(),
            market_qty_max: Some(Qty(50_000)),
            position: Qty(-25_000),
        }],
        routes: vec![(route, row([150_000, 25_000, 225_000, 325_000, 425_000], 80_000_000, 5))],
        strategy_rates: vec![(3, 7, rate(87, 88))],
        nodes: nodes(),
    };
    assert_eq!(*file.settings_at(UNTIL_NS - 1), expected);
    assert_eq!((file.next_revert_ns(0), file.next_revert_ns(UNTIL_NS)), (UNTIL_NS, u64::MAX));
    let later = vec![(route, row([125_000, 25_000, 225_000, 325_000, 425_000], 80_000_000, 21))];
    assert_eq!(*file.settings_at(UNTIL_NS), Settings { routes: later, ..expected });
    assert_eq!((file.version(), file.account("main"), file.strategy("mm1")), (Some(18), Some(3), Some(7)));
    assert_eq!((file.currency("USDT").unwrap(), file.currency("EUR").unwrap()), ((0, 8), (2, 2)));
    let of = file.instrument(btc).unwrap();
    assert_eq!((of.px("60000.5").unwrap(), of.px_text(120_001)), (Price(120_001), "60000.5".to_owned()));
    assert!(of.px("60000.4").is_err());
    let unproved = TEXT.replace("book-proof = \"required\"", "book-proof = \"off\"").replace("7_250", "\"off\"");
    let unproved = parse(&unproved).unwrap();
    let enabled = unproved.limits_of(3, btc, 0).unwrap().enabled;
    assert_eq!(enabled, Breach(Limits::CHECKED.0 & !Breach::BOOK_UNVERIFIED.0));
    let gate = file.gate().unwrap();
    assert_eq!(gate.controls().limits_version(), 18);
    assert_eq!(gate.exposure(3, btc).map(|held| held.position), Some(Qty(-25_000)));
}

#[test]
fn an_inverse_contract_is_worth_its_size_by_the_price() {
    let text = TEXT.replace("kind = \"linear\", size = \"10\"", "kind = \"inverse\", size = \"10\"");
    let contract = parse(&text).unwrap().settings_at(0).markets[1].contract;
    // 0.0001 lots of 10 by a price of 0.001, in 10^-2; as notional 0.001, in 10^-7.
    assert_eq!((contract.payoff, contract.value), (Payoff::Inverse, Ratio { num: 100, den: 1 }));
    assert_eq!(contract.face, Ratio { num: 10_000, den: 1 });
}

/// Factors that fit alone, and not together.
#[test]
fn a_contract_beyond_64_bits_is_refused() {
    let text = TEXT
        .replace("qty-unit = \"0.00001\"", "qty-unit = \"1000\"")
        .replace("decimals = 6", "decimals = 18")
        .replace("kind = \"spot\", size = \"1\"", "kind = \"spot\", size = \"9.000000000000000000\"");
    let error = parse(&text).unwrap_err().to_string();
    assert!(error.contains("the units of the base currency are beyond 64 bits"), "{error}");
}

/// Keys without which a file says less, but nothing dangerous.
const OPTIONAL: [&str; 2] = ["position", "temporary"];

#[test]
fn every_key_is_required_and_no_other_is_known() {
    let keys = TEXT.lines().enumerate().filter_map(|(number, line)| Some((number, line.split_once(" = ")?.0)));
    let mut seen = 0;
    for (number, key) in keys {
        let with = |other: Option<&str>| {
            let lines = TEXT.lines().enumerate().map(|(index, line)| match other {
                Some(other) if index == number => line.replacen(key, other, 1),
                None if index == number => String::new(),
                _ => line.to_owned(),
            });
            LimitsFile::parse(&lines.collect::<Vec<_>>().join("\n"))
        };
        if key == "format" {
            continue;
        }
        seen += 1;
        let unknown = with(Some("no-such-key"));
        let missing = with(None);
        if OPTIONAL.contains(&key) {
            missing.unwrap();
        } else {
            let error = missing.unwrap_err().to_string();
            assert!(error.contains(&format!("`{key}` is missing")) && error.starts_with("line "), "{key}: {error}");
        }
        let error = unknown.unwrap_err().to_string();
        let is_named = error.contains("unknown key `no-such-key`") || error.contains(&format!("`{key}` is missing"));
        assert!(is_named, "{key}: {error}");
    }
    assert!(seen > 90, "{seen}");
}

/// A text of the file, what replaces it, and the error.
const CONTRADICTIONS: [(&str, &str, &str); 28] = [
    ("format = 2", "format = 3", "line 1: format = 3 is not 2"),
    ("version = 18", "version = 0", "line 1: version = 0 is below 1"),
    ("version = 18", "version = 18\nversion = 19", "line 4: duplicate key"),
    ("same-window-ms = 2400", "same-window-ms = 2501", "line 1: same-window-ms = 2501 is above id-window-ms = 2500"),
    (
        "currency-of-limits = \"USDT\"",
        "currency-of-limits = \"BTC\"",
        "line 17: currency BTC: a conversion into itself: it is currency-of-limits, in line 4",
    ),
    ("haircut-bps = 11", "haircut-bps = 10000", "line 20: currency BTC: haircut-bps = 10000 is above 9999"),
    ("number = 2\ndecimals", "number = 1\ndecimals", "line 22: currency: number = 1 is that of line 17 too"),
    ("number = 2\ndecimals", "number = 3\ndecimals", "line 22: currency: number = 3, and none has 2"),
    (
        "px-step = \"0.002\"",
        "px-step = \"0.0025\"",
        "line 31: instrument ETH/USDT: px-step: `0.0025` is not a decimal number with at most 3 decimals",
    ),
    ("px-step = \"1.5\"", "px-step = \"1.2\"", "line 52: instrument BTC/USDT: px-step: `1.2` is no multiple of 0.5"),
    (
        "qty-min = \"0.0004\"",
        "qty-min = \"0.0005\"",
        "line 33: instrument ETH/USDT: qty-min = 0.0005 is no multiple of the lot 0.0002",
    ),
    (
        "book-proof = \"required\"",
        "book-proof = \"off\"",
        "line 48: instrument BTC/USDT: proof-age-max-ms = 7250, and book-proof = \"off\"",
    ),
    ("collar-bps = 67", "collar-bps = 10000", "line 36: instrument ETH/USDT: collar-bps = 10000 is above 9999"),
    ("slip-bps = 70", "slip-bps = \"of\"", "line 39: instrument ETH/USDT: slip-bps = \"of\": expected a whole number"),
    (
        "kind = \"linear\"",
        "kind = \"swap\"",
        "line 35: instrument ETH/USDT: contract: kind = \"swap\": expected linear or inverse or spot",
    ),
    (
        "currency = \"EUR\"",
        "currency = \"GBP\"",
        "line 35: instrument ETH/USDT: contract: currency = GBP: no such currency",
    ),
    (
        "qty-max = \"1.5\"\nmarket",
        "qty-max = \"2.00001\"\nmarket",
        "line 104: account main, BTC/USDT: qty-max = 2.00001 is above 2, that of firm, BTC/USDT in line 76",
    ),
    (
        "open-orders-max = 21",
        "open-orders-max = 32",
        "line 121: account main: strategy mm1, BTC/USDT: open-orders-max = 32 is above 31, that of account main, \
             BTC/USDT in line 103",
    ),
    (
        "qty-max = \"1.5\", open",
        "qty-max = \"1.6\", open",
        "line 129: account main: strategy mm1, BTC/USDT: qty-max = 1.6 is above 1.5, that of account main, BTC/USDT \
             in line 104",
    ),
    (
        "gross-max = \"901\"",
        "gross-max = \"1001.5\"",
        "line 93: account main: gross-max = 1001.5 is above 1001, that of firm in line 70",
    ),
    ("gross-max = \"901\"", "gross-max = \"-1\"", "line 93: account main: gross-max = -1 is below zero"),
    (
        "gross-max = \"901\"",
        "gross-max = \"off\"",
        "line 93: account main: gross-max = off is not a decimal number with at most 8 decimals",
    ),
    (
        "qty-min = \"0.00001\"",
        "qty-min = \"1.50001\"",
        "line 104: account main, BTC/USDT: qty-min = 1.50001 is above qty-max = 1.50000",
    ),
    (
        "notional-min = \"0\"",
        "notional-min = \"90.5\"",
        "line 106: account main, BTC/USDT: notional-min = 90.500000 is above notional-max = 90.000000",
    ),
    (
        "[account.main.limits.\"BTC/USDT\"]",
        "[account.main.limits.\"XRP/USDT\"]",
        "line 103: account main, XRP/USDT: no instrument `XRP/USDT`",
    ),
    (
        "[account.main.strategy.mm1.limits.\"BTC/USDT\"]",
        "[account.main.strategy.mm1.limits.\"ETH/USDT\"]",
        "line 121: account main: strategy mm1, ETH/USDT: the account has no limits in it",
    ),
    (
        "until = \"2026-12-01T00:00:00Z\"",
        "until = \"tomorrow\"",
        "line 129: account main: strategy mm1, BTC/USDT: until = tomorrow: not a time such as 2026-12-01T00:00:00Z",
    ),
    (
        "open-orders-max = 5 }",
        "executions-stop = 5 }",
        "line 129: account main: strategy mm1, BTC/USDT: temporary: unknown key `executions-stop`",
    ),
];

#[test]
fn case_k13_what_contradicts_itself_is_refused_with_line_and_both_values() {
    for (from, to, error) in CONTRADICTIONS {
        assert!(TEXT.contains(from), "{from}");
        let found = LimitsFile::parse(&TEXT.replacen(from, to, 1)).unwrap_err();
        assert_eq!(found.to_string(), error, "{from}");
    }
    let equal = TEXT.replacen("qty-max = \"1.5\"\nmarket", "qty-max = \"2\"\nmarket", 1);
    LimitsFile::parse(&equal).unwrap().gate().unwrap();
    let blocked = LimitsFile::parse(&format!("{TEXT}[capacity]\ninstruments = 1\n")).unwrap_err();
    assert_eq!(blocked.to_string(), "line 130: capacity: instruments = 1 is below 2, which the file needs");
}

#[test]
fn a_comparison_says_what_loosens_and_what_tightens_now_and_when_limits_revert() {
    let old = parse(TEXT).unwrap();
    let new = TEXT
        .replace("collar-bps = 67", "collar-bps = 66")
        .replace("touch-bps = 68", "touch-bps = \"off\"")
        .replace("qty-min = \"0.0004\"", "qty-min = \"0.0002\"")
        .replace("slip-bps = 70", "slip-bps = 71")
        .replace("open-orders-max = 21", "open-orders-max = 20");
    let changes = old.changes_to(&parse(&new).unwrap(), UNTIL_NS - 1);
    let said = |change: &Change| {
        let Change { sense, from_ns, place, key, old, new } = change;
        format!("{sense:?} {from_ns:?} {place}: {key} {old} {new}")
    };
    let expected = [
        "Loosens None instrument ETH/USDT: touch-bps 68 off".to_owned(),
        "Tightens None instrument ETH/USDT: collar-bps 67 66".to_owned(),
        "Changes None instrument ETH/USDT: slip-bps 70 71".to_owned(),
        format!("Tightens Some({UNTIL_NS}) account main: strategy mm1, BTC/USDT: open-orders-max 21 20"),
    ];
    assert_eq!(changes.iter().map(said).collect::<Vec<_>>(), expected);
    // Units do not matter, and what is missing lets nothing pass.
    let coarse =
        TEXT.replace("px-unit = \"0.5\"", "px-unit = \"0.1\"").replace("EUR\", fee-bps = 15", "EUR\", fee-bps = 17");
    let changes = old.changes_to(&parse(&coarse).unwrap(), UNTIL_NS);
    assert!(changes.iter().all(|change| change.sense == Sense::Changes), "{changes:?}");
    let without = parse(&TEXT.replace("[account.main.strategy.mm1", "[account.main.strategy.mm2")).unwrap();
    let changes = old.changes_to(&without, UNTIL_NS);
    assert!(changes.iter().any(|change| said(change).starts_with("Loosens None account main: strategy mm2, BTC/USDT")));
    let row = "Tightens None account main: strategy mm1, BTC/USDT: qty-max 1.25000 none";
    assert!(changes.iter().any(|change| said(change) == row), "{:?}", changes.iter().map(said).collect::<Vec<_>>());
}
