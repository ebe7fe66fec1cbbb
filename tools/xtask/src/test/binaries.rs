//! The tests of the workspace, built once, and run several binaries at a time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::process::Steps;
use crate::tally::Tally;

/// Which suite a test belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The tests inside of libraries and programs.
    Unit,
    /// The tests in `tests` folders.
    Integration,
    /// The whole program with clients that others wrote.
    Clients,
    /// The whole program with a client in Go.
    Go,
    /// The whole program with a browser at its page.
    Browser,
    /// Recipes of the documents, followed: they build crates of their own.
    Recipes,
    /// About machine code: these need an optimised build.
    Optimised,
    /// They judge the machine, not the code.
    Machine,
}

/// How many binaries run at a time: most tests wait.
const AT_A_TIME: usize = 4;

/// A module of a test binary that does not run with the rest of it.
struct Module {
    package: &'static str,
    target: &'static str,
    /// The beginning of its tests' names; empty for the whole binary.
    path: &'static str,
    group: Group,
    /// Nothing else may run at the same time.
    alone: bool,
}

const fn module(package: &'static str, target: &'static str, path: &'static str, group: Group) -> Module {
    Module { package, target, path, group, alone: false }
}

const fn alone(module: Module) -> Module {
    Module { alone: true, ..module }
}

/// An inner module comes before its outer one.
const MODULES: &[Module] = &[
    module("truetick", "tests/turn", "clients::pion::", Group::Go),
    module("truetick", "tests/turn", "clients::", Group::Clients),
    alone(module("truetick", "tests/turn", "floods::", Group::Integration)),
    alone(module("truetick", "tests/turn", "streams::bounds::a_flood_of_connections_lets", Group::Machine)),
    alone(module("truetick", "tests/turn", "streams::bounds::a_flood", Group::Integration)),
    alone(module("truetick", "tests/turn", "handshake_loops::", Group::Machine)),
    alone(module("truetick", "tests/turn", "spray::", Group::Machine)),
    alone(module("truetick", "tests/turn", "user_files::", Group::Machine)),
    alone(module("truetick", "tests/turn", "reload_calls::", Group::Machine)),
    module("truetick", "tests/turn", "operators::kernel_path::page::", Group::Browser),
    module("truetick", "tests/program", "page::", Group::Browser),
    alone(module("truetick", "tests/program", "floor::", Group::Machine)),
    alone(module("truetick", "tests/program", "busy_machine::", Group::Integration)),
    alone(module("truetick", "tests/program", "tutorials::the_latency", Group::Integration)),
    module("testkit", "tests/add_a_venue", "", Group::Recipes),
    module("tt-risk", "tests/branches", "", Group::Optimised),
    alone(module("bench", "bench", "loops::delay::tests::a_longer_delay", Group::Machine)),
    alone(module("bench", "bench", "machine::clock_source::tests::every_clock", Group::Machine)),
    alone(module("bench", "bench", "machine::kernel::tests::what_contains", Group::Machine)),
    alone(module("bench", "tests/planted", "", Group::Machine)),
    module("tt-turn", "tests/engine", "timing::", Group::Optimised),
    module("tt-market", "tests/cases", "speed::", Group::Optimised),
];

/// One built test binary.
#[derive(Debug, PartialEq)]
struct Binary {
    package: String,
    target: String,
    is_integration: bool,
    executable: PathBuf,
    /// The package's folder, where cargo would start it.
    folder: PathBuf,
}

/// A binary with the arguments that choose its tests.
#[derive(Debug)]
struct Job<'a> {
    binary: &'a Binary,
    arguments: Vec<&'static str>,
    alone: bool,
}

/// All built test binaries.
pub(crate) struct Binaries {
    binaries: Vec<Binary>,
}

