//! Running a program with its output in a log and a limit on its time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// No step may run longer.
const STEP_MAX: Duration = Duration::from_secs(20 * 60);
/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(20);
/// Lines of a log that are shown when its program fails.
const TAIL_LINES: usize = 40;

/// Starts the programs of the suites; each step has a log.
pub(crate) struct Steps {
    pub(crate) root: PathBuf,
    logs: PathBuf,
}

/// The result of a program.
pub(crate) struct Finished {
    /// `None`: it could not be started, or ran too long.
    pub(crate) status: Option<ExitStatus>,
    /// Its output on both streams.
    pub(crate) output: String,
    /// Skips recorded by its tests.
    pub(crate) skips: String,
}

impl Finished {
    pub(crate) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The end of the output.
    pub(crate) fn tail(&self) -> String {
        // cargo's messages for programs are no text to read.
        let lines: Vec<&str> = self.output.lines().filter(|line| !line.starts_with('{')).collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].iter();
        tail.map(|line| format!("      | {line}\n")).collect()
    }

    /// Prints the end of the output.
    pub(crate) fn show_tail(&self) {
        print!("{}", self.tail());
    }
}

impl Steps {
    pub(crate) fn new(root: PathBuf) -> anyhow::Result<Self> {
        let logs = root.join("target/xtask");
        std::fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
        Ok(Self { root, logs })
    }

    /// A program that is started in the workspace's folder.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        // Backtraces would bury the message in the tail that is shown.
        command.args(arguments).current_dir(&self.root).env("RUST_BACKTRACE", "0");
        // CI builds once: what would make the next build faster is several gigabytes.
        if crate::in_ci() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
            command.env("CARGO_INCREMENTAL", "0");
        }
        // CI judges a change: its random inputs are the same each time. `cargo xtask explore` draws new ones.
        if crate::in_ci() && std::env::var_os("PROPTEST_RNG_SEED").is_none() {
            command.env("PROPTEST_RNG_SEED", "1");
        }
        command
    }

    /// Runs `command` to its end; both outputs go to the log of `step`.
    pub(crate) fn finish(&self, step: &str, command: &mut Command) -> Finished {
        let (log, skips) = (self.file_of(step, "log"), self.file_of(step, "skips"));
        let _ = std::fs::remove_file(&skips);
        match run(command.env("TRUETICK_SKIPS", &skips), &log) {
            Ok(status) => {
                let bytes = std::fs::read(&log).unwrap_or_default();
                let mut output = String::from_utf8_lossy(&bytes).into_owned();
                if status.is_none() {
                    output += &format!("\nended after {} s\n", STEP_MAX.as_secs());
                }
                Finished { status, output, skips: std::fs::read_to_string(&skips).unwrap_or_default() }
            }
            Err(error) => {
                let program = command.get_program().to_string_lossy().into_owned();
                let output = format!("cannot run {program}: {error}");
                Finished { status: None, output, skips: String::new() }
            }
        }
    }

    fn file_of(&self, step: &str, kind: &str) -> PathBuf {
        let name: String = step.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        self.logs.join(format!("{name}.{kind}"))
    }
}

fn run(command: &mut Command, log: &Path) -> std::io::Result<Option<ExitStatus>> {
    let output = File::create(log)?;
    let mut child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()?;
    let deadline = Instant::now() + STEP_MAX;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}
