//! Findings of an audit.

use serde::Serialize;
use tt_market::DropReason;

/// One kind of finding, with its count and first record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) count: u64,
    /// Whether it is an error; otherwise it is a note.
    pub(super) wrong: bool,
    /// The number of the first record with it, if known.
    pub(super) first_record: Option<u64>,
    pub(super) text: String,
}

/// The findings, each name once.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// Adds `count` to the finding `name`; zero adds nothing.
    pub(super) fn add(&mut self, name: &'static str, count: u64, wrong: bool, first_record: Option<u64>, text: &str) {
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.count += count;
                known.first_record = known.first_record.or(first_record);
            }
            None => self.0.push(Finding { name, count, wrong, first_record, text: text.to_owned() }),
        }
    }

    pub(super) fn is_right(&self) -> bool {
        self.0.iter().all(|finding| !finding.wrong)
    }

    pub(super) fn all(&self) -> &[Finding] {
        &self.0
    }
}

/// Whether a drop reason is an error of the recording.
pub(super) fn is_wrong(fault: DropReason) -> bool {
    // Expected: updates that a join skips, unsupported topics, and deltas before their snapshot. A duplicate update is
    // a separate finding.
    !matches!(
        fault,
        DropReason::Superseded
            | DropReason::UnknownTopic
            | DropReason::UnknownSymbol
            | DropReason::UnexpectedSnapshot
            | DropReason::AwaitingSnapshot
            | DropReason::SnapshotTooOld
            | DropReason::Duplicate
            | DropReason::Rejected
            | DropReason::VenueError
            | DropReason::OrdersFull
    )
}
