//! `report.json` of a bench on this machine, read for the page.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tt_model::sort_short_by;
use tt_status::{REPORT_FILE, REPORT_FORMAT, WHY_FILE, WHY_FORMAT};

/// A report has some hundred kilobytes.
const BYTES_MAX: u64 = 16 << 20;

/// What a command keeps of a run.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in the folder of the run.
    file: &'static str,
    /// The key that has the format.
    key: &'static str,
    format: u64,
    /// The command that writes it.
    pub(crate) command: &'static str,
}

/// The figures of `truetick bench ring`.
pub const FIGURES: Kind =
    Kind { file: REPORT_FILE, key: "truetick_report", format: REPORT_FORMAT, command: "truetick bench ring" };
/// The answer of `truetick why`.
pub const ANSWER: Kind = Kind { file: WHY_FILE, key: "truetick_why", format: WHY_FORMAT, command: "truetick why" };

/// Reads the report of `kind` at `path`.
///
/// # Errors
/// It cannot be read, is too large, or is no report of this version; the error names it.
pub fn read(kind: Kind, path: &Path) -> Result<Arc<str>> {
    let name = path.display();
    let file = fs::File::open(path).with_context(|| format!("cannot read the report {name}"))?;
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text).with_context(|| format!("cannot read the report {name}"))?;
    ensure!(text.len() as u64 <= BYTES_MAX, "the report {name} has more than {BYTES_MAX} bytes");
    let report: Value = serde_json::from_str(&text).with_context(|| format!("the report {name} is not JSON"))?;
    let Kind { key, format, command, .. } = kind;
    match report.get(key).and_then(Value::as_u64) {
        Some(found) if found == format => Ok(text.into()),
        Some(found) => bail!("the report {name} has format {found}, not {format}: run `{command}` again"),
        None => bail!("{name} is no report of `{command}`"),
    }
}

/// Reads the newest report of `kind` in the folders of `results`, which are named after their dates, and skips unreadable
/// ones.
#[must_use]
pub fn newest(kind: Kind, results: &Path) -> Option<Arc<str>> {
    let folders = fs::read_dir(results).ok()?.filter_map(Result::ok).map(|entry| entry.path().join(kind.file));
    let mut paths: Vec<std::path::PathBuf> = folders.filter(|path| path.is_file()).collect();
    sort_short_by(&mut paths, Ord::cmp);
    paths.iter().rev().find_map(|path| read(kind, path).ok())
}

#[cfg(test)]
mod tests {
    use super::{ANSWER, FIGURES, REPORT_FORMAT, newest, read};

    #[test]
    fn the_newest_report_that_can_be_read_is_taken() {
        let results = tempfile::tempdir().unwrap();
        let write = |folder: &str, text: &str| {
            std::fs::create_dir(results.path().join(folder)).unwrap();
            std::fs::write(results.path().join(folder).join("report.json"), text).unwrap();
        };
        assert!(newest(FIGURES, results.path()).is_none());
        write("2026-01-01T00-00-00Z", &format!("{{\"truetick_report\":{REPORT_FORMAT}}}"));
        write("2026-01-02T00-00-00Z", &format!("{{\"truetick_report\":{REPORT_FORMAT},\"newer\":true}}"));
        write("2026-01-03T00-00-00Z", &format!("{{\"truetick_report\":{REPORT_FORMAT}"));
        let found = newest(FIGURES, results.path()).unwrap();
        assert!(found.contains("newer"));
        assert!(newest(ANSWER, results.path()).is_none(), "another command's");
    }

    #[test]
    fn what_is_no_report_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let refusal = |text: &str| {
            std::fs::write(&path, text).unwrap();
            format!("{:#}", read(FIGURES, &path).unwrap_err())
        };
        assert!(refusal("[]").contains("is no report"));
        assert!(refusal("{\"truetick_report\":99}").contains("format 99"));
        assert!(refusal("{").contains("is not JSON"));
        std::fs::remove_file(&path).unwrap();
        assert!(format!("{:#}", read(FIGURES, &path).unwrap_err()).contains("report.json"));
    }
}
