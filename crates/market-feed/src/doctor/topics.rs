//! The step `topics`: what was accepted is sent.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tt_venue::rules::{FirstFrame, Rules, TopicCheck};

use super::report::{Finding, Report};
use super::step::Step;
use super::visit::{Ended, Visit};
use crate::arrivals::{Arrivals, Arrived};
use crate::settings::{FeedConfig, LinkConfig};
use crate::socket;
use crate::topics::{Answer, Requests};

/// A little more than the longest time to a first frame.
const FIRST_MAX: Duration = Duration::from_secs(12);

/// Waits until each topic of each address has come or is silent.
///
/// # Errors
/// Standard output is gone.
pub(super) async fn judge(report: &mut Report<'_>, feed: &FeedConfig, visit: &mut Visit<'_>) -> anyhow::Result<()> {
    let of = feed.venue.name();
    report.begin(Step::Topics, of);
    let ended = visit.until(report.left(FIRST_MAX), |visit| is_decided(&visit.arrivals)).await;
    let mut arrived: Vec<Arrived> = visit.arrivals.all().collect();
    let mut lost = match ended {
        Ended::Lost(reason) => Some(reason),
        Ended::So | Ended::Late => None,
    };
    let symbols: Vec<String> = visit.followed.iter().map(|book| book.symbol.clone()).collect();
    for link in feed.links().into_iter().skip(1) {
        match of_link(feed, &link, &symbols, report.left(FIRST_MAX)).await {
            Ok(arrivals) => arrived.extend(arrivals.all()),
            Err(reason) => lost = Some(format!("{}: {reason}", link.streams)),
        }
    }
    report.end(Step::Topics, of, &finding(&arrived, feed.rules(), lost))?;
    Ok(())
}

/// Whether every topic that must come has come, or is silent.
fn is_decided(arrivals: &Arrivals) -> bool {
    arrivals.is_complete() || arrivals.all().all(|one| one.frames > 0 || one.is_silent || !is_certain(one.first))
}

/// Whether the first frame comes whatever the market does.
const fn is_certain(first: FirstFrame) -> bool {
    matches!(first, FirstFrame::Within(_))
}

/// What arrives of the topics at another address of the venue.
async fn of_link(feed: &FeedConfig, link: &LinkConfig, symbols: &[String], most: Duration) -> Result<Arrivals, String> {
    let clock = tt_os::clock::clock();
    let opened = socket::open_packed(&link.streams, feed.compressed, clock).await;
    let (mut socket, _) = opened.map_err(|error| format!("{error:#}"))?;
    let mut requests =
        Requests::new(feed.rules_of(&link.topics), link.topics.clone(), feed.depth, feed.timing.answer_max);
    let mut arrivals = Arrivals::new(&link.topics, symbols, feed.depth, Instant::now()).counting();
    for request in requests.subscribe(symbols) {
        requests.note_sent(&request, Instant::now());
        socket.send(Message::text(request.text)).await.map_err(|error| error.to_string())?;
        tokio::time::sleep(Duration::from_nanos(feed.venue.rules().requests.gap.0)).await;
    }
    let deadline = tokio::time::Instant::now() + most;
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    while tokio::time::Instant::now() < deadline && !is_decided(&arrivals) {
        tokio::select! {
            _ = looks.tick() => {
                // What is silent is asked of `arrivals`.
                let _ = arrivals.check(Instant::now());
            }
            message = socket.next() => {
                let message = message.ok_or("the venue closed the connection")?.map_err(|error| error.to_string())?;
                if let Message::Text(text) = &message && requests.is_answer(text.as_str()) {
                    let Answer { refusal, again } = requests.take(text.as_str());
                    for request in again {
                        requests.note_sent(&request, Instant::now());
                        socket.send(Message::text(request.text)).await.map_err(|error| error.to_string())?;
                    }
                    if let Some(refusal) = refusal {
                        return Err(format!("{} refused: {}", refusal.subject, refusal.reason));
                    }
                    if requests.all_answered() {
                        arrivals.begin(Instant::now());
                    }
                }
                arrivals.take(&message.into_data(), Instant::now());
            }
        }
    }
    // Whether the venue says farewell, too, changes nothing.
    let _ = tokio::time::timeout(Duration::from_millis(500), socket.close(None)).await;
    Ok(arrivals)
}

fn finding(arrived: &[Arrived], rules: &Rules, lost: Option<String>) -> Finding {
    let check = |one: &Arrived| one.check.unwrap_or_else(|| rules.check());
    let name = |one: &Arrived| format!("{} {}", one.topic.topic, one.topic.symbol).trim_end().to_owned();
    let line = |one: &Arrived| {
        let came = match one.first_after {
            Some(after) => format!("{} frames, first after {:.1} s", one.frames, after.as_secs_f64()),
            None => "none".to_owned(),
        };
        let apart = one.check.map_or_else(String::new, |check| format!(" (checked {}, {})", check.month, check.source));
        format!("{} {came}{apart}", name(one))
    };
    let facts: Vec<_> = arrived
        .iter()
        .map(|one| {
            json!({
                "topic": one.topic.topic, "symbol": one.topic.symbol, "frames": one.frames,
                "first_after_s": one.first_after.map(|after| after.as_secs_f64()),
                "checked": check(one).month, "source": check(one).source,
            })
        })
        .collect();
    let missing: Vec<String> =
        arrived.iter().filter(|one| one.is_silent || one.frames == 0 && is_certain(one.first)).map(name).collect();
    let mut summary = arrived.iter().map(line).collect::<Vec<_>>().join("; ");
    let TopicCheck { month, source } = rules.check();
    summary.push_str(&format!("; checked {month}, {source}"));
    let finding = match (lost, missing.is_empty()) {
        (Some(reason), _) => Finding::failed(
            format!("{reason}; {summary}"),
            "the venue serves some topics at another address: is it still the one of its documentation?",
        ),
        (None, true) => Finding::ok(summary),
        (None, false) => Finding::failed(
            format!("accepted_but_silent: {}; {summary}", missing.join(", ")),
            "the venue acknowledges the topic and does not send it: it has moved to another address, or has another name now",
        ),
    };
    finding.fact("topics", facts)
}
