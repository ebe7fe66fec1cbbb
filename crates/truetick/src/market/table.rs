//! The live table of `truetick market`, and the same as JSON lines.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use market_feed::{Feeds, Instrument, Reader, Times, Unreached, account_counts, ingest_rows, level_text};
use serde_json::json;
use tt_market::Proof;
use tt_market::board::TopOfBook;
use tt_model::{InstrumentId, Nanos};

use tt_os::clock::unix_now;
use tt_os::shutdown::Shutdown;
use tt_status::market::{Account, IngestRow};
use tt_status::market_feeds::{FeedState, FollowedFeed};

/// Interval between two tables.
const EVERY: Duration = Duration::from_millis(250);

/// Samples of a message rate: two seconds.
const LOOKS: usize = 9;

/// Rows of the table; further instruments are printed as a number.
const ROWS_MAX: usize = 40;

/// A feed's reader with the number of its first instrument.
type Followed = (u32, Reader);

/// The form of what is printed.
pub(super) struct Style {
    as_json: bool,
    /// Each table takes the place of the one before: standard output is a terminal.
    redraws: bool,
    is_coloured: bool,
    /// The line above each table that takes the place of another one.
    head: String,
}

impl Style {
    /// Tables that redraw, in colour unless `NO_COLOR` is set, on a terminal; plain lines elsewhere.
    pub(super) fn new(as_json: bool, head: String) -> Self {
        let redraws = !as_json && io::stdout().is_terminal();
        let is_coloured = redraws && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { as_json, redraws, is_coloured, head }
    }

    /// The proof in ten columns: green if the book is proven, red if it was lost.
    fn proof(&self, proof: Proof) -> String {
        let (name, colour) = (proof.name(), if proof.is_verified() { 32 } else { 31 });
        let is_neutral = matches!(proof, Proof::Syncing | Proof::Unverified);
        if self.is_coloured && !is_neutral { format!("\x1b[{colour}m{name:10}\x1b[0m") } else { format!("{name:10}") }
    }

    /// `table` in the place of the one before.
    fn drawn(&self, table: &str) -> String {
        // Home, then each line with the rest of its row cleared, then everything below: nothing flickers.
        let rows = self.head.lines().chain(table.lines()).map(|line| format!("{line}\x1b[K\n"));
        format!("\x1b[H{}\x1b[J", rows.collect::<String>())
    }
}

/// Prints the state of `feeds` until the end is requested or `most` has passed; `failures` are those of other printing.
///
/// # Errors
/// Standard output is gone, or every feed is refused.
pub(super) fn show(
    feeds: &Feeds,
    shutdown: &Shutdown,
    (style, failures): (&Style, &mpsc::Receiver<io::Error>),
    most: Option<Duration>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().context("market: runtime")?;
    let mut out = io::stdout();
    let mut last = (Instant::now(), 0);
    let mut rates = Rates::new();
    loop {
        let left = most.map_or(EVERY, |most| most.saturating_sub(started.elapsed()).min(EVERY));
        let _ = runtime.block_on(async { tokio::time::timeout(left, shutdown.clone().requested()).await });
        if let Ok(error) = failures.try_recv() {
            return Err(error).context("standard output");
        }
        let readers = feeds.readers();
        if readers.is_empty() {
            all_refused(feeds)?;
        }
        let of = |(_, reader): &Followed| (0..reader.feeds_len()).map(|feed| reader.counters(feed).frames).sum::<u64>();
        let frames: u64 = readers.iter().map(of).sum();
        let rate = frames.saturating_sub(last.1) as f64 / last.0.elapsed().as_secs_f64();
        last = (Instant::now(), frames);
        rates.look(&readers);
        let now = unix_now();
        // Before a venue has answered, its failures alone are printed.
        if !readers.is_empty() {
            let text = match style {
                Style { as_json: true, .. } => lines(&readers, now, &rates),
                Style { redraws: true, .. } => style.drawn(&table(&readers, now, rate, (&rates, style))),
                Style { .. } => table(&readers, now, rate, (&rates, style)),
            };
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")?;
        }
        if shutdown.is_requested() || most.is_some_and(|most| started.elapsed() >= most) {
            return Ok(());
        }
    }
}

/// Fails where no feed can ever run.
fn all_refused(feeds: &Feeds) -> anyhow::Result<()> {
    let list = feeds.list();
    let refused = |feed: &FollowedFeed| feed.error.clone().filter(|_| feed.state == FeedState::Failed);
    match list.iter().map(refused).collect::<Option<Vec<String>>>() {
        Some(reasons) if !reasons.is_empty() => anyhow::bail!(reasons.join("; ")),
        Some(_) | None => Ok(()),
    }
}

