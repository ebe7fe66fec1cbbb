//! The name of a database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::read_error::ReadError;
use crate::reader::Reader;

/// The name of a database, as in the configuration: `sqlite:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of SQLite.
    Sqlite(PathBuf),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("mysql" | "mongodb", _)) => Err("MySQL and MongoDB are not supported; sqlite:PATH is".to_owned()),
            Some(_) | None => Err("a database must be sqlite:PATH".to_owned()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

impl Source {
    /// Returns the kind, for metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
        }
    }

    /// Returns a reader, which connects at its first read.
    ///
    /// # Errors
    /// `NotBuilt`: the feature of this kind is off.
    pub fn open(&self) -> Result<Box<dyn Reader>, ReadError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => Ok(Box::new(crate::sqlite::Sqlite::new(path.clone()))),
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err(ReadError::not_built(self.kind())),
        }
    }
}
