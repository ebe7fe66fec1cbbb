//! deploy/bench.Dockerfile without a daemon: its last stage over this machine's Debian, run as an ordinary user.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::super::record::Record;
use super::super::root::namespaces;
use super::super::shop::Shop;

const FILE: &str = "deploy/bench.Dockerfile";
/// As in the image of the server.
const USER: &str = "65532";
/// Folders that the base image brings, which here are this machine's.
const BASE_FOLDERS: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// The recipe of the image.
struct Recipe {
    /// Images that the stages begin with.
    bases: Vec<String>,
    /// Files that the last stage takes from an earlier one, and those of the workspace, with their places.
    built: Vec<(String, String)>,
    copied: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    entrypoint: Vec<String>,
    command: Vec<String>,
}

impl Recipe {
    /// Parses the few instructions that the file uses; another one is an error.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut recipe = Self {
            bases: Vec::new(),
            built: Vec::new(),
            copied: Vec::new(),
            environment: Vec::new(),
            entrypoint: Vec::new(),
            command: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (instruction, value) = line.split_once(' ').with_context(|| line.to_owned())?;
            let pair = |text: &str, by: char| {
                let pair = text.split_once(by).with_context(|| line.to_owned());
                pair.map(|(one, other)| (one.to_owned(), other.to_owned()))
            };
            match instruction {
                "FROM" => {
                    recipe.bases.push(value.split(' ').next().unwrap_or_default().to_owned());
                    recipe.copied.clear();
                    recipe.environment.clear();
                }
                "COPY" => match value.strip_prefix("--from=build ") {
                    Some(value) => recipe.built.push(pair(value, ' ')?),
                    None => recipe.copied.push(pair(value, ' ')?),
                },
                "ENV" => recipe.environment.push(pair(value, '=')?),
                "ENTRYPOINT" => recipe.entrypoint = serde_json::from_str(value)?,
                "CMD" => recipe.command = serde_json::from_str(value)?,
                "WORKDIR" | "RUN" if recipe.bases.len() == 1 => {}
                _ => bail!("unknown instruction {instruction} in {FILE}"),
            }
        }
        Ok(recipe)
    }

    /// The Debian release that the last stage is of.
    fn release(&self) -> anyhow::Result<&str> {
        let base = self.bases.last().context("no base image")?;
        base.strip_prefix("debian:").and_then(|tag| tag.strip_suffix("-slim")).with_context(|| base.clone())
    }
}

/// Makes the root file system of the image with `program` in place of its first stage, and runs it.
pub(super) fn make(shop: &Shop, program: &Path, record: &mut Record) -> anyhow::Result<()> {
    let recipe = Recipe::parse(&std::fs::read_to_string(shop.root.join(FILE)).context(FILE)?)?;
    let here = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let release = recipe.release()?;
    if !here.lines().any(|line| line == format!("VERSION_CODENAME={release}")) {
        record.skipped(format!("{FILE}: not run: this machine is not the Debian {release} of the image"));
        return Ok(());
    }
    let root = shop.empty("bench-root")?;
    fill(&recipe, &shop.root, program, &root)?;
    match run(&recipe, &root)? {
        Ok(line) => record.done(format!("{FILE}: as user {USER} in namespaces over this machine's {release}: {line}")),
        Err(reason) => record.skipped(format!("{FILE}: not run: {reason}")),
    }
    Ok(())
}

