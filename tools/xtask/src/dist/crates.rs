//! The crates as they are published: each is packaged and built from its package alone.

use std::process::Command;

use anyhow::Context as _;

use super::record::Record;
use super::shop::{Shop, finish, len};
use crate::qualify::PUBLISHED;

pub(super) fn make(shop: &Shop) -> anyhow::Result<Record> {
    let mut record = Record::default();
    let mut package = Command::new("cargo");
    package.args(["package", "--locked"]).args(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    let target = shop.folder.join("crates");
    finish(package.current_dir(&shop.root).env("CARGO_TARGET_DIR", &target))?;
    let mut bytes = 0;
    for name in PUBLISHED {
        let file = format!("{name}-{}.crate", shop.version);
        let made = target.join("package").join(&file);
        bytes += len(&made)?;
        std::fs::copy(&made, shop.folder.join(&file)).with_context(|| file.clone())?;
    }
    record.done(format!(
        "{} crates build from their packages, {bytes} bytes: {}",
        PUBLISHED.len(),
        PUBLISHED.join(", ")
    ));
    Ok(record)
}
