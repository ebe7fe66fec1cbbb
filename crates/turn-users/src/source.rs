//! The name of a database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tt_status::allocation_messages::MessageOutput;
use zeroize::Zeroizing;

use crate::read_error::{ErrorKind, ReadError};
use crate::reader::Reader;

/// Words for a password in a connection of libpq and of coturn.
const PASSWORD_WORDS: [&str; 4] = ["password=", "pwd=", "passwd=", "secret="];

/// The name of a database, as in the configuration: `sqlite:PATH`, `postgres:CONNECTION` or `redis:CONNECTION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// PostgreSQL, in the words of libpq, or as a URL.
    Postgres(Connection),
    /// Redis, in the words of coturn: `host= port= dbname= user=`.
    Redis(Connection),
}

/// A connection to a server. `Debug` and `Display` do not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    text: String,
    password: Option<Zeroizing<String>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Connection {
    fn new(text: &str) -> Result<Self, String> {
        let user = text.split_once("://").and_then(|(_, rest)| Some(rest.split('/').next()?.rsplit_once('@')?.0));
        let has_password = user.is_some_and(|user| user.contains(':'))
            || PASSWORD_WORDS.iter().any(|word| text.to_ascii_lowercase().contains(word));
        match has_password {
            true => Err("a password belongs in database_password_file or stats_database_password_file".to_owned()),
            false => Ok(Self { text: text.to_owned(), password: None }),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", url)) if url.starts_with("//") => {
                Connection::new(text).map(Self::Postgres)
            }
            Some(("postgres" | "postgresql", words)) => Connection::new(words).map(Self::Postgres),
            Some(("redis", words)) => Connection::new(words).map(Self::Redis),
            Some(("mysql" | "mongodb", _)) => Err("MySQL and MongoDB are not supported".to_owned()),
            Some(_) | None => Err("a database must be sqlite:PATH, postgres:CONNECTION or redis:CONNECTION".to_owned()),
        }
    }
}

impl Source {
    /// Returns the kind, for metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
            Self::Redis(_) => "redis",
        }
    }

    /// Sets the password.
    ///
    /// # Errors
    /// A file of SQLite has none.
    pub fn set_password(&mut self, password: Zeroizing<String>) -> Result<(), &'static str> {
        match self {
            Self::Sqlite(_) => return Err("a SQLite database has no password"),
            Self::Postgres(connection) | Self::Redis(connection) => connection.password = Some(password),
        }
        Ok(())
    }

    /// Returns a reader, which connects at its first read.
    ///
    /// # Errors
    /// `NotBuilt`: the feature of this kind is off. `Invalid`: the connection's text.
    pub fn open(&self) -> Result<Box<dyn Reader>, ReadError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => Ok(Box::new(crate::sqlite::Sqlite::new(path.clone()))),
            #[cfg(feature = "postgres")]
            Self::Postgres(Connection { text, password }) => {
                Ok(Box::new(crate::postgres::Postgres::new(text, password.as_ref())?))
            }
            #[cfg(feature = "redis")]
            Self::Redis(Connection { text, password }) => {
                let password = password.as_ref().map(|password| password.as_str());
                Ok(Box::new(crate::redis::Redis::new(text, password)?))
            }
            #[cfg(not(all(feature = "postgres", feature = "redis", feature = "sqlite")))]
            _ => Err(ReadError::not_built(self.kind())),
        }
    }

    /// Returns an output for messages about allocations, which connects at its first message.
    ///
    /// # Errors
    /// `NotBuilt`: the feature of Redis is off. `Invalid`: the connection's text, or no Redis.
    pub fn message_output(&self) -> Result<Box<dyn MessageOutput>, ReadError> {
        match self {
            #[cfg(feature = "redis")]
            Self::Redis(Connection { text, password }) => {
                let password = password.as_ref().map(|password| password.as_str());
                Ok(Box::new(crate::message_output::RedisOutput::new(crate::redis::Redis::new(text, password)?)))
            }
            #[cfg(not(feature = "redis"))]
            Self::Redis(_) => Err(ReadError::not_built(self.kind())),
            Self::Sqlite(_) | Self::Postgres(_) => {
                Err(ReadError::new(ErrorKind::Invalid, "messages go to redis:CONNECTION only"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_kind_and_no_password() {
        let kind = |text: &str| text.parse::<Source>().map(|source| source.kind());
        assert_eq!(kind("sqlite:/var/lib/turn/turndb"), Ok("sqlite"));
        assert_eq!(kind("postgres:host=/run/postgresql dbname=turn"), Ok("postgres"));
        assert_eq!(kind("postgresql://turn@db.example.org/turn"), Ok("postgres"));
        assert_eq!(kind("redis:ip=127.0.0.1 dbname=2"), Ok("redis"));
        for text in ["postgres:host=a password=secret", "redis:pwd=secret", "postgres://turn:secret@db/turn"] {
            assert!(kind(text).unwrap_err().contains("database_password_file"), "{text}");
        }
        for text in ["", "/var/lib/turn/turndb", "sqlite:", "oracle:x", "mysql:host=a", "mongodb:x"] {
            assert!(kind(text).is_err(), "{text}");
        }
        let mut source: Source = "redis:port=1".parse().unwrap();
        source.set_password(Zeroizing::new("secret".to_owned())).unwrap();
        assert!(!format!("{source:?}").contains("secret"));
        let mut file: Source = "sqlite:a".parse().unwrap();
        assert!(file.set_password(Zeroizing::default()).is_err());
    }

    #[cfg(all(feature = "postgres", feature = "redis"))]
    #[test]
    fn connections_that_ask_for_tls_are_rejected_by_name() {
        for text in [
            "postgres:host=a sslmode=require",
            "postgres://turn@db/turn?sslmode=require",
            "redis:tls=1",
            "redis:ssl=on",
        ] {
            let Err(error) = text.parse::<Source>().unwrap().open() else { panic!("{text}") };
            assert_eq!(error.kind, ErrorKind::Invalid, "{text}");
            assert!(error.cause.contains("connections have no TLS"), "{text}: {error}");
        }
        for text in ["postgres:host=a sslmode=disable", "postgres:host=a sslmode=prefer", "redis:tls=off"] {
            assert!(text.parse::<Source>().unwrap().open().is_ok(), "{text}");
        }
        let Err(error) = "redis:ssl=1".parse::<Source>().unwrap().message_output() else { panic!("TLS") };
        assert!(error.cause.contains("connections have no TLS"), "{error}");
        let Err(error) = "sqlite:a".parse::<Source>().unwrap().message_output() else { panic!("SQLite") };
        assert!(error.cause.contains("redis:CONNECTION"), "{error}");
    }
}
