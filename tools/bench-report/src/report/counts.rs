//! Kept instruction counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// The kept counts of one CPU class.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The compiler that built what was counted.
    pub rustc: String,
    /// User instructions of one operation, by row.
    pub rows: BTreeMap<String, f64>,
}

impl Counts {
    /// Reads the counts of a CPU class from `folder`; `None` if none are kept.
    ///
    /// # Errors
    /// The file cannot be read, or is not of this form.
    pub fn read(folder: &Path, class: &str) -> anyhow::Result<Option<Self>> {
        let path = path(folder, class);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let parsed = toml::from_str(&text);
                Ok(Some(parsed.with_context(|| format!("{} does not parse", path.display()))?))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the counts of a CPU class to `folder`, and returns the path. Rows that were not counted this time stay.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn keep(mut self, folder: &Path, class: &str) -> anyhow::Result<PathBuf> {
        if let Some(before) = Self::read(folder, class)?.filter(|before| before.rustc == self.rustc) {
            for (name, count) in before.rows {
                self.rows.entry(name).or_insert(count);
            }
        }
        self.rows.values_mut().for_each(|count| *count = (*count * 10.0).round() / 10.0);
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let text = format!(
            "# User instructions of one operation, by `truetick bench count --write {}`.\n{}",
            folder.display(),
            toml::to_string(&self)?
        );
        let path = path(folder, class);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

fn path(folder: &Path, class: &str) -> PathBuf {
    folder.join(format!("{class}.toml"))
}
