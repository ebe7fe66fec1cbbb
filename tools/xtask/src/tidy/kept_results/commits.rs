//! The commits that a kept file names.

use serde_json::Value;

use crate::tree::File;

/// A commit of a kept file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) hash: String,
    /// The sources differed from it.
    pub(super) is_dirty: bool,
}

/// Returns the commits of `file` in its order, each once: of a JSON's environment, or of a CSV's column `commit`, where
/// a `+` or the column `dirty` says that the sources differed.
pub(super) fn commits(file: &File) -> Vec<Commit> {
    if file.path.ends_with(".json") {
        let result: Value = serde_json::from_str(&file.text).unwrap_or_default();
        let build = &result["environment"]["build"];
        let is_dirty = build["dirty"] != false;
        let hash = build["commit"].as_str();
        return hash.map(|hash| Commit { hash: hash.to_owned(), is_dirty }).into_iter().collect();
    }
    let mut lines = file.text.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| columns.iter().position(|column| *column == name);
    let Some(of_commit) = column("commit") else { return Vec::new() };
    let of_dirty = column("dirty");
    let mut found = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = cells.get(of_commit).copied().unwrap_or_default();
        let is_dirty = cell.ends_with('+') || of_dirty.is_some_and(|at| cells.get(at) != Some(&"false"));
        let commit = Commit { hash: cell.trim_end_matches('+').to_owned(), is_dirty };
        if !found.contains(&commit) {
            found.push(commit);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<(String, bool)> {
        let found = commits(&File::new(path.to_owned(), text.to_owned()));
        found.into_iter().map(|commit| (commit.hash, commit.is_dirty)).collect()
    }

    #[test]
    fn commits_are_found_in_every_form_of_a_result() {
        let json = r#"{"environment": {"build": {"commit": "aa", "dirty": false}}}"#;
        assert_eq!(of("a.json", json), [("aa".to_owned(), false)]);
        assert_eq!(of("a.json", &json.replace("false", "true")), [("aa".to_owned(), true)]);
        let rows = "name,commit,dirty,steal\nx,aa,false,0\ny,bb,true,0\nz,aa,false,1\n";
        assert_eq!(of("a.csv", rows), [("aa".to_owned(), false), ("bb".to_owned(), true)]);
        let runs = "# run: commit cc\ndate,commit,row\n2026,aa,x\n2026,bb+,x\n";
        assert_eq!(of("a.csv", runs), [("aa".to_owned(), false), ("bb".to_owned(), true)]);
        assert_eq!(of("a.csv", "section,name\nclock,counter\n"), []);
    }
}
