//! The log on standard error: its level, which a reload changes, and its format.

use std::fmt::Write as _;
use std::io;
use std::sync::OnceLock;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The level, unless a flag has set it for good.
static LEVEL: OnceLock<Handle<LevelFilter, Registry>> = OnceLock::new();

/// `[log]`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// Minimum log level, where `--log-level` is absent [default: info].
    pub level: Option<LogLevel>,
}

/// A minimum level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    const fn filter(self) -> LevelFilter {
        use LevelFilter as Filter;
        [Filter::OFF, Filter::ERROR, Filter::WARN, Filter::INFO, Filter::DEBUG, Filter::TRACE][self as usize]
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Starts the log, with the `level` of a flag, or else with the one that [`follow`] sets later.
pub(crate) fn start(level: Option<LogLevel>, format: LogFormat) {
    let (filter, handle) = reload::Layer::new(level.unwrap_or(LogLevel::Info).filter());
    if level.is_none() {
        // It is started once.
        let _ = LEVEL.set(handle);
    }
    let records = tracing_subscriber::fmt::layer().with_writer(|| OneLine).with_ansi(false);
    let filtered = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Text => filtered.with(records).init(),
        LogFormat::Json => filtered.with(records.json()).init(),
    }
}

/// Takes the level of a configuration, unless a flag has set it.
pub(crate) fn follow(section: &LogSection) {
    if let Some(level) = LEVEL.get() {
        // The log lives as long as the process.
        let _ = level.reload(section.level.unwrap_or(LogLevel::Info).filter());
    }
}

/// Standard error with one line per event: control characters are escaped.
struct OneLine;

impl io::Write for OneLine {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(escaped(&String::from_utf8_lossy(record)).as_bytes())?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Returns `record` with every control character but the final line feed as a JSON escape.
fn escaped(record: &str) -> String {
    let (body, end) = record.strip_suffix('\n').map_or((record, ""), |body| (body, "\n"));
    let mut text = String::with_capacity(record.len());
    for c in body.chars() {
        if c.is_control() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_event_is_one_line() {
        let record = "user=\"a\r\nb\u{1b}[2J\u{9b}\0\" \u{e9}\n";
        assert_eq!(escaped(record), "user=\"a\\u000d\\u000ab\\u001b[2J\\u009b\\u0000\" \u{e9}\n");
    }
}
