//! The recipe "Add a venue" of CONTRIBUTING.md, followed word by word in a copy of the crates, and after it the commands
//! of docs/tutorial-developer.md.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use testkit::tutorial::{Followed, follow as follow_tutorial};

/// What tt-market needs to compile.
const CRATES: [&str; 6] = ["tt-model", "tt-meter", "tt-simd", "tt-sync", "tt-venue", "tt-market"];
const REGISTRY: &str = "crates/tt-venue/src/venues.rs";

#[test]
fn the_recipe_adds_a_venue() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let copy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("add_a_venue");
    copy_crates(root, &copy);
    let recipe = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let steps = steps(&recipe);
    assert_eq!(steps.len(), 8, "{steps:?}");
    for step in &steps {
        follow(&copy, step);
    }
    let tutorial = fs::read_to_string(root.join("docs/tutorial-developer.md")).unwrap();
    let bin = copy.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("cargo"), format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO"))).unwrap();
    fs::set_permissions(bin.join("cargo"), Permissions::from_mode(0o755)).unwrap();
    // The copy has its own target folder, whatever the environment says.
    let target = format!("CARGO_TARGET_DIR={}", copy.join("target").display());
    let followed = follow_tutorial(&tutorial, &["env", &target, "bash", "--noprofile", "--norc"], &copy, &bin, None);
    assert_eq!(followed, Followed { files: 0, commands: 5, pages: 0 });
}

/// A block of code, and the text before it.
#[derive(Debug)]
struct Step<'a> {
    text: &'a str,
    code: &'a str,
}

impl<'a> Step<'a> {
    /// The first file that the text names.
    fn file(&self) -> Option<&'a str> {
        let quoted = self.text.split('`').skip(1).step_by(2);
        quoted.into_iter().find(|name| name.starts_with("crates/") && name.ends_with(".rs"))
    }
}

/// The blocks of code of the recipe, in order.
fn steps(document: &str) -> Vec<Step<'_>> {
    let (_, recipe) = document.split_once("## Add a venue\n").unwrap();
    let recipe = recipe.split("\n## ").next().unwrap();
    let mut steps = Vec::new();
    let mut rest = recipe;
    while let Some((text, after)) = rest.split_once("```rust\n") {
        let (code, after) = after.split_once("```\n").unwrap();
        let text = text.rsplit("###").next().unwrap();
        steps.push(Step { text, code });
        rest = after;
    }
    steps
}

/// Writes a new file, or adds the line to the registry.
fn follow(copy: &Path, step: &Step<'_>) {
    let path = copy.join(step.file().unwrap());
    if !path.ends_with(REGISTRY) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, step.code).unwrap();
    }
    assert!(step.text.contains("at the end of `venues!`"), "{}", step.text);
    assert_eq!(step.code.lines().count(), 1, "{}", step.code);
    let source = fs::read_to_string(&path).unwrap();
    let start = source.find("\nvenues! {\n").unwrap();
    let end = start + source[start..].find("\n}\n").unwrap() + 1;
    fs::write(path, format!("{}{}{}", &source[..end], step.code, &source[end..])).unwrap();
}

/// Copies sources and manifests; the copies have no tests of their own, so that they need no further crate.
fn copy_crates(root: &Path, copy: &Path) {
    let _ = fs::remove_dir_all(copy.join("crates"));
    for name in CRATES {
        let (from, to) = (root.join("crates").join(name), copy.join("crates").join(name));
        copy_folder(&from.join("src"), &to.join("src"));
        let manifest = fs::read_to_string(from.join("Cargo.toml")).unwrap();
        fs::write(to.join("Cargo.toml"), manifest.split("[dev-dependencies]").next().unwrap()).unwrap();
        if let Ok(readme) = fs::read(from.join("README.md")) {
            fs::write(to.join("README.md"), readme).unwrap();
        }
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let set = |line: &str| match line.split(" = ").next() {
        Some("members" | "default-members" | "exclude") => None,
        Some("resolver") => Some(format!("{line}\nmembers = [\"crates/*\"]")),
        _ => Some(line.to_owned()),
    };
    let lines: Vec<String> = manifest.lines().filter_map(set).collect();
    fs::write(copy.join("Cargo.toml"), lines.join("\n")).unwrap();
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).unwrap();
    fs::copy(root.join("rust-toolchain.toml"), copy.join("rust-toolchain.toml")).unwrap();
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
