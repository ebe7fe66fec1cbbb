//! The documentation site: the pages of docs/SUMMARY.md by mdBook, and every link of the built pages followed.

mod follow;
mod stage;

use std::process::Command;

use super::record::Record;
use super::shop::{Shop, finish, has};
use crate::qualify::PUBLISHED;
use crate::tree::Tree;

/// The program, and the crate that has it.
pub(crate) const MDBOOK: &str = "mdbook";

/// Which chapters the site has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chapters {
    /// The pages, and rustdoc of the published crates.
    All,
    /// The pages of docs/SUMMARY.md.
    Pages,
}

pub(super) fn make(shop: &Shop, chapters: Chapters) -> anyhow::Result<Record> {
    let mut record = Record::default();
    if !has(MDBOOK) {
        record.skipped(format!("site: no {MDBOOK} (cargo install {MDBOOK})"));
        return Ok(record);
    }
    let (source, site) = (shop.empty("site-source")?, shop.empty("site")?);
    let crates: &[&str] = if chapters == Chapters::All { PUBLISHED } else { &[] };
    let staged = stage::stage(shop, &Tree::read(&shop.root)?, &source, crates)?;
    finish(Command::new(MDBOOK).arg("build").arg(&source).arg("--dest-dir").arg(&site))?;
    record.done(format!("{}: {} pages, {} files", shop.name(&site), staged.pages, staged.files));
    if chapters == Chapters::All {
        rustdoc(shop, &site.join("rustdoc"))?;
        record.done(format!("rustdoc of {} crates", PUBLISHED.len()));
    }
    let links = follow::follow(&site)?;
    record.done(format!("{links} links between its pages and to its files lead somewhere"));
    Ok(record)
}

/// Builds the documentation of the published crates into `folder`.
fn rustdoc(shop: &Shop, folder: &std::path::Path) -> anyhow::Result<()> {
    let target = shop.folder.join("rustdoc");
    let mut cargo = Command::new("cargo");
    cargo.args(["doc", "--no-deps", "--locked"]).args(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    finish(cargo.current_dir(&shop.root).env("CARGO_TARGET_DIR", &target))?;
    std::fs::rename(target.join("doc"), folder)?;
    Ok(())
}
