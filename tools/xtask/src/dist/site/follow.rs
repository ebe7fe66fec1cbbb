//! Links of built pages: each leads to a file, and to an element of it if it names one.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, ensure};

/// Made by rustdoc, which checks its own links.
const SKIPPED: &str = "rustdoc";

/// Follows the links of all pages under `site`, and returns their number.
///
/// # Errors
/// A link leads nowhere: each is named with its page.
pub(super) fn follow(site: &Path) -> anyhow::Result<usize> {
    let mut pages = HashMap::new();
    read(site, site, &mut pages)?;
    let (mut count, mut dead) = (0, Vec::new());
    for (page, text) in &pages {
        for link in links(text) {
            count += 1;
            if !leads_somewhere(site, page, link, &pages) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    dead.sort();
    ensure!(dead.is_empty(), "{} links lead nowhere:\n{}", dead.len(), dead.join("\n"));
    ensure!(count > 0, "{} has no page with a link", site.display());
    Ok(count)
}

/// Pages by their paths from `site`.
fn read(site: &Path, folder: &Path, pages: &mut HashMap<PathBuf, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.strip_prefix(site)?.to_owned();
        if path.is_dir() {
            if name != Path::new(SKIPPED) {
                read(site, &path, pages)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.insert(name, fs::read_to_string(&path).with_context(|| path.display().to_string())?);
        }
    }
    Ok(())
}

/// Values of `href` and `src` that stay within the site.
fn links(page: &str) -> impl Iterator<Item = &str> {
    [" href=\"", " src=\""].into_iter().flat_map(move |attribute| {
        let values = page.split(attribute).skip(1).filter_map(|rest| rest.split_once('"')).map(|(value, _)| value);
        values.filter(|value| !value.contains(':') && !value.is_empty())
    })
}

fn leads_somewhere(site: &Path, page: &Path, link: &str, pages: &HashMap<PathBuf, String>) -> bool {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    let mut target = if path.is_empty() { page.to_owned() } else { joined(page, path) };
    if site.join(&target).is_dir() {
        target.push("index.html");
    }
    if !site.join(&target).is_file() {
        return false;
    }
    let text = pages.get(&target);
    fragment.is_empty() || text.is_none_or(|text| text.contains(&format!("id=\"{fragment}\"")))
}

fn joined(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        let site = std::env::temp_dir().join(format!("site-{}", std::process::id()));
        fs::create_dir_all(site.join("docs/folder")).unwrap();
        fs::write(site.join("docs/folder/index.html"), "<p id=\"one\">").unwrap();
        let good =
            "<a href=\"folder\"><a href=\"folder/index.html#one\"><a href=\"https://x.org/y\"><a href=\"#here\">";
        fs::write(site.join("docs/a.html"), format!("<p id=\"here\">{good}<img src=\"../b.png\">")).unwrap();
        fs::write(site.join("b.png"), "").unwrap();
        assert_eq!(follow(&site).unwrap(), 4);
        let bad = "<a href=\"c.html\"><a href=\"folder/index.html#two\"><a href=\"../b.jpg\">";
        fs::write(site.join("docs/d.html"), bad).unwrap();
        let error = follow(&site).unwrap_err().to_string();
        let named = "docs/d.html: ../b.jpg\ndocs/d.html: c.html\ndocs/d.html: folder/index.html#two";
        assert_eq!(error, format!("3 links lead nowhere:\n{named}"));
        fs::remove_dir_all(&site).unwrap();
    }
}
