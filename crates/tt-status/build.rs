//! Packs the assets of the figures.

#[path = "build/pack.rs"]
mod pack;

fn main() -> std::io::Result<()> {
    pack::pack(&[
        "page/ablation.js",
        "page/base.css",
        "page/comparison.js",
        "page/figures.css",
        "page/figures.js",
        "page/flow.js",
        "page/line.js",
        "page/map.js",
        "page/parts.js",
        "page/sharing.js",
        "page/spread.js",
        "vendor/uplot/uPlot.iife.min.js",
        "vendor/uplot/uPlot.min.css",
    ])
}