impl Binaries {
    /// Builds every test with the features of the whole workspace, so that no dependency is built twice.
    pub(crate) fn build(steps: &Steps) -> Result<Self, String> {
        let started = Instant::now();
        let arguments = ["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"];
        let finished = steps.finish("build-tests", &mut steps.command("cargo", &arguments));
        println!("      build of the tests {:.1} s", started.elapsed().as_secs_f64());
        if !finished.succeeded() {
            finished.show_tail();
            return Err("the tests do not build".to_owned());
        }
        let mut binaries: Vec<Binary> = finished.output.lines().filter_map(of_message).collect();
        // Those of the program take longest, and so begin first.
        binaries.sort_by(|a, b| {
            (a.package != "truetick", &a.package, &a.target).cmp(&(b.package != "truetick", &b.package, &b.target))
        });
        Ok(Self { binaries })
    }

    /// Returns the executable of a test binary, and the folder where cargo would start it.
    pub(super) fn find(&self, package: &str, target: &str) -> Option<(&Path, &Path)> {
        let is_it = |binary: &&Binary| binary.package == package && binary.target == target;
        self.binaries.iter().find(is_it).map(|binary| (binary.executable.as_path(), binary.folder.as_path()))
    }

    /// Runs the tests of `group`: several binaries at a time, then those that must be alone. Tests of the whole program
    /// use `program`, or the one of their build.
    pub(crate) fn run(&self, steps: &Steps, group: Group, program: Option<&Path>) -> Tally {
        let jobs = self.binaries.iter().flat_map(|binary| binary.jobs(group));
        let (single, shared): (Vec<Job>, VecDeque<Job>) = {
            let (single, shared): (Vec<Job>, Vec<Job>) = jobs.partition(|job| job.alone);
            (single, shared.into())
        };
        let (queue, total) = (Mutex::new(shared), Mutex::new(Tally::default()));
        let lock = |job: Job| {
            let ran = job.run(steps, group, program);
            total.lock().unwrap_or_else(PoisonError::into_inner).add(ran);
        };
        thread::scope(|scope| {
            for _ in 0..AT_A_TIME {
                scope.spawn(|| {
                    while let Some(job) = { queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() } {
                        lock(job);
                    }
                });
            }
        });
        single.into_iter().for_each(lock);
        total.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Binary {
    /// Returns the commands for the tests of `group`.
    fn jobs(&self, group: Group) -> Vec<Job<'_>> {
        let modules = MODULES.iter().filter(|module| self.package == module.package && self.target == module.target);
        let (mut jobs, mut before) = (Vec::new(), Vec::new());
        for module in modules {
            if module.group == group {
                let inner: &[&str] = &before;
                let skipped =
                    inner.iter().filter(|inner| inner.starts_with(module.path)).flat_map(|inner| ["--skip", *inner]);
                jobs.push(Job {
                    binary: self,
                    arguments: [module.path].into_iter().chain(skipped).collect(),
                    alone: module.alone,
                });
            }
            before.push(module.path);
        }
        let rest = if self.is_integration { Group::Integration } else { Group::Unit };
        if rest == group && !before.contains(&"") {
            let arguments = before.iter().flat_map(|module| ["--skip", *module]).collect();
            jobs.insert(0, Job { binary: self, arguments, alone: false });
        }
        jobs
    }
}

impl Job<'_> {
    /// How many of its tests run at a time; `None`: one for each CPU.
    fn threads(&self, group: Group) -> Option<&'static str> {
        match group {
            // They wait for clients and databases.
            Group::Clients => Some("5"),
            // They wait for datagrams and time-outs.
            Group::Integration if self.binary.target == "tests/turn" && !self.alone => Some("4"),
            Group::Unit
            | Group::Integration
            | Group::Go
            | Group::Browser
            | Group::Recipes
            | Group::Optimised
            | Group::Machine => None,
        }
    }

    fn run(&self, steps: &Steps, group: Group, program: Option<&Path>) -> Tally {
        let (binary, started) = (self.binary, Instant::now());
        let origin = format!("{} {}", binary.package, binary.target);
        let module = self.arguments.first().filter(|first| **first != "--skip").copied().unwrap_or_default();
        let mut command = steps.command(&binary.executable.to_string_lossy(), &self.arguments);
        command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
        command.args(self.threads(group).into_iter().flat_map(|threads| ["--test-threads", threads]));
        command.envs(program.map(|program| ("TRUETICK_PROGRAM", program)));
        let finished = steps.finish(&format!("test {origin} {module}"), &mut command);
        let mut tally = Tally::of_libtest(&finished.output, &finished.skips, &origin);
        let mut report = String::new();
        if !finished.succeeded() {
            report = finished.tail();
            if tally.failed == 0 {
                // libtest printed no result: the process crashed or ran too long.
                tally.add(Tally::fail(origin.clone()));
            }
        }
        if tally != Tally::default() {
            let elapsed = started.elapsed().as_secs_f64();
            println!("{report}      {origin} {module}: {}, {elapsed:.1} s", tally.summary());
        }
        tally
    }
}

