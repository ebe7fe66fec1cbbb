//! Manifests: dependencies are chosen once, with a reason; lints are the workspace's.

use crate::tree::{File, Tree};
use crate::violation::Violation;

const TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Faults of every `Cargo.toml`.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        match file.text.parse::<toml::Table>() {
            Ok(manifest) if manifest.contains_key("workspace") => violations.extend(reasons(file)),
            Ok(manifest) => violations.extend(member(file, &manifest)),
            Err(error) => violations.push(Violation::at(&file.path, 0, error.message())),
        }
    }
    violations
}

/// A line of the workspace's dependencies or lint exceptions without a comment says nothing of why it is there.
fn reasons(file: &File) -> Vec<Violation> {
    let mut section = "";
    let mut violations = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        }
        let is_choice = match section {
            "[workspace.dependencies]" => line.contains(" = ") && !line.contains("path = "),
            "[workspace.lints.rust]" | "[workspace.lints.clippy]" => line.contains("\"allow\""),
            _ => false,
        };
        if is_choice && !line.contains("# ") {
            violations.push(Violation::at(&file.path, index + 1, "no reason given: say in a comment what this is for"));
        }
    }
    violations
}

fn member(file: &File, manifest: &toml::Table) -> Vec<Violation> {
    let mut violations = Vec::new();
    let inherits = |value: Option<&toml::Value>| value.and_then(|v| v.get("workspace")) == Some(&true.into());
    if !inherits(manifest.get("lints")) {
        violations.push(Violation::at(
            &file.path,
            0,
            "the workspace's lints are not in force: [lints] workspace = true",
        ));
    }
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let holders = targets.filter_map(|(_, target)| target.as_table()).chain([manifest]);
    for (name, dependency) in
        holders.flat_map(|holder| TABLES.iter().filter_map(|table| holder.get(*table)?.as_table())).flatten()
    {
        if !inherits(Some(dependency)) {
            violations.push(Violation::at(&file.path, 0, format!("{name} is not taken from [workspace.dependencies]")));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_is_a_fault() {
        let text = "[workspace]\n[workspace.dependencies]\na = \"1\" # why\nb = \"1\"\nc = { path = \"c\" }\n";
        assert_eq!(check(&Tree::of(&[("Cargo.toml", text)]))[0].line, 4);
    }

    #[test]
    fn an_allowed_lint_without_a_reason_is_a_fault() {
        let text = "[workspace]\n[workspace.lints.clippy]\nall = \"deny\"\nx = \"allow\"\n";
        assert_eq!(check(&Tree::of(&[("Cargo.toml", text)]))[0].line, 4);
    }

    #[test]
    fn members_take_lints_and_versions_from_the_workspace() {
        let text =
            "[package]\n[dependencies]\na.workspace = true\nb = \"1\"\n[target.'cfg(unix)'.dependencies]\nc = \"1\"\n";
        let messages: Vec<_> = check(&Tree::of(&[("x/Cargo.toml", text)])).into_iter().map(|f| f.message).collect();
        assert_eq!(messages.len(), 3, "{messages:?}");
    }
}
