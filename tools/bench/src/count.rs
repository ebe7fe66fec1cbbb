//! Instructions of one operation, counted by single-stepping a child: the same on every run, whatever the neighbours do.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::{Context as _, bail, ensure};
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use tt_os::stdout;

use crate::report::{Build, Counts};
use crate::rows::gate::remove_journals_of;
use crate::rows::registry;

/// A count may be this much above the kept one.
const GROWTH_MAX: f64 = 0.03;
/// Operations of the longer of two traces at first; the shorter has half of them.
const ITERATIONS: u64 = 64;
/// Where one run has so many that both traces have one run.
const ITERATIONS_MAX: u64 = 1_024;

/// Returns the arguments that make this program call [`run_traced`] with a row and a number of operations.
pub type TraceeArguments = fn(row: &str, iterations: u64) -> Vec<String>;

/// Options of `truetick bench count`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only rows whose name contains this text.
    pub row: Option<String>,
    /// Folder of the kept counts to compare with.
    pub check: Option<PathBuf>,
    /// Folder to write the counts into.
    pub write: Option<PathBuf>,
    /// The build that is counted.
    pub build: Build,
    /// Arguments of the traced child.
    pub tracee: TraceeArguments,
}

/// Counts the selected rows, prints the counts, and compares or writes them.
///
/// # Errors
/// No row matches, a count grew, the child cannot be traced, or the file cannot be read or written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let entries = registry::named(options.row.as_deref())?;
    ensure!(options.build.profile == "release", "counting needs a release build: cargo run --release -- bench count");
    let class = cpu_class();
    let rustc = options.build.rustc.clone();
    stdout::write(&format!("CPU class {class}, {rustc}\n"));
    let kept = options.check.as_ref().map(|folder| Counts::read(folder, &class)).transpose()?.flatten();
    let kept = match kept {
        Some(kept) if kept.rustc == rustc => Some(kept),
        Some(kept) => {
            stdout::write(&format!("SKIP comparison: the kept counts are of {}\n", kept.rustc));
            None
        }
        None => {
            if options.check.is_some() {
                stdout::write("SKIP comparison: no counts are kept for this CPU class\n");
                if options.write.is_none() {
                    return Ok(());
                }
            }
            None
        }
    };
    let mut counted = Counts { rustc, rows: BTreeMap::new() };
    let mut grown = Vec::new();
    let names: Vec<&str> = entries.iter().filter(|entry| entry.counted).map(|entry| entry.name).collect();
    count_all(&names, options.tracee, |name, count| {
        let before = kept.as_ref().and_then(|kept| kept.rows.get(name)).copied();
        let growth = before.map(|before| count / before - 1.0);
        let text = growth.map_or_else(String::new, |growth| format!("  {:+.1} %", growth * 100.0));
        stdout::write(&format!("{name:<30} {count:>10.1}{text}\n"));
        if growth.is_some_and(|growth| growth > GROWTH_MAX) {
            grown.push(name.to_owned());
        }
        counted.rows.insert(name.to_owned(), count);
    })?;
    if let Some(folder) = &options.write {
        stdout::write(&format!("written: {}\n", counted.keep(folder, &class)?.display()));
    }
    ensure!(grown.is_empty(), "more instructions than kept, by more than 3 %: {}", grown.join(", "));
    Ok(())
}

/// Counts `rows` on every CPU and gives each count to `done`, in the order of `rows`.
fn count_all(rows: &[&str], tracee: TraceeArguments, mut done: impl FnMut(&str, f64)) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let (sender, counts) = mpsc::channel();
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            // A child is traced by the thread that has started it.
            scope.spawn(move || {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let counted = count(row, tracee);
                    if sender.send((*row, counted)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        for row in rows {
            while !early.contains_key(row) {
                let (name, counted) = counts.recv().context("a counting thread has ended")?;
                early.insert(name, counted?);
            }
            done(row, early[row]);
        }
        Ok(())
    })
}

