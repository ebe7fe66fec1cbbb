//! One list, read.

use toml::{Table, Value};

use crate::tree::Tree;
use crate::violation::Violation;

/// A list's entries in the order of their ids.
#[derive(Debug)]
pub(super) struct List {
    pub(super) entries: Vec<Entry>,
}

/// The entry of one id in a list.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) id: String,
    /// Of its heading, from 1.
    pub(super) line: usize,
    pub(super) section: String,
    pub(super) says: String,
    pub(super) outside: Vec<String>,
    pub(super) engine: Vec<String>,
    /// Of a reason: tests of the breach, of a value equal to the limit, of a missing input; none where it says why.
    pub(super) breached: Option<Vec<String>>,
    pub(super) equal: Option<Vec<String>>,
    pub(super) missing: Option<Vec<String>>,
    /// Why none of it applies.
    pub(super) inapplicable: Option<String>,
    /// Why it is not met.
    pub(super) waiver: Option<String>,
    /// Parts without a test.
    pub(super) open: Option<String>,
    /// The part that does not hold.
    pub(super) except: Option<String>,
}

impl Entry {
    pub(super) fn tests(&self) -> impl Iterator<Item = &String> {
        let of_reason = [&self.breached, &self.equal, &self.missing].into_iter().flatten().flatten();
        self.outside.iter().chain(&self.engine).chain(of_reason)
    }

    fn read(id: &str, line: usize, table: &Table) -> Result<Self, String> {
        let mut entry = Self { id: id.to_owned(), line, ..Self::default() };
        for (key, value) in table {
            match key.as_str() {
                "section" => entry.section = text(value)?,
                "says" => entry.says = text(value)?,
                "outside" => entry.outside = texts(value)?,
                "engine" => entry.engine = texts(value)?,
                "breached" => entry.breached = Some(texts(value)?),
                "equal" => entry.equal = Some(tests_or_reason(value)?),
                "missing" => entry.missing = Some(tests_or_reason(value)?),
                "inapplicable" => entry.inapplicable = Some(reason(value)?),
                "waiver" => entry.waiver = Some(reason(value)?),
                "open" => entry.open = Some(reason(value)?),
                "except" => entry.except = Some(reason(value)?),
                other => return Err(format!("no such key: {other}")),
            }
        }
        Ok(entry)
    }
}

impl List {
    /// Reads the list at `path`; an id that occurs twice is an error of TOML.
    pub(super) fn read(tree: &Tree, path: &str) -> Result<Self, Violation> {
        let file = tree.files.iter().find(|file| file.path == path);
        let file = file.ok_or_else(|| Violation::at(path, 0, "the list is missing"))?;
        let tables: Table = file.text.parse().map_err(|error| Violation::at(path, 0, format!("{error}")))?;
        let mut entries = Vec::with_capacity(tables.len());
        for (id, value) in &tables {
            let heading = format!("[{id}]");
            let line = file.text.lines().position(|line| line == heading).map_or(0, |index| index + 1);
            let table = value.as_table().ok_or_else(|| Violation::at(path, line, format!("{id} is no table")))?;
            let entry = Entry::read(id, line, table);
            entries.push(entry.map_err(|wrong| Violation::at(path, line, format!("{id}: {wrong}")))?);
        }
        Ok(Self { entries })
    }
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{value} is no text"))
}

fn reason(value: &Value) -> Result<String, String> {
    text(value).and_then(|text| if text.is_empty() { Err("a reason is missing".to_owned()) } else { Ok(text) })
}

/// Tests; none if it is a text.
fn tests_or_reason(value: &Value) -> Result<Vec<String>, String> {
    if value.is_str() { reason(value).map(|_| Vec::new()) } else { texts(value) }
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    let values = value.as_array().ok_or_else(|| format!("{value} is no array"))?;
    values.iter().map(text).collect()
}
