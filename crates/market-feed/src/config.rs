//! `[market]`

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tt_status::interval;
use tt_venue::Venue;

use crate::credentials::Credentials;
use crate::settings::{CandlesKept, FeedConfig};
use crate::topics::topic_of_name;

/// Which venues are followed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MarketSection {
    /// `[[market.feeds]]`, one for each venue.
    pub feeds: Vec<FeedSection>,
    /// Seconds with trades of which candles are kept in memory, for each instrument [default: 14400].
    pub candle_seconds: Option<u32>,
    /// Minutes with trades of which candles are kept in memory, for each instrument [default: 10080].
    pub candle_minutes: Option<u32>,
}

impl MarketSection {
    /// Returns the candles that are kept in memory.
    #[must_use]
    pub fn candles(&self) -> CandlesKept {
        let default = CandlesKept::default();
        let or = |key: Option<u32>, default| key.map_or(default, |count| count as usize);
        CandlesKept {
            seconds: or(self.candle_seconds, default.seconds),
            minutes: or(self.candle_minutes, default.minutes),
        }
    }
}

/// One venue's feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedSection {
    /// The venue's name, as in `--venue`.
    pub venue: String,
    /// The venue's symbols.
    pub symbols: Vec<String>,
    /// WebSocket address instead of the venue's own.
    pub url: Option<String>,
    /// Further addresses of the same streams, asked in this order where `url` cannot be reached. Default: the venue's own,
    /// and none with `url`.
    pub fallback_urls: Option<Vec<String>>,
    /// REST address instead of the venue's own. Default: the host of `url`.
    pub rest_url: Option<String>,
    /// Region of the venue whose addresses are used, such as `eea`.
    pub region: Option<String>,
    /// Levels of each side, if the venue offers a choice. Default: the venue's usual number.
    pub depth: Option<u32>,
    /// Whether books are followed order by order, if the venue sends single orders. Needs `account_file` where they
    /// need a login.
    #[serde(default)]
    pub level3: bool,
    /// Whether books include RPI orders, which only retail clients can trade with.
    #[serde(default)]
    pub rpi: bool,
    /// Topics in addition to the usual ones: `candles`, `mark-price`, `liquidations` and so on.
    #[serde(default)]
    pub also: Vec<String>,
    /// Whether books join snapshots by REST if the venue offers both.
    #[serde(default)]
    pub join_by_rest: bool,
    /// How often each book is compared with a REST snapshot, such as `60s`. Default: never.
    pub verify_every: Option<String>,
    /// How often the venue's list of instruments is requested again, such as `5m`: a symbol that the venue has halted, closed
    /// or removed ends, and is followed again when it is traded again. Default: `5m`.
    pub list_every: Option<String>,
    /// Whether the venue may pack what it sends (permessage-deflate).
    #[serde(default)]
    pub compressed: bool,
    /// `key`, `secret` and `passphrase` of the account that is followed, too, in a file that only its owner may read.
    pub account_file: Option<PathBuf>,
    /// CPU that the connection's thread is pinned to.
    pub cpu: Option<usize>,
}

impl MarketSection {
    /// The feeds as the client takes them.
    ///
    /// # Errors
    /// An unknown venue, or an address that is none.
    pub fn feeds(&self) -> anyhow::Result<Vec<FeedConfig>> {
        self.feeds.iter().map(FeedSection::feed).collect()
    }
}

impl FeedSection {
    /// The feed as the client takes it.
    ///
    /// # Errors
    /// An unknown venue, an address that is none, or a value that the venue does not have.
    pub fn feed(&self) -> anyhow::Result<FeedConfig> {
        let venue = Venue::find(&self.venue);
        let venue = venue.with_context(|| format!("[[market.feeds]]: {} is no venue", self.venue))?;
        let uri = |text: &String| text.parse().with_context(|| format!("[[market.feeds]]: {text} is no address"));
        let mut feed = match &self.url {
            Some(url) => FeedConfig::at(venue, uri(url)?, self.symbols.clone()),
            None => FeedConfig::public(venue, self.symbols.clone()),
        };
        if let Some(region) = &self.region {
            anyhow::ensure!(self.url.is_none(), "[[market.feeds]]: region and url exclude each other");
            feed.use_region(region)?;
        }
        if let Some(urls) = &self.fallback_urls {
            feed.streams_fallback = urls.iter().map(uri).collect::<anyhow::Result<_>>()?;
        }
        if let Some(rest_url) = &self.rest_url {
            feed.rest = Some(uri(rest_url)?);
        }
        feed.account = self.account_file.as_deref().map(Credentials::read).transpose()?;
        if self.level3 {
            feed.follow_orders()?;
            feed.check_login()?;
        }
        if self.rpi {
            feed.follow_rpi()?;
        }
        feed.ask_depth(self.depth)?;
        for name in &self.also {
            let kind = topic_of_name(name);
            feed.also.push(kind.map_err(|known| anyhow::anyhow!("[[market.feeds]]: {name} is no topic, but {known}"))?);
        }
        feed.join_by_rest = self.join_by_rest;
        let interval = |key: &str, text: &String| {
            interval::parse(text).with_context(|| format!("[[market.feeds]]: {key}: {text} is no time such as 60s"))
        };
        feed.verify_every = self.verify_every.as_ref().map(|text| interval("verify_every", text)).transpose()?;
        let list_every = self.list_every.as_ref().map(|text| interval("list_every", text)).transpose()?;
        feed.list_every = list_every.or(feed.list_every);
        feed.compressed = self.compressed;
        feed.cpu = self.cpu;
        Ok(feed)
    }
}
