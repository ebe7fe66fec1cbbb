use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::*;

const DOCUMENT: &str = "# A

<!-- BEGIN: rows bench/results/m/a.csv -->

A machine, 2026-11-21.

| a |

<!-- END -->
";

/// A repository in a new folder, which is removed when it is dropped.
struct Repository(PathBuf);

impl Repository {
    /// A tree with code, a list and a document; the result is of its first commit.
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("kept-results-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let repository = Self(root);
        repository.write("code/src/lib.rs", "one\n");
        repository.git(&["init", "--quiet"]);
        let commit = repository.commit();
        repository.write("bench/results/m/a.csv", &format!("name,commit,dirty\nx,{commit},false\n"));
        repository.write("bench/results/kept.toml", "[[kept]]\nfile = \"m/a.csv\"\ncode = [\"code/src\"]\n");
        repository.write("A.md", DOCUMENT);
        repository
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits everything and returns the commit.
    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "a"]);
        self.git(&["rev-parse", "--short=12", "HEAD"])
    }

    fn violations(&self) -> Vec<(String, usize, String)> {
        let tree = Tree::read(&self.0).unwrap();
        let found = check(&self.0, &tree).expect("the history is complete");
        found.into_iter().map(|violation| (violation.path, violation.line, violation.message)).collect()
    }

    #[track_caller]
    fn assert_violates(&self, path: &str, message: &str) {
        let found = self.violations();
        assert!(found.iter().any(|(place, _, text)| place == path && text.contains(message)), "{found:?}");
    }

    fn accept(&self) {
        accept(&self.0, &Tree::read(&self.0).unwrap()).unwrap();
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_result_of_the_present_code_has_no_mark() {
    let repository = Repository::new("present");
    assert_eq!(repository.violations(), []);
    repository.write("other/lib.rs", "two\n");
    repository.commit();
    repository.accept();
    assert_eq!((repository.violations(), repository.read("A.md")), (vec![], DOCUMENT.to_owned()));
}

#[test]
fn a_change_of_the_code_needs_a_mark_in_the_same_commit() {
    let repository = Repository::new("stale");
    let last = repository.commit();
    repository.write("code/src/lib.rs", "two\n");
    let wrong = [("A.md".to_owned(), 3)];
    let places = || repository.violations().into_iter().map(|(path, line, _)| (path, line)).collect::<Vec<_>>();
    assert_eq!(places(), wrong);
    repository.accept();
    let mark =
        format!("A machine, 2026-11-21.\nStale since {last}, the last commit with the code that it measures.\n\n");
    assert_eq!(repository.read("A.md"), DOCUMENT.replace("A machine, 2026-11-21.\n\n", &mark));
    // It stays right when it is committed, and after further changes.
    for text in ["two\n", "three\n"] {
        assert_eq!(repository.violations(), []);
        repository.write("code/src/lib.rs", text);
        repository.commit();
    }
    assert_eq!(repository.violations(), []);
    repository.write("A.md", &repository.read("A.md").replace(&last, "0123456789ab"));
    assert_eq!(places(), wrong);
}

#[test]
fn a_mark_that_is_not_needed_is_a_violation() {
    let repository = Repository::new("unneeded");
    repository.write("A.md", &DOCUMENT.replace("21.\n", "21.\nStale since 0123456789ab, a.\n"));
    repository.assert_violates("A.md", "the marks of the table");
    repository.accept();
    assert_eq!(repository.read("A.md"), DOCUMENT);
}

#[test]
fn a_new_file_of_the_code_counts_before_it_is_tracked() {
    let repository = Repository::new("untracked");
    repository.commit();
    repository.write("code/src/new.rs", "new\n");
    repository.assert_violates("A.md", "the marks of the table");
}

#[test]
fn a_commit_outside_the_history_is_a_violation() {
    let repository = Repository::new("commit");
    repository.write("bench/results/m/a.csv", "name,commit,dirty\nx,0123456789ab,false\n");
    repository.assert_violates("bench/results/m/a.csv", "commit 0123456789ab is not in the history");
    repository.write("bench/results/m/a.csv", "name\nx\n");
    repository.assert_violates("bench/results/m/a.csv", "it names no commit");
}

#[test]
fn a_tree_with_changes_needs_an_exception_that_the_table_shows() {
    let repository = Repository::new("dirty");
    let result = repository.read("bench/results/m/a.csv");
    let list = repository.read("bench/results/kept.toml");
    repository.write("bench/results/m/a.csv", &result.replace("false", "true"));
    repository.assert_violates("bench/results/m/a.csv", "with uncommitted changes");
    repository.write("bench/results/kept.toml", &format!("{list}exception = \"only a comment differed\"\n"));
    repository.accept();
    assert_eq!(repository.violations(), []);
    assert!(repository.read("A.md").contains("21.\nKept nevertheless: only a comment differed.\n\n| a |"));
    repository.write("bench/results/m/a.csv", &result);
    repository.assert_violates("bench/results/m/a.csv", "its exception is not needed");
}

#[test]
fn files_and_code_are_listed_as_they_are() {
    let repository = Repository::new("list");
    repository.write("bench/results/m/b.csv", "name\n");
    repository.assert_violates("bench/results/m/b.csv", "does not list it");
    let list = "[[kept]]\nfile = \"m/c.csv\"\ncode = [\"code/src\"]\n[[kept]]\nfile = \"m/a.csv\"\ncode = [\"cod\"]\n";
    repository.write("bench/results/kept.toml", list);
    repository.assert_violates("bench/results/m/c.csv", "does not exist");
    repository.assert_violates("bench/results/m/a.csv", "its code cod does not exist");
    repository.write("A.md", &DOCUMENT.replace("a.csv", "d.csv"));
    repository.assert_violates("A.md", "bench/results/m/d.csv is not kept");
}

#[test]
fn a_second_file_of_a_result_has_the_commit_of_the_first() {
    let repository = Repository::new("twin");
    let commit = repository.commit();
    repository.write("bench/results/m/b.csv", "section,name\nclock,x\n");
    let environment = format!("{{\"environment\": {{\"build\": {{\"commit\": \"{commit}\", \"dirty\": false}}}}}}");
    repository.write("bench/results/m/b.json", &environment);
    let list = repository.read("bench/results/kept.toml");
    let more = ["csv", "json"].map(|end| format!("[[kept]]\nfile = \"m/b.{end}\"\ncode = [\"code/src\"]\n")).concat();
    repository.write("bench/results/kept.toml", &(list + &more));
    assert_eq!(repository.violations(), []);
}

#[test]
fn a_shallow_clone_is_skipped() {
    let repository = Repository::new("shallow");
    repository.commit();
    let clone = Repository(repository.0.with_extension("clone"));
    let _ = fs::remove_dir_all(&clone.0);
    let [from, to] = [format!("file://{}", repository.0.display()), clone.0.display().to_string()];
    repository.git(&["clone", "--quiet", "--depth", "1", &from, &to]);
    let tree = Tree::read(&clone.0).unwrap();
    assert_eq!(check(&clone.0, &tree), Err("the clone is shallow"));
}
