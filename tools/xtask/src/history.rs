//! The git history, for results that are older than the code that they are about.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const NO_PATHS: &[&str] = &[];

/// Beginning of the mark of a table whose code has changed since.
pub(crate) const STALE: &str = "Stale since ";

/// Returns the mark of a result that is stale since the commit `since`.
pub(crate) fn stale_mark(since: &str) -> String {
    format!("{STALE}{since}, the last commit with the code that it measures.")
}

/// The history of a clone that has all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History<'a> {
    root: &'a Path,
}

impl<'a> History<'a> {
    /// Opens the history of the work tree at `root`.
    ///
    /// # Errors
    /// Why there is none: no git, or a shallow clone.
    pub(crate) fn open(root: &'a Path) -> Result<Self, &'static str> {
        let history = Self { root };
        match history.line(&["rev-parse", "--is-shallow-repository"]).as_deref() {
            Some("false") => Ok(history),
            Some(_) => Err("the clone is shallow"),
            None => Err("no git history"),
        }
    }

    /// Whether `commit` is an ancestor of HEAD, or HEAD.
    pub(crate) fn contains(&self, commit: &str) -> bool {
        self.git(&["merge-base", "--is-ancestor", commit, "HEAD"], NO_PATHS)
            .is_some_and(|output| output.status.success())
    }

    /// Whether `paths` differ between `commit` and the work tree, files that git does not track yet included.
    pub(crate) fn differs(&self, commit: &str, paths: &[impl AsRef<OsStr>]) -> bool {
        let is_equal =
            self.git(&["diff", "--quiet", commit, "--"], paths).is_some_and(|output| output.status.success());
        let untracked = self.git(&["ls-files", "--others", "--exclude-standard", "--"], paths);
        !is_equal || untracked.is_some_and(|output| !output.stdout.is_empty())
    }

    /// Returns the commits after `commit` that changed `paths`, oldest first.
    pub(crate) fn changes(&self, commit: &str, paths: &[impl AsRef<OsStr>]) -> Vec<String> {
        let range = format!("{commit}..HEAD");
        let output = self.git(&["rev-list", "--reverse", "--topo-order", &range, "--"], paths);
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns twelve digits of the commit that `revision` names.
    pub(crate) fn short(&self, revision: &str) -> Option<String> {
        self.line(&["rev-parse", "--short=12", revision])
    }

    /// How many commits changed `code` after `commit`, and the last commit before the first of them; `None` if the code
    /// is still that of `commit`.
    ///
    /// That last commit is known when the code changes, so the mark and the change are one commit.
    pub(crate) fn stale_since(&self, commit: &str, code: &[impl AsRef<OsStr>]) -> Option<(usize, String)> {
        if !self.differs(commit, code) {
            return None;
        }
        let changes = self.changes(commit, code);
        let last = changes.first().map_or_else(|| "HEAD".to_owned(), |first| format!("{first}^"));
        Some((changes.len(), self.short(&last)?))
    }

    fn line(&self, arguments: &[&str]) -> Option<String> {
        let output = self.git(arguments, NO_PATHS).filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn git(&self, arguments: &[&str], paths: &[impl AsRef<OsStr>]) -> Option<Output> {
        Command::new("git").args(arguments).args(paths).current_dir(self.root).stderr(Stdio::null()).output().ok()
    }
}
