//! The configuration file: TOML with a section for each engine and one for HTTP.
//!
//! A key that no section knows is an error, so that a slip of the pen never silently leaves a default in force.
//! Relative paths are relative to the working directory. Flags of a subcommand win over the file.

mod http;
mod market;
mod risk;
mod turn;

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

pub use http::HttpSection;
pub use market::MarketSection;
pub use risk::RiskSection;
pub use turn::{PasswordAlgorithms, PortRange, TurnSection};

/// Everything a configuration file can say; what it leaves out keeps its default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[turn]`
    pub turn: TurnSection,
    /// `[market]`
    pub market: MarketSection,
    /// `[risk]`
    pub risk: RiskSection,
    /// `[http]`
    pub http: HttpSection,
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or [`Config::parse`] refuses it; the error names the file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).map_err(|error| anyhow::anyhow!("{}, {error}", path.display()))
    }

    /// Reads `text`.
    ///
    /// # Errors
    /// Not TOML, an unknown key, or a value of the wrong kind; the error names the line and the key.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).map_err(|error| match error.span() {
            Some(span) => anyhow::anyhow!("line {}: {}", line_at(text, span.start), error.message()),
            None => anyhow::anyhow!("{}", error.message()),
        })
    }
}

/// Line number, from 1, of the byte at `offset`.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
