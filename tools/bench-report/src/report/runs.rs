//! A file of runs: one line for each, appended as soon as it is over.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// Lines of notes that begin with `#`, the names of the columns, one line a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Without their `#`.
    pub notes: Vec<String>,
    /// Column and cell of each run.
    pub runs: Vec<HashMap<String, String>>,
}

impl Runs {
    /// Reads `path`; an absent file holds no runs.
    ///
    /// # Errors
    /// The file cannot be read, or a line has not as many cells as there are columns.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads the text of a file of runs.
    ///
    /// # Errors
    /// A line has not as many cells as there are columns.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut read = Self::default();
        let mut columns: Vec<&str> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if let Some(note) = line.strip_prefix("# ") {
                read.notes.push(note.to_owned());
            } else if columns.is_empty() {
                columns = line.split(',').collect();
            } else {
                let cells: Vec<&str> = line.split(',').collect();
                ensure!(cells.len() == columns.len(), "line {}: not a run", number + 1);
                read.runs.push(columns.iter().zip(cells).map(|(key, cell)| ((*key).into(), cell.into())).collect());
            }
        }
        Ok(read)
    }

    /// One more than the greatest round in the file.
    #[must_use]
    pub fn next_round(&self) -> u64 {
        let rounds = self.runs.iter().filter_map(|run| run.get("round")?.parse::<u64>().ok());
        rounds.max().map_or(0, |last| last + 1)
    }

    /// Appends notes, then runs with a cell for each of `columns`, to `path`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(path: &Path, notes: &[String], columns: &[&str], runs: &[Vec<String>]) -> anyhow::Result<()> {
        let is_new = !path.exists();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut text: String = notes.iter().map(|note| format!("# {note}\n")).collect();
        if is_new {
            text += &format!("{}\n", columns.join(","));
        }
        for run in runs {
            let cells: Vec<String> = run.iter().map(|cell| cell.replace([',', '\n'], ";")).collect();
            text += &format!("{}\n", cells.join(","));
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::Runs;

    #[test]
    fn what_was_appended_is_read() {
        let path = std::env::temp_dir().join(format!("rounds-{}.csv", std::process::id()));
        let run = |round: &str| vec![round.to_owned(), "a,b".to_owned()];
        Runs::append(&path, &["one".into()], &["round", "row"], &[run("0")]).expect("the folder can be written");
        Runs::append(&path, &["two".into()], &["round", "row"], &[run("4")]).expect("the folder can be written");
        let read = Runs::read(&path).expect("it was written");
        std::fs::remove_file(&path).expect("it was written");
        assert_eq!(read.notes, ["one", "two"]);
        assert_eq!((read.runs.len(), read.next_round(), read.runs[1]["row"].as_str()), (2, 5, "a;b"));
        assert!(Runs::parse("a,b\n1\n").is_err());
    }
}
