//! Tables of text, and an interval in a cell.

use tt_report::Estimate;

/// What a table looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Columns in line.
    Terminal,
    /// As a document has it.
    Markdown,
}

/// Lines of cells below their headings.
#[derive(Clone, Debug, Default)]
pub struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    /// Without lines yet.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        Self { lines: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a line; it has as many cells as there are headings.
    pub fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.lines[0].len());
        self.lines.push(cells);
    }

    /// Prints it. Text columns are the first `texts`; a blank line stands where the first cell changes.
    pub fn print(&self, look: Look, texts: usize) {
        let columns = self.lines[0].len();
        let width = |at: usize| self.lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, line) in self.lines.iter().enumerate() {
            match look {
                Look::Markdown => {
                    println!("| {} |", line.join(" | "));
                    if number == 0 {
                        println!("|{}{}", "---|".repeat(texts), "--:|".repeat(columns - texts));
                    }
                }
                Look::Terminal => {
                    if number > 1 && line[0] != self.lines[number - 1][0] {
                        println!();
                    }
                    let cell = |(at, cell): (usize, &String)| {
                        let width = widths[at];
                        if at < texts { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                    };
                    println!("{}", line.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end());
                }
            }
        }
    }
}

/// `value [low, high]`; nothing where there is none.
#[must_use]
pub fn interval(estimate: Option<Estimate>, digits: usize) -> String {
    estimate.map_or_else(String::new, |estimate| {
        format!("{:.digits$} [{:.digits$}, {:.digits$}]", estimate.value, estimate.low, estimate.high)
    })
}

/// Whether what should be at most `aim` is, as far as the interval tells.
#[must_use]
pub fn verdict(estimate: Estimate, aim: f64) -> &'static str {
    match (estimate.low <= aim, estimate.high <= aim) {
        (_, true) => "reached",
        (true, false) => "undecided",
        (false, false) => "missed",
    }
}
