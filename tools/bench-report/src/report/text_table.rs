//! Tables of text.

use super::Estimate;

/// Format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Aligned columns.
    Terminal,
    /// Markdown.
    Markdown,
}

/// Lines of cells under headings.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    lines: Vec<Vec<String>>,
}

impl TextTable {
    /// Makes a table without lines.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        Self { lines: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a line with a cell for each heading.
    pub fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.lines[0].len());
        self.lines.push(cells);
    }

    /// Returns whether there is no line below the headings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.len() == 1
    }

    /// Returns the headings and the lines below them.
    pub(crate) fn lines(&self) -> &[Vec<String>] {
        &self.lines
    }

    /// Prints the table. The first `texts` columns are text.
    pub fn print(&self, look: Look, texts: usize) {
        print!("{}", self.render(look, texts));
    }

    /// Returns the table as text. The first `texts` columns are text; on a terminal a blank line comes before a line
    /// whose first cell differs from the one above.
    #[must_use]
    pub fn render(&self, look: Look, texts: usize) -> String {
        match look {
            Look::Markdown => self.markdown(texts),
            Look::Terminal => self.terminal(texts),
        }
    }

    fn markdown(&self, texts: usize) -> String {
        let rule = format!("|{}{}", "---|".repeat(texts), "--:|".repeat(self.lines[0].len() - texts));
        let mut lines: Vec<String> = self.lines.iter().map(|line| format!("| {} |", line.join(" | "))).collect();
        lines.insert(1, rule);
        lines.join("\n") + "\n"
    }

    /// Returns the table for a terminal without blank lines. The first `texts` columns are text.
    pub(crate) fn dense(&self, texts: usize) -> String {
        self.aligned(texts, false)
    }

    fn terminal(&self, texts: usize) -> String {
        self.aligned(texts, true)
    }

    fn aligned(&self, texts: usize, has_gaps: bool) -> String {
        let width = |at: usize| self.lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.lines[0].len()).map(width).collect();
        let cell = |(at, cell): (usize, &String)| {
            let width = widths[at];
            if at < texts { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        };
        let mut text = String::new();
        for (number, line) in self.lines.iter().enumerate() {
            if has_gaps && number > 1 && line[0] != self.lines[number - 1][0] {
                text += "\n";
            }
            let cells: Vec<String> = line.iter().enumerate().map(cell).collect();
            text += &format!("{}\n", cells.join("  ").trim_end());
        }
        text
    }
}

/// Returns `value [low, high]`, or nothing without an estimate.
#[must_use]
pub fn interval(estimate: Option<Estimate>, digits: usize) -> String {
    estimate.map_or_else(String::new, |estimate| {
        format!("{:.digits$} [{:.digits$}, {:.digits$}]", estimate.value, estimate.low, estimate.high)
    })
}

/// Judges by the interval whether an estimate is at most `aim`: reached, undecided or missed.
#[must_use]
pub fn verdict(estimate: Estimate, aim: f64) -> &'static str {
    match (estimate.low <= aim, estimate.high <= aim) {
        (_, true) => "reached",
        (true, false) => "undecided",
        (false, false) => "missed",
    }
}
