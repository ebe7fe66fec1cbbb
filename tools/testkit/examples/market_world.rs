//! Plays market worlds: `market_world A..B [--hashes] [--kept FILE]`, `market_world N [--lines]`.

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::Playing;
use testkit::market_world::{Outcome, Script, Tally, minimise, play};

const USAGE: &str = "usage: market_world SEED [--lines] | market_world FROM..TO [--hashes | --kept FILE]";
const MINIMISING_PLAYS_MAX: usize = 400;
/// Between two words about how far it is.
const PRINT_EVERY: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let played = match arguments[..] {
        [range] if range.contains("..") => seeds(range, false, None),
        [range, "--hashes"] if range.contains("..") => seeds(range, true, None),
        [range, "--kept", path] if range.contains("..") => seeds(range, false, Some(path)),
        [seed] => seed.parse().ok().map(|seed| one(seed, false)),
        [seed, "--lines"] => seed.parse().ok().map(|seed| one(seed, true)),
        _ => None,
    };
    played.unwrap_or_else(|| {
        eprintln!("{USAGE}");
        ExitCode::from(2)
    })
}

fn commit() -> String {
    std::env::var("TRUETICK_COMMIT").unwrap_or_else(|_| "unknown".to_owned())
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
    report(&script, &outcome);
    ExitCode::FAILURE
}

/// A failure: the seed, what is broken, and the fewest actions that break it.
fn report(script: &Script, outcome: &Outcome) {
    let Some(failure) = &outcome.failure else { return };
    let commit = commit();
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

/// What many seeds have come to so far.
struct Sum {
    next: u64,
    failed: u64,
    hash: u64,
    tally: Tally,
}

impl Sum {
    /// What a file holds of `range` as this commit plays it; the beginning where there is no such file.
    fn kept(path: Option<&str>, range: &str, from: u64) -> Result<Self, String> {
        let new = Self { next: from, failed: 0, hash: 0, tally: Tally::default() };
        let Some(path) = path else { return Ok(new) };
        let Ok(text) = fs::read_to_string(path) else { return Ok(new) };
        let mut words = text.split_whitespace();
        if (words.next(), words.next()) != (Some(range), Some(&commit())) {
            return Err(format!("{path} is of other seeds or of another commit: {text}"));
        }
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let numbers = numbers.ok_or_else(|| format!("{path} is damaged"))?;
        let Some((&[next, failed, hash], rest)) = numbers.split_first_chunk() else {
            return Err(format!("{path} is damaged"));
        };
        let rest = <[u64; Tally::WORDS]>::try_from(rest).map_err(|_| format!("{path} is damaged"))?;
        eprintln!("goes on with seed {next}");
        Ok(Self { next, failed, hash, tally: Tally::from_words(rest) })
    }

    fn keep(&self, path: Option<&str>, range: &str) {
        let Some(path) = path else { return };
        let words = [self.next, self.failed, self.hash].into_iter().chain(self.tally.to_words());
        let numbers: Vec<String> = words.map(|word| word.to_string()).collect();
        let temporary = format!("{path}.new");
        let text = format!("{range} {} {}\n", commit(), numbers.join(" "));
        if let Err(error) = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path)) {
            eprintln!("{path}: {error}");
        }
    }
}

fn seeds(range: &str, with_hashes: bool, path: Option<&str>) -> Option<ExitCode> {
    let (from, to) = range.split_once("..")?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    let mut sum = match Sum::kept(path, range, from) {
        Ok(sum) => sum,
        Err(reason) => {
            eprintln!("{reason}");
            return Some(ExitCode::from(2));
        }
    };
    let mut printed = Instant::now();
    while sum.next < to {
        let seed = sum.next;
        let script = Script::of(seed);
        let playing = Playing { world: "market", seed };
        let outcome = play(&script, None, false);
        drop(playing);
        sum.tally.add(&outcome.tally);
        sum.hash = sum.hash.rotate_left(1) ^ outcome.hash;
        sum.next += 1;
        if with_hashes {
            println!("seed {seed} hash {:016x}", outcome.hash);
        }
        if outcome.failure.is_some() {
            sum.failed += 1;
            report(&script, &outcome);
        }
        if printed.elapsed() > PRINT_EVERY {
            printed = Instant::now();
            sum.keep(path, range);
            eprintln!("{} of {} seeds, {} failed", sum.next - from, to - from, sum.failed);
        }
    }
    sum.keep(path, range);
    let Sum { failed, hash, tally, .. } = sum;
    println!("{} seeds, {failed} failed, hash {hash:016x}, {tally:?}", to - from);
    Some(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
