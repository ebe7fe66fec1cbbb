//! The checks against rfc.toml and cases.toml: each id is there with its section, and what is not judged has a reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::server::program;

/// Requirements with a test from outside that `conform` does not judge, and why.
const NOT_JUDGED: &[(&[&str], &str)] = &[
    (&["R029"], "needs a truncated integrity: the hostile check A29"),
    (&["R046"], "only a server that does not offer USERHASH could break it, and none need know the attribute"),
    (&["R063"], "keys are inside"),
    (&["R102"], "takes as many permissions as a server has"),
    (&["R114"], "fields of IP need raw sockets on the path of the peer"),
];

fn list(name: &str) -> BTreeMap<String, (String, bool)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let table: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let entry = |(id, entry): (&String, &toml::Value)| {
        (id.clone(), (entry["section"].as_str().unwrap_or_default().to_owned(), entry.get("outside").is_some()))
    };
    table.iter().map(entry).collect()
}

fn checks() -> Vec<Value> {
    let output = Command::new(program()).args(["conform", "--list", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn checks_are_requirements_of_the_lists() {
    let (rfc, cases, checks) = (list("rfc.toml"), list("cases.toml"), checks());
    assert!(checks.len() > 150, "{}", checks.len());
    let mut titles = Vec::new();
    for check in &checks {
        let (id, section) = (check["id"].as_str().unwrap(), check["section"].as_str().unwrap());
        let listed = if id.starts_with('R') { &rfc[id] } else { &cases[id] };
        assert!(listed.0.split(", ").any(|listed| listed == section), "{id}: {section}, {}", listed.0);
        assert!(["MUST", "SHOULD"].contains(&check["level"].as_str().unwrap()), "{id}");
        titles.push((id.to_owned(), check["title"].to_string()));
    }
    titles.sort();
    let count = titles.len();
    titles.dedup();
    assert_eq!(titles.len(), count, "two checks have one id and one title");
}

#[test]
fn every_requirement_with_a_test_from_outside_is_judged_or_has_a_reason() {
    let checks = checks();
    let is_judged = |id: &str| checks.iter().any(|check| check["id"] == id);
    let has_reason = |id: &str| NOT_JUDGED.iter().any(|(ids, _)| ids.contains(&id));
    let missing: Vec<_> = list("rfc.toml")
        .into_iter()
        .filter(|(id, (_, is_outside))| *is_outside && !is_judged(id) && !has_reason(id))
        .map(|(id, _)| id)
        .collect();
    assert_eq!(missing, Vec::<String>::new());
    let stale: Vec<_> = NOT_JUDGED.iter().flat_map(|(ids, _)| *ids).filter(|id| is_judged(id)).collect();
    assert_eq!(stale, Vec::<&&str>::new());
}
