//! A check: a requirement, its level, and the function that judges it.

use std::fmt;

use serde::Serialize;

use super::ConformOptions;
use super::judge::Judge;
use crate::client::NoResponse;
use crate::target::Transport;

/// How binding a requirement is (RFC 2119).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// MUST, or a step of processing that the text prescribes.
    Must,
    /// SHOULD.
    Should,
}

impl Level {
    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
        }
    }
}

/// The transports that a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Any,
    Udp,
    Stream,
    Tls,
}

/// What a check needs besides the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Login,
    TwoLogins,
}

/// A requirement that can be judged from outside.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Check {
    /// Id in rfc.toml or cases.toml.
    pub id: &'static str,
    /// Section of the RFC.
    pub section: &'static str,
    /// How binding it is.
    pub level: Level,
    /// What a server does that meets it.
    pub title: &'static str,
    /// Whether it sends malformed or many messages.
    pub is_hostile: bool,
    #[serde(skip)]
    pub(super) over: Over,
    #[serde(skip)]
    pub(super) needs: Needs,
    #[serde(skip)]
    pub(super) judge: fn(&Judge<'_>) -> Finding,
}

impl Check {
    /// A requirement over every transport that needs a credential.
    pub(super) const fn must(
        id: &'static str,
        section: &'static str,
        title: &'static str,
        judge: fn(&Judge<'_>) -> Finding,
    ) -> Self {
        let (over, needs) = (Over::Any, Needs::Login);
        Self { id, section, level: Level::Must, title, is_hostile: false, over, needs, judge }
    }

    pub(super) const fn should(self) -> Self {
        Self { level: Level::Should, ..self }
    }

    pub(super) const fn over(self, over: Over) -> Self {
        Self { over, ..self }
    }

    pub(super) const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    pub(super) const fn hostile(self) -> Self {
        Self { is_hostile: true, ..self }
    }

    /// Returns whether the check belongs to a judgement over `transport`.
    pub(super) fn is_for(&self, transport: Transport, options: &ConformOptions) -> bool {
        let is_over = match (self.over, transport) {
            (Over::Any, _)
            | (Over::Udp, Transport::Udp)
            | (Over::Stream, Transport::Tcp | Transport::Tls)
            | (Over::Tls, Transport::Tls) => true,
            (Over::Udp, Transport::Tcp | Transport::Tls)
            | (Over::Stream, Transport::Udp)
            | (Over::Tls, Transport::Udp | Transport::Tcp) => false,
        };
        let is_chosen = options.only.is_empty() || options.only.iter().any(|id| id.eq_ignore_ascii_case(self.id));
        is_over && is_chosen && (options.is_hostile || !self.is_hostile)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hostile = if self.is_hostile { " (--hostile)" } else { "" };
        write!(f, "{} {:6} {}, {}{hostile}", self.id, self.level.name(), self.title, self.section)
    }
}

/// Why a requirement is not met, or not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    Failed {
        expected: String,
        received: String,
    },
    /// The server does not offer the feature.
    Absent(String),
    NotJudged(String),
}

/// The result of a check.
pub(super) type Finding = Result<(), Unmet>;

impl Unmet {
    pub(super) fn failed(expected: impl Into<String>, received: impl Into<String>) -> Self {
        Self::Failed { expected: expected.into(), received: received.into() }
    }

    pub(super) fn absent(reason: impl Into<String>) -> Self {
        Self::Absent(reason.into())
    }

    pub(super) fn not_judged(reason: impl Into<String>) -> Self {
        Self::NotJudged(reason.into())
    }
}

impl From<NoResponse> for Unmet {
    fn from(reason: NoResponse) -> Self {
        Self::not_judged(reason.to_string())
    }
}

/// Passes if `is_met`.
pub(super) fn expect(is_met: bool, expected: impl Into<String>, received: impl Into<String>) -> Finding {
    if is_met { Ok(()) } else { Err(Unmet::failed(expected, received)) }
}
