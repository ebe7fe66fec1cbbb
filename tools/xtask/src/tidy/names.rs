//! Names that say nothing are reserved for nothing: types, modules and files are named after the thing.

use crate::code;
use crate::tree::Tree;
use crate::violation::Violation;

const RESERVED: &[&str] = &["session", "manager", "handler", "context", "data", "info", "util", "common", "helper"];

/// Terms of the RFCs that contain a reserved word.
const TERMS: &[&str] = &["channeldata", "channel_data", "dataindication", "data_indication", "reservationinfo"];

/// File names that are reserved too.
const FILES: &[&str] = &["mod", "types", "misc"];

/// Keywords that introduce a checked name.
const INTRODUCERS: &[&str] = &["struct", "enum", "union", "trait", "type", "mod"];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        let stem = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        if FILES.contains(&stem) || reserved_word(stem).is_some() {
            violations.push(Violation::at(&file.path, 0, "the file's name says nothing of what is in it"));
        }
        let code = file.code();
        let mut introduced = false;
        for (offset, word) in code::words(code) {
            if introduced && let Some(reserved) = reserved_word(word) {
                let line = code::line_at(code, offset);
                violations.push(Violation::at(&file.path, line, format!("`{word}`: `{reserved}` names nothing")));
            }
            introduced = INTRODUCERS.contains(&word);
        }
    }
    violations
}

/// The reserved word in a name, in either case and number.
fn reserved_word(name: &str) -> Option<&'static str> {
    if TERMS.contains(&name.to_lowercase().as_str()) {
        return None;
    }
    let parts = split(name);
    RESERVED
        .iter()
        .copied()
        .find(|reserved| parts.iter().any(|part| part.strip_suffix('s').unwrap_or(part) == *reserved))
}

/// `FiveTuple` and `five_tuple` to `five`, `tuple`.
fn split(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            parts.push(String::new());
        }
        if c != '_'
            && let Some(last) = parts.last_mut()
        {
            last.extend(c.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_nothing_are_faults() {
        let source = "struct ClientSession;\nenum Data {}\nmod order_helpers;\ntype ConnectionManager = u8;\n";
        let lines: Vec<_> = check(&Tree::of(&[("a.rs", source)])).into_iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
    }

    #[test]
    fn terms_of_the_field_and_other_uses_are_not() {
        let source = "struct ChannelData;\nfn data(info: &str) -> Method { Method::Data }\nstruct Database;\n";
        assert_eq!(check(&Tree::of(&[("channel_data.rs", source)])), []);
    }

    #[test]
    fn files_are_nouns() {
        let tree =
            Tree::of(&[("a/mod.rs", ""), ("utils.rs", ""), ("types.rs", ""), ("common.rs", ""), ("book.rs", "")]);
        assert_eq!(check(&tree).len(), 4);
    }
}
