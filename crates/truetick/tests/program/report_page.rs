//! A real browser plays with the figures of a report that `truetick bench` made: as a file, and in the page of a server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::served::Served;
use serde_json::Value;
use testkit::{Requirement, find_browser, require, two_cpus};

/// The folder of the script that drives the browser.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

/// Returns Chromium; skips the test without it or with one CPU, on which no bench runs.
fn require_browser() -> Option<PathBuf> {
    require(Requirement::TwoCpus, two_cpus())?;
    require(Requirement::Program, find_browser(&folder()))
}

/// How often a run may be void, where the machine has too much else to do.
const TRIES: usize = 3;

/// The folder of a quick run, made once.
fn result() -> &'static Path {
    static RESULT: OnceLock<PathBuf> = OnceLock::new();
    RESULT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
        let mut message = String::new();
        for _ in 0..TRIES {
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).expect("a folder");
            // A separate lock: another bench on this machine does not matter here.
            let run = Command::new(env!("CARGO_BIN_EXE_truetick"))
                .args(["bench", "ring", "--quick", "--force", "--ablation", "--out"])
                .arg(&folder)
                .env("TMPDIR", &folder)
                .output()
                .expect("truetick starts");
            if folder.join("report.html").is_file() {
                return folder;
            }
            message = String::from_utf8_lossy(&run.stderr).into_owned();
        }
        panic!("no report: {message}");
    })
}

fn report() -> Value {
    let text = std::fs::read_to_string(result().join("report.json")).expect("report.json");
    serde_json::from_str(&text).expect("JSON")
}

fn play(chromium: &Path, url: &str, name: &str) -> Value {
    let mut command = Command::new("node");
    command.current_dir(folder()).arg("report.mjs").arg(chromium).arg(url).arg(result()).arg(name);
    let output = command.output().expect("node starts");
    let message = String::from_utf8_lossy(&output.stdout);
    let seen = serde_json::from_str(&message);
    seen.unwrap_or_else(|error| panic!("{error}: {message}{}", String::from_utf8_lossy(&output.stderr)))
}

#[track_caller]
fn rows(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no rows: {value}"))
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// What is shown is `ns` to all digits that are shown.
#[track_caller]
fn shows(shown: &Value, ns: &Value) {
    let ns = ns.as_f64().unwrap_or_else(|| panic!("no number: {ns}"));
    let (number, unit) = text(shown).split_once(' ').unwrap_or_else(|| panic!("no time: {shown}"));
    let scale = match unit {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => panic!("no unit: {shown}"),
    };
    let number = number.replace('−', "-");
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    let half = 0.5001 * 10_f64.powi(-(digits as i32));
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("no time: {shown}"));
    assert!((number - ns / scale).abs() <= half, "{shown} represents {ns} ns");
}

/// Everything that was played with shows the report's own numbers.
fn check(seen: &Value, report: &Value) {
    assert_eq!(seen["console"], Value::Array(Vec::new()));
    assert_eq!(seen["outside"], Value::Array(Vec::new()));
    for (name, width) in seen["widths"].as_object().expect("widths") {
        assert!(width[0].as_u64() <= width[1].as_u64(), "{name} scrolls sideways: {width}");
    }
    let classes = rows(&report["figures"]["classes"]);
    // Only a class whose distance was measured can be chosen.
    let offered = |class: &&Value| class["placement"] != "moved" && !class["ping_pong"].is_null();
    let placements = seen["placements"].as_object().expect("placements");
    assert_eq!(placements.len(), classes.iter().filter(offered).count(), "{placements:?}");
    for class in classes.iter().filter(offered) {
        let shown = &placements[text(&class["placement"])];
        for way in rows(&class["ways"]) {
            if way["layout"] == "sequence_in_slot_resting" {
                let message = text(&shown["hop"]).split_once("without that, one line takes ").expect("a sentence").1;
                shows(&message.split_once(". ").expect("its end").0.into(), &way["p50"]["value"]);
                continue;
            }
            shows(&shown["ways"][text(&way["layout"])]["whole"], &way["p50"]["value"]);
        }
        if !class["sharing"].is_null() {
            shows(&shown["sharing"][0], &class["sharing"]["one_line"]["value"]);
            shows(&shown["sharing"][1], &class["sharing"]["own_lines"]["value"]);
        }
    }
    check_line(&seen["line"], classes);
    check_spread(&seen["spread"], classes);
    check_sharing(&seen["sharing"], classes, &seen["line"]["placement"]);
    check_comparison(&seen["comparison"], &report["figures"]);
    check_code(seen, &report["figures"]);
    let steps = rows(&report["figures"]["ablation"]);
    assert_eq!(steps.len(), 11);
    assert_eq!(rows(&seen["ablation"]).len(), steps.len());
    for (shown, step) in rows(&seen["ablation"]).iter().zip(steps) {
        assert_eq!(shown[0], step["name"]);
        shows(&shown[1], &step["cumulative"]["value"]);
        for (shown, ns) in [(&shown[2], &step["without"]["value"]), (&shown[3], &step["published_ns"])] {
            if ns.is_null() {
                assert_eq!(shown, "–");
            } else {
                shows(shown, ns);
            }
        }
    }
}

