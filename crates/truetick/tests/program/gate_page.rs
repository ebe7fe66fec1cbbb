//! A real browser controls the gate on the page of `truetick serve`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::gate_control::Events;
use crate::served::Served;
use serde_json::{Value, json};
use testkit::{Requirement, find_browser, require};

const TOKEN: &str = "aTokenThatIsNowhereElse";

/// `truetick serve` with an API token.
fn serve(folder: &Path) -> Served {
    let (token, config) = (folder.join("token.txt"), folder.join("truetick.toml"));
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&config, format!("[http]\napi_token_file = \"{}\"\n", token.display())).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    // No order ends by itself while the browser looks.
    let flags = ["--fault-every", "0", "--intents", "100", "--order-lifetime", "1000000"];
    let served = Served::start(&[&config[..], &flags].concat());
    served.wait_ready();
    served
}

/// Runs the script, and returns what it has seen.
fn control(served: &Served, closed: &Served, journaled: &str, chromium: &Path, screenshots: &Path) -> Value {
    let mut command = Command::new("node");
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")).arg("gate.mjs").arg(chromium);
    command.arg(format!("http://{}/", served.http)).arg(TOKEN);
    let output =
        command.arg(format!("http://{}/", closed.http)).arg(screenshots).arg(journaled).output().expect("node starts");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{errors}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

#[test]
fn the_gate_is_controlled_on_the_page_with_the_token_and_a_second_click() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let Some(chromium) = require(Requirement::Program, find_browser(&folder)) else { return };
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gate-page");
    fs::create_dir_all(&screenshots).unwrap();
    let configured = tempfile::tempdir().unwrap();
    let (served, closed) = (serve(configured.path()), Served::start(&["--fault-every", "0"]));
    closed.wait_ready();
    let journaled = tempfile::tempdir().unwrap();
    let mut events = Events::start(journaled.path());
    for _ in 0..3 {
        events.ask("0.01");
    }
    let seen = control(&served, &closed, &events.url, &chromium, &screenshots);
    let none = json!([]);
    assert_eq!(seen["before"], json!(["None: every scope is active."]));
    let version = text(&seen["version"]).strip_prefix("; limits version ").map(str::parse::<u32>);
    assert!(matches!(version, Some(Ok(1..))), "{}", seen["version"]);

    // The dialog names scope and effect; leaving it sends nothing.
    let dialog = text(&seen["dialog"]["text"]);
    assert!(dialog.contains("Kill account:0?") && dialog.contains("No order of this scope passes."), "{dialog}");
    assert_eq!((&seen["dialog"]["focus"], &seen["dialog"]["sure"]), (&json!("token"), &json!("Kill account:0")));
    assert_eq!(seen["back"], json!({ "focus": "kill", "token": "", "modes": none }));
    assert_eq!(seen["escape"], json!({ "focus": "kill", "modes": none }));
    assert_eq!(seen["untyped"], json!({ "open": true, "focus": "token" }));
    assert_eq!(seen["unsent"], 0, "{}", seen["posts"]);

    // A wrong token changes nothing; the right one is kept in memory only.
    let wrong = &seen["wrong"];
    let refusal = "Kill account:0: refused with 401: the request needs the header `Authorization: Bearer TOKEN`";
    assert!(text(&wrong["text"]).starts_with(refusal), "{wrong}");
    assert_eq!((&wrong["state"], &wrong["role"]), (&json!("failed"), &json!("alert")));
    assert_eq!((&wrong["modes"], &wrong["listed"]), (&none, &seen["before"]));
    let killed = json!([{ "scope": "account:0", "mode": "kill" }]);
    assert_eq!((&seen["killed"]["state"], &seen["killed"]["modes"]), (&json!("passed"), &killed), "{}", seen["killed"]);
    let said = text(&seen["killed"]["text"]);
    let (head, tail) = ("Kill account:0: kill, before: ", "; in force, seen by the gate and 1 sender.");
    assert!(said.starts_with(head) && said.ends_with(tail), "{said}");
    assert_eq!((&seen["listed"], &seen["reloaded"]), (&json!(["kill account:0"]), &json!(["kill account:0"])));
    assert_eq!(seen["top"], "The gate stops orders of account:0 (kill).");
    assert_eq!(seen["stored"]["places"], json!([0, 0, 0, 0]));
    assert!(!seen["stored"].to_string().contains(TOKEN), "the token is in the document or its address");
    assert!(!seen["posts"].to_string().contains(TOKEN), "{}", seen["posts"]);
    let unknown = "Reduce only strategy:no such: refused with 404: no strategy `no such`";
    assert_eq!((&seen["unknown"]["text"], &seen["unknown"]["role"]), (&json!(unknown), &json!("alert")));

    // By keyboard, from the list; the other acts.
    assert_eq!(seen["chosen"], json!({ "focus": "active", "level": "account", "name": "0" }));
    assert_eq!((&seen["tabbed"], &seen["returned"]), (&json!("sure"), &json!("active")));
    assert_eq!(
        (&seen["resumed"]["state"], &seen["resumed"]["modes"]),
        (&json!("passed"), &none),
        "{}",
        seen["resumed"]
    );
    assert_eq!(seen["none"], json!({ "modes": seen["before"], "top": false }));
    let cancelled = text(&seen["cancelled"]["text"]);
    assert!(
        cancelled.starts_with("Cancel orders of global: ") && cancelled.ends_with("no order is open."),
        "{cancelled}"
    );
    // Orders that end only by a cancel were open.
    let first = text(&seen["first"]).strip_prefix("Cancel orders of global: ").expect("the scope");
    let requested: String = first.chars().take_while(char::is_ascii_digit).collect();
    assert!(requested.parse().is_ok_and(|requested: u64| requested > 0), "{first}");
    assert_eq!(seen["reduced"], json!([{ "scope": "global", "mode": "reduce" }]));
    assert_eq!((&seen["end"], &served.json("/api/v1/risk/modes")), (&none, &none));

    assert!(text(&seen["closed"]["text"]).starts_with("No API token is configured"), "{}", seen["closed"]);
    assert_eq!(seen["closed"]["buttons"], 0);
    // The limits, and three times a mark and an order.
    assert_eq!((&seen["closed"]["journal"], &seen["journal"]), (&json!(""), &json!("Journal: record 7.")));
    // Chromium says itself that the two refused requests have failed.
    let own = seen["console"].as_array().unwrap().iter().filter(|line| !text(line).contains("Failed to load resource"));
    assert_eq!(own.collect::<Vec<_>>(), Vec::<&Value>::new());
    for (name, widths) in seen["shots"].as_object().unwrap() {
        assert!(widths[0].as_u64() <= widths[1].as_u64(), "{name} scrolls sideways: {widths}");
    }
    assert_eq!(seen["shots"].as_object().unwrap().len(), 9);
    println!("screenshots in {}", screenshots.display());
}
