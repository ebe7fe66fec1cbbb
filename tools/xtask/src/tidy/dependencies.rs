//! The dependency table of ARCHITECTURE.md, compared with the manifests of every workspace of the tree.
//!
//! `| layer | crates |` names the crates of each layer, in one or more rows; `| crate | may depend on |` has a row per
//! crate or layer. A row `x (tests)` holds for tests, examples and benches of `x` only. `none` is no crate; `(planned)`
//! marks a crate that does not exist yet.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use crate::tree::Tree;
use crate::violation::Violation;

const DOCUMENT: &str = "ARCHITECTURE.md";
const ANY: &str = "any crate";

/// A dependency between two crates of the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Only tests, examples and benches of `from` use `to`.
    pub(crate) dev: bool,
}

/// The crates of the tree and the edges between them.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) crates: Vec<String>,
    pub(crate) edges: Vec<Edge>,
}

/// The table, with layers replaced by their crates.
#[derive(Debug, Default)]
struct Allowed {
    shipped: BTreeMap<String, Vec<String>>,
    tests: BTreeMap<String, Vec<String>>,
}

/// Edges that the table does not allow, and crates without a row.
pub(crate) fn check(tree: &Tree, graph: &Graph) -> Vec<Violation> {
    let text = tree.files.iter().find(|file| file.path == DOCUMENT).map_or("", |file| file.text.as_str());
    let allowed = Allowed::parse(text);
    let mut violations = Vec::new();
    for name in graph.crates.iter().filter(|name| !allowed.shipped.contains_key(*name)) {
        violations.push(Violation::at(DOCUMENT, 0, format!("{name} is not listed in the dependency table")));
    }
    for edge in graph.edges.iter().filter(|edge| allowed.shipped.contains_key(&edge.from)) {
        if !allowed.permits(edge) {
            let kind = if edge.dev { "tests of " } else { "" };
            let message = format!("{kind}{} may not depend on {}", edge.from, edge.to);
            violations.push(Violation::at(DOCUMENT, 0, message));
        }
    }
    violations
}

impl Allowed {
    fn parse(document: &str) -> Self {
        let mut layers = BTreeMap::<String, Vec<String>>::new();
        for (name, crates) in rows(document, &["layer", "crates"]) {
            layers.entry(name).or_default().extend(crates);
        }
        let expand = |names: Vec<String>| -> Vec<String> {
            names.into_iter().flat_map(|name| layers.get(&name).cloned().unwrap_or_else(|| vec![name])).collect()
        };
        let mut allowed = Self::default();
        for (subjects, targets) in rows(document, &["crate", "may depend on"]) {
            let targets = expand(targets);
            let is_for_tests = subjects.contains("(tests)");
            let table = if is_for_tests { &mut allowed.tests } else { &mut allowed.shipped };
            for subject in expand(cell(&subjects.replace("(tests)", ""))) {
                table.entry(subject).or_default().extend(targets.iter().cloned());
            }
        }
        allowed
    }

    fn permits(&self, edge: &Edge) -> bool {
        let lists = |table: &BTreeMap<String, Vec<String>>, from: &str| {
            table.get(from).is_some_and(|targets| targets.contains(&edge.to))
        };
        let in_tests = || lists(&self.tests, &edge.from) || lists(&self.tests, ANY);
        lists(&self.shipped, &edge.from) || (edge.dev && in_tests())
    }
}

/// The rows below the table header `header`: the first cell, and the names of the second.
fn rows(document: &str, header: &[&str; 2]) -> Vec<(String, Vec<String>)> {
    let cells = |line: &str| -> Option<(String, String)> {
        let (first, second) = line.strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
        Some((first.trim().to_owned(), second.trim().to_owned()))
    };
    let is_header = |line: &&str| cells(line).is_some_and(|(a, b)| [a.as_str(), b.as_str()] == *header);
    let table = document.lines().skip_while(|line| !is_header(line)).skip(2);
    table.map_while(cells).map(|(first, second)| (first, cell(&second))).collect()
}

/// `a, b (planned)` to `a` and `b`.
fn cell(text: &str) -> Vec<String> {
    let names = text.split(',').map(|name| name.replace("(planned)", "").trim().to_owned());
    names.filter(|name| !name.is_empty() && name != "none").collect()
}