/// Puts the image's own files into `root`, and empty folders where the base image's will be.
fn fill(recipe: &Recipe, workspace: &Path, program: &Path, root: &Path) -> anyhow::Result<()> {
    let copies = recipe.copied.iter().map(|(from, to)| (workspace.join(from), to));
    let built = recipe.built.iter().map(|(_, to)| (program.to_owned(), to));
    for (from, to) in copies.chain(built) {
        let to = root.join(to.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        std::fs::copy(&from, &to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    }
    for folder in BASE_FOLDERS {
        std::fs::create_dir_all(root.join("usr").join(folder))?;
        symlink(format!("usr/{folder}"), root.join(folder))?;
    }
    for folder in ["proc", "dev", "tmp", "results"] {
        std::fs::create_dir_all(root.join(folder))?;
    }
    Ok(())
}

/// Runs the image's entry point; the reason if it cannot be started here.
fn run(recipe: &Recipe, root: &Path) -> anyhow::Result<Result<String, String>> {
    let mut command = match namespaces(root, USER) {
        Ok(command) => command,
        Err(reason) => return Ok(Err(reason)),
    };
    for folder in BASE_FOLDERS.map(|folder| format!("/usr/{folder}")) {
        command.args(["--ro-bind-try", &folder, &folder]);
    }
    command.args(["--tmpfs", "/tmp", "--tmpfs", "/results", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]);
    for (name, value) in &recipe.environment {
        command.args(["--setenv", name, value]);
    }
    // What the image does by default takes a minute of a quiet machine; this has all of its parts in some seconds.
    let arguments = ["floor", "--quick", "--force", "--json", "--out", "/results"];
    let output = command.args(&recipe.entrypoint).args(arguments).output().context("bwrap")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(reason) = said.strip_prefix("bwrap: ") {
        return Ok(Err(format!("bwrap: {}", reason.trim())));
    }
    ensure!(output.status.success(), "{}: {}\n{said}", recipe.entrypoint.join(" "), output.status);
    let result: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON: {said}"))?;
    ensure!(result["environment"]["machine"]["cpu"].is_string(), "no result of floor: {result}");
    for setting in ["governor", "turbo off", "deep sleep"] {
        // Without /sys and the host's devices nothing can be set, and nothing may be said to be.
        ensure!(said.contains(&format!("{setting}: not visible here")), "{setting}: {said}");
    }
    ensure!(said.contains("floor.json, floor.csv and stalls.csv: /results"), "the result is not in /results: {said}");
    Ok(Ok(format!("{} {} writes /results/floor.json", recipe.entrypoint.join(" "), arguments[..2].join(" "))))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Starts `program` as the image's in `folder`.
    fn try_out(program: &Path, folder: &Path) -> anyhow::Result<Result<String, String>> {
        let workspace = crate::workspace_root();
        let recipe = Recipe::parse(&std::fs::read_to_string(workspace.join(FILE))?)?;
        fill(&recipe, &workspace, program, folder)?;
        run(&recipe, folder)
    }

    fn recipe() -> Recipe {
        Recipe::parse(&std::fs::read_to_string(crate::workspace_root().join(FILE)).unwrap()).unwrap()
    }

    #[test]
    fn the_recipe_is_of_this_workspace() {
        let (recipe, root) = (recipe(), crate::workspace_root());
        let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
        let least = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
        let compiler = if least.matches('.').count() == 1 { format!("{least}.0") } else { least.to_owned() };
        let release = recipe.release().unwrap();
        assert_eq!(recipe.bases[0], format!("rust:{compiler}-{release}"), "one compiler and one Debian");
        let text = std::fs::read_to_string(root.join(FILE)).unwrap();
        assert!(text.contains(&format!("\nENV RUSTUP_TOOLCHAIN={compiler}\n")), "rust-toolchain.toml names another");
        assert_eq!(recipe.built, [("/truetick/target/release/truetick".into(), "/usr/local/bin/truetick".into())]);
        assert!(recipe.copied.iter().all(|(from, _)| root.join(from).is_file()), "{:?}", recipe.copied);
        assert!(recipe.copied.iter().any(|(_, to)| [to.clone()] == *recipe.entrypoint), "{:?}", recipe.entrypoint);
        assert_eq!(
            (recipe.environment[0].1.as_str(), &*recipe.command),
            ("/usr/local/bin/truetick", &["why".to_owned()][..])
        );
    }

    #[test]
    fn an_instruction_that_it_does_not_know_is_an_error() {
        assert!(Recipe::parse("FROM rust AS build\nRUN true\nFROM debian:bookworm-slim\nCMD [\"why\"]\n").is_ok());
        assert!(Recipe::parse("FROM rust AS build\nFROM debian:bookworm-slim\nRUN true\n").is_err());
        assert!(Recipe::parse("FROM debian\nVOLUME /results\n").is_err());
    }

    /// With a program that answers like `floor`: the entry point finds it, changes nothing and may write its result.
    #[test]
    fn the_entry_point_runs_as_an_ordinary_user() {
        let folder = std::env::temp_dir().join(format!("truetick-bench-root-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.with_extension("sh");
        let answer = r#"{"environment":{"machine":{"cpu":"A"}}}"#;
        let script = format!(
            "#!/bin/sh\nset -e\n[ \"$(id -u)\" = {USER} ]\necho '{answer}' > /results/floor.json\n\
             cat /results/floor.json\necho 'floor.json, floor.csv and stalls.csv: /results' >&2\n"
        );
        std::fs::write(&program, script).unwrap();
        let executable = Command::new("chmod").arg("755").arg(&program).status().unwrap();
        let ran = try_out(&program, &folder);
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::remove_file(&program).unwrap();
        assert!(executable.success());
        match ran.unwrap() {
            Ok(line) => assert!(line.starts_with("/usr/local/bin/bench.sh floor"), "{line}"),
            Err(reason) => assert!(reason.contains("bwrap"), "{reason}"),
        }
    }
}
