//! The market's interfaces answer what their OpenAPI file says, and the file leaves none of them out.

use std::collections::BTreeSet;

use crate::served::Served;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;

/// A schema of the file, with the definitions that it leans on.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    jsonschema::validator_for(&whole).expect("the file holds schemas")
}

fn assert_fits(validator: &jsonschema::Validator, path: &str, value: &Value) {
    let faults: Vec<String> =
        validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path)).collect();
    assert!(faults.is_empty(), "{path} answers {value}: {faults:?}");
}

fn paths(document: &Value) -> Vec<(&String, &Value)> {
    document["paths"].as_object().expect("paths").iter().map(|(path, item)| (path, &item["get"])).collect()
}

#[test]
fn every_answer_has_the_shape_that_is_documented() {
    let served = Served::start(&["--fault-every", "0"]);
    served.wait_ready();
    let has_trades = |value: &Value| {
        value
            .as_array()
            .is_some_and(|rows| rows.iter().all(|row| row["trades"].as_array().is_some_and(|t| !t.is_empty())))
    };
    served.wait("/api/v1/market/trades", has_trades);
    let document = served.json("/api/v1/openapi.json");
    let mut answered = 0;
    for (path, get) in paths(&document) {
        let schema = &get["responses"]["200"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let validator = validator(&document, schema);
        assert_fits(&validator, path, &served.json(path));
        // A schema that takes anything would prove nothing.
        assert!(!validator.is_valid(&json!([{"unknown": 1}])) && !validator.is_valid(&json!({"unknown": 1})), "{path}");
        answered += 1;
    }
    assert_eq!(answered, 9);
}

#[tokio::test]
async fn every_stream_sends_the_shape_that_is_documented() {
    let served = tokio::task::spawn_blocking(|| {
        let served = Served::start(&["--fault-every", "0"]);
        served.wait_ready();
        served
    });
    let served = served.await.expect("serve starts");
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(file("openapi.json")).expect("the file")).expect("JSON");
    let mut streamed = 0;
    for (path, get) in paths(&document) {
        if get["x-message"].is_null() {
            continue;
        }
        let validator = validator(&document, &get["x-message"]);
        let (mut socket, _) = connect_async(format!("ws://{}{path}?venue=kraken", served.http)).await.expect(path);
        let mut last = std::collections::BTreeMap::new();
        for _ in 0..3 {
            let message = socket.next().await.expect("a message").expect("a message").into_text().expect("text");
            let value: Value = serde_json::from_str(&message).expect("JSON");
            assert_fits(&validator, path, &value);
            // Trades come once each, and none is left out in silence.
            for row in value.as_array().expect("a list").iter().filter(|_| path == "/ws/trades") {
                let first = row["trades"][0]["number"].as_u64().expect("a number");
                if let Some(known) = last.get(&row["instrument"].as_u64()) {
                    assert_eq!(first, known + 1 + row["missed"].as_u64().expect("a number"), "{row}");
                }
                let newest = row["trades"].as_array().and_then(|trades| trades.last()).expect("a trade");
                last.insert(row["instrument"].as_u64(), newest["number"].as_u64().expect("a number"));
            }
        }
        streamed += 1;
    }
    assert_eq!(streamed, 4);
}

fn file(name: &str) -> String {
    format!("{}/../control/src/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn no_interface_is_left_out() {
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(file("openapi.json")).expect("the file")).expect("JSON");
    let documented: BTreeSet<String> = paths(&document).into_iter().map(|(path, _)| path.clone()).collect();
    let sources = ["market.rs", "websocket.rs"].map(|name| std::fs::read_to_string(file(name)).expect("a source"));
    let routed: BTreeSet<String> = sources
        .iter()
        .flat_map(|source| source.split(".route(\"").skip(1))
        .filter_map(|rest| rest.split('"').next().map(str::to_owned))
        // The page's own stream, and the description itself.
        .filter(|path| path != "/api/v1/live" && path != "/api/v1/openapi.json")
        .collect();
    assert_eq!(documented, routed);
}
