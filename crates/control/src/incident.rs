//! Incidents of books with the names of the books.

use serde::Serialize;
use tt_status::market::Incident;

/// An incident with the book's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BookIncident {
    pub(crate) venue: &'static str,
    /// The normalised symbol; empty if it was every book of the connection.
    pub(crate) book: String,
    #[serde(flatten)]
    pub(crate) incident: Incident,
}
