//! Optional topics and connection settings of a feed.

use std::time::Duration;

use market_feed::{FeedConfig, topic_of_name};
use tt_status::interval;
use tt_venue::rules::TopicKind;

/// Flags of the commands that connect to a venue.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SubscribeOptions {
    /// Additional topics, if the venue has them: best-levels, ticker, candles, mark-price, index-price, funding,
    /// open-interest, liquidations
    #[arg(long, value_name = "TOPIC,..", value_delimiter = ',', value_parser = topic_of_name, requires = "venue")]
    also: Vec<TopicKind>,
    /// Join books to REST snapshots instead of WebSocket snapshots, if the venue has both
    #[arg(long, requires = "venue")]
    join_by_rest: bool,
    /// Compare each book with a REST snapshot this often, such as 60s, at venues that number their snapshots
    #[arg(long, value_name = "TIME", value_parser = interval_of, requires = "venue")]
    verify_every: Option<Duration>,
    /// Offer permessage-deflate (RFC 7692) to the venue
    #[arg(long, requires = "venue")]
    compressed: bool,
}

impl SubscribeOptions {
    /// Copies the options into `feed`.
    pub(crate) fn apply_to(&self, feed: &mut FeedConfig) {
        feed.also.clone_from(&self.also);
        feed.join_by_rest = self.join_by_rest;
        feed.verify_every = self.verify_every;
        feed.compressed = self.compressed;
    }
}

fn interval_of(text: &str) -> Result<Duration, String> {
    interval::parse(text).ok_or_else(|| "a time such as 60s or 5m".to_owned())
}
