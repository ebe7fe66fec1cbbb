//! `--level3` over REST: every order of a book with its place in the queue.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use sim::{OrderLevel, Venue};
use tempfile::TempDir;

use super::openapi::answer_validator;
use crate::served::Served;

const PATH: &str = "/api/v1/market/orders";

/// Quantity of whole steps as text.
fn text(steps: i64, decimals: u32) -> String {
    let scale = 10_i64.pow(decimals);
    format!("{}.{:0width$}", steps / scale, steps % scale, width = decimals as usize)
}

/// What the venue has, as the answer shows it.
fn truth(sim: &sim::Running, depth: usize) -> Value {
    let listed = sim.instruments(Venue::Kraken).remove(0);
    let (px, qty) = (|px| text(px, listed.px_decimals), |qty| text(qty, listed.qty_decimals));
    let level = |(at, orders): &OrderLevel| {
        let mut ahead = 0;
        let rows: Vec<Value> = orders
            .iter()
            .enumerate()
            .map(|(position, order)| {
                let row = json!({
                    "id": order.id, "qty": qty(order.qty), "position": position, "qty_ahead": qty(ahead),
                    "ts_event": (order.unix_us != 0).then_some(order.unix_us * 1000),
                });
                ahead += order.qty;
                row
            })
            .collect();
        json!({ "px": px(*at), "qty": qty(ahead), "orders": rows })
    };
    let side = |levels: &[OrderLevel]| levels.iter().take(depth).map(level).collect::<Value>();
    let [bids, asks] = sim.orders(Venue::Kraken, 0);
    json!([side(&bids), side(&asks)])
}

#[test]
fn every_order_is_shown_with_its_place_in_the_queue() {
    let sim = sim::start(sim::Config { instruments: 1, rate_hz: 0.0, ..sim::Config::default() }).unwrap();
    let folder = TempDir::new().unwrap();
    let account = folder.path().join("account.toml");
    fs::write(&account, format!("key = \"{}\"\nsecret = \"{}\"\n", sim::API_KEY, sim::API_SECRET)).unwrap();
    fs::set_permissions(&account, fs::Permissions::from_mode(0o600)).unwrap();
    let url = format!("ws://{}/v2", sim.address(Venue::Kraken));
    let symbol = sim.instruments(Venue::Kraken).remove(0).symbol;
    let flags = ["market", "--http", "127.0.0.1:0", "--venue", "kraken", "--symbols", &symbol, "--url", &url];
    let file = account.to_str().unwrap();
    let served = Served::of(&[&flags[..], &["--level3", "--depth", "10", "--account-file", file]].concat());
    served.wait("/api/v1/market/status", |status| status["books_proven"] == 1);
    let validator = answer_validator(&served, PATH);
    for depth in [10, 3] {
        for _ in 0..20 {
            sim.step(Venue::Kraken, 0, 10);
            let expected = truth(&sim, depth);
            let is_true = |rows: &Value| json!([rows[0]["bids"], rows[0]["asks"]]) == expected;
            let rows = served.wait(&format!("{PATH}?venue=kraken&depth={depth}"), is_true);
            assert_eq!((&rows[0]["proof"], &rows[0]["symbol"]), (&"crc".into(), &"BTC/USD".into()));
            assert!(validator.is_valid(&rows) && rows.as_array().unwrap().len() == 1, "{rows}");
        }
    }
    let longest = truth(&sim, 10);
    let queues = longest[0].as_array().unwrap().iter().map(|level| level["orders"].as_array().unwrap().len());
    assert!(queues.max().unwrap() > 1, "a queue of one order shows no place");
    let book = served.json("/api/v1/market/orderbook?depth=10");
    let sums = |side: &str, at: usize| {
        let level = |level: &Value| json!({ "px": level["px"], "qty": level["qty"] });
        let levels: Vec<Value> = longest[at].as_array().unwrap().iter().map(level).collect();
        assert_eq!(book[0][side], Value::from(levels));
    };
    sums("bids", 0);
    sums("asks", 1);
    for (question, status) in [("depth=0", 400), ("levels=3", 400), ("venue=okx", 404)] {
        assert_eq!(served.get(&format!("{PATH}?{question}")).status, status, "{question}");
    }
    // A feed that is not connected has nothing to show.
    sim.stop();
    served.wait(PATH, |rows| rows.as_array().is_some_and(Vec::is_empty));
}
