//! `cargo xtask fuzz`: searches with the fuzz targets; `--planted` shows that each finds a planted fault in time.
//!
//! Both need the nightly toolchain and `cargo install cargo-fuzz`. What a search finds goes into `fuzz/corpus/` by hand, after
//! `cargo +nightly fuzz cmin`.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail, ensure};

/// Seconds that a target has to find a planted fault.
const PLANTED_S: u32 = 60;
/// Seconds of a search unless told otherwise.
const SEARCH_S: u32 = 60;
/// Bytes of an input at most.
const INPUT_LEN_MAX: u32 = 2_048;

/// A fault to plant: one place of one file, changed.
#[derive(Debug, PartialEq)]
struct Planted {
    target: String,
    file: String,
    from: String,
    to: String,
}

/// Runs what `arguments` say: `[--planted] [--seconds N] [TARGET..]`.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    let (mut planted, mut seconds, mut wanted) = (false, SEARCH_S, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--planted" => planted = true,
            "--seconds" => seconds = rest.next().context("--seconds N")?.parse().context("--seconds N")?,
            flag if flag.starts_with('-') => bail!("no flag {flag}"),
            name => wanted.push(name.to_owned()),
        }
    }
    let wants = |target: &str| wanted.is_empty() || wanted.iter().any(|name| name == target);
    let mut is_right = true;
    if planted {
        for fault in faults(&std::fs::read_to_string(root.join("fuzz/planted.toml"))?)? {
            if wants(&fault.target) {
                is_right &= finds(&root, &fault)?;
            }
        }
    } else {
        for target in targets(&root)?.iter().filter(|target| wants(target)) {
            println!("{target}: {seconds} s");
            is_right &= search(&root, target, seconds)?;
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The targets: the binaries of the package `fuzz`.
fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("fuzz/fuzz_targets")).context("fuzz/fuzz_targets")? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn faults(text: &str) -> anyhow::Result<Vec<Planted>> {
    let table: toml::Table = text.parse().context("fuzz/planted.toml")?;
    let list = table.get("fault").and_then(toml::Value::as_array).context("fuzz/planted.toml has no [[fault]]")?;
    let faults = list.iter().map(|fault| {
        let text = |key: &str| {
            let value = fault.get(key).and_then(toml::Value::as_str);
            value.map(str::to_owned).with_context(|| format!("a planted fault has no {key}"))
        };
        Ok(Planted { target: text("target")?, file: text("file")?, from: text("from")?, to: text("to")? })
    });
    faults.collect()
}

/// Plants `fault` in a copy of the tree, and says whether the target finds it from an empty corpus.
fn finds(root: &Path, fault: &Planted) -> anyhow::Result<bool> {
    let copy = root.join("target/planted");
    crate::tidy::copy_tree(root, &copy)?;
    let path = copy.join(&fault.file);
    let sound = std::fs::read_to_string(&path).with_context(|| fault.file.clone())?;
    ensure!(sound.matches(&fault.from).count() == 1, "{}: not one place reads {:?}", fault.file, fault.from);
    std::fs::write(&path, sound.replacen(&fault.from, &fault.to, 1))?;
    let built = cargo_fuzz(&copy, "build", &fault.target).status().context("cargo +nightly fuzz")?;
    let started = std::time::Instant::now();
    let found = built.success() && {
        let mut command = cargo_fuzz(&copy, "run", &fault.target);
        let empty = copy.join("target/empty-corpus");
        std::fs::create_dir_all(&empty)?;
        for left in std::fs::read_dir(&empty)? {
            std::fs::remove_file(left?.path())?;
        }
        command.arg(&empty).arg("--").arg(format!("-max_total_time={PLANTED_S}"));
        !command.arg(format!("-max_len={INPUT_LEN_MAX}")).output()?.status.success()
    };
    std::fs::write(&path, sound)?;
    let verdict = if found { "found" } else { "NOT FOUND" };
    let elapsed_s = started.elapsed().as_secs_f64();
    println!("{}: {:?} for {:?} in {}: {verdict}, {elapsed_s:.1} s", fault.target, fault.to, fault.from, fault.file);
    Ok(found)
}

fn search(root: &Path, target: &str, seconds: u32) -> anyhow::Result<bool> {
    let mut command = cargo_fuzz(root, "run", target);
    command.arg("--").arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={INPUT_LEN_MAX}"));
    Ok(command.status().context("cargo +nightly fuzz")?.success())
}

fn cargo_fuzz(root: &Path, what: &str, target: &str) -> Command {
    let mut command = Command::new("cargo");
    // The copy must not share what the tree has built, nor ask rustup for the stable toolchain that it names.
    command.args(["+nightly", "fuzz", what, "--fuzz-dir", "fuzz", target]).current_dir(root);
    command.env("CARGO_TARGET_DIR", root.join("target")).env_remove("RUSTUP_TOOLCHAIN").env("RUST_BACKTRACE", "0");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_faults_name_a_place_of_the_tree() {
        let root = crate::workspace_root();
        let list = faults(&std::fs::read_to_string(root.join("fuzz/planted.toml")).unwrap()).unwrap();
        let targets = targets(&root).unwrap();
        for target in &targets {
            assert!(list.iter().any(|fault| fault.target == *target), "{target} has no planted fault");
        }
        for fault in &list {
            let source = std::fs::read_to_string(root.join(&fault.file)).unwrap();
            assert!(targets.contains(&fault.target), "{}", fault.target);
            assert_eq!(source.matches(&fault.from).count(), 1, "{}: {}", fault.file, fault.from);
        }
    }

    #[test]
    fn a_planted_fault_wants_all_its_keys() {
        assert!(faults("[[fault]]\ntarget = \"a\"\nfile = \"b\"\nfrom = \"c\"\n").is_err());
        assert_eq!(faults("[[fault]]\ntarget = \"a\"\nfile = \"b\"\nfrom = \"c\"\nto = \"d\"\n").unwrap().len(), 1);
    }
}
