//! The tracked files of the workspace, read once.

use std::cell::OnceCell;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::code;

/// One text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// [`Self::code`], once it was needed.
    code: OnceCell<String>,
}

impl File {
    pub(crate) fn new(path: String, text: String) -> Self {
        Self { path, text, code: OnceCell::new() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The folder, without a `/` at its end.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Whether the whole file is tests: it lies in a `tests` folder or is a module of tests.
    pub(crate) fn is_tests(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|part| part == "tests")
    }

    /// Number of lines before the file's own tests.
    pub(crate) fn lines_without_tests(&self) -> usize {
        let total = self.text.lines().count();
        self.text.lines().position(|line| line == "#[cfg(test)]").unwrap_or(total)
    }

    /// Rust without the words of comments and literals; lines keep their numbers.
    pub(crate) fn code(&self) -> &str {
        self.code.get_or_init(|| code::blank_text(&self.text))
    }
}

/// All tracked files.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The text files.
    pub(crate) files: Vec<File>,
    /// Paths of the binary files, such as pictures.
    pub(crate) binary: Vec<String>,
}

impl Tree {
    /// Reads what git tracks, and what it would track, under `root`; without git, every file outside of ignored folders.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut paths = match listed_by_git(root) {
            Some(paths) => paths,
            None => walk(root)?,
        };
        paths.sort();
        let mut tree = Self::default();
        for path in paths {
            match std::fs::read_to_string(root.join(&path)) {
                Ok(text) => tree.files.push(File::new(path, text)),
                Err(error) if error.kind() == ErrorKind::InvalidData => tree.binary.push(path),
                // git lists a file that was removed but not yet committed.
                Err(_) => {}
            }
        }
        Ok(tree)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path) || self.binary.iter().any(|binary| binary == path)
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File::new((*path).into(), (*text).into())).collect();
        Self { files, binary: Vec::new() }
    }
}

/// Copies the text files of the tree under `root` to `to`, and the object that is part of a build; files that did not
/// change keep their time.
pub(crate) fn copy_tree(root: &Path, to: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    let objects = tree.binary.iter().filter(|path| path.ends_with(".bpf.o"));
    let objects = objects.map(|path| Ok((path.clone(), std::fs::read(root.join(path))?)));
    let texts = tree.files.iter().map(|file| Ok((file.path.clone(), file.text.clone().into_bytes())));
    for copied in texts.chain(objects) {
        let (path, bytes): (String, Vec<u8>) = copied.map_err(|error: std::io::Error| error)?;
        let path = to.join(path);
        if std::fs::read(&path).is_ok_and(|kept| kept == bytes) {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, bytes)?;
    }
    Ok(())
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8(output.stdout).ok()?;
    Some(listing.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !matches!(name, "target" | ".git" | ".venv" | "node_modules") {
                    folders.push(path);
                }
            } else if let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                found.push(relative.to_owned());
            }
        }
    }
    Ok(found)
}
