//! Faults that are planted in a copy of the tree, to see whether a fuzz target or a world finds them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

/// One place of one file, changed.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Planted {
    /// The fuzz target or the world that must find it.
    pub(crate) target: String,
    pub(crate) file: String,
    from: String,
    to: String,
    /// A fuzz target's search starts from its corpus.
    #[serde(default)]
    pub(crate) corpus: bool,
}

#[derive(Deserialize)]
struct List {
    fault: Vec<Planted>,
}

/// The copy of the tree with a fault; the sound file returns when this is dropped.
pub(crate) struct Copy {
    pub(crate) root: PathBuf,
    file: PathBuf,
    sound: String,
}

impl Planted {
    /// Reads the list in the file at `path`.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Self>> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Ok(toml::from_str::<List>(&text).with_context(|| path.display().to_string())?.fault)
    }

    /// Plants the fault in a copy of the tree under the target folder.
    pub(crate) fn plant(&self, root: &Path) -> anyhow::Result<Copy> {
        let copy = root.join("target/planted");
        crate::tree::copy_tree(root, &copy)?;
        let file = copy.join(&self.file);
        let sound = std::fs::read_to_string(&file).with_context(|| self.file.clone())?;
        ensure!(self.is_of(&sound), "{}: not one place reads {:?}", self.file, self.from);
        std::fs::write(&file, sound.replacen(&self.from, &self.to, 1))?;
        Ok(Copy { root: copy, file, sound })
    }

    /// Whether exactly one place of `source` is the fault's.
    fn is_of(&self, source: &str) -> bool {
        source.matches(&self.from).count() == 1
    }

    /// The change, in one line.
    pub(crate) fn describe(&self) -> String {
        format!("{}: {:?} for {:?} in {}", self.target, self.to, self.from, self.file)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // A file that stays changed is copied from the tree again by the next fault.
        let _ = std::fs::write(&self.file, &self.sound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_faults_name_a_place_of_the_tree() {
        let root = crate::workspace_root();
        for list in ["tools/fuzz/planted.toml", "tools/testkit/planted.toml"] {
            for fault in Planted::read(&root.join(list)).unwrap() {
                let source = std::fs::read_to_string(root.join(&fault.file)).unwrap();
                assert!(fault.is_of(&source), "{list}: {}", fault.describe());
            }
        }
    }

    #[test]
    fn a_planted_fault_needs_all_its_keys() {
        let read = |text: &str| toml::from_str::<List>(text).map(|list| list.fault.len());
        assert!(read("[[fault]]\ntarget = \"a\"\nfile = \"b\"\nfrom = \"c\"\n").is_err());
        assert_eq!(read("[[fault]]\ntarget = \"a\"\nfile = \"b\"\nfrom = \"c\"\nto = \"d\"\n"), Ok(1));
    }
}
