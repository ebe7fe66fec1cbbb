//! The steps in their order, up to an open connection.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use hyper::{StatusCode, header};
use tt_meter::Clock;
use tt_os::clock::unix_now;
use tt_venue::listing::{ListRequest, Listing};

use super::conversation::follow;
use super::reach::reach;
use super::report::{Finding, Observer, Report, Summary};
use super::skew::Dated;
use super::step::Step;
use super::visit::Visit;
use crate::account::{self, LoginError, RequestLogin};
use crate::dial::{Target, dial};
use crate::listing::{self, NotListed};
use crate::settings::FeedConfig;
use crate::socket;
use tt_status::decimal_text::steps_text;

const UPGRADE_MAX: Duration = Duration::from_secs(20);
const LOGIN_MAX: Duration = Duration::from_secs(30);
const LIST_MAX: Duration = Duration::from_secs(30);

/// Bounds of an examination.
#[derive(Clone, Copy, Debug)]
pub struct ExamineOptions {
    /// Updates of each book to wait for.
    pub updates_min: u64,
    /// Time for all steps together.
    pub time_max: Duration,
}

/// Takes every step for `feed` and passes each result to `observer`.
///
/// # Errors
/// The observer's, or an address of `feed` is not a valid URI.
pub async fn examine(
    feed: &FeedConfig,
    options: &ExamineOptions,
    observer: &mut dyn Observer,
) -> anyhow::Result<Summary> {
    let clock = tt_os::clock::clock();
    let mut report = Report::new(observer, options.time_max);
    steps(&mut report, feed, options.updates_min, clock).await?;
    Ok(report.into_summary())
}

/// All steps behind a pointer, so that they are compiled here and not in each caller.
fn steps<'a>(
    report: &'a mut Report<'_>,
    feed: &'a FeedConfig,
    updates_min: u64,
    clock: Clock,
) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>> {
    Box::pin(take_steps(report, feed, updates_min, clock))
}

async fn take_steps(report: &mut Report<'_>, feed: &FeedConfig, updates_min: u64, clock: Clock) -> anyhow::Result<()> {
    let of = feed.venue.name();
    let rest_host = feed.rest_uri("/")?;
    let asks_rest = !matches!(feed.venue.rules().instruments.request, ListRequest::Message(_));
    let streams_reached = reach(report, &feed.streams, clock).await?;
    let other_host = asks_rest && Target::of(&rest_host)? != Target::of(&feed.streams)?;
    let rest_reached = if other_host { reach(report, &rest_host, clock).await? } else { streams_reached };
    if rest_reached
        && let Some((listings, dated)) = instruments(report, feed, clock).await?
        && streams_reached
        && let Some(mut visit) = upgrade(report, feed, &listings, clock).await?
    {
        follow(report, feed, &mut visit, updates_min, dated).await?;
        // Whether the venue says farewell, too, changes nothing.
        let _ = visit.close().await;
    }
    if streams_reached {
        login(report, feed, clock).await?;
    }
    Ok(report.skip_rest(of)?)
}

async fn login(report: &mut Report<'_>, feed: &FeedConfig, clock: Clock) -> anyhow::Result<()> {
    let of = feed.venue.name();
    report.begin(Step::Login, of);
    let Some(credentials) = &feed.account else {
        report.end(Step::Login, of, &Finding::skipped("no account: --account-file FILE"))?;
        return Ok(());
    };
    let entered = tokio::time::timeout(report.left(LOGIN_MAX), account::login(feed, credentials, clock)).await;
    let finding = match entered {
        Ok(Ok(entered)) => Finding::ok(format!("logged in, {} topics acknowledged", entered.topics)),
        Ok(Err(error)) => not_logged_in(error),
        Err(_) => Finding::failed("no answer in time", "the venue is slow, or silent to strangers: try again"),
    };
    report.end(Step::Login, of, &finding)?;
    Ok(())
}

fn not_logged_in(error: LoginError) -> Finding {
    match error {
        LoginError::Refused(reason) => Finding::failed(
            reason,
            "are key, secret and passphrase this venue's, may the key read, may it be used from this address, and is this machine's clock right?",
        ),
        LoginError::Unreached(reason) => {
            Finding::failed(reason, "the account's stream has another address, which may be unreachable alone")
        }
    }
}