/// Returns the line of a venue that cannot be reached yet, in the form of `show`.
pub(crate) fn connecting(unreached: &Unreached, as_json: bool) -> String {
    let Unreached { venue, url, error, wait } = unreached;
    if as_json {
        let line = json!({
            "venue": venue.name(), "url": url, "connected": false, "last_error": error,
            "retry_in_ms": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        });
        return format!("{line}\n");
    }
    format!("{:13} connecting: {error}; again in {:.1} s; {url}\n", venue.name(), wait.as_secs_f64())
}

/// Returns the line with the address of the page, in the form of `show`.
pub(super) fn served(listen: SocketAddr, as_json: bool) -> String {
    let page = format!("http://{listen}/");
    if as_json { format!("{}\n", json!({ "page": page })) } else { format!("The page: {page}\n") }
}

/// The instruments that are followed.
fn followed(reader: &Reader) -> impl Iterator<Item = &Instrument> {
    reader.instruments().iter().filter(|listed| reader.is_followed(listed.id))
}

/// Message counts of each instrument at the last samples.
struct Rates {
    looks: VecDeque<(Instant, HashMap<u32, u64>)>,
}

impl Rates {
    fn new() -> Self {
        Self { looks: VecDeque::new() }
    }

    /// Takes a sample, and drops the oldest one.
    fn look(&mut self, readers: &[Followed]) {
        let of = |(first, reader): &Followed| {
            let count = |listed: &Instrument| (first + listed.id.0, reader.messages(listed.id));
            followed(reader).map(count).collect::<Vec<_>>()
        };
        let counts = readers.iter().flat_map(of).collect();
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back((Instant::now(), counts));
    }

    /// Messages per second of an instrument.
    fn of(&self, instrument: u32) -> f64 {
        let (Some((then, before)), Some((now, after))) = (self.looks.front(), self.looks.back()) else { return 0.0 };
        let seconds = now.duration_since(*then).as_secs_f64();
        let count = |counts: &HashMap<u32, u64>| counts.get(&instrument).copied().unwrap_or(0);
        if seconds > 0.0 { count(after).saturating_sub(count(before)) as f64 / seconds } else { 0.0 }
    }
}

/// Time from the venue's timestamp to the receipt of the instrument's last frame, by both clocks: negative if the
/// venue's clock is ahead.
fn lag_ns(reader: &Reader, listed: &Instrument) -> Option<i64> {
    let depth = reader.depth(listed.id).filter(|depth| depth.ts_event.0 != 0)?;
    Some(depth.ts_recv.0.wrapping_sub(depth.ts_event.0).cast_signed())
}

/// An instrument's top of book, and price and quantity of its best bid and offer.
fn best(reader: &Reader, id: InstrumentId) -> (TopOfBook, [Option<(String, String)>; 2]) {
    reader.consistent(|list| {
        let top = reader.top_of_book(id).unwrap_or_default();
        let text = |level, listed: &Instrument| level_text(level, listed.tick_size, listed.lot_size);
        (top, [top.bid, top.ask].map(|side| side.zip(list.get(id.0 as usize)).map(|(level, of)| text(level, of))))
    })
}

fn table(readers: &[Followed], now: Nanos, frames_per_s: f64, (rates, style): (&Rates, &Style)) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{:13} {:16} {:>13} {:>13} {:10} {:>8} {:>8} {:>8} {:>9}",
        "venue", "symbol", "bid", "ask", "proof", "proved", "age", "lag ms", "messages"
    );
    let all = || readers.iter().flat_map(|(first, reader)| followed(reader).map(move |of| (*first, reader, of)));
    for (first, reader, listed) in all().take(ROWS_MAX) {
        let (top, [bid, ask]) = best(reader, listed.id);
        let side = |side: Option<(String, String)>| side.map(|(px, _)| px);
        let dash = || "-".to_owned();
        let (bid, ask) = (side(bid).unwrap_or_else(dash), side(ask).unwrap_or_else(dash));
        let ms = |age: Nanos| format!("{:.1}", age.0 as f64 / 1e6);
        let age = if top.ts_recv.0 == 0 { dash() } else { ms(now.saturating_sub(top.ts_recv)) };
        let proved = top.proof_update_id().map_or_else(dash, |_| ms(top.proof_age(now)));
        let lag = lag_ns(reader, listed).map_or_else(dash, |ns| format!("{:.1}", ns as f64 / 1e6));
        let _ = writeln!(
            out,
            "{:13} {:16} {bid:>13} {ask:>13} {} {proved:>8} {age:>8} {lag:>8} {:>7.0}/s",
            listed.venue.name(),
            listed.name,
            style.proof(top.status.proof),
            rates.of(first + listed.id.0),
        );
    }
    let more = all().count().saturating_sub(ROWS_MAX);
    if more > 0 {
        let _ = writeln!(out, "and {more} more");
    }
    readers.iter().for_each(|(_, reader)| push_feeds(&mut out, reader));
    let _ = writeln!(out, "{frames_per_s:.0} frames/s");
    for row in timed(readers) {
        let Some(times) = row.quantiles else { continue };
        let text = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
        let (p50, p99, p999) = (times.p50_ns, text(times.p99_ns), text(times.p999_ns));
        let _ = writeln!(out, "{:24} n {:9}  p50 {p50:7}  p99 {p99:>8}  p99.9 {p999:>8} ns", row.name, times.n);
    }
    out
}

