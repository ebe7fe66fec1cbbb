//! Scripts and styles of the figures, packed into the binary.

use crate::packed;
use crate::packed::Packed;

/// A file that a page loads, or that `report.html` holds.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name, which is how the scripts name each other.
    pub name: &'static str,
    /// `text/javascript; charset=utf-8` or `text/css; charset=utf-8`.
    pub kind: &'static str,
    /// The file.
    pub packed: Packed,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Colours and plain elements.
pub const BASE_CSS: Asset = Asset { name: "base.css", kind: STYLE, packed: packed!("base.css") };
/// The figures' own style.
pub const FIGURES_CSS: Asset = Asset { name: "figures.css", kind: STYLE, packed: packed!("figures.css") };
/// The charts' style (uPlot).
pub const CHART_CSS: Asset = Asset { name: "chart.css", kind: STYLE, packed: packed!("uPlot.min.css") };
/// The charts (uPlot): a classic script, to be run before the modules.
pub const CHART_SCRIPT: Asset = Asset { name: "chart.js", kind: SCRIPT, packed: packed!("uPlot.iife.min.js") };

/// The modules, each after those that it imports; the last one is `figures.js`, which exports `mountFigures`.
pub const MODULES: [Asset; 9] = [
    module("parts.js", packed!("parts.js")),
    module("flow.js", packed!("flow.js")),
    module("line.js", packed!("line.js")),
    module("sharing.js", packed!("sharing.js")),
    module("spread.js", packed!("spread.js")),
    module("comparison.js", packed!("comparison.js")),
    module("map.js", packed!("map.js")),
    module("ablation.js", packed!("ablation.js")),
    module("figures.js", packed!("figures.js")),
];

/// Returns every asset that a page with figures must serve.
pub fn all() -> impl Iterator<Item = Asset> {
    [BASE_CSS, FIGURES_CSS, CHART_CSS, CHART_SCRIPT].into_iter().chain(MODULES)
}

const fn module(name: &'static str, packed: Packed) -> Asset {
    Asset { name, kind: SCRIPT, packed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_asset_is_the_file_of_its_name() {
        for asset in all() {
            let file = match asset.name {
                "chart.css" => "vendor/uplot/uPlot.min.css".to_owned(),
                "chart.js" => "vendor/uplot/uPlot.iife.min.js".to_owned(),
                name => format!("page/{name}"),
            };
            assert_eq!(asset.packed.text(), std::fs::read_to_string(&file).unwrap(), "{file}");
        }
    }
}
