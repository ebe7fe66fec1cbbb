//! Pages of the documentation site that docs/SUMMARY.md lacks, or that it lists twice.

use super::links::{resolve, targets};
use crate::tree::{File, Tree};
use crate::violation::Violation;

/// The site's table of contents.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";
const FOLDER: &str = "docs";

/// The pages that `summary` lists, with their lines, as paths from the workspace.
fn pages(summary: &File) -> Vec<(usize, String)> {
    targets(summary).map(|(line, target)| (line, resolve(FOLDER, target))).collect()
}

/// Faults of the whole tree.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(summary) = tree.files.iter().find(|file| file.path == SUMMARY) else {
        return vec![Violation::at(SUMMARY, 1, "the documentation has no table of contents".to_owned())];
    };
    let (mut violations, mut paths) = (Vec::new(), Vec::new());
    for (line, path) in pages(summary) {
        if paths.contains(&path) {
            violations.push(Violation::at(SUMMARY, line, format!("{path} is listed twice")));
        }
        paths.push(path);
    }
    for file in tree.files.iter().filter(|file| file.is_markdown() && file.path != SUMMARY) {
        let is_listed = paths.contains(&file.path);
        if file.folder() == FOLDER && !is_listed {
            violations.push(Violation::at(&file.path, 1, format!("{SUMMARY} does not list it")));
        }
        for (line, target) in targets(file).filter(|_| is_listed) {
            let path = resolve(file.folder(), target.split('#').next().unwrap_or_default());
            if path.ends_with(".md") && !paths.contains(&path) {
                violations.push(Violation::at(&file.path, line, format!("{SUMMARY} does not list {path}")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_listed_once() {
        let summary = "- [a](a.md)\n- [a](a.md)\n- [top](../README.md)\n";
        let pages = [
            (SUMMARY, summary),
            ("docs/a.md", "[in](../README.md#x) [out](../other.md) [file](../x.toml)\n"),
            ("docs/b.md", "[not looked at](../more.md)\n"),
            ("README.md", "[b](docs/b.md)\n"),
        ];
        let found: Vec<_> = check(&Tree::of(&pages)).into_iter().map(|it| (it.path, it.line, it.message)).collect();
        let expected = [
            (SUMMARY, 2, "docs/a.md is listed twice"),
            ("docs/a.md", 1, "docs/SUMMARY.md does not list other.md"),
            ("docs/b.md", 1, "docs/SUMMARY.md does not list it"),
            ("README.md", 1, "docs/SUMMARY.md does not list docs/b.md"),
        ];
        let mut expected = expected.map(|(path, line, message)| (path.to_owned(), line, message.to_owned())).to_vec();
        let mut found = found;
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(check(&Tree::of(&[("docs/a.md", "")])).len(), 1);
    }
}
