//! Writes the tables of BENCHMARKING.md from the kept files: `cargo run -p bench-report --bin tables`.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

const DOCUMENT: &str = "BENCHMARKING.md";

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(DOCUMENT);
    let before = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let after = bench_report::tables::generate(&before, &root)?;
    if after == before {
        println!("{DOCUMENT} is up to date");
        return Ok(());
    }
    fs::write(&path, after).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{DOCUMENT} written");
    Ok(())
}
