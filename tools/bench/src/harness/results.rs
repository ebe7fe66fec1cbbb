//! Files of a result.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tt_status::REPORT_FILE;

use crate::report::Document;

/// Where a result is written.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// Folder of this result. [default: a folder in `results`, named after the date]
    pub out: Option<PathBuf>,
    /// Folder of all results.
    pub results: PathBuf,
    /// File for every sample that was timed by itself.
    pub csv: Option<PathBuf>,
}

impl Destination {
    /// Returns the folder of a result of `date`.
    pub(crate) fn folder(&self, date: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| self.results.join(date.replace(':', "-")))
    }
}

/// Writes `report.json` for the page of a server, and `report.html` for a browser alone.
pub(crate) fn write_document(folder: &Path, document: &Document<'_>) -> anyhow::Result<()> {
    write(&folder.join(REPORT_FILE), &|file| document.write_json(file))?;
    write(&folder.join("report.html"), &|file| document.write_html(file))
}

/// Creates `path` and its folder, and fills the file.
pub(crate) fn write(path: &Path, fill: &dyn Fn(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), fs::create_dir_all);
    let written = made.and_then(|()| {
        let mut file = BufWriter::new(File::create(path)?);
        fill(&mut file)?;
        file.flush()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}
