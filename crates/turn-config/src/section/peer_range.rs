//! A range of peers in flags and files.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tt_turn::policy;

/// Peers, written as `ADDR`, `CIDR` or `ADDR-ADDR`, with `:PORT` or `:LOW-HIGH` for single ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PeerRange(policy::PeerRange);

impl PeerRange {
    /// Returns the range as the engine knows it.
    #[must_use]
    pub const fn engine(self) -> policy::PeerRange {
        self.0
    }
}

impl From<IpAddr> for PeerRange {
    fn from(ip: IpAddr) -> Self {
        Self(ip.into())
    }
}

impl fmt::Display for PeerRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for PeerRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|error| format!("`{text}`: {error}"))
    }
}

impl From<PeerRange> for String {
    fn from(range: PeerRange) -> Self {
        range.to_string()
    }
}

impl TryFrom<String> for PeerRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
