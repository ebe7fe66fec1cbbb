//! Marks below the head of a generated table.

use std::collections::BTreeMap;

use crate::history::STALE;
use crate::tree::File;
use crate::violation::Violation;

/// Beginning of a mark, as [`STALE`] is one. `tools/bench` keeps such lines when it generates a table again.
pub(super) const EXCEPTION: &str = "Kept nevertheless: ";

const BEGIN: &str = "<!-- BEGIN: ";

/// The marks of the tables of each kept file.
#[derive(Debug, Default)]
pub(super) struct Marks(BTreeMap<String, Vec<String>>);

impl Marks {
    pub(super) fn insert(&mut self, path: String, lines: Vec<String>) {
        self.0.insert(path, lines);
    }

    /// Returns `document` with the marks of each of its tables, and without those that a table must not have.
    pub(super) fn write(&self, document: &str) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut rest = document.lines();
        while let Some(line) = rest.next() {
            lines.push(line);
            let Some(marks) = self.of(line) else { continue };
            // Below BEGIN: an empty line, the head of the table, an empty line.
            lines.extend(rest.next());
            let head = rest.by_ref().take_while(|line| !line.is_empty());
            lines.extend(head.filter(|line| !line.starts_with(STALE) && !line.starts_with(EXCEPTION)));
            lines.extend(marks.iter().map(String::as_str));
            lines.push("");
        }
        lines.iter().flat_map(|line| [line, "\n"]).collect()
    }

    /// Violations in `document`: a table whose marks are missing or wrong, or whose file is not kept.
    pub(super) fn check(&self, document: &File) -> Vec<Violation> {
        let mut violations = Vec::new();
        let blocks = |text: &str| text.split(BEGIN).map(str::to_owned).collect::<Vec<_>>();
        let written = blocks(&self.write(&document.text));
        let mut number = 0;
        for (index, block) in blocks(&document.text).iter().enumerate() {
            if index > 0 && written.get(index) != Some(block) {
                let message = "the marks of the table are not those of its kept file: `cargo xtask tidy --accept`";
                violations.push(Violation::at(&document.path, number + 1, message));
            }
            number += block.matches('\n').count();
        }
        let unknown = document.text.lines().enumerate().filter_map(|(index, line)| Some((index, kept_file(line)?)));
        let unknown = unknown.filter(|(_, path)| !self.0.contains_key(*path));
        violations.extend(
            unknown.map(|(index, path)| Violation::at(&document.path, index + 1, format!("{path} is not kept"))),
        );
        violations
    }

    fn of(&self, line: &str) -> Option<&[String]> {
        self.0.get(kept_file(line)?).map(Vec::as_slice)
    }
}

/// The kept file of a BEGIN comment.
fn kept_file(line: &str) -> Option<&str> {
    let (_, path) = line.strip_prefix(BEGIN)?.strip_suffix(" -->")?.split_once(' ')?;
    path.starts_with(super::FOLDER).then_some(path)
}
