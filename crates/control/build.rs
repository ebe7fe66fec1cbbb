//! Packs the page and the descriptions of the interfaces.

#[path = "../tt-status/build/pack.rs"]
mod pack;

fn main() -> std::io::Result<()> {
    pack::pack(&[
        "src/asyncapi.json",
        "src/openapi.json",
        "src/page/favicon.svg",
        "src/page/gate.js",
        "src/page/index.html",
        "src/page/kept.js",
        "src/page/page.css",
        "src/page/page.js",
        "src/page/relay.js",
        "src/page/show.js",
    ])
}
