//! File budget: 500 lines without tests. (Functions: clippy's `too_many_lines`.)

use crate::tree::Tree;
use crate::violation::Violation;

const LINES_MAX: usize = 500;

/// Files over the budget, with the length that each may not exceed until it is split.
const RATCHET: &[(&str, usize)] = &[];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    check_against(tree, RATCHET)
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
    fn the_ratchet_only_goes_down() {
        let tree = Tree::of(&[("a.rs", &"//\n".repeat(600))]);
        assert_eq!(check_against(&tree, &[("a.rs", 600)]), []);
        assert_eq!(check_against(&tree, &[("a.rs", 599)]).len(), 1);
        assert_eq!(check_against(&tree, &[("a.rs", 601)]).len(), 1);
    }
}
