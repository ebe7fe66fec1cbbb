//! Writes a recording of a simulated venue until it has so many bytes: `lines VENUE MEGABYTES FILE`, a line a frame as
//! hftbacktest writes them. What `cargo xtask qualify audit-speed` measures.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::ExitCode;

use sim::{RecordingConfig, Venue};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match written(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn written(arguments: &[String]) -> Result<(), String> {
    let [venue, megabytes, path] = arguments else {
        return Err("usage: lines VENUE MEGABYTES FILE".to_owned());
    };
    let venue = Venue::ALL.into_iter().find(|known| format!("{known:?}") == *venue);
    let venue = venue.ok_or_else(|| format!("one of {:?}", Venue::ALL))?;
    let bytes_max = megabytes.parse::<u64>().map_err(|error| error.to_string())? * 1_000_000;
    let mut file = BufWriter::new(File::create(path).map_err(|error| format!("{path}: {error}"))?);
    let config =
        RecordingConfig { venue, seed: 1, steps: u64::MAX, start_unix_us: 1_785_542_400_000_000, step_us: 20_000 };
    let (mut bytes, mut failed) = (0, None);
    sim::record_each(&config, |frame| {
        let line = format!("{} {}\n", frame.unix_us * 1000, frame.text);
        bytes += line.len() as u64;
        failed = file.write_all(line.as_bytes()).err();
        failed.is_none() && bytes < bytes_max
    });
    failed.map_or_else(|| file.flush(), Err).map_err(|error| format!("{path}: {error}"))
}