/// The features by which code is chosen at run time: counts compare only within a class.
fn cpu_class() -> String {
    let present = features().into_iter().filter(|(present, _)| *present).map(|(_, name)| name);
    [std::env::consts::ARCH].into_iter().chain(present).collect::<Vec<_>>().join("-")
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<(bool, &'static str)> {
    vec![
        (std::is_x86_feature_detected!("pclmulqdq"), "pclmulqdq"),
        (std::is_x86_feature_detected!("avx2"), "avx2"),
        (std::is_x86_feature_detected!("sha"), "sha"),
        (std::is_x86_feature_detected!("avx512bw"), "avx512bw"),
        (std::is_x86_feature_detected!("vpclmulqdq"), "vpclmulqdq"),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<(bool, &'static str)> {
    Vec::new()
}

/// Instructions of one operation of `row`: the difference of two traces, so that what surrounds the loop cancels out.
///
/// # Errors
/// The child cannot be traced, or ended early.
pub(crate) fn count(row: &str, tracee: TraceeArguments) -> anyhow::Result<f64> {
    // The child inherits this, and with it the same addresses in every trace.
    let persona = personality::get().context("cannot read the personality")?;
    personality::set(persona | Persona::ADDR_NO_RANDOMIZE).context("cannot fix addresses")?;
    let mut operations = ITERATIONS;
    let (mut half, mut whole) = (trace(row, operations / 2, tracee)?, trace(row, operations, tracee)?);
    // One run may have more operations than half of these.
    while whole == half && operations < ITERATIONS_MAX {
        operations *= 2;
        (half, whole) = (whole, trace(row, operations, tracee)?);
    }
    ensure!(whole > half, "{row}: {whole} instructions for {operations} operations, {half} for half of them");
    Ok((whole - half) as f64 / (operations / 2) as f64)
}

/// Steps through `iterations` operations between the child's two stops.
fn trace(row: &str, iterations: u64, tracee: TraceeArguments) -> anyhow::Result<u64> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut child = Command::new(program)
        .args(tracee(row, iterations))
        // Counts compare only on the same input: the committed recordings.
        .env_remove("TRUETICK_DATA")
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start the child")?;
    let counted = steps(&mut child);
    // The child may be gone already; either way it must not stay.
    let _ = child.kill();
    let _ = child.wait();
    remove_journals_of(child.id());
    counted.with_context(|| format!("cannot count {row}"))
}

fn steps(child: &mut Child) -> anyhow::Result<u64> {
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    ptrace::seize(pid, ptrace::Options::PTRACE_O_EXITKILL).context("the child cannot be traced")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(b"\n")?;
    }
    let mut pass_on = None;
    while stopped_by(pid)? != Signal::SIGSTOP {
        ptrace::cont(pid, None)?;
    }
    let mut steps = 0;
    loop {
        ptrace::step(pid, pass_on.take())?;
        let signal = stopped_by(pid)?;
        if signal == Signal::SIGSTOP {
            return Ok(steps);
        }
        steps += 1;
        // What is no step of ours belongs to the child.
        pass_on = (signal != Signal::SIGTRAP).then_some(signal);
    }
}

/// Waits until the child stops, and returns the signal.
fn stopped_by(pid: Pid) -> anyhow::Result<Signal> {
    let status = waitpid(pid, None)?;
    if let WaitStatus::Stopped(_, signal) = status { Ok(signal) } else { bail!("the child ended early: {status:?}") }
}

/// Prepares `row`, and stops this process before and after `iterations` operations: the traced child of [`run`].
///
/// # Errors
/// The row is not there or cannot be counted.
pub fn run_traced(row: &str, iterations: u64) -> anyhow::Result<()> {
    let mut bench = registry::make(row)?;
    // Choices by CPU feature are made, and caches of the allocator are filled.
    let per_run = bench.repeat(64).with_context(|| format!("{row} cannot be counted"))?;
    ensure!(per_run.is_power_of_two(), "{row} has {per_run} operations a run, not a power of two");
    std::io::stdin().read_exact(&mut [0])?;
    let runs = iterations.div_ceil(u64::from(per_run));
    raise(Signal::SIGSTOP)?;
    bench.repeat(runs);
    raise(Signal::SIGSTOP)?;
    Ok(())
}
