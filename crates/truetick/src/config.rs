//! The configuration file: TOML with a section for each engine and one for HTTP.
//!
//! An unknown key is an error. Relative paths are relative to the working directory. Flags of a subcommand override the
//! file.

mod source;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
#[cfg(any(feature = "market", feature = "risk", feature = "turn"))]
use control::HttpSection;
#[cfg(feature = "market")]
use market_feed::config::MarketSection;
#[cfg(feature = "risk")]
use risk_gate::config::RiskSection;
use serde::{Deserialize, Serialize};
use tt_os::regular_file::{self, Contents};
#[cfg(feature = "turn")]
use turn_server::TurnSection;

use crate::logs::LogSection;
use source::Source;

/// The content of a configuration file; absent keys have their default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[turn]`
    #[cfg(feature = "turn")]
    pub turn: TurnSection,
    /// `[market]`
    #[cfg(feature = "market")]
    pub market: MarketSection,
    /// `[risk]`
    #[cfg(feature = "risk")]
    pub risk: RiskSection,
    /// `[http]`
    #[cfg(any(feature = "market", feature = "risk", feature = "turn"))]
    pub http: HttpSection,
    /// `[log]`
    pub log: LogSection,
    /// The file that it was read from.
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl Config {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or [`Config::parse`] fails; the error names the file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = regular_file::read(path).and_then(Contents::text);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Self::of(Source::new(Some(path), &text), &text)
    }

    /// Reads `text`.
    ///
    /// # Errors
    /// Not TOML, an unknown key, or a value of the wrong kind; the error names the line and the key.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        Self::of(Source::new(None, text), text)
    }

    fn of(source: Source, text: &str) -> anyhow::Result<Self> {
        let mut config: Self = toml::from_str(text).map_err(|error| match error.span() {
            Some(span) => {
                let message = error.message();
                let key = source.key_at(span.start).filter(|_| !message.starts_with("unknown field"));
                let key = key.map_or_else(String::new, |key| format!("{key}: "));
                anyhow::anyhow!("{}: {key}{message}", source.at(span.start))
            }
            None => anyhow::anyhow!("{}", error.message()),
        })?;
        #[cfg(feature = "turn")]
        for (key, index, place) in source.places("turn") {
            config.turn.key_sources.set_place(&key, index, place);
        }
        config.path = source.path();
        Ok(config)
    }

    /// Returns the file that it was read from.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// The configuration as TOML that [`Config::parse`] reads.
    ///
    /// # Errors
    /// A value that TOML cannot say, such as a path that is not text.
    pub fn to_toml(&self) -> anyhow::Result<String> {
        toml::to_string(self).context("the configuration cannot be written as TOML")
    }
}

#[cfg(test)]
mod tests;
