//! What to follow, where, and how patiently.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use hyper::Uri;
use tt_model::{Decimal, Nanos};
use tt_venue::Venue;
use tt_venue::rules::{JoinRule, Rules, Topic, TopicKind};

use super::credentials::Credentials;
use super::dial::Target;
use super::listener::Listener;
use super::rest::percent_encoded;
use super::topics::topic_name;

/// Orders that a book has room for, where a subscription has a depth: for each of its levels, and at least.
const ORDERS_PER_LEVEL: usize = 32;
const BOOK_ORDERS_MIN: usize = 4096;

/// Orders that a whole book has room for.
const WHOLE_BOOK_ORDERS: usize = 1 << 18;

/// How often books may be compared with REST snapshots.
const VERIFY_EVERY: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);

/// How often a venue's list of instruments may be requested again.
const LIST_EVERY: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// What the market engine follows.
#[derive(Clone, Debug, Default)]
pub struct MarketConfig {
    /// The venues' feeds.
    pub feeds: Vec<FeedConfig>,
    /// One pass in so many is timed; 0 means one in 64.
    pub sample_one_in: u32,
    /// The recording that everything is written to that goes into the engines.
    pub recording: Option<RecordingConfig>,
    /// Whole books and streams of every update for other threads ([`Runner::streams`](crate::Runner::streams)).
    pub publishing: Option<Publishing>,
    /// A function that is called for every event.
    pub listener: Option<Listener>,
}

/// How books and updates are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// Whether the venues are simulated, which each message says.
    pub is_simulated: bool,
    /// The candles that are kept in memory.
    pub candles: CandlesKept,
}

/// Candles of each instrument that are kept in memory, 64 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandlesKept {
    /// Seconds with trades.
    pub seconds: usize,
    /// Minutes with trades.
    pub minutes: usize,
}

impl Default for CandlesKept {
    /// Four hours and a week.
    fn default() -> Self {
        Self { seconds: 14_400, minutes: 10_080 }
    }
}

/// Where the feeds are recorded.
#[derive(Clone, Debug)]
pub struct RecordingConfig {
    /// The file.
    pub path: PathBuf,
    /// Whether to go on with a recording that is there; without it, a file that is there is an error.
    pub append: bool,
    /// What is written is synced at most this much later.
    pub sync_every: Duration,
    /// Whether blocks of records are packed.
    pub packed: bool,
}

/// One venue's feed. Where a venue allows fewer topics on a connection than it needs, several connections serve it.
#[derive(Clone, Debug)]
pub struct FeedConfig {
    /// The venue.
    pub venue: Venue,
    /// The address of its WebSocket, path included.
    pub streams: Uri,
    /// Other addresses of the same streams, asked in this order where the first one cannot be reached.
    pub streams_fallback: Vec<Uri>,
    /// Scheme and host of its REST interface; the streams' host where it is absent.
    pub rest: Option<Uri>,
    /// A second host of the REST interface, asked where the first one gives no answer.
    pub rest_fallback: Option<Uri>,
    /// The venue's symbols.
    pub symbols: Vec<String>,
    /// Levels of each side that are asked for, where the venue wants to know (its rules' `depths`).
    pub depth: u32,
    /// Whether books are followed order by order ([`follow_orders`](Self::follow_orders)).
    pub level3: bool,
    /// Whether books include orders that only retail clients can trade with ([`follow_rpi`](Self::follow_rpi)).
    pub rpi: bool,
    /// Topics in addition to the usual ones.
    pub also: Vec<TopicKind>,
    /// Kinds of topics that are followed in their second form, where the venue has one ([`Topic::fallback`]). A feed adds
    /// what its venue accepts and does not send.
    pub fall_back: Vec<TopicKind>,
    /// Whether books join snapshots by REST where the venue offers both; else those on the socket.
    pub join_by_rest: bool,
    /// Whether the venue may pack what it sends (permessage-deflate): fewer bytes on the way, more time for each.
    pub compressed: bool,
    /// How often each book is compared with a REST snapshot; `None` for never.
    pub verify_every: Option<Duration>,
    /// How often the venue's list of instruments is requested again: a symbol that the venue has halted, closed or removed
    /// ends, and is followed again when it is traded again. `None` for never.
    pub list_every: Option<Duration>,
    /// The listen key of the account's orders; its owner keeps it alive.
    pub listen_key: Option<String>,
    /// Whose orders, executions, balances and positions are followed, too, on the account's own stream.
    pub account: Option<Credentials>,
    /// Positions that each mark price values.
    pub positions: Vec<OpenPosition>,
    /// The CPU that the connection's thread is pinned to; `None` leaves it to the kernel.
    pub cpu: Option<usize>,
    /// How patient the client is.
    pub timing: Timing,
}