/// The simulated distribution and the measured one have the same axes, and neither is taken for the other.
fn check_comparison(comparison: &Value, figures: &Value) {
    let (simulated, published) = (&figures["simulated"]["distribution"], &figures["simulated"]["published"]);
    let class =
        rows(&figures["classes"]).iter().find(|class| class["placement"] == comparison["placement"]).expect("a class");
    let Some(measured) = rows(&class["distributions"]).iter().find(|one| one["name"] == "one_in_flight") else {
        assert!(comparison["panels"]["measured"].is_null(), "{comparison}");
        return;
    };
    let [theirs, ours] = ["simulated", "measured"].map(|kind| &comparison["panels"][kind]);
    assert!(text(&theirs["says"]).starts_with("simulated (published parameters)"), "{theirs}");
    assert!(text(&ours["says"]).starts_with("measured here"), "{ours}");
    assert_eq!(theirs["axes"], ours["axes"]);
    for (panel, of) in [(theirs, simulated), (ours, measured)] {
        assert_eq!(panel["bars"], rows(&of["buckets"]).len(), "{panel}");
    }
    for (row, of) in [("simulated", simulated), ("measured", measured)] {
        for (name, key) in [("min", "min_ns"), ("p50", "p50_ns"), ("p99", "p99_ns"), ("mean", "mean_ns")] {
            shows(&comparison["figures"][row][name], &of[key]);
        }
    }
    shows(&comparison["figures"]["published"]["mean"], &published["average"]);
    assert_eq!(comparison["figures"]["published"]["max"], "n/a", "the greatest was not published");
    assert!(text(&comparison["caption"]).contains("The maximum was not published"), "{comparison}");
}

/// Every part and every step names its code, and the published figures their source.
fn check_code(seen: &Value, figures: &Value) {
    let line = |source: &Value| format!("{} {}", text(&source["item"]), text(&source["path"]));
    let lines = |sources: &Value| rows(sources).iter().map(line).collect::<Vec<_>>();
    assert!(rows(&figures["parts"]).len() > 15, "{figures}");
    for (shown, part) in rows(&seen["map"]).iter().zip(rows(&figures["parts"])) {
        assert_eq!(*shown, serde_json::json!([part["name"], lines(&part["sources"])]));
    }
    assert_eq!(rows(&seen["map"]).len(), rows(&figures["parts"]).len());
    let sources = seen["publishedSources"].to_string();
    for (shown, step) in rows(&seen["code"]).iter().zip(rows(&figures["ablation"])) {
        let without = lines(&step["sources_without"]).into_iter().map(|line| format!("without: {line}"));
        assert_eq!(*shown, serde_json::json!(lines(&step["sources"]).into_iter().chain(without).collect::<Vec<_>>()));
        assert!(sources.contains(text(&step["published_source"])), "{sources}");
    }
}

/// Nanoseconds of a time that is shown; 0 of none.
fn shown_ns(shown: &Value) -> f64 {
    let Some((number, unit)) = text(shown).split_once(' ') else { return 0.0 };
    let scale = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)].into_iter().find(|(name, _)| *name == unit);
    number.parse::<f64>().expect("a number") * scale.expect("a unit").1
}

