//! `/api/v1/machine/report`: the kept result of a bench on this machine, from which the page draws its figures.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tt_report::REPORT_FORMAT;

use super::App;
use super::answer::json_of;

/// A report has some hundred kilobytes.
const BYTES_MAX: u64 = 16 << 20;

/// What makes a report, for whoever has none.
const COMMAND: &str = "truetick bench ring";

/// A `report.json` that was read and looks like one.
#[derive(Clone, Debug)]
pub struct KeptReport {
    text: Arc<str>,
    path: PathBuf,
}

impl KeptReport {
    /// Reads `path`.
    ///
    /// # Errors
    /// It cannot be read, is too large, or is no report of this version; the text names it.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = fs::File::open(path).with_context(|| format!("cannot read the report {shown}"))?;
        let mut text = String::new();
        file.take(BYTES_MAX + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("cannot read the report {shown}"))?;
        ensure!(text.len() as u64 <= BYTES_MAX, "the report {shown} has more than {BYTES_MAX} bytes");
        let report: Value = serde_json::from_str(&text).with_context(|| format!("the report {shown} is not JSON"))?;
        match report.get("truetick_report").and_then(Value::as_u64) {
            Some(REPORT_FORMAT) => Ok(Self { text: text.into(), path: path.to_owned() }),
            Some(format) => bail!("the report {shown} has format {format}, not {REPORT_FORMAT}: run `{COMMAND}` again"),
            None => bail!("{shown} is no report of `{COMMAND}`"),
        }
    }

    /// The newest report in the folders of `results`, each named after its date; `None` where there is none that can be
    /// read.
    #[must_use]
    pub fn newest(results: &Path, file: &str) -> Option<Self> {
        let folders = fs::read_dir(results).ok()?.filter_map(Result::ok).map(|entry| entry.path().join(file));
        let mut paths: Vec<PathBuf> = folders.filter(|path| path.is_file()).collect();
        paths.sort_unstable();
        paths.iter().rev().find_map(|path| Self::read(path).ok())
    }

    /// Where it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The report as it was kept. Without one, what makes one: it is no error, so that a page may ask.
pub(super) async fn report(app: App) -> Response {
    match &app.state.report {
        Some(kept) => ([(CONTENT_TYPE, "application/json")], kept.text.to_string()).into_response(),
        None => json_of(&serde_json::json!({ "absent": "report", "command": COMMAND })),
    }
}

#[cfg(test)]
mod tests {
    use super::KeptReport;

    #[test]
    fn the_newest_report_that_can_be_read_is_taken() {
        let results = tempfile::tempdir().unwrap();
        let write = |folder: &str, text: &str| {
            std::fs::create_dir(results.path().join(folder)).unwrap();
            std::fs::write(results.path().join(folder).join("report.json"), text).unwrap();
        };
        assert!(KeptReport::newest(results.path(), "report.json").is_none());
        write("2026-01-01T00-00-00Z", "{\"truetick_report\":1}");
        write("2026-01-02T00-00-00Z", "{\"truetick_report\":1,\"newer\":true}");
        write("2026-01-03T00-00-00Z", "{\"truetick_report\":1");
        let newest = KeptReport::newest(results.path(), "report.json").unwrap();
        assert!(newest.path().ends_with("2026-01-02T00-00-00Z/report.json"));
        assert!(newest.text.contains("newer"));
    }

    #[test]
    fn what_is_no_report_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let refusal = |text: &str| {
            std::fs::write(&path, text).unwrap();
            format!("{:#}", KeptReport::read(&path).unwrap_err())
        };
        assert!(refusal("[]").contains("is no report"));
        assert!(refusal("{\"truetick_report\":99}").contains("format 99"));
        assert!(refusal("{").contains("is not JSON"));
        std::fs::remove_file(&path).unwrap();
        assert!(format!("{:#}", KeptReport::read(&path).unwrap_err()).contains("report.json"));
    }
}