/// One of the WebSockets that a feed needs.
#[derive(Clone, Debug)]
pub(super) struct LinkConfig {
    /// Its address.
    pub(super) streams: Uri,
    /// Where the same is served, if that address cannot be reached.
    pub(super) fallback: Vec<Uri>,
    /// Its topics.
    pub(super) topics: Vec<&'static Topic>,
}

/// A position to value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPosition {
    /// The venue's symbol.
    pub symbol: String,
    /// Lots held, negative when short.
    pub lots: i64,
    /// The average entry price in quote currency.
    pub entry_px: Decimal,
}

/// How patient a client is with its venue.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A connection that says nothing for this long is given up, or sooner where it usually says more.
    pub silence_max: Duration,
    /// A request that is not answered within this time ends the connection.
    pub answer_max: Duration,
    /// The wait after a first failure to connect; it doubles.
    pub backoff_min: Duration,
    /// The longest wait between two tries.
    pub backoff_max: Duration,
    /// The time between two REST snapshots that are asked for: the venue's weight limit.
    pub snapshot_gap: Duration,
    /// A topic that has a second form is followed in it, if nothing of the first has come for this long while other topics
    /// show that an instrument is active.
    pub fall_back_after: Duration,
    /// The venue ends a connection after this time; another one takes over before.
    pub connection_max: Option<Duration>,
}

impl Timing {
    /// What suits `venue`.
    #[must_use]
    pub fn of(venue: Venue) -> Self {
        Self {
            silence_max: Duration::from_nanos(venue.rules().silence_max.0),
            answer_max: Duration::from_secs(10),
            backoff_min: Duration::from_millis(250),
            backoff_max: Duration::from_secs(30),
            snapshot_gap: Duration::ZERO,
            fall_back_after: Duration::from_secs(30),
            connection_max: venue.rules().connection_max.map(|most| Duration::from_nanos(most.0)),
        }
    }
}

impl FeedConfig {
    /// `symbols` of `venue` at its own public addresses.
    #[must_use]
    pub fn public(venue: Venue, symbols: Vec<String>) -> Self {
        let rules = venue.rules();
        let timing = Timing { snapshot_gap: Duration::from_nanos(rules.snapshot_gap.0), ..Timing::of(venue) };
        Self {
            venue,
            streams: Uri::from_static(rules.streams),
            streams_fallback: rules.streams_fallback.iter().copied().map(Uri::from_static).collect(),
            rest: rules.rest.map(Uri::from_static),
            rest_fallback: rules.rest_fallback.map(Uri::from_static),
            symbols,
            depth: rules.depth,
            level3: false,
            rpi: false,
            also: Vec::new(),
            fall_back: Vec::new(),
            join_by_rest: false,
            compressed: false,
            verify_every: None,
            list_every: Some(Duration::from_secs(300)),
            listen_key: None,
            account: None,
            positions: Vec::new(),
            cpu: None,
            timing,
        }
    }

    /// `symbols` of `venue` at `streams`, with REST on the same host: the simulator. One of the venue's own further
    /// addresses is tried before its first one instead.
    #[must_use]
    pub fn at(venue: Venue, streams: Uri, symbols: Vec<String>) -> Self {
        let mut public = Self::public(venue, symbols);
        if let Some(at) = public.streams_fallback.iter().position(|known| *known == streams) {
            std::mem::swap(&mut public.streams, &mut public.streams_fallback[at]);
            return public;
        }
        let timing = Timing::of(venue);
        Self { streams, streams_fallback: Vec::new(), rest: None, rest_fallback: None, timing, ..public }
    }

