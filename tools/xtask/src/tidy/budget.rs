//! Budgets of lines, without tests: 500 for a file, 8,000 for the command line, 17 % of the shipped lines for a crate.
//! (Functions: clippy's `too_many_lines`.)

use std::collections::BTreeMap;

use crate::tree::Tree;
use crate::violation::Violation;

const LINES_MAX: usize = 500;

/// Files over the budget, with the length that each may not exceed until it is split.
const RATCHET: &[(&str, usize)] = &[];

const COMMAND_LINE: (&str, usize) = ("crates/truetick", 8_000);
const SHARE_MAX_PERCENT: usize = 17;
/// Folders of `tools` that are compiled into the program.
const SHIPPED_TOOLS: [&str; 3] = ["tools/bench", "tools/bench-report", "tools/sim"];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = check_against(tree, RATCHET);
    violations.extend(check_crates(&lines_of_crates(tree)));
    violations
}

/// Lines without tests of each shipped crate, by its folder.
fn lines_of_crates(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut crates = BTreeMap::new();
    for file in tree.rust().filter(|file| !file.is_tests()) {
        let Some((folder, _)) = file.path.split_once("/src/") else { continue };
        if folder.starts_with("crates/") || SHIPPED_TOOLS.contains(&folder) {
            *crates.entry(folder).or_default() += file.lines_without_tests();
        }
    }
    crates
}

fn check_crates(crates: &BTreeMap<&str, usize>) -> Vec<Violation> {
    let all: usize = crates.values().sum();
    let (command_line, command_line_max) = COMMAND_LINE;
    let mut violations = Vec::new();
    for (folder, lines) in crates {
        if *folder == command_line && *lines > command_line_max {
            violations.push(Violation::at(
                folder,
                0,
                format!("{lines} lines without tests, at most {command_line_max}"),
            ));
        }
        if lines * 100 > all * SHARE_MAX_PERCENT {
            let share = lines * 1_000 / all;
            let text = format!("{}.{} % of the shipped lines, at most {SHARE_MAX_PERCENT} %", share / 10, share % 10);
            violations.push(Violation::at(folder, 0, text));
        }
    }
    violations
}

fn check_against(tree: &Tree, ratchet: &[(&str, usize)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust().filter(|file| !file.is_tests()) {
        let lines = file.lines_without_tests();
        let kept = ratchet.iter().find(|(path, _)| *path == file.path).map(|(_, lines)| *lines);
        let lines_max = kept.unwrap_or(LINES_MAX);
        if lines > lines_max {
            violations.push(Violation::at(&file.path, 0, format!("{lines} lines without tests, at most {lines_max}")));
        } else if kept.is_some_and(|kept| lines < kept) {
            violations.push(Violation::at(
                &file.path,
                0,
                format!("shorter than the ratchet: lower it to {lines} or drop it"),
            ));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_a_fault_and_its_tests_do_not_count() {
        let long = "//\n".repeat(501);
        let tested = format!("{}#[cfg(test)]\n{}", "//\n".repeat(500), "//\n".repeat(300));
        let tree = Tree::of(&[("a.rs", &long), ("b.rs", &tested), ("a/tests.rs", &long), ("tests/c.rs", &long)]);
        let violations = check_against(&tree, &[]);
        assert_eq!(violations, [Violation::at("a.rs", 0, "501 lines without tests, at most 500")]);
    }

    #[test]
    fn no_crate_is_a_large_part_of_the_whole() {
        let crates = |command_line, bench| {
            let mut crates: BTreeMap<_, _> = ["a", "b", "c", "d", "e", "f"].map(|name| (name, 10_000)).into();
            crates.extend([("crates/truetick", command_line), ("tools/bench", bench)]);
            crates
        };
        assert_eq!(check_crates(&crates(8_000, 10_000)), []);
        let at = |folder, text: &str| Violation::at(folder, 0, text.to_owned());
        assert_eq!(
            check_crates(&crates(8_001, 14_000)),
            [
                at("crates/truetick", "8001 lines without tests, at most 8000"),
                at("tools/bench", "17.0 % of the shipped lines, at most 17 %")
            ]
        );
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//\n//\n#[cfg(test)]\n//\n"),
            ("crates/a/src/tests.rs", "//\n"),
            ("crates/a/tests/b.rs", "//\n"),
            ("tools/xtask/src/main.rs", "//\n"),
            ("tools/sim/src/lib.rs", "//\n"),
        ]);
        assert_eq!(lines_of_crates(&tree), [("crates/a", 2), ("tools/sim", 1)].into());
    }

    #[test]
    fn the_ratchet_only_goes_down() {
        let tree = Tree::of(&[("a.rs", &"//\n".repeat(600))]);
        assert_eq!(check_against(&tree, &[("a.rs", 600)]), []);
        assert_eq!(check_against(&tree, &[("a.rs", 599)]).len(), 1);
        assert_eq!(check_against(&tree, &[("a.rs", 601)]).len(), 1);
    }
}
