//! Measures the decomposition of the ring's median that BENCHMARKING.md registers.
//!
//! `cargo run --release -p bench --bin decomposition -- --out FILE [--quick] [--force] [--cpus A,B]`

use anyhow::{Context as _, bail};
use bench::WhenBusy;
use bench::decomposition::{Options, ProcessPlan, run, run_process};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut out, mut cpus, mut quick, mut when_busy) = (None, None, false, WhenBusy::Refuse);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--process" => return process(arguments),
            "--quick" => quick = true,
            "--force" => when_busy = WhenBusy::Force,
            "--out" => out = Some(arguments.next().context("--out needs a file")?.into()),
            "--cpus" => {
                let pair = arguments.next().context("--cpus needs two CPUs")?;
                cpus = Some(bench::cpu_pair(&pair).map_err(anyhow::Error::msg)?);
            }
            other => bail!("unknown argument {other}"),
        }
    }
    run(&Options { quick, cpus, out: out.context("--out FILE is needed")?, when_busy })
}

/// One process of a run.
fn process(arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let numbers: Vec<u64> = arguments.map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let [number, sender, receiver, rounds, warmup, events] = numbers[..] else { bail!("--process needs six numbers") };
    let size = |number: u64| usize::try_from(number).context("a number is too large");
    let plan = ProcessPlan {
        cpus: [size(sender)?, size(receiver)?],
        rounds: size(rounds)?,
        events: (size(warmup)?, size(events)?),
    };
    run_process(number, &plan)
}
