//! `report.json` of a bench on this machine, read for the page.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tt_status::REPORT_FORMAT;

/// A report has some hundred kilobytes.
const BYTES_MAX: u64 = 16 << 20;

/// The command that writes a report.
const COMMAND: &str = "truetick bench ring";

/// Reads the report at `path`.
///
/// # Errors
/// It cannot be read, is too large, or is no report of this version; the error names it.
pub(crate) fn read(path: &Path) -> Result<Arc<str>> {
    let name = path.display();
    let file = fs::File::open(path).with_context(|| format!("cannot read the report {name}"))?;
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text).with_context(|| format!("cannot read the report {name}"))?;
    ensure!(text.len() as u64 <= BYTES_MAX, "the report {name} has more than {BYTES_MAX} bytes");
    let report: Value = serde_json::from_str(&text).with_context(|| format!("the report {name} is not JSON"))?;
    match report.get("truetick_report").and_then(Value::as_u64) {
        Some(REPORT_FORMAT) => Ok(text.into()),
        Some(format) => bail!("the report {name} has format {format}, not {REPORT_FORMAT}: run `{COMMAND}` again"),
        None => bail!("{name} is no report of `{COMMAND}`"),
    }
}

/// Reads the newest report in the folders of `results`, which are named after their dates, and skips unreadable ones.
#[cfg(all(feature = "market", feature = "risk", feature = "turn"))]
pub(crate) fn newest(results: &Path, file: &str) -> Option<Arc<str>> {
    let folders = fs::read_dir(results).ok()?.filter_map(Result::ok).map(|entry| entry.path().join(file));
    let mut paths: Vec<std::path::PathBuf> = folders.filter(|path| path.is_file()).collect();
    paths.sort_unstable();
    paths.iter().rev().find_map(|path| read(path).ok())
}

#[cfg(test)]
mod tests {
    use super::{REPORT_FORMAT, newest, read};

    #[test]
    fn the_newest_report_that_can_be_read_is_taken() {
        let results = tempfile::tempdir().unwrap();
        let write = |folder: &str, text: &str| {
            std::fs::create_dir(results.path().join(folder)).unwrap();
            std::fs::write(results.path().join(folder).join("report.json"), text).unwrap();
        };
        assert!(newest(results.path(), "report.json").is_none());
        write("2026-01-01T00-00-00Z", &format!("{{\"truetick_report\":{REPORT_FORMAT}}}"));
        write("2026-01-02T00-00-00Z", &format!("{{\"truetick_report\":{REPORT_FORMAT},\"newer\":true}}"));
        write("2026-01-03T00-00-00Z", &format!("{{\"truetick_report\":{REPORT_FORMAT}"));
        let found = newest(results.path(), "report.json").unwrap();
        assert!(found.contains("newer"));
    }

    #[test]
    fn what_is_no_report_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let refusal = |text: &str| {
            std::fs::write(&path, text).unwrap();
            format!("{:#}", read(&path).unwrap_err())
        };
        assert!(refusal("[]").contains("is no report"));
        assert!(refusal("{\"truetick_report\":99}").contains("format 99"));
        assert!(refusal("{").contains("is not JSON"));
        std::fs::remove_file(&path).unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("report.json"));
    }
}
