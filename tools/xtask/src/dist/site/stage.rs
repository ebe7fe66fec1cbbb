//! The source of the book: pages and the files that they link, at their places in the repository.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use crate::dist::Shop;
use crate::tidy::links::{resolve, targets};
use crate::tidy::site::SUMMARY;
use crate::tree::{File, Tree};

/// README.md stays README.html, and `{{` in a page is text: mdBook's preprocessors are off.
const BOOK: &str = r#"[book]
title = "truetick"
language = "en"

[build]
use-default-preprocessors = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
additional-css = ["site.css"]
no-section-label = true
input-404 = ""

[output.html.print]
enable = false

[output.html.fold]
enable = true
level = 0
"#;

/// Lines of code have up to 120 columns, for which mdBook's column of text is too narrow.
const STYLE: &str = "
:root { --content-max-width: 1000px; }
.content main { overflow-wrap: break-word; }
.content pre > code { font-size: 1.3rem; }
.content table { margin-inline: 0; font-size: 1.45rem; }
.content td, .content th { text-align: start; vertical-align: top; padding-inline: 10px; }
.content .table-wrapper { overflow-x: auto; }
";

/// Numbers of staged pages, and of files that they link.
pub(super) struct Staged {
    pub(super) pages: usize,
    pub(super) files: usize,
}

/// Writes the source of the book to `folder`, with a chapter of links to the documentation of `crates`.
pub(super) fn stage(shop: &Shop, tree: &Tree, folder: &Path, crates: &[&str]) -> anyhow::Result<Staged> {
    let source = folder.join("src");
    let summary = tree.files.iter().find(|file| file.path == SUMMARY).with_context(|| format!("no {SUMMARY}"))?;
    let mut contents = rebased(summary);
    let pages: BTreeSet<String> = targets(summary).map(|(_, target)| resolve(summary.folder(), target)).collect();
    let (mut files, mut folders) = (BTreeSet::new(), BTreeSet::new());
    for page in &pages {
        let file = tree.files.iter().find(|file| file.path == *page).with_context(|| format!("no {page}"))?;
        for (_, target) in targets(file) {
            let path = resolve(file.folder(), target.split('#').next().unwrap_or_default());
            if !pages.contains(&path) && !path.is_empty() {
                if tree.contains(&path) {
                    files.insert(path)
                } else {
                    folders.insert(path)
                };
            }
        }
    }
    for path in &folders {
        let start = format!("{path}/");
        let within = tree.files.iter().filter(|file| file.path.starts_with(&start) && !file.is_markdown());
        let within: Vec<&str> = within.map(|file| file.path.as_str()).collect();
        write(&source.join(path).join("index.html"), listing(path, &within))?;
        files.extend(within.into_iter().map(str::to_owned));
    }
    for path in pages.iter().chain(&files) {
        let bytes = std::fs::read(shop.root.join(path)).with_context(|| path.clone())?;
        write(&source.join(path), bytes)?;
    }
    if !crates.is_empty() {
        contents += "\n# Rust\n\n- [Crates](rustdoc.md)\n";
        write(&source.join("rustdoc.md"), chapter(tree, crates))?;
    }
    write(&source.join("SUMMARY.md"), contents)?;
    write(&folder.join("book.toml"), BOOK)?;
    write(&folder.join("site.css"), STYLE)?;
    Ok(Staged { pages: pages.len(), files: files.len() })
}

/// The table of contents with paths from the workspace.
fn rebased(summary: &File) -> String {
    let mut text = String::new();
    for (index, part) in summary.text.split("](").enumerate() {
        match part.split_once(')').filter(|_| index > 0) {
            Some((target, rest)) => text += &format!("]({}){rest}", resolve(summary.folder(), target)),
            None => text += part,
        }
    }
    text
}

/// A page of links to the files of a folder.
fn listing(folder: &str, files: &[&str]) -> String {
    let start = format!("{folder}/");
    let items = files.iter().filter_map(|file| file.strip_prefix(&start));
    let items: String = items.map(|name| format!("<li><a href=\"{name}\">{name}</a></li>\n")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{folder}</title>\n<h1>{folder}</h1>\n\
         <ul>\n{items}</ul>\n</html>\n"
    )
}

/// The chapter of rustdoc.
fn chapter(tree: &Tree, crates: &[&str]) -> String {
    let mut text = "# Rust crates\n\nThe documentation of the crates that other programs use.\n\n".to_owned();
    for name in crates {
        let path = format!("crates/{name}/Cargo.toml");
        let manifest = tree.files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
        let about = manifest.lines().find_map(|line| line.strip_prefix("description = "));
        let about = about.map_or_else(String::new, |about| format!(": {}", about.trim_matches('"')));
        text += &format!("- [{name}](rustdoc/{}/index.html){about}\n", name.replace('-', "_"));
    }
    text
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, content).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_have_paths_from_the_workspace() {
        let text = "[t](../README.md)\n\n# Part\n\n- [a (b)](a.md)\n  - [c](../python/README.md)\n";
        let summary = File::new(SUMMARY.to_owned(), text.to_owned());
        let expected = "[t](README.md)\n\n# Part\n\n- [a (b)](docs/a.md)\n  - [c](python/README.md)\n";
        assert_eq!(rebased(&summary), expected);
    }
}
