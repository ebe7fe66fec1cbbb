//! Plays market worlds: `market_world A..B [--hashes]`, `market_world N [--lines]`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::market_world::{Outcome, Script, Tally, minimise, play};

const USAGE: &str = "usage: market_world SEED [--lines] | market_world FROM..TO [--hashes]";
const MINIMISING_PLAYS_MAX: usize = 400;

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
    let outcome = play(&script, None, keeps_lines);
    outcome.lines.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: hash {:016x}, {:?}", outcome.hash, outcome.tally);
    if outcome.failure.is_none() {
        return ExitCode::SUCCESS;
    }
    tell(&script, &outcome);
    ExitCode::FAILURE
}

/// A failure: the seed, what is broken, and the fewest actions that break it.
fn tell(script: &Script, outcome: &Outcome) {
    let Some(failure) = &outcome.failure else { return };
    let commit = std::env::var("TRUETICK_COMMIT").unwrap_or_else(|_| "unknown".to_owned());
    let at_s = failure.at.0 as f64 / 1e9;
    println!(
        "FAILED seed {} at commit {commit}: invariant {} at {at_s} s: {}",
        script.seed, failure.invariant, failure.what
    );
    let least = minimise(script, None, failure.invariant, MINIMISING_PLAYS_MAX);
    println!("{}; {} of {} actions are enough:", script.summary(), least.actions.len(), script.actions.len());
    least.actions.iter().for_each(|action| println!("  {action}"));
    println!("again: cargo xtask sim market --seed {}", script.seed);
}

fn seeds(range: &str, with_hashes: bool) -> Option<ExitCode> {
    let (from, to) = range.split_once("..")?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    let (mut total, mut failed, mut hash, mut told) = (Tally::default(), 0_u64, 0_u64, Instant::now());
    for seed in from..to {
        let script = Script::of(seed);
        let outcome = play(&script, None, false);
        add(&mut total, &outcome.tally);
        hash = hash.rotate_left(1) ^ outcome.hash;
        if with_hashes {
            println!("seed {seed} hash {:016x}", outcome.hash);
        }
        if outcome.failure.is_some() {
            failed += 1;
            tell(&script, &outcome);
        }
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            eprintln!("{} of {} seeds, {failed} failed", seed + 1 - from, to - from);
        }
    }
    println!("{} seeds, {failed} failed, hash {hash:016x}, {total:?}", to - from);
    Some(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn add(total: &mut Tally, tally: &Tally) {
    total.virtual_s += tally.virtual_s;
    total.frames += tally.frames;
    total.faults += tally.faults;
    total.verified += tally.verified;
    total.unverified += tally.unverified;
    total.gaps += tally.gaps;
    total.resyncs += tally.resyncs;
    total.connections += tally.connections;
    total.late += tally.late;
}
