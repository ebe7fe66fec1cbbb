//! Users, secrets, peers, options and origins of realms, from a database with coturn's schema.
//!
//! A [`Source`] is the name of a database. [`Database::open`] reads all [`Rows`] of its realms at once, and
//! [`Database::follow`] does so on a thread again and again. Nothing is written there; [`Source::message_output`] sends
//! messages about allocations to a Redis.
//!
//! Whole realms are read, not one user when a client asks for it. So a request never waits for a database; strangers
//! cannot make it work; a look-up takes the same time for every name; and the last good rows stay while the database is
//! away. The cost is memory for each user, and that a new user can log in after the next read only.
//!
//! ```
//! use turn_users::{Rows, SkipReason};
//!
//! let mut rows = Rows::default();
//! rows.add_user(Some(b"gorst"), Some(b"7da2270ccfa49786e0115366d3a3d14d"))?;
//! rows.add_user(Some(b"ann"), Some(b"a password in the place of a key"))?;
//! assert_eq!((rows.users.len(), rows.skipped.count(SkipReason::KeyNotHex)), (1, 1));
//! # Ok::<(), turn_users::ReadError>(())
//! ```

#![forbid(unsafe_code)]

mod follower;
#[cfg(feature = "redis")]
mod message_output;
#[cfg(feature = "postgres")]
mod postgres;
mod read_error;
mod reader;
mod realm_rows;
#[cfg(feature = "redis")]
mod redis;
mod rows;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use follower::{Database, Follower};
pub use read_error::{ErrorKind, ReadError};
pub use reader::Reader;
pub use realm_rows::RealmRows;
pub use rows::{KeyedUser, PeerList, RealmOptions, Rows, Secret, SkipReason, Skipped};
pub use source::{Connection, Source};
