//! The result of a check.

use serde::Serialize;

use crate::target::Transport;

/// The outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Failed,
    /// Not tried, because something is missing.
    Skipped,
}

impl Outcome {
    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// One step over one transport.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The transport.
    pub transport: Transport,
    /// The step.
    pub check: &'static str,
    /// Its outcome.
    pub outcome: Outcome,
    /// What was seen.
    pub text: String,
    /// Address of a candidate: server-reflexive of a Binding, relayed of an allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// Median time, microseconds: of a request, or of a message from client to client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us_p50: Option<u64>,
    /// Messages that were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u32>,
    /// Messages that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u32>,
    /// Days until the certificate expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_left: Option<i64>,
}

impl Row {
    pub(crate) fn new(transport: Transport, check: &'static str, outcome: Outcome, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            transport,
            check,
            outcome,
            text,
            candidate: None,
            rtt_us_p50: None,
            lost: None,
            sent: None,
            days_left: None,
        }
    }
}

/// The rows of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// One row for each step.
    pub rows: Vec<Row>,
}

impl Report {
    /// Returns whether no step failed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.rows.iter().all(|row| row.outcome != Outcome::Failed)
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }
}
