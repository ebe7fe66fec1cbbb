//! What the page costs while it is open: processor time of the browser and of `serve`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::soak::{HTTP, Program, processor_time};

/// Six simulated venues with 84 book updates a second each: 504 together.
const RATE: &str = "84";
/// How long each view is watched.
const WATCHED: Duration = Duration::from_secs(30);
/// Shares of a core.
const BROWSER_MAX: f64 = 0.15;
const SERVE_MAX: f64 = 0.03;
/// A book with many levels.
const BOOK: &str = "books/binance_spot/BTCUSDT";
const VIEWS: &[&str] = &["now", "relay", BOOK, "gate", "machine"];

/// Builds `truetick`, opens each view of the page in Chromium, and fails if one costs more than its bound.
pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    let built = &*Program::build(root)?;
    let folder = root.join("crates/truetick/tests/browser");
    let status = Command::new("npm").args(["ci", "--silent"]).current_dir(&folder).status().context("npm")?;
    ensure!(status.success(), "npm ci: {status}");
    let serve = ["--log-level", "error", "serve", "--turn-listen", "127.0.0.1:0", "--fault-every", "0", "--rate", RATE];
    let serve = Program::start_at(built, &serve, HTTP.parse()?)?;
    let serving = || serve.processor_time();

    let mut script = Command::new("node");
    script.current_dir(&folder).args(["cost.mjs", "/usr/bin/chromium"]);
    script.args(VIEWS.iter().map(|view| format!("http://{HTTP}/#{view}")));
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("node")?;
    let mut lines = BufReader::new(script.stdout.take().context("no output")?).lines();
    let mut go_on = script.stdin.take().context("no input")?;
    let mut next =
        || -> anyhow::Result<Value> { Ok(serde_json::from_str(&lines.next().context("the script ended")??)?) };
    let (mut said, mut above) = (Vec::new(), Vec::new());
    for view in VIEWS {
        next()?;
        let (alone, _) = shares(&serving, &|| Ok(Duration::ZERO))?;
        writeln!(go_on)?;
        let line = next()?;
        let browser = line["browser"].as_u64().context("no process")?;
        let (serving, browsing) = shares(&serving, &|| tree_time(browser))?;
        writeln!(go_on)?;
        ensure!(alone > 0.0 && browsing > 0.0, "{view}: a process that is watched used no processor time");
        let page = (serving - alone).max(0.0);
        let ladder = if *view == BOOK { line["ladder"].as_str().unwrap_or_default() } else { "" };
        let [alone_percent, page_percent, browser_percent] = [alone, page, browsing].map(|share| share * 100.0);
        let figure = format!(
            "{view}: browser {browser_percent:.1} %, serve {alone_percent:.1} % alone and {page_percent:.1} % more {ladder}"
        );
        let figure = figure.trim_end().to_owned();
        println!("{figure}");
        above.extend((browsing > BROWSER_MAX || page > SERVE_MAX).then(|| figure.clone()));
        said.push(figure);
    }
    ensure!(script.wait()?.success(), "the script failed");
    ensure!(above.is_empty(), "above 15 % in the browser or 3 % in serve: {}", above.join("; "));
    Ok(said.join("; "))
}

type Clock<'a> = dyn Fn() -> anyhow::Result<Duration> + 'a;

/// Shares of a core over [`WATCHED`].
fn shares(first: &Clock<'_>, second: &Clock<'_>) -> anyhow::Result<(f64, f64)> {
    let (before, started) = ((first()?, second()?), Instant::now());
    thread::sleep(WATCHED);
    let (after, elapsed) = ((first()?, second()?), started.elapsed().as_secs_f64());
    let share = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() / elapsed;
    Ok((share(after.0, before.0), share(after.1, before.1)))
}

/// Processor time of a process and all of its descendants that live.
fn tree_time(root: u64) -> anyhow::Result<Duration> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u64>().ok()) else { continue };
        // It may have ended.
        let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u64>().ok());
        parents.insert(process, parent.unwrap_or_default());
    }
    let is_in_tree = |process: u64| {
        let mut at = Some(process);
        std::iter::from_fn(|| {
            let here = at?;
            at = parents.get(&here).copied();
            Some(here)
        })
        .any(|it| it == root)
    };
    let times = parents.keys().filter(|process| is_in_tree(**process)).map(|process| processor_time(*process));
    Ok(times.map(Result::unwrap_or_default).sum())
}
