//! The steps on an open connection, each judged by the venue's rules.

use std::time::{Duration, Instant};

use tokio_tungstenite::tungstenite::Message;
use tt_market::DropReason;
use tt_market::Proof;
use tt_venue::Checksum;
use tt_venue::rules::Rules;
use tt_venue::rules::{Numbering, TopicKind};

use super::report::{Finding, Report};
use super::skew::{self, Dated};
use super::step::Step;
use super::topics;
use super::visit::{Ended, Followed, Visit};
use crate::settings::FeedConfig;

const SNAPSHOT_MAX: Duration = Duration::from_secs(15);
const UPDATES_MAX: Duration = Duration::from_secs(30);
const PROOF_MAX: Duration = Duration::from_secs(10);
const PONG_MAX: Duration = Duration::from_secs(10);

/// What is older when it arrives is no live market.
const LAG_MAX_NS: i64 = 5_000_000_000;

/// Frames that can be read, and not as the rules say they come.
const MISREAD: [DropReason; 6] = [
    DropReason::UnknownTopic,
    DropReason::UnknownSymbol,
    DropReason::VenueError,
    DropReason::OffTickSize,
    DropReason::OffLotSize,
    DropReason::SnapshotOrder,
];

/// Everything that happens on the open connection.
///
/// # Errors
/// Standard output is gone.
pub(super) async fn follow(
    report: &mut Report<'_>,
    feed: &FeedConfig,
    visit: &mut Visit<'_>,
    updates_min: u64,
    dated: Option<Dated>,
) -> anyhow::Result<()> {
    if !subscribe(report, feed, visit).await?
        || !snapshot(report, feed, visit).await?
        || !updates(report, feed, visit, updates_min).await?
    {
        // What has arrived can be judged nevertheless.
        return frames(report, feed, visit);
    }
    prove(report, feed, visit).await?;
    topics::judge(report, feed, visit).await?;
    keep_alive(report, feed, visit).await?;
    let lags = visit.observations.sorted_lags_ns();
    let of = feed.venue.name();
    report.begin(Step::Clock, of);
    let (least, most) = skew::bounds(dated, lags.first().copied());
    let is_right = report.end(Step::Clock, of, &skew::judge(least, most))?;
    report.begin(Step::Lag, of);
    report.end(Step::Lag, of, &lag(&lags, is_right))?;
    frames(report, feed, visit)
}

