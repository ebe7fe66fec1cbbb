//! `unsafe` is in listed files only; every other crate forbids it at its root.

use crate::code;
use crate::tree::Tree;
use crate::violation::Violation;

/// Files, and folders with a `/` at the end, that may hold `unsafe`.
const LISTED: &[&str] = &[
    "crates/tt-meter/src/counter.rs",
    "crates/tt-net/src/sys/",
    "crates/tt-os/src/clock.rs",
    "crates/tt-os/src/heap.rs",
    "crates/tt-os/src/mapped_file.rs",
    "crates/tt-os/src/passed_sockets.rs",
    "crates/tt-os/src/priority.rs",
    "crates/tt-os/src/shared.rs",
    "crates/tt-path/src/sys/",
    "crates/tt-simd/src/crc/clmul.rs",
    "crates/tt-simd/src/prefetch.rs",
    "crates/tt-simd/src/wide.rs",
    "crates/tt-sync/examples/processes.rs",
    "crates/tt-sync/src/region/slots.rs",
    "crates/tt-sync/src/spsc/",
    "tools/rivals/turn/src/bin/one-socket/sys/",
];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    check_against(tree, LISTED)
}

fn check_against(tree: &Tree, listed: &[&str]) -> Vec<Violation> {
    let is_listed =
        |path: &str| listed.iter().any(|entry| path == *entry || (entry.ends_with('/') && path.starts_with(entry)));
    let mut violations = Vec::new();
    let mut used = vec![false; listed.len()];
    for file in tree.rust() {
        let code = file.code();
        let found = code::words(code).find(|(_, word)| *word == "unsafe");
        if let Some((offset, _)) = found {
            for (entry, used) in listed.iter().zip(&mut used) {
                *used |= file.path.starts_with(entry);
            }
            if !is_listed(&file.path) {
                let line = code::line_at(code, offset);
                violations.push(Violation::at(&file.path, line, "unsafe outside of the files that tidy lists"));
            }
        }
        if let Some(folder) = crate_folder(&file.path) {
            let holds_listed = listed.iter().any(|entry| entry.starts_with(folder));
            if !holds_listed && !code.contains("#![forbid(unsafe_code)]") {
                violations.push(Violation::at(&file.path, 0, "the crate's root lacks #![forbid(unsafe_code)]"));
            }
        }
    }
    let stale = listed.iter().zip(&used).filter(|(_, used)| !**used);
    violations.extend(stale.map(|(entry, _)| Violation::at(entry, 0, "listed as holding unsafe, but holds none")));
    violations
}

/// The folder of the crate whose root the file is.
fn crate_folder(path: &str) -> Option<&str> {
    path.strip_suffix("src/lib.rs").or_else(|| path.strip_suffix("src/main.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: (&str, &str) = ("a/src/lib.rs", "#![forbid(unsafe_code)]\n// unsafe in words only\n");

    #[test]
    fn unsafe_in_an_unlisted_file_is_a_fault() {
        let tree = Tree::of(&[ROOT, ("a/src/x.rs", "\nfn f() { unsafe { g() } }\n")]);
        let violations = check_against(&tree, &[]);
        assert_eq!((violations.len(), violations[0].line), (1, 2));
    }

    #[test]
    fn a_root_that_does_not_forbid_is_a_fault_unless_files_are_listed() {
        let tree = Tree::of(&[("b/src/lib.rs", "mod sys;"), ("b/src/sys/x.rs", "unsafe fn f() {}")]);
        assert_eq!(check_against(&tree, &["b/src/sys/"]), []);
        let tree = Tree::of(&[("b/src/lib.rs", "mod sys;")]);
        assert_eq!(check_against(&tree, &[]).len(), 1);
    }

    #[test]
    fn a_stale_entry_is_a_fault() {
        assert_eq!(check_against(&Tree::of(&[ROOT]), &["c/src/ring.rs"]).len(), 1);
    }
}