/// The lines of one reader's feeds.
fn push_feeds(out: &mut String, reader: &Reader) {
    for feed in 0..reader.feeds_len() {
        let (venue, url) = reader.feed(feed);
        let (status, counters) = (reader.status(feed), reader.counters(feed));
        let state = match &status.last_error {
            _ if status.connected => "connected".to_owned(),
            Some(error) => format!("connecting: {error}"),
            None => "connecting".to_owned(),
        };
        let _ = writeln!(
            out,
            "{:13} {state}; {} frames = {} applied + {} dropped; {} gaps, {} resyncs, {} reconnects; lag {:.1} ms; {url}",
            venue.name(),
            counters.frames,
            counters.applied,
            counters.drops_total(),
            counters.gaps,
            counters.resyncs,
            status.reconnects(),
            counters.lag_signed_ns() as f64 / 1e6,
        );
        let Account { order_updates, executions, balances, positions } = account_counts(&counters);
        if order_updates + executions + balances + positions > 0 {
            let _ = writeln!(
                out,
                "{:13} account: {order_updates} order updates, {executions} executions, {balances} balances, {positions} positions",
                venue.name()
            );
        }
        for refusal in &status.refusals {
            let _ = writeln!(out, "{:13} refused {}: {}", venue.name(), refusal.subject, refusal.reason);
        }
    }
}

/// What the feeds have timed together.
fn timed(readers: &[Followed]) -> Vec<IngestRow> {
    let mut times = Times::default();
    readers.iter().for_each(|(_, reader)| times.merge(&reader.times()));
    readers.first().map_or_else(Vec::new, |(_, reader)| ingest_rows(&times, reader.calibration()))
}

/// One object an instrument, then one a feed.
fn lines(readers: &[Followed], now: Nanos, rates: &Rates) -> String {
    let mut out = String::new();
    let all = readers.iter().flat_map(|(first, reader)| followed(reader).map(move |of| (*first, reader, of)));
    for (first, reader, listed) in all {
        let (top, [bid, ask]) = best(reader, listed.id);
        let side = |side: Option<(String, String)>| side.map(|(px, qty)| [px, qty]);
        let line = json!({
            "venue": listed.venue.name(), "symbol": listed.name, "bid": side(bid), "ask": side(ask),
            "update_id": top.update_id, "proof": top.status.proof.name(), "proof_update_id": top.proof_update_id(),
            "proof_age_ns": top.proof_update_id().map(|_| top.proof_age(now).0),
            "age_ns": (top.ts_recv.0 != 0).then(|| now.saturating_sub(top.ts_recv).0),
            "lag_ns": lag_ns(reader, listed), "messages": reader.messages(listed.id),
            "messages_per_s": rates.of(first + listed.id.0),
        });
        let _ = writeln!(out, "{line}");
    }
    let of_feeds =
        |(_, reader): &Followed| (0..reader.feeds_len()).map(|feed| (reader.clone(), feed)).collect::<Vec<_>>();
    for (reader, feed) in readers.iter().flat_map(of_feeds) {
        let (venue, url) = reader.feed(feed);
        let (status, counters) = (reader.status(feed), reader.counters(feed));
        let line = json!({
            "venue": venue.name(), "url": url, "connected": status.connected, "frames": counters.frames,
            "applied": counters.applied, "dropped": counters.drops_total(), "gaps": counters.gaps,
            "resyncs": counters.resyncs, "reconnects": status.reconnects(), "lag_ns": counters.lag_signed_ns(),
            "refused": status.refusals.iter().map(|refusal| [&refusal.subject, &refusal.reason]).collect::<Vec<_>>(),
            "last_error": status.last_error, "account": account_counts(&counters),
        });
        let _ = writeln!(out, "{line}");
    }
    for row in timed(readers).iter().filter(|row| row.quantiles.is_some()) {
        let _ = writeln!(out, "{}", json!({"row": row}));
    }
    out
}
