//! Where allocation records go.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Output of allocation records: `stdout`, `journald`, or the path of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum RecordOutput {
    /// A file, one JSON object per line.
    File(PathBuf),
    /// Standard output, one JSON object per line.
    Stdout,
    /// The systemd journal, one entry per record.
    Journald,
}

impl fmt::Display for RecordOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Stdout => f.write_str("stdout"),
            Self::Journald => f.write_str("journald"),
        }
    }
}

impl From<String> for RecordOutput {
    fn from(text: String) -> Self {
        match &*text {
            "stdout" => Self::Stdout,
            "journald" => Self::Journald,
            _ => Self::File(text.into()),
        }
    }
}

impl From<RecordOutput> for String {
    fn from(output: RecordOutput) -> Self {
        output.to_string()
    }
}

impl FromStr for RecordOutput {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.to_owned().into())
    }
}
