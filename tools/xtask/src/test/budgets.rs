//! The time that each suite may take on two cores: tools/xtask/budgets.toml.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

const FILE: &str = "tools/xtask/budgets.toml";

/// Suites that took longer than their budget, and suites without one.
pub(crate) fn exceeded<'a>(
    root: &Path,
    times: impl Iterator<Item = (&'a str, Duration)>,
) -> anyhow::Result<Vec<String>> {
    let budgets: BTreeMap<String, u64> = toml::from_str(&std::fs::read_to_string(root.join(FILE)).context(FILE)?)?;
    let mut lines = Vec::new();
    for (suite, elapsed) in times {
        match budgets.get(suite) {
            Some(seconds) if elapsed.as_secs() <= *seconds => {}
            Some(seconds) => lines.push(format!("{suite} took {:.1} s, at most {seconds} s", elapsed.as_secs_f64())),
            None => lines.push(format!("{suite} has no budget in {FILE}")),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_long_suites_and_those_without_a_budget() {
        let times = [("fmt", 1), ("tidy", 10_000), ("new", 1)].map(|(name, s)| (name, Duration::from_secs(s)));
        let lines = exceeded(&crate::workspace_root(), times.into_iter()).unwrap();
        assert!(
            lines.len() == 2 && lines[0].starts_with("tidy took") && lines[1].starts_with("new has no"),
            "{lines:?}"
        );
    }
}
