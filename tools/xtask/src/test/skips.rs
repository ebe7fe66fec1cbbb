//! The skips that CI allows: tools/xtask/skips.toml.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use crate::tally::Skip;

const FILE: &str = "tools/xtask/skips.toml";

/// Allowed skips with their reasons.
pub(crate) struct AllowedSkips(BTreeMap<String, String>);

impl AllowedSkips {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
        Ok(Self(toml::from_str(&text).context(FILE)?))
    }

    pub(crate) fn permit(&self, skip: &Skip) -> bool {
        let function = skip.name.rsplit("::").next().unwrap_or_default();
        self.0.contains_key(&skip.requirement) || self.0.contains_key(function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_listed_requirements_and_tests_only() {
        let allowed = AllowedSkips::read(&crate::workspace_root()).unwrap();
        let skip = |name: &str, requirement: &str| Skip {
            name: name.to_owned(),
            requirement: requirement.to_owned(),
            reason: String::new(),
        };
        assert!(allowed.permit(&skip("a::b", "captures")));
        assert!(allowed.permit(&skip("clients::pion::pion_relays_both_ways", "program")));
        assert!(!allowed.permit(&skip("floods::case_a30", "net-namespace")));
    }
}
