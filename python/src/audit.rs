//! Audit of recordings.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Instant;

use market_audit::{Failed, as_json, as_text, examine};
use pyo3::prelude::*;

use crate::RecordingError;
use crate::queue::LOOK_EVERY;
use crate::text;

/// Audits a recording, which may consist of several files: its report as text and as JSON.
#[pyfunction]
pub(crate) fn examine_recording(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    venue: Option<&str>,
) -> PyResult<(String, String)> {
    let venue = venue.map(text::venue).transpose()?;
    // A file that cannot be opened is Python's usual error.
    paths.iter().try_for_each(|path| std::fs::File::open(path).map(drop))?;
    let (trigger, shutdown) = tt_os::shutdown::pair();
    let (sender, mut examined) = sync_channel(1);
    let thread = std::thread::Builder::new().name("truetick-audit".to_owned()).spawn(move || {
        let started = Instant::now();
        let result = examine(&paths, venue, &shutdown).map(|examined| {
            let seconds = started.elapsed().as_secs_f64();
            (as_text(&examined, seconds), as_json(&examined, seconds).to_string())
        });
        // The receiver is gone after Ctrl-C.
        let _ = sender.send(result);
    })?;
    let result = loop {
        // A receiver may move to another thread, but not be shared: it is borrowed mutably.
        let receiver = &mut examined;
        match py.detach(move || receiver.recv_timeout(LOOK_EVERY)) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Err(Failed::Ended),
        }
        if let Err(interrupt) = py.check_signals() {
            trigger.request();
            py.detach(|| drop(thread.join()));
            return Err(interrupt);
        }
    };
    match result {
        Ok(report) => Ok(report),
        Err(Failed::Unreadable(reason)) => Err(RecordingError::new_err(reason)),
        Err(Failed::Ended) => Err(RecordingError::new_err("the audit has ended early")),
    }
}
