//! Feeds over the API.

use anyhow::{Context as _, ensure};
use market_feed::Feeds;
use market_feed::config::FeedSection;
use tt_status::market_feeds::{FeedAdmin, FollowedFeed};

/// Access for requests with the API token.
pub(crate) struct Admin(pub(crate) Feeds);

impl FeedAdmin for Admin {
    fn list(&self) -> Vec<FollowedFeed> {
        self.0.list()
    }

    fn add(&self, section: &[u8]) -> Result<u32, String> {
        self.follow(section).map_err(|error| format!("{error:#}"))
    }

    fn remove(&self, id: u32) -> bool {
        self.0.remove(id)
    }

    fn unsubscribe(&self, id: u32, symbol: &str) -> bool {
        self.0.unsubscribe(id, symbol)
    }
}

impl Admin {
    fn follow(&self, section: &[u8]) -> anyhow::Result<u32> {
        let section: FeedSection = serde_json::from_slice(section).context("not a feed as in [[market.feeds]]")?;
        // A token for feeds is no right to read files of this host.
        ensure!(section.account_file.is_none(), "account_file is for the configuration file");
        self.0.add(section.feed()?)
    }
}
