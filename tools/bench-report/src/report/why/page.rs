//! The answer as one page that needs no other file and no script.

use std::io;

use tt_status::assets;

use super::WhyResult;
use crate::report::TextTable;

const STYLE: &str = "\
main { max-width: 1000px; margin: 0 auto; padding: 16px; display: grid; gap: 20px; }
.answer { font-size: 1.35rem; line-height: 1.4; margin: 0; }
svg { width: 100%; height: auto; }
.scrolls { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 4px 12px 4px 0; vertical-align: top; }
td { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
";

impl WhyResult {
    /// Writes the page with `svg` as its picture.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_html(&self, svg: &str, to: &mut dyn io::Write) -> io::Result<()> {
        let mut json = Vec::new();
        self.write_json(&mut json)?;
        // Inside of a script element only `<` could end the data.
        let json = String::from_utf8_lossy(&json).replace('<', "\\u003c");
        writeln!(
            to,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             img-src data:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>truetick why</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<style>\n{}\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>Machine or code?</h1>",
            assets::BASE_CSS.packed.text()
        )?;
        if let Some(warning) = self.environment.build.warning() {
            writeln!(to, "<p class=\"notice\">{}</p>", escaped(&warning))?;
        }
        for warning in &self.warnings {
            writeln!(to, "<p class=\"notice\">{}</p>", escaped(warning))?;
        }
        for sentence in [vec![self.sentence()], self.placements(), vec![self.stalls.sentence()]].concat() {
            writeln!(to, "<p class=\"answer\">{}</p>", escaped(&sentence))?;
        }
        writeln!(to, "{svg}")?;
        let tables = [
            ("What the median is made of", self.parts_table()),
            ("What stalls it", self.stalls.table()),
            ("What would change it", self.changes_table()),
            ("Settings of this machine", self.advice_table()),
        ];
        for (title, table) in &tables {
            write_table(to, title, table)?;
        }
        writeln!(to, "<section><h2>How it was measured</h2>")?;
        let mut machine = Vec::new();
        self.environment.write_machine(&mut machine)?;
        self.environment.write_disturbance(&mut machine)?;
        let machine = String::from_utf8_lossy(&machine);
        for line in self.notes().iter().map(String::as_str).chain(machine.lines()).filter(|line| !line.is_empty()) {
            writeln!(to, "<p>{}</p>", escaped(line))?;
        }
        writeln!(
            to,
            "</section>\n</main>\n<script type=\"application/json\" id=\"data\">{}</script>\n</body>\n</html>",
            json.trim_end()
        )
    }
}

fn write_table(to: &mut dyn io::Write, title: &str, table: &TextTable) -> io::Result<()> {
    writeln!(
        to,
        "<section><h2>{title}</h2>\n<div class=\"scrolls\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n<table>"
    )?;
    for (number, line) in table.lines().iter().enumerate() {
        let (open, close) = if number == 0 { ("<th scope=\"col\">", "</th>") } else { ("<td>", "</td>") };
        let cells: String = line.iter().map(|cell| format!("{open}{}{close}", escaped(cell))).collect();
        writeln!(to, "<tr>{cells}</tr>")?;
    }
    writeln!(to, "</table>\n</div>\n</section>")
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
