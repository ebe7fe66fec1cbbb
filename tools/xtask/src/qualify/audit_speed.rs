//! How fast `truetick audit` reads, on one core, as lines of CSV.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::sim;

/// Each file is audited so often.
const RUNS: usize = 5;
/// Student's t of [`RUNS`] - 1 degrees of freedom, two-sided, 95 %.
const T: f64 = 2.776;
/// Bytes of a simulated recording, in millions.
const MEGABYTES: &str = "1000";
/// Captures that are long enough to be timed.
const CAPTURES: &[&str] = &[
    "binance/usdm_btcusdt_20240808.gz",
    "binance/coinm_btcusd_perp_20240808.gz",
    "coinbase/exchange_2021.ws",
    "kraken/v2_btcusd_depth25.cbcap",
];

/// Makes recordings of [`MEGABYTES`], audits them and the captures of `TRUETICK_DATA`, and prints the times.
pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    cargo(root, &["build", "--release", "--locked", "--package", "truetick", "--bin", "truetick"])?;
    cargo(root, &["build", "--release", "--locked", "--package", "sim", "--example", "lines"])?;
    let folder = root.join("target/audit-speed");
    fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    for venue in ["BinanceUsdm", "Kraken"] {
        let path = folder.join(format!("{venue}.lines"));
        let made =
            Command::new(root.join("target/release/examples/lines")).args([venue, MEGABYTES]).arg(&path).status();
        ensure!(made.context("lines")?.success(), "{} was not written", path.display());
        files.push((format!("simulated {venue}, {MEGABYTES} MB"), path));
    }
    if let Some(data) = std::env::var_os("TRUETICK_DATA") {
        files.extend(CAPTURES.iter().map(|name| ((*name).to_owned(), Path::new(&data).join(name))));
    }
    head(root);
    let mut is_fast = true;
    for (name, path) in files {
        let mut seconds = Vec::with_capacity(RUNS);
        for run in 0..RUNS {
            let Some(figures) = audited(root, &path)? else {
                println!("{name},{run},,,,,unreadable");
                break;
            };
            let Figures { bytes, records, wall_s, cpu_s, right } = figures;
            println!("{name},{run},{bytes},{records},{wall_s:.4},{cpu_s:.2},{right}");
            seconds.push(wall_s * 1e9 / bytes as f64);
        }
        if seconds.len() < RUNS {
            continue;
        }
        let mean = seconds.iter().sum::<f64>() / RUNS as f64;
        let variance = seconds.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
        let half = T * (variance / RUNS as f64).sqrt();
        println!("# {name}: {mean:.2} s a GB on one core, 95 % from {:.2} to {:.2}", mean - half, mean + half);
        is_fast &= mean + half < 60.0;
    }
    Ok(format!("aim of 1 GB in less than 60 s on one core: {}", if is_fast { "reached" } else { "missed" }))
}

/// The machine, the compiler, the date.
fn head(root: &Path) {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok();
        output.map_or_else(|| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    println!("# run {}: commit {}", said("date", &["-u", "+%FT%TZ"]), sim::commit(root));
    println!(
        "# machine: {}, {cpus} CPUs, kernel {}, load before {}",
        model.trim_start_matches([' ', '\t', ':']),
        said("uname", &["-r"]),
        read("/proc/loadavg").trim()
    );
    println!(
        "# {}, profile release; truetick audit --json FILE, pinned to one CPU, {RUNS} runs a file, file cached",
        said("rustc", &["-V"])
    );
    println!("file,run,frame_bytes,records,wall_s,cpu_s,right");
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("cargo").args(arguments).current_dir(root).status().context("cargo")?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

/// The result of one audit.
struct Figures {
    bytes: u64,
    records: u64,
    wall_s: f64,
    cpu_s: f64,
    right: bool,
}

/// Audits `path` on one CPU; `None` if the format is unknown.
fn audited(root: &Path, path: &PathBuf) -> anyhow::Result<Option<Figures>> {
    let before = children_s()?;
    let output = Command::new("taskset")
        .args(["-c", "1"])
        .arg(root.join("target/release/truetick"))
        .args(["audit", "--json"])
        .arg(path)
        .output()
        .context("taskset (util-linux)")?;
    let cpu_s = children_s()? - before;
    let value: Value = serde_json::from_slice(&output.stdout).context("what the audit printed")?;
    if value.get("unreadable").is_some() {
        return Ok(None);
    }
    let feeds = value["feeds"].as_array().context("feeds")?;
    let bytes = feeds.iter().filter_map(|feed| feed["frame_bytes"].as_u64()).sum();
    let (Some(records), Some(wall_s), Some(right)) =
        (value["records"].as_u64(), value["seconds"].as_f64(), value["right"].as_bool())
    else {
        bail!("records, seconds or right is missing");
    };
    Ok(Some(Figures { bytes, records, wall_s, cpu_s, right }))
}

/// Processor time of the children that have ended, in seconds (`proc_pid_stat(5)`: fields 16 and 17, hundredths).
fn children_s() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let hundredths: u64 =
        fields.get(13..15).context("fields")?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(hundredths as f64 / 100.0)
}
