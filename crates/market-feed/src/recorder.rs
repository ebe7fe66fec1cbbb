//! The file that feeds are recorded to.

use anyhow::Context as _;
use tt_journal::{Failure, Recorder, RecorderConfig, Reopened};
use tt_model::Nanos;

use super::settings::RecordingConfig;

/// Makes the file, or goes on with it, and starts the thread that writes.
///
/// # Errors
/// The file cannot be made, is there already, or is no recording.
pub(super) fn open(recording: &RecordingConfig, now: Nanos) -> anyhow::Result<(Recorder, Option<Reopened>)> {
    let path = &recording.path;
    let (file, reopened) = if recording.append && path.exists() {
        let (file, reopened) = tt_journal::reopen(path, now.0).with_context(|| path.display().to_string())?;
        (file, Some(reopened))
    } else {
        let file = tt_journal::create(path, now.0).with_context(|| path.display().to_string())?;
        (file, None)
    };
    let config =
        RecorderConfig { sync_every: recording.sync_every, packed: recording.packed, ..RecorderConfig::default() };
    let shown = path.display().to_string();
    let report = move |failure: &Failure| {
        tracing::error!(path = shown, reason = failure.reason, "recording stopped; the market engine goes on");
    };
    Ok((Recorder::start(file, config, report).context("cannot start the recorder's thread")?, reopened))
}
