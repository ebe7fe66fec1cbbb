//! Tables of BENCHMARKING.md, generated from the kept files under `bench/results`.
//!
//! A table of a document is between two comments; the first names the table and its file:
//!
//! ```text
//! <!-- BEGIN: floor bench/results/amd-epyc-2vcpu/floor-2026-11-22.json -->
//! <!-- END -->
//! ```

mod decomposition;
mod floor;
mod gate_rows;
pub mod market_rivals;
mod market_rows;
mod ring;
pub mod ring_rivals;
mod rows;
pub mod turn_rivals;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::report::environment::FORCED;
use crate::report::{Bootstrap, Look, Runs, TextTable};

const BEGIN: &str = "<!-- BEGIN: ";
const END: &str = "<!-- END -->";

/// Beginnings of the marks of a table that `cargo xtask tidy --accept` writes by the history, which is not read here.
const MARKS: [&str; 2] = ["Stale since ", "Kept nevertheless: "];

/// How intervals of the rivals' tables are made.
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 10_000, seed: 8_656 };

/// Returns `document` with every table generated from the files under `root`.
///
/// # Errors
/// A table has no end or is unknown, or its file cannot be read.
pub fn generate(document: &str, root: &Path) -> anyhow::Result<String> {
    let mut generated = String::new();
    let mut rest = document;
    while let Some(at) = rest.find(BEGIN) {
        let head = at + rest[at..].find('\n').context("a BEGIN comment is not a line")? + 1;
        let end = head + rest[head..].find(END).with_context(|| format!("no END after {}", rest[at..head].trim()))?;
        let (name, file) = of_comment(rest[at..head].trim())?;
        generated += &rest[..head];
        let marks: Vec<&str> =
            rest[head..end].lines().filter(|line| MARKS.iter().any(|mark| line.starts_with(mark))).collect();
        generated += &table(name, file, root, &marks).with_context(|| format!("table {name} of {file}"))?;
        rest = &rest[end..];
    }
    Ok(generated + rest)
}

/// Returns the files that the tables of `document` are generated from.
///
/// # Errors
/// A comment names no table or no file.
pub fn files(document: &str) -> anyhow::Result<Vec<&str>> {
    let comments = document.lines().filter(|line| line.starts_with(BEGIN));
    comments.map(|comment| of_comment(comment).map(|(_, file)| file)).collect()
}

/// Table and file of a BEGIN comment.
fn of_comment(comment: &str) -> anyhow::Result<(&str, &str)> {
    let words = comment.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->"));
    let words = words.and_then(|words| words.split_once(' '));
    words.with_context(|| format!("not `{BEGIN}TABLE FILE -->`: {comment}"))
}

fn table(name: &str, file: &str, root: &Path, marks: &[&str]) -> anyhow::Result<String> {
    let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
    let json = || serde_json::from_str::<Value>(&text).context("not JSON");
    let runs = || Runs::parse(&text);
    let mut lines = match name {
        "rows" => rows::lines(&runs()?)?,
        "market-rows" => market_rows::lines(&json()?)?,
        "gate-rows" => gate_rows::lines(&json()?)?,
        "floor" => floor::lines(&json()?)?,
        "decomposition" => decomposition::lines(&json()?)?,
        "ring-latency" => ring::latency(&json()?)?,
        "ring-layouts" => ring::layouts(&json()?)?,
        "turn-rivals" => turn_rivals::lines(&runs()?)?,
        "one-socket" => turn_rivals::one_socket(&runs()?)?,
        "shared-sockets" => turn_rivals::shared_sockets(&runs()?)?,
        "veth" => turn_rivals::veth::lines(&runs()?)?,
        "veth-programs" => turn_rivals::veth::programs(&runs()?)?,
        "ring-rivals" => ring_rivals::latency(&runs()?)?,
        "ring-rivals-flow" => ring_rivals::flow(&runs()?)?,
        "market-rivals" => market_rivals::lines(&runs()?)?,
        _ => bail!("no table has this name"),
    };
    ensure!(!lines.table.is_empty(), "the file has no row for it");
    marks.iter().for_each(|mark| lines.origin += &format!("\n{mark}"));
    Ok(lines.markdown())
}

/// A table with the lines above it that say where the figures are from.
#[derive(Debug)]
struct Lines {
    origin: String,
    /// Columns of text before the columns of numbers.
    texts: usize,
    table: TextTable,
}

impl Lines {
    fn new(origin: String, texts: usize, headings: &[&str]) -> Self {
        Self { origin, texts, table: TextTable::new(headings) }
    }

    fn push(&mut self, cells: Vec<String>) {
        self.table.push(cells);
    }

    fn markdown(&self) -> String {
        format!("\n{}\n\n{}\n", self.origin, self.table.render(Look::Markdown, self.texts))
    }
}

