//! Packs the page and the descriptions of the interfaces.

#[path = "../tt-status/build/pack.rs"]
mod pack;

fn main() -> std::io::Result<()> {
    pack::pack(&[
        "src/asyncapi.json",
        "src/openapi.json",
        "src/page/address.js",
        "src/page/allocations.js",
        "src/page/books.js",
        "src/page/canvas.js",
        "src/page/engines.js",
        "src/page/fault.js",
        "src/page/favicon.svg",
        "src/page/gate.js",
        "src/page/history.js",
        "src/page/incidents.js",
        "src/page/index.html",
        "src/page/kept.js",
        "src/page/page.css",
        "src/page/page.js",
        "src/page/relay.js",
        "src/page/risk.js",
        "src/page/snippets.js",
        "src/page/text.js",
        "src/page/top.js",
        "src/page/trial.js",
        "src/page/users.js",
    ])
}
