//! Scripts and styles of the figures, embedded in the binary.

/// A file that a page loads, or that `report.html` holds.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name, which is how the scripts name each other.
    pub name: &'static str,
    /// `text/javascript; charset=utf-8` or `text/css; charset=utf-8`.
    pub kind: &'static str,
    /// The file.
    pub text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Colours and plain elements.
pub const BASE_CSS: Asset = Asset { name: "base.css", kind: STYLE, text: include_str!("../page/base.css") };
/// The figures' own style.
pub const FIGURES_CSS: Asset = Asset { name: "figures.css", kind: STYLE, text: include_str!("../page/figures.css") };
/// The charts' style (uPlot).
pub const CHART_CSS: Asset =
    Asset { name: "chart.css", kind: STYLE, text: include_str!("../vendor/uplot/uPlot.min.css") };
/// The charts (uPlot): a classic script, to be run before the modules.
pub const CHART_SCRIPT: Asset =
    Asset { name: "chart.js", kind: SCRIPT, text: include_str!("../vendor/uplot/uPlot.iife.min.js") };

/// The modules, each after those that it imports; the last one is `figures.js`, which exports `mountFigures`.
pub const MODULES: [Asset; 7] = [
    module("parts.js", include_str!("../page/parts.js")),
    module("flow.js", include_str!("../page/flow.js")),
    module("line.js", include_str!("../page/line.js")),
    module("sharing.js", include_str!("../page/sharing.js")),
    module("spread.js", include_str!("../page/spread.js")),
    module("ablation.js", include_str!("../page/ablation.js")),
    module("figures.js", include_str!("../page/figures.js")),
];

/// Returns every asset that a page with figures must serve.
pub fn all() -> impl Iterator<Item = Asset> {
    [BASE_CSS, FIGURES_CSS, CHART_CSS, CHART_SCRIPT].into_iter().chain(MODULES)
}

const fn module(name: &'static str, text: &'static str) -> Asset {
    Asset { name, kind: SCRIPT, text }
}
