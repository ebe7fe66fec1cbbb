//! What shows that a venue's parser and rules are right, and of which day it is.

use core::fmt;

/// Evidence that a venue's parser and rules are right. Months are written as `2026-11`; they compare as texts.
///
/// Its [`Display`](fmt::Display) is the label in reports: `captured 2026-08`, `out of date: captured 2024-08, changed
/// 2026-04` or `not tried live`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The month of the newest captured frames that the tests read; `None` if there are only documented ones.
    pub captured: Option<&'static str>,
    /// The month of the venue's newest change of what truetick reads or requests; `None` if none is known.
    pub changed: Option<&'static str>,
    /// The month in which the rules were last compared with the venue's documentation.
    pub checked: &'static str,
    /// The documentation that they were compared with.
    pub source: &'static str,
}

impl Evidence {
    /// Returns whether the venue has changed since its frames were captured.
    #[must_use]
    pub fn is_out_of_date(&self) -> bool {
        self.captured.zip(self.changed).is_some_and(|(captured, changed)| captured < changed)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.captured, self.changed.filter(|_| self.is_out_of_date())) {
            (None, _) => f.write_str("not tried live"),
            (Some(captured), None) => write!(f, "captured {captured}"),
            (Some(captured), Some(changed)) => write!(f, "out of date: captured {captured}, changed {changed}"),
        }
    }
}
