//! Manifests: dependencies are chosen once, with a reason; lints are the workspace's; what a published crate needs is
//! published.

use std::collections::BTreeMap;

use crate::tree::{File, Tree};
use crate::violation::Violation;

const TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Faults of every `Cargo.toml`.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = published(tree);
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
    for (name, dependency) in dependencies(manifest, TABLES) {
        if !inherits(Some(dependency)) {
            violations.push(Violation::at(&file.path, 0, format!("{name} is not taken from [workspace.dependencies]")));
        }
    }
    violations
}

/// What `manifest` lists in `tables`, for every target.
fn dependencies<'a>(
    manifest: &'a toml::Table,
    tables: &'a [&str],
) -> impl Iterator<Item = (&'a String, &'a toml::Value)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let holders = targets.filter_map(|(_, target)| target.as_table()).chain([manifest]);
    holders.flat_map(|holder| tables.iter().filter_map(|table| holder.get(*table)?.as_table())).flatten()
}

/// A crate that depends on an unpublished one, or on one without a version, cannot be packaged.
fn published(tree: &Tree) -> Vec<Violation> {
    let files = tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let manifests: Vec<_> = files.filter_map(|file| Some((file, file.text.parse::<toml::Table>().ok()?))).collect();
    let packages = manifests.iter().filter_map(|(_, manifest)| manifest.get("package"));
    let is_published = |package: &toml::Value| package.get("publish") == Some(&true.into());
    let known: BTreeMap<&str, bool> =
        packages.filter_map(|package| Some((package.get("name")?.as_str()?, is_published(package)))).collect();
    let chosen = |manifest: &toml::Table| manifest.get("workspace")?.get("dependencies")?.as_table().cloned();
    let chosen: Vec<toml::Table> =
        manifests.iter().filter(|(file, _)| file.path == "Cargo.toml").filter_map(|(_, it)| chosen(it)).collect();
    let has_version =
        |name: &str| chosen.iter().filter_map(|table| table.get(name)).all(|it| it.get("version").is_some());
    let mut violations = Vec::new();
    for (file, manifest) in manifests.iter().filter(|(_, manifest)| manifest.get("package").is_some_and(is_published)) {
        for (name, _) in dependencies(manifest, &["dependencies", "build-dependencies"]) {
            let Some(is_published) = known.get(name.as_str()) else { continue };
            if !is_published {
                violations.push(Violation::at(
                    &file.path,
                    0,
                    format!("a published crate depends on {name}, which is not"),
                ));
            } else if !has_version(name) {
                violations.push(Violation::at(
                    &file.path,
                    0,
                    format!("{name} has no version in [workspace.dependencies]"),
                ));
            }
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

    #[test]
    fn a_published_crate_depends_only_on_published_crates_with_a_version() {
        let root = "[workspace.dependencies]\na = { path = \"a\", version = \"1\" }\nb = { path = \"b\" }\n\
                    c = { path = \"c\", version = \"1\" }\n";
        let of = |name: &str, publish: bool, rest: &str| {
            format!("[package]\nname = \"{name}\"\npublish = {publish}\n[lints]\nworkspace = true\n{rest}")
        };
        let needs = "[dev-dependencies]\nc.workspace = true\n[target.'cfg(unix)'.dependencies]\n";
        let messages = |needs: &str| {
            let (a, b, c) =
                (of("a", true, ""), of("b", true, ""), of("c", false, "[dependencies]\nb.workspace = true\n"));
            let d = of("d", true, needs);
            let files = [("Cargo.toml", root), ("a/Cargo.toml", &a), ("b/Cargo.toml", &b), ("c/Cargo.toml", &c)];
            let tree = Tree::of(&[&files[..], &[("d/Cargo.toml", &d)]].concat());
            check(&tree).into_iter().map(|it| (it.path, it.message)).collect::<Vec<_>>()
        };
        assert_eq!(messages(&format!("{needs}a.workspace = true\n")), []);
        for (name, message) in [
            ("b", "b has no version in [workspace.dependencies]"),
            ("c", "a published crate depends on c, which is not"),
        ] {
            let expected = ("d/Cargo.toml".to_owned(), message.to_owned());
            assert_eq!(messages(&format!("{needs}{name}.workspace = true\n")), [expected]);
        }
    }
}
