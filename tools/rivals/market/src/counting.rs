//! Instructions of each row by each contestant: a child runs a few operations, and is stepped through where it measures.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use bench::harness::notes::Stamp;
use bench::report::{Look, Runs, TextTable};
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::gauge::Gauge;
use crate::input::Extent;
use crate::rows::{CONTESTANTS, Contestant, Field, Row};

pub(crate) const COLUMNS: [&str; 6] = ["date", "commit", "row", "contestant", "units", "instructions_per_unit"];

/// The child's last word.
const TRUE_END: &str = "the end is the true one";
/// Setting: steps of a child after which its count is given as "more than".
const STEPS_MAX: u64 = 1_500_000;

/// What a child found.
struct Counted {
    instructions: f64,
    units: u64,
    /// Whether it would have gone on.
    is_cut: bool,
}

/// Instructions between the two stops of a child, in turn.
#[derive(Default)]
struct Traces {
    steps: Vec<u64>,
    is_cut: bool,
}

/// Counts `rows`, writes the counts to `out`, and prints them.
///
/// # Errors
/// A child cannot be traced, or what it did was wrong.
pub(crate) fn run(rows: &[Row], seed: u64, stamp: &Stamp, out: &Path) -> anyhow::Result<()> {
    // Children inherit this, and with it the same addresses in every trace.
    let persona = personality::get().context("cannot read the personality")?;
    personality::set(persona | Persona::ADDR_NO_RANDOMIZE).context("cannot fix addresses")?;
    let mut table = TextTable::new(&["row", "contestant", "unit", "instructions", "truetick / it"]);
    let mut lines = Vec::new();
    for row in rows {
        let mut ours = None;
        for contestant in CONTESTANTS.into_iter().filter(|it| *it != Contestant::TruetickAgain) {
            if !contestant.takes_part(row.work) {
                continue;
            }
            let Counted { instructions, units, is_cut } = count(row, contestant, seed)
                .with_context(|| format!("cannot count {} of {}", row.name, contestant.name()))?;
            let each = instructions / units as f64;
            let (more, less) = if is_cut { ("> ", "< ") } else { ("", "") };
            let ratio = ours.map_or_else(String::new, |ours: f64| format!("{less}{:.3}", ours / each));
            ours = ours.or(Some(each));
            let each = format!("{more}{each:.1}");
            println!("{:<20} {:<15} {each:>14} a {}", row.name, contestant.name(), row.unit);
            let mut cells = [&stamp.date, &stamp.commit].map(Clone::clone).to_vec();
            cells.extend([row.name.to_owned(), contestant.name().to_owned(), units.to_string(), each.clone()]);
            lines.push(cells);
            table.push(vec![row.name.into(), contestant.name().into(), row.unit.into(), each, ratio]);
        }
    }
    let notes = [format!(
        "run {}: commit {}, seed {seed}; user instructions by single steps, of the first operations of each row",
        stamp.date, stamp.commit
    )];
    Runs::append(out, &notes, &COLUMNS, &lines)?;
    println!("\ncounts: {}", out.display());
    table.print(Look::Terminal, 3);
    Ok(())
}

fn count(row: &Row, contestant: Contestant, seed: u64) -> anyhow::Result<Counted> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut child = Command::new(program)
        .args(["traced", row.name, contestant.name(), &seed.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the child")?;
    let traces = traces(&mut child);
    // The child may be gone already; either way it must not stay.
    let _ = child.kill();
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut said)?;
    }
    let _ = child.wait();
    let Traces { steps, is_cut } = traces?;
    // The child says first of how many units, and last that the end is the true one.
    let mut lines = said.lines();
    let units = lines.next().context("the child never measured")?.parse().context("the child names no units")?;
    ensure!(is_cut || lines.next() == Some(TRUE_END), "its end is not the true one");
    // The first trace is of nothing: what the two stops cost by themselves.
    let (empty, steps) = steps.split_first().context("the child never stopped")?;
    ensure!(!steps.is_empty(), "the child measured nothing");
    let instructions: u64 = steps.iter().map(|steps| steps.saturating_sub(*empty)).sum();
    Ok(Counted { instructions: instructions as f64, units, is_cut })
}

/// Instructions between the first stop and the second, the third and the fourth, and so on until the child ends.
fn traces(child: &mut Child) -> anyhow::Result<Traces> {
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    ptrace::seize(pid, ptrace::Options::PTRACE_O_EXITKILL).context("the child cannot be traced")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(b"\n")?;
    }
    let mut traces = Traces::default();
    while let Some(signal) = stopped_by(pid)? {
        let mut pass_on = Some(signal);
        if signal == Signal::SIGSTOP {
            let steps = steps(pid)?;
            traces.steps.push(steps);
            traces.is_cut = steps >= STEPS_MAX;
            pass_on = None;
        }
        if traces.is_cut {
            break;
        }
        ptrace::cont(pid, pass_on)?;
    }
    Ok(traces)
}

fn steps(pid: Pid) -> anyhow::Result<u64> {
    let (mut steps, mut pass_on) = (0, None);
    while steps < STEPS_MAX {
        ptrace::step(pid, pass_on.take())?;
        let signal = stopped_by(pid)?.context("the child ended between its stops")?;
        if signal == Signal::SIGSTOP {
            break;
        }
        steps += 1;
        pass_on = (signal != Signal::SIGTRAP).then_some(signal);
    }
    Ok(steps)
}

/// Waits until the child stops, and returns the signal; `None` if it has ended.
fn stopped_by(pid: Pid) -> anyhow::Result<Option<Signal>> {
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, signal) => Ok(Some(signal)),
        WaitStatus::Exited(..) => Ok(None),
        status @ (WaitStatus::Signaled(..)
        | WaitStatus::PtraceEvent(..)
        | WaitStatus::PtraceSyscall(_)
        | WaitStatus::Continued(_)
        | WaitStatus::StillAlive) => bail!("the child ended early: {status:?}"),
    }
}

/// The child: a few operations of `row`, with a stop before and after what is measured. Prints of how many units.
///
/// # Errors
/// There is no such row or contestant, or the end is not the true one.
pub(crate) fn traced(row: &Row, contestant: Contestant, seed: u64) -> anyhow::Result<()> {
    let mut field = Field::new(seed, Extent::COUNTED)?;
    std::io::stdin().read_exact(&mut [0])?;
    println!("{}", field.run(row.work, contestant, &Gauge::Off)?.units);
    let gauge = Gauge::Steps;
    let nothing = gauge.begin();
    gauge.end(nothing);
    field.run(row.work, contestant, &gauge)?;
    println!("{TRUE_END}");
    Ok(())
}