/// The binary of one of cargo's messages.
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
    let target = if is_integration { format!("tests/{name}") } else { name };
    Some(Binary { package, target, is_integration, executable, folder })
}

/// Builds the program as `cargo run --release` would.
pub(crate) fn build_program(steps: &Steps) -> Result<PathBuf, String> {
    let started = Instant::now();
    let arguments = ["build", "--release", "--locked", "--package", "truetick"];
    let finished = steps.finish("build-program", &mut steps.command("cargo", &arguments));
    println!("      build of the program {:.1} s", started.elapsed().as_secs_f64());
    if !finished.succeeded() {
        finished.show_tail();
        return Err("the program does not build".to_owned());
    }
    Ok(steps.root.join("target/release/truetick"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(package: &str, kind: &str, name: &str, is_test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact", "manifest_path": format!("/x/{package}/Cargo.toml"), "executable": "/x/t",
            "target": {"kind": [kind], "name": name}, "profile": {"test": is_test},
        })
        .to_string()
    }

    fn jobs(kind: &str, name: &str, group: Group) -> Vec<(String, bool)> {
        let binary = of_message(&message("truetick", kind, name, true)).unwrap();
        binary.jobs(group).into_iter().map(|job| (job.arguments.join(" "), job.alone)).collect()
    }

    #[test]
    fn each_module_runs_in_its_suite() {
        let one = |arguments: &str| vec![(arguments.to_owned(), false)];
        assert_eq!(jobs("lib", "truetick", Group::Unit), one(""));
        assert_eq!(jobs("lib", "truetick", Group::Integration), []);
        let skipped = "--skip page:: --skip floor:: --skip busy_machine:: --skip tutorials::the_latency";
        let jobs_of_program = [(skipped, false), ("busy_machine::", true), ("tutorials::the_latency", true)];
        let jobs_of_program = jobs_of_program.map(|(arguments, alone)| (arguments.to_owned(), alone));
        assert_eq!(jobs("test", "program", Group::Integration), jobs_of_program);
        assert_eq!(jobs("test", "program", Group::Browser), one("page::"));
        assert_eq!(jobs("test", "program", Group::Machine), [("floor::".to_owned(), true)]);
        assert_eq!(jobs("test", "turn", Group::Clients), one("clients:: --skip clients::pion::"));
        assert_eq!(jobs("test", "turn", Group::Go), one("clients::pion::"));
        let all = jobs("test", "turn", Group::Integration);
        assert_eq!(
            all[0].0,
            "--skip clients::pion:: --skip clients:: --skip floods:: --skip streams::bounds::a_flood_of_connections_lets --skip streams::bounds::a_flood --skip handshake_loops:: --skip spray:: --skip user_files:: --skip reload_calls:: --skip operators::kernel_path::page::"
        );
        let alone = ["floods::", "streams::bounds::a_flood --skip streams::bounds::a_flood_of_connections_lets"];
        assert_eq!(all[1..], alone.map(|path| (path.to_owned(), true)));
        let branches = of_message(&message("tt-risk", "test", "branches", true)).unwrap();
        assert_eq!((branches.jobs(Group::Optimised).len(), branches.jobs(Group::Integration).len()), (1, 0));
    }

    #[test]
    fn what_is_no_test_is_not_run() {
        assert_eq!(of_message(&message("truetick", "bin", "truetick", false)), None);
        assert_eq!(of_message("warning: words"), None);
    }
}
