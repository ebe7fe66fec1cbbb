//! Which crate may depend on which. Any other edge is a fault.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::Fault;

/// A dependency between two crates of the workspace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Only tests, examples and benches of `from` see `to`.
    pub(crate) dev: bool,
}

const FLOOR: &[&str] = &["tt-model", "tt-meter", "tt-sync", "tt-simd"];
const ENGINES: &[&str] = &["tt-turn", "tt-market", "tt-risk"];

/// What `from` may depend on in the shipped build; `None` for a crate that the table does not know.
fn allowed(from: &str) -> Option<Allowed> {
    Some(match from {
        "tt-model" | "tt-meter" | "tt-sync" | "tt-simd" | "xtask" => Allowed::Only(&[]),
        "tt-turn" | "tt-risk" => Allowed::Only(&["tt-model", "tt-meter", "tt-simd"]),
        "tt-market" => Allowed::Only(&["tt-model", "tt-meter", "tt-simd", "tt-sync"]),
        "tt-os" => Allowed::Only(&["tt-model"]),
        "tt-net" | "tt-journal" => Allowed::Only(&["tt-model", "tt-meter", "tt-os"]),
        "tt-floor" => Allowed::Only(&["tt-model", "tt-meter", "tt-sync", "tt-risk", "tt-os"]),
        "tt-report" => Allowed::Only(&["tt-meter"]),
        "sim" => Allowed::Only(&["tt-model", "tt-net"]),
        "testkit" => Allowed::WhatWorldsArePlayedWith,
        "fuzz" => Allowed::Only(&["tt-model", "tt-meter", "tt-turn", "tt-net"]),
        "truetick" | "python" | "capi" => Allowed::AllBut(&["bench", "fuzz", "xtask"]),
        "bench" => Allowed::AllBut(&["xtask"]),
        _ => return None,
    })
}

enum Allowed {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
    /// The floor, the engines, the journal, and the venues of the market world.
    WhatWorldsArePlayedWith,
}

impl Allowed {
    fn permits(&self, to: &str) -> bool {
        match self {
            Self::Only(list) => list.contains(&to),
            Self::AllBut(list) => !list.contains(&to),
            Self::WhatWorldsArePlayedWith => {
                FLOOR.contains(&to) || ENGINES.contains(&to) || ["tt-journal", "sim"].contains(&to)
            }
        }
    }
}

/// Tests may use the kit; the engines' tests may also read captures.
fn permits_in_tests(from: &str, to: &str) -> bool {
    to == "testkit" || (to == "tt-journal" && ENGINES.contains(&from))
}

/// Faults of `edges` against the table.
pub(crate) fn check(edges: &[Edge]) -> Vec<Fault> {
    edges
        .iter()
        .filter_map(|edge| {
            let Some(allowed) = allowed(&edge.from) else {
                return Some(Fault::at(
                    "Cargo.toml",
                    0,
                    format!("{} stands in no row of the table of edges", edge.from),
                ));
            };
            let permitted = allowed.permits(&edge.to) || (edge.dev && permits_in_tests(&edge.from, &edge.to));
            let kind = if edge.dev { "tests of " } else { "" };
            (!permitted)
                .then(|| Fault::at("Cargo.toml", 0, format!("{kind}{} may not depend on {}", edge.from, edge.to)))
        })
        .collect()
}

/// The edges between the workspace's crates, as cargo sees them.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<Edge>> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(of_metadata(&serde_json::from_slice(&output.stdout)?))
}

fn of_metadata(metadata: &Value) -> Vec<Edge> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let name_of = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let members: Vec<String> = packages.iter().map(name_of).collect();
    let mut edges = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = name_of(dependency);
            // A crate of the registry may bear a member's name; only a path leads to a member.
            if members.contains(&to) && dependency["path"].is_string() {
                edges.push(Edge { from: name_of(package), to, dev: dependency["kind"] == "dev" });
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, dev: bool) -> Edge {
        Edge { from: from.into(), to: to.into(), dev }
    }

    #[test]
    fn engines_are_blind_to_each_other() {
        let faults = check(&[edge("tt-market", "tt-turn", false), edge("tt-market", "tt-sync", false)]);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].message, "tt-market may not depend on tt-turn");
    }

    #[test]
    fn tests_may_use_the_kit_and_captures_only() {
        assert_eq!(check(&[edge("tt-risk", "testkit", true), edge("tt-risk", "tt-journal", true)]), []);
        assert_eq!(check(&[edge("tt-risk", "testkit", false)]).len(), 1);
        assert_eq!(check(&[edge("tt-risk", "tt-os", true)]).len(), 1);
        assert_eq!(check(&[edge("tt-sync", "tt-journal", true)]).len(), 1);
    }

    #[test]
    fn nothing_depends_on_the_bench_and_strangers_are_faults() {
        assert_eq!(check(&[edge("truetick", "bench", false), edge("tt-new", "tt-model", false)]).len(), 2);
    }

    #[test]
    fn only_a_path_is_an_edge() {
        let metadata = serde_json::json!({"packages": [
            {"name": "sim", "dependencies": [
                {"name": "tt-net", "kind": null, "path": "/x"},
                {"name": "testkit", "kind": "dev", "path": "/x"},
                {"name": "sim", "kind": null}]},
            {"name": "tt-net", "dependencies": []},
            {"name": "testkit", "dependencies": []}]});
        assert_eq!(of_metadata(&metadata), [edge("sim", "tt-net", false), edge("sim", "testkit", true)]);
    }
}
