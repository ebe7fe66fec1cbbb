//! A measured figure in a document is generated from a kept file, never typed by hand.
//!
//! A figure is a number with one of the [`UNITS`]. It may be between `<!-- BEGIN: .. -->` and `<!-- END -->`, whose text
//! a test of `tools/bench` compares with the kept files, or on a line that says with one of the [`MARKS`] that it is no
//! measurement of ours.

use crate::tree::{File, Tree};
use crate::violation::Violation;

const UNITS: &[&str] = &["ns", "us", "µs", "μs", "ms", "M events/s", "M/s", "Mpps", "Gbit/s", "cycles", "instructions"];

/// `published`: another project's figure. `aim`: a goal. `setting`: a value that a user sets.
const MARKS: &[&str] = &["published", "aim", "setting"];

/// Violations in every document.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    tree.files.iter().filter(|file| file.is_markdown()).flat_map(check_document).collect()
}

fn check_document(file: &File) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut is_generated = false;
    for (index, line) in file.text.lines().enumerate() {
        is_generated = (is_generated || line.starts_with("<!-- BEGIN: ")) && !line.starts_with("<!-- END");
        let is_marked = MARKS.iter().any(|mark| line.to_lowercase().contains(mark));
        if let Some(figure) = figure(line).filter(|_| !is_generated && !is_marked) {
            violations.push(Violation::at(
                &file.path,
                index + 1,
                format!("`{figure}` is not generated from a kept file"),
            ));
        }
    }
    violations
}

/// The first figure on the line.
fn figure(line: &str) -> Option<&str> {
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(start) = line[at..].find(|c: char| c.is_ascii_digit()).map(|n| at + n) {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_');
        let end = line[start..].find(|c| !is_number(c)).map_or(line.len(), |n| start + n);
        let begins_word =
            start == 0 || !(bytes[start - 1].is_ascii_alphanumeric() || b"_-.".contains(&bytes[start - 1]));
        let rest = line[end..].trim_start_matches(['*', '`']);
        let rest = rest.strip_prefix([' ', '\u{a0}']).unwrap_or(rest);
        if begins_word && let Some(unit) = UNITS.iter().find(|unit| starts_with_word(rest, unit)) {
            let stop = line.len() - rest.len() + unit.len();
            return Some(&line[start..stop]);
        }
        at = end;
    }
    None
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("a.md", text)])).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn rejects_figures_that_are_typed_by_hand() {
        assert_eq!(lines("# A\nIt takes 80 ns.\n"), [2]);
        assert_eq!(lines("| x | 1,072.5 M events/s |\n"), [1]);
        assert_eq!(lines("about 12µs a level\n"), [1]);
    }

    #[test]
    fn accepts_figures_of_generated_tables() {
        let text = "<!-- BEGIN: rows bench/results/m/a.csv -->\n80 ns\n<!-- END -->\n90 ns\n";
        assert_eq!(lines(text), [4]);
    }

    #[test]
    fn accepts_figures_of_others_aims_and_settings() {
        assert_eq!(lines("published: 41.7 ns\nAim: 80 ns\nsetting: 10 ms\n"), [0; 0]);
    }

    #[test]
    fn accepts_other_numbers() {
        assert_eq!(lines("RFC 8656, 3 engines, 127.0.0.1:9641, 10 minutes, v1 ns, 2 nsx\n"), [0; 0]);
    }
}
