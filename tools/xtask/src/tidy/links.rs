//! Words that bind the tree to one machine, and links that lead nowhere.

use crate::tree::{File, Tree};
use crate::violation::Violation;

/// Beginnings of paths that exist on somebody's machine only.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            for path in MACHINE_PATHS.iter().filter(|path| names_folder(line, path)) {
                violations.push(Violation::at(&file.path, index + 1, format!("`{path}` exists on one machine only")));
            }
        }
        if file.is_markdown() {
            violations.extend(dead_links(file, tree));
        }
    }
    violations
}

/// Whether `line` holds the absolute path, and not a longer one that merely ends like it.
fn names_folder(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '/')))
    })
}

fn dead_links(file: &File, tree: &Tree) -> Vec<Violation> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut violations = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let path = resolve(folder, target.split('#').next().unwrap_or_default());
            let is_folder = tree.files.iter().any(|file| file.path.starts_with(&format!("{path}/")));
            if !tree.contains(&path) && !is_folder {
                violations.push(Violation::at(&file.path, index + 1, format!("the link to {target} leads nowhere")));
            }
        }
    }
    violations
}

/// The path from the workspace of `target`, seen from `folder`.
fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_a_fault() {
        let text = concat!("see /wo", "rk/x\nframe/wo", "rk/y is not one\n");
        let violations = check(&Tree::of(&[("a.txt", text)]));
        assert_eq!(violations.iter().map(|violation| violation.line).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_dead_link_is_a_fault() {
        let text = "[a](b.md) [c](../README.md#x) [d](https://example.org) [e](gone.md) [f](sub/)\n";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("README.md", ""), ("docs/sub/x", "")]);
        let messages: Vec<_> = check(&tree).into_iter().map(|violation| violation.message).collect();
        assert_eq!(messages, ["the link to gone.md leads nowhere"]);
    }

    #[test]
    fn accepts_a_link_to_a_picture_in_the_tree() {
        let mut tree = Tree::of(&[("README.md", "![page](docs/page.png) ![other](docs/other.png)\n")]);
        tree.binary.push("docs/page.png".into());
        let messages: Vec<_> = check(&tree).into_iter().map(|violation| violation.message).collect();
        assert_eq!(messages, ["the link to docs/other.png leads nowhere"]);
    }
}
