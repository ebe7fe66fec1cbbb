//! `truetick replay`: replays a recording through the whole engine, and compares the state.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use tt_journal::recording::TailFault;
use tt_journal::{ReadError, RecordingReader};

use market_feed::{Replay, Run, hash_runs};
use tt_os::progress::ProgressLine;
use tt_os::shutdown::Shutdown;
use tt_os::stdout;

/// Exit status if the file cannot be read as a recording.
const STATUS_UNREADABLE: u8 = 2;
/// Exit status if the recording contains no hash to compare.
const STATUS_NOTHING_COMPARED: u8 = 2;
/// Longest sleep between two checks for a signal.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Records between two reads of the clock.
const RECORDS_PER_LOOK: u64 = 256;

/// Flags of `truetick replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Recording to replay
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Speed: max, recorded, or a multiple of the recorded speed
    #[arg(long, value_name = "max|recorded|N", default_value = "max")]
    pace: Pace,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// Without waiting.
    Max,
    /// A multiple of the recorded speed.
    Times(f64),
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self::Max),
            "recorded" => Ok(Self::Times(1.0)),
            number => match number.parse() {
                Ok(times) if f64::is_finite(times) && times > 0.0 => Ok(Self::Times(times)),
                Ok(_) | Err(_) => Err("max, recorded, or a number above zero".to_owned()),
            },
        }
    }
}

/// Result of a replay.
struct Replayed {
    runs: Vec<Run>,
    records: u64,
    bytes: u64,
    len: u64,
    tail: Option<TailFault>,
    seconds: f64,
    is_cut_short: bool,
}

impl Replayed {
    /// Whether inputs were lost, or the file continues after its longest valid prefix.
    fn is_damaged(&self) -> bool {
        self.runs.iter().any(|run| run.lost > 0) || !matches!(self.tail, None | Some(TailFault::Torn))
    }

    /// Whether the recording contains no hash to compare.
    fn is_empty(&self) -> bool {
        self.runs.iter().all(|run| run.checkpoints == 0)
    }

    /// Whether everything matches. An incomplete last record, left by a killed recorder, is allowed.
    fn is_right(&self) -> bool {
        !self.is_empty() && self.runs.iter().all(Run::is_same) && matches!(self.tail, None | Some(TailFault::Torn))
    }
}

/// Replays a file. Status 0: every hash matches. 1: a hash differs, or the recording is damaged. 2: the file is not a
/// recording, or contains no hash to compare.
///
/// # Errors
/// The file cannot be read, its records are inconsistent, or standard output is closed.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let shown = args.file.display().to_string();
    let file = match File::open(&args.file) {
        Ok(file) => file,
        Err(error) => return Ok(unreadable(&shown, &error)),
    };
    let len = file.metadata().map_or(0, |found| found.len());
    let reader = match RecordingReader::new(BufReader::with_capacity(1 << 18, file)) {
        Ok(reader) => reader,
        Err(error) => return Ok(unreadable(&shown, &error)),
    };
    let shutdown = Shutdown::on_signals().context("cannot catch signals")?;
    let replayed = replay(reader, len, args.pace, &shutdown).with_context(|| shown.clone())?;
    let text = if args.json { format!("{}\n", as_json(&shown, &replayed)) } else { as_text(&shown, &replayed) };
    stdout::ignore_broken_pipe(stdout::print(&text).context("standard output"))?;
    Ok(match (replayed.is_right(), replayed.is_empty() && !replayed.is_damaged()) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => ExitCode::from(STATUS_NOTHING_COMPARED),
        (false, false) => ExitCode::FAILURE,
    })
}

fn unreadable(shown: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("truetick: {shown}: {error}");
    ExitCode::from(STATUS_UNREADABLE)
}