/// The switch shows either figure; a class without both says that they were not measured.
fn check_sharing(sharing: &Value, classes: &[Value], placement: &Value) {
    let class = classes.iter().find(|class| class["placement"] == *placement).expect("a class of the report");
    if class["sharing"].is_null() {
        assert_eq!(sharing["absent"], "Not measured in this run, or not in this placement.");
        return;
    }
    let checked = ["on", "off", "again"].map(|state| &sharing[state]["checked"]);
    assert_eq!(checked, ["true", "false", "true"], "{sharing}");
    assert_eq!([&sharing["on"]["stage"], &sharing["off"]["stage"]], ["on", "off"]);
    assert_eq!(sharing["on"]["result"], sharing["on"]["measures"][0]);
    assert_eq!(sharing["off"]["result"], sharing["off"]["measures"][1]);
}

/// Gives a class both times of two counters, or takes them away.
///
/// A quick run whose threads moved between its parts has them in no class, or in another one.
fn set_sharing(class: &mut Value, is_measured: bool) {
    let estimate = |ns: f64| serde_json::json!({"value": ns, "low": ns * 0.9, "high": ns * 1.1});
    class["sharing"] = if is_measured {
        serde_json::json!({"one_line": estimate(41.5), "own_lines": estimate(1.25), "apart_bytes": 256, "what": "an increment"})
    } else {
        Value::Null
    };
}

/// A line that is written is modified there and invalid here, and shared when it was read.
///
/// A class has a lane for each layout that was measured in it.
fn check_line(line: &Value, classes: &[Value]) {
    let class = classes.iter().find(|class| class["placement"] == line["placement"]).expect("a class of the report");
    let measured = |layout: &str| rows(&class["ways"]).iter().any(|way| way["layout"] == layout);
    let states = |layout: &str| -> Vec<(String, Option<String>)> {
        let steps = rows(&line["steps"]).iter().map(|step| &step[layout]);
        steps
            .map(|lane| {
                let cores = [text(&lane["cores"][0]), text(&lane["cores"][1])].join("/");
                (cores, lane["token"].as_str().map(str::to_owned))
            })
            .collect()
    };
    let is_in = |states: &[(String, Option<String>)], cores: &str, token: Option<&str>| {
        states.iter().any(|(found, moving)| found == cores && moving.as_deref() == token)
    };
    type Steps = [(&'static str, Option<&'static str>); 4];
    let layouts: [(&str, Steps); 2] = [
        (
            "sequence_in_slot",
            [("S/S", Some("invalidate")), ("M/I", Some("read")), ("S/I", Some("line")), ("S/S", None)],
        ),
        ("index_pair", [("MM/II", Some("read")), ("SM/SI", Some("read")), ("SS/SI", Some("line")), ("SS/SS", None)]),
    ];
    for (layout, expected) in layouts {
        if !measured(layout) {
            assert!(rows(&line["steps"]).iter().all(|step| step[layout].is_null()), "{layout} was not measured");
            continue;
        }
        let found = states(layout);
        for (cores, token) in expected {
            assert!(is_in(&found, cores, token), "{cores} {token:?} in {found:?}");
        }
    }
    let last = rows(&line["steps"]).last().expect("steps");
    assert!(last.as_object().expect("lanes").values().all(|lane| lane["done"] == "true"), "{last}");
    assert_eq!(line["back"]["clock"], "before");
}

fn check_spread(spread: &Value, classes: &[Value]) {
    let range = |name: &str| [0, 1].map(|end| spread[name][end].as_f64().expect("a number"));
    let ([low, high], zoomed, tail, dragged) = (range("whole"), range("zoomed"), range("tail"), range("dragged"));
    assert!(low < zoomed[0] && zoomed[1] < high, "{spread}");
    assert!(low < tail[0] && tail[0] < tail[1], "{spread}");
    assert!(low < dragged[0] && dragged[1] < high, "{low}..{high}, dragged to {dragged:?}");
    assert_ne!(spread["histogram"], spread["above"], "both views are the same picture");
    for of in rows(&spread["radios"]) {
        let shown = &spread["tables"][text(of)];
        let mut stalls = 0;
        for class in classes {
            let Some(message) = rows(&class["distributions"]).iter().find(|one| one["name"] == *of) else { continue };
            let quantiles = &shown["quantiles"][text(&class["placement"])];
            let bucketed: u64 = rows(&message["buckets"]).iter().filter_map(|bucket| bucket["count"].as_u64()).sum();
            assert_eq!(Some(bucketed), message["n"].as_u64(), "{of}");
            assert_eq!(text(&quantiles["samples"]).replace(',', ""), message["n"].to_string());
            for (name, key) in
                [("min", "min_ns"), ("p50", "p50_ns"), ("p99", "p99_ns"), ("p99.9", "p999_ns"), ("max", "max_ns")]
            {
                if message[key].is_null() {
                    assert_eq!(quantiles[name], "n/a");
                } else {
                    shows(&quantiles[name], &message[key]);
                }
            }
            stalls += rows(&message["causes"]).iter().filter_map(|cause| cause["count"].as_u64()).sum::<u64>();
        }
        let counted = rows(&shown["causes"]).iter().filter_map(|cause| cause[1].as_str());
        assert_eq!(counted.map(|count| count.replace(',', "").parse::<u64>().expect("a count")).sum::<u64>(), stalls);
    }
}

