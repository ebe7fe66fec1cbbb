//! The result of reading another server's configuration.

use std::path::{Path, PathBuf};

use serde::Serialize;
use zeroize::Zeroizing;

use crate::document::Document;

/// Facts about the machine that the configuration is for.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Whether the machine has IPv6.
    pub has_ipv6: bool,
    /// The folder of the configuration file, to which relative paths refer.
    pub folder: Option<&'a Path>,
}

impl Host<'_> {
    /// Returns `path` relative to the folder of the configuration file.
    pub(crate) fn path(&self, path: &str) -> String {
        let joined = self.folder.map_or_else(|| PathBuf::from(path), |folder| folder.join(path));
        joined.to_string_lossy().into_owned()
    }
}

/// The most characters of a realm and of SOFTWARE: RFC 8489 sections 14.9 and 14.14.
const CHARACTERS_MAX: usize = 127;

/// Returns whether truetick takes `text` as SOFTWARE.
pub(crate) fn is_software(text: &str) -> bool {
    (1..=CHARACTERS_MAX).contains(&text.chars().count())
}

/// Returns whether truetick takes `text` as its realm, apart from decomposed characters, which it rejects at the start.
pub(crate) fn is_realm(text: &str) -> bool {
    is_software(text) && !text.contains(|c: char| c.is_control() || c == '"' || c == '\\')
}

/// Why another realm is refused.
pub(crate) const REALM: &str =
    "a realm has 1 to 127 characters, and no quotes, backslashes and control characters: users need another one";

/// How truetick treats an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The same behaviour.
    Same,
    /// The same service with a stricter or cheaper rule that no correct client notices.
    Better,
    /// No effect on clients.
    Ignored,
    /// Behaviour changes.
    Differs,
    /// Behaviour would change so much, who can log in above all, that truetick does not start from the file.
    Refused,
    /// No option of the other server, which ignores the line too.
    Unknown,
}

impl Outcome {
    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Ignored => "ignored",
            Self::Differs => "differs",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

/// An option of the other server, or a default that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Where it is set: `line 3`, `argument`, or `default` if it is not.
    pub place: String,
    /// The option.
    pub option: String,
    /// Its value; credentials are masked.
    pub value: String,
    /// How truetick treats it.
    pub outcome: Outcome,
    /// The keys of truetick that replace it; empty without any.
    pub keys: String,
    /// Why, and what to do.
    pub reason: String,
}

/// Files for the credentials of an [`Import`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFiles {
    /// File for one `NAME:PASSWORD` or `NAME:0xKEY` per line.
    pub users: PathBuf,
    /// File for one secret per line.
    pub secrets: PathBuf,
    /// File for the password of the database.
    pub database_password: PathBuf,
    /// File for the password of the Redis that gets messages.
    pub stats_database_password: PathBuf,
}

/// The configuration of another server, as truetick reads it.
#[derive(Debug, Default)]
pub struct Import {
    /// One row for each option and each default that differs.
    pub rows: Vec<Row>,
    /// Users as `NAME:PASSWORD` or `NAME:0xKEY`.
    pub users: Vec<Zeroizing<String>>,
    /// Secrets of time-limited credentials.
    pub secrets: Vec<Zeroizing<String>>,
    /// Password of the database.
    pub database_password: Option<Zeroizing<String>>,
    /// Password of the Redis that gets messages.
    pub stats_database_password: Option<Zeroizing<String>>,
    /// Whether the configuration contains a credential, also one that truetick does not use.
    pub has_credentials: bool,
    pub(crate) document: Document,
}

impl Import {
    /// Returns the configuration as TOML, without credentials; with `files` it names those that have any.
    #[must_use]
    pub fn to_toml(&self, files: Option<&CredentialFiles>) -> String {
        let mut document = self.document.clone();
        if let Some(files) = files {
            let name = |path: &Path| vec![path.to_string_lossy().into_owned()];
            if !self.users.is_empty() {
                document.turn("user_file", name(&files.users));
            }
            if !self.secrets.is_empty() {
                document.turn("auth_secret_file", name(&files.secrets));
            }
            if self.database_password.is_some() {
                document.turn("database_password_file", files.database_password.to_string_lossy().into_owned());
            }
            if self.stats_database_password.is_some() {
                let file = files.stats_database_password.to_string_lossy().into_owned();
                document.turn("stats_database_password_file", file);
            }
        }
        document.to_toml()
    }

    /// Returns whether truetick would behave otherwise than the other server.
    #[must_use]
    pub fn changes_behaviour(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.outcome, Outcome::Differs | Outcome::Refused))
    }

    /// Iterates over the rows with this outcome.
    pub fn rows_of(&self, outcome: Outcome) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.outcome == outcome)
    }
}
