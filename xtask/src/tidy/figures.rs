//! A figure in a document needs a result file behind it.
//!
//! A figure is a number with one of the [`UNITS`]. It may stand in a section (from one heading to the next) that
//! names an existing file under `bench/results/`, or on a line that says with one of the [`MARKS`] that it is no
//! measurement of ours.

use super::Fault;
use super::tree::{File, Tree};

const UNITS: &[&str] = &["ns", "us", "µs", "μs", "ms", "M events/s", "M/s", "Mpps", "Gbit/s", "cycles", "instructions"];

/// `published`: somebody else's figure. `aim`: what is hoped for. `setting`: a value that a user sets.
const MARKS: &[&str] = &["published", "aim", "setting"];

/// Faults of every document.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    tree.files.iter().filter(|file| file.is_markdown()).flat_map(|file| check_document(file, tree)).collect()
}

fn check_document(file: &File, tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut in_section = Vec::new();
    let mut is_backed = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.starts_with('#') {
            settle(&mut faults, &mut in_section, is_backed);
            is_backed = false;
        }
        for path in result_files(line) {
            if tree.contains(path) {
                is_backed = true;
            } else {
                faults.push(Fault::at(&file.path, index + 1, format!("there is no result file {path}")));
            }
        }
        let is_marked = MARKS.iter().any(|mark| line.to_lowercase().contains(mark));
        if let Some(figure) = figure(line).filter(|_| !is_marked) {
            in_section.push(Fault::at(&file.path, index + 1, format!("no result file stands behind `{figure}`")));
        }
    }
    settle(&mut faults, &mut in_section, is_backed);
    faults
}

fn settle(faults: &mut Vec<Fault>, in_section: &mut Vec<Fault>, is_backed: bool) {
    if is_backed {
        in_section.clear();
    }
    faults.append(in_section);
}

/// Paths of result files on the line; a pattern with `<` names a place, not a file.
fn result_files(line: &str) -> impl Iterator<Item = &str> {
    let is_path = |c: char| c.is_alphanumeric() || "/._-<>".contains(c);
    line.match_indices("bench/results/").filter_map(move |(at, _)| {
        let end = line[at..].find(|c| !is_path(c)).map_or(line.len(), |n| at + n);
        let path = line[at..end].trim_end_matches('.');
        (!path.ends_with('/') && !path.contains('<')).then_some(path)
    })
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
        let tree = Tree::of(&[("a.md", text), ("bench/results/m/2026.csv", "")]);
        check(&tree).into_iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn a_figure_without_a_result_file_is_a_fault() {
        assert_eq!(lines("# A\nIt takes 80 ns.\n"), [2]);
        assert_eq!(lines("| x | 1,072.5 M events/s |\n"), [1]);
        assert_eq!(lines("about 12µs a level\n"), [1]);
    }

    #[test]
    fn a_result_file_backs_its_section_only() {
        assert_eq!(lines("# A\n80 ns\n\nFrom bench/results/m/2026.csv.\n# B\n90 ns\n"), [6]);
    }

    #[test]
    fn a_result_file_must_exist() {
        assert_eq!(lines("80 ns, see `bench/results/m/2025.csv`\n"), [1, 1]);
        assert_eq!(lines("kept under bench/results/<machine>/<date>.csv\n"), [0; 0]);
    }

    #[test]
    fn figures_of_others_aims_and_settings_are_marked() {
        assert_eq!(lines("published: 41.7 ns\nAim: 80 ns\nsetting: 10 ms\n"), [0; 0]);
    }

    #[test]
    fn other_numbers_are_free() {
        assert_eq!(lines("RFC 8656, 3 engines, 127.0.0.1:9641, 10 minutes, v1 ns, 2 nsx\n"), [0; 0]);
    }
}