fn replay(
    mut reader: RecordingReader<BufReader<File>>,
    len: u64,
    pace: Pace,
    shutdown: &Shutdown,
) -> anyhow::Result<Replayed> {
    let started = Instant::now();
    let mut replay = Replay::default();
    let mut progress = ProgressLine::new("replay");
    let mut first_ns = None;
    let mut is_cut_short = false;
    loop {
        let (records, bytes) = (reader.records(), reader.valid_bytes());
        let Some(entry) = reader.read().map_err(|error: ReadError| anyhow::anyhow!("{error}"))? else { break };
        if let Pace::Times(times) = pace {
            let since =
                Duration::from_nanos(entry.head.ts_ns.saturating_sub(*first_ns.get_or_insert(entry.head.ts_ns)));
            let due = started + since.div_f64(times);
            while let Some(left) = due.checked_duration_since(Instant::now()).filter(|_| !shutdown.is_requested()) {
                thread::sleep(left.min(SLEEP_MAX));
                progress.update(bytes, len);
            }
        }
        if records.is_multiple_of(RECORDS_PER_LOOK) {
            progress.update(bytes, len);
            if shutdown.is_requested() {
                is_cut_short = true;
                break;
            }
        }
        replay.take(&entry)?;
    }
    progress.end();
    Ok(Replayed {
        runs: replay.finish(),
        records: reader.records(),
        bytes: reader.valid_bytes(),
        len,
        tail: reader.tail(),
        seconds: started.elapsed().as_secs_f64(),
        is_cut_short,
    })
}

fn as_text(shown: &str, replayed: &Replayed) -> String {
    let mut text = String::new();
    let Replayed { records, bytes, len, seconds, .. } = replayed;
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{shown}: {records} records, {bytes} bytes in {seconds:.3} s");
    for run in &replayed.runs {
        let same = run.checkpoints - run.differing;
        let end = if run.has_ended { "" } else { "; the recording ends before the feed" };
        let _ = writeln!(
            text,
            "{:2} {:14} {:9} frames {:9} inputs  state {:016x}  books {:016x}  {same} of {} hashes match{end}",
            run.feed,
            run.venue.name(),
            run.frames,
            run.inputs,
            run.state_hash,
            run.books_hash,
            run.checkpoints,
        );
        if let Some(record) = run.first_differing {
            let _ = writeln!(text, "   first difference at record {record}");
        }
        if run.lost > 0 {
            let _ = writeln!(text, "   {} inputs were not recorded: the recorder's queue was full", run.lost);
        }
    }
    if let Some(tail) = replayed.tail {
        let _ = writeln!(text, "ends at byte {bytes} of {len}: {}", tail.text());
    }
    if replayed.is_cut_short {
        let _ = writeln!(text, "ended by a signal");
    }
    let _ = writeln!(text, "{:016x} {}", hash_runs(&replayed.runs), verdict(replayed));
    text
}

fn verdict(replayed: &Replayed) -> &'static str {
    match (replayed.is_right(), replayed.is_empty() && !replayed.is_damaged()) {
        (true, _) => "state matches",
        (false, true) => "nothing to compare: the recording contains no state hash",
        (false, false) => "ERROR: the state differs, or the recording is damaged",
    }
}

fn as_json(shown: &str, replayed: &Replayed) -> Value {
    let hex = |hash: u64| format!("{hash:016x}");
    let run = |run: &Run| {
        json!({
            "feed": run.feed, "venue": run.venue.name(), "inputs": run.inputs, "frames": run.frames,
            "state_hash": hex(run.state_hash), "books_hash": hex(run.books_hash), "checkpoints": run.checkpoints,
            "differing": run.differing, "first_differing_record": run.first_differing, "lost": run.lost,
            "has_ended": run.has_ended, "applied": run.counters.applied, "dropped": run.counters.drops_total(),
            "gaps": run.counters.gaps,
        })
    };
    json!({
        "file": shown, "records": replayed.records, "bytes": replayed.bytes, "file_bytes": replayed.len,
        "seconds": replayed.seconds, "tail": replayed.tail.map(TailFault::text), "hash": hex(hash_runs(&replayed.runs)),
        "runs": replayed.runs.iter().map(run).collect::<Vec<_>>(), "right": replayed.is_right(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_word_or_a_positive_number() {
        assert_eq!("max".parse(), Ok(Pace::Max));
        assert_eq!("recorded".parse(), Ok(Pace::Times(1.0)));
        assert_eq!("2.5".parse(), Ok(Pace::Times(2.5)));
        for text in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(text.parse::<Pace>().is_err(), "{text}");
        }
    }
}
