//! What to follow, where, and how patiently.

use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;
use tt_model::Decimal;
use tt_venue::Venue;
use tt_venue::rules::{JoinRule, Topic, TopicKind};

use super::credentials::Credentials;
use super::dial::Target;
use super::topics::topic_name;

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
}

/// How books and updates are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// Whether the venues are simulated, which each message says.
    pub is_simulated: bool,
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
    /// Scheme and host of its REST interface; the streams' host where it is absent.
    pub rest: Option<Uri>,
    /// The venue's symbols.
    pub symbols: Vec<String>,
    /// Levels of each side that are asked for, where the venue wants to know (its rules' `depths`).
    pub depth: u32,
    /// Topics in addition to the usual ones.
    pub also: Vec<TopicKind>,
    /// Whether books join snapshots by REST where the venue offers both; else those on the socket.
    pub join_by_rest: bool,
    /// Whether the venue may pack what it sends (permessage-deflate): fewer bytes on the way, more time for each.
    pub compressed: bool,
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
            rest: rules.rest.map(Uri::from_static),
            symbols,
            depth: rules.depth,
            also: Vec::new(),
            join_by_rest: false,
            compressed: false,
            listen_key: None,
            account: None,
            positions: Vec::new(),
            cpu: None,
            timing,
        }
    }

    /// `symbols` of `venue` at `streams`, with REST on the same host: the simulator.
    #[must_use]
    pub fn at(venue: Venue, streams: Uri, symbols: Vec<String>) -> Self {
        Self { streams, rest: None, timing: Timing::of(venue), ..Self::public(venue, symbols) }
    }

    /// Asks for `depth` levels of each side; for as many as usual where it is `None`.
    ///
    /// # Errors
    /// The venue does not offer that depth.
    pub fn ask_depth(&mut self, depth: Option<u32>) -> anyhow::Result<()> {
        let Some(depth) = depth else { return Ok(()) };
        let (depths, name) = (self.venue.rules().depths, self.venue.name());
        anyhow::ensure!(!depths.is_empty(), "market: {name} is asked for no depth: its books come as they are");
        let known = depths.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        anyhow::ensure!(depths.contains(&depth), "market: {name} has no depth {depth}: {known}");
        self.depth = depth;
        Ok(())
    }

    /// Checks that the venue has the requested topics.
    ///
    /// # Errors
    /// A topic that it has not, or a choice that it does not offer.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let (rules, name) = (self.venue.rules(), self.venue.name());
        for kind in &self.also {
            anyhow::ensure!(rules.topic(*kind).is_some(), "market: {name} has no topic {}", topic_name(*kind));
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
        [Some(&self.streams), self.rest.as_ref()].into_iter().flatten().try_for_each(|uri| Target::of(uri).map(drop))
    }

    /// The topics that are asked for, each symbol.
    pub(super) fn topics(&self) -> impl Iterator<Item = &'static Topic> + '_ {
        let rules = self.venue.rules();
        rules.topics.iter().filter(|topic| topic.is_default || self.also.contains(&topic.kind))
    }

    /// The WebSockets that the topics need, the one of the books first.
    pub(super) fn links(&self) -> Vec<LinkConfig> {
        let mut links = vec![LinkConfig { streams: self.streams.clone(), topics: Vec::new() }];
        for topic in self.topics() {
            let streams = topic.streams.map_or_else(|| self.streams.clone(), |elsewhere| self.elsewhere(elsewhere));
            match links.iter_mut().find(|link| link.streams == streams) {
                Some(link) => link.topics.push(topic),
                None => links.push(LinkConfig { streams, topics: vec![topic] }),
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

    /// Another WebSocket of the venue: at its own address, or at the same path of the host that replaces it.
    pub(super) fn elsewhere(&self, streams: &'static str) -> Uri {
        let own = Uri::from_static(streams);
        if self.streams == Uri::from_static(self.venue.rules().streams) {
            return own;
        }
        let mut parts = self.streams.clone().into_parts();
        parts.path_and_query = own.into_parts().path_and_query;
        Uri::from_parts(parts).unwrap_or_else(|_| self.streams.clone())
    }

    /// `path` at the venue's REST interface.
    ///
    /// # Errors
    /// The addresses make no URI together.
    pub(super) fn rest_uri(&self, path: &str) -> anyhow::Result<Uri> {
        let base = self.rest.as_ref().unwrap_or(&self.streams);
        let scheme = match base.scheme_str() {
            Some("ws" | "http") => "http",
            _ => "https",
        };
        let host = base.authority().map_or("", |authority| authority.as_str());
        Ok(format!("{scheme}://{host}{path}").parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usdm_has_an_address_for_books_one_for_prices_and_one_for_an_account() {
        let mut feed = FeedConfig::public(Venue::BinanceUsdm, vec!["BTCUSDT".to_owned()]);
        let links = feed.links();
        let [public, market] = links.as_slice() else { panic!("{links:?}") };
        let kinds = |link: &LinkConfig| link.topics.iter().map(|topic| topic.kind).collect::<Vec<_>>();
        assert_eq!(public.streams, "wss://fstream.binance.com/public/stream");
        assert_eq!(kinds(public), [TopicKind::Book, TopicKind::BestLevels, TopicKind::Trades]);
        assert_eq!(market.streams, "wss://fstream.binance.com/market/stream");
        assert_eq!(kinds(market), [TopicKind::MarkPrice]);
        feed.also.extend([TopicKind::Candles, TopicKind::Liquidations]);
        assert_eq!(kinds(&feed.links()[1]), [TopicKind::MarkPrice, TopicKind::Candles, TopicKind::Liquidations]);
        assert!(feed.orders_address().is_none());
        feed.listen_key = Some("KEY".to_owned());
        feed.streams = "ws://127.0.0.1:7/public/stream".parse().unwrap();
        assert_eq!(feed.orders_address().unwrap().unwrap(), "ws://127.0.0.1:7/private/ws?listenKey=KEY");
        assert_eq!(FeedConfig::public(Venue::BinanceCoinm, Vec::new()).links().len(), 1, "COIN-M is not split");
    }

    #[test]
    fn candles_of_okx_need_a_socket_of_their_own() {
        let symbols = vec!["BTC-USDT".to_owned()];
        let mut feed = FeedConfig::public(Venue::Okx, symbols.clone());
        assert_eq!(feed.links().len(), 1);
        feed.also.push(TopicKind::Candles);
        let links = feed.links();
        assert_eq!((links.len(), links[1].topics.len()), (2, 1));
        assert_eq!(links[1].streams, "wss://ws.okx.com:8443/ws/v5/business");
        feed.streams = "ws://127.0.0.1:7/ws/v5/public".parse().unwrap();
        assert_eq!(feed.links()[1].streams, "ws://127.0.0.1:7/ws/v5/business");
        let mut feed = FeedConfig::public(Venue::Kraken, symbols);
        feed.also.push(TopicKind::Candles);
        assert_eq!(feed.links().len(), 1);
        assert!(feed.check().is_ok());
        feed.join_by_rest = true;
        assert!(feed.check().is_err());
    }
}
