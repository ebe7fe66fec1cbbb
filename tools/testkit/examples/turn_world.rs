//! Plays TURN worlds: `turn_world A..B [--hashes]`, `turn_world N [--lines]`, `turn_world --speed CLIENTS SECONDS`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::Playing;
use testkit::turn_world::{Outcome, Script, Size, Tally, Telling, minimise, play};

const USAGE: &str =
    "usage: turn_world SEED [--lines] | turn_world FROM..TO [--hashes] | turn_world --speed CLIENTS SECONDS";
const MINIMISING_PLAYS_MAX: usize = 2_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let played = match arguments[..] {
        ["--speed", clients, seconds] => clients.parse().ok().zip(seconds.parse().ok()).map(|(c, s)| speed(c, s)),
        [range] if range.contains("..") => seeds(range, false),
        [range, "--hashes"] if range.contains("..") => seeds(range, true),
        [seed] => seed.parse().ok().map(|seed| one(seed, Telling::Hash)),
        [seed, "--lines"] => seed.parse().ok().map(|seed| one(seed, Telling::Lines)),
        _ => None,
    };
    played.unwrap_or_else(|| {
        eprintln!("{USAGE}");
        ExitCode::from(2)
    })
}

fn one(seed: u64, telling: Telling) -> ExitCode {
    let script = Script::of(seed, Size::Drawn);
    println!("seed {seed}: {}", script.summary());
    let outcome = play(&script, None, telling);
    outcome.lines.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: hash {:016x}, {:?}", outcome.hash, outcome.tally);
    match outcome.failure {
        None => ExitCode::SUCCESS,
        Some(_) => {
            report(&script, &outcome);
            ExitCode::FAILURE
        }
    }
}

/// A failure: the seed, what is broken, and the fewest actions that break it.
fn report(script: &Script, outcome: &Outcome) {
    let Some(failure) = &outcome.failure else { return };
    let at_s = failure.at.0 as f64 / 1e9;
    let commit = std::env::var("TRUETICK_COMMIT").unwrap_or_else(|_| "unknown".to_owned());
    println!(
        "FAILED seed {} at commit {commit}: invariant {} at {at_s} s: {}",
        script.seed, failure.invariant, failure.what
    );
    let least = minimise(script, None, failure.invariant, MINIMISING_PLAYS_MAX);
    println!("{} of {} actions are enough:", least.actions.len(), script.actions.len());
    least.actions.iter().for_each(|action| println!("  {action}"));
    if let Some(failure) = play(&least, None, Telling::Hash).failure {
        println!("and then: {}", failure.what);
    }
    println!("again: cargo xtask sim turn --seed {}", script.seed);
}

fn seeds(range: &str, with_hashes: bool) -> Option<ExitCode> {
    let (from, to) = range.split_once("..")?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    let (mut total, mut failed, mut hash, mut printed) = (Tally::default(), 0u64, 0u64, Instant::now());
    for seed in from..to {
        let script = Script::of(seed, Size::Drawn);
        let playing = Playing { world: "turn", seed };
        let outcome = play(&script, None, Telling::Hash);
        drop(playing);
        add(&mut total, &outcome.tally);
        hash = hash.rotate_left(1) ^ outcome.hash;
        if with_hashes {
            println!("seed {seed} hash {:016x}", outcome.hash);
        }
        if outcome.failure.is_some() {
            failed += 1;
            report(&script, &outcome);
        }
        if printed.elapsed() > Duration::from_secs(5) {
            printed = Instant::now();
            eprintln!("{} of {} seeds, {failed} failed", seed + 1 - from, to - from);
        }
    }
    println!("{} seeds, {failed} failed, hash {hash:016x}, {total:?}", to - from);
    Some(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn add(total: &mut Tally, tally: &Tally) {
    total.events += tally.events;
    total.delivered += tally.delivered;
    total.relayed += tally.relayed;
    total.granted += tally.granted;
    total.refused += tally.refused;
    total.handed_over += tally.handed_over;
    total.reached += tally.reached;
    total.excused += tally.excused;
    total.virtual_s += tally.virtual_s;
}

/// Virtual seconds for a second of a core, without faults.
fn speed(clients: u32, duration_s: u64) -> ExitCode {
    let script = Script::of(1, Size::Calm { clients, duration_s });
    let started_s = cpu_s();
    let outcome = play(&script, None, Telling::Hash);
    let spent_s = cpu_s() - started_s;
    println!(
        "{clients} clients, {duration_s} virtual s in {spent_s:.3} s of CPU time: {:.0} virtual s a second, {:?}",
        duration_s as f64 / spent_s,
        outcome.tally
    );
    match outcome.failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("FAILED {failure:?}");
            ExitCode::FAILURE
        }
    }
}

/// CPU time of this thread in seconds, from the kernel.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel reports CPU time");
    let spent_ns: f64 = text.split(' ').next().and_then(|first| first.parse().ok()).expect("nanoseconds first");
    spent_ns / 1e9
}