/// Waits for `is_so`; where it does not come, what `late` makes of that.
async fn wait(
    report: &Report<'_>,
    visit: &mut Visit<'_>,
    most: Duration,
    is_so: impl FnMut(&Visit<'_>) -> bool,
) -> Result<(), Ended> {
    match visit.until(report.left(most), is_so).await {
        Ended::So => Ok(()),
        ended @ (Ended::Late | Ended::Lost(_)) => Err(ended),
    }
}

/// A connection that is lost, or something that is late.
fn amiss(report: &Report<'_>, ended: Ended, late: Finding) -> Finding {
    match ended {
        Ended::Lost(reason) => Finding::failed(
            reason,
            "once is bad luck; each time means that the venue does not like a request, or something between ends connections",
        ),
        Ended::So | Ended::Late if report.is_over() => late.fact("out_of_time", true),
        Ended::So | Ended::Late => late,
    }
}

async fn subscribe(report: &mut Report<'_>, feed: &FeedConfig, visit: &mut Visit<'_>) -> anyhow::Result<bool> {
    let of = feed.venue.name();
    report.begin(Step::Subscribe, of);
    let answered =
        wait(report, visit, feed.timing.answer_max, |visit| visit.is_answered() || !visit.refusals.is_empty());
    let finding = match answered.await {
        Err(ended) => {
            let summary = format!("no answer to the request for {}", visit.unanswered());
            let advice = "the venue is silent, or acknowledges in another form than our rules say: see what did arrive";
            amiss(report, ended, Finding::failed(summary, advice))
        }
        Ok(()) if visit.refusals.is_empty() => {
            let rules = feed.venue.rules();
            let symbols: Vec<&str> = visit.followed.iter().map(|book| book.symbol.as_str()).collect();
            Finding::ok(format!("{} topics of {} acknowledged", rules.default_topics().count(), symbols.join(", ")))
        }
        Ok(()) => {
            let summary: Vec<String> = visit
                .refusals
                .iter()
                .map(|refusal| format!("{} refused: {}", refusal.subject, refusal.reason))
                .collect();
            let depths = feed.rules().depths;
            let advice = if depths.is_empty() {
                "is the symbol traded, and are the topics still the venue's? See its documentation of today".to_owned()
            } else {
                format!("is the symbol traded? Depths that can be asked for: {depths:?} (--depth)")
            };
            Finding::failed(summary.join("; "), advice)
        }
    };
    Ok(report.end(Step::Subscribe, of, &finding)?)
}

async fn snapshot(report: &mut Report<'_>, feed: &FeedConfig, visit: &mut Visit<'_>) -> anyhow::Result<bool> {
    let of = feed.venue.name();
    report.begin(Step::Snapshot, of);
    let is_there = |visit: &Visit<'_>, book: &Followed| {
        visit.engine().levels_len(book.id).is_some_and(|(bids, asks)| bids + asks > 0)
    };
    let all = |visit: &Visit<'_>| visit.followed.iter().all(|book| is_there(visit, book));
    let finding = match wait(report, visit, SNAPSHOT_MAX, all).await {
        Ok(()) => {
            let sides = |book: &Followed| {
                let (bids, asks) = visit.engine().levels_len(book.id).unwrap_or_default();
                format!("{} {bids} bids and {asks} offers", book.symbol)
            };
            Finding::ok(visit.followed.iter().map(sides).collect::<Vec<_>>().join("; "))
        }
        Err(ended) => {
            let missing = visit.followed.iter().filter(|book| !is_there(visit, book));
            let missing: Vec<&str> = missing.map(|book| book.symbol.as_str()).collect();
            let summary = format!("no first levels of {}{}", missing.join(", "), silence(visit));
            let late = match &visit.not_fetched {
                Some(reason) => Finding::failed(
                    format!("{summary}; the snapshot by REST: {reason}"),
                    "is the REST address right (--rest-url)? 429 or 418: too much was asked from this address, wait",
                ),
                None => Finding::failed(summary, "a market that is closed? Take a busier symbol"),
            };
            amiss(report, ended, late)
        }
    };
    Ok(report.end(Step::Snapshot, of, &finding)?)
}

/// How long nothing was heard, where that is worth a word.
fn silence(visit: &Visit<'_>) -> String {
    let silent = Instant::now().duration_since(visit.last_heard).as_secs_f64();
    if silent < 1.0 { String::new() } else { format!("; nothing was heard for {silent:.1} s") }
}

async fn updates(
    report: &mut Report<'_>,
    feed: &FeedConfig,
    visit: &mut Visit<'_>,
    updates_min: u64,
) -> anyhow::Result<bool> {
    let of = feed.venue.name();
    report.begin(Step::Updates, of);
    let enough = |visit: &Visit<'_>| visit.followed.iter().all(|book| book.updates >= updates_min);
    let waited = wait(report, visit, UPDATES_MAX, enough).await;
    let counted: Vec<String> = visit.followed.iter().map(|book| format!("{} {}", book.updates, book.symbol)).collect();
    let summary = counted.join(", ");
    let finding = match waited {
        Ok(()) => Finding::ok(summary),
        Err(ended) => {
            let summary = format!("{summary} of {updates_min} each{}", silence(visit));
            let advice = if silence(visit).is_empty() {
                "a quiet market? Take a busier symbol, or fewer: --updates N"
            } else {
                "the venue fell silent without a word: a half-open connection, or it wants a sign of life that our rules do not know"
            };
            amiss(report, ended, Finding::failed(summary, advice))
        }
    };
    let mut kinds = serde_json::Map::new();
    kinds.extend(visit.observations.kinds.iter().map(|(kind, count)| ((*kind).to_owned(), (*count).into())));
    let finding =
        finding.fact("frames", visit.observations.frames).fact("bytes", visit.observations.bytes).fact("kinds", kinds);
    Ok(report.end(Step::Updates, of, &finding)?)
}

