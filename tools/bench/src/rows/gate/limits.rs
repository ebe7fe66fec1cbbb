//! The limits file of the gate's rows: every check is on, and no limit is near.

use std::fmt::Write as _;

/// Nanoseconds from one event to the next on the gate's clock.
pub(super) const STEP_NS: u64 = 2_000;

/// For how long an id is remembered after the end of its order.
pub(super) const ID_WINDOW_MS: u64 = 4;

/// The price that the marks are around, in price steps.
pub(super) const MIDDLE_PX: i64 = 6_000_000;

/// Orders that are open at once, at least.
const OPEN_MAX: u32 = 65_536;

/// Steps of the currency of limits in one.
const MONEY: i64 = 100_000_000;

/// The account's equity.
pub(super) const EQUITY: i64 = 50_000_000_000 * MONEY;

const RATE: &str = "{ per-second = 1000000, burst = 100000 }";

const HEAD: &str = r#"format = 2
version = 1
currency-of-limits = "USDT"
intent-age-max-ms = 5000
cancel-repeat-ms = 1
gap-max-ms = 5000
same-orders-max = 10
same-window-ms = 4
cancel-window-ms = 1000
exec-window-ms = 1000
revalue-max-ms = 100
equity-age-max-ms = 1000000000
refusal-rate = { per-second = 1000000000, burst = 1000000000 }
"#;

const INSTRUMENT: &str = r#"px-unit = "0.01"
qty-unit = "0.001"
px-step = "0.01"
qty-step = "0.001"
qty-min = "0.001"
notional-min = "5"
contract = { kind = "linear", size = "1", currency = "USDT", fee-bps = 10, margin = [{ value-max = "1000000", bps = 200 }, { value-max = "90000000000", bps = 500 }] }
collar-bps = 100
touch-bps = 500
trigger-bps = 500
slip-bps = 100
mark-age-max-ms = 2000
book-proof = "required"
proof-age-max-ms = 10000
cancels-per-fill-max = "1000000"
may-be-negative = false
enforces-reduce-only = true
replaces-atomically = true
"#;

const NODE: &str = r#"gross-max = "40000000000"
net-max = "40000000000"
open-value-max = "40000000000"
daily-loss-max = "1000000000"
drawdown-max = "1000000000"
"#;

const ROW: &str = r#"qty-max = "1"
market-qty-max = "1"
notional-max = "100000"
position-long-max = "100000"
position-short-max = "100000"
open-qty-max = "100000"
"#;

/// Returns the file of a firm with one account, one strategy and a number of instruments. The check `without` is off.
pub(super) fn text(instruments: u32, without: Option<&str>) -> String {
    let text = complete(instruments);
    let Some(without) = without else { return text };
    let is_it = |line: &str| line.split_once(" = ").is_some_and(|(key, _)| key == without);
    let off = format!("{without} = \"off\"");
    text.lines().flat_map(|line| [if is_it(line) { &off } else { line }, "\n"]).collect()
}

fn complete(instruments: u32) -> String {
    let mut text = String::new();
    // Room for the orders of the mix, spread over the instruments.
    let open_max = (OPEN_MAX / instruments).max(64);
    // Writing to a String cannot fail.
    let _ = write!(text, "{HEAD}id-window-ms = {ID_WINDOW_MS}\nrate = {RATE}\n");
    let symbol = |number: u32| format!("\"C{number}/USDT:USDT\"");
    for number in 0..instruments {
        let _ = write!(text, "[instrument.{}]\nnumber = {number}\nrate = {RATE}\n{INSTRUMENT}", symbol(number));
    }
    let account = format!(
        "{NODE}number = 0\nrate = {RATE}\nbalance = \"checked\"\nmargin = \"checked\"\nleverage-max = \"10\"\n\
         cancels-per-fill-max = \"1000000\"\n"
    );
    let strategy = format!("{NODE}number = 1\nrate = {RATE}\nexecutions-stop = 1000000000\n");
    let nodes = [("firm", NODE), ("account.main", &account), ("account.main.strategy.mm1", &strategy)];
    for (node, keys) in nodes {
        let _ = write!(text, "[{node}]\n{keys}");
        for number in 0..instruments {
            let _ = write!(text, "[{node}.limits.{}]\nopen-orders-max = {open_max}\n{ROW}", symbol(number));
        }
    }
    text
}
