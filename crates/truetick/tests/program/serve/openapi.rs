//! The market's interfaces answer what their OpenAPI file says, and the file leaves none of them out.

use std::collections::BTreeSet;

use crate::served::{PATIENCE, Served};
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
    // The history has its first second.
    let is_kept = || served.get("/api/v1/market/history/depth").status == 200;
    assert!(testkit::wait_until(PATIENCE, is_kept), "no depth is kept");
    let document = served.json("/api/v1/openapi.json");
    let mut answered = 0;
    for (path, get) in paths(&document) {
        let schema = &get["responses"]["200"]["content"]["application/json"]["schema"];
        // What needs the token is asked for in `gate_control`, and `serve` has no feeds that can be changed.
        if schema.is_null() || !get["security"].is_null() || path == "/api/v1/market/feeds" {
            continue;
        }
        let validator = validator(&document, schema);
        assert_fits(&validator, path, &served.json(path));
        // A schema that takes anything would prove nothing.
        assert!(!validator.is_valid(&json!([{"unknown": 1}])) && !validator.is_valid(&json!({"unknown": 1})), "{path}");
        answered += 1;
    }
    assert_eq!(answered, 16);
    // The gate's answers, too, say that the market is simulated.
    for path in ["verdicts", "limits", "levels", "reasons", "stages"] {
        let answer =
            served.wait(&format!("/api/v1/risk/{path}"), |value| value.as_array().is_none_or(|rows| !rows.is_empty()));
        let rows = answer.as_array().map_or(std::slice::from_ref(&answer), Vec::as_slice);
        assert!(rows.iter().all(|row| row["simulated"] == true), "{path}: {answer}");
    }
}

/// Returns a validator of the answers of `path`.
pub(super) fn answer_validator(served: &Served, path: &str) -> jsonschema::Validator {
    let document = served.json("/api/v1/openapi.json");
    validator(&document, &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"])
}

/// A file of the control plane's sources.
fn source(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(name)).expect("the file")).expect("JSON")
}

/// Addresses of the streams in the AsyncAPI file, and the name of each one's schema in the OpenAPI file.
fn streams() -> Vec<(String, String)> {
    let document = source("asyncapi.json");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let channels = document["channels"].as_object().expect("channels").iter();
    let streams = channels.map(|(name, channel)| {
        let schema = text(&channel["messages"][name]["payload"]["$ref"]);
        let schema = schema.strip_prefix("openapi.json#/components/schemas/").expect("a schema of the other file");
        (text(&channel["address"]), schema.to_owned())
    });
    streams.collect()
}

/// Returns a validator of the messages of the stream at `path`, by the AsyncAPI file.
pub(super) fn stream_validator(path: &str) -> jsonschema::Validator {
    let (_, schema) = streams().into_iter().find(|(address, _)| address == path).expect("a documented stream");
    let document = source("openapi.json");
    validator(&document, &document["components"]["schemas"][schema])
}

#[tokio::test]
async fn every_stream_sends_the_shape_that_is_documented() {
    let served = tokio::task::spawn_blocking(|| {
        let served = Served::start(&["--fault-every", "0.2"]);
        served.wait_ready();
        served
    });
    let served = served.await.expect("serve starts");
    let mut kinds = BTreeSet::new();
    // What needs the token is read in `accounts`.
    for (path, _) in streams().into_iter().filter(|(path, _)| path != "/ws/accounts") {
        let validator = stream_validator(&path);
        assert!(
            !validator.is_valid(&json!([{"unknown": 1}])) && !validator.is_valid(&json!({"type": "delta"})),
            "{path}"
        );
        let (mut socket, _) = connect_async(format!("ws://{}{path}", served.http)).await.expect(&path);
        // A fault makes a status; while the machine is busy, no change may come before it.
        let mut missing = if path == "/ws/orderbook" { BTreeSet::from(["status", "delta"]) } else { BTreeSet::new() };
        let mut messages = 0;
        let is_each = ["/ws/trades", "/ws/derivatives", "/ws/liquidations"].contains(&path.as_str());
        while messages < 50 && is_each || messages < 3 || !missing.is_empty() {
            let message = socket.next().await.expect("a message").expect("a message").into_text().expect("text");
            let value: Value = serde_json::from_str(&message).expect("JSON");
            assert_fits(&validator, &path, &value);
            if let Some(kind) = value["type"].as_str() {
                missing.remove(kind);
                kinds.insert(kind.to_owned());
            }
            messages += 1;
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["delta", "liquidations", "snapshot", "status", "trades"]);
    let (of_http, of_file) = (served.json("/api/v1/asyncapi.json"), source("asyncapi.json"));
    assert_eq!(of_http, of_file);
}

#[test]
fn both_files_describe_the_same_streams() {
    let document = source("openapi.json");
    let of_openapi: Vec<(String, String)> = paths(&document)
        .into_iter()
        .filter_map(|(path, get)| {
            let schema = get["x-message"]["$ref"].as_str()?.strip_prefix("#/components/schemas/")?;
            Some((path.clone(), schema.to_owned()))
        })
        .collect();
    let mut of_asyncapi = streams();
    of_asyncapi.sort();
    assert_eq!((of_openapi.len(), of_openapi), (8, of_asyncapi));
    let channels = source("asyncapi.json");
    for (path, get) in paths(&document).into_iter().filter(|(path, _)| path.starts_with("/ws/")) {
        let name = |parameter: &Value| parameter["name"].as_str().map(str::to_owned);
        let documented: BTreeSet<_> = get["parameters"].as_array().expect("a list").iter().filter_map(name).collect();
        let query = &channels["channels"][&path["/ws/".len()..]]["bindings"]["ws"]["query"]["properties"];
        let bound: BTreeSet<_> = query.as_object().expect("parameters").keys().cloned().collect();
        assert_eq!(documented, bound, "{path}");
    }
}

fn file(name: &str) -> String {
    format!("{}/../control/src/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn no_interface_is_left_out() {
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(file("openapi.json")).expect("the file")).expect("JSON");
    let documented: BTreeSet<String> = paths(&document).into_iter().map(|(path, _)| path.clone()).collect();
    let names = ["market.rs", "account.rs", "candles.rs", "feeds.rs", "websocket.rs", "gate.rs", "past.rs"];
    let sources = names.map(|name| std::fs::read_to_string(file(name)).expect("a source"));
    let routed: BTreeSet<String> = sources
        .iter()
        .flat_map(|source| source.split(".route(\"").skip(1))
        .filter_map(|rest| rest.split('"').next().map(str::to_owned))
        // The page's own stream and series, and the descriptions themselves.
        .filter(|path| path != "/api/v1/live" && path != "/api/v1/history" && !path.ends_with("api.json"))
        .collect();
    assert_eq!(documented, routed);
}
