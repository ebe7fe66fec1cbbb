//! A place where a rule is broken.

use std::fmt;

/// One place where the tree breaks a rule.
#[derive(Debug, PartialEq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    /// From 1; 0 where the whole file is meant.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Violation {
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}
