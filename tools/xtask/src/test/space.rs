//! Space on the disk: in CI, what a suite has built for itself alone is removed after it.

use std::path::Path;

/// Folders that only one suite uses, under the workspace's folder.
const FOLDERS: [(&str, &[&str]); 11] = [
    ("no-os", &["target/x86_64-unknown-none"]),
    ("aarch64", &["target/aarch64-unknown-linux-gnu"]),
    ("emulated", &["target/emulated"]),
    ("assembly", &["target/assembly"]),
    ("asan", &["target/asan"]),
    // The suite weaken takes over target/loom.
    ("weaken", &["target/weaken", "target/loom", "target/loom-weakened"]),
    ("shuttle", &["target/shuttle"]),
    ("miri", &["target/miri"]),
    ("tsan", &["target/tsan"]),
    ("corpora", &["target/coverage"]),
    ("python", &["target/xtask/python", "python/target"]),
];

/// Removes what `suite` has built and no other uses.
pub(super) fn give_back(root: &Path, suite: &str) {
    for folder in FOLDERS.iter().filter(|(name, _)| *name == suite).flat_map(|(_, folders)| *folders) {
        // What is not there takes no space.
        let _ = std::fs::remove_dir_all(root.join(folder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::suites::SUITES;

    #[test]
    fn a_suite_gives_back_its_own_folders_only() {
        let root = std::env::temp_dir().join(format!("space-{}", std::process::id()));
        let folders = || FOLDERS.iter().flat_map(|(_, folders)| *folders).map(|folder| root.join(folder));
        folders().for_each(|folder| std::fs::create_dir_all(folder.join("deep")).unwrap());
        give_back(&root, "weaken");
        let gone: Vec<_> = folders().filter(|folder| !folder.exists()).collect();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(gone, ["target/weaken", "target/loom", "target/loom-weakened"].map(|folder| root.join(folder)));
        assert!(FOLDERS.iter().all(|(name, _)| SUITES.iter().any(|suite| suite.name == *name)));
    }
}