async fn instruments(
    report: &mut Report<'_>,
    feed: &FeedConfig,
    clock: Clock,
) -> anyhow::Result<Option<(Vec<Listing>, Option<Dated>)>> {
    let of = feed.venue.name();
    report.begin(Step::Instruments, of);
    let asked = unix_now();
    let listed = tokio::time::timeout(report.left(LIST_MAX), listing::list(feed, clock)).await;
    let answered = unix_now();
    let listed = match listed {
        Ok(Ok(listed)) => listed,
        Ok(Err(error)) => {
            report.end(Step::Instruments, of, &not_listed(error))?;
            return Ok(None);
        }
        Err(_) => {
            let finding = Finding::failed("the list did not come in time", "a slow line? Give it more: --seconds");
            report.end(Step::Instruments, of, &finding)?;
            return Ok(None);
        }
    };
    let dated = listed.date.and_then(|date| Dated::new(asked.0, answered.0, &date));
    let find = |symbol: &String| listed.entries.iter().find(|listing| listing.symbol == *symbol);
    let missing: Vec<&String> = feed.symbols.iter().filter(|symbol| find(symbol).is_none()).collect();
    let found: Vec<Listing> = feed.symbols.iter().filter_map(find).cloned().collect();
    let steps = |listing: &Listing| {
        let (px, qty) = (steps_text(1, listing.tick_size), steps_text(1, listing.lot_size));
        format!("{} price step {px}, quantity step {qty}", listing.symbol)
    };
    let shown: Vec<String> = found.iter().map(steps).collect();
    let mut symbols = BTreeSet::new();
    symbols.extend(listed.entries.iter().map(|listing| &listing.symbol));
    let count = symbols.len();
    let finding = if missing.is_empty() {
        Finding::ok(format!("{count} listed; {}", shown.join("; ")))
    } else {
        let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_uppercase();
        let alike = |symbol: &&String| {
            let wanted = plain(symbol);
            listed.entries.iter().find(|listing| plain(&listing.symbol).contains(&wanted)).map(|found| &found.symbol)
        };
        let meant: Vec<&str> = missing.iter().filter_map(alike).map(String::as_str).collect();
        let names: Vec<&str> = missing.iter().map(|symbol| symbol.as_str()).collect();
        let advice = match (meant.is_empty(), listed.entries.first()) {
            (false, _) => format!("is {} meant?", meant.join(", ")),
            (true, Some(first)) => format!("the venue's symbols look like {}", first.symbol),
            (true, None) => "the list has another form than our rules say: nothing in it could be read".to_owned(),
        };
        Finding::failed(format!("{count} listed, but not {}", names.join(", ")), advice)
    };
    report.end(Step::Instruments, of, &finding.fact("listed", count).fact("found", shown))?;
    Ok((!found.is_empty()).then_some((found, dated)))
}

fn not_listed(error: NotListed) -> Finding {
    match error {
        NotListed::Unreached { error, retry_after } => {
            let advice = retry_after.map_or_else(
                || "is the REST address right (--rest-url)? A 403 or 451 means that the venue does not serve this country".to_owned(),
                |wait| format!("too much was asked from this address: try again in {} s", wait.as_secs()),
            );
            Finding::failed(format!("{error:#}"), advice)
        }
        NotListed::Refused(error) | NotListed::BadRequest(error) => Finding::failed(
            format!("{error:#}"),
            "are the symbols written as the venue writes them? Is the REST address right (--rest-url)?",
        ),
    }
}

async fn upgrade<'a>(
    report: &mut Report<'_>,
    feed: &'a FeedConfig,
    listings: &[Listing],
    clock: Clock,
) -> anyhow::Result<Option<Visit<'a>>> {
    let of = feed.streams.to_string();
    report.begin(Step::Upgrade, &of);
    let login = match RequestLogin::new(feed.clone(), clock).await {
        Ok(login) => login,
        Err(error) => {
            report.end(Step::Upgrade, &of, &not_logged_in(error))?;
            return Ok(None);
        }
    };
    let upgraded = tokio::time::timeout(report.left(UPGRADE_MAX), async {
        let (wire, _) = dial(&feed.streams, clock).await?;
        socket::upgrade(&feed.streams, wire, feed.compressed).await
    });
    let (socket, headers) = match upgraded.await {
        Ok(Ok(upgraded)) => upgraded,
        Ok(Err(error)) => {
            report.end(Step::Upgrade, &of, &not_upgraded(&error))?;
            return Ok(None);
        }
        Err(_) => {
            let finding =
                Finding::failed("no answer to the request for a WebSocket", "is the path of the address right?");
            report.end(Step::Upgrade, &of, &finding)?;
            return Ok(None);
        }
    };
    let extensions = headers.get(header::SEC_WEBSOCKET_EXTENSIONS).and_then(|value| value.to_str().ok());
    let summary =
        extensions.map_or("a WebSocket, not compressed".to_owned(), |agreed| format!("a WebSocket, {agreed}"));
    let visit = Visit::new(feed, listings, (socket, login), clock);
    let finding = match &visit {
        Ok(_) => Finding::ok(summary).fact("extensions", extensions),
        Err(error) => Finding::failed(format!("{error:#}"), "fewer symbols, or others"),
    };
    report.end(Step::Upgrade, &of, &finding)?;
    Ok(visit.ok())
}

fn not_upgraded(error: &anyhow::Error) -> Finding {
    let summary = format!("{error:#}");
    match error.downcast_ref::<socket::Refused>() {
        Some(answer) => {
            let advice = match answer.status {
                StatusCode::FORBIDDEN | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => {
                    "the venue does not serve this address or country"
                }
                StatusCode::TOO_MANY_REQUESTS | StatusCode::IM_A_TEAPOT => {
                    "too many connections from this address: wait some minutes"
                }
                status if status.is_server_error() => "the venue is out of order: look at its status page",
                _ => "the venue has no WebSocket at this path: look at the address",
            };
            let body = String::from_utf8_lossy(&answer.body);
            let finding = Finding::failed(summary, advice);
            if body.is_empty() { finding } else { finding.excerpt("answer", &body) }
        }
        None => Finding::failed(summary, "a proxy that knows no WebSocket? Look at the path of the address, too"),
    }
}
