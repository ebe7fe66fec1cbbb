//! The tests of the workspace, built once, and run one binary at a time.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use super::Workplace;
use super::tally::Tally;

/// Which suite a test binary belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The tests inside of libraries and programs.
    Unit,
    /// The tests beside them.
    Integration,
    /// Whole binary with clients that others wrote.
    Clients,
    /// Whole binary with a client in Go.
    Go,
    /// Whole binary with a browser at its page.
    Browser,
    /// About machine code: says nothing in a build that is not optimised.
    Optimised,
}

/// One built test binary.
#[derive(Debug, PartialEq)]
struct Binary {
    package: String,
    target: String,
    group: Group,
    executable: PathBuf,
    /// The package's folder, where cargo would start it.
    folder: PathBuf,
}

/// All built test binaries.
pub(crate) struct Binaries {
    binaries: Vec<Binary>,
}

/// Package, what is in the name of its integration test, and the suite that runs it.
const GROUPS: &[(&str, &str, Group)] = &[
    ("truetick", "client", Group::Clients),
    ("truetick", "pion", Group::Go),
    ("truetick", "page", Group::Browser),
    ("truetick", "browser", Group::Browser),
    ("tt-risk", "branches", Group::Optimised),
];

impl Binaries {
    /// Builds every test with the features of the whole workspace, so that no dependency is built twice.
    pub(crate) fn build(workplace: &Workplace) -> Result<Self, String> {
        let started = Instant::now();
        let arguments = ["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"];
        let finished = workplace.finish("build-tests", &mut workplace.command("cargo", &arguments));
        println!("      build of the tests {:.1} s", started.elapsed().as_secs_f64());
        if !finished.succeeded() {
            finished.show_tail();
            return Err("the tests do not build".to_owned());
        }
        let mut binaries: Vec<Binary> = finished.output.lines().filter_map(of_message).collect();
        binaries.sort_by(|a, b| (&a.package, &a.target).cmp(&(&b.package, &b.target)));
        Ok(Self { binaries })
    }

    /// Runs the binaries of `group`, one after the other.
    pub(crate) fn run(&self, workplace: &Workplace, group: Group) -> Tally {
        let mut tally = Tally::default();
        for binary in self.binaries.iter().filter(|binary| binary.group == group) {
            let started = Instant::now();
            let ran = run_binary(workplace, binary);
            if ran != Tally::default() {
                let elapsed = started.elapsed().as_secs_f64();
                println!("      {} {}: {}, {elapsed:.1} s", binary.package, binary.target, ran.summary());
            }
            tally.add(ran);
        }
        tally
    }
}

fn run_binary(workplace: &Workplace, binary: &Binary) -> Tally {
    let origin = format!("{} {}", binary.package, binary.target);
    let mut command = workplace.command(&binary.executable.to_string_lossy(), &["--show-output"]);
    command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
    let finished = workplace.finish(&format!("test {origin}"), &mut command);
    let mut tally = Tally::of_libtest(&finished.output, &origin);
    if !finished.succeeded() {
        finished.show_tail();
        if tally.failed == 0 {
            // It ended without libtest's word on it: crashed, or ran too long.
            tally.add(Tally::fail(origin));
        }
    }
    tally
}

/// The binary that one of cargo's messages tells of.
fn of_message(line: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = folder.file_name()?.to_str()?.to_owned();
    let name = message["target"]["name"].as_str()?.to_owned();
    let is_integration = message["target"]["kind"][0] == "test";
    let group = if is_integration { integration_group(&package, &name) } else { Group::Unit };
    let target = if is_integration { format!("tests/{name}") } else { name };
    Some(Binary { package, target, group, executable, folder })
}

fn integration_group(package: &str, name: &str) -> Group {
    let named = GROUPS.iter().find(|(of, part, _)| package == *of && name.contains(part));
    named.map_or(Group::Integration, |(_, _, group)| *group)
}

/// Builds the program as `cargo run --release` would.
pub(crate) fn build_program(workplace: &Workplace) -> Result<PathBuf, String> {
    let started = Instant::now();
    let finished =
        workplace.finish("build-program", &mut workplace.command("cargo", &["build", "--release", "--locked"]));
    println!("      build of the program {:.1} s", started.elapsed().as_secs_f64());
    if !finished.succeeded() {
        finished.show_tail();
        return Err("the program does not build".to_owned());
    }
    Ok(workplace.root.join("target/release/truetick"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, name: &str, is_test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact", "manifest_path": "/x/crates/truetick/Cargo.toml", "executable": "/x/t",
            "target": {"kind": [kind], "name": name}, "profile": {"test": is_test},
        })
        .to_string()
    }

    #[test]
    fn each_binary_finds_its_suite() {
        let group = |kind, name| of_message(&message(kind, name, true)).map(|binary| binary.group);
        assert_eq!(group("lib", "truetick"), Some(Group::Unit));
        assert_eq!(group("test", "cli"), Some(Group::Integration));
        assert_eq!(group("test", "turn_clients"), Some(Group::Clients));
        assert_eq!(group("test", "page"), Some(Group::Browser));
    }

    #[test]
    fn what_is_no_test_is_not_run() {
        assert_eq!(of_message(&message("bin", "truetick", false)), None);
        assert_eq!(of_message("warning: words"), None);
    }
}
