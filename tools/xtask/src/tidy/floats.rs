//! No float on a path of prices and quantities: a binary fraction holds hardly any of them exactly.

use crate::code;
use crate::tree::Tree;
use crate::violation::Violation;

/// Crates that count in whole numbers alone.
const WHOLE: &[&str] =
    &["crates/tt-market/src/", "crates/tt-venue/src/", "crates/tt-model/src/", "crates/tt-risk/src/"];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust().filter(|file| WHOLE.iter().any(|folder| file.path.starts_with(folder))) {
        let code = file.code();
        for (offset, word) in code::words(code) {
            if ["f32", "f64"].contains(&word)
                || word.ends_with("f32")
                || word.ends_with("f64")
                || is_point(code, offset, word)
            {
                let line = code::line_at(code, offset);
                violations.push(Violation::at(&file.path, line, format!("`{word}`: a float among prices")));
            }
        }
    }
    violations
}

/// Whether the digits that begin here are the whole part of a number with a point: no field of a tuple, no range.
fn is_point(code: &str, offset: usize, word: &str) -> bool {
    let is_digits = word.starts_with(|c: char| c.is_ascii_digit()) && !word.starts_with("0x");
    let after = &code[offset + word.len()..];
    let is_field = code[..offset].ends_with('.');
    is_digits && !is_field && after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_an_engine_are_faults() {
        let source = "fn a(px: f64) {}\nconst B: u8 = 1;\nlet c = 0.5;\nlet d = x as f32;\nlet e = 1f64;\n";
        let lines: Vec<_> = check(&Tree::of(&[("crates/tt-market/src/a.rs", source)]))
            .into_iter()
            .map(|violation| violation.line)
            .collect();
        assert_eq!(lines, [1, 3, 4, 5]);
    }

    #[test]
    fn fields_ranges_and_other_crates_are_not() {
        let source = "let a = pair.0.1;\nfor i in 0..10 {}\nlet b = 0x1f;\nlet c = \"0.5 f64\"; // f64\n";
        assert_eq!(check(&Tree::of(&[("crates/tt-market/src/a.rs", source)])), []);
        assert_eq!(check(&Tree::of(&[("tools/bench/src/a.rs", "let a: f64 = 0.5;\n")])), []);
    }
}
