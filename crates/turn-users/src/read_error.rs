//! Why a database could not be read.

use std::fmt;

/// Kind of a [`ReadError`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The program was built without this kind of database.
    NotBuilt,
    /// The connection's text is invalid.
    Invalid,
    /// No connection, or no file.
    Connect,
    /// The server rejects the user, the password or the name of the database.
    Login,
    /// A table or column of coturn's schema is missing.
    Schema,
    /// Another program has locked the database.
    Busy,
    /// No answer within the time for a read.
    Timeout,
    /// More rows than a realm may have.
    TooManyRows,
    /// The connection broke, or the database answered with an error.
    Query,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::NotBuilt,
        Self::Invalid,
        Self::Connect,
        Self::Login,
        Self::Schema,
        Self::Busy,
        Self::Timeout,
        Self::TooManyRows,
        Self::Query,
    ];

    /// Returns the name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotBuilt => "not_built",
            Self::Invalid => "invalid",
            Self::Connect => "connect",
            Self::Login => "login",
            Self::Schema => "schema",
            Self::Busy => "busy",
            Self::Timeout => "timeout",
            Self::TooManyRows => "too_many_rows",
            Self::Query => "query",
        }
    }
}

/// Why a database could not be read. Contains no credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The kind.
    pub kind: ErrorKind,
    /// The cause, in the database's words.
    pub cause: String,
}

impl ReadError {
    /// Creates an error of this kind.
    pub(crate) fn new(kind: ErrorKind, cause: impl fmt::Display) -> Self {
        Self { kind, cause: cause.to_string() }
    }

    /// Creates the error of a database whose feature is off.
    #[cfg_attr(
        all(feature = "postgres", feature = "redis", feature = "sqlite"),
        expect(dead_code, reason = "every feature is on")
    )]
    pub(crate) fn not_built(feature: &str) -> Self {
        Self::new(ErrorKind::NotBuilt, format_args!("the feature `{feature}` of truetick is off"))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.cause)
    }
}

impl std::error::Error for ReadError {}