/// Whether a separately numbered best bid and offer comes with the book.
fn has_oracle(rules: &Rules) -> bool {
    matches!(rules.numbering, Numbering::Range | Numbering::Previous)
        && rules.default_topics().any(|topic| topic.kind == TopicKind::BestLevels)
}

async fn prove(report: &mut Report<'_>, feed: &FeedConfig, visit: &mut Visit<'_>) -> anyhow::Result<()> {
    let of = feed.venue.name();
    let rules = feed.rules();
    report.begin(Step::Proof, of);
    if !rules.is_provable() {
        let summary = "none: the venue offers nothing to prove a book with; the gate refuses on it by default";
        report.end(Step::Proof, of, &Finding::ok(summary))?;
        return Ok(());
    }
    let board = visit.engine().board();
    let proof = |book: &Followed| board.top_of_book(book.id).map(|top| top.status.proof);
    let is_proved = |visit: &Visit<'_>| {
        let verified = visit.followed.iter().all(|book| proof(book).is_some_and(Proof::is_verified));
        verified && (!has_oracle(rules) || visit.counters().oracle_matches > 0)
    };
    let waited = wait(report, visit, PROOF_MAX, is_proved).await;
    let counters = visit.counters();
    let contradicted = counters.dropped(DropReason::OracleMismatch);
    let mut summary = Vec::new();
    if matches!(rules.checksum, Checksum::Levels(checksum) if checksum.is_always_sent)
        || counters.crc_matches + counters.crc_mismatches > 0
    {
        summary.push(format!("crc: {} fitted, {} did not", counters.crc_matches, counters.crc_mismatches));
    }
    if rules.numbering != Numbering::None {
        summary.push(format!("sequence: {} followed, {} gaps", counters.sequence_matches, counters.gaps));
    }
    if has_oracle(rules) {
        summary.push(format!("oracle: {} fitted, {contradicted} did not", counters.oracle_matches));
    }
    let shown: Vec<String> = visit
        .followed
        .iter()
        .map(|book| format!("{} {}", book.symbol, proof(book).map_or("none", Proof::name)))
        .collect();
    let summary = format!("{}; {}", shown.join(", "), summary.join("; "));
    let is_unproved = visit.followed.iter().any(|book| !proof(book).is_some_and(Proof::is_verified));
    let finding = if counters.crc_mismatches > 0 {
        let checksum = visit.observations.dropped.get(&DropReason::ChecksumMismatch);
        let finding = Finding::failed(summary, PROOF_ADVICE);
        checksum.map_or_else(|| Finding::failed("", ""), |odd| finding.excerpt("does not fit", &odd.first))
    } else if counters.gaps > 0 {
        let frame = visit.observations.gap.clone().unwrap_or_default();
        Finding::failed(summary, PROOF_ADVICE).excerpt("after a gap", &frame)
    } else if contradicted > 0 || is_unproved {
        match waited {
            Err(ended) => amiss(report, ended, Finding::failed(summary, PROOF_ADVICE)),
            Ok(()) => Finding::failed(summary, PROOF_ADVICE),
        }
    } else {
        Finding::ok(summary)
    };
    let finding = finding
        .fact("crc_matches", counters.crc_matches)
        .fact("crc_mismatches", counters.crc_mismatches)
        .fact("sequence_matches", counters.sequence_matches)
        .fact("gaps", counters.gaps)
        .fact("oracle_matches", counters.oracle_matches)
        .fact("oracle_mismatches", contradicted);
    report.end(Step::Proof, of, &finding)?;
    Ok(())
}

const PROOF_ADVICE: &str = "a line that loses, or a rule of the venue that has changed: record it (`truetick record`) and look \
     closer (`truetick audit`); the engine itself calls such a book stale and requests it again";

