//! Running a program with its output in a log, and an end that cannot be missed.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Workplace;

/// No step may run longer.
const STEP_MAX: Duration = Duration::from_secs(20 * 60);
/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(20);
/// Lines of a log that are shown when its program fails.
const TAIL_LINES: usize = 40;

/// What a program came to.
pub(crate) struct Finished {
    /// `None`: it could not be started, or ran too long.
    pub(crate) status: Option<ExitStatus>,
    /// What it wrote to both outputs.
    pub(crate) output: String,
}

impl Finished {
    pub(crate) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Prints the end of the output.
    pub(crate) fn show_tail(&self) {
        let lines: Vec<&str> = self.output.lines().collect();
        for line in &lines[lines.len().saturating_sub(TAIL_LINES)..] {
            println!("      | {line}");
        }
    }
}

impl Workplace {
    /// A program that is started in the workspace's folder.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        // Backtraces would bury the message in the tail that is shown.
        command.args(arguments).current_dir(&self.root).env("RUST_BACKTRACE", "0");
        // What is drawn is drawn anew by whoever works on it; CI judges a change, not its luck.
        if std::env::var_os("CI").is_some() && std::env::var_os("PROPTEST_RNG_SEED").is_none() {
            command.env("PROPTEST_RNG_SEED", "1");
        }
        command
    }

    /// Runs `command` to its end; both outputs go to the log of `step`.
    pub(crate) fn finish(&self, step: &str, command: &mut Command) -> Finished {
        let log = self.log_path(step);
        match run(command, &log) {
            Ok(status) => {
                let bytes = std::fs::read(&log).unwrap_or_default();
                let mut output = String::from_utf8_lossy(&bytes).into_owned();
                if status.is_none() {
                    output += &format!("\nended after {} s\n", STEP_MAX.as_secs());
                }
                Finished { status, output }
            }
            Err(error) => {
                let program = command.get_program().to_string_lossy().into_owned();
                Finished { status: None, output: format!("cannot run {program}: {error}") }
            }
        }
    }

    fn log_path(&self, step: &str) -> PathBuf {
        let name: String = step.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        self.logs.join(name + ".log")
    }
}

fn run(command: &mut Command, log: &std::path::Path) -> std::io::Result<Option<ExitStatus>> {
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
