//! Tests run, none waits for time to pass, and none ends early but through `testkit::require`.

use crate::code::{self, Token};
use crate::tree::{File, Tree};
use crate::violation::Violation;

const WAITS: &[&str] = &["thread::sleep", "time::sleep", "sleep_ms"];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        let code = file.code();
        let tests_from = if file.is_tests() { 0 } else { file.lines_without_tests() };
        for (index, line) in code.lines().enumerate() {
            let compact: String = line.split_whitespace().collect();
            if compact.contains("#[ignore") || (compact.contains("#[cfg_attr") && compact.contains(",ignore")) {
                violations.push(Violation::at(&file.path, index + 1, "an ignored test: use testkit::require"));
            }
            if index >= tests_from && WAITS.iter().any(|wait| compact.contains(wait)) {
                violations.push(Violation::at(
                    &file.path,
                    index + 1,
                    "a test that sleeps: wait for the event, or use virtual time",
                ));
            }
        }
        violations.extend(empty_assertions(file, code));
        violations.extend(printed_skips(file, tests_from));
        violations.extend(early_returns(file, code));
    }
    violations
}

fn empty_assertions(file: &File, code: &str) -> Vec<Violation> {
    let says_nothing = |line: &str| line.contains("assert!(true)");
    let lines = code.lines().enumerate().filter(|(_, line)| says_nothing(line));
    lines.map(|(index, _)| Violation::at(&file.path, index + 1, "an assertion that cannot fail")).collect()
}

/// Skips that are printed by hand: the runner would count the test as passed.
fn printed_skips(file: &File, tests_from: usize) -> Vec<Violation> {
    let is_skip = |line: &str| {
        let text = line.split_once("print").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(_, text)| text);
        text.to_lowercase().starts_with("skip")
    };
    let lines = file.text.lines().enumerate().skip(tests_from).filter(|(_, line)| is_skip(line));
    lines.map(|(index, _)| Violation::at(&file.path, index + 1, "a printed skip: use testkit::require")).collect()
}

/// Tests that end early for another reason than a requirement, which would count as passed.
fn early_returns(file: &File, code: &str) -> Vec<Violation> {
    let (tokens, mut violations) = (code::tokens(code), Vec::new());
    let mut lines =
        code::words(code).filter(|(_, word)| *word == "return").map(|(offset, _)| code::line_at(code, offset));
    let mut tests = TestBodies::default();
    for at in 0..tokens.len() {
        let is_in_test = tests.read(&tokens, at);
        if tokens[at] == Token::Word("return") {
            let line = lines.next().unwrap_or_default();
            let is_bare =
                matches!(tokens.get(at + 1), Some(Token::Mark(';' | '}' | ',') | Token::Word("println" | "eprintln")));
            if is_in_test && is_bare && !is_of_requirement(&tokens[..at]) {
                let message = "a test that ends early: `let Some(..) = testkit::require(..) else { return }`";
                violations.push(Violation::at(&file.path, line, message));
            }
        }
    }
    violations
}

/// Whether the `return` after `before` is that of a `let Some(..) = require..(..) else { return }`.
fn is_of_requirement(before: &[Token]) -> bool {
    let [statement @ .., Token::Word("else"), Token::Mark('{')] = before else { return false };
    let start = statement.iter().rposition(|token| *token == Token::Word("let")).unwrap_or_default();
    statement[start..].iter().any(|token| matches!(token, Token::Word(word) if word.starts_with("require")))
}

/// Follows the tokens of a file and knows those that are in the body of a test.
#[derive(Default)]
struct TestBodies {
    is_marked: bool,
    depth: usize,
    /// The depth of braces outside of the test's body.
    outside: Option<usize>,
}

impl TestBodies {
    fn read(&mut self, tokens: &[Token], at: usize) -> bool {
        match tokens[at] {
            Token::Word("test") if self.outside.is_none() => {
                let attribute = [Token::Mark('#'), Token::Mark('[')];
                let tokio = [&attribute[..], &[Token::Word("tokio"), Token::Colons]].concat();
                self.is_marked |= tokens[..at].ends_with(&attribute) || tokens[..at].ends_with(&tokio);
            }
            Token::Mark('{') => {
                if std::mem::take(&mut self.is_marked) {
                    self.outside = Some(self.depth);
                }
                self.depth += 1;
            }
            Token::Mark('}') => {
                self.depth = self.depth.saturating_sub(1);
                if self.outside == Some(self.depth) {
                    self.outside = None;
                }
            }
            Token::Word(_) | Token::Mark(_) | Token::Colons => {}
        }
        self.outside.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_and_empty_tests_are_faults() {
        let source = concat!("#[test]\n#[", "ignore]\nfn f() { assert!(true) }\n", "#[cfg_attr(x, ", "ignore)]\n");
        let mut lines: Vec<_> =
            check(&Tree::of(&[("a.rs", source)])).into_iter().map(|violation| violation.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn sleeps_are_faults_in_tests_only() {
        let source =
            "fn driver() { thread::sleep(x); }\n#[cfg(test)]\nmod tests { fn t() { std::thread::sleep(x) } }\n";
        let tree = Tree::of(&[("a.rs", source), ("a/tests/b.rs", "tokio::time::sleep(x).await")]);
        let places: Vec<_> = check(&tree).into_iter().map(|violation| (violation.path, violation.line)).collect();
        assert_eq!(places, [("a.rs".to_owned(), 3), ("a/tests/b.rs".to_owned(), 1)]);
    }

    #[test]
    fn skips_other_than_through_a_requirement_are_violations() {
        let lines = |body: &str| {
            let source = format!("#[test]\nfn t() {{\n{body}\n}}\nfn helper() {{ return; }}\n");
            check(&Tree::of(&[("a/tests/b.rs", &source)]))
                .into_iter()
                .map(|violation| violation.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines("let Some(x) = require(R::A, f()) else { return };"), [0; 0]);
        assert_eq!(lines("let Some(x) = Network::require_two() else { return };\nfor y in z { g(y) }"), [0; 0]);
        assert_eq!(lines("let Some(x) = f() else { return };"), [3]);
        assert_eq!(lines("if x { return; }\nlet y = || return 7;"), [3]);
        assert_eq!(lines("match f() { Ok(x) => x, Err(e) => return eprintln!(\"no {e}\") };"), [3]);
        assert_eq!(lines(concat!("if x { eprint", "ln!(\"skipped t: no x\") }")), [3]);
        assert_eq!(lines(concat!("print", "ln!(\"SKIP t: no x\");\nprintln!(\"other\");")), [3]);
    }
}
