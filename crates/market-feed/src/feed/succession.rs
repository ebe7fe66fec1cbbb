//! Links that take over from those whose end is announced or due, before that end.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tt_market::ConnectionId;
use tt_os::clock::unix_now;

use super::Feed;
use super::connection::{Connection, listen_key};
use super::link::{self, Link, Opened};

/// A try that failed is made again after this time.
const AGAIN: Duration = Duration::from_secs(5);
/// Books that say nothing on the new connection for this long go over to it as they are.
const MEET_MAX: Duration = Duration::from_secs(10);

type Opening = Pin<Box<dyn Future<Output = Result<Vec<Opened>, String>>>>;

/// What opens and closes while the feed goes on.
pub(super) struct Succession {
    /// The links that carry the market data.
    generation: u32,
    /// When the next links are to be opened: before the venue ends these.
    due: Option<Instant>,
    opening: Option<Opening>,
    /// Since when the next links are asked for everything.
    since: Option<Instant>,
    closing: FuturesUnordered<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Succession {
    pub(super) fn new(feed: &Feed) -> Self {
        let (opening, since, closing) = (None, None, FuturesUnordered::new());
        Self { generation: 0, due: due(feed), opening, since, closing }
    }

    /// The next links, once they are open; until then closing handshakes go on.
    pub(super) async fn next(&mut self) -> Result<Vec<Opened>, String> {
        let (opening, closing) = (&mut self.opening, &mut self.closing);
        let opened = async {
            match opening {
                Some(opening) => opening.await,
                None => pending().await,
            }
        };
        let closed = async {
            while closing.next().await.is_some() {}
            pending::<()>().await;
        };
        let opened = tokio::select! {
            opened = opened => opened,
            () = closed => Err("nothing is opened".to_owned()),
        };
        self.opening = None;
        opened
    }

    pub(super) const fn is_under_way(&self) -> bool {
        self.opening.is_some() || self.since.is_some()
    }
}

/// When the links of a feed are to be replaced: before the venue ends them, and not those of all feeds at once.
fn due(feed: &Feed) -> Option<Instant> {
    let most = feed.config.timing.connection_max?;
    Some(Instant::now() + most - most / 32 - most / 512 * (feed.index % 16) as u32)
}

impl Connection<'_> {
    /// Opens the links that take over, as the one of `connection` ends soon.
    pub(super) fn replace(&mut self, connection: ConnectionId) {
        let generation = Some(self.succession.generation);
        if self.links.iter().any(|link| link.id == connection && link.generation == generation) {
            tracing::info!(venue = self.feed.config.venue.name(), "market: the venue ends the connection soon");
            self.open_successors();
        }
    }

    pub(super) fn open_successors(&mut self) {
        if self.succession.is_under_way() {
            return;
        }
        let (config, with) = (&self.feed.config, (self.feed.address.clone(), self.feed.clock));
        self.succession.due = None;
        self.succession.opening = Some(Box::pin(link::open_successors(config.links(), config.compressed, with)));
    }

    /// Asks for everything on the next links, and lets them take the books over.
    pub(super) fn take_successors(&mut self, opened: Result<Vec<Opened>, String>) {
        let generation = self.succession.generation + 1;
        let made: Result<Vec<Link>, String> = opened.and_then(|opened| {
            opened.into_iter().map(|opened| link::successor(self.feed, opened, generation)).collect()
        });
        let links = match made {
            Ok(links) => links,
            Err(reason) => return self.give_up_successors(&reason),
        };
        let now = unix_now();
        for (index, mut link) in links.into_iter().enumerate() {
            link.prepare_requests(self.feed, listen_key(self.feed, index));
            for instrument in self.feed.instruments.clone().into_iter().filter(|_| index == 0) {
                // The engine knows both.
                let _ = self.feed.intake.announce_successor(link.id, instrument, now);
            }
            self.links.push(link);
        }
        self.succession.since = Some(Instant::now());
    }

    fn give_up_successors(&mut self, reason: &str) {
        tracing::warn!(venue = self.feed.config.venue.name(), reason, "market: no connection takes over");
        self.close_generation(self.succession.generation + 1);
        self.succession.since = None;
        self.succession.due = Some(Instant::now() + AGAIN);
    }

    /// Opens the next links when they are due, and ends the others once the books have gone over.
    pub(super) fn advance_succession(&mut self, now: Instant) {
        if self.succession.due.is_some_and(|due| due <= now) && self.feed.status.connected {
            self.open_successors();
        }
        let Some(since) = self.succession.since else { return };
        let next = Some(self.succession.generation + 1);
        let is_settled = self.links.iter().filter(|link| link.generation == next).all(Link::is_settled);
        let engine = self.feed.intake.engine();
        let have_met = !self.feed.instruments.iter().any(|instrument| engine.awaits_successor(*instrument));
        if is_settled && (have_met || now.saturating_duration_since(since) > MEET_MAX) {
            self.complete_succession();
        }
    }

    fn complete_succession(&mut self) {
        self.close_generation(self.succession.generation);
        self.succession.generation += 1;
        self.succession.since = None;
        self.succession.due = due(self.feed);
        self.feed.status.planned_reconnects += 1;
        tracing::info!(venue = self.feed.config.venue.name(), "market: another connection has taken over");
    }

    /// Ends the links of a generation; their closing handshakes go on.
    fn close_generation(&mut self, generation: u32) {
        let now = unix_now();
        let (closed, kept): (Vec<Link>, Vec<Link>) =
            std::mem::take(&mut self.links).into_iter().partition(|link| link.generation == Some(generation));
        self.links = kept;
        self.next_link = 0;
        for mut link in closed {
            self.feed.intake.close_connection(link.id, now);
            self.succession.closing.push(Box::pin(async move { link.close(true).await }));
        }
    }

    /// A link is of no more use.
    ///
    /// # Errors
    /// Nothing takes over from it: the reason.
    pub(super) fn lose_link(&mut self, index: usize, reason: String) -> Result<(), String> {
        let (Some(link), Some(_)) = (self.links.get(index), self.succession.since) else { return Err(reason) };
        let (lost, venue) = (link.generation, self.feed.config.venue.name());
        if lost == Some(self.succession.generation) {
            tracing::warn!(venue, reason, "market: the connection ended before another one had taken over");
            self.complete_succession();
            return Ok(());
        }
        let engine = self.feed.intake.engine();
        let is_unused = self.feed.instruments.iter().all(|instrument| engine.awaits_successor(*instrument));
        if lost == Some(self.succession.generation + 1) && is_unused {
            self.give_up_successors(&reason);
            return Ok(());
        }
        Err(reason)
    }
}
