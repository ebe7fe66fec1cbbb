//! Tests run, all of them, and none waits for time to pass.

use super::Fault;
use super::tree::{File, Tree};

const WAITS: &[&str] = &["thread::sleep", "time::sleep", "sleep_ms"];

/// Faults of the whole tree.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in tree.rust() {
        let code = file.code();
        let tests_from = if file.is_tests() { 0 } else { file.lines_without_tests() };
        for (index, line) in code.lines().enumerate() {
            let compact: String = line.split_whitespace().collect();
            if compact.contains("#[ignore") || (compact.contains("#[cfg_attr") && compact.contains(",ignore")) {
                faults.push(Fault::at(&file.path, index + 1, "an ignored test is no test: skip it by name and reason"));
            }
            if index >= tests_from && WAITS.iter().any(|wait| compact.contains(wait)) {
                faults.push(Fault::at(
                    &file.path,
                    index + 1,
                    "a test that sleeps: wait for the event, or use virtual time",
                ));
            }
        }
        faults.extend(empty_assertions(file, &code));
    }
    faults
}

fn empty_assertions(file: &File, code: &str) -> Vec<Fault> {
    let says_nothing = |line: &str| line.contains("assert!(true)");
    let lines = code.lines().enumerate().filter(|(_, line)| says_nothing(line));
    lines.map(|(index, _)| Fault::at(&file.path, index + 1, "an assertion that cannot fail")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_and_empty_tests_are_faults() {
        let source = concat!("#[test]\n#[", "ignore]\nfn f() { assert!(true) }\n", "#[cfg_attr(x, ", "ignore)]\n");
        let mut lines: Vec<_> = check(&Tree::of(&[("a.rs", source)])).into_iter().map(|fault| fault.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn sleeps_are_faults_in_tests_only() {
        let source =
            "fn driver() { thread::sleep(x); }\n#[cfg(test)]\nmod tests { fn t() { std::thread::sleep(x) } }\n";
        let tree = Tree::of(&[("a.rs", source), ("a/tests/b.rs", "tokio::time::sleep(x).await")]);
        let places: Vec<_> = check(&tree).into_iter().map(|fault| (fault.path, fault.line)).collect();
        assert_eq!(places, [("a.rs".to_owned(), 3), ("a/tests/b.rs".to_owned(), 1)]);
    }
}
