//! The position of a setting in the configuration file.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// The text of a configuration file; empty without a file. Its `Debug` omits the text, which may contain passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Source {
    path: Option<PathBuf>,
    text: String,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Source {
    pub(super) fn new(path: Option<&Path>, text: &str) -> Self {
        Self { path: path.map(Path::to_path_buf), text: text.into() }
    }

    /// The file.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// Returns every key of `[section]`, the index of each of its values, and the file and line of that value.
    #[cfg(feature = "turn")]
    pub(super) fn places(&self, section: &str) -> Vec<(String, usize, String)> {
        let Ok(document) = DeTable::parse(&self.text) else { return Vec::new() };
        let Some(table) = document.get_ref().get(section).and_then(|section| section.get_ref().as_table()) else {
            return Vec::new();
        };
        let mut places = Vec::new();
        for (key, value) in table {
            let mut add = |index, offset| places.push((key.get_ref().to_string(), index, self.at(offset)));
            match value.get_ref().as_array() {
                Some(array) => array.iter().enumerate().for_each(|(index, value)| add(index, value.span().start)),
                None => add(0, value.span().start),
            }
        }
        places
    }

    /// File and line of the byte at `offset`.
    pub(super) fn at(&self, offset: usize) -> String {
        let line = self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
        match &self.path {
            Some(path) => format!("{}, line {line}", path.display()),
            None => format!("line {line}"),
        }
    }

    /// The key, with its sections, whose value is at `offset`.
    pub(super) fn key_at(&self, offset: usize) -> Option<String> {
        let document = DeTable::parse(&self.text).ok()?;
        let mut keys: Vec<&str> = Vec::new();
        let mut table = Some(document.get_ref());
        while let Some((key, value)) =
            table.and_then(|table| table.iter().find(|(_, value)| holds(value.get_ref(), &value.span(), offset)))
        {
            keys.push(key.get_ref());
            table = value.get_ref().as_table();
        }
        (!keys.is_empty()).then(|| keys.join("."))
    }
}

/// Whether the value holds the byte at `offset`; a table's keys need not lie within its own span.
fn holds(value: &DeValue<'_>, span: &std::ops::Range<usize>, offset: usize) -> bool {
    let in_table = |table: &DeTable<'_>| table.values().any(|value| holds(value.get_ref(), &value.span(), offset));
    span.contains(&offset) || value.as_table().is_some_and(in_table)
}
