//! `cargo xtask tidy`: what of the style a program can check. Each rule is a function from the tree to faults.

mod budget;
pub(crate) mod code;
mod edges;
mod figures;
mod floats;
mod manifests;
mod names;
mod tests_rules;
mod tree;
mod unsafety;
mod words;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

#[cfg(test)]
pub(crate) use tree::File;
pub(crate) use tree::Tree;

/// One place where the tree breaks a rule.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    path: String,
    /// From 1; 0 where the whole file is meant.
    line: usize,
    message: String,
}

impl Fault {
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Checks the workspace and prints each fault.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    if !crate::test::in_ci() {
        for note in crate::conformance::open(&Tree::read(&root)?) {
            println!("open: {note}");
        }
    }
    let faults = faults(&root)?;
    for fault in &faults {
        println!("{fault}");
    }
    if faults.is_empty() {
        println!("tidy");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} faults", faults.len());
    Ok(ExitCode::FAILURE)
}

/// All faults of the tree under `root`, in the order of the rules.
pub(crate) fn faults(root: &Path) -> anyhow::Result<Vec<Fault>> {
    let tree = Tree::read(root)?;
    let mut faults = edges::check(&edges::read(root)?);
    faults.extend(manifests::check(&tree));
    faults.extend(unsafety::check(&tree));
    faults.extend(budget::check(&tree));
    faults.extend(names::check(&tree));
    faults.extend(tests_rules::check(&tree));
    faults.extend(words::check(&tree));
    faults.extend(figures::check(&tree));
    faults.extend(floats::check(&tree));
    faults.extend(crate::conformance::check(&tree));
    if crate::test::in_ci() {
        faults.extend(crate::conformance::open(&tree));
    }
    Ok(faults)
}

/// Copies the text files of the tree under `root` to `to`; files that did not change keep their time.
pub(crate) fn copy_tree(root: &Path, to: &Path) -> anyhow::Result<()> {
    for file in Tree::read(root)?.files {
        let path = to.join(&file.path);
        if std::fs::read_to_string(&path).is_ok_and(|text| text == file.text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, &file.text)?;
    }
    Ok(())
}