/// Machine, compiler, commit and date of a result with an environment.
fn origin(environment: &Value) -> anyhow::Result<String> {
    let text = |pointer: &str| environment.pointer(pointer).and_then(Value::as_str).context("no environment");
    let dirty = environment.pointer("/build/dirty").and_then(Value::as_bool).context("no environment")?;
    let forced = environment["forced"].as_str().map_or_else(String::new, |reason| format!("\n{FORCED}: {reason}."));
    Ok(format!(
        "{}, {} CPUs, Linux {}, {}, commit {}{}, {}.{forced}",
        text("/machine/cpu")?,
        environment.pointer("/machine/cores").and_then(Value::as_u64).context("no environment")?,
        text("/machine/kernel")?,
        compiler(text("/build/rustc")?),
        text("/build/commit")?,
        if dirty { " with uncommitted changes" } else { "" },
        day(text("/date")?),
    ))
}

/// Machine, compiler, commit and date of a file of runs.
fn origin_of_runs(runs: &Runs) -> anyhow::Result<String> {
    let note = |start: &str| runs.notes.iter().find_map(|note| note.strip_prefix(start));
    let machine = note("machine: ").context("no note of the machine")?;
    let machine = [", clock", ", load"].iter().fold(machine, |text, end| text.split(end).next().unwrap_or(text));
    let rustc = runs.notes.iter().find(|note| note.starts_with("rustc ")).context("no note of the compiler")?;
    let mut commits: Vec<&str> = runs.runs.iter().filter_map(|run| run.get("commit")).map(String::as_str).collect();
    commits.dedup();
    commits.sort_unstable();
    commits.dedup();
    let date = runs.runs.first().and_then(|run| run.get("date")).context("no run")?;
    let machine = machine.replace("kernel ", "Linux ").replace(" 1 CPUs", " 1 CPU").replace("(R)", "");
    let forced = runs.notes.iter().find(|note| note.starts_with(FORCED));
    let forced = forced.map_or_else(String::new, |note| format!("\n{note}."));
    Ok(format!("{machine}, {}, commit {}, {}.{forced}", compiler(rustc), commits.join(" and "), day(date)))
}

/// `rustc 1.95.0` of `rustc 1.95.0 (59807616e 2026-04-14), ...`.
fn compiler(version: &str) -> String {
    version.split([' ', ',']).take(2).collect::<Vec<_>>().join(" ")
}

/// The date without its time.
fn day(date: &str) -> &str {
    date.split('T').next().unwrap_or(date)
}

/// Formats `value` with three significant digits, or as a whole number.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `1234.4` as `1,234`.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{files, generate, number};
    use std::path::Path;

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown = [0.894, 12.94, 155.06, 1_449.3, 13_593.1, 1_234_567.0].map(number);
        assert_eq!(shown, ["0.89", "12.9", "155", "1,449", "13,593", "1,234,567"]);
    }

    #[test]
    fn a_document_without_tables_stays_as_it_is() {
        assert_eq!(generate("# A\n\ntext\n", Path::new("/")).unwrap(), "# A\n\ntext\n");
    }

    #[test]
    fn a_table_without_end_name_or_file_is_an_error() {
        let error = |text: &str| format!("{:#}", generate(text, Path::new("/absent")).unwrap_err());
        assert!(error("<!-- BEGIN: floor a.json -->\n| a |\n").contains("no END"));
        assert!(error("<!-- BEGIN: floor -->\n<!-- END -->\n").contains("not `"));
        assert!(error("<!-- BEGIN: floor a.json -->\n<!-- END -->\n").contains("cannot read a.json"));
    }

    #[test]
    fn marks_stay_below_the_head_of_their_table() {
        let root = std::env::temp_dir().join(format!("tables-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let csv = "name,unit,mean,ci95_low,ci95_high,cpu,cores,kernel,rustc,commit,dirty,date,instructions,published\nx,ns,1,1,1,A,2,6,rustc 1,a,false,2026,1,1\n";
        std::fs::write(root.join("a.csv"), csv).unwrap();
        let plain = generate("<!-- BEGIN: rows a.csv -->\n<!-- END -->\n", &root).unwrap();
        let marked = plain.replace("2026.\n", "2026.\nStale since b, a.\nKept nevertheless: a.\n");
        let generated = generate(&marked, &root);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(plain.contains("2026.\n\n| row") && marked != plain, "{plain}");
        assert_eq!(generated.unwrap(), marked);
    }

    #[test]
    fn files_are_those_of_the_comments() {
        assert_eq!(files("a\n<!-- BEGIN: floor a.json -->\n<!-- END -->\n").unwrap(), ["a.json"]);
    }
}
