//! Price and quantity steps, from the venue's own list of instruments.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use tokio_tungstenite::tungstenite::{self, Message};
use tt_meter::Clock;
use tt_venue::listing::{ListRequest, Listing, distinguish};

use super::dial::Target;
use super::rest::{self, Response, RestRequest, percent_encoded};
use super::settings::FeedConfig;
use super::socket;

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
    /// Asking again would not help: no such address, or no such symbol.
    Refused(anyhow::Error),
}

impl NotListed {
    /// The reason.
    pub(super) fn into_error(self) -> anyhow::Error {
        match self {
            Self::Unreached { error, .. } | Self::Refused(error) => error,
        }
    }
}

/// What is no failure to reach the venue is wrong with the question.
impl From<anyhow::Error> for NotListed {
    fn from(error: anyhow::Error) -> Self {
        Self::Refused(error)
    }
}

/// The listings of all symbols of `feed`, in its order.
///
/// # Errors
/// The venue cannot be reached, or does not list one of the symbols.
pub(super) async fn fetch(feed: &FeedConfig, clock: Clock) -> Result<Vec<Listing>, NotListed> {
    let mut listed = list(feed, clock).await?;
    distinguish(&mut listed.entries);
    let find = |symbol: &String| {
        let found = listed.entries.iter().find(|listing| listing.symbol == *symbol);
        found.cloned().with_context(|| format!("{} does not list {symbol}", feed.venue.name()))
    };
    Ok(feed.symbols.iter().map(find).collect::<anyhow::Result<_>>()?)
}

/// What a venue lists.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Every instrument, or at least those of the feed's symbols that there are.
    pub(super) entries: Vec<Listing>,
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
                let quoted: Vec<String> =
                    symbols.iter().map(|symbol| format!("%22{}%22", percent_encoded(symbol))).collect();
                let path = path.replace("{symbols}", &quoted.join(","));
                listed.add(feed, &path, RestRequest::get(), clock).await?;
            }
        }
        ListRequest::Get(paths) => {
            for path in paths {
                listed.add(feed, path, RestRequest::get(), clock).await?;
            }
        }
        ListRequest::Post(path, bodies) => {
            for body in bodies {
                listed.add(feed, path, RestRequest::post("application/json", (*body).to_owned()), clock).await?;
            }
        }
        ListRequest::Message(request) => {
            listed.entries = socket_list(feed, request, clock).await.map_err(unreached)?;
        }
    }
    Ok(listed)
}

impl Listed {
    async fn add(
        &mut self,
        feed: &FeedConfig,
        path: &str,
        request: RestRequest,
        clock: Clock,
    ) -> Result<(), NotListed> {
        let uri = feed.rest_uri(path)?;
        let answer = rest_answer(&uri, request, clock).await?;
        let listings = (feed.venue.rules().instruments.parse)(&answer.body)
            .with_context(|| format!("{uri}: not a list of instruments"))?;
        self.entries.extend(listings);
        self.date = answer.date.or(self.date.take());
        Ok(())
    }
}

async fn rest_answer(uri: &Uri, request: RestRequest, clock: Clock) -> Result<Response, NotListed> {
    rest::send(uri, request, clock).await.map_err(|failed| {
        let error = anyhow::anyhow!("{uri}: {}", failed.reason);
        if failed.is_final {
            NotListed::Refused(error)
        } else {
            NotListed::Unreached { error, retry_after: failed.retry_after }
        }
    })
}

/// No WebSocket, or none that lists the instruments.
fn unreached(error: anyhow::Error) -> NotListed {
    match error.downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Http(answer)) if rest::is_final(answer.status()) => NotListed::Refused(error),
        Some(_) | None => NotListed::Unreached { error, retry_after: None },
    }
}

/// The list that comes on the WebSocket, among other frames.
async fn socket_list(feed: &FeedConfig, request: &str, clock: Clock) -> anyhow::Result<Vec<Listing>> {
    let (mut socket, _) = socket::open(&feed.streams, clock).await?;
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
