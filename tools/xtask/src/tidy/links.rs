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
    let mut violations = Vec::new();
    for (line, target) in targets(file) {
        let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { file.path.clone() } else { resolve(file.folder(), path) };
        let is_folder = tree.files.iter().any(|file| file.path.starts_with(&format!("{path}/")));
        let linked = tree.files.iter().find(|file| file.path == path);
        if !tree.contains(&path) && !is_folder {
            violations.push(Violation::at(&file.path, line, format!("the link to {target} leads nowhere")));
        } else if let Some(linked) = linked.filter(|linked| !fragment.is_empty() && linked.is_markdown())
            && !anchors(&linked.text).iter().any(|anchor| anchor == fragment)
        {
            violations.push(Violation::at(&file.path, line, format!("{path} has no heading #{fragment}")));
        }
    }
    violations
}

/// Links of a Markdown file that stay in the tree, with their lines.
pub(crate) fn targets(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.text.lines().enumerate().flat_map(|(index, line)| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        targets.filter(|target| !target.contains("://")).map(move |target| (index + 1, target))
    })
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.to_lowercase();
        let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(anchor).collect()
}

/// The path from the workspace of `target`, seen from `folder`.
pub(crate) fn resolve(folder: &str, target: &str) -> String {
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
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("README.md", "# X\n"), ("docs/sub/x", "")]);
        let messages: Vec<_> = check(&tree).into_iter().map(|violation| violation.message).collect();
        assert_eq!(messages, ["the link to gone.md leads nowhere"]);
    }

    #[test]
    fn a_link_to_a_missing_heading_is_a_fault() {
        let text = "# A `b`: c-d\n[a](#a-b-c-d) [b](b.md#one) [c](b.md#two) [d](#three)\n";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", "## One\n")]);
        let messages: Vec<_> = check(&tree).into_iter().map(|violation| violation.message).collect();
        assert_eq!(messages, ["docs/b.md has no heading #two", "docs/a.md has no heading #three"]);
    }

    #[test]
    fn accepts_a_link_to_a_picture_in_the_tree() {
        let mut tree = Tree::of(&[("README.md", "![page](docs/page.png) ![other](docs/other.png)\n")]);
        tree.binary.push("docs/page.png".into());
        let messages: Vec<_> = check(&tree).into_iter().map(|violation| violation.message).collect();
        assert_eq!(messages, ["the link to docs/other.png leads nowhere"]);
    }
}
