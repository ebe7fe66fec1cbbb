//! What a database logs in.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The tables of a database with which clients log in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatabaseLogins {
    /// Users and secrets.
    #[default]
    Both,
    /// Users with keys; secrets do not count.
    Users,
    /// Secrets of time-limited credentials; users do not count.
    Secrets,
}

impl DatabaseLogins {
    /// The values as they are written in the configuration file and in flags.
    pub const NAMES: [&str; 3] = ["both", "users", "secrets"];

    /// Returns whether users count.
    #[must_use]
    pub const fn has_users(self) -> bool {
        matches!(self, Self::Both | Self::Users)
    }

    /// Returns whether secrets count.
    #[must_use]
    pub const fn has_secrets(self) -> bool {
        matches!(self, Self::Both | Self::Secrets)
    }
}

impl FromStr for DatabaseLogins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "both" => Ok(Self::Both),
            "users" => Ok(Self::Users),
            "secrets" => Ok(Self::Secrets),
            _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
}