    /// The rules of the venue, or those of its single orders or of its books with RPI orders where they are followed.
    #[must_use]
    pub fn rules(&self) -> &'static Rules {
        let rules = self.venue.rules();
        let of_kind = rules.l3.filter(|_| self.level3).or(rules.rpi.filter(|_| self.rpi));
        of_kind.or(rules.full.filter(|full| full.depth == self.depth)).unwrap_or(rules)
    }

    /// Whether all levels of books are followed, where those come apart.
    pub(super) fn is_full(&self) -> bool {
        !self.level3 && !self.rpi && self.venue.rules().full.is_some_and(|full| full.depth == self.depth)
    }

    /// The rules of a WebSocket with these topics: single orders come on one of their own.
    pub(super) fn rules_of(&self, topics: &[&'static Topic]) -> &'static Rules {
        let has_book = topics.iter().any(|topic| topic.kind == TopicKind::Book);
        if has_book { self.rules() } else { self.venue.rules() }
    }

    /// Follows the books order by order, at the venue's address for that unless another one is set. The depth is the usual
    /// one.
    ///
    /// # Errors
    /// The venue has no such feed.
    pub fn follow_orders(&mut self) -> anyhow::Result<()> {
        let rules = self.offered("single orders (level3)", |rules| rules.l3)?;
        anyhow::ensure!(
            !self.is_at_region(),
            "market: {} has no single orders (level3) in a region",
            self.venue.name()
        );
        if self.is_at_venue() {
            self.streams = Uri::from_static(rules.streams);
            self.streams_fallback.clear();
            self.timing.snapshot_gap = Duration::from_nanos(rules.snapshot_gap.0);
        }
        (self.level3, self.depth) = (true, rules.depth);
        Ok(())
    }

    /// Follows books that include orders of the kind "retail price improvement", which programs cannot trade with. The depth
    /// is the usual one, and there is no best bid and offer to compare the book with.
    ///
    /// # Errors
    /// The venue has no such books, or single orders are followed.
    pub fn follow_rpi(&mut self) -> anyhow::Result<()> {
        let rules = self.offered("books with RPI orders (rpi)", |rules| rules.rpi)?;
        anyhow::ensure!(!self.level3, "market: level3 and rpi exclude each other");
        (self.rpi, self.depth) = (true, rules.depth);
        Ok(())
    }

    /// What the books are made of, as they are shown.
    pub(super) const fn book_kind(&self) -> &'static str {
        match (self.level3, self.rpi) {
            (true, _) => "orders",
            (false, true) => "rpi",
            (false, false) => "levels",
        }
    }

    /// The rules of another kind of books, or an error with the venues that send `what`.
    fn offered(&self, what: &str, of: fn(&Rules) -> Option<&'static Rules>) -> anyhow::Result<&'static Rules> {
        of(self.venue.rules()).with_context(|| {
            let known: Vec<&str> =
                Venue::ALL.into_iter().filter(|venue| of(venue.rules()).is_some()).map(Venue::name).collect();
            format!("market: {} sends no {what}: {}", self.venue.name(), known.join(", "))
        })
    }

    fn is_at_region(&self) -> bool {
        self.venue.rules().regions.iter().any(|region| self.streams == Uri::from_static(region.streams))
    }

    /// Checks that an account is given where requests need a login.
    ///
    /// # Errors
    /// It is not.
    pub fn check_login(&self) -> anyhow::Result<()> {
        let has_account = self.account.is_some() || !self.rules().needs_login();
        let name = self.venue.name();
        anyhow::ensure!(has_account, "market: the single orders (level3) of {name} need a login: account_file");
        Ok(())
    }

    /// Orders of all books that are followed order by order.
    pub(super) fn book_orders(&self) -> usize {
        let each = match (self.level3, self.depth) {
            (false, _) => return 0,
            (true, 0) => WHOLE_BOOK_ORDERS,
            (true, depth) => (2 * depth as usize * ORDERS_PER_LEVEL).max(BOOK_ORDERS_MIN),
        };
        each * self.symbols.len()
    }

    /// Uses the venue's addresses for `region`, the account's among them.
    ///
    /// # Errors
    /// The venue has no addresses of that name.
    pub fn use_region(&mut self, region: &str) -> anyhow::Result<()> {
        let (regions, name) = (self.venue.rules().regions, self.venue.name());
        let known = || match regions {
            [] => "it has none".to_owned(),
            _ => regions.iter().map(|region| region.name).collect::<Vec<_>>().join(", "),
        };
        let found = regions.iter().find(|known| known.name == region);
        let found = found.with_context(|| format!("market: {name} has no region {region}: {}", known()))?;
        self.streams = Uri::from_static(found.streams);
        self.streams_fallback.clear();
        self.rest = Some(Uri::from_static(found.rest));
        self.rest_fallback = None;
        Ok(())
    }

    /// Asks for `depth` levels of each side; for as many as usual where it is `None`.
    ///
    /// # Errors
    /// The venue does not offer that depth.
    pub fn ask_depth(&mut self, depth: Option<u32>) -> anyhow::Result<()> {
        let Some(depth) = depth else { return Ok(()) };
        let (depths, name) = (self.rules().depths, self.venue.name());
        if let Some(full) = self.venue.rules().full.filter(|full| full.depth == depth && !self.level3 && !self.rpi) {
            let gap = if self.is_at_venue() { full.snapshot_gap } else { Nanos(0) };
            (self.depth, self.timing.snapshot_gap) = (depth, Duration::from_nanos(gap.0));
            return Ok(());
        }
        anyhow::ensure!(!depths.is_empty(), "market: {name} is asked for no depth: its books come as they are");
        let whole = self.venue.rules().full.filter(|_| !self.level3 && !self.rpi).map(|full| &full.depth);
        let known = depths.iter().chain(whole).map(u32::to_string).collect::<Vec<_>>().join(", ");
        anyhow::ensure!(depths.contains(&depth), "market: {name} has no depth {depth}: {known}");
        if self.rules().snapshot.is_some() && depth > self.depth {
            // Deeper snapshots weigh as much more as they have more levels.
            self.timing.snapshot_gap *= depth.div_ceil(self.depth.max(1));
        }
        self.depth = depth;
        Ok(())
    }

    /// Checks that the venue has the requested topics.
    ///
    /// # Errors
    /// A topic that it has not, or a choice that it does not offer.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let (rules, name) = (self.rules(), self.venue.name());
        self.check_login()?;
        for kind in &self.also {
            anyhow::ensure!(rules.topic(*kind).is_some(), "market: {name} has no topic {}", topic_name(*kind));
        }
        if let Some(every) = self.verify_every {
            anyhow::ensure!(
                rules.is_comparable(),
                "market: {name} has no REST snapshots with the numbers of its updates: nothing to verify with"
            );
            anyhow::ensure!(
                VERIFY_EVERY.contains(&every),
                "market: books are verified every {} s to {} s, not every {} s",
                VERIFY_EVERY.start().as_secs(),
                VERIFY_EVERY.end().as_secs(),
                every.as_secs_f64()
            );
        }
        if let Some(every) = self.list_every {
            anyhow::ensure!(
                LIST_EVERY.contains(&every),
                "market: the list of instruments is requested every {} s to {} s, not every {} s",
                LIST_EVERY.start().as_secs(),
                LIST_EVERY.end().as_secs(),
                every.as_secs_f64()
            );
        }
        let offers_rest = matches!(rules.join, JoinRule::Both(_) | JoinRule::Rest(_));
        anyhow::ensure!(offers_rest || !self.join_by_rest, "market: {name} has no snapshots by REST");
        Ok(())
    }

    /// Checks that the addresses name a host and a scheme that a venue can have.
    ///
    /// # Errors
    /// The first address that does not.
    pub fn check_addresses(&self) -> anyhow::Result<()> {
        let streams = std::iter::once(&self.streams).chain(&self.streams_fallback);
        streams.chain(self.rest.as_ref()).try_for_each(|uri| Target::of(uri).map(drop))
    }

    /// The path of a snapshot by REST of that symbol, if the venue has one.
    pub(super) fn snapshot_path(&self, symbol: &str) -> Option<String> {
        let path = self.rules().snapshot?.path.replace("{symbol}", &percent_encoded(symbol));
        Some(path.replace("{depth}", &self.depth.to_string()))
    }

    /// The topics that are asked for, each symbol.
    pub(super) fn topics(&self) -> impl Iterator<Item = &'static Topic> + '_ {
        let rules = self.rules();
        let asked = rules.topics_of(self.depth).filter(|topic| topic.is_default || self.also.contains(&topic.kind));
        asked.map(|topic| topic.fallback.filter(|_| self.fall_back.contains(&topic.kind)).unwrap_or(topic))
    }

    /// The WebSockets that the topics need, the one of the books first.
    pub(super) fn links(&self) -> Vec<LinkConfig> {
        let fallback = self.streams_fallback.clone();
        let mut links = vec![LinkConfig { streams: self.streams.clone(), fallback, topics: Vec::new() }];
        for topic in self.topics() {
            let streams = topic.streams.map_or_else(|| self.streams.clone(), |elsewhere| self.elsewhere(elsewhere));
            match links.iter_mut().find(|link| link.streams == streams) {
                Some(link) => link.topics.push(topic),
                None => links.push(LinkConfig { streams, fallback: Vec::new(), topics: vec![topic] }),
            }
        }
        links
    }

    /// The WebSocket of the orders of `listen_key`, where the venue serves them at an address of their own.
    pub(super) fn orders_address(&self) -> Option<anyhow::Result<Uri>> {
        let stream = self.venue.rules().account.filter(|stream| stream.request.is_empty())?;
        let address = self.elsewhere(stream.streams).to_string().replace("{token}", self.listen_key.as_ref()?);
        Some(address.parse().map_err(anyhow::Error::new))
    }

    /// Whether the venue is asked at its own addresses.
    pub(super) fn is_at_venue(&self) -> bool {
        let rules = self.rules();
        std::iter::once(&rules.streams).chain(rules.streams_fallback).any(|own| self.streams == Uri::from_static(own))
    }

    /// Another WebSocket of the venue: at its own address, or at the same path of the host that replaces it.
    pub(super) fn elsewhere(&self, streams: &'static str) -> Uri {
        let own = Uri::from_static(streams);
        if self.is_at_venue() {
            return own;
        }
        let mut parts = self.streams.clone().into_parts();
        parts.path_and_query = own.into_parts().path_and_query;
        Uri::from_parts(parts).unwrap_or_else(|_| self.streams.clone())
    }

    /// The WebSocket that lists instruments; the one of single orders lists none.
    pub(super) fn list_address(&self) -> Uri {
        if self.level3 { self.elsewhere(self.venue.rules().streams) } else { self.streams.clone() }
    }

    /// `path` at the venue's REST interface.
    ///
    /// # Errors
    /// The addresses make no URI together.
    pub(super) fn rest_uri(&self, path: &str) -> anyhow::Result<Uri> {
        rest_uri_at(self.rest.as_ref().unwrap_or(&self.streams), path)
    }

    /// `path` at the venue's REST interface, and at its second host.
    ///
    /// # Errors
    /// As [`rest_uri`](Self::rest_uri).
    pub(super) fn rest_uris(&self, path: &str) -> anyhow::Result<Vec<Uri>> {
        let second = self.rest_fallback.iter().map(|base| rest_uri_at(base, path));
        std::iter::once(self.rest_uri(path)).chain(second).collect()
    }
}

fn rest_uri_at(base: &Uri, path: &str) -> anyhow::Result<Uri> {
    let scheme = match base.scheme_str() {
        Some("ws" | "http") => "http",
        _ => "https",
    };
    let host = base.authority().map_or("", |authority| authority.as_str());
    Ok(format!("{scheme}://{host}{path}").parse()?)
}

#[cfg(test)]
mod tests;