#[test]
fn a_report_is_one_file_to_play_with() {
    let Some(chromium) = require_browser() else { return };
    let url = format!("file://{}", result().join("report.html").display());
    let seen = play(&chromium, &url, "a_report_is_one_file_to_play_with");
    check(&seen, &report());
    println!("screenshots in {}", result().display());
}

/// A run of which a part had another placement: one lane, and a class of which only the ping-pong was measured.
#[test]
fn a_report_without_one_of_the_layouts_shows_the_other() {
    let name = "a_report_without_one_of_the_layouts_shows_the_other";
    let Some(chromium) = require_browser() else { return };
    let mut report = report();
    let classes = report["figures"]["classes"].as_array_mut().expect("classes");
    for class in classes.iter_mut() {
        class["ways"].as_array_mut().expect("ways").retain(|way| way["layout"] != "index_pair");
        set_sharing(class, true);
    }
    let is_taken = |name: &&str| classes.iter().any(|class| class["placement"] == **name);
    let name_left = ["siblings", "same_cache", "across_caches"].into_iter().find(|name| !is_taken(name));
    if let Some(placement) = name_left {
        let mut other = classes[0].clone();
        other["placement"] = placement.into();
        other["runs"] = u32::MAX.into();
        other["ways"] = Value::Array(Vec::new());
        classes.push(other);
    }
    let path = result().join("one_layout.json");
    std::fs::write(&path, report.to_string()).expect("a file");
    let served = Served::start(&["--fault-every", "0", "--report", path.to_str().expect("UTF-8")]);
    served.wait_ready();
    check(&play(&chromium, &format!("http://{}/#machine", served.http), name), &report);
    served.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(served.end().1.success());
}

#[test]
fn a_report_without_the_shared_line_says_so() {
    let Some(chromium) = require_browser() else { return };
    let name = "a_report_without_the_shared_line_says_so";
    let mut report = report();
    for class in report["figures"]["classes"].as_array_mut().expect("classes") {
        set_sharing(class, false);
    }
    let path = result().join("no_sharing.json");
    std::fs::write(&path, report.to_string()).expect("a file");
    let served = Served::start(&["--fault-every", "0", "--report", path.to_str().expect("UTF-8")]);
    served.wait_ready();
    check(&play(&chromium, &format!("http://{}/#machine", served.http), name), &report);
    served.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(served.end().1.success());
}

#[test]
fn the_page_shows_the_figures_of_a_kept_report() {
    let name = "the_page_shows_the_figures_of_a_kept_report";
    let Some(chromium) = require_browser() else { return };
    let path = result().join("report.json");
    let served = Served::start(&["--fault-every", "0", "--report", path.to_str().expect("UTF-8")]);
    served.wait_ready();
    let seen = play(&chromium, &format!("http://{}/#machine", served.http), name);
    check(&seen, &report());
    // The schematic is the running engines': every one has its five stages, the rest and the stamps, and they sum up.
    for engine in ["turn", "market", "risk"] {
        let parts = rows(&seen["flow"][engine]);
        assert_eq!(parts.len(), 7, "{}", seen["flow"]);
        // No client has sent a datagram.
        assert_eq!(seen["whole"][engine].is_null(), engine == "turn", "{}", seen["whole"]);
        if engine != "turn" {
            let (sum, whole) =
                (parts.iter().map(|part| shown_ns(&part[1])).sum::<f64>(), shown_ns(&seen["whole"][engine]));
            assert!((sum / whole - 1.0).abs() < 0.02, "{sum} of {whole}: {}", seen["flow"]);
        }
    }
    served.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(served.end().1.success());
}
