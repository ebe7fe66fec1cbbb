//! The Python module: installed by pip into a fresh environment, its types checked, its tests run.

use super::Workplace;
use super::suites::one;
use crate::tally::{Outcome, Tally};

/// The environment. Each run makes a new one.
const FOLDER: &str = "target/xtask/python";
const MANIFEST: &str = "python/Cargo.toml";
/// The optional dependencies of its package that tests need.
const PACKAGE: &str = "./python[test]";

pub(super) fn run(place: &Workplace) -> Outcome {
    match prepare(place) {
        Ok(()) => Outcome::Ran(check(place)),
        Err(reason) => Outcome::Skipped(reason),
    }
}

/// Makes the environment and downloads what the build needs.
///
/// # Errors
/// The reason for a skip.
fn prepare(place: &Workplace) -> Result<(), String> {
    place.bring_program("python3", "python3-venv")?;
    let mut venv = place.steps.command("python3", &["-m", "venv", "--clear", FOLDER]);
    if !place.steps.finish("venv", &mut venv).succeeded() {
        return Err("python3 cannot make a virtual environment (Debian: python3-venv)".to_owned());
    }
    let python = python(place);
    let mut pip = place.steps.command(&python, &["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]);
    pip.args([&format!("{FOLDER}/download"), "maturin>=1.9,<2"]);
    if !place.steps.finish("pip download", &mut pip).succeeded() {
        return Err("pip has no package registry".to_owned());
    }
    let mut fetch = place.steps.command("cargo", &["fetch", "--locked", "--manifest-path", MANIFEST]);
    let fetched = place.steps.finish("fetch python", &mut fetch);
    // An outdated lock file is a failure, which the build shows.
    if !fetched.succeeded() && !fetched.output.contains("because --locked was passed") {
        return Err("the dependencies of the Python module cannot be downloaded".to_owned());
    }
    Ok(())
}

fn python(place: &Workplace) -> String {
    place.steps.root.join(FOLDER).join("bin/python").to_string_lossy().into_owned()
}

fn check(place: &Workplace) -> Tally {
    let (python, manifest) = (python(place), MANIFEST);
    let mut tally = Tally::default();
    let mut add = |outcome| match outcome {
        Outcome::Ran(ran) => tally.add(ran),
        Outcome::Skipped(reason) => tally.add(Tally::fail(reason)),
    };
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE];
    add(one(place, "pip install ./python", &mut place.steps.command(&python, &install)));
    let lint = ["clippy", "--locked", "--all-targets", "--target-dir", "target", "--manifest-path", manifest];
    add(one(place, "clippy of python", place.steps.command("cargo", &lint).args(["--", "-D", "warnings"])));
    let format = ["fmt", "--check", "--manifest-path", manifest];
    add(one(place, "fmt of python", &mut place.steps.command("cargo", &format)));
    let folder = place.steps.root.join("python");
    add(one(place, "mypy --strict", place.steps.command(&python, &["-m", "mypy"]).current_dir(&folder)));
    let mut pytest = place.steps.command(&python, &["-m", "pytest", "tests"]);
    match place.program() {
        Ok(program) => add(one(place, "pytest", pytest.current_dir(&folder).env("TRUETICK_PROGRAM", program))),
        Err(error) => add(Outcome::Ran(Tally::fail(error))),
    }
    tally
}
