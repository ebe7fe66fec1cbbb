//! A connection to a database.

use crate::read_error::ReadError;
use crate::realm_rows::RealmRows;

/// A connection to a database, or the intention to make one.
pub trait Reader: Send {
    /// Returns all rows of each of `realms`, of which the first is the default one, those without a realm, and those of
    /// realms that only origins name; or `None` if they are those of the last read that succeeded. Connects again if it
    /// must.
    ///
    /// # Errors
    /// Why the database cannot be read. Rows that make no sense are no error.
    fn read(&mut self, realms: &[String]) -> Result<Option<RealmRows>, ReadError>;
}
