//! The test functions that the tree has.

use crate::tree::Tree;

/// Every function marked as a test.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) tests: Vec<Test>,
}

/// A function marked as a test.
#[derive(Debug, PartialEq)]
pub(super) struct Test {
    pub(super) package: String,
    pub(super) name: String,
    pub(super) path: String,
    /// From 1.
    pub(super) line: usize,
}

impl Test {
    /// The test's name in a list.
    pub(super) fn named(&self) -> String {
        format!("{}::{}", self.package, self.name)
    }
}

impl Sources {
    pub(super) fn read(tree: &Tree) -> Self {
        let mut tests = Vec::new();
        for file in tree.rust() {
            let code = file.code();
            let mut is_marked = false;
            for (index, line) in code.lines().map(str::trim).enumerate() {
                is_marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                if let Some(name) = function_name(line).filter(|_| is_marked) {
                    let package = package(&file.path).to_owned();
                    tests.push(Test { package, name: name.to_owned(), path: file.path.clone(), line: index + 1 });
                    is_marked = false;
                }
            }
        }
        Self { tests }
    }

    /// The files that hold the test that a list calls `named`.
    pub(super) fn paths(&self, named: &str) -> Vec<&str> {
        let of_name = self.tests.iter().filter(|test| {
            named.split_once("::").is_some_and(|(package, name)| test.package == package && test.name == name)
        });
        of_name.map(|test| test.path.as_str()).collect()
    }
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub(super) ")).unwrap_or(line);
    let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

/// The folder of the package that the file belongs to.
fn package(path: &str) -> &str {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates" | "tools") => parts.next().unwrap_or_default(),
        first => first.unwrap_or_default(),
    }
}
