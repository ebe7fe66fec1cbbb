//! The rows of a judgement, and their counts.

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::check::{Check, Finding, Level, Unmet};
use crate::target::Transport;

/// The result of a check over one transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Judgement {
    /// The server does what the requirement says.
    Passed,
    /// It does not.
    Failed {
        /// What the requirement says.
        expected: String,
        /// What the server did.
        received: String,
    },
    /// The server does not offer the feature.
    Absent {
        /// What shows it.
        reason: String,
    },
    /// Nothing can be said.
    NotJudged {
        /// What was missing.
        reason: String,
    },
}

impl Judgement {
    /// Returns the name in tables.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "failed",
            Self::Absent { .. } => "absent",
            Self::NotJudged { .. } => "not judged",
        }
    }

    /// Returns what was expected and received, or the reason.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Passed => String::new(),
            Self::Failed { expected, received } => format!("expected {expected}; received {received}"),
            Self::Absent { reason } | Self::NotJudged { reason } => reason.clone(),
        }
    }
}

/// A check over one transport, and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScoreboardRow {
    /// The transport.
    pub transport: Transport,
    /// Id in rfc.toml or cases.toml.
    pub id: &'static str,
    /// Section of the RFC.
    pub section: &'static str,
    /// How binding the requirement is.
    pub level: Level,
    /// What a server does that meets it.
    pub title: &'static str,
    /// The result.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl ScoreboardRow {
    pub(super) fn of_check(transport: Transport, check: &'static Check, finding: Finding) -> Self {
        let judgement = match finding {
            Ok(()) => Judgement::Passed,
            Err(Unmet::Failed { expected, received }) => Judgement::Failed { expected, received },
            Err(Unmet::Absent(reason)) => Judgement::Absent { reason },
            Err(Unmet::NotJudged(reason)) => Judgement::NotJudged { reason },
        };
        let Check { id, section, level, title, .. } = *check;
        Self { transport, id, section, level, title, judgement }
    }

    /// The row of a transport that is not there.
    pub(super) fn of_transport(transport: Transport, judgement: Judgement) -> Self {
        let (id, section, title) = ("R016", "RFC 8489 section 12", TRANSPORT);
        Self { transport, id, section, level: Level::Should, title, judgement }
    }
}

impl fmt::Display for ScoreboardRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transport, id, section, level, title, judgement } = self;
        let (transport, level, result) = (transport.name(), level.name(), judgement.name());
        write!(f, "{transport:3} {result:10} {id} {level:6} {title}, {section}")?;
        match judgement {
            Judgement::Passed => Ok(()),
            Judgement::Failed { .. } | Judgement::Absent { .. } | Judgement::NotJudged { .. } => {
                write!(f, ": {}", escaped(&judgement.text()))
            }
        }
    }
}

/// Title of the row of a transport that is not there.
const TRANSPORT: &str = "the server answers over this transport";

/// The rows of a judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scoreboard {
    /// The server.
    pub host: String,
    /// Whether malformed messages were sent.
    pub is_hostile: bool,
    /// One row for each check and transport.
    pub rows: Vec<ScoreboardRow>,
}

impl Scoreboard {
    /// Returns whether a transport was reached.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.rows.iter().any(|row| row.title != TRANSPORT || matches!(row.judgement, Judgement::Failed { .. }))
    }

    /// Returns the number of failed checks.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(None, "failed")
    }

    fn count(&self, transport: Option<Transport>, name: &str) -> usize {
        let rows = self.rows.iter().filter(|row| transport.is_none_or(|transport| row.transport == transport));
        rows.filter(|row| row.judgement.name() == name).count()
    }

    fn transports(&self) -> Vec<Transport> {
        let mut transports: Vec<Transport> = self.rows.iter().map(|row| row.transport).collect();
        transports.dedup();
        transports
    }

    /// Returns the numbers of results over each transport, one line each.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for transport in self.transports() {
            let count = |name| self.count(Some(transport), name);
            let _ = writeln!(
                text,
                "{}: {} passed, {} failed, {} absent, {} not judged",
                transport.name(),
                count("passed"),
                count("failed"),
                count("absent"),
                count("not judged")
            );
        }
        text
    }

    /// Returns a table with a line for each check and a column for each transport, and a list of what did not pass.
    #[must_use]
    pub fn markdown(&self) -> String {
        let transports = self.transports();
        let names: Vec<_> = transports.iter().map(|transport| transport.name()).collect();
        let mut text = format!("| id | section | level | check | {} |\n", names.join(" | "));
        let _ = writeln!(text, "|---|---|---|---|{}", "---|".repeat(transports.len()));
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for row in &self.rows {
            if seen.contains(&(row.id, row.title)) {
                continue;
            }
            seen.push((row.id, row.title));
            let cell = |transport: &Transport| {
                let is_it = |other: &&ScoreboardRow| {
                    (other.transport, other.id, other.title) == (*transport, row.id, row.title)
                };
                self.rows.iter().find(is_it).map_or("", |row| row.judgement.name())
            };
            let cells: Vec<_> = transports.iter().map(cell).collect();
            let (id, section, level, title) = (row.id, row.section, row.level.name(), row.title);
            let _ = writeln!(text, "| {id} | {section} | {level} | {title} | {} |", cells.join(" | "));
        }
        text.push('\n');
        for row in self.rows.iter().filter(|row| row.judgement != Judgement::Passed) {
            let (transport, name) = (row.transport.name(), row.judgement.name());
            let detail = escaped(&row.judgement.text());
            let _ = writeln!(text, "- {} over {transport}, {}: {name}: {detail}", row.id, row.title);
        }
        text.push('\n');
        text.push_str(&self.summary());
        text
    }
}

/// Returns text of a server for a terminal or a document.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character.is_control() {
            true => escaped.extend(character.escape_debug()),
            false => escaped.push(character),
        }
    }
    escaped
}
