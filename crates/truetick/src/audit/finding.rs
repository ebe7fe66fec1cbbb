//! What is to be said about a recording.

use serde::Serialize;

/// One thing that was found, how often, and where first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) count: u64,
    /// Whether the recording is wrong, or merely so.
    pub(super) wrong: bool,
    /// The number of the first record that shows it, where one does.
    pub(super) first_record: Option<u64>,
    pub(super) text: String,
}

/// What was found, each name once.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// Adds `count` to what is known of `name`; zero adds nothing.
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
