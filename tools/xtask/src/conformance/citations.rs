//! The shipped sources cite the section of every requirement that applies.

use std::collections::BTreeSet;

use super::list::List;
use crate::tree::Tree;
use crate::violation::Violation;

/// A section of an RFC: the two numbers as they are written.
type Section = (String, String);

/// Sections of the list's applicable ids that no source cites as `RFC 8489 section 5`.
pub(super) fn uncited(tree: &Tree, path: &str, list: &List) -> Vec<Violation> {
    let sources = tree.rust().filter(|file| file.path.contains("/src/") && !file.is_tests());
    let cited: BTreeSet<Section> = sources.flat_map(|file| sections(&unwrapped(&file.text))).collect();
    let mut violations = Vec::new();
    for entry in list.entries.iter().filter(|entry| entry.tests().next().is_some()) {
        for (rfc, number) in sections(&entry.section).into_iter().filter(|section| !cited.contains(section)) {
            let message = format!("{}: no source cites RFC {rfc} section {number} where it is met", entry.id);
            violations.push(Violation::at(path, entry.line, message));
        }
    }
    violations
}

/// Comments without their line breaks, so that a citation may run over the end of a line.
fn unwrapped(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!']));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The sections that a text cites: `RFC 8489 section 5`, `RFC 8656 sections 8.1, 8.2 and 9`.
fn sections(text: &str) -> Vec<Section> {
    let mut found = Vec::new();
    for cited in text.split("RFC ").skip(1) {
        let (rfc, rest) = digits(cited);
        let rest = rest.trim_start_matches(',');
        let Some(mut rest) = rest.strip_prefix(" sections ").or_else(|| rest.strip_prefix(" section ")) else {
            continue;
        };
        loop {
            let (number, behind) = digits(rest);
            if number.is_empty() {
                break;
            }
            found.push((rfc.to_owned(), number.trim_end_matches('.').to_owned()));
            let next = behind.strip_prefix(", ").or_else(|| behind.strip_prefix(" and "));
            let Some(next) = next else { break };
            rest = next;
        }
    }
    found
}

/// A number with points at the front of `text`, and what follows.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_in_every_form() {
        let of =
            |text: &str| sections(text).into_iter().map(|(rfc, number)| format!("{rfc} {number}")).collect::<Vec<_>>();
        assert_eq!(of("as RFC 8489 section 5. And (RFC 8656 section 12.2)"), ["8489 5", "8656 12.2"]);
        assert_eq!(of("RFC 8656 sections 8.1, 8.2 and 9 of three"), ["8656 8.1", "8656 8.2", "8656 9"]);
        assert_eq!(of("RFC 8489's section, RFC 8656, sections"), Vec::<String>::new());
        assert_eq!(of(&unwrapped("    /// by RFC\n    /// 8489 section\n    /// 14.7.")), ["8489 14.7"]);
    }
}
