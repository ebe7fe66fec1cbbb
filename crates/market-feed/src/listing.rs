//! Price and quantity steps, from the venue's own list of instruments.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt, StreamExt};
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use tokio_tungstenite::tungstenite::Message;
use tt_meter::Clock;
use tt_model::sort_short_by;
use tt_venue::listing::{ListRequest, Listing, PostedList, distinguish};

use super::dial::Target;
use super::rest::{self, Response, RestRequest, percent_encoded};
use super::settings::FeedConfig;
use super::socket;
use super::topics::Refusal;

/// Pages of a list, at most.
const PAGES_MAX: usize = 20;

/// Symbols that one request names.
const SYMBOLS_PER_REQUEST: usize = 50;

/// Why there is no listing.
#[derive(Debug)]
pub(super) enum NotListed {
    /// The venue is not there, or not able to answer: another time it may be.
    Unreached {
        /// The reason.
        error: anyhow::Error,
        /// How long the venue wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// Asking again would not help: no such address, for example.
    Refused(anyhow::Error),
    /// The venue does not understand what it is asked, such as a symbol that it does not have.
    BadRequest(anyhow::Error),
}

impl NotListed {
    /// The reason.
    pub(super) fn into_error(self) -> anyhow::Error {
        match self {
            Self::Unreached { error, .. } | Self::Refused(error) | Self::BadRequest(error) => error,
        }
    }
}

/// What is no failure to reach the venue is wrong with the question.
impl From<anyhow::Error> for NotListed {
    fn from(error: anyhow::Error) -> Self {
        Self::Refused(error)
    }
}

/// The listings of a feed's symbols, in its order, and what is not listed.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) listings: Vec<Listing>,
    pub(super) refusals: Vec<Refusal>,
}

/// The listings of the symbols of `feed`.
///
/// # Errors
/// The venue cannot be reached, or refuses the question whatever the symbol.
pub(super) async fn fetch(feed: &FeedConfig, clock: Clock) -> Result<Fetched, NotListed> {
    let mut listed = list(feed, clock).await?;
    distinguish(&mut listed.entries);
    let mut fetched = Fetched::default();
    for symbol in &feed.symbols {
        match listed.entries.iter().find(|listing| listing.symbol == *symbol) {
            Some(listing) => fetched.listings.push(listing.clone()),
            None => {
                let known = listed.refusals.iter().find(|refusal| refusal.subject == *symbol);
                let reason = || format!("{} does not list {symbol}", feed.venue.name());
                let reason = known.map_or_else(reason, |known| known.reason.clone());
                fetched.refusals.push(Refusal { subject: symbol.clone(), reason });
            }
        }
    }
    Ok(fetched)
}

/// What a venue lists.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Every instrument, or at least those of the feed's symbols that there are.
    pub(super) entries: Vec<Listing>,
    /// Symbols that the venue refuses to list, with its words.
    refusals: Vec<Refusal>,
    /// The venue's time of its last answer by REST, to the second (`Date`).
    pub(super) date: Option<String>,
}

/// The venue's whole list, where it has one in one place; else what it says of the feed's symbols.
///
/// # Errors
/// The venue cannot be reached, or refuses the question.
pub(super) async fn list(feed: &FeedConfig, clock: Clock) -> Result<Listed, NotListed> {
    Target::of(&feed.streams)?;
    feed.rest.as_ref().map(Target::of).transpose()?;
    let mut listed = Listed::default();
    let list = feed.venue.rules().instruments;
    match list.request {
        ListRequest::GetSymbols(path) => {
            for symbols in feed.symbols.chunks(SYMBOLS_PER_REQUEST) {
                listed.add_symbols(feed, path, symbols, clock).await?;
            }
        }
        ListRequest::Get(paths) => {
            for path in paths {
                for path in of_families(feed, path) {
                    listed.add_pages(feed, &path, clock).await?;
                }
            }
        }
        ListRequest::Post(path, lists) => {
            let uris = feed.rest_uris(path)?;
            let mut answers = Vec::new();
            let is_followed = |posted: &PostedList| feed.symbols.iter().any(|symbol| symbol.starts_with(posted.prefix));
            for posted in lists.iter().filter(|posted| posted.prefix.is_empty() || is_followed(posted)) {
                let request = RestRequest::post("application/json", posted.body.to_owned());
                let answer = rest_answer(&uris, request, clock).await?;
                listed.date = answer.date.or(listed.date.take());
                answers.push(answer.body);
            }
            let array = [b"[".as_slice(), &answers.join(b",".as_slice()), b"]"].concat();
            let read = (list.parse)(&array).with_context(|| format!("{path}: not a list of instruments"))?;
            listed.entries.extend(read);
        }
        ListRequest::Message(request) => {
            listed.entries = socket_list(feed, request, clock).await.map_err(unreached)?;
        }
    }
    Ok(listed)
}