async fn keep_alive(report: &mut Report<'_>, feed: &FeedConfig, visit: &mut Visit<'_>) -> anyhow::Result<()> {
    let of = feed.venue.name();
    let rule = feed.venue.rules().keep_alive;
    report.begin(Step::KeepAlive, of);
    let (pongs, accepted) = (visit.observations.pongs, visit.observations.accepted);
    let (message, name) = match (rule.ping, rule.pong) {
        (Some((text, _)), _) => (Message::text(text), text),
        (None, Some(text)) => (Message::text(text), text),
        (None, None) => (Message::Ping("truetick".into()), "a ping frame"),
    };
    let asks = rule.ping.is_none() && rule.pong.is_some();
    let sent = Instant::now();
    let answered = match visit.send(message).await {
        Ok(()) => {
            wait(report, visit, PONG_MAX, |visit| {
                visit.observations.pongs > pongs || asks && visit.observations.accepted > accepted
            })
            .await
        }
        Err(reason) => Err(Ended::Lost(reason)),
    };
    let ms = sent.elapsed().as_secs_f64() * 1e3;
    let finding = match answered {
        Ok(()) => Finding::ok(format!("{name} answered in {ms:.1} ms")).fact("round_trip_ms", ms),
        Err(ended) => {
            let summary = format!("{name} was not answered within {ms:.0} ms{}", silence(visit));
            amiss(
                report,
                ended,
                Finding::failed(summary, "the venue's way to keep a connection alive may have changed"),
            )
        }
    };
    report.end(Step::KeepAlive, of, &finding.fact("pings_of_the_venue", visit.observations.pings))?;
    Ok(())
}

fn lag(sorted_ns: &[i64], clock_is_right: bool) -> Finding {
    let at = |per_cent: usize| sorted_ns.get((sorted_ns.len() * per_cent / 100).min(sorted_ns.len().saturating_sub(1)));
    let (Some(&p50), Some(&p99), Some(&max)) = (at(50), at(99), sorted_ns.last()) else {
        return Finding::skipped("no frame carries a time");
    };
    if !clock_is_right {
        return Finding::skipped("says nothing while the clocks disagree");
    }
    let ms = |ns: i64| format!("{:.1} ms", ns as f64 / 1e6);
    let summary = format!("p50 {}, p99 {}, most {} of {} frames", ms(p50), ms(p99), ms(max), sorted_ns.len());
    let finding = if p50 > LAG_MAX_NS {
        Finding::failed(summary, "what arrives is old: a slow line, a proxy that buffers, or a clock that runs ahead")
    } else {
        Finding::ok(summary)
    };
    finding.fact("p50_ns", p50).fact("p99_ns", p99).fact("max_ns", max).fact("frames", sorted_ns.len())
}

/// Whether everything that arrived could be read as our rules say.
fn frames(report: &mut Report<'_>, feed: &FeedConfig, visit: &Visit<'_>) -> anyhow::Result<()> {
    let of = feed.venue.name();
    report.begin(Step::Frames, of);
    let seen = &visit.observations;
    let misread = || seen.dropped.iter().filter(|(fault, _)| fault.is_malformed() || MISREAD.contains(fault));
    let unread: u64 = misread().map(|(_, odd)| odd.count).sum();
    let general: u64 = seen.general.values().map(|odd| odd.count).sum();
    let unknown: Vec<&str> = seen.unknown.keys().map(String::as_str).collect();
    let mut summary = vec![format!("{} frames, {unread} of them not read", seen.frames)];
    if general > 0 {
        summary.push(format!("{general} by the slower path, since their keys stand in another order than we expect"));
    }
    if !unknown.is_empty() {
        summary.push(format!("keys that are not documented: {}", unknown.join(", ")));
    }
    let advice = "the venue's format has changed: an issue with these excerpts, or a recording, mends the parser";
    let mut finding =
        if unread > 0 { Finding::failed(summary.join("; "), advice) } else { Finding::ok(summary.join("; ")) };
    for (fault, odd) in misread() {
        finding = finding.excerpt(&format!("{} x {}", odd.count, fault.name()), &odd.first);
    }
    for (kind, odd) in &seen.general {
        finding = finding.excerpt(&format!("{} x {kind} by the slower path", odd.count), &odd.first);
    }
    for (key, odd) in &seen.unknown {
        finding = finding.excerpt(&format!("{} x key {key}", odd.count), &odd.first);
    }
    let finding = finding.fact("frames", seen.frames).fact("unread", unread).fact("general", general);
    report.end(Step::Frames, of, &finding.fact("unknown_keys", unknown))?;
    Ok(())
}
