//! No code outside tt-venue names a venue, so that a new one needs its folder and its entry in the registry only.

use std::collections::BTreeSet;

use crate::tree::Tree;
use crate::violation::Violation;

/// The folder with one folder per venue.
const VENUES: &str = "crates/tt-venue/src/venues/";
/// The crate that may name them.
const OWNER: &str = "crates/tt-venue/";

/// Checks the shipped crates' sources, comments and texts included. Tests, benchmarks and the simulator may name venues.
pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let names = names(tree);
    let mut violations = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/")) {
        if file.path.starts_with(OWNER) || file.is_tests() {
            continue;
        }
        for (index, line) in file.text.lines().take(file.lines_without_tests()).enumerate() {
            let lower = line.to_lowercase();
            if let Some(name) = names.iter().find(|name| lower.contains(name.as_str())) {
                let message = format!("names the venue {name}: it belongs in {VENUES}");
                violations.push(Violation::at(&file.path, index + 1, message));
            }
        }
    }
    violations
}

/// The exchanges' names: those of their folders, up to the first underscore.
fn names(tree: &Tree) -> BTreeSet<String> {
    let inner = |path: &str| path.strip_prefix(VENUES)?.split_once('/').map(|(folder, _)| folder.to_owned());
    let folders = tree.files.iter().filter_map(|file| inner(&file.path));
    folders.map(|folder| folder.split('_').next().unwrap_or_default().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, source: &str) -> Vec<usize> {
        let tree = Tree::of(&[
            ("crates/tt-venue/src/venues/coinbase_advanced/rules.rs", "// Coinbase"),
            ("crates/tt-venue/src/venues/okx/rules.rs", ""),
            (path, source),
        ]);
        check(&tree).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn finds_names_in_code_comments_and_texts() {
        let source =
            "fn a() {}\nmatch venue { Venue::Okx => 1 }\n// As Coinbase does.\nlet b = \"coinbase_exchange\";\n";
        assert_eq!(lines("crates/market-feed/src/a.rs", source), [2, 3, 4]);
    }

    #[test]
    fn allows_tests_tools_and_the_venues_themselves() {
        let tests = "fn a() {}\n#[cfg(test)]\nmod tests { /* OKX */ }\n";
        assert!(lines("crates/market-feed/src/a.rs", tests).is_empty());
        assert!(lines("crates/market-feed/src/a/tests.rs", "// OKX\n").is_empty());
        assert!(lines("crates/market-feed/tests/a.rs", "// OKX\n").is_empty());
        assert!(lines("tools/sim/src/okx.rs", "// OKX\n").is_empty());
        assert!(lines("crates/tt-venue/src/venues.rs", "// OKX\n").is_empty());
    }
}
