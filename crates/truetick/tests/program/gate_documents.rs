//! The gate's documents: their lists are those of the program.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Source files of the gate.
fn sources() -> String {
    let mut folders =
        ["crates/risk-gate/src", "crates/gate-limits/src", "crates/truetick/src/risk", "crates/truetick/src/gate"]
            .map(|of| root().join(of))
            .to_vec();
    let mut text = read("crates/truetick/src/risk.rs") + &read("crates/truetick/src/gate.rs");
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text += &fs::read_to_string(path).unwrap();
            }
        }
    }
    text
}

/// Literals `"risk: ..."` of log events of a level.
fn log_events(sources: &str, level: &str) -> Vec<String> {
    let head = format!("tracing::{level}!(");
    let calls = sources.split(&head).skip(1);
    let messages = calls.filter_map(|call| {
        let call = &call[..call.find(");").or(call.find(')'))?];
        let message = &call[call.find("\"risk: ")? + 1..];
        Some(message[..message.find('"')?].to_owned())
    });
    messages.collect()
}

#[test]
fn operations_name_every_alarm_and_no_other() {
    let (document, sources) = (read("docs/gate-operations.md"), sources());
    let mut alarms: Vec<String> = ["error", "warn"].iter().flat_map(|level| log_events(&sources, level)).collect();
    assert!(alarms.len() >= 8, "{alarms:?}");
    let metrics = read("crates/control/src/metrics.rs");
    let metrics = metrics.split("\"truetick_risk_").skip(1).map(|rest| rest.split('"').next().unwrap());
    let metrics: Vec<_> = metrics.map(|name| format!("truetick_risk_{name}")).collect();
    assert!(metrics.len() >= 5, "{metrics:?}");
    alarms.extend(metrics);
    for alarm in &alarms {
        assert!(document.contains(&format!("`{alarm}`")), "docs/gate-operations.md lacks `{alarm}`");
    }
    let named = document.split('`').skip(1).step_by(2);
    for name in named.filter(|name| name.starts_with("risk: ") || name.starts_with("truetick_risk_")) {
        let is_shared = SHARED.contains(&name);
        assert!(is_shared || alarms.iter().any(|alarm| alarm == name), "no such alarm: `{name}`");
    }
    for shared in SHARED {
        assert!(document.contains(&format!("`{shared}`")), "docs/gate-operations.md lacks `{shared}`");
    }
}

/// Metrics that every engine has, under its name.
const SHARED: [&str; 6] = [
    "truetick_risk_intents_in_total",
    "truetick_risk_intents_out_total",
    "truetick_risk_intents_dropped_total",
    "truetick_risk_stage_seconds",
    "truetick_risk_stamped_pass_seconds",
    "truetick_risk_pass_seconds",
];

/// An item of a list in lines of at most 120 columns.
fn list_item(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 120 {
            lines += &format!("{line}\n");
            line = format!("  {word}");
        } else {
            line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
    }
    lines + &line + "\n"
}

const BEGIN: &str = "<!-- BEGIN: ";
const END: &str = "<!-- END -->\n";

/// Rows of a struct's fields or a type's constants: name, type, first sentence of the documentation.
fn documented(source: &str, head: &str, is_constants: bool) -> String {
    let body = source.split_once(head).unwrap_or_else(|| panic!("no {head}")).1;
    let body = &body[..body.find("\n}\n").unwrap()];
    let (mut rows, mut documentation) = (String::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            documentation += text;
        } else if let Some(item) = line.strip_prefix(if is_constants { "pub const " } else { "pub " }) {
            let (name, rest) = item.split_once(": ").unwrap_or((item, ""));
            let text = documentation.trim().replace("[`", "`").replace("`]", "`");
            if is_constants && rest.starts_with("Self = Self(") {
                let value = rest.trim_start_matches("Self = Self(").trim_end_matches(");");
                rows += &list_item(&format!("- {value}, `{name}`: {text}"));
            } else if !is_constants && !rest.is_empty() {
                rows += &list_item(&format!("- `{name}` (`{}`): {text}", rest.trim_end_matches(',')));
            }
            documentation.clear();
        } else {
            documentation.clear();
        }
    }
    rows
}

/// Rows of the reasons: bit, name, documentation.
fn reasons() -> String {
    let source = read("crates/tt-model/src/verdict.rs");
    let (mut rows, mut documentation, mut names) = (String::new(), String::new(), Vec::new());
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            documentation += text;
            continue;
        }
        let item = line.strip_suffix(';').and_then(|line| line.split_once(" = "));
        if let Some((name, bit)) = item
            && let Ok(bit) = bit.parse::<u8>()
            && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
        {
            let text = documentation.trim().replace("[`", "`").replace("`]", "`");
            rows += &list_item(&format!("- {bit}, `{name}`: {text}"));
            names.push((name.to_owned(), bit));
        }
        documentation.clear();
    }
    let known: Vec<_> = tt_model::Breach::NAMES
        .iter()
        .map(|(name, reason)| ((*name).to_owned(), reason.0.trailing_zeros() as u8))
        .collect();
    assert_eq!(names, known);
    rows
}

/// Rows of the HTTP interface: method, path, summary.
fn endpoints() -> String {
    let document: serde_json::Value = serde_json::from_str(&read("crates/control/src/openapi.json")).unwrap();
    let mut rows = String::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, what) in methods.as_object().unwrap().iter().filter(|_| path.contains("/risk/")) {
            let summary = what["summary"].as_str().unwrap();
            rows += &list_item(&format!("- {} `{path}`: {summary}", method.to_uppercase()));
        }
    }
    rows
}

fn table(name: &str) -> String {
    let (intent, verdict) = (read("crates/tt-model/src/intent.rs"), read("crates/tt-model/src/verdict.rs"));
    match name {
        "intent" => documented(&intent, "pub struct OrderIntent {", false),
        "kinds" => documented(&intent, "impl IntentKind {", true),
        "verdict" => documented(&verdict, "pub struct Verdict {", false),
        "notes" => documented(&verdict, "impl Notes {", true),
        "reasons" => reasons(),
        "report" => documented(&read("crates/tt-model/src/report.rs"), "pub struct Report {", false),
        "report-kinds" => documented(&read("crates/tt-model/src/report.rs"), "impl ReportKind {", true),
        "http" => endpoints(),
        _ => panic!("no table {name}"),
    }
}

/// docs/gate-api.md has tables of the sources: `TRUETICK_ACCEPT=1 cargo test -p truetick --test program api_reference`
/// writes them.
#[test]
fn the_api_reference_is_that_of_the_sources() {
    let kept = read("docs/gate-api.md");
    let (mut document, mut rest, mut tables) = (String::new(), &kept[..], 0);
    while let Some((text, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->\n").unwrap();
        let table = table(name);
        assert!(table.lines().count() > 3, "{name}: {table}");
        document += &format!("{text}{BEGIN}{name} -->\n\n{table}\n{END}");
        rest = after.split_once(END).unwrap().1;
        tables += 1;
    }
    document += rest;
    assert_eq!(tables, 8);
    if std::env::var_os("TRUETICK_ACCEPT").is_some() {
        fs::write(root().join("docs/gate-api.md"), &document).unwrap();
    }
    assert!(kept == document, "docs/gate-api.md is out of date: run the test with TRUETICK_ACCEPT=1");
}
