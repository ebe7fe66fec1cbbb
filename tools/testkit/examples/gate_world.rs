//! Plays gate worlds: `gate_world A..B [--hashes]`, `gate_world N [--lines]`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::Playing;
use testkit::gate_world::{Outcome, Script, Tally, minimise, play};

const USAGE: &str = "usage: gate_world SEED [--lines] | gate_world FROM..TO [--hashes]";
const MINIMISING_PLAYS_MAX: usize = 600;
/// Between two words about how far it is.
const PRINT_EVERY: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let played = match arguments[..] {
        [range] if range.contains("..") => seeds(range, false),
        [range, "--hashes"] if range.contains("..") => seeds(range, true),
        [seed] => seed.parse().ok().map(|seed| one(seed, false)),
        [seed, "--lines"] => seed.parse().ok().map(|seed| one(seed, true)),
        _ => None,
    };
    played.unwrap_or_else(|| {
        eprintln!("{USAGE}");
        ExitCode::from(2)
    })
}

fn one(seed: u64, keeps_lines: bool) -> ExitCode {
    let script = Script::of(seed);
    println!("seed {seed}: {}", script.summary());
    let outcome = play(&script, keeps_lines);
    outcome.lines.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: hash {:016x}, {:?}", outcome.hash, outcome.tally);
    if outcome.failure.is_none() {
        return ExitCode::SUCCESS;
    }
    report(&script, &outcome);
    ExitCode::FAILURE
}

/// A failure: the seed, what is broken, and the fewest actions that break it.
fn report(script: &Script, outcome: &Outcome) {
    let Some(failure) = &outcome.failure else { return };
    let commit = std::env::var("TRUETICK_COMMIT").unwrap_or_else(|_| "unknown".to_owned());
    let at_s = failure.at.0 as f64 / 1e9;
    println!(
        "FAILED seed {} at commit {commit}: invariant {} at {at_s} s: {}",
        script.seed, failure.invariant, failure.what
    );
    let least = minimise(script, failure.invariant, MINIMISING_PLAYS_MAX);
    println!("{}; {} of {} actions are enough:", script.summary(), least.actions.len(), script.actions.len());
    least.actions.iter().for_each(|action| println!("  {action}"));
    println!("again: cargo xtask sim gate --seed {}", script.seed);
}

fn seeds(range: &str, with_hashes: bool) -> Option<ExitCode> {
    let (from, to) = range.split_once("..")?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    let (mut tally, mut hash, mut failed) = (Tally::default(), 0_u64, 0_u64);
    let mut printed = Instant::now();
    for seed in from..to {
        let script = Script::of(seed);
        let playing = Playing { world: "gate", seed };
        let outcome = play(&script, false);
        drop(playing);
        tally.add(&outcome.tally);
        hash = hash.rotate_left(1) ^ outcome.hash;
        if with_hashes {
            println!("seed {seed} hash {:016x}", outcome.hash);
        }
        if outcome.failure.is_some() {
            failed += 1;
            report(&script, &outcome);
        }
        if printed.elapsed() > PRINT_EVERY {
            printed = Instant::now();
            eprintln!("{} of {} seeds, {failed} failed", seed + 1 - from, to - from);
        }
    }
    println!("{} seeds, {failed} failed, hash {hash:016x}, {tally:?}", to - from);
    Some(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
