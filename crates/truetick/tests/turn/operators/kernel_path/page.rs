//! The page's share of the kernel path, seen by a browser in the server's namespace.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::{Requirement, find_browser, require};

use super::scene::{SERVER, Scene};
use crate::operators::operated::wait;

#[test]
fn the_page_shows_the_share_in_the_kernel() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let Some(chromium) = require(Requirement::Program, find_browser(&folder)) else { return };
    let Some(mut scene) = Scene::require("native", "off") else { return };
    let proven = scene.prove();
    for _ in 0..2 * proven {
        scene.relay_out();
        scene.relay_back();
    }
    wait("all is counted", || scene.status()["to_clients"].as_u64() >= Some(2 * proven));
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel");
    std::fs::create_dir_all(&screenshots).unwrap();
    let url = format!("http://{}/", scene.server.http);
    let output = scene.network.on(SERVER, || {
        Command::new("node").current_dir(&folder).arg("kernel.mjs").arg(&chromium).arg(&url).arg(&screenshots).output()
    });
    let output = output.unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{errors}"));
    for list in ["console", "outside", "axe", "shifts"] {
        assert_eq!(seen[list], json!([]), "{list}");
    }
    let line = seen["kernel"].as_str().unwrap();
    let status = scene.status();
    let [to_peers, to_clients] = ["to_peers", "to_clients"].map(|way| status[way].as_u64().unwrap());
    let share = 100 * (to_peers + to_clients) / (6 * proven);
    assert!((66..100).contains(&share), "{status}");
    assert!(line.starts_with(&format!("in the kernel: {share} % of relayed packets, ")), "{line}: {status}");
    assert!(line.ends_with("; channels: 1; c0 native, proven; r0 native, proven"), "{line}");
}
