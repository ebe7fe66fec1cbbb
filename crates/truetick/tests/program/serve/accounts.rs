//! Own orders, executions and positions of the simulated accounts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::openapi::{answer_validator, stream_validator};
use crate::served::Served;

const TOKEN: &str = "aTokenThatIsNowhereElse";
const PATH: &str = "/api/v1/market/accounts";
const PATIENCE: Duration = Duration::from_secs(60);

fn serve(folder: &Path, flags: &[&str]) -> Served {
    let (token, config) = (folder.join("token.txt"), folder.join("truetick.toml"));
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&config, format!("[http]\napi_token_file = \"{}\"\n", token.display())).unwrap();
    let served = Served::start(&[&["--config", config.to_str().unwrap(), "--fault-every", "0"], flags].concat());
    served.wait_ready();
    served
}

fn number(value: &Value) -> f64 {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).parse().unwrap()
}

/// What a reader of the stream knows of one account.
#[derive(Default)]
struct Copy {
    orders: BTreeMap<String, Value>,
    filled: BTreeMap<String, f64>,
    fills: u64,
    ended: usize,
}

impl Copy {
    fn take(&mut self, message: &Value) {
        let rows = |name: &str| message[name].as_array().into_iter().flatten();
        for order in rows("orders") {
            let id = order["order_id"].as_str().unwrap().to_owned();
            match order["status"].as_str().unwrap() {
                "new" | "partially_filled" => drop(self.orders.insert(id, order.clone())),
                "filled" | "cancelled" => {
                    self.ended += 1;
                    // What has been executed is the sum of its executions, which follow.
                    assert!(self.orders.remove(&id).is_some(), "{order}");
                }
                other => panic!("{other}"),
            }
        }
        for fill in rows("fills") {
            let known = fill["number"].as_u64().unwrap();
            assert!(message["type"] == "snapshot" && self.fills == 0 || known == self.fills + 1, "{message}");
            self.fills = known;
            *self.filled.entry(fill["order_id"].as_str().unwrap().to_owned()).or_default() += number(&fill["qty"]);
        }
    }

    fn assert_filled(&self) {
        for (id, order) in &self.orders {
            let filled = self.filled.get(id).copied().unwrap_or(0.0);
            assert!((number(&order["filled_qty"]) - filled).abs() < 1e-9, "{order}: {filled}");
        }
    }
}

#[test]
fn the_stream_of_an_account_adds_up_to_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(folder.path(), &["--instruments", "1", "--rate", "2000"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let validator = stream_validator("/ws/accounts");
    let mut request = format!("ws://{}/ws/accounts?venue=binance_spot", served.http).into_client_request().unwrap();
    request.headers_mut().insert("Authorization", format!("Bearer {TOKEN}").parse().unwrap());
    let (mut stream, _) = runtime.block_on(tokio_tungstenite::connect_async(request)).unwrap();
    let mut copy = Copy::default();
    let mut next = || -> Value {
        let frame = async { tokio::time::timeout(PATIENCE, stream.next()).await };
        let text = runtime.block_on(frame).expect("a message").unwrap().unwrap().into_text().unwrap();
        let message: Value = serde_json::from_str(&text).unwrap();
        assert!(validator.is_valid(&message), "{message}");
        message
    };
    let first = next();
    assert_eq!((&first["type"], &first["simulated"]), (&"snapshot".into(), &true.into()));
    copy.take(&first);
    // An order and its execution are two messages: the sums hold after the second.
    while copy.ended < 6 || copy.fills < 6 {
        let message = next();
        copy.take(&message);
        if message["type"] == "fills" {
            copy.assert_filled();
        }
    }
    // The stream reaches the state of the answer, a little later at most.
    let path = format!("{PATH}?venue=binance_spot");
    let answer = served.json_with_token(&path, TOKEN);
    assert!(answer_validator(&served, PATH).is_valid(&answer), "{answer}");
    let orders: Vec<&Value> = answer[0]["orders"].as_array().unwrap().iter().collect();
    let mut messages = 0;
    while copy.orders.values().ne(orders.iter().copied()) {
        assert!(messages < 500, "{answer}: {:?}", copy.orders);
        messages += 1;
        copy.take(&next());
    }
}

#[test]
fn a_position_has_the_profit_of_the_last_mark_price() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(folder.path(), &["--instruments", "1", "--rate", "60"]);
    let mark_path = "/api/v1/market/derivatives?venue=binance_usdm";
    served.wait(mark_path, |rows| rows[0]["mark_px"].is_string());
    let mut pairs = (0..1000).map(|_| {
        let accounts = served.json_with_token(&format!("{PATH}?venue=binance_usdm"), TOKEN);
        (accounts[0]["positions"][0].clone(), served.json(mark_path)[0].clone())
    });
    let (position, mark) =
        pairs.find(|(position, mark)| position["mark_ts_recv"] == mark["ts_recv"]).expect("one mark");
    assert_eq!((&position["symbol"], &position["leg"]), (&"BTC/USDT:USDT".into(), &"net".into()), "{position}");
    assert!(number(&position["qty"]) > 0.0 && number(&position["entry_px"]) == 61_800.0, "{position}");
    let profit = number(&position["qty"]) * (number(&mark["mark_px"]) - number(&position["entry_px"]));
    assert!((number(&position["unrealised_pnl"]) - profit).abs() < 1e-6, "{position} {mark}");
}

#[test]
fn accounts_need_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(folder.path(), &["--instruments", "1"]);
    for path in [PATH, "/ws/accounts"] {
        assert_eq!(served.get(path).status, 401, "{path}");
    }
    assert!(served.json_with_token(PATH, TOKEN).as_array().unwrap().len() > 1);
    let open = Served::start(&["--instruments", "1"]);
    assert_eq!(open.get(PATH).status, 403);
}
