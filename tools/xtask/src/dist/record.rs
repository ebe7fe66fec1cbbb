//! What was made, tested and skipped.

use std::process::Command;

use anyhow::{Context as _, ensure};

use super::shop::{Shop, output};

const FILE: &str = "docs/packages.md";
const BEGIN: &str = "<!-- BEGIN: cargo xtask dist --all -->\n";
const END: &str = "<!-- END -->";

/// One thing that was made or tested.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    Done(String),
    /// With the reason.
    Skipped(String),
    Failed(String),
}

/// The lines of one artefact, printed as they are added.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) lines: Vec<Line>,
}

impl Record {
    pub(super) fn failed(reason: &str) -> Self {
        let mut record = Self::default();
        record.add(Line::Failed(reason.to_owned()));
        record
    }

    pub(super) fn done(&mut self, what: impl Into<String>) {
        self.add(Line::Done(what.into()));
    }

    pub(super) fn skipped(&mut self, reason: impl Into<String>) {
        self.add(Line::Skipped(reason.into()));
    }

    fn add(&mut self, line: Line) {
        match &line {
            Line::Done(text) => println!("  ok       {text}"),
            Line::Skipped(text) => println!("  skipped  {text}"),
            Line::Failed(text) => println!("  FAILED   {text}"),
        }
        self.lines.push(line);
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Failed(_)))
    }
}

/// Writes the log between the marks of docs/packages.md.
pub(super) fn keep(shop: &Shop, log: &[(String, Record)]) -> anyhow::Result<()> {
    let path = shop.root.join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let date = output(Command::new("date").args(["-u", "+%F"]))?;
    let rustc = output(Command::new("rustc").arg("--version"))?;
    let log = table(&format!("{date}, commit {}, {rustc}", crate::sim::commit(&shop.root)), log);
    std::fs::write(&path, replaced(&text, &log)?).with_context(|| path.display().to_string())?;
    println!("the log is in {FILE}");
    Ok(())
}

fn table(of: &str, log: &[(String, Record)]) -> String {
    let mut text = format!("Kept run: {of}.\n");
    for (name, record) in log {
        text += &format!("\n- `{name}`\n");
        for line in &record.lines {
            let line = match line {
                Line::Done(text) => text.clone(),
                Line::Skipped(text) => format!("skipped: {text}"),
                Line::Failed(text) => format!("FAILED: {text}"),
            };
            text += &wrapped(&line);
        }
    }
    text
}

/// An item of a list inside a list, in lines of at most 120 columns where its words allow.
fn wrapped(item: &str) -> String {
    let mut text = String::from("  -");
    let mut column = text.len();
    for word in item.split_whitespace() {
        if column + 1 + word.chars().count() > 120 {
            text += "\n   ";
            column = 3;
        }
        text += " ";
        text += word;
        column += 1 + word.chars().count();
    }
    text + "\n"
}

fn replaced(text: &str, log: &str) -> anyhow::Result<String> {
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("{FILE} has no {}", BEGIN.trim_end()))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{FILE} has no {END}"))?;
    ensure!(!log.contains(END), "the log contains {END}");
    Ok(format!("{before}{BEGIN}{log}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_replaces_the_one_before() {
        let mut record = Record::default();
        record.done("a b");
        record.skipped(format!("{} {}", "x".repeat(100), "y".repeat(20)));
        let log = table("today", &[("deb".to_owned(), record)]);
        let item = format!("  - skipped: {}\n    {}\n", "x".repeat(100), "y".repeat(20));
        assert_eq!(log, format!("Kept run: today.\n\n- `deb`\n  - a b\n{item}"));
        let page = format!("before\n{BEGIN}old\n{END}\nafter\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), format!("before\n{BEGIN}new\n{END}\nafter\n"));
        assert!(replaced("nothing", "new\n").is_err());
    }
}
