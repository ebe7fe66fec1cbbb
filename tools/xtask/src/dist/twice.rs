//! Two builds of one commit, in two folders: the same bytes.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use super::program::{self, Build};
use super::record::Record;
use super::shop::{Shop, finish, sha256};

pub(super) fn make(shop: &Shop) -> anyhow::Result<Record> {
    let mut record = Record::default();
    let commit = crate::sim::commit(&shop.root);
    ensure!(!commit.ends_with("-dirty"), "the tree has changes that are not committed");
    let first = program::of_this_machine(shop, Build::Distribution, &mut record)?;
    // Neither the name nor the length of the folder is that of this one.
    let clone = shop.folder.join("another-folder");
    if clone.join(".git").exists() {
        finish(Command::new("git").args(["fetch", "--quiet", "origin"]).current_dir(&clone))?;
    } else {
        finish(Command::new("git").args(["clone", "--quiet", "--no-checkout"]).arg(&shop.root).arg(&clone))?;
    }
    finish(Command::new("git").args(["checkout", "--quiet", "--detach", &commit]).current_dir(&clone))?;
    let other = Shop::open(clone)?;
    let second = program::of_this_machine(&other, Build::Distribution, &mut record)?;
    let hashes = [sha256(&first)?, sha256(&second)?];
    ensure!(hashes[0] == hashes[1], "two builds of {commit} differ: {} and {}", hashes[0], hashes[1]);
    ensure!(!mentions(&first, &shop.root)?, "the program contains the folder {}", shop.root.display());
    record.done(format!("two builds of {commit} in two folders have SHA-256 {}", hashes[0]));
    Ok(record)
}

/// Whether the program contains the path of a folder.
fn mentions(program: &Path, folder: &Path) -> anyhow::Result<bool> {
    let (bytes, path) = (std::fs::read(program)?, folder.display().to_string().into_bytes());
    Ok(bytes.windows(path.len()).any(|window| window == path))
}