/// `path`, or one for each family or series of the feed's symbols.
fn of_families(feed: &FeedConfig, path: &str) -> Vec<String> {
    let list = feed.venue.rules().instruments;
    let place = [("{family}", list.family), ("{series}", list.series)].into_iter().find(|place| path.contains(place.0));
    let Some((place, of)) = place else { return vec![path.to_owned()] };
    let Some(of) = of else { return Vec::new() };
    let mut names: Vec<&str> = feed.symbols.iter().filter_map(|symbol| of(symbol)).collect();
    sort_short_by(&mut names, Ord::cmp);
    names.dedup();
    names.into_iter().map(|name| path.replace(place, &percent_encoded(name))).collect()
}

impl Listed {
    /// Whether the venue refused to list a symbol.
    pub(super) const fn has_refusals(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// Requests the listings of `symbols`. A venue refuses a whole request because of one that it does not have: then it
    /// is asked again in halves.
    async fn add_symbols(
        &mut self,
        feed: &FeedConfig,
        path: &str,
        symbols: &[String],
        clock: Clock,
    ) -> Result<(), NotListed> {
        let mut groups = vec![symbols];
        while let Some(symbols) = groups.pop() {
            let quoted: Vec<String> =
                symbols.iter().map(|symbol| format!("%22{}%22", percent_encoded(symbol))).collect();
            let path = path.replace("{symbols}", &quoted.join(","));
            match (self.add(feed, &path, RestRequest::get(), clock).await, symbols) {
                (Err(NotListed::BadRequest(error)), [symbol]) => {
                    self.refusals.push(Refusal { subject: symbol.clone(), reason: format!("{error:#}") });
                }
                (Err(NotListed::BadRequest(_)), _) => {
                    let (first, second) = symbols.split_at(symbols.len() / 2);
                    groups.extend([second, first]);
                }
                (added, _) => drop(added?),
            }
        }
        Ok(())
    }

    /// Requests every page of the list at `path`.
    async fn add_pages(&mut self, feed: &FeedConfig, path: &str, clock: Clock) -> Result<(), NotListed> {
        let pages = feed.venue.rules().instruments.pages;
        let (mut suffix, mut known) = (String::new(), 0);
        for _ in 0..PAGES_MAX {
            let body = self.add(feed, &format!("{path}{suffix}"), RestRequest::get(), clock).await?;
            let Some(next) = pages.next(&body, known) else { return Ok(()) };
            known += pages.count(&body);
            suffix = next;
        }
        let error = anyhow::anyhow!("{path}: a list of more than {PAGES_MAX} pages");
        Err(NotListed::Refused(error))
    }

    async fn add(
        &mut self,
        feed: &FeedConfig,
        path: &str,
        request: RestRequest,
        clock: Clock,
    ) -> Result<Bytes, NotListed> {
        let uris = feed.rest_uris(path)?;
        let answer = rest_answer(&uris, request, clock).await?;
        let listings = (feed.venue.rules().instruments.parse)(&answer.body)
            .with_context(|| format!("{path}: not a list of instruments"))?;
        self.entries.extend(listings);
        self.date = answer.date.or(self.date.take());
        Ok(answer.body)
    }
}

async fn rest_answer(uris: &[Uri], request: RestRequest, clock: Clock) -> Result<Response, NotListed> {
    rest::send_to(uris, request, clock).await.map_err(|failed| {
        let uri = uris.first().map(Uri::to_string).unwrap_or_default();
        let error = anyhow::anyhow!("{uri}: {}", failed.reason);
        if failed.status == Some(StatusCode::BAD_REQUEST) {
            NotListed::BadRequest(error)
        } else if failed.is_final {
            NotListed::Refused(error)
        } else {
            NotListed::Unreached { error, retry_after: failed.retry_after }
        }
    })
}

/// No WebSocket, or none that lists the instruments.
fn unreached(error: anyhow::Error) -> NotListed {
    match error.downcast_ref::<socket::Refused>() {
        Some(answer) if rest::is_final(answer.status) => NotListed::Refused(error),
        Some(_) | None => NotListed::Unreached { error, retry_after: None },
    }
}

/// The list that comes on the WebSocket, among other frames.
async fn socket_list(feed: &FeedConfig, request: &str, clock: Clock) -> anyhow::Result<Vec<Listing>> {
    let (mut socket, _) = socket::open(&feed.list_address(), clock).await?;
    socket.send(Message::text(request)).await?;
    let snapshot = async {
        while let Some(frame) = socket.next().await {
            if let Message::Text(text) = frame?
                && let Ok(listings) = (feed.venue.rules().instruments.parse)(text.as_bytes())
            {
                return Ok(listings);
            }
        }
        anyhow::bail!("{}: closed before the list of instruments", feed.streams)
    };
    tokio::time::timeout(feed.timing.answer_max, snapshot).await.context("no list of instruments in time")?
}

#[cfg(test)]
mod tests;
