//! Seeded faults: each ordering of the ring and the cell, weakened on its own, must make loom fail.
//!
//! That proves that the tests can see what they are there for.

use std::path::{Path, PathBuf};

use super::Workplace;
use super::tally::Tally;

const FILES: &[&str] = &["crates/tt-sync/src/spsc.rs", "crates/tt-sync/src/seqlock.rs"];

/// Weakens one ordering after the other in a copy of the tree under the target folder.
pub(crate) fn run(place: &Workplace) -> anyhow::Result<Tally> {
    let copy = place.root.join("target/seeded");
    let mut tally = Tally::default();
    crate::tidy::copy_tree(&place.root, &copy)?;
    anyhow::ensure!(survives(place, &copy), "the tests fail before anything is weakened");
    for file in FILES {
        let path = copy.join(file);
        let sound = std::fs::read_to_string(&path)?;
        for (line, weakened) in weakenings(&sound) {
            std::fs::write(&path, weakened)?;
            tally.add(if survives(place, &copy) {
                Tally::fail(format!("{file}:{line} weakened to Relaxed, and no test noticed"))
            } else {
                Tally::pass()
            });
        }
        std::fs::write(&path, sound)?;
    }
    Ok(tally)
}

fn survives(place: &Workplace, copy: &Path) -> bool {
    let target: PathBuf = place.root.join("target/loom");
    let mut command = place.command("cargo", &["test", "--release", "--locked", "--package", "tt-sync", "--lib"]);
    command.arg("--target-dir").arg(target).current_dir(copy).env("RUSTFLAGS", "--cfg loom");
    place.finish("seeded", &mut command).succeeded()
}

/// `source` with one ordering weakened, for each, and its line number from 1.
fn weakenings(source: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for strong in ["Ordering::Acquire", "Ordering::Release"] {
            if line.contains(strong) {
                let weak = line.replacen(strong, "Ordering::Relaxed", 1);
                let mut changed = lines.clone();
                changed[index] = &weak;
                found.push((index + 1, changed.join("\n") + "\n"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ordering_is_weakened_on_its_own() {
        let source = "// Ordering::Release\na.store(1, Ordering::Release);\nb.load(Ordering::Acquire);\nc.load(Ordering::Relaxed);\n";
        let found = weakenings(source);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3]);
        assert!(found[0].1.contains("a.store(1, Ordering::Relaxed)") && found[0].1.contains("Ordering::Acquire"));
        assert!(found[1].1.contains("b.load(Ordering::Relaxed)") && found[1].1.contains("1, Ordering::Release"));
    }
}