/// Reads the crates and edges of the workspace, of the Python module's, and of every workspace below `tools/rivals`.
pub(crate) fn read(root: &Path) -> anyhow::Result<Graph> {
    let mut folders = vec![root.to_owned(), root.join("python")];
    for entry in std::fs::read_dir(root.join("tools/rivals")).into_iter().flatten() {
        let folder = entry?.path();
        if folder.join("Cargo.toml").is_file() {
            folders.push(folder);
        }
    }
    let mut packages = Vec::new();
    for folder in folders {
        let output = Command::new("cargo")
            .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
            .current_dir(&folder)
            .output()
            .context("cannot run cargo metadata")?;
        let error = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "cargo metadata in {}: {}", folder.display(), error.trim());
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        packages.extend(metadata["packages"].as_array().cloned().unwrap_or_default());
    }
    Ok(graph(&packages))
}

fn graph(packages: &[Value]) -> Graph {
    let name_of = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let mut crates: Vec<String> = packages.iter().map(name_of).collect();
    crates.sort();
    crates.dedup();
    let mut edges = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = name_of(dependency);
            // A registry crate may have the name of a member; only a path leads to a member.
            if crates.contains(&to) && dependency["path"].is_string() {
                edges.push(Edge { from: name_of(package), to, dev: dependency["kind"] == "dev" });
            }
        }
    }
    edges.sort();
    edges.dedup();
    Graph { crates, edges }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "\
# A
| layer | crates |
|---|---|
| base | tt-model, tt-meter |
| engines | tt-turn |
| engines | tt-risk |

| crate | may depend on |
|---|---|
| base | none |
| tt-turn, tt-risk | base |
| bench, tt-path (planned) | base, engines |
| testkit | none |
| any crate (tests) | testkit |
| engines (tests) | tt-journal |

| crate | may depend on |
";

    fn messages(crates: &[&str], edges: &[(&str, &str, bool)]) -> Vec<String> {
        let crates = crates.iter().map(|name| (*name).to_owned()).collect();
        let edges = edges.iter().map(|(from, to, dev)| Edge { from: (*from).into(), to: (*to).into(), dev: *dev });
        let graph = Graph { crates, edges: edges.collect() };
        check(&Tree::of(&[(DOCUMENT, TABLES)]), &graph).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn rejects_edges_that_the_table_does_not_list() {
        assert_eq!(messages(&[], &[("tt-risk", "tt-meter", false), ("bench", "tt-turn", false)]), Vec::<String>::new());
        assert_eq!(messages(&[], &[("tt-risk", "tt-turn", false)]), ["tt-risk may not depend on tt-turn"]);
        assert_eq!(messages(&[], &[("tt-meter", "tt-model", false)]), ["tt-meter may not depend on tt-model"]);
    }

    #[test]
    fn tests_have_rows_of_their_own() {
        let allowed = [("tt-risk", "testkit", true), ("tt-model", "testkit", true), ("tt-risk", "tt-journal", true)];
        assert_eq!(messages(&[], &allowed), Vec::<String>::new());
        assert_eq!(messages(&[], &[("tt-risk", "testkit", false)]).len(), 1);
        assert_eq!(
            messages(&[], &[("tt-model", "tt-journal", true)]),
            ["tests of tt-model may not depend on tt-journal"]
        );
    }

    #[test]
    fn rejects_crates_without_a_row() {
        assert_eq!(messages(&["tt-new", "tt-path"], &[]), ["tt-new is not listed in the dependency table"]);
    }

    #[test]
    fn only_a_path_is_an_edge() {
        let metadata = serde_json::json!([
            {"name": "sim", "dependencies": [
                {"name": "tt-net", "kind": null, "path": "/x"},
                {"name": "testkit", "kind": "dev", "path": "/x"},
                {"name": "sim", "kind": null}]},
            {"name": "tt-net", "dependencies": []},
            {"name": "testkit", "dependencies": []}]);
        let edges = graph(metadata.as_array().unwrap()).edges;
        let edges: Vec<_> = edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str(), edge.dev)).collect();
        assert_eq!(edges, [("sim", "testkit", true), ("sim", "tt-net", false)]);
    }
}
