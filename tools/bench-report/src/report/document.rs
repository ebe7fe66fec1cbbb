//! `report.json` and `report.html`: a whole run with its figures.

use std::io;

use serde_json::{Value, json};

use crate::report::ring::RingResult;
use tt_status::{REPORT_FORMAT, assets};

use crate::report::{Figures, Report};

/// A result and what its figures are drawn from.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    summary: Value,
    figures: &'a Figures,
}

impl<'a> Document<'a> {
    /// Rows with their environment.
    #[must_use]
    pub fn of(report: &Report, figures: &'a Figures) -> Self {
        Self { summary: report.json(), figures }
    }

    /// The ring's own result; `figures` are its [`RingResult::figures`] and what it does not know.
    #[must_use]
    pub fn of_ring(result: &RingResult, figures: &'a Figures) -> Self {
        Self { summary: result.summary(), figures }
    }

    /// Writes `report.json`: `truetick_report` (the format), `summary` as in `summary.json`, and `figures`.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        writeln!(to, "{}", self.json())
    }

    /// Writes `report.html`: one file that needs no other, and may load none.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_html(&self, to: &mut dyn io::Write) -> io::Result<()> {
        // Inside of a script element only `<` could end the data.
        let data = self.json().replace('<', "\\u003c");
        let style =
            [assets::BASE_CSS, assets::CHART_CSS, assets::FIGURES_CSS].map(|asset| asset.packed.text()).join("\n");
        let filled = include_str!("../../page/report.html").split("{{").map(|part| match part.split_once("}}") {
            Some(("style", rest)) => style.clone() + rest,
            Some(("chart", rest)) => assets::CHART_SCRIPT.packed.text() + rest,
            Some(("modules", rest)) => one_module() + rest,
            Some(("data", rest)) => data.clone() + rest,
            Some(_) | None => part.to_owned(),
        });
        to.write_all(filled.collect::<String>().as_bytes())
    }

    fn json(&self) -> String {
        json!({ "truetick_report": REPORT_FORMAT, "summary": self.summary, "figures": self.figures }).to_string()
    }
}

/// All modules as one, which a file can hold that is opened without a server. An import is one line, and no two modules
/// give the same name to different things.
fn one_module() -> String {
    let modules: String = assets::MODULES.iter().map(|asset| asset.packed.text()).collect();
    let lines = modules.lines().chain(include_str!("../../page/report.js").lines());
    let lines = lines.filter(|line| !line.starts_with("import "));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line).to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::{Document, one_module};
    use crate::report::{Bootstrap, Environment, Figures, Report};

    /// A browser opens it in `crates/truetick/tests/report.rs`; here, that no text of a result leaves its place.
    #[test]
    fn nothing_in_the_data_ends_its_element() {
        let report = Report {
            title: "</script><img src=x> {{style}}".to_owned(),
            quick: true,
            bootstrap: Bootstrap { resamples: 1, seed: 1 },
            environment: Environment::default(),
            rows: Vec::new(),
        };
        let mut html = Vec::new();
        let figures = Figures::default();
        Document::of(&report, &figures).write_html(&mut html).expect("a vector takes every byte");
        let html = String::from_utf8(html).expect("UTF-8");
        assert!(!html.contains("</script><img"));
        let (_, data) = html.split_once("id=\"data\">").expect("the data have an element");
        let (data, _) = data.split_once("</script>").expect("which ends");
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["summary"]["truetick_bench"], report.title.as_str());
        assert!(!one_module().contains("import "), "an import takes more than a line");
    }
}
