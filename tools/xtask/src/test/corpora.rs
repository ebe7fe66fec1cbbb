//! The fuzz targets' corpora: how many lines of its module each one reaches.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Workplace;
use crate::tally::Tally;

const FLOORS: &str = "tools/fuzz/coverage.toml";

/// Required coverage of a corpus.
#[derive(Debug, PartialEq)]
struct Floor {
    target: String,
    files: Vec<String>,
    /// In percent of the files' lines together.
    lines_min: f64,
    /// Why less than 90 percent are enough.
    below_90: Option<String>,
}

/// Replays every corpus in an instrumented build.
pub(crate) fn run(place: &Workplace) -> anyhow::Result<Tally> {
    let floors = floors(&std::fs::read_to_string(place.steps.root.join(FLOORS)).context(FLOORS)?)?;
    let replay = build(place)?;
    let mut tally = Tally::default();
    for floor in &floors {
        let (covered, count) = lines(place, &replay, floor)?;
        let percent = 100.0 * covered as f64 / count.max(1) as f64;
        println!("      {}: {covered} of {count} lines, {percent:.1} %", floor.target);
        tally.add(if percent >= floor.lines_min {
            Tally::pass()
        } else {
            Tally::fail(format!("{}: {percent:.1} % of the lines, at least {} %", floor.target, floor.lines_min))
        });
    }
    Ok(tally)
}

fn floors(text: &str) -> anyhow::Result<Vec<Floor>> {
    let table: toml::Table = text.parse().context(FLOORS)?;
    let floors = table.iter().map(|(target, floor)| {
        let files =
            floor.get("files").and_then(toml::Value::as_array).with_context(|| format!("{target}: no files"))?;
        let files = files.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect();
        let lines_min = floor.get("lines_min").and_then(toml::Value::as_integer);
        let lines_min = lines_min.with_context(|| format!("{target}: no lines_min"))? as f64;
        let below_90 = floor.get("below_90").and_then(toml::Value::as_str).map(str::to_owned);
        Ok(Floor { target: target.clone(), files, lines_min, below_90 })
    });
    floors.collect()
}

/// The replaying test with the crates of the workspace instrumented; the others are those of the usual build.
fn build(place: &Workplace) -> anyhow::Result<PathBuf> {
    let folder = place.steps.root.join("target/coverage");
    std::fs::create_dir_all(&folder).context("target/coverage")?;
    let wrapper = folder.join("rustc");
    std::fs::write(&wrapper, "#!/bin/sh\nexec \"$@\" -Cinstrument-coverage\n").context("target/coverage/rustc")?;
    std::fs::set_permissions(&wrapper, Permissions::from_mode(0o755)).context("target/coverage/rustc")?;
    let arguments = ["test", "--package", "fuzz", "--test", "replay", "--locked", "--no-run"];
    let mut command = place.steps.command("cargo", &arguments);
    command.arg("--message-format=json-render-diagnostics").env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    // The floors are of incremental builds: without, more functions that nothing calls count.
    command.env("CARGO_INCREMENTAL", "1");
    // Build scripts are instrumented too.
    let finished = place.steps.finish("coverage", command.env("LLVM_PROFILE_FILE", "/dev/null"));
    let messages = finished.output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let built = messages.filter(|message| message["target"]["name"] == "replay").find_map(|message| {
        let executable = message["executable"].as_str()?;
        Some(PathBuf::from(executable))
    });
    if built.is_none() {
        finished.show_tail();
    }
    built.context("the replaying test does not build")
}

/// Lines of the floor's files that its corpus reaches, and all of them.
fn lines(place: &Workplace, replay: &Path, floor: &Floor) -> anyhow::Result<(u64, u64)> {
    let target = &floor.target;
    let profile = place.steps.root.join(format!("target/coverage/{target}.profraw"));
    let merged = profile.with_extension("profdata");
    let mut command = place.steps.command(&replay.to_string_lossy(), &["--exact", target]);
    command.env("LLVM_PROFILE_FILE", &profile).current_dir(place.steps.root.join("tools/fuzz"));
    let finished = place.steps.finish(&format!("replay {target}"), &mut command);
    ensure!(finished.succeeded() && finished.output.contains("1 passed"), "{target}: the corpus does not pass");
    let tools = tools(place)?;
    let mut merge = place.steps.command(&tools.join("llvm-profdata").to_string_lossy(), &["merge", "-sparse"]);
    let finished = place.steps.finish("profdata", merge.arg(&profile).arg("-o").arg(&merged));
    ensure!(finished.succeeded(), "llvm-profdata: {}", finished.output.trim());
    let mut export = place.steps.command(&tools.join("llvm-cov").to_string_lossy(), &["export", "-summary-only"]);
    export.arg(format!("-instr-profile={}", merged.display())).arg(replay);
    export.args(floor.files.iter().map(|file| place.steps.root.join(file)));
    let finished = place.steps.finish("cov", &mut export);
    ensure!(finished.succeeded(), "llvm-cov: {}", finished.output.trim());
    let exported: Value = serde_json::from_str(finished.output.trim()).context("llvm-cov printed no JSON")?;
    let files = exported["data"][0]["files"].as_array().map(Vec::len);
    ensure!(files == Some(floor.files.len()), "{target}: {files:?} of {} files were found", floor.files.len());
    let number = |key: &str| exported["data"][0]["totals"]["lines"][key].as_u64().context("llvm-cov: no totals");
    Ok((number("covered")?, number("count")?))
}

/// Where the toolchain keeps LLVM's tools.
fn tools(place: &Workplace) -> anyhow::Result<PathBuf> {
    let finished = place.steps.finish("libdir", &mut place.steps.command("rustc", &["--print", "target-libdir"]));
    let library = PathBuf::from(finished.output.trim());
    Ok(library.parent().context("rustc names no folder")?.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_name_files_of_the_tree() {
        let root = crate::workspace_root();
        let list = floors(&std::fs::read_to_string(root.join(FLOORS)).unwrap()).unwrap();
        assert!(!list.is_empty());
        for target in crate::fuzz::targets(&root).unwrap() {
            assert!(list.iter().any(|floor| floor.target == target), "{target} has no floor");
        }
        for floor in list {
            assert!(floor.lines_min >= 90.0 || floor.below_90.is_some(), "{}", floor.target);
            assert!(!floor.files.is_empty(), "{}", floor.target);
            for file in floor.files {
                assert!(root.join(&file).is_file(), "{file}");
            }
        }
    }
}
